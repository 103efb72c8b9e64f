"""The *history* of a workload without a crash: the names and contents of every object, step by step. To find out what
survived a crash, the presence oracle (:mod:`bob.claim.property.presence`) compares the files after the crash with this
history. The operations of the workload have the numbers 1, 2, and so on. The operations that make the initial tree have
the numbers 10000, 10001, and so on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from bob.workload import operations as ops
from bob.workload.operations import At, Operation, Special


class FileKind(StrEnum):
    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"
    OTHER = "other"  # a FIFO, a socket or a device


@dataclass(slots=True)
class Thing:
    """A file, directory or other object, independent of its names. ``identity`` is unique within the history.
    ``target`` is the target of a symbolic link. For a special file, it instead says in words what kind of file it
    is."""

    identity: int
    kind: FileKind
    born: int  # the step that created it; -1 for the initial tree
    target: str = ""
    names: set[str] = field(default_factory=set)  # every name that it ever had
    is_born_unnamed: bool = False  # if an object was created without a name, the absence of names says nothing

    @property
    def label(self) -> str:
        """The alphabetically first of all names of the object."""
        return min(self.names, default="without a name")


MODE, OWNER, TIME = "mode", "owner", "time"
"""Names of attributes. The names of extended attributes have a dot. TIME is a modification time that an operation set,
unless a later change has replaced it."""
SPECIAL_FILES = {
    Special.FIFO: "10000 0",
    Special.SOCKET: "140000 0",
    Special.CHARACTER: "20000 1803",
    Special.BLOCK: "60000 1803",
}
"""The agent's words for each special file: the type as in stat (octal), and the device number (7:11 as one number)."""
PERMISSIONS = {FileKind.FILE: 0o644, FileKind.DIRECTORY: 0o755, FileKind.SYMLINK: 0o777, FileKind.OTHER: 0o644}


@dataclass(frozen=True, slots=True)
class Inode:
    """The state of a thing (a file, directory or other object) at one step. ``links`` is its number of names, and
    ``owner`` its user and its group."""

    content: bytes = b""
    xattrs: Mapping[str, bytes] = field(default_factory=dict)
    links: int = 1
    mode: int = PERMISSIONS[FileKind.FILE]
    owner: tuple[int, int] = (0, 0)
    # Time of modification (seconds since 1970), if the last change of the time was by an operation that sets it.
    modified: int | None = None

    @property
    def size(self) -> int:
        return len(self.content)

    def read(self, start: int, stop: int) -> bytes:
        return self.content[start:stop]

    def changed(self, **changes: Any) -> Inode:
        """Return a copy of the inode, with the values that ``changes`` gives for some of its fields. The field
        ``content`` must not be among them."""
        return replace(self, **changes)

    @property
    def attributes(self) -> Mapping[str, bytes]:
        return attributes(self.xattrs, self.mode, self.owner, self.modified)


def attributes(
    xattrs: Mapping[str, bytes], mode: int | None, owner: tuple[int, int] | None, modified: int | None
) -> Mapping[str, bytes]:
    """Return all attributes of a file by name. They are its extended attributes, and also its permission bits (MODE),
    its owner (OWNER) and its time of modification (TIME), if these are not None."""
    known = {} if mode is None else {MODE: b"%03o" % mode}
    if owner is not None:
        known[OWNER] = b"%d:%d" % owner
    if modified is not None:
        known[TIME] = b"%d" % modified
    return {**xattrs, **known}


def attribute_set_by(operation: Operation) -> tuple[str, str] | None:
    """Return the path and the attribute that an operation sets or removes; None if it sets or removes no attribute."""
    match operation:
        case ops.Setxattr(path, name) | ops.Removexattr(path, name):
            return path, name
        case ops.Chmod(path):
            return path, MODE
        case ops.Chown(path):
            return path, OWNER
        case ops.Utimes(path):
            return path, TIME
    return None


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """The file system after an operation. ``names`` has the identity of the thing (file, directory or other object)
    that each path leads to. ``inodes`` has the state of each thing by its identity. ``handles`` has the identity of
    each open file by its handle."""

    names: Mapping[str, int]
    inodes: Mapping[int, Inode]
    handles: Mapping[str, int] = field(default_factory=dict)

    def thing(self, name: str) -> int:
        """Return the identity of the thing with this path or handle. Raises KeyError if nothing has that name."""
        return self.names[name] if name.startswith("/") else self.handles[name]

    def parents(self, thing: int) -> frozenset[int]:
        return frozenset(
            self.names[ops.parent(path)] for path, named in self.names.items() if named == thing and path != "/"
        )


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """All steps of a workload: ``steps[0]`` is the initial tree, and ``steps[k]`` follows ``operations[k - 1]``. ``at``
    says when crashes may come."""

    operations: tuple[Operation, ...]
    steps: tuple[HistoryStep, ...]
    things: tuple[Thing, ...]
    # For each operation that writes, zeroes or moves data: thing, offset, bytes.
    data: Mapping[int, tuple[int, int, int]]
    at: At = At.ANY
    begun: Mapping[int, int] = field(default_factory=dict)
    """For each operation, the last operation that had returned when it began, if that is not the previous operation."""

    def after(self, number: int) -> HistoryStep:
        """Return the step after operation ``number``. The operations of a finish (the end of a recording, after the
        workload's own operations) add no steps. For such an operation, return the last step."""
        return self.steps[min(number, len(self.steps) - 1)]


@dataclass(frozen=True, slots=True)
class PerformedOperation:
    """An operation in the form that bob's agent in the guest performs. ``data`` are the bytes to write, and ``offset``
    is where an append begins."""

    operation: Operation
    number: int
    offset: int = 0
    data: bytes = b""
