"""What a workload does when nothing crashes: every object's names and contents, step by step.

This is the yardstick of the presence oracle (:mod:`bob.claim.property.presence`);
:mod:`bob.workload.simulation` makes it.

Operations are numbered: 1, 2, ... for the operations of the workload (the first writes ``[op01:...``), 10000, ... for
those of the initial tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from bob.workload import operations as ops
from bob.workload.operations import At, Operation, Special


class FileKind(StrEnum):
    """What a name refers to."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"
    OTHER = "other"
    """A special file: a FIFO, a socket, a device."""


@dataclass(slots=True)
class Thing:
    """A file, directory, symbolic link or special file, whatever its names are; ``identity`` is unique within the
    history. ``target`` is what a link leads to, or which special file it is, as the agent tells it."""

    identity: int
    kind: FileKind
    born: int
    """Index of the step that made it; -1 for the initial tree."""
    target: str = ""
    names: set[str] = field(default_factory=set)
    """Every name it ever had."""
    is_born_unnamed: bool = False
    """It was made without a name: that it is not to be found tells nothing."""

    @property
    def label(self) -> str:
        """What people are told of it: the first of its names in order."""
        return min(self.names, default="without a name")


MODE, OWNER, TIME = "mode", "owner", "time"
"""Attributes that are no extended ones: those have a dot in their names. TIME is that of the last modification, where
an operation has set it and none has changed the contents since."""
SPECIAL_FILES = {
    Special.FIFO: "10000 0",
    Special.SOCKET: "140000 0",
    Special.CHARACTER: "20000 1803",
    Special.BLOCK: "60000 1803",
}
"""What the agent tells of each: its type as stat has it (octal), and the number of the device (7:11, as one)."""
PERMISSIONS = {FileKind.FILE: 0o644, FileKind.DIRECTORY: 0o755, FileKind.SYMLINK: 0o777, FileKind.OTHER: 0o644}
"""Those that the agent makes things with."""


@dataclass(frozen=True, slots=True)
class Inode:
    """The state of a thing at one step: file contents, extended attributes, number of names, permission bits, owner and
    group."""

    content: bytes = b""
    xattrs: Mapping[str, bytes] = field(default_factory=dict)
    links: int = 1
    mode: int = PERMISSIONS[FileKind.FILE]
    owner: tuple[int, int] = (0, 0)
    modified: int | None = None
    """When it was modified (seconds since 1970), where an operation has set that last."""

    @property
    def size(self) -> int:
        """How many bytes are in it."""
        return len(self.content)

    def read(self, start: int, stop: int) -> bytes:
        """What is in it from byte ``start`` up to, not including, ``stop``, as far as it reaches."""
        return self.content[start:stop]

    def changed(self, **changes: Any) -> Inode:
        """The same with other attributes: any but ``content``."""
        return replace(self, **changes)

    @property
    def attributes(self) -> Mapping[str, bytes]:
        """All that operations may set: extended attributes, MODE, OWNER and TIME."""
        return attributes(self.xattrs, self.mode, self.owner, self.modified)


def attributes(
    xattrs: Mapping[str, bytes], mode: int | None, owner: tuple[int, int] | None, modified: int | None
) -> Mapping[str, bytes]:
    """Extended attributes with MODE, OWNER and TIME, where these are known, as one."""
    known = {} if mode is None else {MODE: b"%03o" % mode}
    if owner is not None:
        known[OWNER] = b"%d:%d" % owner
    if modified is not None:
        known[TIME] = b"%d" % modified
    return {**xattrs, **known}


def attribute_set_by(operation: Operation) -> tuple[str, str] | None:
    """The path whose attribute an operation sets or removes, and which; None for one that does neither."""
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
    """The file system after an operation: names and what they refer to, the state of each thing, and which things are
    kept open, by handle."""

    names: Mapping[str, int]
    inodes: Mapping[int, Inode]
    handles: Mapping[str, int] = field(default_factory=dict)

    def thing(self, name: str) -> int:
        """What a path or a handle leads to; KeyError where there is none."""
        return self.names[name] if name.startswith("/") else self.handles[name]

    def parents(self, thing: int) -> frozenset[int]:
        """The directories in which ``thing`` has a name."""
        return frozenset(
            self.names[ops.parent(path)] for path, named in self.names.items() if named == thing and path != "/"
        )


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """All steps of a workload: ``steps[0]`` is the initial tree, ``steps[k]`` the tree after operation k.

    ``operations[k - 1]`` is operation number k; ``data[k]`` what it wrote and where, if it wrote.
    """

    operations: tuple[Operation, ...]
    steps: tuple[HistoryStep, ...]
    things: tuple[Thing, ...]
    data: Mapping[int, tuple[int, int, int]]
    """Operation number -> (thing, offset, length in bytes) for operations that write data, make it zeros or move it."""
    at: At = At.ANY
    """When the crash may come."""
    begun: Mapping[int, int] = field(default_factory=dict)
    """Operation number -> the last operation that had returned when it began, where that is not the one before it."""


@dataclass(frozen=True, slots=True)
class PerformedOperation:
    """An operation as the agent is told to perform it: with the bytes to write, and the offset of an append."""

    operation: Operation
    number: int
    offset: int = 0
    data: bytes = b""
