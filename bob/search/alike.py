"""Workloads that differ in names alone: of these one is enough.

A *renaming* gives other names to the names of bounds, so that directories stay directories and the initial tree stays
what it is. Two workloads are alike where a renaming makes one of the other. Where a directory with names in it may be
moved, these names are in one directory after the other: then a last part of a path gets the same other one everywhere.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property
from itertools import chain, permutations, product
from typing import Any

from bob.search.bounds import Bounds
from bob.workload.language import write_one
from bob.workload.operations import Operation, Rename

PATHS = "path", "old", "new", "source"
"""The fields of operations that are names."""
Renaming = Mapping[str, str]
"""By the path that a name has, the path that it is to have."""


class Renamings:
    """All renamings of the names of ``bounds``."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds

    @cached_property
    def renamings(self) -> tuple[Renaming, ...]:
        """Those that leave the initial tree as it is, and make of what is within the bounds what is within them. The
        one that changes nothing is among them."""
        bounds = self._bounds
        every = _onto("", "", self._paths(bounds.setup), frozenset(self._paths()))
        parts: list[set[tuple[Operation, ...]]] = [{*bounds.operations}]
        for others in (bounds.begin, bounds.calls, bounds.between):
            parts.append({(one,) for one in others})

        def keeps(renaming: Renaming) -> bool:
            made = sorted(write_one(renamed(one, renaming)) for one in bounds.setup)
            if self._moves_names and not _is_the_same_everywhere(renaming):
                return False
            return made == sorted(map(write_one, bounds.setup)) and all(
                {tuple(renamed(one, renaming) for one in entry) for entry in part} == part for part in parts
            )

        return tuple(filter(keeps, every))

    def is_first(self, operations: Sequence[Operation]) -> bool:
        """Whether ``operations`` are, of all that are alike, those that come first as they are written."""
        own = list(map(write_one, operations))
        return all(own <= [write_one(renamed(one, renaming)) for one in operations] for renaming in self.renamings)

    @property
    def _moves_names(self) -> bool:
        """Whether an operation may move a directory with names in it."""
        folders = {path.rpartition("/")[0] for path in self._paths(self._bounds.setup)}
        renames = (one for one in chain.from_iterable(self._bounds.operations) if isinstance(one, Rename))
        return any({one.old, one.new} & folders for one in renames)

    def _paths(self, setup: Sequence[Operation] = ()) -> tuple[str, ...]:
        """Every name that workloads speak of, and those of ``setup``, with every directory above."""
        bounds = self._bounds
        entries = chain.from_iterable(bounds.operations)
        every = (*setup, *bounds.begin, *entries, *bounds.calls, *bounds.between)
        named = [path for one in every for path in _paths_of(one)]
        found: dict[str, None] = {}
        for path in (*bounds.files, *bounds.directories, *named):
            parts = path.strip("/").split("/") if path != "/" else []
            found.update(dict.fromkeys("/" + "/".join(parts[: number + 1]) for number in range(len(parts))))
        return tuple(found)


def renamed(operation: Operation, renaming: Renaming) -> Operation:
    """``operation`` with other names; what a symbolic link holds stays."""
    changes: dict[str, Any] = {
        name: renaming.get(getattr(operation, name), getattr(operation, name))
        for name in PATHS
        if hasattr(operation, name)
    }
    return replace(operation, **changes) if changes else operation


def _is_the_same_everywhere(renaming: Renaming) -> bool:
    """Whether the last part of a path gets the same other one wherever it stands."""
    parts = {(old.rpartition("/")[2], new.rpartition("/")[2]) for old, new in renaming.items()}
    return len(parts) == len({old for old, _new in parts})


def _paths_of(operation: Operation) -> list[str]:
    named = [getattr(operation, name) for name in PATHS if hasattr(operation, name)]
    return [name for name in named if name.startswith("/")]  # and not the handle of an open file


def in_normal_names(setup: Sequence[Operation], operations: Sequence[Operation]) -> Hashable:
    """What is equal for workloads that differ in names alone, where each name has the same other one wherever it
    stands, and one of as many bytes. What a symbolic link holds counts as it is."""
    numbers = {"": ""}
    for path in (path for one in (*operations, *setup) for path in _paths_of(one)):
        for name in path.split("/"):
            numbers.setdefault(name, f"{len(numbers)}:{len(name.encode())}")

    def normal(one: Operation) -> Operation:
        return renamed(one, {path: "/".join(map(numbers.__getitem__, path.split("/"))) for path in _paths_of(one)})

    return tuple(map(normal, operations)), tuple(sorted(write_one(normal(one)) for one in setup))


def _onto(above: str, other: str, paths: Sequence[str], spoken: Set[str]) -> Iterator[Renaming]:
    """Every renaming of what is below the directory ``above`` to what is below ``other``, one to one, directories to
    directories. There is none where there is not as much below one as below the other. A name that is not ``spoken`` of
    keeps its last part: there may be many of these, and nothing is alike by them."""
    files, folders = _inside(above, paths)
    files_there, folders_there = _inside(other, paths)
    for names, places in product(
        _matched(files, files_there, other, spoken), _matched(folders, folders_there, other, spoken)
    ):
        here = {**dict(zip(files, names, strict=True)), **dict(zip(folders, places, strict=True))}
        for below in product(*(list(_onto(folder, here[folder], paths, spoken)) for folder in folders)):
            yield {**here, **{old: new for inner in below for old, new in inner.items()}}


def _matched(names: Sequence[str], there: Sequence[str], other: str, spoken: Set[str]) -> Iterator[list[str]]:
    """Each way in which ``names`` may become those ``there``, which are in the directory ``other``."""
    kept = {name: f"{other}/{name.rpartition('/')[2]}" for name in names if name not in spoken}
    free = [name for name in there if name in spoken]
    if set(kept.values()) != set(there) - set(free) or len(names) != len(there):
        return
    for chosen in permutations(free):
        left = iter(chosen)
        yield [kept[name] if name in kept else next(left) for name in names]


def _inside(above: str, paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """What is in the directory ``above``: names with nothing below them, and others."""
    inside = [path for path in paths if path.rpartition("/")[0] == above]
    folders = [path for path in inside if any(one.startswith(path + "/") for one in paths)]
    return [path for path in inside if path not in folders], folders
