"""The recorded output of a program with its times, and the program's system calls. bob's verdict on a crash state
(whether the program survives it) depends on the output before the crash. The time of a piece of output is the time when
the call that wrote it returned. The kernel traces such returns (event ``raw_syscalls:sys_exit``) in the same buffer as
bios, so bob knows the order of returns and bios. strace says which call wrote what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bob.crash.case import Case
from bob.crash.plan import Plan
from bob.errors import RecordingError
from bob.program.program import Program, ProgramFile
from bob.program.stack_join import with_stacks_of
from bob.program.strace import SystemCall
from bob.trace.model import Moment, Trace
from bob.trace.timeline import CallReturned, Timeline

NUMBERS = {"write": 1, "writev": 20, "sendfile": 40, "splice": 275}
"""The numbers of the calls that can write to a pipe (arch/x86/entry/syscalls/syscall_64.tbl)."""


@dataclass(frozen=True, slots=True)
class Output:
    """A piece of standard output. ``at`` is the moment when the call that wrote this piece returned."""

    at: Moment
    data: bytes


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a recording between two outputs of a program. ``output`` is all output from before this part. So a
    program that crashes in this part has made exactly this output. ``trace`` has the writes to the disk in this
    part."""

    output: bytes
    trace: Trace


@dataclass(frozen=True, slots=True)
class Transcript:
    """The record of a program's run. Its ``output`` came through a pipe with the inode number ``pipe``, in the pieces
    ``outputs``. ``calls`` are its system calls. Add ``offset`` (seconds; None: unknown) to a time of a call to get the
    time in the recording."""

    output: bytes
    calls: tuple[SystemCall, ...]
    pipe: int
    outputs: tuple[Output, ...]
    offset: float | None

    @classmethod
    def of(cls, calls: tuple[SystemCall, ...], pipe: int, output: bytes, timeline: Timeline) -> Transcript:
        """Return the transcript of a recording. Raises the errors of :func:`outputs`."""
        return cls(output, calls, pipe, outputs(calls, timeline, pipe, output), clock_offset(calls, timeline))

    @property
    def tellings(self) -> dict[int, bytes]:
        """The bytes that calls wrote to the output, by the index of the call. Raises RecordingError if strace has cut
        the bytes off."""
        name = f"pipe:[{self.pipe}]"
        return {place: call.written for place, call in enumerate(self.calls) if _tells(call, name)}

    def with_frames(self, frames: Sequence[SystemCall]) -> Transcript:
        return replace(self, calls=with_stacks_of(self.calls, frames))


def outputs(calls: Sequence[SystemCall], timeline: Timeline, pipe: int, output: bytes) -> tuple[Output, ...]:
    """Return the outputs to the pipe with inode ``pipe``, in order. ``output`` is what bob read from that pipe. Raises
    RecordingError if the kernel and strace list different calls, or if the calls wrote other data than bob read."""
    name = f"pipe:[{pipe}]"
    found: list[Output] = []
    for pid in dict.fromkeys(call.pid for call in calls if _tells(call, name)):
        made, returned = _of_process(pid, calls, timeline)
        if len(returned) < len(made):
            raise RecordingError(f"process {pid}: strace lists {len(made)} calls, the kernel {len(returned)} returns")
        for call, event in zip(made, returned, strict=False):
            if event.number != NUMBERS[call.name] or (call.result is not None and call.result != event.result):
                raise RecordingError(f"process {pid}: the kernel and strace list different calls")
            if _tells(call, name):
                found.append(Output(event.at, call.written))
    found.sort(key=lambda one: one.at.time)
    if b"".join(one.data for one in found) != output:
        raise RecordingError(
            "the program's output differs from what its traced calls wrote",
            hint="did two processes write at the same time, or one by sendfile or splice? bob cannot follow that",
        )
    return tuple(found)


def clock_offset(calls: Sequence[SystemCall], timeline: Timeline) -> float | None:
    """Return the seconds to add to a time of strace to get a time of the kernel's trace (the timeline). Return None if
    no call is in both. The kernel reports the return of a call, and strace its start, so the shortest call gives the
    best value."""
    found: list[float] = []
    for pid in dict.fromkeys(call.pid for call in calls if call.name in NUMBERS):
        made, returned = _of_process(pid, calls, timeline)
        found += [event.at.seconds - call.seconds for call, event in zip(made, returned, strict=False)]
    return min(found, default=None)


def _of_process(
    pid: int, calls: Sequence[SystemCall], timeline: Timeline
) -> tuple[list[SystemCall], list[CallReturned]]:
    made = [call for call in calls if call.pid == pid and call.name in NUMBERS]
    return made, [event for event in timeline.events if isinstance(event, CallReturned) and event.pid == pid]


def _tells(call: SystemCall, pipe: str) -> bool:
    return call.name in ("write", "writev") and bool(call.result) and call.path(0) == pipe


def windows(trace: Trace, outputs: Sequence[Output]) -> tuple[Window, ...]:
    """Return the windows of a recording: before the first of ``outputs``, between two of them, and after the last one.
    If the program wrote output before ``trace`` begins, the output of every window contains it. Crashes in
    different windows may leave the same state."""
    made: list[Window] = []
    start, before = trace.start, b""
    for output in outputs:
        if output.at.time > start.time:
            made.append(Window(before, replace(trace, start=start, end=Moment(output.at.time - 1, output.at.seconds))))
            start = output.at
        before += output.data
    made.append(Window(before, replace(trace, start=start)))
    return tuple(made)


@dataclass(frozen=True, slots=True)
class ProgramCase(Case):
    """A recording of a program, with its legal crash states (a :class:`bob.crash.case.Case`). ``transcript`` has the
    output and the calls of the program."""

    work: Program
    transcript: Transcript

    @property
    def name(self) -> str:
        """The name that bob's reports give to the results of this case. It consists of the name of the file system with
        its options, and the pace of the program (:class:`bob.program.program.Pace`)."""
        return self.work.pace.of(self.subject.name)

    @property
    def windows(self) -> tuple[Window, ...]:
        return windows(self.plan.trace, self.transcript.outputs)

    def with_files(self, files: Sequence[ProgramFile]) -> ProgramCase:
        """Return the case with more files of the program."""
        return replace(self, work=replace(self.work, files=(*self.work.files, *files)))

    def within(self, window: Window) -> ProgramCase:
        return replace(self, plan=Plan(window.trace, self.base, self.plan.model))
