"""The kinds of changes that operations make, and how two changes are related. The finer tables of bob (``bob matrix
--rows pairs``) have a row for each pair of kinds and each relation. The promises in a model of a file system
(:mod:`bob.apm`) are also about these kinds, for example about the order of two changes on the disk.

An operation makes one or more *changes*. A write that creates its file is a create and an append. A write across the
end of a file is an overwrite and an append. A write with O_TRUNC is a truncate and an append. A link that gives an
unnamed file its first name is a create. ``fallocate keep`` changes nothing that a program can read."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from bob.workload import operations as ops
from bob.workload.history import History


class ChangeKind(StrEnum):
    OVERWRITE = "overwrite"
    APPEND = "append"
    TRUNCATE_DOWN = "truncate-down"
    TRUNCATE_UP = "truncate-up"
    FALLOCATE = "fallocate"
    ZERO = "zero"
    SHIFT = "shift"
    CREATE = "create"
    LINK = "link"
    SYMLINK = "symlink"
    UNLINK = "unlink"
    RENAME = "rename"
    RENAME_OVER = "rename-over"
    MKDIR = "mkdir"
    RMDIR = "rmdir"
    SETXATTR = "setxattr"


MODELLED_KINDS = tuple(kind for kind in ChangeKind if kind is not ChangeKind.SHIFT)


class Relation(StrEnum):
    """The relation of two changes. A change belongs to a directory if it changes the directory itself, or something
    with a name in it. SAME_FILE: both change the same file or directory. SAME_DIRECTORY: they do not, but both belong
    to one directory. OTHER_DIRECTORY: they belong to no common directory."""

    SAME_FILE = "same-file"
    SAME_DIRECTORY = "same-directory"
    OTHER_DIRECTORY = "other-directory"


@dataclass(frozen=True, slots=True)
class OperationScope:
    """The files and directories that an operation is about. ``things`` are the files and directories that it writes to,
    creates, removes, names, moves or replaces. ``directories`` are the directories that contain a name of one of
    ``things`` before or after the operation."""

    things: frozenset[int]
    directories: frozenset[int]


@dataclass(frozen=True, slots=True)
class OperationChange(OperationScope):
    number: int  # from 1
    kind: ChangeKind


@lru_cache(maxsize=8)
def changes(history: History) -> tuple[OperationChange, ...]:
    """Return every change of a workload, in program order."""
    return tuple(
        change
        for number, operation in enumerate(history.operations, start=1)
        for change in _changes(history, number, operation)
    )


@lru_cache(maxsize=8)
def single_changes(history: History) -> dict[int, OperationChange]:
    """Return the change of each operation that makes only one change. The keys are the numbers of these operations."""
    counts = Counter(change.number for change in changes(history))
    return {change.number: change for change in changes(history) if counts[change.number] == 1}


def extent(history: History, number: int, *things: int) -> OperationScope:
    steps = history.steps[number - 1], history.steps[number]
    return OperationScope(
        frozenset(things), frozenset[int]().union(*(step.parents(one) for step in steps for one in things))
    )


def relation(one: OperationScope, other: OperationScope) -> Relation:
    """Return how two changes are related. If one change is of a file with a name in a directory, and the other of that
    directory itself, the answer is SAME_DIRECTORY. ``one`` and ``other`` say which files and directories the changes
    are about."""
    if one.things & other.things:
        return Relation.SAME_FILE
    if (one.directories | one.things) & (other.directories | other.things):
        return Relation.SAME_DIRECTORY
    return Relation.OTHER_DIRECTORY


def _changes(history: History, number: int, operation: ops.Operation) -> Iterator[OperationChange]:
    before, after = history.steps[number - 1], history.steps[number]

    def change(kind: ChangeKind, *things: int) -> OperationChange:
        about = extent(history, number, *things)
        return OperationChange(about.things, about.directories, number, kind)

    match operation:
        case ops.Create(path) | ops.Mknod(path):
            if path not in before.names:
                yield change(ChangeKind.CREATE, after.names[path])
        case ops.Write() | ops.CopyRange() | ops.Reflink():
            thing, start, length = history.data[number]
            if thing not in before.inodes:
                yield change(ChangeKind.CREATE, thing)
            was = before.inodes.get(thing)
            size = 0 if was is None else was.size
            if isinstance(operation, ops.Write) and operation.how is ops.How.TRUNC and size:
                yield change(ChangeKind.TRUNCATE_DOWN, thing)
                size = 0
            if start < size:
                yield change(ChangeKind.OVERWRITE, thing)
            if start + length > size:
                yield change(ChangeKind.APPEND, thing)
        case ops.Truncate(path, size):
            was = before.inodes[before.thing(path)]
            if size != was.size:
                kind = ChangeKind.TRUNCATE_DOWN if size < was.size else ChangeKind.TRUNCATE_UP
                yield change(kind, before.thing(path))
        case ops.Fallocate(path, offset, length, mode):
            size = before.inodes[before.thing(path)].size
            if mode.shifts:
                yield change(ChangeKind.SHIFT, before.thing(path))
            if mode.zeroes and offset < size:
                yield change(ChangeKind.ZERO, before.thing(path))
            if mode is ops.Allocation.GROW or (mode.grows and offset + length > size):
                yield change(ChangeKind.FALLOCATE, before.thing(path))
        case ops.Rename(old, new):
            moved, replaced = before.names[old], before.names.get(new)
            if replaced is None:
                yield change(ChangeKind.RENAME, moved)
            elif replaced != moved:
                yield change(ChangeKind.RENAME_OVER, moved, replaced)
        case ops.Link(_old, new):
            is_first = not before.inodes[after.names[new]].links
            yield change(ChangeKind.CREATE if is_first else ChangeKind.LINK, after.names[new])
        case ops.Symlink(_target, path):
            yield change(ChangeKind.SYMLINK, after.names[path])
        case ops.Unlink(path):
            yield change(ChangeKind.UNLINK, before.names[path])
        case ops.Mkdir(path):
            yield change(ChangeKind.MKDIR, after.names[path])
        case ops.Rmdir(path):
            yield change(ChangeKind.RMDIR, before.names[path])
        case ops.Setxattr(path) | ops.Removexattr(path) | ops.Chmod(path) | ops.Chown(path) | ops.Utimes(path):
            yield change(ChangeKind.SETXATTR, before.thing(path))
