"""Judge which sets of operations can have happened, as far as names show it.

A crash may leave out any operations. But a file system refuses to make a name that exists (EEXIST), to remove or move a
name that does not exist (ENOENT), and to remove a nonempty directory (ENOTEMPTY). So a set with an operation that the
file system would have refused cannot have happened. A set also cannot have happened if it leaves an initial file
without a name, although no operation takes a name of that file away.

Suppose that one operation moves a directory, and a later operation is in that directory. The later operation works even
if the crash left out the move, since the kernel has walked the path before the file system gets the operation. This
module judges *groups* of operations apart from each other. Two operations are in one group if they change the same
name, or if a chain of such operations leads from one to the other. Larger groups also join operations that share a file
or directory."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from bob.claim.property.sightings import ROOT, NamePlace, NamePlaces, Sightings, place_of
from bob.workload import operations as ops
from bob.workload.history import FileKind, History
from bob.workload.operations import Replacing

MOST_STATES = 4096  # states of the names of a group; from a larger group bob leaves operations out (:func:`_group`)

_NamesState = tuple[int | None, ...]  # the file or directory at each place of a group


class _Act(Enum):
    MAKE = "make"
    LINK = "link"
    REMOVE = "remove"
    REMOVE_DIRECTORY = "remove a directory"
    RENAME = "rename"
    MOVE = "move to a name that is not there"
    EXCHANGE = "exchange"


@dataclass(frozen=True, slots=True)
class _NameStep:
    """A change of names by operation ``number``. After it, the name ``place`` leads to the file or directory ``thing``.
    If the operation is a rename, ``old`` is the earlier name."""

    number: int
    act: _Act
    place: NamePlace
    thing: int | None = None
    old: NamePlace | None = None


class OperationGroup:
    """A group of operations that bob judges together. ``places`` are all names that these operations change, and a
    *state* says what each of these names leads to. Each set of these operations that can have happened leaves one
    state."""

    def __init__(self, history: History, places: NamePlaces, steps: Sequence[_NameStep]) -> None:
        self.numbers = tuple(step.number for step in steps)
        self._things = history.things
        self.places = tuple(sorted({place for number in self.numbers for place in places.changes[number]}))
        self._at = {place: index for index, place in enumerate(self.places)}
        self._homes = {thing: places.of(thing) for thing in range(len(history.things))}
        first: _NamesState = tuple(places.initially(place) for place in self.places)
        # A file that no operation removes must keep a name. A file that also has a name outside of the group keeps that
        # name.
        kept = {
            thing
            for thing in first
            if thing is not None and not places.is_removed(thing) and all(p in self._at for p in self._homes[thing])
        }
        states: set[_NamesState] | None = {first}
        for step in steps:
            assert states is not None
            states |= {after for state in states if (after := self._after(state, step)) is not None}
            if len(states) > MOST_STATES:
                states = None
                break
        self._states = None if states is None else [state for state in sorted(states, key=str) if kept <= set(state)]

    @property
    def is_judged(self) -> bool:
        return self._states is not None

    def is_explained(self, found: Sequence[frozenset[int | None] | None]) -> bool:
        """Return whether some possible set of operations explains the observed names. The items of ``found`` belong to
        the names ``places``, in the same order. Each item is the set of files that the name may lead to. None in place
        of a set stands for any file."""
        return self._states is None or any(
            all(there is None or value in there for there, value in zip(found, state, strict=True))
            for state in self._states
        )

    def _after(self, state: _NamesState, step: _NameStep) -> _NamesState | None:
        """Return the state that ``step`` leads to, or None if the file system would refuse this operation in
        ``state``."""
        at, values = self._at[step.place], list(state)
        there = state[at]
        if not self._is_alive(step.place[0], state):
            return None
        match step.act:
            case _Act.MAKE | _Act.LINK:
                assert step.thing is not None
                if there is not None or (step.act is _Act.LINK and not self._is_alive(step.thing, state)):
                    return None
                values[at] = step.thing
            case _Act.REMOVE:
                if there is None or self._is_directory(there):
                    return None
                values[at] = None
            case _Act.REMOVE_DIRECTORY:
                if there is None or not self._is_directory(there) or not self._is_empty(there, state):
                    return None
                values[at] = None
            case _Act.EXCHANGE:
                assert step.old is not None
                moved = state[self._at[step.old]]
                if moved != step.thing or there is None or not self._is_alive(step.old[0], state):
                    return None
                values[self._at[step.old]], values[at] = there, moved
            case _Act.RENAME | _Act.MOVE:
                assert step.old is not None
                moved = state[self._at[step.old]]
                if moved != step.thing or not self._is_alive(step.old[0], state):
                    return None
                assert moved is not None
                if moved == there:
                    return state  # two names of one file: rename(2) does nothing
                if there is not None and (
                    step.act is _Act.MOVE
                    or self._is_directory(there) != self._is_directory(moved)
                    or (self._is_directory(there) and not self._is_empty(there, state))
                ):
                    return None
                values[self._at[step.old]], values[at] = None, moved
        return tuple(values)

    def _is_directory(self, thing: int) -> bool:
        return self._things[thing].kind is FileKind.DIRECTORY

    def _is_alive(self, thing: int, state: _NamesState) -> bool:
        """Return whether the file or directory ``thing`` has a name in ``state``, or may have a name that this group
        does not change."""
        homes = self._homes[thing]
        return thing == ROOT or thing in state or not all(place in self._at for place in homes)

    def _is_empty(self, directory: int, state: _NamesState) -> bool:
        return not any(
            value is not None and place[0] == directory for place, value in zip(self.places, state, strict=True)
        )


def unexplained(groups: Iterable[OperationGroup], seen: Sightings, torn: Iterable[int]) -> Iterator[OperationGroup]:
    """Yield each group whose observed names are wrong: no possible set of the group's operations would leave these
    names. ``seen`` has the observed names. If such a group contains a smaller one, yield only the smaller group. Leave
    out groups with a ``torn`` operation."""
    explained_by_others = {frozenset({number}) for number in torn}
    for group in groups:
        numbers = frozenset(group.numbers)
        if any(less <= numbers for less in explained_by_others) or group.is_explained(found(group, seen)):
            continue
        explained_by_others.add(numbers)
        yield group


def found(group: OperationGroup, seen: Sightings) -> list[frozenset[int | None] | None]:
    """Return one set for each of the names ``group.places``. The set has the files and directories that the name may
    lead to, according to the observation ``seen``. They are given by their indexes in ``History.things``. The set is
    {None} if the name does not exist. In place of a set, None means that the observation does not show the name."""
    there = [seen.at(place) if seen.may_be_there(place[0]) else None for place in group.places]
    # If a name shows none of the files that it can have, the operations on that name report it.
    return [None] * len(there) if any(one is not None and not one for one in there) else there


def groups(history: History, places: NamePlaces) -> list[OperationGroup]:
    """Return the groups of a workload. First come groups whose operations change the same names. Then come larger
    groups, whose operations share files or directories; these groups have more suspects."""
    steps = [step for number in range(1, len(places.changes)) if (step := _step(history, places, number)) is not None]
    by_name: Mapping[int, set[object]] = {step.number: set(places.changes[step.number]) for step in steps}
    by_thing = {step.number: by_name[step.number] | _shared(places, step) for step in steps}
    wanted: dict[tuple[int, ...], list[_NameStep]] = {}
    for keys in (by_name, by_thing):
        for numbers in _chained(keys):
            if len(numbers) > 1:
                wanted[numbers] = [step for step in steps if step.number in numbers]
    made = [_group(history, places, several) for several in wanted.values()]
    return [group for group in made if group.is_judged]


def _group(history: History, places: NamePlaces, steps: Sequence[_NameStep]) -> OperationGroup:
    """Return the group of the operations ``steps``. If that group has too many states, return a smaller group. The
    smaller group leaves out simple operations, which only make or remove one name, if no other operation changes that
    name."""
    group = OperationGroup(history, places, steps)
    fewer = [step for step in steps if not _stands_alone(history, places, step)]
    return group if group.is_judged or len(fewer) < 2 else OperationGroup(history, places, fewer)


def _stands_alone(history: History, places: NamePlaces, step: _NameStep) -> bool:
    is_directory = step.thing is not None and history.things[step.thing].kind is FileKind.DIRECTORY
    is_simple = step.act is _Act.REMOVE or (step.act is _Act.MAKE and not is_directory)
    return is_simple and places.changers(step.place) == {step.number}


def _shared(places: NamePlaces, step: _NameStep) -> set[object]:
    """Return the names that an operation depends on without changing them. These are all other names of its file and of
    its directories. If the operation removes or replaces a directory, they include the names in that directory."""
    things = {step.place[0], *(() if step.old is None else (step.old[0],))}
    if step.thing is not None:
        things.add(step.thing)
    shared: set[object] = {place for thing in things for place in places.of(thing)}
    if step.act is _Act.EXCHANGE:
        shared |= {
            place for thing in places.changes[step.number].values() if thing is not None for place in places.of(thing)
        }
    if step.act in (_Act.REMOVE_DIRECTORY, _Act.RENAME):
        gone = {thing for place in (step.place, step.old) if place for thing in places.bearers.get(place, [])}
        shared |= {place for place in places.bearers if place[0] in gone}
    return shared


def _chained(keys: Mapping[int, set[object]]) -> list[tuple[int, ...]]:
    """Divide the numbers into sets. ``keys`` has the keys of each number. Two numbers are in one set if they have a key
    in common, or if a chain of such numbers leads from one to the other."""
    parts: list[tuple[set[int], set[object]]] = []
    for number, own in keys.items():
        numbers, together = {number}, set(own)
        for part in [part for part in parts if part[1] & together]:
            parts.remove(part)
            numbers |= part[0]
            together |= part[1]
        parts.append((numbers, together))
    return [tuple(sorted(numbers)) for numbers, _keys in parts]


_RENAMES = {Replacing.REPLACE: _Act.RENAME, Replacing.REFUSE: _Act.MOVE, Replacing.EXCHANGE: _Act.EXCHANGE}


def _step(history: History, places: NamePlaces, number: int) -> _NameStep | None:
    if not places.changes[number]:
        return None
    operation = history.operations[number - 1]
    before, after = history.steps[number - 1].names, history.steps[number].names
    match operation:
        case ops.Rename(old, new, replacing):
            return _NameStep(number, _RENAMES[replacing], place_of(before, new), before[old], place_of(before, old))
        case ops.Link(_old, new):
            is_first = not history.steps[number - 1].inodes[after[new]].links
            return _NameStep(number, _Act.MAKE if is_first else _Act.LINK, place_of(before, new), after[new])
        case ops.Unlink(path):
            return _NameStep(number, _Act.REMOVE, place_of(before, path))
        case ops.Rmdir(path):
            return _NameStep(number, _Act.REMOVE_DIRECTORY, place_of(before, path))
        case (
            ops.Create(path)
            | ops.Mkdir(path)
            | ops.Symlink(_, path)
            | ops.Mknod(path)
            | ops.Write(path)
            | ops.CopyRange(_, path)
            | ops.Reflink(_, path)
        ):
            return _NameStep(number, _Act.MAKE, place_of(before, path), after[path])
    raise ValueError(f"an operation on names that is not known: {operation}")
