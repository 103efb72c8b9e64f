"""Records a workload in a guest, and checks the recording."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from bob.agent.client import Agent
from bob.agent.shared import Manner, ScriptsDocument
from bob.program.program import Program
from bob.program.stack import files_with_names, without_wrong_names
from bob.record.encode import encode_subject, encode_workload
from bob.subject import Subject
from bob.trace import differences
from bob.trace.base import Base
from bob.trace.model import SECTOR_BYTES
from bob.trace.recording import Completion, InodeStatus, RecordedDisk, Recording
from bob.workload.operations import Workload

RECORD_TIMEOUT = 300.0  # host seconds
REAL_RECORD_TIMEOUT = 1800.0  # host seconds, if waiting is not free
FRAMES_SECONDS = 120.0  # guest seconds: strace looks that long at the frames of calls
QUIET_DEADLINE = 600.0  # guest seconds: a file system may write that long after a workload


def record(
    agent: Agent,
    subject: Subject,
    base: Base,
    workload: Workload,
    *,
    completion: Completion = Completion.PROMPT,
    narrates: bool = False,
) -> Recording:
    """Record ``workload`` on ``base``. Raise UsageError with the kernel's message if it refuses a mount or an
    operation. ``narrates``: the guest prints each step on its console first, for :class:`bob.agent.loss.Loss`."""
    work, blob = encode_workload(workload)
    timeout = REAL_RECORD_TIMEOUT if agent.real_time else RECORD_TIMEOUT
    header, pieces = _ask(
        agent, "record", subject, base, completion, timeout=timeout, narrates=narrates, work=work, blob=blob
    )
    return _recording(header, pieces, completion, lasting_inodes=subject.fs.lasting_inodes)


def record_recovery(
    agent: Agent, subject: Subject, base: Base, *, completion: Completion = Completion.PROMPT
) -> Recording:
    """Record the recovery of a boot on ``base``, a disk after a crash: check and mount. Raise UsageError if refused."""
    header, pieces = _ask(agent, "record_recovery", subject, base, completion, timeout=RECORD_TIMEOUT)
    return _recording(header, pieces, completion, lasting_inodes=False)  # names are not listed


def put_program(agent: Agent, program: Program) -> None:
    agent.ask("put_program", timeout=RECORD_TIMEOUT, world=bool(program.packages), blob=program.archive)


@dataclass(frozen=True, slots=True)
class RecordedProgram:
    """The bios of a program's workload, its ``output`` through the ``pipe``, and strace's text of its ``calls``."""

    recording: Recording
    output: bytes
    calls: str
    pipe: int


def record_program(
    agent: Agent,
    subject: Subject,
    base: Base,
    program: Program,
    *,
    completion: Completion = Completion.PROMPT,
    stores: bool = False,
) -> RecordedProgram:
    """Record the workload of ``program``, whose files the guest has, at its pace. Calls have no frames
    (:func:`trace_frames` adds these). With ``stores`` they include stores through shared mappings. Raise UsageError if
    the mount or the workload fails."""
    pace, commit = program.pace, subject.fs.commit
    work = ScriptsDocument(program.seconds * pace.patience(commit), stores, pace.delay(commit), pace.has_neighbour)
    return _recorded_program(agent, subject, base, work, completion, RECORD_TIMEOUT + program.seconds)


def trace_frames(agent: Agent, subject: Subject, base: Base, program: Program) -> str:
    """Return strace's text of ``program`` with the frames of its calls in FRAMES_SECONDS, without wrong function names.
    This runs the program again: frames take 10 to 40 ms a call, and the kernel would commit meanwhile. Raise UsageError
    as :func:`record_program` does, but not for a workload that fails."""
    timeout = RECORD_TIMEOUT + 5 * FRAMES_SECONDS  # an emulated guest's clock is slower than the host's
    work = ScriptsDocument(FRAMES_SECONDS, stacks=True)
    run = _recorded_program(agent, subject, base, work, Completion.PROMPT, timeout)
    files: dict[str, bytes] = {}
    for path in files_with_names(run.calls):  # one at a time: all of them may be more than the guest's memory holds
        _header, files[path] = agent.ask("read_files", timeout=RECORD_TIMEOUT, paths=[path])
    return without_wrong_names(run.calls, files)


def _recorded_program(
    agent: Agent, subject: Subject, base: Base, work: ScriptsDocument, completion: Completion, timeout: float
) -> RecordedProgram:
    header, pieces = _ask(agent, "record_program", subject, base, completion, timeout=timeout, work=work)
    calls = pieces[len(pieces) - header["calls"] :]
    output = pieces[len(pieces) - header["calls"] - header["told"] :][: header["told"]]
    recording = _recording(header, pieces, completion, lasting_inodes=subject.fs.lasting_inodes)
    return RecordedProgram(recording, output, calls.decode(errors="replace"), header["pipe"])


def _ask(
    agent: Agent, do: str, subject: Subject, base: Base, completion: Completion, *, narrates: bool = False, **more: Any
) -> tuple[dict[str, Any], bytes]:
    manner = Manner(completion.value, QUIET_DEADLINE, virtual=not agent.real_time, narrates=narrates)
    encoded = encode_subject(subject)
    return agent.ask(do, base=base.name, subject=encoded, manner=manner, **more)


def _recording(header: Mapping[str, Any], pieces: bytes, completion: Completion, *, lasting_inodes: bool) -> Recording:
    *logs, timeline_length = header["lengths"]
    ends = list(accumulate(logs))
    timeline = pieces[sum(logs) : sum(logs) + timeline_length].decode()
    position = sum(logs) + timeline_length
    changed: list[tuple[int, bytes | memoryview]] = []
    for sector, sectors in header["changed"]:
        changed.append((sector, memoryview(pieces)[position : position + sectors * SECTOR_BYTES]))
        position += sectors * SECTOR_BYTES
    return Recording(
        disks=tuple(
            RecordedDisk(pieces[end - length : end], (major, minor))
            for length, end, (major, minor) in zip(logs, ends, header["devices"], strict=True)
        ),
        timeline=timeline,
        final=differences.packed(changed),
        effective_options=header["effective_options"],
        inodes_before=_inodes(header["before"]) if lasting_inodes else {},
        inodes_after=_inodes(header["after"]) if lasting_inodes else {},
        status_before=_statuses(header["before"]),
        status_after=_statuses(header["after"]),
        completion=completion,
    )


def _inodes(listed: Mapping[str, list[int]]) -> dict[str, int]:
    return {path: number for path, (number, *_status) in listed.items()}


def _statuses(listed: Mapping[str, list[int]]) -> dict[str, InodeStatus]:
    return {path: InodeStatus(*status) for path, (_number, *status) in listed.items()}
