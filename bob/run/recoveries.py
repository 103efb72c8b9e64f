"""Crashes that occur during the recovery from an earlier crash. bob records recoveries, and explores the crashes during
them. After such a crash, the file system recovers again. bob crashes these recoveries, too, up to the depth that the
user asks for. It skips a recovery if the run directory already has the results."""

from collections.abc import Sequence
from dataclasses import replace

from bob.agent.client import Agent
from bob.catalogue.request import ProbeRequest
from bob.crash.case import Case
from bob.crash.state import CrashState
from bob.errors import MalformedError, RecordingError, UsageError
from bob.guest.spec import Clock
from bob.image import Image
from bob.judge.recoveries import Recoveries, chosen, chosen_again, planned
from bob.observe.explore import explore
from bob.observe.observations import Observations
from bob.progress import Progress
from bob.record.base import drop_base, put_base
from bob.record.recorder import record_recovery
from bob.run.agents import GuestSource
from bob.run.pool import Job, JobQueue, LostGuest, Pool, StateSink
from bob.schema import encode
from bob.store.run_directory import RunDirectory
from bob.store.run_documents import RefusedWorkload
from bob.text import plural
from bob.trace import differences
from bob.trace.base import Base
from bob.workload.operations import Workload


def crash_recoveries(
    guests: GuestSource,
    image: Image,
    run: RunDirectory,
    request: ProbeRequest,
    workloads: Sequence[Workload],
    progress: Progress,
) -> None:
    """Explore crashes during recovery. bob chooses some crash states of ``workloads``, and records how the file system
    recovers from each of them. Then it explores the crashes during these recoveries. For a greater depth, it chooses
    some of the states that these crashes leave, and goes on. The guests run in virtual time (their clock counts
    instructions). The directory ``run`` keeps the observations."""
    for depth in range(1, request.recovery_depth + 1):
        every = _planned(run, request, workloads, depth)
        jobs = [_RecoveryJob(every, request, place, progress) for place in every.at(depth)]
        if not (left := [recovery for recovery in jobs if not run.is_done(recovery.folder)]):
            continue
        crashes = f"crashes during recovery, from {plural(len(left), 'crash state')}"
        after = f" of depth {depth}" if request.recovery_depth > 1 else ""
        progress.step(f"{request.configuration.name}: now {crashes}{after}")
        for _recovery in Pool(guests, image, progress).done(JobQueue(Clock.VIRTUAL, left)):
            pass  # the run directory has the observations


def _planned(run: RunDirectory, request: ProbeRequest, workloads: Sequence[Workload], depth: int) -> Recoveries:
    """Return the recoveries to crash, with those of ``depth``. bob chooses them once in a run, and keeps the choice in
    run.json."""
    plan = planned(run)
    if plan is None:
        folders = {number: run.folder(number, workload) for number, workload in enumerate(workloads)}
        observed = ((number, run.observed(path)) for number, path in folders.items() if run.is_observed(path))
        plan = chosen(observed, request.recovery_crashes, request.seed)
        run.note(recoveries=encode(plan))
    every = Recoveries(run, plan, workloads, request)
    if depth == 1 or every.at(depth):
        return every
    crashed = [place for place in every.at(depth - 1) if run.is_observed(run.recovery_folder(place))]
    more = chosen_again(
        ((place, plan[place], run.observed(run.recovery_folder(place))) for place in crashed),
        lambda place, state: after_crash(every.case(run.recovery_folder(place)), state).name,
        (after_crash(every.case(every.origin(one)), one.state).name for one in plan),
        request.recovery_crashes,
        request.seed,
    )
    run.note(recoveries=encode([*plan, *more]))
    return Recoveries(run, [*plan, *more], workloads, request)


class _RecoveryJob(Job):
    when, verb = " while recording", "crashed"

    def __init__(self, every: Recoveries, request: ProbeRequest, place: int, progress: Progress) -> None:
        self._workload = every.workload(place)
        super().__init__(self._workload.title)
        self.folder = every.run.recovery_folder(place)
        self._run, self._request, self._recovered = every.run, request, every.plan[place]
        self._origin = every.origin(self._recovered)
        self._progress = progress
        self._seen: Observations | None = None

    def do(self, agent: Agent, tell: StateSink) -> bool:
        run, request = self._run, self._request
        subject = request.configuration
        base = after_crash(run.case(self._origin, subject, request.model), self._recovered.state)
        try:
            put_base(agent, base)
            completion = request.model.completion
            recording = record_recovery(agent, subject, base, completion=completion)
            case = Case.of(subject, self._workload, base, recording, request.model)
        except (UsageError, RecordingError, MalformedError) as refusal:
            run.save_refusal(self.folder, RefusedWorkload.of(self._workload, f"bob rejected the recording: {refusal}"))
            run.clear_loss(self.folder)
            return True
        run.save_base(base)
        run.save_recording(self.folder, self._workload, base, recording)
        self._seen = explore(agent, subject, case.plan, request.effort, lambda _states: tell(0))
        if self._seen.died:
            raise LostGuest(self._seen.lost)
        self._keep(self._seen)
        if self._seen.lost is None:
            drop_base(agent, base)
        return self._seen.lost is None

    def give_up(self, error: Exception, reason: str, trace: str = "") -> None:
        if isinstance(error, LostGuest) and self._seen is not None:
            self._keep(self._seen)
            return
        self._run.save_loss(self.folder, self._workload, reason, trace)
        at = f" ({self.folder / 'traceback.txt'})" if trace else ""
        self._progress.step(f"unknown: {self.title}: {reason}{at}")

    def _keep(self, seen: Observations) -> None:
        self._run.keep_observed(self.folder, self._workload, seen, self.first_loss)


def after_crash(case: Case, state: CrashState) -> Base:
    """Return the content of the disks in ``state`` as a base image (the disks at the start of a recording). Two base
    images with the same content have the same name."""
    base, packed = case.base, differences.overlaid(case.base.packed, case.plan.runs(state))
    return replace(base, name=differences.digest(packed)[:16], packed=packed)
