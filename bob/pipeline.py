"""Guests side by side: some record, in virtual time where waiting is free; others observe what was recorded.

Each worker takes a processor. Up to half of the workers record, each another configuration, in a guest of its own,
while the others observe; when a configuration is recorded its worker observes as well; and when little is left to be
observed, the next configuration is recorded. The guest in which a worker observes waits while it records: another one
would have to be restored, and an emulator that translates all of the kernel anew takes seconds to be quick. What a run
directory has already, since it was stopped and is gone on with, is not done again.

A guest that dies gives its workload back: another one observes it from the beginning, and the result tells. If that
dies too, it is not the machine's fault, and the workload's outcome stays unknown.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from bob.config import Configuration
from bob.crash.device import DeviceModel
from bob.crash.plan import Plan
from bob.errors import MalformedError, RecordingError, UsageError
from bob.guest.agent_client import Agent, AgentBroken, what_happened
from bob.guest.capacity import recorders
from bob.guest.hypervisor import Hypervisor
from bob.guest.loss import GuestLost
from bob.guest.spec import Clock
from bob.guest.with_agent import agent_in
from bob.image import Image
from bob.memory import give_back_now
from bob.observe.explore import explore
from bob.observe.observation import Findings
from bob.observe.sights import Sights
from bob.progress import Progress
from bob.record.base import base_name, make_base, put_base
from bob.record.check import checked
from bob.record.recorder import record
from bob.store import Observed, RunDirectory
from bob.trace.base import Base
from bob.trace.recording import Recording
from bob.workload.operations import Operation, Workload

FEW = 6
"""With so few workloads left to observe, the next configuration is recorded, which takes a guest and a mkfs first."""
HELD_BYTES = 8 * 1024 * 1024
"""Recordings with so much log wait in memory to be observed, at most, and as many to be judged; others are read back
from the run directory, which takes 10 to 50 ms."""
LARGE_LOG_BYTES = 4 * 1024 * 1024
"""A recording with a longer log takes so much memory that it is worth some time to give that back."""


@dataclass(frozen=True, slots=True)
class Task:
    """A configuration's workloads, in the order of its run directory.

    ``budget`` is in mounts per workload; ``audit`` is the share of predicted outcomes that is checked; ``sights`` are
    the disks that were mounted for it."""

    configuration: Configuration
    model: DeviceModel
    budget: int
    seed: int
    audit: float
    run: RunDirectory
    workloads: tuple[Workload, ...]
    sights: Sights = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording that passed its check; ``number`` is its workload's in the run. ``plan`` has all its crash states."""

    task: Task
    number: int
    folder: Path
    workload: Workload
    base: Base
    recording: Recording
    plan: Plan

    @property
    def asked(self) -> Plan:
        """The crash states that the workload asks for."""
        return self.plan.asked(self.workload.at, len(self.workload.operations))


@dataclass(frozen=True, slots=True)
class Refused:
    """A workload that could not be recorded, and why."""

    workload: Workload
    reason: str


@dataclass(frozen=True, slots=True)
class Explored:
    """A recording with what was seen of its crash states."""

    recorded: Recorded
    observed: Observed


@dataclass(slots=True, eq=False)
class _Work:
    """A task under way: what is left of it, what came of it, and why it cannot be done, if it cannot."""

    task: Task
    left: dict[int, Workload]
    results: dict[int, Explored | Refused | None] = field(default_factory=dict)
    bases: dict[tuple[Operation, ...], Base] = field(default_factory=dict)
    refusal: UsageError | None = None


@dataclass(slots=True, eq=False)
class _Waiting:
    """A recording that is to be observed: ``recorded``, or in the run directory. ``loss`` says how the guest was lost
    that tried before."""

    work: _Work
    number: int
    recorded: Recorded | None
    loss: str | None = None


@dataclass(slots=True)
class _Told:
    """How many single crash states of a workload the progress was told of."""

    states: int = 0


class _Early:
    """Nothing is recorded yet, but will be: a guest can be made ready."""


class _Stopped(Exception):
    """The pipeline was left while a workload was being observed."""


class Pipeline:
    """Runs while ``with`` is open; ask for the :meth:`result` of each workload.

    ``jobs`` are the guests side by side. Leaving ``with`` early ends the guests and the threads.
    """

    def __init__(
        self, hypervisor: Hypervisor, image: Image, tasks: Sequence[Task], progress: Progress, jobs: int
    ) -> None:
        self._hypervisor = hypervisor
        self._image = image
        self._progress = progress
        self._work = [_Work(task, _left(task)) for task in tasks]
        # All of what follows changes under this condition only.
        self._changed = threading.Condition()
        self._unrecorded = deque(work for work in self._work if work.left)
        self._recorders = 0
        self._most_recorders = recorders(jobs)
        self._recorded: deque[_Waiting] = deque()
        self._failure: BaseException | None = None
        self._stopped = False
        self._threads = [threading.Thread(target=self._guarded, name=f"worker {n}") for n in range(1, jobs + 1)]

    def __enter__(self) -> Pipeline:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def result(self, task: int, number: int) -> Explored | Refused | None:
        """What came of workload ``number`` of a task, once; None if only the run directory has it: it was done before,
        or too much waited to be asked for.

        Raises the UsageError by which mkfs or the kernel refused the task's configuration, and what failed in a thread.
        """
        work = self._work[task]
        if number not in work.left:
            return None
        with self._changed:
            self._changed.wait_for(lambda: self._failure or work.refusal or number in work.results)
            if failure := self._failure or work.refusal:
                raise failure
            if number == max(work.left):  # the last
                work.task.sights.clear()
            return work.results.pop(number)

    def _guarded(self) -> None:
        try:
            self._run()
        except BaseException as failure:
            with self._changed:
                self._failure = self._failure or failure
                self._stopped = True
                self._changed.notify_all()

    def _run(self) -> None:
        """Record or observe, whatever is to be done, until there is no more."""
        with ExitStack() as guest:
            agent: Agent | None = None
            early = True
            while (job := self._next(early=early)) is not None:
                early = False
                if isinstance(job, _Early):
                    with suppress(GuestLost, AgentBroken, UsageError):  # with work at hand it is tried again, and told
                        agent = guest.enter_context(agent_in(self._hypervisor, self._image, Clock.REAL))
                    continue
                if isinstance(job, _Work):
                    self._record_all(job)
                    continue
                recorded = job.recorded or _read_back(job.work.task, job.number)
                told = _Told()
                try:
                    if agent is None:
                        agent = guest.enter_context(agent_in(self._hypervisor, self._image, Clock.REAL))
                    observed = self._observe(agent, recorded, told)
                except (GuestLost, AgentBroken, UsageError) as loss:
                    lost, died = what_happened(loss), isinstance(loss, GuestLost)
                    observed = Observed((), Findings(), recorded.asked.nothing_explored(), lost, died=died)
                if observed.lost is not None:
                    agent = None
                    guest.close()
                if observed.died and job.loss is None:
                    self._give_back(job, recorded, observed.lost or "", told)
                    continue
                observed = replace(observed, earlier_loss=job.loss)
                recorded.task.run.save_observed(recorded.folder, observed)
                unused = recorded.task.budget - told.states
                self._done(job.work, recorded.number, recorded.workload, unused, Explored(recorded, observed))
                is_large = len(recorded.recording.log) > LARGE_LOG_BYTES
                del job, recorded, observed
                if is_large:
                    give_back_now()

    def _next(self, *, early: bool) -> _Work | _Waiting | _Early | None:
        """What to do next: a task to be recorded, or a recording to be observed; None when all is done. Rather than
        wait, where it is ``early``, to have a guest ready for the first recording."""
        with self._changed:
            while not self._stopped:
                if self._unrecorded and self._recorders < self._most_recorders and len(self._recorded) <= FEW:
                    self._recorders += 1
                    return self._unrecorded.popleft()
                if self._recorded:
                    return self._recorded.popleft()
                if not self._recorders and not self._unrecorded:
                    return None
                if early:
                    return _Early()
                self._changed.wait()
        return None

    def _give_back(self, job: _Waiting, recorded: Recorded, loss: str, told: _Told) -> None:
        """Have the workload of a guest that died observed by another guest, before all others."""
        title = recorded.workload.title
        self._progress.step(f"{title}: {loss}; another guest begins it anew")
        self._progress.observed(title, -told.states)
        with self._changed:
            self._recorded.appendleft(_Waiting(job.work, job.number, recorded, loss))
            self._changed.notify_all()

    def _done(self, work: _Work, number: int, workload: Workload, unused: int, result: Explored | Refused) -> None:
        self._progress.finished(workload.title, unused)
        with self._changed:
            others = [one.recorded for each in self._work for one in each.results.values() if isinstance(one, Explored)]
            may_wait = not isinstance(result, Explored) or not others or _may_wait(result.recorded, others)
            work.results[number] = result if may_wait else None
            self._changed.notify_all()

    def _record_all(self, work: _Work) -> None:
        """Record what is left of a task, in a new guest when one is lost."""
        try:
            numbers = self._take_all(work)
            while numbers and not self._stopped:
                numbers = self._record_some(work, numbers)
        except UsageError as refusal:
            with self._changed:
                work.refusal = refusal
        finally:
            with self._changed:
                self._recorders -= 1
                self._changed.notify_all()

    def _take_all(self, work: _Work) -> Sequence[int]:
        """Take the recordings that the run has already; the numbers of the workloads of which it has none."""
        task, numbers = work.task, []
        for number, workload in work.left.items():
            folder = task.run.folder(number, workload)
            if not task.run.is_recorded(folder):
                numbers.append(number)
                continue
            self._wait(_Waiting(work, number, None), workload)
        return numbers

    def _record_some(self, work: _Work, numbers: Sequence[int]) -> Sequence[int]:
        """Record these workloads in one guest; those to go on with when that guest is lost."""
        with agent_in(self._hypervisor, self._image, Clock.VIRTUAL) as agent:
            for place, number in enumerate(numbers):
                if self._stopped:
                    break
                try:
                    self._record(agent, work, number)
                except (GuestLost, AgentBroken) as loss:
                    self._refuse(work, number, what_happened(loss, " while recording"))
                    return numbers[place + 1 :]
        return ()

    def _record(self, agent: Agent, work: _Work, number: int) -> None:
        task, workload = work.task, work.left[number]
        base = self._base(agent, work, workload)
        try:
            made, completion = task.configuration, task.model.completion
            recording = record(agent, made, base, workload, virtual=True, completion=completion)
            plan = Plan(checked(recording, base), base, task.model)
            plan.asked(workload.at, len(workload.operations))
        except UsageError as refusal:
            self._refuse(work, number, f"the guest refused it: {refusal}")
            return
        except (RecordingError, MalformedError) as refusal:
            self._refuse(work, number, f"the recording was refused: {refusal}")
            return
        folder = task.run.folder(number, workload)
        task.run.save_recording(folder, workload, base, recording)
        recorded = Recorded(task, number, folder, workload, base, recording, plan)
        self._wait(_Waiting(work, number, recorded), workload)

    def _base(self, agent: Agent, work: _Work, workload: Workload) -> Base:
        """The base of a workload; made once a run, as another one would differ in what the kernel draws at random."""
        run, setup = work.task.run, workload.setup
        name = base_name(work.task.configuration, setup)
        if setup not in work.bases and run.has_base(name):
            work.bases[setup] = run.base(name)
        if (base := work.bases.get(setup)) is not None:
            put_base(agent, base)
            return base
        base = work.bases[setup] = make_base(agent, work.task.configuration, setup)
        run.save_base(base)
        return base

    def _wait(self, waiting: _Waiting, workload: Workload) -> None:
        """Have a recording, which the run directory has too, wait for a guest that observes."""
        self._progress.recorded(workload.title)
        with self._changed:
            others = [one.recorded for one in self._recorded if one.recorded]
            if waiting.recorded and not _may_wait(waiting.recorded, others):
                waiting.recorded = None
            self._recorded.append(waiting)
            self._changed.notify_all()

    def _refuse(self, work: _Work, number: int, reason: str) -> None:
        task, workload = work.task, work.left[number]
        task.run.save_refusal(task.run.folder(number, workload), workload, reason)
        self._progress.step(f"not recorded: {task.configuration.name}, {workload.title}: {reason}")
        self._done(work, number, workload, task.budget, Refused(workload, reason))

    def _observe(self, agent: Agent, recorded: Recorded, told: _Told) -> Observed:
        title, task = recorded.workload.title, recorded.task
        return explore(
            agent,
            task.configuration,
            recorded.base,
            recorded.asked,
            budget=task.budget,
            seed=task.seed,
            audit=task.audit,
            sights=task.sights,
            observed=lambda states: self._tell(title, states, told),
        )

    def _tell(self, title: str, states: int, told: _Told) -> None:
        if self._stopped:
            raise _Stopped
        told.states += states
        self._progress.observed(title, states)


def _may_wait(recorded: Recorded, others: Sequence[Recorded]) -> bool:
    """Whether a recording may wait in memory beside ``others``, which do."""
    return sum(len(one.recording.log) for one in (recorded, *others)) <= HELD_BYTES


def _read_back(task: Task, number: int) -> Recorded:
    """A recording that the run directory has."""
    folder = task.run.folder(number, task.workloads[number])
    workload, name, recording = task.run.recording(folder)
    base = task.run.base(name)
    return Recorded(task, number, folder, workload, base, recording, Plan(checked(recording, base), base, task.model))


def _left(task: Task) -> dict[int, Workload]:
    """What is to be done of a task, by its number in the run."""
    numbered = enumerate(task.workloads)
    return {
        number: workload for number, workload in numbered if not task.run.is_done(task.run.folder(number, workload))
    }
