"""The effects of a program's calls. To describe them, bob divides the file system into *units*. A unit is a name, the
size of a file, its permission bits, or a range of its contents. A unit has a *history*: the values that it had one
after the other, each with the call that made it. In a crash state, each unit has one value of its history. From the
values, bob concludes which calls had their effects on the disk at the crash."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

from bob.observe.observation import Node
from bob.workload import operations as ops

AT_FIRST = -1  # in place of a call's number: before the first call
ROOT_FILE = 0
V = TypeVar("V")


class DirectoryEntry(NamedTuple):
    """A name in a directory; ``folder`` is the directory's number (directories are numbered as files are)."""

    folder: int
    name: str


class Version(NamedTuple, Generic[V]):
    """A ``value`` in the history of a unit (a name, or a property of a file). ``call`` is the number of the call that
    gave the unit this value."""

    call: int
    value: V


class StoredBytes(NamedTuple):
    """The bytes that one call stores in a file, from offset ``start`` up to ``end``. ``data`` has these bytes (None:
    zeros)."""

    start: int
    end: int
    data: bytes | None


class Deed(NamedTuple):
    """A system call, translated into an ``operation`` (bob's own form of a call). ``call`` is the number of the call,
    and ``file`` the number of the file that it acts on. ``data`` has the bytes that it writes, and ``mode`` the
    permission bits if it makes a file."""

    call: int
    operation: ops.Operation
    file: int
    data: bytes = b""
    mode: int = 0o644


def overlaid(content: bytes, latest: Iterable[StoredBytes], start: int, end: int) -> bytes:
    """Return the bytes of a file from ``start`` up to ``end``. The file first had ``content``. Then calls wrote to
    ranges of it. ``latest`` has what they wrote, and the latest write comes first."""
    over = []
    for one in latest:
        if one.start < end and start < one.end:
            over.append(one)
            if one.start <= start and end <= one.end:
                break
    else:
        over.append(StoredBytes(0, len(content), content))
    found = bytearray(max(end - start, 0))
    for first, until, data in reversed(over):
        begin, stop = max(start, first), min(end, until)
        if begin < stop:
            found[begin - start : stop - start] = (
                bytes(stop - begin) if data is None else data[begin - first : stop - first]
            )
    return bytes(found)


def handle(file: int) -> str:
    """Return a name for a file without a path, such as a removed file that is still open. The operations in
    :class:`Deed` use this name in place of a path."""
    return f"#{file}"


@dataclass(slots=True)
class TracedFile:
    """A file, directory or link, with the histories of its sizes, of stores to its contents, and of its permission
    bits. ``inode`` is its inode number (0: unknown), ``content`` its initial content (bytes), and ``target`` the target
    of a symbolic link. If something changes the file in an unknown way, ``followed`` is false."""

    kind: str
    inode: int = 0
    content: bytes = b""
    target: str = ""
    sizes: list[Version[int]] = field(default_factory=list)
    stored: list[Version[StoredBytes]] = field(default_factory=list)
    modes: list[Version[int]] = field(default_factory=list)
    followed: bool = True

    @property
    def calls(self) -> set[int]:
        return {change.call for history in (self.sizes, self.stored, self.modes) for change in history} - {AT_FIRST}

    @property
    def size(self) -> int:
        return self.sizes[-1].value if self.sizes else 0

    def read(self, start: int, end: int) -> bytes:
        return overlaid(self.content, (change.value for change in reversed(self.stored)), start, end)


@dataclass(frozen=True)
class Effects:
    """The effects of all calls of a program. Files have numbers (0: the root directory). ``entries`` has the history of
    each name; its values are the numbers of files (None: the name does not exist).

    ``words`` has a phrase for each call that changes or syncs something, by the number of the call. ``deeds`` has these
    calls as operations. ``untold`` has phrases for calls that change a file in a way that bob does not know.
    ``left_out`` has phrases for calls that change only times or extended attributes. ``strange`` has names that were
    changed in a way that bob does not know. Calls are numbered in the order of their effects. If a call began before
    calls with lower numbers had taken effect, ``begun`` maps its number to the lowest of these numbers. ``memory`` is a
    cache. Functions may use it only after all calls have been added."""

    files: list[TracedFile]
    entries: dict[DirectoryEntry, list[Version[int | None]]]
    words: dict[int, str]
    deeds: list[Deed] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    begun: dict[int, int] = field(default_factory=dict)
    strange: set[DirectoryEntry] = field(default_factory=set)
    memory: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of_tree(cls, tree: Mapping[str, Node]) -> Effects:
        made = cls([TracedFile("directory")], {}, {})
        by_inode: dict[int, int] = {}
        for path in sorted(tree):
            node = tree[path]
            if path == "/":
                made.files[ROOT_FILE].inode = node.inode
                continue
            is_linked = node.kind == "file" and node.links > 1 and node.inode != 0
            if is_linked and node.inode in by_inode:
                made.lead(AT_FIRST, path, by_inode[node.inode])
                continue
            file = made.new(node.kind, node.inode)
            by_inode[node.inode] = file
            of = made.files[file]
            of.content, of.target = node.content, node.target
            of.sizes.append(Version(AT_FIRST, node.size))
            for at, piece in (node.pieces or {}).items():
                of.stored.append(Version(AT_FIRST, StoredBytes(at, at + len(piece), piece)))
            if node.mode is not None:
                of.modes.append(Version(AT_FIRST, node.mode))
            made.lead(AT_FIRST, path, file)
        return made

    def new(self, kind: str, inode: int = 0) -> int:
        self.files.append(TracedFile(kind, inode))
        return len(self.files) - 1

    def cut(self, call: int, file: int, size: int) -> None:
        of = self.files[file]
        if size < of.size:
            of.stored.append(Version(call, StoredBytes(size, of.size, None)))
        of.sizes.append(Version(call, size))

    def lead(self, call: int, path: str, file: int | None) -> None:
        folder, _slash, name = path.rpartition("/")
        inside = self.leads(folder)
        if inside is None:
            self.untold.append(f"a name in {folder}, which bob does not know")
            return
        entry = DirectoryEntry(inside, name)
        history = self.entries.setdefault(entry, [] if call == AT_FIRST else [Version(AT_FIRST, None)])
        history.append(Version(call, file))

    def leads(self, path: str) -> int | None:
        file: int | None = ROOT_FILE
        for name in filter(None, path.split("/")):
            if file is None:
                return None
            file = self.last(DirectoryEntry(file, name))
        return file

    def path_of(self, file: int) -> str | None:
        """Return a path that leads to a file after the calls so far. Return None if the file has lost all its names."""
        if file == ROOT_FILE:
            return "/"
        for entry, history in self.entries.items():
            if history[-1].value == file and (above := self.path_of(entry.folder)) is not None:
                return f"{above.rstrip('/')}/{entry.name}"
        return None

    @property
    def extent(self) -> int:
        """The bytes that all files need together, if each has its largest size. The largest size of a file includes
        space that was allocated for it beyond its end."""
        ends = []
        for file in self.files:
            stored = (one.value.end for one in file.stored)
            ends.append(max([len(file.content), *(size.value for size in file.sizes), *stored]))
        for deed in self.deeds:
            if isinstance(deed.operation, ops.Fallocate):
                ends[deed.file] = max(ends[deed.file], deed.operation.offset + deed.operation.length)
        return sum(ends)

    @property
    def changing(self) -> tuple[int, ...]:
        """The numbers, in ascending order, of the calls whose changes bob can find in a crash state. Such a call
        changes a name, or a file whose ``followed`` is true."""
        calls = {change.call for history in self.entries.values() for change in history}
        calls.update(*(file.calls for file in self.files if file.followed))
        return tuple(sorted(calls - {AT_FIRST}))

    @cached_property
    def _names_of(self) -> Mapping[int | None, list[tuple[DirectoryEntry, int, int]]]:
        found: dict[int | None, list[tuple[DirectoryEntry, int, int]]] = {}
        for entry, history in self.entries.items():
            for place, change in enumerate(history):
                found.setdefault(change.value, []).append((entry, place, change.call))
        return found

    def leading_to(self, file: int) -> list[tuple[DirectoryEntry, int, int]]:
        """Return every name that a file has or had. An item is (name, index in the name's history, number of the call
        that gave the file this name). Use this only when all calls are known."""
        return self._names_of.get(file, [])

    @cached_property
    def growing(self) -> frozenset[tuple[int, int]]:
        """A pair (number of the file, number of the call) for each change of a file's size, whether the file grows or
        shrinks. So a write has a pair only if it is an append. Use this only when all calls are known."""
        return frozenset((number, size.call) for number, file in enumerate(self.files) for size in file.sizes)

    @cached_property
    def made_modes(self) -> Mapping[int, int]:
        """The permission bits of each file that a call makes, by the number of the file. Use this only when all calls
        are known."""
        return {
            deed.file: deed.mode
            for deed in reversed(self.deeds)
            if isinstance(deed.operation, ops.Create | ops.Mkdir | ops.Mknod | ops.Unnamed)
        }

    def made_by(self, file: int) -> int | None:
        """Return the number of the call that gave a file its first name. Return None if the file existed before the
        first call. Use this only when all calls are known."""
        calls = [call for _entry, _place, call in self.leading_to(file)]
        return min(calls) if calls and AT_FIRST not in calls else None

    def last(self, entry: DirectoryEntry) -> int | None:
        history = self.entries.get(entry)
        return history[-1].value if history else None
