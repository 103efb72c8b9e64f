"""Recordings and observations side by side, as jobs of one pool. Up to half of the workers record, each another
configuration, in guests in virtual time, where waiting is free. The others observe. A worker's observing guest waits
while it records: in a restored one, an emulator translates all of the kernel again.

If the second guest is lost at a workload, too, or bob breaks at it, it stays unknown, and ``--resume`` tries it again.
If the kernel fell in both guests that recorded it, that is a finding.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bob.agent.client import Agent
from bob.agent.loss import GuestLost
from bob.crash.case import Case
from bob.crash.device import DeviceModel
from bob.errors import MalformedError, OperationRefusedError, RecordingError, UsageError
from bob.guest.capacity import recorders
from bob.guest.spec import Clock
from bob.image import Image
from bob.memory import give_back_now
from bob.observe.effort import Effort
from bob.observe.explore import explore
from bob.observe.mount_cache import Sights
from bob.observe.observations import Observations
from bob.progress import Progress
from bob.record.base import base_name, make_base, put_base
from bob.record.recorder import record
from bob.run.agents import GuestSource
from bob.run.pool import Errand, Idle, Job, JobQueue, LostGuest, Pool, StateSink
from bob.store.run_directory import RunDirectory
from bob.store.run_documents import RefusedWorkload
from bob.subject import Subject
from bob.trace.base import Base
from bob.workload.operations import Operation, Workload

FEW = 6  # with this few workloads left to observe, a worker records the next configuration
LARGE_LOG_BYTES = 4 * 1024 * 1024  # bob gives memory back after a longer log
HELD_BYTES = 8 * 1024 * 1024
"""Most bytes of log in memory to be observed, and as many to be judged. To read a recording back takes 10 to 50 ms."""


@dataclass(frozen=True, slots=True)
class Task:
    """A configuration's workloads, in the order of its run directory. ``only`` numbers those to do (None: all)."""

    configuration: Subject
    model: DeviceModel
    effort: Effort
    run: RunDirectory
    workloads: tuple[Workload, ...]
    only: frozenset[int] | None = None
    sights: Sights = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class RecordedCase:
    """A recording that passed its check; ``number`` is that of its workload in the run."""

    task: Task
    number: int
    folder: Path
    case: Case


@dataclass(frozen=True, slots=True)
class ExploredCase:
    recorded: RecordedCase
    observed: Observations


@dataclass(slots=True, eq=False)
class TaskUnderWay:
    task: Task
    left: dict[int, Workload]
    results: dict[int, ExploredCase | RefusedWorkload | None] = field(default_factory=dict)
    bases: dict[tuple[Operation, ...], Base] = field(default_factory=dict)
    refusal: UsageError | None = None


def may_wait(recorded: RecordedCase, others: Sequence[RecordedCase]) -> bool:
    """Return whether a recording may wait in memory beside ``others``."""
    return sum(one.case.recording.log_bytes for one in (recorded, *others)) <= HELD_BYTES


def read_back(task: Task, number: int) -> RecordedCase:
    folder = task.run.folder(number, task.workloads[number])
    return RecordedCase(task, number, folder, task.run.case(folder, task.configuration, task.model))


def left_of(task: Task) -> dict[int, Workload]:
    return {
        number: workload
        for number, workload in enumerate(task.workloads)
        if (task.only is None or number in task.only) and not task.run.is_done(task.run.folder(number, workload))
    }


class Pipeline(JobQueue):
    """Runs with ``jobs`` guests side by side while ``with`` is open; leaving early ends guests and threads."""

    def __init__(self, guests: GuestSource, image: Image, tasks: Sequence[Task], progress: Progress, jobs: int) -> None:
        super().__init__(Clock.REAL)
        self.progress = progress
        self._pool = Pool(guests, image, progress)
        self._guest_count = jobs
        self._work = [TaskUnderWay(task, left_of(task)) for task in tasks]
        # The pool's condition guards all that follows.
        self._unrecorded = deque(work for work in self._work if work.left)
        self._recorders = 0
        self._most_recorders = recorders(jobs)

    def __enter__(self) -> Pipeline:
        self._pool.start(self, self._guest_count)
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.stop()

    def result(self, task: int, number: int) -> ExploredCase | RefusedWorkload | None:
        """Return the result of workload ``number`` of a task, once; None if only the run directory has it. Raise
        UsageError if mkfs or the kernel refused the configuration, and the error that ended a worker."""
        work = self._work[task]
        if number not in work.left:
            return None
        self._pool.wait_until(lambda: work.refusal is not None or number in work.results)
        with self._pool.changed:
            if work.refusal is not None:
                raise work.refusal
            if number == max(work.left):  # the last
                work.task.sights.clear()
            return work.results.pop(number)

    def next(self, *, has_guest: bool) -> Job | Errand | Idle:
        if self._unrecorded and self._recorders < self._most_recorders and len(self._jobs) <= FEW:
            self._recorders += 1
            return partial(self._record_all, self._unrecorded.popleft())
        if self._recorders or self._unrecorded:
            return self._jobs.popleft() if self._jobs else Idle.WAIT
        return super().next(has_guest=has_guest)

    def _record_all(self, work: TaskUnderWay) -> None:
        unrecorded = []
        try:
            for number, workload in work.left.items():
                if work.task.run.is_recorded(work.task.run.folder(number, workload)):
                    self.observe_later(work, number, None)
                else:
                    unrecorded.append(_RecordingJob(self, work, number))
            for _recording in self._pool.done(JobQueue(Clock.VIRTUAL, unrecorded)):
                pass  # it waits to be observed
        except UsageError as refusal:
            with self._pool.changed:
                work.refusal = refusal
        finally:
            with self._pool.changed:
                self._recorders -= 1
                self._pool.changed.notify_all()

    def observe_later(self, work: TaskUnderWay, number: int, recorded: RecordedCase | None) -> None:
        """Queue a recording that the run directory has for a guest that observes."""
        observation = _ObservationJob(self, work, number)
        self.progress.recorded(observation.title)
        with self._pool.changed:
            others = [one.recorded for one in self._jobs if isinstance(one, _ObservationJob) and one.recorded]
            if recorded and may_wait(recorded, others):
                observation.recorded = recorded
            self._jobs.append(observation)
            self._pool.changed.notify_all()

    def finish(self, work: TaskUnderWay, number: int, states: int, result: ExploredCase | RefusedWorkload) -> None:
        """Note the ``result`` of a workload, and how many of its ``states`` were tried one by one."""
        self.progress.finished(work.left[number].title, work.task.effort.budget - states)
        with self._pool.changed:
            others = [
                one.recorded for each in self._work for one in each.results.values() if isinstance(one, ExploredCase)
            ]
            is_held = not isinstance(result, ExploredCase) or not others or may_wait(result.recorded, others)
            work.results[number] = result if is_held else None
            self._pool.changed.notify_all()


class _WorkloadJob(Job):
    def __init__(self, pipeline: Pipeline, work: TaskUnderWay, number: int) -> None:
        self._pipeline, self._work, self._number = pipeline, work, number
        self._task, self._workload = work.task, work.left[number]
        self._folder = work.task.run.folder(number, self._workload)
        super().__init__(self._workload.title)

    def give_up(self, error: Exception, reason: str, trace: str = "") -> None:
        task = self._task
        task.run.save_loss(self._folder, self._workload, reason, trace)
        at = f" ({self._folder / 'traceback.txt'})" if trace else ""
        self._pipeline.progress.step(f"unknown: {task.configuration.name}, {self.title}: {reason}{at}")
        self._finish(RefusedWorkload(self._workload, reason))

    def _finish(self, result: ExploredCase | RefusedWorkload) -> None:
        self._pipeline.finish(self._work, self._number, self.states, result)


class _RecordingJob(_WorkloadJob):
    when, verb = " while recording", "recorded"

    def do(self, agent: Agent, tell: StateSink) -> bool:
        task, workload = self._task, self._workload
        narrates = self.first_loss is not None  # the console then names the step of its fall
        try:
            base = self._base(agent, narrates)
        except OperationRefusedError as refusal:
            self._refuse(RefusedWorkload(workload, f"its initial tree cannot be made: {refusal}"))
            return True
        try:
            made, completion = task.configuration, task.model.completion
            recording = record(agent, made, base, workload, completion=completion, narrates=narrates)
            case = Case.of(made, workload, base, recording, task.model)
            _ = case.asked  # or it does not say when the operations returned
        except UsageError as refusal:
            self._refuse(RefusedWorkload(workload, f"the guest refused it: {refusal}"))
            return True
        except (RecordingError, MalformedError) as refusal:
            self._refuse(RefusedWorkload(workload, f"the recording was refused: {refusal}"))
            return True
        task.run.save_recording(self._folder, workload, base, recording)
        self._pipeline.observe_later(self._work, self._number, RecordedCase(task, self._number, self._folder, case))
        return True

    def give_up(self, error: Exception, reason: str, trace: str = "") -> None:
        if isinstance(error, GuestLost) and error.loss.is_by_kernel:
            self._refuse(RefusedWorkload.by_kernel(self._workload, error.loss))
        else:
            super().give_up(error, reason, trace)

    def _base(self, agent: Agent, narrates: bool) -> Base:
        """Return the base of the workload. A run makes it once, as the kernel draws at random in it."""
        run, setup, bases = self._task.run, self._workload.setup, self._work.bases
        name = base_name(self._task.configuration, setup, self._workload.pattern)
        if setup not in bases and run.has_base(name):
            bases[setup] = run.base(name)
        if (base := bases.get(setup)) is not None:
            put_base(agent, base)
            return base
        made, pattern = self._task.configuration, self._workload.pattern
        base = bases[setup] = make_base(agent, made, setup, pattern, narrates=narrates)
        run.save_base(base)
        return base

    def _refuse(self, refused: RefusedWorkload) -> None:
        self._task.run.save_refusal(self._folder, refused)
        name = self._task.configuration.name
        self._pipeline.progress.step(f"not recorded: {name}, {self.title}: {refused.reason}")
        self._finish(refused)


class _ObservationJob(_WorkloadJob):
    verb = "observed"
    recorded: RecordedCase | None = None
    _seen: Observations | None = None

    def do(self, agent: Agent, tell: StateSink) -> bool:
        task = self._task
        recorded = self.recorded = self.recorded or read_back(task, self._number)
        self._seen = explore(agent, task.configuration, recorded.case.asked, task.effort, tell, task.sights)
        if self._seen.died:
            raise LostGuest(self._seen.lost)
        can_go_on = self._seen.lost is None
        self._keep(recorded, self._seen)
        is_large = recorded.case.recording.log_bytes > LARGE_LOG_BYTES
        del recorded
        if is_large:
            give_back_now()
        return can_go_on

    def give_up(self, error: Exception, reason: str, trace: str = "") -> None:
        if isinstance(error, LostGuest) and self.recorded is not None and self._seen is not None:
            self._keep(self.recorded, self._seen)
        else:
            super().give_up(error, reason, trace)

    def _keep(self, recorded: RecordedCase, seen: Observations) -> None:
        kept = self._task.run.keep_observed(self._folder, self._workload, seen, self.first_loss)
        self.recorded = self._seen = None  # they may be large
        self._finish(ExploredCase(recorded, kept))
