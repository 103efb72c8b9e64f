"""A program's calls, translated into a workload in bob's language. From it, a model of a file system can predict what a
crash of the program may leave. An output of the program becomes an operation that changes nothing."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

from bob.observe.observation import Node
from bob.protocol.effects import ROOT_FILE, Deed, DirectoryEntry, Effects, StoredBytes, handle, overlaid
from bob.workload import operations as ops
from bob.workload.file_tree import move_names
from bob.workload.history import PERMISSIONS, SPECIAL_FILES, FileKind, History, HistoryStep, Inode, Thing
from bob.workload.operations import Operation, Replacing, Workload

ALL_BITS = 0o7777


@dataclass(frozen=True, slots=True, eq=False)
class ReplayedProgram:
    """A program's calls as a ``workload``, with the ``history`` of the tree of files after each operation. ``effects``
    has what each call did to the tree. A file has the same number there and in the history. Operation k (from 1) is
    part of the system call number ``calls[k - 1]``. ``outputs[k]`` is all output that the program had written when
    operation k returned."""

    workload: Workload
    history: History
    effects: Effects
    calls: tuple[int, ...]
    outputs: Sequence[bytes]


class OutputPrefixes(Sequence[bytes]):
    """A sequence of prefixes of one output; ``lengths`` has their lengths (bytes). The bytes are not copied for each
    prefix. ``whole`` is the whole output."""

    def __init__(self, whole: bytes, lengths: Sequence[int]) -> None:
        self._whole, self._lengths = whole, lengths

    def __len__(self) -> int:
        return len(self._lengths)

    @overload
    def __getitem__(self, place: int) -> bytes: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[bytes]: ...
    def __getitem__(self, place: int | slice) -> bytes | Sequence[bytes]:
        if isinstance(place, slice):
            return OutputPrefixes(self._whole, self._lengths[place])
        return self._whole[: self._lengths[place]]


class LongInode(Inode):
    """A file as it is after a certain operation of the program. ``first`` is its content before the program ran.
    ``stored`` has all writes of the program to the file. The first ``count`` of these writes have been done. ``size``
    is the size at this point (bytes). The objects for all points of the program share the list ``stored``, so memory
    grows linearly with the number of appends."""

    __slots__ = ("_count", "_size", "_stored", "first")

    first: bytes
    _stored: Sequence[StoredBytes]
    _count: int
    _size: int

    def __init__(self, first: bytes, stored: Sequence[StoredBytes], count: int, size: int, was: Inode) -> None:
        for name in _BESIDE_CONTENTS:
            object.__setattr__(self, name, getattr(was, name))
        for name, value in (("first", first), ("_stored", stored), ("_count", count), ("_size", size)):
            object.__setattr__(self, name, value)

    @property
    def content(self) -> bytes:
        return self.read(0, self._size)

    @property
    def size(self) -> int:
        return self._size

    def read(self, start: int, stop: int) -> bytes:
        latest = (self._stored[place] for place in range(self._count - 1, -1, -1))
        return overlaid(self.first, latest, start, min(stop, self._size))

    def changed(self, **changes: Any) -> Inode:
        return LongInode(self.first, self._stored, self._count, self._size, replace(_beside(self), **changes))


_BESIDE_CONTENTS = ("xattrs", "links", "mode", "owner", "modified")


def _beside(inode: Inode) -> Inode:
    return Inode(b"", *(getattr(inode, name) for name in _BESIDE_CONTENTS))


def replayed(name: str, effects: Effects, before: Mapping[str, Node], tellings: Mapping[int, bytes]) -> ReplayedProgram:
    """Return a program's calls as a workload that starts from the tree ``before``. ``effects`` has what each call did
    to the tree. If a call wrote output, ``tellings`` maps the call's number to this output. Raises ValueError if a call
    does not fit the tree, because an earlier call had an effect that bob does not know."""
    tree = _CallTree(effects, before)
    steps, operations, calls = [tree.step()], list[Operation](), list[int]()
    data: dict[int, tuple[int, int, int]] = {}
    output, lengths = bytearray(), [0]
    deeds: list[tuple[int, Deed | bytes]] = [(deed.call, deed) for deed in effects.deeds]
    deeds += tellings.items()
    for call, deed in sorted(deeds, key=lambda one: one[0]):
        number = len(operations) + 1
        calls.append(call)
        if isinstance(deed, bytes):
            output += deed
            operations.append(ops.Acknowledge(deed.decode(errors="replace")))
        else:
            operations.append(deed.operation)
            if (wrote := tree.perform(number, deed)) is not None:
                data[number] = wrote
        lengths.append(len(output))
        steps.append(tree.step())
    begun = {
        number: bisect_left(calls, effects.begun[call])
        for number, call in enumerate(calls, start=1)
        if call in effects.begun
    }
    history = History(tuple(operations), tuple(steps), tuple(tree.things), data, begun=begun)
    return ReplayedProgram(
        Workload(name, (), history.operations), history, effects, tuple(calls), OutputPrefixes(bytes(output), lengths)
    )


def unlike(history: History, after: Mapping[str, Node]) -> tuple[str, ...]:
    """Return the paths where two trees differ: ``after``, the tree that the program left when it ended without a crash,
    and the tree at the end of ``history``. A path differs if only one tree has it, or if the kind or the contents of
    the file are different. Such a path was changed in a way that bob did not trace."""
    last = history.steps[-1]
    wrong = {path for path in {*last.names, *after} - {"/"} if (path in last.names) != (path in after)}
    for path in (last.names.keys() & after.keys()) - {"/"}:
        thing, inode, node = history.things[last.names[path]], last.inodes[last.names[path]], after[path]
        is_same = thing.kind.value == node.kind
        if thing.kind is FileKind.FILE:
            is_same = is_same and node.pieces is None and inode.content == _content(node)
        elif thing.kind is not FileKind.DIRECTORY:
            is_same = is_same and thing.target == node.target
        if not is_same:
            wrong.add(path)
    return tuple(sorted(wrong))


def other_modes(history: History, after: Mapping[str, Node]) -> tuple[str, ...]:
    """Return the paths of files and directories that have different permission bits in two trees: ``after``, the tree
    that the program left when it ended without a crash, and the tree at the end of ``history``."""
    last = history.steps[-1]
    return tuple(
        path
        for path in sorted(last.names.keys() & after.keys())
        if history.things[last.names[path]].kind in (FileKind.FILE, FileKind.DIRECTORY)
        and (mode := after[path].mode) is not None
        and (last.inodes[last.names[path]].mode ^ mode) & 0o777
    )


class _CallTree:
    """The tree after the operations so far, in memory. ``before`` is the tree before the first operation."""

    def __init__(self, effects: Effects, before: Mapping[str, Node]) -> None:
        self.things = [Thing(number, FileKind(file.kind), -1) for number, file in enumerate(effects.files)]
        self._names = {"/": ROOT_FILE}
        self._links = Counter({ROOT_FILE: 1})
        self._stored: dict[int, list[StoredBytes]] = {}
        self._inodes = {ROOT_FILE: _inode(before.get("/", Node("directory")))}
        self._handles = {handle(number): number for number in range(len(effects.files))}
        self.things[ROOT_FILE].names.add("/")
        for path in sorted(before.keys() - {"/"}):
            folder, _slash, name = path.rpartition("/")
            file = effects.entries[DirectoryEntry(self._names[folder or "/"], name)][0].value
            if file is None or before[path].fault or before[path].pieces is not None:
                raise ValueError(f"{path} cannot be read" if before[path].pieces is None else f"{path} is too long")
            self._inodes[file] = _inode(before[path])
            if before[path].kind != FileKind.DIRECTORY:  # for a directory, ``target`` is the order of its names
                self.things[file].target = before[path].target
            self._name(path, file)
        self._step: HistoryStep | None = None
        self._kept_names: dict[str, int] | None = None

    def step(self) -> HistoryStep:
        """Return the present state of the tree. If nothing has changed since the last call of this method, return the
        same object as that call. If no name has changed, return a new object that shares the names with the last
        object."""
        if self._step is None:
            if self._kept_names is None:
                self._kept_names = dict(self._names)
            self._step = HistoryStep(self._kept_names, dict(self._inodes), self._handles)
        return self._step

    def perform(self, number: int, deed: Deed) -> tuple[int, int, int] | None:
        """Carry out ``deed`` as operation number ``number``. If it writes data, return the file, the offset and the
        number of bytes. Otherwise return None."""
        file, operation = deed.file, deed.operation
        if isinstance(operation, ops.CHANGELESS_OPERATIONS):
            return None
        self._step = None
        match operation:
            case ops.Create(path) | ops.Mkdir(path) | ops.Symlink(_, path) | ops.Mknod(path):
                if isinstance(operation, ops.Symlink):
                    self.things[file].target = operation.target
                if isinstance(operation, ops.Mknod):
                    self.things[file].target = SPECIAL_FILES[operation.special]
                self._make(number, deed, path)
                self._name(path, file)
            case ops.Unnamed(path):
                self.things[file].is_born_unnamed = True
                self._make(number, deed, path)
            case ops.Write(_, int(offset), length):
                size = max(self._inodes[file].size, offset + length)
                self._store(file, size, StoredBytes(offset, offset + length, deed.data))
                return file, offset, length
            case ops.Truncate(_, size):
                before = self._inodes[file].size
                self._store(file, size, *([StoredBytes(size, before, None)] if size < before else []))
            case ops.Fallocate():
                return self._allocate(file, operation)
            case ops.Rename(old_path, new_path, replacing):
                self._rename(old_path, new_path, exchange=replacing is Replacing.EXCHANGE)
            case ops.Link(_, new_path):
                self._name(new_path, file)
            case ops.Unlink(path) | ops.Rmdir(path):
                self._drop(path)
            case ops.Chmod(_, mode):
                self._inodes[file] = self._inodes[file].changed(mode=mode & ALL_BITS)
            case ops.Chown(_, uid, gid):
                was = self._inodes[file].owner
                owner = was[0] if uid < 0 else uid, was[1] if gid < 0 else gid
                self._inodes[file] = self._inodes[file].changed(owner=owner)
            case _:
                raise ValueError(f"{operation} is not a call of a program")
        return None

    def _make(self, number: int, deed: Deed, path: str) -> None:
        """Make a file at ``path``. Its owner is the owner of its directory, because the trace does not say which user
        makes it."""
        self.things[deed.file].born = number
        folder = path if isinstance(deed.operation, ops.Unnamed) else path.rsplit("/", 1)[0] or "/"
        owner = self._inodes[self._known(folder)].owner
        mode = 0o777 if isinstance(deed.operation, ops.Symlink) else deed.mode
        self._inodes[deed.file] = Inode(links=0, mode=mode, owner=owner)

    def _store(self, file: int, size: int, *stored: StoredBytes) -> None:
        was, log = self._inodes[file], self._stored.setdefault(file, [])
        initial = was.first if isinstance(was, LongInode) else was.content
        log += stored
        self._inodes[file] = LongInode(initial, log, len(log), size, was)

    def _allocate(self, file: int, operation: ops.Fallocate) -> tuple[int, int, int] | None:
        size, end = self._inodes[file].size, operation.offset + operation.length
        size = max(size, end) if operation.mode.grows else size
        is_zeroed = operation.mode.zeroes and operation.offset < size
        self._store(file, size, *([StoredBytes(operation.offset, min(end, size), None)] if is_zeroed else []))
        return (file, operation.offset, operation.length) if operation.mode.zeroes else None

    def _name(self, path: str, file: int) -> None:
        if path in self._names:
            raise ValueError(f"{path} exists already")
        self._known(path.rsplit("/", 1)[0] or "/")
        self._names[path] = file
        self._kept_names = None
        self.things[file].names.add(path)
        self._count(file, 1)

    def _drop(self, path: str) -> None:
        file = self._known(path)
        del self._names[path]
        self._kept_names = None
        self._count(file, -1)

    def _rename(self, old: str, new: str, *, exchange: bool) -> None:
        self._known(old)
        moved = {old: new, new: old} if exchange else {old: new}
        if not exchange and new in self._names:
            self._drop(new)
        self._kept_names = None
        for path, file in move_names(self._names, moved).items():
            self.things[file].names.add(path)

    def _count(self, file: int, more: int) -> None:
        self._links[file] += more
        self._inodes[file] = self._inodes[file].changed(links=self._links[file])

    def _known(self, path: str) -> int:
        if path not in self._names:
            raise ValueError(f"{path} does not exist")
        return self._names[path]


def _inode(node: Node) -> Inode:
    links = node.links if node.kind == FileKind.FILE else 1
    mode = PERMISSIONS[FileKind(node.kind)] if node.mode is None else node.mode
    return Inode(_content(node), node.xattrs, links, mode, (node.uid or 0, node.gid or 0))


def _content(node: Node) -> bytes:
    return node.content[: node.size].ljust(node.size, b"\0") if node.kind == FileKind.FILE else b""
