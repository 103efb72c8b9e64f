"""Guests side by side: one records, in virtual time where waiting is free; others observe what was recorded.

Two guests at a time, since each takes a processor of its own: a recorder and an observer, and when all is recorded
two observers. Results can be had in the order of the workloads, whoever was ready first. What a run directory has
already, since it was stopped and is gone on with, is not done again.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bob.config import Configuration
from bob.crash.device import DeviceModel
from bob.crash.plan import Plan
from bob.errors import MalformedError, RecordingError, UsageError
from bob.guest.agent_client import REMOTE_FILE, START, Agent, AgentBroken, agent_file
from bob.guest.hypervisor import Hypervisor
from bob.guest.loss import GuestLost
from bob.guest.spec import Clock, GuestSpec
from bob.image import Image
from bob.observe.explore import explore
from bob.observe.observation import Findings
from bob.progress import Progress
from bob.record.base import base_name, make_base, put_base
from bob.record.check import checked
from bob.record.recorder import record
from bob.store import Observed, RunDirectory
from bob.trace.base import Base
from bob.trace.recording import Recording
from bob.workload.operations import Operation, Workload


@dataclass(frozen=True, slots=True)
class Task:
    """What the pipeline works on; ``budget`` is in crash states per workload."""

    configuration: Configuration
    model: DeviceModel
    budget: int
    seed: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording that passed its check; ``number`` is its workload's in the run."""

    number: int
    folder: Path
    workload: Workload
    base: Base
    recording: Recording
    plan: Plan


@dataclass(frozen=True, slots=True)
class Refused:
    """A workload that could not be recorded, and why."""

    number: int
    workload: Workload
    reason: str


@dataclass(frozen=True, slots=True)
class Explored:
    """A recording with what was seen of its crash states."""

    recorded: Recorded
    observed: Observed

    @property
    def number(self) -> int:
        """Its workload's number in the run."""
        return self.recorded.number


@contextmanager
def agent_in(hypervisor: Hypervisor, image: Image, clock: Clock) -> Iterator[Agent]:
    """A guest with bob's agent in it."""
    with hypervisor.guest(GuestSpec(image, clock)) as guest:
        guest.shell.push(agent_file(), REMOTE_FILE)
        with guest.shell.open_channel(START) as stream:
            yield Agent(stream)


class _Stopped(Exception):
    """The pipeline was left while a workload was being observed."""


class Pipeline:
    """Runs while ``with`` is open; ask for the :meth:`result` of each workload.

    Leaving ``with`` early ends the guests and the threads.
    """

    def __init__(
        self,
        hypervisor: Hypervisor,
        image: Image,
        task: Task,
        run: RunDirectory,
        workloads: Sequence[Workload],
        progress: Progress,
    ) -> None:
        self._hypervisor = hypervisor
        self._image = image
        self._task = task
        self._run = run
        self._left = {
            number: workload
            for number, workload in enumerate(workloads)
            if not run.is_done(run.folder(number, workload))
        }
        """What is to be done, by its number in the run."""
        self._progress = progress
        # Not bounded: a recording guest that waits would burn its processor, since its clock never stands still.
        self._recorded: queue.Queue[Recorded | None] = queue.Queue()
        self._results: queue.Queue[Explored | Refused | BaseException] = queue.Queue()
        self._early: dict[int, Explored | Refused] = {}
        self._stopped = threading.Event()
        self._bases: dict[tuple[Operation, ...], Base] = {}
        self._threads = (
            threading.Thread(target=self._guarded, args=(self._record_then_observe,), name="recorder"),
            threading.Thread(target=self._guarded, args=(self._observe_all,), name="observer"),
        )

    def __enter__(self) -> Pipeline:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._recorded.put(None)
        for thread in self._threads:
            thread.join()

    def result(self, number: int) -> Explored | Refused | None:
        """What came of workload ``number``, once; None if it was done before. A failure in any thread is raised."""
        if number not in self._left:
            return None
        while number not in self._early:
            result = self._results.get()
            if isinstance(result, BaseException):
                raise result
            self._early[result.number] = result
        return self._early.pop(number)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as failure:
            self._results.put(failure)

    def _record_then_observe(self) -> None:
        numbers: Sequence[int] = ()
        for number, workload in self._left.items():
            if self._run.is_recorded(self._run.folder(number, workload)):
                self._take(number, workload)
            else:
                numbers = (*numbers, number)
        while numbers and not self._stopped.is_set():
            numbers = self._record_all(numbers)
        self._recorded.put(None)
        self._observe_all()

    def _take(self, number: int, workload: Workload) -> None:
        """Take a recording that the run has already."""
        folder = self._run.folder(number, workload)
        _workload, name, recording = self._run.recording(folder)
        base = self._run.base(name)
        plan = Plan(checked(recording, base), base, self._task.model)
        self._progress.recorded(workload.title)
        self._recorded.put(Recorded(number, folder, workload, base, recording, plan))

    def _record_all(self, numbers: Sequence[int]) -> Sequence[int]:
        """Record these workloads in one guest; those to go on with when that guest is lost."""
        with agent_in(self._hypervisor, self._image, Clock.VIRTUAL) as agent:
            for place, number in enumerate(numbers):
                if self._stopped.is_set():
                    break
                workload = self._left[number]
                try:
                    self._record(agent, number, workload, self._base(agent, workload))
                except (GuestLost, AgentBroken) as loss:
                    self._refuse(number, workload, f"the guest was lost while recording: {loss}")
                    return numbers[place + 1 :]
        return ()

    def _base(self, agent: Agent, workload: Workload) -> Base:
        """The base of a workload; made once a run, as another one would differ in what the kernel draws at random."""
        setup, name = workload.setup, base_name(self._task.configuration, workload.setup)
        if setup not in self._bases and self._run.has_base(name):
            self._bases[setup] = self._run.base(name)
        if (base := self._bases.get(setup)) is not None:
            put_base(agent, base)
            return base
        base = self._bases[setup] = make_base(agent, self._task.configuration, setup)
        self._run.save_base(base)
        return base

    def _record(self, agent: Agent, number: int, workload: Workload, base: Base) -> None:
        try:
            recording = record(agent, self._task.configuration, base, workload, virtual=True)
            plan = Plan(checked(recording, base), base, self._task.model)
        except UsageError as refusal:
            self._refuse(number, workload, f"the guest refused it: {refusal}")
            return
        except (RecordingError, MalformedError) as refusal:
            self._refuse(number, workload, f"the recording was refused: {refusal}")
            return
        folder = self._run.folder(number, workload)
        self._run.save_recording(folder, workload, base, recording)
        self._progress.recorded(workload.title)
        self._recorded.put(Recorded(number, folder, workload, base, recording, plan))

    def _refuse(self, number: int, workload: Workload, reason: str) -> None:
        self._run.save_refusal(self._run.folder(number, workload), workload, reason)
        self._progress.step(f"not recorded: {workload.title}: {reason}")
        self._progress.finished(workload.title, self._task.budget)
        self._results.put(Refused(number, workload, reason))

    def _observe_all(self) -> None:
        """Observe recordings until there are no more; a lost guest is replaced for the next one."""
        with ExitStack() as guest:
            agent: Agent | None = None
            while (recorded := self._recorded.get()) is not None and not self._stopped.is_set():
                try:
                    if agent is None:
                        agent = guest.enter_context(agent_in(self._hypervisor, self._image, Clock.REAL))
                    observed = self._observe(agent, recorded)
                except (GuestLost, AgentBroken, UsageError) as loss:
                    nothing = recorded.plan.nothing_explored()
                    observed = Observed((), Findings(), nothing, f"the guest was lost: {loss}")
                if observed.lost is not None:
                    agent = None
                    guest.close()
                self._run.save_observed(recorded.folder, observed)
                self._progress.finished(recorded.workload.title, self._task.budget - len(observed.states))
                self._results.put(Explored(recorded, observed))
            self._recorded.put(None)  # for the other observer

    def _observe(self, agent: Agent, recorded: Recorded) -> Observed:
        title = recorded.workload.title
        return explore(
            agent,
            self._task.configuration,
            recorded.base,
            recorded.plan,
            budget=self._task.budget,
            seed=self._task.seed,
            observed=lambda states: self._tell(title, states),
        )

    def _tell(self, title: str, states: int) -> None:
        if self._stopped.is_set():
            raise _Stopped
        self._progress.observed(title, states)
