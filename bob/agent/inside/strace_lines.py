"""Read strace's lines about the program under test. At each system call the program waits until bob has handled the
line. If strace writes a call in two halves, because another call came between, bob joins the halves."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import BinaryIO, NamedTuple, TypeVar

from bob.agent.inside.devices import read_text, write_text

RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"
FAILED = 1
_LINE = re.compile(rb"(\d+) +(\S+) (.*)", re.DOTALL)
_NAME = re.compile(rb"\w+(?=\()")
_UNFINISHED = b"<unfinished ...>"
PIECE = 1 << 16
AnyAhead = TypeVar("AnyAhead", bound="Ahead")


class Ahead:
    """A process that handles strace's line about each system call of the program under test, while the program waits.
    The process calls the given function ``copies()``, which reads the lines from ``pipe`` and returns 0 for success.
    (``pipe`` is the path of a named pipe, which is made at the start of a ``with`` block.)

    strace writes the line of a call before it lets the program go on. This process and the program share a processor,
    and this process has the highest priority there. So the program runs again only after the process has handled the
    line."""

    def __init__(self, pipe: str, copies: Callable[[], int]) -> None:
        self._pipe, self._copies = pipe, copies
        self._pid = 0

    def __enter__(self: AnyAhead) -> AnyAhead:
        with suppress(FileNotFoundError):
            os.unlink(self._pipe)
        os.mkfifo(self._pipe)
        self._processors = os.sched_getaffinity(0)
        self._runtime = read_text(RUNTIME)
        write_text(RUNTIME, "-1")  # without this, the kernel lets other processes run after most of a second
        os.sched_setaffinity(0, {min(self._processors)})
        self._pid = os.fork()
        if self._pid == 0:
            code = FAILED
            try:
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
                code = self._copies()
            except OSError as error:
                code = error.errno or FAILED
            finally:
                os._exit(code)
        return self

    def wait(self) -> int:
        """Wait until all writers to the pipe have ended. Return what ``copies`` returned, an errno if it failed, or a
        negative number for the signal that ended the process."""
        pid, self._pid = self._pid, 0
        _pid, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status)

    def __exit__(self, *_what: object) -> None:
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.sched_setaffinity(0, self._processors)
        write_text(RUNTIME, self._runtime)


class StraceLine(NamedTuple):
    """A line about one process. It has the time (by strace's clock), the name of the call (may be empty), and the text
    of the call so far. ``is_begun`` says that the call has not returned yet."""

    pid: int
    seconds: bytes
    name: bytes
    call: bytes
    is_begun: bool


class StraceLines:
    def __init__(self) -> None:
        self._begun: dict[int, bytes] = {}

    def take(self, line: bytes) -> StraceLine | None:
        found = _LINE.fullmatch(line)
        if found is None:
            return None
        pid, seconds, call = int(found[1]), found[2], found[3]
        if is_begun := call.endswith(_UNFINISHED):
            call = call[: -len(_UNFINISHED)].rstrip(b", ")
            self._begun[pid] = call
        elif call.startswith(b"<... "):
            begun, more = self._begun.pop(pid, b""), call.partition(b" resumed>")[2]
            is_joint = begun.endswith(b"(") or more.startswith((b")", b","))
            call = begun + (b"" if is_joint else b", ") + more
        named = _NAME.match(call)
        return StraceLine(pid, seconds, named[0] if named else b"", call, is_begun)


def lines_of(pipe: BinaryIO) -> Iterator[list[bytes]]:
    """Yield lists of whole lines that arrive together, without newlines. Only the very last line may be incomplete."""
    waiting: list[bytes] = []
    while piece := pipe.read(PIECE):
        first, *others = piece.split(b"\n")
        waiting.append(first)
        if others:
            yield [b"".join(waiting), *others[:-1]]
            waiting = [others[-1]]
    if rest := b"".join(waiting):
        yield [rest]
