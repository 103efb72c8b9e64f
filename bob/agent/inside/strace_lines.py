"""The lines that strace writes, as they come: a call that other lines interrupt is put together again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

_LINE = re.compile(rb"(\d+) +(\S+) (.*)", re.DOTALL)
_NAME = re.compile(rb"\w+(?=\()")
_UNFINISHED = b"<unfinished ...>"
PIECE = 1 << 16


class StraceLine(NamedTuple):
    """A line of a process: when strace wrote it (its clock), the name of the call, empty where it is of none, and the
    whole call as far as it is told by then. ``is_begun`` says that it has not returned."""

    pid: int
    seconds: bytes
    name: bytes
    call: bytes
    is_begun: bool


class StraceLines:
    """Puts the calls of all processes together, line by line."""

    def __init__(self) -> None:
        self._begun: dict[int, bytes] = {}

    def take(self, line: bytes) -> StraceLine | None:
        """The call that a line tells of; None for a frame."""
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
    """The whole lines that have come at a time, without their ends. The last list has what stands behind the last end
    of a line, if anything does."""
    waiting: list[bytes] = []
    while piece := pipe.read(PIECE):
        first, *others = piece.split(b"\n")
        waiting.append(first)
        if others:
            yield [b"".join(waiting), *others[:-1]]
            waiting = [others[-1]]
    if rest := b"".join(waiting):
        yield [rest]
