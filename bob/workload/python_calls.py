"""The object ``fs`` of a workload in Python. The call ``fs.write("/a", 0, 4096)`` performs the line ``write /a 0 4096``
in memory. ``fs`` also answers questions about the tree."""

from __future__ import annotations

import shlex
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest

from bob.errors import UsageError, meant
from bob.workload import operations as ops
from bob.workload.history import FileKind, HistoryStep, Inode, Thing
from bob.workload.language import GRAMMAR, parse, parse_one, path_in, write_one
from bob.workload.operations import Operation
from bob.workload.simulation import RefusedError, Simulation

_PART_BYTES = 512  # bytes in a part of a file; :func:`shape` says of each part whether it is zeros


class RefusedCall(OSError):
    """A file system would refuse this call on ``fs``. The refused call has changed nothing."""


class Stopped(BaseException):
    """The exception that ends a run of a Python file from within a call. ``except Exception`` does not catch it.
    ``error`` is the mistake in the file. Without a mistake (None), bob itself ended the run early: an earlier run of
    the file reached the same state, so this run would add nothing new."""

    def __init__(self, error: UsageError | None = None) -> None:
        super().__init__()
        self.error = error


class SimulatedFileSystem:
    """The object ``fs`` in one run of the Python file ``name``. It begins with the tree that the operations ``setup``
    make. The run may end early, because of a mistake or because bob ends it. Then ``stopped`` is the exception that
    ended it (otherwise None). So bob knows of the exception even if the file catches every exception."""

    def __init__(self, name: str, setup: Sequence[Operation] = ()) -> None:
        self.performing = Simulation(name, setup)
        self.stopped: Stopped | None = None
        self._synced = 0, self.performing.tree.snapshot()

    def __call__(self, text: str) -> None:
        """Perform the operations in ``text``: ``fs("write /a 0 4096; fsync /a")``."""
        try:
            operations = parse(text)
        except UsageError as error:
            raise self._stop(error) from None
        self._perform(operations)

    def __getattr__(self, verb: str) -> Verb:
        if verb.startswith("_"):
            raise AttributeError(verb)
        if verb not in GRAMMAR:
            hint = meant(verb, (*GRAMMAR, *QUESTIONS), "fs has")
            raise self._stop(UsageError(f"unknown call fs.{verb}", hint=hint))
        return Verb(self, verb)

    def exists(self, path: str) -> bool:
        """Return whether this name exists."""
        return self.kind(path) is not None

    def kind(self, path: str) -> str | None:
        """Return ``"file"``, ``"directory"``, ``"symlink"`` or ``"other"``; None if the name does not exist."""
        kind = self.performing.tree.kind(self._path(path))
        return None if kind is None else kind.value

    def size(self, path: str) -> int:
        """Return the size of a file (bytes). Raises RefusedCall if the path is not of a file."""
        if self.performing.tree.kind(self._path(path)) is not FileKind.FILE:
            raise RefusedCall(f"fs.size({path!r}): {path} is not a file")
        return self.performing.tree.size(path)

    def names(self, path: str = "/") -> list[str]:
        """Return the sorted names in a directory. Raises RefusedCall if the path is not of a directory."""
        if self.performing.tree.kind(self._path(path)) is not FileKind.DIRECTORY:
            raise RefusedCall(f"fs.names({path!r}): {path} is not a directory")
        above = path.rstrip("/")
        names = (one.rpartition("/") for one in self.performing.tree.names)
        return sorted(name for folder, _slash, name in names if folder == above and name)

    def tree(self) -> dict[str, int | None]:
        """Return every name with the size of its file in bytes (None: not a file)."""
        tree = self.performing.tree
        return {one: tree.size(one) if tree.kind(one) is FileKind.FILE else None for one in sorted(tree.names)}

    def done(self) -> list[str]:
        """Return the operations after the setup, one line each."""
        return [write_one(operation) for operation in self.performing.done]

    def state(self) -> Hashable:
        """Return a key for the state of the file system. Two states with equal keys have the same possible trees
        after a crash, unless their layouts on the disk differ. The key has the tree at the last sync of all files,
        without the written bytes, and the operations after that sync."""
        count, step = self._synced
        return shape(step, self.performing.tree.things), tuple(self.performing.done[count:])

    def _path(self, path: str) -> str:
        try:
            if not isinstance(path, str):
                raise ValueError(f"{path!r} is not a path such as '/d/a'")
            return path_in(path)
        except ValueError as error:
            raise self._stop(UsageError(str(error), hint="paths are absolute within the file system")) from None

    def _call(self, verb: str, words: Sequence[object]) -> None:
        try:
            operation = _operation(_line(verb, words))
        except UsageError as error:
            raise self._stop(error) from None
        self._perform([operation])

    def _perform(self, operations: Iterable[Operation]) -> None:
        for operation in operations:
            try:
                self.performing.perform(operation)
            except RefusedError as error:
                raise RefusedCall(f"{write_one(operation)}: {error.why}") from None
            except UsageError as error:
                raise self._stop(error) from None
            if isinstance(operation, ops.Sync):
                self._synced = len(self.performing.done), self.performing.tree.snapshot()

    def _stop(self, error: UsageError) -> Stopped:
        self.stopped = Stopped(error)
        return self.stopped


# Methods that are questions; no operation has such a name.
QUESTIONS = ("exists", "kind", "size", "names", "tree", "done")


@dataclass(frozen=True, slots=True)
class Verb:
    fs: SimulatedFileSystem
    name: str

    def __call__(self, *words: object) -> None:
        """Perform the operation of this verb. ``words`` are the words of the language after the verb; a number may be
        an int. Raises RefusedCall if a file system would refuse the operation."""
        self.fs._call(self.name, words)


def shape(step: HistoryStep, things: Sequence[Thing]) -> Hashable:
    """Return everything about a tree except the written bytes. This is, for each path: its hard links, kind, target,
    size, attributes, mode and owner, and which parts of the file are zeros."""
    first: dict[int, str] = {}
    for path, identity in sorted(step.names.items()):
        first.setdefault(identity, path)
    return tuple(
        (path, first[identity], things[identity].kind, things[identity].target, _of_inode(step.inodes[identity]))
        for path, identity in sorted(step.names.items())
    )


def _of_inode(inode: Inode) -> Hashable:
    content = inode.content
    zeros = tuple(not content[at : at + _PART_BYTES].strip(b"\0") for at in range(0, len(content), _PART_BYTES))
    xattrs = tuple(sorted((name, len(value)) for name, value in inode.xattrs.items()))
    return len(content), zeros, xattrs, inode.mode, inode.owner


def _line(verb: str, words: Sequence[object]) -> str:
    places = GRAMMAR[verb].usage.split()[1:]
    pairs = zip_longest(words, places[: len(words)], fillvalue="")
    # The language writes a mode in octal, but str(0o640) is 416.
    texts = (f"{word:03o}" if at == "MODE" and isinstance(word, int) else str(word) for word, at in pairs)
    return shlex.join([verb, *texts])


_operation = lru_cache(4096)(parse_one)  # cached, since different sequences of choices repeat the same operations
