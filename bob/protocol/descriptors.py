"""The open files of a program's processes: which file a descriptor means, and the position in the file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bob.program.processes import PerProcess
from bob.program.strace import EXECUTES, FORKS, PASSING, READS, SystemCall
from bob.protocol.arguments import MAPPED
from bob.workload.operations import How

DUPLICATES = ("dup", "dup2", "dup3")
PAGE = 4096  # bytes; a mapping consists of whole pages
_DESCRIPTOR = re.compile(r"\d+|0x[0-9a-f]+")  # hexadecimal in the calls of bob.program.strace.READS


@dataclass(slots=True)
class OpenFile:
    """An open file (the kernel's ``struct file``). Processes that inherit it share its ``position`` (bytes). ``file``
    is bob's number for the file, and ``appends`` says that it was opened with O_APPEND."""

    file: int
    appends: bool = False
    position: int = 0
    how: How = How.PLAIN
    reads_only: bool = False

    def moved_on(self, count: int) -> int:
        """Advance the position by ``count`` bytes. Return the position from before the advance."""
        self.position += count
        return self.position - count

    def start_of(self, write: SystemCall, size: int) -> int:
        """Return the offset of the first byte that the call ``write`` writes. The file has ``size`` bytes. If the call
        gives no offset, use and advance the position.

        Linux appends to a file that was opened with O_APPEND, whatever the offset (pwrite(2), BUGS). The flag
        RWF_APPEND of pwritev2(2) has the same effect for one call. In pwritev2(2), the offset -1 means that the call
        gives no offset.
        """
        count = write.result or 0
        offset = None if write.name in ("write", "writev") else int(write.arguments[3], 0)
        appends = self.appends
        if write.name == "pwritev2":
            offset = None if offset == -1 else offset
            appends = "RWF_NOAPPEND" not in write.arguments[-1] and (appends or "RWF_APPEND" in write.arguments[-1])
        start = size if appends else self.position if offset is None else offset
        if offset is None:
            self.position = start + count
        return start


@dataclass(frozen=True, slots=True)
class Mapping:
    """A mapping in a process. The memory at ``address`` shows the bytes from ``start`` up to ``end`` of the file with
    the number ``file`` (None: bob does not follow the file). ``path`` is the file's path at the time of the mmap(2)."""

    file: int | None
    path: str
    address: int
    start: int
    end: int

    def part(self, first: int, until: int) -> Mapping:
        start = self.start + first - self.address
        return replace(self, address=first, start=start, end=start + until - first)


class Mappings:
    """The shared mappings of files, by process. bob records the stores to some of the mappings. For these mappings,
    ``by_path`` maps the path of the file at the time of the mmap(2) to the number of the file. Threads share their
    mappings, a fork copies them, and execve drops them."""

    def __init__(self, calls: Sequence[SystemCall]) -> None:
        self._of = PerProcess[list[Mapping]](calls, "CLONE_VM", list, list.copy)
        self.by_path: dict[str, int] = {}

    def add(self, call: SystemCall, file: int | None, *, is_watched: bool = False) -> None:
        """Add the mapping that an mmap(2) made. ``file`` is the number of the mapped file (None: bob does not follow
        the file). If ``is_watched`` is true, bob records the stores to the mapping."""
        assert call.result is not None
        start = int(call.arguments[5], 0)
        made = Mapping(file, call.path(4), call.result, start, start + _pages(call.arguments[1]))
        self._of.of(call.pid).append(made)
        if is_watched and file is not None:
            self.by_path[made.path] = file

    def take(self, call: SystemCall) -> None:
        if call.name in FORKS:
            self._of.forked(call)
        elif call.name in EXECUTES:
            self._of.put(call.pid, [])
        elif call.name in ("munmap", "mmap", MAPPED):
            start = int(call.arguments[0], 0) if call.name == "munmap" else call.result or 0
            self._cut(call.pid, start, start + _pages(call.arguments[1]))
        elif call.name == "mremap":
            self._move(call)

    def _cut(self, pid: int, start: int, end: int) -> list[Mapping]:
        """Unmap the addresses from ``start`` up to ``end`` in a process. Return the parts of mappings that were at
        these addresses."""
        gone, left = list[Mapping](), list[Mapping]()
        for one in self._of.of(pid):
            last = one.address + one.end - one.start
            if end <= one.address or last <= start:
                left.append(one)
                continue
            first, until = max(start, one.address), min(end, last)
            gone.append(one.part(first, until))
            left += [one.part(*ends) for ends in ((one.address, first), (until, last)) if ends[0] < ends[1]]
        self._of.of(pid)[:] = left
        return gone

    def _move(self, call: SystemCall) -> None:
        assert call.result is not None
        address, old, new = int(call.arguments[0], 0), _pages(call.arguments[1]), _pages(call.arguments[2])
        was = self._cut(call.pid, address, address + old)
        self._cut(call.pid, call.result, call.result + new)
        for one in was:
            self._of.of(call.pid).append(replace(one, address=call.result, end=one.start + new))

    @property
    def are_some(self) -> bool:
        return any(one.file is not None for each in self._of.every() for one in each)

    def at(self, call: SystemCall) -> Mapping | None:
        """Find the mapping that an msync(2) syncs, and return it reduced to the bytes of the file that the call syncs.
        Return None if no mapping contains the address in the call."""
        address, length = int(call.arguments[0], 0), _pages(call.arguments[1])
        for one in reversed(self._of.of(call.pid)):
            if one.address <= address < one.address + one.end - one.start:
                begin = one.start + address - one.address
                return replace(one, start=begin, end=min(begin + length, one.end))
        return None


@dataclass(slots=True)
class _Table:
    files: dict[int, OpenFile]
    closing: set[int]

    def copied(self) -> _Table:
        return _Table(dict(self.files), set(self.closing))

    def set(self, number: int, open_file: OpenFile | None, *, closing: bool) -> None:
        (self.closing.add if closing else self.closing.discard)(number)
        if open_file is None:
            self.files.pop(number, None)
        else:
            self.files[number] = open_file

    def drop(self, numbers: Iterable[int]) -> None:
        for number in list(numbers):
            self.set(number, None, closing=False)


class Descriptors:
    """The descriptors of all processes, after the calls so far, and the open file behind each."""

    def __init__(self, calls: Sequence[SystemCall]) -> None:
        self._tables = PerProcess(calls, "CLONE_FILES", lambda: _Table({}, set()), _Table.copied)

    def opened(self, call: SystemCall, open_file: OpenFile | None) -> None:
        """Remember the open file behind the descriptor that a call returned. None stands for a file that bob does not
        trace, such as one outside the file system under test."""
        assert call.result is not None
        closing = any("CLOEXEC" in argument for argument in call.arguments[1:])
        self._tables.of(call.pid).set(call.result, open_file, closing=closing)

    def take(self, call: SystemCall) -> None:
        if call.name in FORKS:
            self._tables.forked(call)
        elif call.name in EXECUTES:
            self._executed(call)
        elif call.name in READS:
            self._read(call)
        elif call.name in PASSING:
            self._closed(call)
        elif call.name in DUPLICATES or call.name == "fcntl":
            self._changed(call)
        elif call.name == "ioctl" and call.arguments[1] in ("FIOCLEX", "FIONCLEX"):
            self._keep(call, closing=call.arguments[1] == "FIOCLEX")
        elif call.name == "lseek" and (open_file := self.at(call, 0)):
            open_file.position = call.result or 0

    def _executed(self, call: SystemCall) -> None:
        table = self._tables.of(call.pid).copied()
        table.drop(table.closing)
        self._tables.put(call.pid, table)

    def _closed(self, call: SystemCall) -> None:
        """Forget the descriptors that a call closes. This is necessary because the next file with such a number may be
        a pipe, and no traced call shows the pipe."""
        table, first = self._tables.of(call.pid), _number(call.arguments[0])
        last = first if call.name == "close" else _number(call.arguments[1])
        numbers = {one for one in table.files if first <= one <= last}
        if call.name == "close_range" and "CLOSE_RANGE_CLOEXEC" in call.arguments[2]:
            table.closing |= numbers
        else:
            table.drop(numbers)

    def _changed(self, call: SystemCall) -> None:
        """Follow the effect of a dup or an fcntl, which may duplicate a descriptor, set O_APPEND, or decide whether
        execve closes the descriptor."""
        if call.name == "dup2" and call.result == _number(call.arguments[0]):
            return  # both are the same descriptor: nothing changes
        if call.name in DUPLICATES or "F_DUPFD" in call.arguments[1]:
            self.opened(call, self.at(call, 0))
        elif call.arguments[1] == "F_SETFL" and (open_file := self.at(call, 0)):
            open_file.appends = "O_APPEND" in call.arguments[2]
        elif call.arguments[1] == "F_SETFD":
            self._keep(call, closing="FD_CLOEXEC" in call.arguments[2])

    def _keep(self, call: SystemCall, *, closing: bool) -> None:
        if open_file := self.at(call, 0):
            self._tables.of(call.pid).set(_number(call.arguments[0]), open_file, closing=closing)

    def _read(self, call: SystemCall) -> None:
        """Advance the position of the open file that a call reads, unless the call gives an offset. In preadv2(2), the
        offset -1 means that the call gives no offset."""
        open_file = self.at(call, 0)
        is_at_offset = call.name == "preadv2" and _number(call.arguments[3]) not in (-1, 2**64 - 1)
        if open_file is not None and not is_at_offset:
            open_file.moved_on(call.result or 0)

    def at(self, call: SystemCall, place: int) -> OpenFile | None:
        """Return the open file behind the descriptor in the argument at index ``place``; None if bob does not know
        it."""
        is_one = _DESCRIPTOR.fullmatch(call.arguments[place].partition("<")[0])
        return self.numbered(call.pid, _number(call.arguments[place])) if is_one else None

    def numbered(self, pid: int, number: int) -> OpenFile | None:
        return self._tables.of(pid).files.get(number)


def _pages(length: str) -> int:
    return -(-int(length, 0) // PAGE) * PAGE


def _number(argument: str) -> int:
    return int(argument.partition("<")[0], 0)
