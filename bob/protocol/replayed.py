"""A program's calls as a workload of bob's own language: what models (:mod:`bob.apm`) are held against.

Models know operations, and what each of them left when nothing crashed (a :class:`History`). For a workload of bob's
own that is simulated, with data that bob makes. Here it comes from what the program's calls did
(:mod:`bob.protocol.follow`): the data are the program's own bytes. An output is an operation that changes nothing:
a point in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bob.observe.observation import Node
from bob.protocol.effects import ROOT_FILE, Deed, DirectoryEntry, Effects, handle
from bob.workload import operations as ops
from bob.workload.history import PERMISSIONS, SPECIAL_FILES, History, Inode, Kind, Step, Thing
from bob.workload.operations import Operation, Replacing, Workload

ALL_BITS = 0o7777


@dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    """The ``workload`` that a program's calls are, with its ``history``. An identity of a thing there is the number of
    a file in ``effects``.

    Operation number k (from 1) is call number ``calls[k - 1]``. When it had returned, ``told[k]`` had been told.
    """

    workload: Workload
    history: History
    effects: Effects
    calls: tuple[int, ...]
    told: tuple[bytes, ...]


def replayed(name: str, effects: Effects, before: Mapping[str, Node], tellings: Mapping[int, bytes]) -> Replayed:
    """The calls with ``effects`` on the tree ``before`` as a workload called ``name``. ``tellings`` has, by the number
    of the call, what the program told with it.

    Raises ValueError where a call does not fit the tree that those before it have left: then one is not known.
    """
    tree = _Tree(effects, before)
    steps, operations, calls = [tree.step()], list[Operation](), list[int]()
    data: dict[int, tuple[int, int, int]] = {}
    told, so_far = [b""], b""
    deeds: list[tuple[int, Deed | bytes]] = [(deed.call, deed) for deed in effects.deeds]
    deeds += tellings.items()
    for call, deed in sorted(deeds, key=lambda one: one[0]):
        number = len(operations) + 1
        calls.append(call)
        if isinstance(deed, bytes):
            so_far += deed
            operations.append(ops.Acknowledge(deed.decode(errors="replace")))
        else:
            operations.append(deed.operation)
            if (wrote := tree.perform(number, deed)) is not None:
                data[number] = wrote
        told.append(so_far)
        steps.append(tree.step())
    history = History(tuple(operations), tuple(steps), tuple(tree.things), data)
    return Replayed(Workload(name, (), history.operations), history, effects, tuple(calls), tuple(told))


def unlike(history: History, after: Mapping[str, Node]) -> tuple[str, ...]:
    """The paths at which the last step of ``history`` is not what was found at a clean end: something changes them that
    no call tells. Times, attributes and the order of names are not looked at."""
    last = history.steps[-1]
    wrong = {path for path in {*last.names, *after} - {"/"} if (path in last.names) != (path in after)}
    for path in (last.names.keys() & after.keys()) - {"/"}:
        thing, inode, node = history.things[last.names[path]], last.inodes[last.names[path]], after[path]
        is_same = thing.kind.value == node.kind
        if thing.kind is Kind.FILE:
            is_same = is_same and inode.content == _content(node)
        elif thing.kind is not Kind.DIRECTORY:
            is_same = is_same and thing.target == node.target
        if not is_same:
            wrong.add(path)
    return tuple(sorted(wrong))


class _Tree:
    """The tree as the calls so far have left it."""

    def __init__(self, effects: Effects, before: Mapping[str, Node]) -> None:
        self.things = [Thing(number, Kind(file.kind), -1) for number, file in enumerate(effects.files)]
        self._names = {"/": ROOT_FILE}
        self._inodes = {ROOT_FILE: _inode(before.get("/", Node("directory")))}
        self._handles = {handle(number): number for number in range(len(effects.files))}
        self.things[ROOT_FILE].names.add("/")
        for path in sorted(before.keys() - {"/"}):
            folder, _slash, name = path.rpartition("/")
            file = effects.entries[DirectoryEntry(self._names[folder or "/"], name)][0].value
            if file is None or before[path].fault:
                raise ValueError(f"{path} cannot be read")
            self._inodes[file] = _inode(before[path])
            if before[path].kind != Kind.DIRECTORY:  # a directory's target is the order of its names
                self.things[file].target = before[path].target
            self._name(path, file)
        self._step: Step | None = None

    def step(self) -> Step:
        """A copy of it; the same one while nothing has changed."""
        if self._step is None:
            self._step = Step(dict(self._names), dict(self._inodes), self._handles)
        return self._step

    def perform(self, number: int, deed: Deed) -> tuple[int, int, int] | None:
        """Perform operation ``number``; which file it wrote to, where, and how many bytes."""
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
                old = self._inodes[file].content
                self._fill(file, old[:offset].ljust(offset, b"\0") + deed.data + old[offset + length :])
                return file, offset, length
            case ops.Truncate(_, size):
                self._fill(file, self._inodes[file].content[:size].ljust(size, b"\0"))
            case ops.Fallocate():
                return self._allocate(file, operation)
            case ops.Rename(old_path, new_path, replacing):
                self._rename(old_path, new_path, exchange=replacing is Replacing.EXCHANGE)
            case ops.Link(_, new_path):
                self._name(new_path, file)
            case ops.Unlink(path) | ops.Rmdir(path):
                self._drop(path)
            case ops.Chmod(_, mode):
                self._inodes[file] = replace(self._inodes[file], mode=mode & ALL_BITS)
            case ops.Chown(_, uid, gid):
                was = self._inodes[file].owner
                self._inodes[file] = replace(
                    self._inodes[file], owner=(was[0] if uid < 0 else uid, was[1] if gid < 0 else gid)
                )
            case _:
                raise ValueError(f"{operation} is no call of a program")
        return None

    def _make(self, number: int, deed: Deed, path: str) -> None:
        """A new file belongs to the owner of its directory: nobody traces which user makes it."""
        self.things[deed.file].born = number
        folder = path if isinstance(deed.operation, ops.Unnamed) else path.rsplit("/", 1)[0] or "/"
        owner = self._inodes[self._known(folder)].owner
        mode = 0o777 if isinstance(deed.operation, ops.Symlink) else deed.mode
        self._inodes[deed.file] = Inode(links=0, mode=mode, owner=owner)

    def _fill(self, file: int, content: bytes) -> None:
        self._inodes[file] = replace(self._inodes[file], content=content)

    def _allocate(self, file: int, operation: ops.Fallocate) -> tuple[int, int, int] | None:
        content, end = self._inodes[file].content, operation.offset + operation.length
        if operation.mode.grows:
            content = content.ljust(end, b"\0")
        if operation.mode.zeroes:
            zeros = bytes(len(content[operation.offset : end]))
            content = content[: operation.offset] + zeros + content[end:]
        self._fill(file, content)
        return (file, operation.offset, operation.length) if operation.mode.zeroes else None

    def _name(self, path: str, file: int) -> None:
        if path in self._names:
            raise ValueError(f"{path} is there already")
        self._known(path.rsplit("/", 1)[0] or "/")
        self._names[path] = file
        self.things[file].names.add(path)
        self._count(file)

    def _drop(self, path: str) -> int:
        file = self._known(path)
        del self._names[path]
        self._count(file)
        return file

    def _rename(self, old: str, new: str, *, exchange: bool) -> None:
        self._known(old)
        swapped = {old: new, new: old} if exchange else {old: new}
        if not exchange and new in self._names:
            self._drop(new)
        below = [(path, top) for path in self._names for top in swapped if path == top or path.startswith(top + "/")]
        taken = {swapped[top] + path[len(top) :]: self._names.pop(path) for path, top in below}
        self._names.update(taken)
        for path, file in taken.items():
            self.things[file].names.add(path)

    def _count(self, file: int) -> None:
        links = sum(file == other for other in self._names.values())
        self._inodes[file] = replace(self._inodes[file], links=links)

    def _known(self, path: str) -> int:
        if path not in self._names:
            raise ValueError(f"{path} is not there")
        return self._names[path]


def _inode(node: Node) -> Inode:
    links = node.links if node.kind == Kind.FILE else 1
    mode = PERMISSIONS[Kind(node.kind)] if node.mode is None else node.mode
    return Inode(_content(node), node.xattrs, links, mode, (node.uid or 0, node.gid or 0))


def _content(node: Node) -> bytes:
    return node.content[: node.size].ljust(node.size, b"\0") if node.kind == Kind.FILE else b""
