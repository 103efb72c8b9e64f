"""Two guests side by side: one records, in virtual time where waiting is free; one observes what was recorded."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bob.config import Configuration
from bob.crash.device import DeviceModel
from bob.errors import RecordingError
from bob.guest.agent_client import REMOTE_FILE, START, Agent, agent_file
from bob.guest.hypervisor import Hypervisor
from bob.guest.loss import GuestLost
from bob.guest.spec import Clock, GuestSpec
from bob.image import Image
from bob.observe.explore import Plan, explore
from bob.observe.observation import Findings
from bob.progress import Progress
from bob.record.base import Base, make_base
from bob.record.check import checked
from bob.record.recorder import Recording, record
from bob.store import Observed, RunDirectory
from bob.workload.operations import Operation, Workload

AHEAD = 4
"""How many recordings may wait to be observed (they are in memory)."""


@dataclass(frozen=True, slots=True)
class Task:
    """What the pipeline works on; ``budget`` is in crash states per workload."""

    configuration: Configuration
    model: DeviceModel
    budget: int
    seed: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording that passed its check, on its way to be observed."""

    folder: Path
    workload: Workload
    base: Base
    recording: Recording
    plan: Plan


@dataclass(frozen=True, slots=True)
class Refused:
    """A workload that could not be recorded, and why."""

    folder: Path
    workload: Workload
    reason: str


@contextmanager
def agent_in(hypervisor: Hypervisor, image: Image, clock: Clock) -> Iterator[Agent]:
    """A guest with bob's agent in it."""
    with hypervisor.guest(GuestSpec(image, clock)) as guest:
        guest.shell.push(agent_file(), REMOTE_FILE)
        with guest.shell.open_channel(START) as stream:
            yield Agent(stream)


class Pipeline:
    """Records in one thread and guest while the caller observes in another; iterate to get the recordings."""

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
        self._workloads = workloads
        self._progress = progress
        self._queue: queue.Queue[Recorded | Refused | BaseException | None] = queue.Queue(AHEAD)
        self._stopped = threading.Event()
        self._observer = ExitStack()
        self._agent: Agent | None = None
        self._thread = threading.Thread(target=self._record_all, name="recorder", daemon=True)

    def __enter__(self) -> Pipeline:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._observer.close()
        while self._thread.is_alive():
            try:
                self._queue.get(timeout=0.1)
            except queue.Empty:
                continue
        self._thread.join()

    def __iter__(self) -> Iterator[Recorded | Refused]:
        while (item := self._queue.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    def observed(self, recorded: Recorded) -> Observed:
        """Observe one recording; a lost guest is in the answer, and the next recording gets a new one."""
        name = f"{recorded.workload.name} ({recorded.workload.finish.name})"
        told = 0

        def tell(states: int) -> None:
            nonlocal told
            told += states
            self._progress.observed(name, states)

        try:
            if self._agent is None:
                self._agent = self._observer.enter_context(agent_in(self._hypervisor, self._image, Clock.REAL))
            observed = explore(
                self._agent,
                self._task.configuration,
                recorded.base,
                recorded.plan,
                budget=self._task.budget,
                seed=self._task.seed,
                observed=tell,
            )
        except GuestLost as loss:
            observed = Observed((), Findings(), recorded.plan.nothing_explored(), f"the guest was lost: {loss}")
        if observed.lost is not None:
            self._agent = None
            self._observer.close()
        self._progress.finished(name, self._task.budget - told)
        self._run.save_observed(recorded.folder, observed)
        return observed

    def _record_all(self) -> None:
        try:
            self._record_each()
            self._hand_over(None)
        except BaseException as failure:
            self._hand_over(failure)

    def _record_each(self) -> None:
        bases: dict[tuple[Operation, ...], Base] = {}
        number = 0
        while number < len(self._workloads):
            with agent_in(self._hypervisor, self._image, Clock.VIRTUAL) as agent:
                try:
                    while number < len(self._workloads) and not self._stopped.is_set():
                        workload = self._workloads[number]
                        if workload.setup not in bases:
                            bases[workload.setup] = make_base(agent, self._task.configuration, workload.setup)
                            self._run.save_base(bases[workload.setup])
                        self._hand_over(self._recorded(agent, number, workload, bases[workload.setup]))
                        number += 1
                    return
                except GuestLost as loss:
                    self._hand_over(self._refused(number, f"the guest was lost while recording: {loss}"))
                    number += 1
                    bases.clear()  # they went with the guest

    def _recorded(self, agent: Agent, number: int, workload: Workload, base: Base) -> Recorded | Refused:
        recording = record(agent, self._task.configuration, base, workload, virtual=True)
        try:
            trace = checked(recording, base)
        except RecordingError as refusal:
            return self._refused(number, f"the recording was refused: {refusal}")
        folder = self._run.folder(number, workload)
        self._run.save_recording(folder, workload, base, recording)
        self._progress.recorded(f"{workload.name} ({workload.finish.name})")
        return Recorded(folder, workload, base, recording, Plan(trace, base, self._task.model))

    def _refused(self, number: int, reason: str) -> Refused:
        workload = self._workloads[number]
        folder = self._run.folder(number, workload)
        self._run.save_refusal(folder, workload, reason)
        self._progress.step(f"not recorded: {workload.name} ({workload.finish.name}): {reason}")
        self._progress.finished(workload.name, self._task.budget)
        return Refused(folder, workload, reason)

    def _hand_over(self, item: Recorded | Refused | BaseException | None) -> None:
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=0.2)
                return
            except queue.Full:
                continue
