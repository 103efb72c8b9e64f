"""The export of a witness (a recorded crash) for the tool ``replay-log`` of xfstests. The export is a log with all
writes of the witness's workload. The file of a witness does not contain all of them, so bob records the workload again.
The guest runs in virtual time, which counts executed instructions. The disk then nearly always gets the same writes in
the same order, but the time stamps in their data differ."""

from dataclasses import dataclass
from pathlib import Path

from bob.agent.client import Agent
from bob.crash.case import Case
from bob.crash.state import check_state
from bob.errors import MalformedError, UsageError
from bob.guest.hypervisor import Hypervisor
from bob.guest.spec import Clock
from bob.progress import Progress
from bob.record.base import drop_base, put_base
from bob.record.recorder import record
from bob.run.agents import agent_in
from bob.run.witness_image import by_image
from bob.story.timeline import alike
from bob.trace.differences import by_sector
from bob.trace.replay_log import CRASH, ReplayStep, steps
from bob.witness.document import Witness, read, timeline_of
from bob.witness.keep import EACH_DISK

ATTEMPTS = 5  # most recordings, until one has the crash of the witness


@dataclass(frozen=True, slots=True)
class LogCrash:
    """The place of a witness's crash in a log. ``entry`` is the index of the log entry that marks the crash. The crash
    state lacks the writes of the entries ``lost``, and has only a part of the writes of the entries ``torn``. If the
    crash state has exactly the writes of the first N entries, ``prefix`` is N. Otherwise ``prefix`` is None.
    ``other`` is the number of sectors that have other data in this crash state than in the witness, for example because
    of time stamps."""

    entry: int
    lost: tuple[int, ...]
    torn: tuple[int, ...]
    other: int
    prefix: int | None


@dataclass(frozen=True, slots=True)
class ExportedLog:
    """The exported log. ``steps`` are the entries of the log: the writes and flushes of the workload of ``witness``,
    and marks between them. ``crash`` says where the crash is in the log. There are two cases without ``crash`` (None):
    the new recording does not allow this crash, or the disk got other writes before the crash than in the witness."""

    witness: Witness
    steps: tuple[ReplayStep, ...]
    crash: LogCrash | None


def export(path: Path, *, image: str | None, any_kernel: bool, connect: str | None, progress: Progress) -> ExportedLog:
    """Record the workload of the witness ``path`` again, and return its log. Raise RecordingError if the recording is
    inconsistent. Before a guest starts, raise MalformedError for a file that is not a witness. Raise UsageError if bob
    cannot export the witness, for example because its file system is on layers such as a RAID. Raise UsageError also if
    the kernel in the image is of another series than that of the witness, unless ``any_kernel`` is set."""
    found = read(path)
    if (refusal := found.no_export) is not None:
        raise UsageError(f"the witness {path.name} is of {refusal.reason}", hint=refusal.hint)
    if found.configuration.layers:
        raise UsageError(f"the witness {path.name} is on layers, and a log is of one disk", hint=EACH_DISK)
    [(built, _witnesses)] = by_image([(path, found)], image, progress, any_kernel=any_kernel)
    with Hypervisor.open(connect, progress.step) as hypervisor, agent_in(hypervisor, built, Clock.VIRTUAL) as agent:
        for number in range(ATTEMPTS):
            progress.step("recording the workload again" + " and again" * bool(number))
            done = exported(found, record_again(agent, found))
            if done.crash is not None:
                break
    return done


def record_again(agent: Agent, witness: Witness) -> Case:
    """Record the workload of ``witness`` in virtual time. The workload starts on the witness's base image (the file
    system before the workload). Return the recording, after bob has checked that it is consistent."""
    drop_base(agent, witness.base)  # another run's base of the same configuration has the same name
    put_base(agent, witness.base)
    made, completion = witness.configuration, witness.model.completion
    recording = record(agent, made, witness.base, witness.workload, completion=completion)
    return Case.of(made, witness.workload, witness.base, recording, witness.model)


def exported(witness: Witness, case: Case) -> ExportedLog:
    """Return the log of the recording ``case``. The log says where the crash of ``witness`` is, if the recording allows
    the same crash."""
    plan, state = case.plan, witness.state
    if not _has(case, witness):
        return ExportedLog(witness, steps(plan.trace), None)
    point = plan.points[state.point]
    log = steps(plan.trace, point.time)
    entry = next(number for number, step in enumerate(log) if step.entry.mark == CRASH)
    part = {index for index, _units in state.torn}
    sent = {write.index for write in plan.trace.writes if write.submitted.time <= point.time}
    gone = sent - {*point.durable, *state.kept} - part
    lost = tuple(number for number, step in enumerate(log) if step.write in gone)
    first = min(lost, default=entry)
    after = {step.write for step in log[first:entry]} - {None}
    here, there = by_sector(plan.runs(state)), by_sector(witness.runs)
    crash = LogCrash(
        entry=entry,
        lost=lost,
        torn=tuple(number for number, step in enumerate(log) if step.write in part),
        other=sum(here.get(sector) != there.get(sector) for sector in here.keys() | there.keys()),
        prefix=first if after <= gone and not part else None,
    )
    return ExportedLog(witness, log, crash)


def _has(case: Case, witness: Witness) -> bool:
    try:
        check_state(case.plan.trace, witness.model, case.plan.points, witness.state)
    except MalformedError:
        return False
    line = timeline_of(case, witness.state, witness.timeline.causes)
    return alike(line, witness.timeline)
