"""The bounds of ACE, CrashMonkey's generator of workloads (OSDI'18, "Finding Crash-Consistency Bugs with Bounded
Black-Box Crash Testing", section 5; ``ace/ace.py`` and ``ace/common.py`` of its repository).

A workload starts on an empty file system. It has *core operations*, which use two files in the root and two files in
the directory ``A``. A *sync point* is a call of sync or fsync. An fsync is on a file or directory of a core operation,
or on the sibling or parent of this file or directory. After a store through a mapping, the sync point is an msync.
There is always a sync point after the last core operation, and there may be sync points after earlier core operations.
Right before a core operation, the workload creates the names that the operation needs, and removes the names that would
be in its way.

ACE and bob count differently. ACE counts each sequence of core operations and sync points (:meth:`Ace.count`). Two such
sequences may be the same workload in bob, for two reasons. ACE has both ``remove`` and ``unlink``, which do the same
to a file. After a store through a mapping, ACE chooses between several sync points, but bob uses the same msync for
all of these choices.

ACE keeps files open from one operation to the next; bob opens and closes the file in each operation. ACE combines three
core operations only if the second and the third are each linked to an earlier one, for example by a common name. With
three core operations, ACE syncs only the names that these operations use, and no siblings or parents."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from random import Random

from bob.claim.property.rules import Property
from bob.search.space import Space, is_asked
from bob.workload import operations as ops
from bob.workload.language import write_one
from bob.workload.operations import Allocation, At, How, Operation, Workload, parent
from bob.workload.simulation import is_possible

ROOT, A, B = "/", "/A", "/B"
_FIRST, _SECOND = ("/foo", "/A/foo"), ("/bar", "/A/bar")
_FILES = (*_FIRST, *_SECOND)
_MODES = tuple(mode for mode in Allocation if not mode.shifts)
_SIBLINGS = {"/foo": "/bar", "/bar": "/foo", "/A/foo": "/A/bar", "/A/bar": "/A/foo", A: B, B: A, ROOT: ROOT}
_PAIRS = tuple((old, new) for old, new in product(_FILES, _SECOND) if old != new)
MOST_CLOSE = 2  # with at most so many core operations, ACE also syncs siblings and parents

APPENDED = 32768
_UNALIGNED, _DIRECT, _BEFORE_THE_END = 5000, 8192, 2000
_TRUNCATED = 2500
_ATTRIBUTE, _ATTRIBUTE_BYTES = "user.xattr1", 4
SYNC = ""  # the sync point for the call sync; any other sync point is the name for fsync


@dataclass(frozen=True, slots=True)
class Core:
    """A core operation. ``verb`` says what it does to ``names``. For a fallocate, ``way`` is its mode. ``place`` is the
    part of the file that changes, such as "start". An operation without a mode has an empty ``way``, and one that does
    not change a part of a file has an empty ``place``."""

    verb: str
    names: tuple[str, ...]
    way: str = ""
    place: str = ""


def _cores(verb: str) -> tuple[Core, ...]:
    match verb:
        case "mkdir":
            return (Core(verb, (A,)),)
        case "falloc":
            places = "append", "start", "extend"
            return tuple(Core(verb, (file,), way, at) for file, way, at in product(_FIRST, _MODES, places))
        case "write":
            return tuple(Core(verb, (file,), place=at) for file, at in product(_FIRST, ("append", "start", "extend")))
        case "dwrite" | "mmapwrite":
            return tuple(Core(verb, (file,), place=at) for file, at in product(_FIRST, ("append", "start")))
        case "link":
            return tuple(Core(verb, pair) for pair in _PAIRS)
        case "rename":
            return (*(Core(verb, pair) for pair in _PAIRS), Core(verb, (A, B)))
        case "unlink" | "remove":
            return tuple(Core(verb, (file,)) for file in _FILES)
        case "truncate":
            return tuple(Core(verb, (file,), place=at) for file, at in product(_FIRST, ("empty", "middle")))
    return tuple(Core(verb, (file,)) for file in _FIRST)  # creat, fsetxattr, removexattr


VERBS = (
    *("creat", "mkdir", "falloc", "write", "dwrite", "mmapwrite", "link", "unlink", "remove", "rename", "fsetxattr"),
    *("removexattr", "truncate"),
)
OF_NAMES = ("write", "link", "unlink", "rename")


class Ace(Space):
    """All workloads of ACE with the core operations ``verbs``. Each workload tests at least one of the properties in
    ``asked``."""

    most_misses = 2000

    def __init__(self, name: str, verbs: tuple[str, ...], asked: tuple[Property, ...]) -> None:
        self.name, self.verbs, self.asked = name, verbs, asked

    def every(self, length: int) -> Iterator[Workload]:
        seen: set[Hashable] = set()
        for cores in self._cores(length):
            near = _near(cores)
            for points in product(*([[*near, None]] * (length - 1)), near):
                if (workload := self._new(performed(cores, points), seen)) is not None:
                    yield workload

    def draw(self, length: int, random: Random, seen: set[Hashable]) -> tuple[Hashable, Workload] | None:
        cores = tuple(random.choice(random.choice(self._menu)) for _ in range(length))
        near = _near(cores)
        points = tuple(random.choice(near if at == length else [*near, None]) for at in range(1, length + 1))
        operations = performed(cores, points)
        workload = self._new(operations, seen) if _is_linked(cores) else None
        return None if workload is None else (operations, workload)

    @cached_property
    def _menu(self) -> list[tuple[Core, ...]]:
        return list(map(_cores, self.verbs))

    def _new(self, operations: tuple[Operation, ...], seen: set[Hashable]) -> Workload | None:
        """Return the workload of ``operations``. Return None if ``operations`` are in ``seen``, if a file system would
        refuse one of them, or if the workload tests none of the properties."""
        if operations in seen:
            return None
        seen.add(operations)
        made = Workload("; ".join(map(write_one, operations)), (), operations, at=At.END)
        return made if is_possible(made) and is_asked(self.asked, made) else None

    def count(self, length: int) -> int:
        """Return how many sequences of ``length`` core operations with their sync points ACE makes."""
        return sum(
            len(near) * (len(near) + 1) ** (length - 1) for cores in self._cores(length) for near in [_near(cores)]
        )

    def _cores(self, length: int) -> Iterator[tuple[Core, ...]]:
        for verbs in product(self.verbs, repeat=length):
            yield from filter(_is_linked, product(*map(_cores, verbs)))


def _near(cores: Sequence[Core]) -> list[str]:
    used = set(chain.from_iterable(core.names for core in cores))
    if len(cores) <= MOST_CLOSE:
        used |= {_SIBLINGS[name] for name in used} | {parent(name) for name in used}
    return [*sorted(used), SYNC]


def _is_linked(cores: Sequence[Core]) -> bool:
    """Return whether ACE puts these core operations together into a workload. ACE combines any two operations. It
    combines three operations only if the second and the third are each linked to the operations before them.

    An operation is linked if it shares a parameter with an earlier operation: a name, a mode, or a part of the file. An
    operation on the directory ``A`` or ``B`` is always linked. An operation is also linked if the parameters of all
    earlier operations are just ``A`` and ``B``. If a name is an operation's only parameter, ACE by mistake compares the
    letters of the name, and not the whole name. An operation on ``A/foo`` then counts as one on the directory ``A``."""
    if len(cores) <= MOST_CLOSE:
        return True
    if all(core.verb == "write" for core in cores):
        return False  # ACE makes such workloads by another program
    used = _parameters(cores[0])
    for core in cores[1:]:
        own = _parameters(core)
        is_of_a_directory = core.names[0] in (A, B) or (own == _letters(core) and core.names[0].startswith(A))
        if not (own & used or is_of_a_directory or used == {"A", "B"}):
            return False
        used |= own
    return True


def _parameters(core: Core) -> set[str]:
    choices = [word for word in (core.way, core.place) if word]
    if len(core.names) == 1 and not choices:
        return _letters(core)
    return {*(name.removeprefix("/") for name in core.names), *choices}


def _letters(core: Core) -> set[str]:
    return set(core.names[0].removeprefix("/"))


def performed(cores: Sequence[Core], points: Sequence[str | None]) -> tuple[Operation, ...]:
    """Return the operations of a workload. Each core operation in ``cores`` comes after the operations that prepare it,
    and before its sync point. ``points[i]`` is the sync point of ``cores[i]`` (None: no sync point)."""
    tree = _Tree()
    for core, point in zip(cores, points, strict=True):
        tree.perform(core)
        if core.verb == "mmapwrite":
            tree.done.append(ops.Msync(core.names[0]))
        elif point == SYNC:
            tree.done.append(ops.Sync())
        elif point is not None:
            tree.need(point)
            tree.done.append(ops.Fsync(point))
    return tuple(tree.done)


class _Tree:
    """A simulation of the tree after the operations ``done``. It knows the directories, the file behind each name, and
    the size of each file."""

    def __init__(self) -> None:
        self.done: list[Operation] = []
        self._files: dict[str, int] = {}
        self._sizes: list[int] = []
        self._directories = {ROOT}

    def perform(self, core: Core) -> None:
        name = core.names[0]
        for path in core.names:
            self.need(parent(path))
        match core.verb:
            case "creat" | "mkdir":
                self._clear(name)
                self.need(name)
            case "write" | "dwrite" | "mmapwrite" | "falloc":
                self._change_data(core)
            case "truncate":
                self._need_data(name)
                size = 0 if core.place == "empty" else _TRUNCATED
                self._sizes[self._files[name]] = size
                self.done.append(ops.Truncate(name, size))
            case "fsetxattr" | "removexattr":
                self.need(name)
                self.done.append(ops.Setxattr(name, _ATTRIBUTE, _ATTRIBUTE_BYTES))
                if core.verb == "removexattr":
                    self.done.append(ops.Removexattr(name, _ATTRIBUTE))
            case "unlink" | "remove":
                self.need(name)
                self._clear(name)
            case "link":
                self.need(name)
                self._clear(core.names[1])
                self._files[core.names[1]] = self._files[name]
                self.done.append(ops.Link(*core.names))
            case "rename":
                self.need(name)
                self._rename(*core.names)

    def need(self, name: str) -> None:
        if name in self._directories or name in self._files:
            return
        self.need(parent(name))
        if name in (A, B):
            self._directories.add(name)
            self.done.append(ops.Mkdir(name))
        else:
            self._files[name] = len(self._sizes)
            self._sizes.append(0)
            self.done.append(ops.Create(name))

    def _need_data(self, name: str) -> None:
        self.need(name)
        if not self._sizes[self._files[name]]:
            self._sizes[self._files[name]] = APPENDED
            self.done.append(ops.Write(name, 0, APPENDED))

    def _change_data(self, core: Core) -> None:
        name = core.names[0]
        self.need(name)
        if core.place != "append" or core.verb in ("falloc", "mmapwrite"):
            self._need_data(name)
        size = self._sizes[self._files[name]]
        offset, length = {
            "append": (size, APPENDED),
            "start": (0, _UNALIGNED if core.verb in ("write", "falloc") else _DIRECT),
            "extend": (max(0, size - _BEFORE_THE_END), _UNALIGNED),
        }[core.place]
        mode = Allocation(core.way) if core.way else Allocation.GROW
        match core.verb:
            case "falloc":
                self.done.append(ops.Fallocate(name, offset, length, mode))
            case "mmapwrite":
                if offset + length > size:
                    self.done.append(ops.Fallocate(name, offset, length))
                self.done.append(ops.Write(name, offset, length, How.MMAP))
            case verb:
                self.done.append(ops.Write(name, offset, length, How.DIRECT if verb == "dwrite" else How.PLAIN))
        if mode.grows:
            self._sizes[self._files[name]] = max(size, offset + length)

    def _rename(self, old: str, new: str) -> None:
        if old in self._directories:
            self._directories = {*self._directories - {old}, new}
            moved = {path: file for path, file in self._files.items() if path.startswith(old + "/")}
            kept = {path: file for path, file in self._files.items() if path not in moved}
            self._files = {**kept, **{new + path.removeprefix(old): file for path, file in moved.items()}}
        else:
            self._files[new] = self._files.pop(old)
        self.done.append(ops.Rename(old, new))

    def _clear(self, name: str) -> None:
        for path in sorted(path for path in self._files if path == name or path.startswith(name + "/")):
            del self._files[path]
            self.done.append(ops.Unlink(path))
        if name in self._directories:
            self._directories.remove(name)
            self.done.append(ops.Rmdir(name))
