"""Recordings and observations side by side, as jobs of one pool of guests. A worker is a thread that does jobs in a
guest. At most half of the workers record, each for a configuration of its own. Such a worker uses a guest in virtual
time, where a wait costs no time on the host. The other workers observe crash states.

A worker that records may already have a guest for observing. It lets this guest wait until the recordings are done. It
would take longer to end this guest and to start another one later, because an emulator would have to translate the code
of the whole kernel again.

If a guest is lost during a workload (for example, its kernel panics), bob tries the workload in a second guest. If this
guest is lost, too, or if bob itself fails, the answer stays unknown, and ``--resume`` tries the workload again. But if
the kernel panicked or hung in the second guest during the recording, the result reports this as a finding."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from bob.agent.client import Agent
from bob.agent.loss import GuestLost
from bob.claim.property.judged_case import JudgedCase, judge_of_mixtures
from bob.claim.property.readings import OutcomeReadings
from bob.crash.case import Case
from bob.crash.device import DeviceModel
from bob.crash.state import CrashState
from bob.errors import MalformedError, OperationRefusedError, RecordingError, UsageError
from bob.guest.capacity import recorders
from bob.guest.spec import Clock
from bob.image import Image
from bob.memory import give_back_now
from bob.observe.effort import Effort
from bob.observe.explore import explore
from bob.observe.host_checks import HostCheckers
from bob.observe.mount_cache import Sights
from bob.observe.observations import Observations
from bob.progress import Progress
from bob.record.base import base_name, make_base, put_base
from bob.record.recorder import record
from bob.run.agents import GuestSource
from bob.run.host_checkers import CheckerSandboxes
from bob.run.pool import Errand, Idle, Job, JobQueue, LostGuest, Pool, StateSink
from bob.store.run_directory import RunDirectory
from bob.store.run_documents import RefusedWorkload
from bob.subject import Subject
from bob.trace.base import Base
from bob.workload.operations import Operation, Workload

FEW = 6  # if at most so many workloads wait to be observed, a worker records the next configuration
LARGE_LOG_BYTES = 4 * 1024 * 1024  # after a larger log, bob returns memory to the system
HELD_BYTES = 8 * 1024 * 1024
"""The limit for the logs of recordings that wait in memory: so many bytes may wait to be observed, and as many to be
judged. Other recordings are read from the run directory, which takes 10 to 50 ms each."""


ViolatingStates = Callable[[JudgedCase, Case, Observations], set[CrashState]]
"""Returns the crash states of a case that show violations, from the case as judged and as observed."""


@dataclass(slots=True, eq=False)
class Task:
    """The workloads of a configuration, in the order of run.json. A workload's number is its index in ``workloads``. If
    the pipeline shall do only some of the workloads, ``only`` has their numbers. Otherwise it is None. The function
    ``evidence`` returns the crash states that the result will show as violations. If the host ran the file system's
    check on such a state, a guest repeats the check as a control. The pipeline fills the other fields: for example,
    ``left`` has the workloads that were not done at the beginning, and ``results`` has their results."""

    configuration: Subject
    model: DeviceModel
    effort: Effort
    run: RunDirectory
    workloads: tuple[Workload, ...]
    only: frozenset[int] | None = None
    evidence: ViolatingStates | None = None
    left: dict[int, Workload] = field(init=False)
    sights: Sights = field(init=False, default_factory=dict)
    results: dict[int, ExploredCase | RefusedWorkload | None] = field(init=False, default_factory=dict)
    bases: dict[tuple[Operation, ...], Base] = field(init=False, default_factory=dict)
    refusal: UsageError | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.left = {
            number: workload
            for number, workload in enumerate(self.workloads)
            if (self.only is None or number in self.only) and not self.run.is_done(self.run.folder(number, workload))
        }


@dataclass(frozen=True, slots=True)
class ExploredCase:
    """A recorded workload with its observations. ``readings`` keeps which operations each observation shows, so that
    bob need not find this out again (None: nothing is kept)."""

    case: Case
    observed: Observations
    readings: OutcomeReadings | None = None


def may_wait(case: Case, others: Sequence[Case]) -> bool:
    """Return whether the recording of ``case`` may wait in memory until bob observes its crash states. The recordings
    of ``others`` wait already, and memory must have room for all of them together."""
    return sum(one.recording.log_bytes for one in (case, *others)) <= HELD_BYTES


class Pipeline(JobQueue):
    """A context manager that records and observes in ``jobs`` guests side by side. It works while the ``with`` block is
    open. If the block ends early, all guests and threads end."""

    def __init__(self, guests: GuestSource, image: Image, tasks: Sequence[Task], progress: Progress, jobs: int) -> None:
        super().__init__(Clock.REAL)
        self.progress = progress
        self._pool = Pool(guests, image, progress)
        self._guest_count = jobs
        self._tasks = tasks
        # The condition of the pool guards all fields below.
        self._unrecorded = deque(task for task in tasks if task.left)
        self._recorders = 0
        self._most_recorders = recorders(jobs)
        self._sandboxes = CheckerSandboxes(image, any(task.configuration.fs.check_on_host for task in tasks), progress)

    def __enter__(self) -> Pipeline:
        self._pool.start(self, self._guest_count)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._pool.stop()
        finally:
            self._sandboxes.close()

    def checkers(self) -> HostCheckers | None:
        """Return the object that runs the file system's check on the host, in a sandbox of the calling worker. If the
        result or its ``agent`` (bob's program in the sandbox) is None, guests run the check."""
        return self._sandboxes.of_this_worker()

    def result(self, place: int, number: int) -> ExploredCase | RefusedWorkload | None:
        """Wait for the result of workload ``number`` of the task at index ``place``, and return the result. Call this
        once for each workload, since the pipeline then forgets the result. Return None if the result is in the run
        directory, but not in memory. Raise UsageError if mkfs or the kernel refused the configuration. If a worker
        failed, raise its error."""
        task = self._tasks[place]
        if number not in task.left:
            return None
        self._pool.wait_until(lambda: task.refusal is not None or number in task.results)
        with self._pool.changed:
            if task.refusal is not None:
                raise task.refusal
            if number == max(task.left):  # the last workload of the configuration
                task.sights.clear()
            return task.results.pop(number)

    def next(self, *, has_guest: bool) -> Job | Errand | Idle:
        if self._unrecorded and self._recorders < self._most_recorders and len(self._jobs) <= FEW:
            self._recorders += 1
            return partial(self._record_all, self._unrecorded.popleft())
        if self._recorders or self._unrecorded:
            return self._jobs.popleft() if self._jobs else Idle.WAIT
        return super().next(has_guest=has_guest)

    def _record_all(self, task: Task) -> None:
        unrecorded = []
        try:
            for number, workload in task.left.items():
                if task.run.is_recorded(task.run.folder(number, workload)):
                    self.observe_later(task, number, None)
                else:
                    unrecorded.append(_RecordingJob(self, task, number))
            for _recording in self._pool.done(JobQueue(Clock.VIRTUAL, unrecorded)):
                pass  # the recording now waits to be observed
        except UsageError as refusal:
            with self._pool.changed:
                task.refusal = refusal
        finally:
            with self._pool.changed:
                self._recorders -= 1
                self._pool.changed.notify_all()

    def observe_later(self, task: Task, number: int, case: Case | None) -> None:
        """Put the recording of workload ``number`` into the queue for observation. The recording is already in the run
        directory. If the caller also has it in memory, ``case`` is this recording."""
        observation = _ObservationJob(self, task, number)
        self.progress.recorded(observation.title)
        with self._pool.changed:
            others = [one.case for one in self._jobs if isinstance(one, _ObservationJob) and one.case]
            if case and may_wait(case, others):
                observation.case = case
            self._jobs.append(observation)
            self._pool.changed.notify_all()

    def finish(self, task: Task, number: int, states: int, result: ExploredCase | RefusedWorkload) -> None:
        """Mark a workload as done, and keep its ``result`` if memory has room. ``states`` is the part of the workload's
        budget (a number of crash states) that bob used."""
        self.progress.finished(task.left[number].title, task.effort.budget - states)
        with self._pool.changed:
            others = [
                one.case for each in self._tasks for one in each.results.values() if isinstance(one, ExploredCase)
            ]
            is_held = not isinstance(result, ExploredCase) or not others or may_wait(result.case, others)
            task.results[number] = result if is_held else None
            self._pool.changed.notify_all()


class _WorkloadJob(Job):
    def __init__(self, pipeline: Pipeline, task: Task, number: int) -> None:
        self._pipeline, self._task, self._number = pipeline, task, number
        self._workload = task.left[number]
        self._folder = task.run.folder(number, self._workload)
        super().__init__(self._workload.title)

    def give_up(self, error: Exception, reason: str, trace: str = "") -> None:
        task = self._task
        task.run.save_loss(self._folder, self._workload, reason, trace)
        at = f" ({self._folder / 'traceback.txt'})" if trace else ""
        self._pipeline.progress.step(f"unknown: {task.configuration.name}, {self.title}: {reason}{at}")
        self._finish(RefusedWorkload.of(self._workload, reason))

    def _finish(self, result: ExploredCase | RefusedWorkload) -> None:
        self._pipeline.finish(self._task, self._number, self.states, result)


class _RecordingJob(_WorkloadJob):
    when, verb = " while recording", "recorded"

    def do(self, agent: Agent, tell: StateSink) -> bool:
        task, workload = self._task, self._workload
        narrates = self.first_loss is not None  # the console then names the step before a loss
        try:
            base = self._base(agent, narrates)
        except OperationRefusedError as refusal:
            self._refuse(RefusedWorkload.of(workload, f"the guest could not make its initial tree: {refusal}"))
            return True
        try:
            made, completion = task.configuration, task.model.completion
            recording = record(agent, made, base, workload, completion=completion, narrates=narrates)
            case = Case.of(made, workload, base, recording, task.model)
            _ = case.asked  # raises RecordingError if the recording does not say when the operations returned
        except UsageError as refusal:
            self._refuse(RefusedWorkload.of(workload, f"the guest refused it: {refusal}"))
            return True
        except (RecordingError, MalformedError) as refusal:
            self._refuse(RefusedWorkload.of(workload, f"bob rejected the recording: {refusal}"))
            return True
        task.run.save_recording(self._folder, workload, base, recording)
        self._pipeline.observe_later(task, self._number, case)
        return True

    def give_up(self, error: Exception, reason: str, trace: str = "") -> None:
        if isinstance(error, GuestLost) and error.loss.is_by_kernel:
            self._refuse(RefusedWorkload.by_kernel(self._workload, error.loss))
        else:
            super().give_up(error, reason, trace)

    def _base(self, agent: Agent, narrates: bool) -> Base:
        """Return the base image of the workload: the file system with its initial tree. If the run does not have the
        image yet, make it. All workloads with this tree must use the same image, since the kernel writes random data
        into each new one."""
        run, setup, bases = self._task.run, self._workload.setup, self._task.bases
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
    case: Case | None = None
    _seen: Observations | None = None
    _readings: OutcomeReadings | None = None

    def do(self, agent: Agent, tell: StateSink) -> bool:
        task = self._task
        case = self.case = self.case or task.run.case(self._folder, task.configuration, task.model)
        readings = OutcomeReadings.of(case)
        effort = replace(task.effort, mixing=judge_of_mixtures(case.workload, readings))
        checkers = self._pipeline.checkers() if task.configuration.fs.check_on_host else None
        evidence = None
        if checkers is not None and task.evidence is not None:
            evidence = partial(_evidence, task.evidence, case, readings)
        self._seen = explore(agent, task.configuration, case.asked, effort, tell, task.sights, checkers, evidence)
        self._readings = readings
        if self._seen.died:
            raise LostGuest(self._seen.lost)
        can_go_on = self._seen.lost is None
        self._keep(case, self._seen)
        is_large = case.recording.log_bytes > LARGE_LOG_BYTES
        del case
        if is_large:
            give_back_now()
        return can_go_on

    def give_up(self, error: Exception, reason: str, trace: str = "") -> None:
        if isinstance(error, LostGuest) and self.case is not None and self._seen is not None:
            self._keep(self.case, self._seen)
        else:
            super().give_up(error, reason, trace)

    def _keep(self, case: Case, seen: Observations) -> None:
        kept = self._task.run.keep_observed(self._folder, self._workload, seen, self.first_loss)
        readings, self._readings = self._readings, None
        self.case = self._seen = None  # both may be large
        self._finish(ExploredCase(case, kept, readings))


def _evidence(
    states: ViolatingStates, case: Case, readings: OutcomeReadings, observed: Observations
) -> set[CrashState]:
    return states(JudgedCase.of(case, observed, readings), case, observed)
