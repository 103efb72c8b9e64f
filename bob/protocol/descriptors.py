"""The open files of a program's processes: to which file a descriptor leads, and where it stands in it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bob.program.strace import FORKS, SystemCall
from bob.workload.operations import How

DUPLICATES = ("dup", "dup2", "dup3")


@dataclass(slots=True)
class OpenFile:
    """An open file (the kernel's ``struct file``): processes that inherit it share its ``position`` (bytes). ``how``
    says whether it was opened with O_SYNC or O_DSYNC."""

    file: int
    appends: bool = False
    position: int = 0
    how: How = How.PLAIN

    def moved_on(self, count: int) -> int:
        """Where it stood (bytes); it stands ``count`` bytes further now."""
        self.position += count
        return self.position - count

    def start_of(self, write: SystemCall, size: int) -> int:
        """Where a ``write`` to it begins, of a file with ``size`` bytes; it moves on, if the call has no offset.

        On Linux a file that is open to append is appended to whatever the offset is (pwrite(2), BUGS); RWF_APPEND of
        pwritev2(2) says so for one call, and there an offset of -1 is none.
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
    """Bytes ``start`` up to ``end`` of a file, mapped at ``address``; ``path`` is where the file was then."""

    file: int
    path: str
    address: int
    start: int
    end: int


class Mappings:
    """The mappings of files that the recorder watched. ``by_path`` has the file of the last one of each path."""

    def __init__(self) -> None:
        self._of: dict[int, list[Mapping]] = {}
        self.by_path: dict[str, int] = {}

    def add(self, call: SystemCall, file: int) -> None:
        """Take in a call that maps a ``file`` (mmap(2))."""
        assert call.result is not None
        length, start = int(call.arguments[1], 0), int(call.arguments[5], 0)
        made = Mapping(file, call.path(4), call.result, start, start + length)
        self._of.setdefault(call.pid, []).append(made)
        self.by_path[made.path] = file

    def at(self, call: SystemCall) -> Mapping | None:
        """What an msync(2) is about: the part of the last mapping that has its address."""
        address, length = int(call.arguments[0], 0), int(call.arguments[1], 0)
        for one in reversed(self._of.get(call.pid, [])):
            if one.address <= address < one.address + one.end - one.start:
                begin = one.start + address - one.address
                return replace(one, start=begin, end=min(begin + length, one.end))
        return None


class Descriptors:
    """The tables of descriptors of all processes, by what their calls say."""

    def __init__(self, calls: tuple[SystemCall, ...]) -> None:
        self._tables: dict[int, dict[int, OpenFile]] = {}
        self.parents = {call.result: call for call in calls if call.name in FORKS and call.result}

    def table(self, pid: int) -> dict[int, OpenFile]:
        """That of a process: its own, its parent's where they share one, or else a copy of that as it is now.

        strace writes a child's first calls down before the parent's call has returned, so a table is made when it is
        first asked for.
        """
        if pid not in self._tables:
            made = self.parents.get(pid)
            if made is None or made.pid == pid:
                self._tables[pid] = {}
            elif any("CLONE_FILES" in argument for argument in made.arguments):
                self._tables[pid] = self.table(made.pid)
            else:
                self._tables[pid] = dict(self.table(made.pid))
        return self._tables[pid]

    def opened(self, pid: int, number: int, open_file: OpenFile | None) -> None:
        """A process has opened a file as descriptor ``number``; None: one that is of no interest."""
        if open_file is None:
            self.table(pid).pop(number, None)
        else:
            self.table(pid)[number] = open_file

    def changed(self, call: SystemCall) -> None:
        """Take in a dup or an fcntl: one that duplicates, or says whether all is appended."""
        if call.result is None:
            return
        if call.name in DUPLICATES or "F_DUPFD" in call.arguments[1]:
            self.opened(call.pid, call.result, self.at(call, 0))
        elif call.arguments[1] == "F_SETFL" and (open_file := self.at(call, 0)):
            open_file.appends = "O_APPEND" in call.arguments[2]

    def at(self, call: SystemCall, place: int) -> OpenFile | None:
        """The open file behind the argument at ``place``; None where there is none that is known."""
        number = call.arguments[place].partition("<")[0]
        return self.table(call.pid).get(int(number)) if number.isdigit() else None
