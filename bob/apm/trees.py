"""Directory trees: what a set of micro-operations leaves, what a model allows, and what was found after a crash, in one
form.

A model allows what the dependency-closed sets of micro-operations leave, whenever the crash comes. Where data may be
missing while the file is long enough already, the hole is shown as zeros, and where the model allows stale contents, as
these: those of the disk, and those that the file itself had before it was cut. What a model that does not even promise
intact names or contents allows beside that is not enumerated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace

from bob.apm.allowed import Implications, NodePresence
from bob.apm.clauses import Clause, Fill
from bob.apm.dependencies import Graph
from bob.apm.holes import Hole, HoleFill, hole, stale_at
from bob.apm.micro import AttributeCell, DataCell, NameCell, SizeCell, TreeCell, Value, Workings
from bob.apm.readings import CellReading
from bob.claim.property.sightings import ROOT, NamePlace
from bob.observe.observation import Node, Observation
from bob.workload.history import MODE, OWNER, TIME, FileKind


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """What bears a name. ``content`` is a file's, all of its size; ``same`` the first name of the same file.

    In what a model allows, ``thing`` is its identity in the history, ``mode`` the permission bits, and ``owner`` user
    and group. None of these makes two entries differ: an observation has others, or none.
    """

    kind: str
    content: bytes = b""
    target: str = ""
    xattrs: tuple[tuple[str, bytes], ...] = ()
    same: str = ""
    thing: int = field(default=0, compare=False)
    mode: int = field(default=0, compare=False)
    owner: tuple[int, int] = field(default=(0, 0), compare=False)


ModelTree = tuple[tuple[str, ModelEntry], ...]
"""A directory tree: (path, what is there), by path; without the root."""


def trees(taken: Workings, promised: Set[Clause], there: Set[int]) -> Iterator[ModelTree]:
    """The trees that a set of micro-operations leaves: up to three, by what holes may show."""
    shown = {taken.operations[at].cell: at for at in sorted(there)}
    leaving = Remnant(taken, promised, there, shown, HoleFill.ZEROS)
    found = {leaving.tree(): None}
    if leaving.has_stale:
        others = (Remnant(taken, promised, there, shown, filling) for filling in (HoleFill.STALE, HoleFill.OWN))
        found.update((other.tree(), None) for other in others)
    yield from found


def first_names(listing: Mapping[str, int]) -> dict[int, str]:
    """The first path of each thing in a listing by path."""
    first: dict[int, str] = {}
    for path, thing in listing.items():
        first.setdefault(thing, path)
    return first


def nodes(tree: ModelTree) -> Mapping[str, Node]:
    """A tree that a model allows, as if it had been found: two names of one thing have the same number of an inode,
    which is the thing's identity, plus one. The root is not in it."""
    names = Counter(entry.thing for _path, entry in tree)
    return {
        path: Node(
            entry.kind,
            entry.thing + 1,
            names[entry.thing],
            len(entry.content),
            entry.content,
            entry.target,
            dict(entry.xattrs),
            mode=entry.mode,
            uid=entry.owner[0],
            gid=entry.owner[1],
        )
        for path, entry in tree
    }


def observed_tree(observation: Observation) -> ModelTree:
    """What was found after a crash, as a tree of the same form."""
    tree = observation.tree or {}
    first: dict[int, str] = {}
    for path, node in sorted(tree.items()):
        if node.kind == FileKind.FILE and node.inode:
            first.setdefault(node.inode, path)
    return tuple(
        (
            path,
            ModelEntry(
                node.kind,
                node.content[: node.size].ljust(node.size, b"\0") if node.kind == FileKind.FILE else b"",
                node.target,
                tuple(sorted(node.xattrs.items())),
                first.get(node.inode, path) if node.kind == FileKind.FILE else "",
            ),
        )
        for path, node in sorted(tree.items())
        if path != "/"
    )


@dataclass(frozen=True, slots=True)
class AllowedTrees:
    """The distinct trees that a model allows; ``complete`` is False where there are more than were asked for."""

    trees: tuple[ModelTree, ...]
    complete: bool


def allowed_trees(graph: Graph, promised: Set[Clause], limit: int) -> AllowedTrees:
    """Up to ``limit`` distinct trees, from at most as many sets of micro-operations."""
    found: dict[ModelTree, None] = {}
    for count, there in enumerate(closed_sets(graph, promised)):
        if count >= limit:
            return AllowedTrees(tuple(found), complete=False)
        for tree in trees(graph.workings, promised, there):
            found.setdefault(tree)
    return AllowedTrees(tuple(found), complete=True)


def dependencies(graph: Graph, promised: Set[Clause]) -> tuple[frozenset[int], ...]:
    """For each micro-operation all others that it needs, directly or not (indexes)."""
    implications, count = Implications(graph, promised), len(graph.workings.operations)
    needed = []
    for at in range(count):
        known: NodePresence = {}
        implications.force(known, CellReading(there=frozenset({at})))
        needed.append(frozenset(node for node in known if node < count and node != at))
    return tuple(needed)


def closed_sets(graph: Graph, promised: Set[Clause]) -> Iterator[frozenset[int]]:
    """Every dependency-closed set of micro-operations, the empty one first."""
    implications, count = Implications(graph, promised), len(graph.workings.operations)
    stack: list[tuple[int, NodePresence]] = [(0, {})]
    while stack:
        at, known = stack.pop()
        while at < count and at in known:
            at += 1
        if at == count:
            yield frozenset(node for node in range(count) if known[node])
            continue
        # What only implications tie together can always be completed: by leaving out all that is open.
        for reading in (CellReading(there=frozenset({at})), CellReading(missing=frozenset({at}))):
            then = dict(known)
            implications.force(then, reading)
            stack.append((at + 1, then))


class Remnant:
    """What ``there`` leaves; ``shown`` has the micro-operation that each cell shows. ``filling`` is what holes show.
    What is asked of names needs the cells of names only, and so on."""

    def __init__(
        self, taken: Workings, promised: Set[Clause], there: Set[int], shown: Mapping[TreeCell, int], filling: HoleFill
    ) -> None:
        self._taken, self._promised, self._there, self._shown, self._filling = taken, promised, there, shown, filling
        self.has_stale = False
        """Whether a hole was met that may show stale contents."""
        self._inside: dict[int, list[NamePlace]] = {}
        for place in taken.places.bearers:
            self._inside.setdefault(place[0], []).append(place)

    def tree(self) -> ModelTree:
        """All of it."""
        found = self.listing()
        first = first_names(found)
        return tuple((path, self._entry(thing, first[thing])) for path, thing in found.items())

    def listing(self) -> dict[str, int]:
        """What each path leads to, by path; without the root."""
        found: dict[str, int] = {}
        self._list(ROOT, "", found, frozenset({ROOT}))
        return dict(sorted(found.items()))

    def _list(self, directory: int, path: str, found: dict[str, int], above: frozenset[int]) -> None:
        for place in self._inside.get(directory, ()):
            if (thing := self._bearer(place)) is None:
                continue
            found[f"{path}/{place[1]}"] = thing
            if self._taken.history.things[thing].kind is FileKind.DIRECTORY and thing not in above:
                self._list(thing, f"{path}/{place[1]}", found, above | {thing})

    def _bearer(self, place: NamePlace) -> int | None:
        value = self._value(NameCell(place), self._taken.places.initially(place))
        assert not isinstance(value, bytes)
        return value

    def _entry(self, identity: int, first: str) -> ModelEntry:
        entry = self.without_content(identity)
        if entry.kind != FileKind.FILE:
            return entry
        inode = self._taken.history.steps[0].inodes.get(identity)
        initial = b"" if inode is None else inode.content
        size = self._value(SizeCell(identity), len(initial))
        assert isinstance(size, int)
        content = bytearray(initial.ljust(size, b"\0"))
        for cell in self._taken.pieces.get(identity, ()):
            if cell.start < size:
                content[cell.start : cell.stop] = self._piece(cell, initial)
        return replace(entry, content=bytes(content[:size]), same=first)

    def without_content(self, identity: int) -> ModelEntry:
        """A thing but for what is in it, and which of its names is the first."""
        thing = self._taken.history.things[identity]
        inode = self._taken.history.steps[0].inodes.get(identity)
        before = {} if inode is None else dict(inode.xattrs)
        names = {cell.name for cell in self._shown if isinstance(cell, AttributeCell) and cell.thing == identity}
        names -= {MODE, OWNER, TIME}  # a tree does not tell of these
        values = {name: self._value(AttributeCell(identity, name), before.get(name)) for name in {*before, *names}}
        xattrs = tuple(sorted((name, value) for name, value in values.items() if isinstance(value, bytes)))
        mode, owner = self._status(identity)
        target = "" if thing.kind is FileKind.FILE else thing.target
        return ModelEntry(thing.kind.value, b"", target, xattrs, thing=identity, mode=mode, owner=owner)

    def _status(self, identity: int) -> tuple[int, tuple[int, int]]:
        """The permission bits and the owner of a thing: as it was made, where no change of them is there."""
        made = max(self._taken.history.things[identity].born, 0)
        attributes = self._taken.history.steps[made].inodes[identity].attributes
        mode = self._value(AttributeCell(identity, MODE), attributes[MODE])
        owner = self._value(AttributeCell(identity, OWNER), attributes[OWNER])
        assert isinstance(mode, bytes) and isinstance(owner, bytes)
        uid, gid = map(int, owner.split(b":"))
        return int(mode, 8), (uid, gid)

    def _piece(self, cell: DataCell, initial: bytes) -> bytes:
        shown = self._shown.get(cell, -1)
        is_cut = shown >= 0 and self._taken.is_cut(shown)
        if shown >= 0 and not is_cut:
            value = self._taken.operations[shown].value
            assert isinstance(value, bytes)
            return value
        if shown < 0 and cell.start < len(initial):
            return initial[cell.start : cell.stop]
        length, missing = cell.stop - cell.start, hole(self._taken, cell, since=shown)
        may_be = self._may_be(missing, self._there)
        if not any(may_be.values()):  # an earlier size cannot be seen, and need not be there
            may_be = self._may_be(missing, frozenset(sorted(missing.own & self._there)[-1:]))
        may_be_zeros = is_cut or may_be[Fill.ZEROS]
        if missing.kind is None or not may_be[Fill.STALE]:
            return bytes(length)
        self.has_stale = True
        if may_be_zeros and self._filling is HoleFill.ZEROS:
            return bytes(length)
        own = self._before_cut(cell, initial) if is_cut and self._filling is HoleFill.OWN else None
        return stale_at(cell.start, length) if own is None else own

    def _before_cut(self, cell: DataCell, initial: bytes) -> bytes | None:
        """What a piece that is cut off had before; None if nothing."""
        there = [at for at in self._taken.writers[cell] if at in self._there and not self._taken.is_cut(at)]
        if there:
            value = self._taken.operations[there[-1]].value
            assert isinstance(value, bytes)
            return value
        known = initial[cell.start : cell.stop]
        return known.ljust(cell.stop - cell.start, b"\0") if known else None

    def _may_be(self, missing: Hole, there: Set[int]) -> dict[Fill, bool]:
        return {fill: missing.breaks(fill, there).isdisjoint(self._promised) for fill in Fill}

    def _value(self, cell: TreeCell, initially: Value) -> Value:
        return self._taken.operations[self._shown[cell]].value if cell in self._shown else initially
