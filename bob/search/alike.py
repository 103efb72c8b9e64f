"""Workloads that differ only in names count as one. *Bounds* list the names and operations that workloads may have. A
*renaming* replaces names of the bounds by other names of the bounds that have equal length. Directories stay
directories, and the initial tree stays the same. The operations of the bounds may include a rename(2) of a directory
with files in it. In this case, a renaming must replace a name, such as ``foo``, by the same new name in all
directories."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, permutations, product
from typing import Any

from bob.search.bounds import Bounds
from bob.workload.language import write_one
from bob.workload.operations import NAMES, Operation, Rename, paths_of

Renaming = Mapping[str, str]  # maps old paths to new paths


class Renamings:
    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds

    @cached_property
    def renamings(self) -> tuple[Renaming, ...]:
        """All renamings that keep the initial tree and the bounds, including the one that changes nothing."""
        bounds = self._bounds
        every = _onto("", "", self._paths(bounds.setup), self._made())
        parts: list[set[tuple[Operation, ...]]] = [{*bounds.operations}]
        for others in (bounds.begin, bounds.calls, bounds.between):
            parts.append({(one,) for one in others})

        def keeps(renaming: Renaming) -> bool:
            made = sorted(write_one(renamed(one, renaming)) for one in bounds.setup)
            if self._moves_names and not _is_the_same_everywhere(renaming):
                return False
            if any(len(old.encode()) != len(new.encode()) for old, new in renaming.items()):
                return False  # the length of a name decides how much of its directory it fills
            return made == sorted(map(write_one, bounds.setup)) and all(
                {tuple(renamed(one, renaming) for one in entry) for entry in part} == part for part in parts
            )

        return tuple(filter(keeps, every))

    def is_first(self, operations: Sequence[Operation]) -> bool:
        """Return whether bob tries ``operations``. It tries only one of all sequences that differ only in names: the
        one whose text sorts first."""
        own = list(map(write_one, operations))
        return all(own <= [write_one(renamed(one, renaming)) for one in operations] for renaming in self.renamings)

    def _made(self) -> dict[str, list[str]]:
        """Return the operations of the setup that make each name of the initial tree that no workload mentions. Each
        such name is a key. Its value lists, as texts, the operations on this name or on a name below it."""
        spoken = frozenset(self._paths())
        found: dict[str, list[str]] = {path: [] for path in self._paths(self._bounds.setup) if path not in spoken}
        for one in self._bounds.setup:
            own = paths_of(one)
            for path in found.keys() & {above for name in own for above in _with_those_above(name)}:
                there = {name: f"/*{name.removeprefix(path)}" for name in own if f"{name}/".startswith(f"{path}/")}
                found[path].append(write_one(renamed(one, there)))
        return {path: sorted(words) for path, words in found.items()}

    @property
    def _moves_names(self) -> bool:
        folders = {path.rpartition("/")[0] for path in self._paths(self._bounds.setup)}
        renames = (one for one in chain.from_iterable(self._bounds.operations) if isinstance(one, Rename))
        return any({one.old, one.new} & folders for one in renames)

    def _paths(self, setup: Sequence[Operation] = ()) -> tuple[str, ...]:
        bounds = self._bounds
        entries = chain.from_iterable(bounds.operations)
        every = (*setup, *bounds.begin, *entries, *bounds.calls, *bounds.between)
        named = [path for one in every for path in paths_of(one)]
        found: dict[str, None] = {}
        for path in (*bounds.files, *bounds.directories, *named):
            found.update(dict.fromkeys(_with_those_above(path)))
        return tuple(found)


def renamed(operation: Operation, renaming: Renaming) -> Operation:
    """Return ``operation`` with the new names of ``renaming``. The target of a symbolic link stays the same."""
    changes: dict[str, Any] = {
        name: renaming.get(getattr(operation, name), getattr(operation, name))
        for name in NAMES
        if hasattr(operation, name)
    }
    return replace(operation, **changes) if changes else operation


def _is_the_same_everywhere(renaming: Renaming) -> bool:
    parts = {(old.rpartition("/")[2], new.rpartition("/")[2]) for old, new in renaming.items()}
    return len(parts) == len({old for old, _new in parts})


def _with_those_above(path: str) -> list[str]:
    parts = path.strip("/").split("/") if path != "/" else []
    return ["/" + "/".join(parts[: number + 1]) for number in range(len(parts))]


def in_normal_names(setup: Sequence[Operation], operations: Sequence[Operation]) -> Hashable:
    """Return a key for a workload. Two workloads have equal keys if they differ only in names of equal length."""
    numbers = {"": ""}
    for path in (path for one in (*operations, *setup) for path in paths_of(one)):
        for name in path.split("/"):
            numbers.setdefault(name, f"{len(numbers)}:{len(name.encode())}")

    def normal(one: Operation) -> Operation:
        return renamed(one, {path: "/".join(map(numbers.__getitem__, path.split("/"))) for path in paths_of(one)})

    return tuple(map(normal, operations)), tuple(sorted(write_one(normal(one)) for one in setup))


def _onto(above: str, other: str, paths: Sequence[str], made: Mapping[str, Sequence[str]]) -> Iterator[Renaming]:
    """Yield the renamings of the names below the directory ``above`` to the names below the directory ``other``.
    ``paths`` has all names of the bounds and of the initial tree. A renaming is one to one, and maps directories to
    directories.

    ``made`` has the names that no workload mentions, each with the operations of the setup that make it. If the setup
    makes several such names in the same way, they are interchangeable, so only one renaming of them is yielded."""
    files, folders = _inside(above, paths)
    files_there, folders_there = _inside(other, paths)
    for names, places in product(_matched(files, files_there, made), _matched(folders, folders_there, made)):
        here = {**dict(zip(files, names, strict=True)), **dict(zip(folders, places, strict=True))}
        for below in product(*(list(_onto(folder, here[folder], paths, made)) for folder in folders)):
            yield {**here, **{old: new for inner in below for old, new in inner.items()}}


def _matched(names: Sequence[str], there: Sequence[str], made: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    kept = _made_alike([name for name in names if name in made], [name for name in there if name in made], made)
    free = [name for name in there if name not in made]
    if kept is None or len(names) != len(there):
        return
    for chosen in permutations(free):
        left = iter(chosen)
        yield [kept[name] if name in kept else next(left) for name in names]


def _made_alike(names: Sequence[str], there: Sequence[str], made: Mapping[str, Sequence[str]]) -> dict[str, str] | None:
    """Return a renaming of the list ``names`` to the list ``there``. The setup makes each old name in the same way as
    its new name; ``made`` says how. A name that is in both lists stays the same. Return None if no such renaming
    exists."""
    own = {(name.rpartition("/")[2], *made[name]): name for name in there}
    found = {name: own[key] for name in names if (key := (name.rpartition("/")[2], *made[name])) in own}
    others = sorted((name for name in names if name not in found), key=lambda name: (made[name], name))
    left = sorted({*there} - {*found.values()}, key=lambda name: (made[name], name))
    if [made[name] for name in others] != [made[name] for name in left]:
        return None
    return {**found, **dict(zip(others, left, strict=True))}


def _inside(above: str, paths: Sequence[str]) -> tuple[list[str], list[str]]:
    inside = [path for path in paths if path.rpartition("/")[0] == above]
    folders = [path for path in inside if any(one.startswith(path + "/") for one in paths)]
    return [path for path in inside if path not in folders], folders
