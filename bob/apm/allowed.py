"""Decide whether a persistence model allows an observed crash state. A *clause* is one promise of the model. A *cell*
is a name, a size, a piece of contents or an attribute. A *micro-operation* puts a value into one cell; it persists as a
whole or not at all. A *reading* of a cell is one explanation of the value that the cell shows: which micro-operations
persisted, and which did not. A *constraint* is all readings of one cell.

A set of micro-operations is *closed* if it has everything that its members need by the clauses of the model. The model
allows the observation if, for some closed set, every cell has a reading that is true.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from bob.apm.clauses import OWN_FIRST, Clause, without_exception
from bob.apm.dependencies import Edge, Graph, inverted
from bob.apm.micro import AttributeCell, DataCell, MicroKind, MicroOperation, NameCell, SizeCell, Workings
from bob.apm.readings import CellReading, Constraint, ObservationReader
from bob.claim.property.rules import quoted
from bob.observe.observation import Node, Observation

MOST_ASKED = 10_000  # questions (times and clauses) that bob asks to find the clauses that forbid a tree

NodePresence = dict[int, bool]


@dataclass(frozen=True, slots=True)
class Conflict:
    """A set of ``clauses`` (promises of a model) that together forbid an observation. If there is only one clause, the
    observation refutes it. If that clause is about two changes, it says that the first change persists only if the
    second does. But in the observation the first change persisted, and the second is missing. ``there`` is a node of
    the first change in the dependency graph (:class:`Graph`), and ``missing`` is one of the second change. If instead a
    single cell breaks the clause, ``about`` names the cell, and both nodes stay None."""

    clauses: frozenset[Clause]
    there: int | None = None
    missing: int | None = None
    about: str = ""


class Implications:
    """The consequences of facts about the nodes of the dependency graph, in a model with the clauses ``promised``. (A
    node stands for a micro-operation, for example; :mod:`bob.apm.dependencies`.) If a node persisted, so did all nodes
    that it needs. If a node did not persist, neither did the nodes that need it."""

    def __init__(self, graph: Graph, promised: Set[Clause]) -> None:
        self.graph = graph
        self._promised = promised
        self._needs = graph.needs(promised)
        self._needed_by = inverted(self._needs)

    def is_allowed(self, constraints: Iterable[Constraint], returned: int, most: int | None = None) -> bool:
        """Return whether the model allows a crash state where at least one reading of each of the ``constraints`` is
        true. ``returned`` is the number of operations that had returned before the crash. Raises Undecided if the
        search takes more than ``most`` steps."""
        usable = [
            _weakest([one for one in each.readings if one.breaks.isdisjoint(self._promised)]) for each in constraints
        ]
        known: NodePresence = {}
        return (
            all(usable)
            and self.force(known, at_time(self.graph, returned))
            and self._search(known, sorted(usable, key=len), most)
        )

    def force(self, known: NodePresence, reading: CellReading) -> bool:
        """Add to ``known`` what a reading of a cell says, and all that follows from it. ``known`` maps graph nodes to
        True (persisted) or False. Return False if that contradicts ``known``."""
        return all(_follow(known, node, self._needs, value=True) for node in reading.there) and all(
            _follow(known, node, self._needed_by, value=False)
            for missing in (reading.missing, reading.lost)
            for node in missing
        )

    def is_possible(self, known: NodePresence, reading: CellReading) -> bool:
        """Return whether a reading of a cell agrees with ``known``, which maps graph nodes to True (persisted) or
        False. The caller must have added to ``known`` all that follows from its facts."""
        return not any(known.get(node) is False for node in reading.there) and not any(
            known.get(node) is True for missing in (reading.missing, reading.lost) for node in missing
        )

    def _search(self, known: NodePresence, choices: Sequence[Sequence[CellReading]], most: int | None) -> bool:
        # A stack in place of recursion: a file full of unknown bytes has a cell with several readings every 16 bytes.
        under_way: list[Iterator[tuple[NodePresence, int]]] = [iter([(known, 0)])]
        steps = 0
        while under_way:
            steps += 1
            if most is not None and steps > most:
                raise Undecided
            if (step := next(under_way[-1], None)) is None:
                under_way.pop()
                continue
            now, at = step
            while at < len(choices) and len(choices[at]) == 1 and self.force(now, choices[at][0]):
                at += 1
            if at == len(choices):
                return True
            if len(choices[at]) > 1:
                under_way.append(self._tried(now, choices[at], at + 1))
        return False

    def _tried(
        self, known: NodePresence, readings: Sequence[CellReading], then: int
    ) -> Iterator[tuple[NodePresence, int]]:
        for reading in readings:
            tried = dict(known)
            if self.force(tried, reading):
                yield tried, then


class Undecided(Exception):
    """An error: bob would need too many steps to decide whether a model allows an observation."""


class TreeOracle:
    """An oracle that says whether a model allows a tree which a program's crash may have left. It gives up after
    ``most`` steps. ``outputs[k]`` is all output that the program had written when operation k had returned."""

    def __init__(self, graph: Graph, promised: Set[Clause], outputs: Sequence[bytes], most: int = 2_000) -> None:
        self._implications, self._outputs, self._most = Implications(graph, promised), outputs, most
        self._graph, self._promised = graph, promised
        # No inode numbers: file systems reuse those of removed files, so names and contents must tell files apart. No
        # attributes: some states of models lack them. No hidden names: bob cannot see names in missing directories.
        self._reader = ObservationReader(graph.workings, {}, attributes=False, hidden=False)

    def allows(self, output: bytes, tree: Mapping[str, Node]) -> bool | None:
        """Return whether the model allows that a crash leaves ``tree`` when the program has written exactly ``output``.
        Return None if the search takes too many steps."""
        constraints = self._seen(tree)
        try:
            return any(
                self._implications.is_allowed(constraints, returned, self._most)
                for returned in range(len(self._graph.returns))
                if self._outputs[returned] == output
            )
        except Undecided:
            return None

    def clauses(self, output: bytes, tree: Mapping[str, Node]) -> frozenset[Clause]:
        """Return a minimal set of the model's clauses that together forbid ``tree`` when the program has written
        exactly ``output``. Return the empty set if that takes too many steps."""
        times = [returned for returned, words in enumerate(self._outputs) if words == output]
        if len(times) * len(_tested(self._graph, self._promised)) > MOST_ASKED:
            return frozenset()
        try:
            return forbidding(self._graph, self._promised, self._seen(tree), *times, most=self._most).clauses
        except Undecided:
            return frozenset()

    def _seen(self, tree: Mapping[str, Node]) -> tuple[Constraint, ...]:
        return self._reader.read(Observation(True, None, dict(tree)))


def at_time(graph: Graph, returned: int) -> CellReading:
    """Return a reading that stands for the time of a crash: the first ``returned`` operations had returned, and the
    other operations had not."""
    return CellReading(frozenset(graph.returns[: returned + 1]), frozenset(graph.returns[returned + 1 :]))


def facts(graph: Graph, constraints: Sequence[Constraint], returned: int) -> tuple[NodePresence, dict[Clause, str]]:
    """Return which graph nodes have persisted and which have not, as far as the observation proves it without a clause
    of a model. Also return a map. It maps a clause to the name of a cell if every possible reading of this cell
    breaks the clause."""
    hard = Implications(graph, frozenset())
    known: NodePresence = {}
    hard.force(known, at_time(graph, returned))
    broken: dict[Clause, str] = {}
    unsettled = list(constraints)
    while True:
        later = []
        for constraint in unsettled:
            possible = [reading for reading in constraint.readings if hard.is_possible(known, reading)]
            if possible:
                hard.force(known, _common(possible))
                for clause in _common(possible).breaks:
                    broken.setdefault(clause, constraint.about)
            if len(possible) != 1:
                later.append(constraint)
        if len(later) == len(unsettled):
            return known, broken
        unsettled = later


def refuted(graph: Graph, promised: Set[Clause], constraints: Sequence[Constraint], returned: int) -> list[Conflict]:
    """Return a conflict for each of the ``promised`` clauses that the observation refutes by itself. To refute a
    clause, an observation must leave no doubt which of the clause's changes persisted.

    If only several clauses together forbid the observation, the result is empty; :func:`forbidding` finds these
    clauses."""
    known, broken = facts(graph, constraints, returned)
    found = {
        clause: Conflict(frozenset({clause}), about=about) for clause, about in broken.items() if clause in promised
    }
    for edge in graph.edges:
        # All that follows from the facts in every model is known already, so a conflict shows at a single edge.
        if known.get(edge.node) is True and known.get(edge.needs) is False:
            # If an edge has OWN_FIRST and an order, only OWN_FIRST is refuted: other edges test the order by itself.
            single = edge.clauses & {OWN_FIRST} or edge.clauses
            if len(single) == 1 and edge.clauses <= promised and not single & found.keys():
                found |= {clause: Conflict(single, *_shown(graph, known, edge)) for clause in single}
    return list(found.values())


def forbidding(
    graph: Graph, promised: Set[Clause], constraints: Sequence[Constraint], *returned: int, most: int | None = None
) -> Conflict:
    """Return a minimal set of the ``promised`` clauses that together forbid an observation. ``returned`` has the
    possible numbers of operations that had returned before the crash. The clauses forbid the observation for each of
    these numbers. Raises Undecided if a search takes more than ``most`` steps (:meth:`Implications.is_allowed`)."""
    least = _tested(graph, promised)
    for clause in sorted(least, key=lambda clause: clause.name):
        # Drop a clause for good if the other clauses forbid the observation without it.
        fewer = Implications(graph, least - {clause})
        if not any(fewer.is_allowed(constraints, at, most) for at in returned):
            least.discard(clause)
    return Conflict(frozenset(least))


def _tested(graph: Graph, promised: Set[Clause]) -> set[Clause]:
    tested = graph.clauses
    return {clause for clause in promised if without_exception(clause) in tested}


def _weakest(readings: list[CellReading]) -> list[CellReading]:
    kept: list[CellReading] = []
    for one in readings:
        if not any(_asks_less(other, one) for other in kept):
            kept = [*(other for other in kept if not _asks_less(one, other)), one]
    return kept


def _asks_less(one: CellReading, other: CellReading) -> bool:
    return one.there <= other.there and one.missing <= other.missing and one.lost <= other.lost


def _common(readings: Sequence[CellReading]) -> CellReading:
    first, *others = readings
    return CellReading(
        first.there.intersection(*(one.there for one in others)),
        first.missing.intersection(*(one.missing for one in others)),
        first.lost.intersection(*(one.lost for one in others)),
        first.breaks.intersection(*(one.breaks for one in others)),
    )


def _shown(graph: Graph, known: NodePresence, conflict: Edge) -> tuple[int, int]:
    """Return two nodes that explain a ``conflict`` to people. The conflict is an edge from a node that persisted to a
    missing node. If one of the two is a helper node, which stands for a group of micro-operations, return a member of
    the group in its place."""
    there, missing = conflict.node, conflict.needs
    for edge in graph.edges:
        if not edge.clauses:
            if edge.needs == there and not graph.is_shown(there) and known.get(edge.node) is True:
                there = edge.node
            if edge.node == missing and not graph.is_shown(missing) and known.get(edge.needs) is False:
                missing = edge.needs
    return there, missing


def _follow(known: NodePresence, node: int, along: Sequence[Sequence[int]], *, value: bool) -> bool:
    stack = [node]
    while stack:
        at = stack.pop()
        if at in known:
            if known[at] is not value:
                return False
            continue
        known[at] = value
        stack.extend(along[at])
    return True


def said(taken: Workings, operation: MicroOperation) -> str:
    """Return what a micro-operation changes, in words such as ``bytes 0 to 512 of /a`` or ``the name b in /d``.
    ``taken`` has all micro-operations of the workload."""
    things = taken.history.things
    match operation.cell:
        case DataCell(thing, start, stop):
            return f"bytes {start:,} to {stop:,} of {min(things[thing].names)}"
        case SizeCell(thing):
            return f"the size {int(operation.value or 0):,} B of {min(things[thing].names)}"
        case AttributeCell(thing, name):
            return f"the attribute {name} of {min(things[thing].names)}"
        case NameCell((directory, name)):
            what = "the removal of name" if operation.kind is MicroKind.DELETE_DIR_ENTRY else "the name"
            return f"{what} {name} in {min(things[directory].names)}"


def what_shows(graph: Graph, conflict: Conflict) -> str:
    if conflict.there is None or conflict.missing is None:
        return f"seen in {conflict.about}" if conflict.about else "forbidden by several clauses together"
    missing = _part_words(graph, conflict.missing)
    if conflict.there >= len(graph.workings.operations):
        return f"{_part_words(graph, conflict.there)} had returned, {missing} is not there"
    return f"{_part_words(graph, conflict.there)} is there, {missing} is not"


def _part_words(graph: Graph, node: int) -> str:
    operations = graph.workings.operations
    if node < len(operations):
        operation = operations[node]
        return f"{said(graph.workings, operation)} of {quoted(graph.workings.history, operation.number)}"
    number = graph.operation(node)
    if number <= len(graph.workings.history.operations):
        return quoted(graph.workings.history, number)
    return "the final sync of the workload"
