"""Make recordings of a workload in a guest. A recording has the log of dm-log-writes for each disk (the writes and
their data), and the times of all bios. The argument ``completion`` says when the disk completes a write: at once, or as
late as possible."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from bob.agent.client import Agent
from bob.agent.shared import Manner, NodesDocument, ScriptsDocument
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
REAL_RECORD_TIMEOUT = 1800.0  # host seconds, in a guest whose clock does not skip waits
FRAMES_SECONDS = 120.0  # guest seconds: strace collects stack frames for this time
QUIET_DEADLINE = 600.0  # guest seconds: a file system may still write for this time after a workload


def record(
    agent: Agent,
    subject: Subject,
    base: Base,
    workload: Workload,
    *,
    completion: Completion = Completion.PROMPT,
    narrates: bool = False,
) -> Recording:
    """Record ``workload``; the disk has the content ``base`` at the start. Raise UsageError with the kernel's message
    if the kernel refuses a mount or an operation. If ``narrates``, the guest prints each step on its console before it
    does the step. If the guest is then lost, :class:`bob.agent.loss.Loss` names the step."""
    work, blob = encode_workload(workload)
    timeout = REAL_RECORD_TIMEOUT if agent.real_time else RECORD_TIMEOUT
    header, pieces = _ask(
        agent, "record", subject, base, completion, timeout=timeout, narrates=narrates, work=work, blob=blob
    )
    return _recording(header, pieces, completion, lasting_inodes=subject.fs.lasting_inodes)


def record_recovery(
    agent: Agent, subject: Subject, base: Base, *, completion: Completion = Completion.PROMPT
) -> Recording:
    """Record what a recovery writes. ``base`` is the content of a disk after a crash. The recovery consists of the file
    system's check and the mount, as at a boot. Raise UsageError if the kernel refuses the mount."""
    header, pieces = _ask(agent, "record_recovery", subject, base, completion, timeout=RECORD_TIMEOUT)
    return _recording(header, pieces, completion, lasting_inodes=False)  # bob lists no names for a recovery


def put_program(agent: Agent, program: Program) -> None:
    cluster = NodesDocument(program.nodes, program.ready_seconds, program.late)
    nodes = {"cluster": cluster} if program.nodes else {}
    agent.ask("put_program", timeout=RECORD_TIMEOUT, world=bool(program.packages), blob=program.archive, **nodes)


def choose_start(agent: Agent, late: int = -1, *, alone: int = -1) -> None:
    """Choose which nodes the guest starts from now on: node number ``late`` after the other nodes, or all nodes
    together if ``late`` is -1. If ``alone`` is not -1, only the node with this number starts, and the cluster's script
    ``signature`` runs in place of the check. The program under test must be a cluster, with all its nodes in this
    guest."""
    agent.ask("choose_start", timeout=RECORD_TIMEOUT, late=late, alone=alone)


@dataclass(frozen=True, slots=True)
class RecordedProgram:
    """The recorded bios of a program's workload, what the program printed (``output``), and its system ``calls`` as
    strace prints them. ``pipe`` is the inode number of the pipe through which the output came."""

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
    """Record the workload of ``program`` at the program's pace (:class:`bob.program.program.Pace`: whether the program
    waits after each call). The program's files must be in the guest. The recorded calls lack stack frames;
    :func:`trace_frames` gets the frames. With ``stores``, the calls include stores through shared mappings. Raise
    UsageError if the mount or the workload fails."""
    pace, commit = program.pace, subject.fs.commit
    work = ScriptsDocument(program.seconds * pace.patience(commit), stores, pace.delay(commit), pace.has_neighbour)
    return _recorded_program(agent, subject, base, work, completion, RECORD_TIMEOUT + program.seconds)


def trace_frames(agent: Agent, subject: Subject, base: Base, program: Program) -> str:
    """Return the calls of ``program`` with their stack frames, as strace prints them. strace may print wrong names of
    functions; bob removes these names. To get the frames, the program runs a second time, for at most FRAMES_SECONDS.
    The run that bob records cannot also collect the frames, because strace needs 10 to 40 ms for the frames of each
    call. With this delay, the kernel would commit at other points of the program. Raise UsageError if the mount fails,
    but not if the workload fails."""
    timeout = RECORD_TIMEOUT + 5 * FRAMES_SECONDS  # an emulated guest's clock is slower than the host's
    work = ScriptsDocument(FRAMES_SECONDS, stacks=True)
    run = _recorded_program(agent, subject, base, work, Completion.PROMPT, timeout)
    files: dict[str, bytes] = {}
    for path in files_with_names(run.calls):  # one by one: all files together may not fit into the guest's memory
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
