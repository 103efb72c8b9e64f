"""What a workload does when nothing crashes: every object's names and contents, step by step.

This is the yardstick of the presence oracle (:mod:`bob.claim.property.presence`) and the source of the bytes that the
agent writes. It is a small in-memory file system; it knows no kernel.

Operations are numbered: 1, 2, ... for the operations of the workload (the first writes ``[op01:...``), 10000, ... for
those of the initial tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from bob.errors import UsageError
from bob.workload import operations as ops
from bob.workload.language import write_one
from bob.workload.operations import At, How, Operation, Replacing, Workload
from bob.workload.pattern import (
    FIRST_SETUP_NUMBER,
    MAX_OPERATIONS,
    MOST_SETUP_OPERATIONS,
    PATTERN,
    UNSHADED,
    UNSHADED_PATTERN,
    contents,
    word_of,
)
from bob.workload.shades import Shades

DIRECT_BYTES = 512
"""Offsets and lengths of direct I/O are multiples of this many bytes."""
LARGEST_FILE_BYTES = 256 * 1024 * 1024
"""Files are followed in memory, each state of them."""


class RefusedError(UsageError):
    """A file system would refuse ``operation``: ``why``."""

    def __init__(self, workload: str, operation: Operation, why: str) -> None:
        super().__init__(f"workload {workload}: {write_one(operation)!r}: {why}", hint="see its setup")
        self.operation, self.why = operation, why


class Kind(StrEnum):
    """What a name refers to."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"


@dataclass(slots=True)
class Thing:
    """A file, directory or symbolic link, whatever its names are; ``identity`` is unique within the history."""

    identity: int
    kind: Kind
    born: int
    """Index of the step that made it; -1 for the initial tree."""
    target: str = ""
    names: set[str] = field(default_factory=set)
    """Every name it ever had."""


MODE, OWNER = "mode", "owner"
"""Attributes that are no extended ones: those have a dot in their names."""
PERMISSIONS = {Kind.FILE: 0o644, Kind.DIRECTORY: 0o755, Kind.SYMLINK: 0o777}
"""Those that the agent makes things with."""


@dataclass(frozen=True, slots=True)
class Inode:
    """The state of a thing at one step: file contents, extended attributes, number of names, permission bits, owner and
    group."""

    content: bytes = b""
    xattrs: Mapping[str, bytes] = field(default_factory=dict)
    links: int = 1
    mode: int = PERMISSIONS[Kind.FILE]
    owner: tuple[int, int] = (0, 0)

    @property
    def attributes(self) -> Mapping[str, bytes]:
        """All that operations may set: extended attributes, MODE and OWNER."""
        return attributes(self.xattrs, self.mode, self.owner)


def attributes(xattrs: Mapping[str, bytes], mode: int | None, owner: tuple[int, int] | None) -> Mapping[str, bytes]:
    """Extended attributes with MODE and OWNER, where these are known, as one."""
    known = {} if mode is None else {MODE: b"%03o" % mode}
    return {**xattrs, **known, **({} if owner is None else {OWNER: b"%d:%d" % owner})}


def attribute_set_by(operation: Operation) -> tuple[str, str] | None:
    """The path whose attribute an operation sets or removes, and which; None for one that does neither."""
    match operation:
        case ops.Setxattr(path, name) | ops.Removexattr(path, name):
            return path, name
        case ops.Chmod(path):
            return path, MODE
        case ops.Chown(path):
            return path, OWNER
    return None


@dataclass(frozen=True, slots=True)
class Step:
    """The file system after an operation: names and what they refer to, and the state of each thing."""

    names: Mapping[str, int]
    inodes: Mapping[int, Inode]


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """All steps of a workload: ``steps[0]`` is the initial tree, ``steps[k]`` the tree after operation k.

    ``operations[k - 1]`` is operation number k; ``data[k]`` what it wrote and where, if it wrote.
    """

    operations: tuple[Operation, ...]
    steps: tuple[Step, ...]
    things: tuple[Thing, ...]
    data: Mapping[int, tuple[int, int, int]]
    """Operation number -> (thing, offset, length in bytes) for operations that write data, or make it zeros."""
    at: At = At.ANY
    """When the crash may come."""


@dataclass(frozen=True, slots=True)
class Performed:
    """An operation as the agent is told to perform it: with the bytes to write, and the offset of an append."""

    operation: Operation
    number: int
    offset: int = 0
    data: bytes = b""


class _FileSystem:
    """The mutable model behind :func:`simulate`; ``pattern`` is that by which data is written."""

    def __init__(self, pattern: int = PATTERN) -> None:
        self._shades = None if pattern == UNSHADED_PATTERN else Shades()
        self.names: dict[str, int] = {"/": 0}
        self.inodes: dict[int, Inode] = {0: Inode(mode=PERMISSIONS[Kind.DIRECTORY])}
        self.things: list[Thing] = [Thing(0, Kind.DIRECTORY, -1, names={"/"})]

    def snapshot(self) -> Step:
        return Step(dict(self.names), dict(self.inodes))

    def make(self, path: str, kind: Kind, step: int, target: str = "") -> int:
        self._parent_of(path)
        if path in self.names:
            raise ValueError(f"{path} exists already")
        identity = len(self.things)
        self.things.append(Thing(identity, kind, step, target, {path}))
        self.names[path] = identity
        self.inodes[identity] = Inode(mode=PERMISSIONS[kind])
        return identity

    def find(self, path: str, *kinds: Kind) -> int:
        if path not in self.names:
            raise ValueError(f"{path} does not exist")
        identity = self.names[path]
        if kinds and self.things[identity].kind not in kinds:
            raise ValueError(f"{path} is a {self.things[identity].kind}")
        return identity

    def set(self, identity: int, **changes: object) -> None:
        self.inodes[identity] = replace(self.inodes[identity], **changes)  # type: ignore[arg-type]

    def written(self, number: int, identity: int, offset: int, length: int, attribute: str = "") -> bytes:
        """What operation ``number`` writes there, to a thing's contents or one of its attributes."""
        if self._shades is None:
            return contents(number, offset, length, UNSHADED)
        shade = self._shades.choose(number, word_of(number), (identity, attribute), offset, length)
        return contents(number, offset, length, shade)

    def rename(self, old: str, new: str, replacing: Replacing) -> None:
        moved = self.find(old)
        self._parent_of(new)
        if "/" in (old, new) or new.startswith(old + "/"):
            raise ValueError(f"{old} cannot be moved to {new}")
        if replacing is Replacing.REFUSE and new in self.names:
            raise ValueError(f"{new} exists already")
        if replacing is Replacing.EXCHANGE and (new not in self.names or old.startswith(new + "/")):
            raise ValueError(f"{old} and {new} cannot swap their names")
        if self.names.get(new) == moved:
            return  # two names of one file: rename(2) does nothing
        if replacing is Replacing.EXCHANGE:
            places = {old: new, new: old}
            both = [(path, top) for path in self.names for top in places if path == top or path.startswith(top + "/")]
            taken = {places[top] + path[len(top) :]: self.names.pop(path) for path, top in both}
            self.names.update(taken)
            for path, identity in taken.items():
                self.things[identity].names.add(path)
            return
        if new in self.names:
            replaced = self.things[self.names[new]].kind
            if (replaced is Kind.DIRECTORY) != (self.things[moved].kind is Kind.DIRECTORY):
                raise ValueError(f"{new} is a {replaced}")
            self.drop(new)
        for path in [path for path in self.names if path == old or path.startswith(old + "/")]:
            identity = self.names.pop(path)
            self.names[new + path[len(old) :]] = identity
            self.things[identity].names.add(new + path[len(old) :])

    def drop(self, path: str) -> None:
        identity = self.find(path)
        if path == "/":
            raise ValueError("the root cannot be removed")
        if any(other.startswith(path + "/") for other in self.names):
            raise ValueError(f"{path} is not empty")
        del self.names[path]
        self.set(identity, links=self.inodes[identity].links - 1)

    def link(self, old: str, new: str) -> None:
        identity = self.find(old, Kind.FILE)
        self._parent_of(new)
        if new in self.names:
            raise ValueError(f"{new} exists already")
        self.names[new] = identity
        self.things[identity].names.add(new)
        self.set(identity, links=self.inodes[identity].links + 1)

    def _parent_of(self, path: str) -> int:
        return self.find(path.rsplit("/", 1)[0] or "/", Kind.DIRECTORY)


def simulate(workload: Workload) -> tuple[History, tuple[Performed, ...], tuple[Performed, ...]]:
    """The history of ``workload``, and its setup and operations as the agent performs them.

    Raises RefusedError for a workload that a file system would refuse (a name that is not there, ...).
    """
    system = _FileSystem(workload.pattern)
    setup, _ = _run(system, workload.setup, FIRST_SETUP_NUMBER, -1, workload.name)
    steps = [system.snapshot()]
    performed: list[Performed] = []
    data: dict[int, tuple[int, int, int]] = {}
    for number, operation in enumerate(workload.operations, start=1):
        done, wrote = _run(system, (operation,), number, number, workload.name)
        performed.extend(done)
        if wrote is not None:
            data[number] = wrote
        steps.append(system.snapshot())
    _run(system, workload.finish.operations, 0, 0, workload.name)
    history = History(workload.operations, tuple(steps), tuple(system.things), data, workload.at)
    return history, tuple(setup), tuple(performed)


class Performing:
    """A workload in the making: the operations ``done`` so far, performed one by one on the tree that ``setup`` made.

    Raises RefusedError for a setup that a file system would refuse, and UsageError for one with too many operations.
    """

    def __init__(self, name: str, setup: Sequence[Operation] = ()) -> None:
        self._name, self.setup, self.done = name, tuple(setup), list[Operation]()
        self._system = self._again()

    def perform(self, operation: Operation) -> None:
        """Perform ``operation`` as the next one. Raises RefusedError where a file system would refuse it, and
        UsageError for one operation too many; then nothing is done."""
        number = len(self.done) + 1
        try:
            _run(self._system, (operation,), number, number, self._name)
        except UsageError:
            self._system = self._again()  # of what is refused, a part may have been done
            raise
        self.done.append(operation)

    def kind(self, path: str) -> Kind | None:
        """What the name refers to; None where it is not there."""
        identity = self._system.names.get(path)
        return None if identity is None else self._system.things[identity].kind

    def size(self, path: str) -> int:
        """The size in bytes of the file that has the name."""
        return len(self._system.inodes[self._system.names[path]].content)

    def now(self) -> Step:
        """The file system as it is."""
        return self._system.snapshot()

    @property
    def things(self) -> Sequence[Thing]:
        """Everything that there ever was; an identity is its place."""
        return self._system.things

    def _again(self) -> _FileSystem:
        system = _FileSystem()
        _run(system, self.setup, FIRST_SETUP_NUMBER, -1, self._name)
        for number, operation in enumerate(self.done, start=1):
            _run(system, (operation,), number, number, self._name)
        return system


def _run(
    system: _FileSystem, operations: Iterable[Operation], first: int, step: int, name: str
) -> tuple[list[Performed], tuple[int, int, int] | None]:
    performed: list[Performed] = []
    wrote: tuple[int, int, int] | None = None
    for number, operation in enumerate(operations, start=first):
        if number >= MAX_OPERATIONS or (step >= 0 and number >= FIRST_SETUP_NUMBER):
            hint = f"at most {FIRST_SETUP_NUMBER - 1}, and {MOST_SETUP_OPERATIONS} in its setup"
            raise UsageError(f"workload {name} has too many operations", hint=hint)
        try:
            offset, written = _apply(system, operation, number, step)
        except ValueError as error:
            raise RefusedError(name, operation, str(error)) from None
        performed.append(Performed(operation, number, offset, written))
        if isinstance(operation, ops.Write) or (isinstance(operation, ops.Fallocate) and operation.mode.zeroes):
            wrote = (system.find(operation.path), offset, operation.length)
    return performed, wrote


def _apply(system: _FileSystem, operation: Operation, number: int, step: int) -> tuple[int, bytes]:
    match operation:
        case ops.Create(path):
            system.make(path, Kind.FILE, step)
        case ops.Mkdir(path):
            system.make(path, Kind.DIRECTORY, step)
        case ops.Symlink(target, path):
            system.make(path, Kind.SYMLINK, step, target)
        case ops.Write(path, wanted, length, how):
            if path not in system.names and how is not How.MMAP:
                system.make(path, Kind.FILE, step)
            identity = system.find(path, Kind.FILE)
            size = len(system.inodes[identity].content)
            if how is How.MMAP and (wanted is None or wanted + length > size):
                raise ValueError(f"a mapping does not grow a file, and {path} has {size:,} bytes")
            old = b"" if how is How.TRUNC else system.inodes[identity].content
            offset = len(old) if wanted is None else wanted
            if how is How.DIRECT and (offset % DIRECT_BYTES or length % DIRECT_BYTES):
                raise ValueError(f"direct I/O of {length:,} bytes at {offset:,} is not in multiples of {DIRECT_BYTES}")
            _check_size(offset + length)
            written = system.written(number, identity, offset, length)
            system.set(identity, content=old[:offset].ljust(offset, b"\0") + written + old[offset + length :])
            return offset, written
        case ops.Truncate(path, size):
            identity = system.find(path, Kind.FILE)
            _check_size(size)
            system.set(identity, content=system.inodes[identity].content[:size].ljust(size, b"\0"))
        case ops.Fallocate(path, offset, length, mode):
            identity = system.find(path, Kind.FILE)
            _check_size(offset + length)
            content = system.inodes[identity].content
            if mode.grows:
                content = content.ljust(offset + length, b"\0")
            if mode.zeroes:
                zeros = bytes(len(content[offset : offset + length]))
                content = content[:offset] + zeros + content[offset + length :]
            system.set(identity, content=content)
            return offset, b""
        case ops.Rename(old_path, new_path, replacing):
            system.rename(old_path, new_path, replacing)
        case ops.Link(old_path, new_path):
            system.link(old_path, new_path)
        case ops.Unlink(path):
            system.find(path, Kind.FILE, Kind.SYMLINK)
            system.drop(path)
        case ops.Rmdir(path):
            system.find(path, Kind.DIRECTORY)
            system.drop(path)
        case ops.Setxattr(path, name, length):
            identity = system.find(path, Kind.FILE, Kind.DIRECTORY)
            value = system.written(number, identity, 0, length, name)
            system.set(identity, xattrs={**system.inodes[identity].xattrs, name: value})
            return 0, value
        case ops.Removexattr(path, name):
            identity = system.find(path, Kind.FILE, Kind.DIRECTORY)
            xattrs = dict(system.inodes[identity].xattrs)
            if xattrs.pop(name, None) is None:
                raise ValueError(f"{path} has no attribute {name}")
            system.set(identity, xattrs=xattrs)
        case ops.Chmod(path, permissions):
            system.set(system.find(path, Kind.FILE, Kind.DIRECTORY), mode=permissions)
        case ops.Chown(path, uid, gid):
            system.set(system.find(path, Kind.FILE, Kind.DIRECTORY), owner=(uid, gid))
        case ops.Fsync(path):
            system.find(path, Kind.FILE, Kind.DIRECTORY)
        case ops.SyncFileRange(path):
            system.find(path, Kind.FILE)
        case ops.Msync(path):
            if not system.inodes[system.find(path, Kind.FILE)].content:
                raise ValueError(f"{path} is empty, and nothing of it can be mapped")
        case ops.Sync() | ops.Sleep() | ops.Acknowledge():
            pass
    return 0, b""


def _check_size(size: int) -> None:
    if size > LARGEST_FILE_BYTES:
        raise ValueError(f"a file of {size:,} bytes is too large: {LARGEST_FILE_BYTES:,} at most")
