"""The dependencies between micro-operations under one model, as a graph. A *micro-operation* persists as a whole or not
at all. A model is a set of clauses. A *clause* is one promise about what persists. With an edge between each pair of
changes, the graph would grow with the square of the workload's length. Instead it has *chains* of helper nodes, and
grows linearly. Changes form a class if the later changes and syncs depend on them in the same way. Each node of a chain
stands for "all changes of this class so far", and needs the node before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from enum import Enum
from functools import lru_cache, partial

from bob.apm import clauses
from bob.apm.clauses import Clause
from bob.apm.dependencies import Edge, Graph, GraphBuilder, SyncCall
from bob.apm.micro import MicroOperation, NameCell, Workings
from bob.claim.property.vocabulary import Call, What
from bob.workload.kinds import ChangeKind, OperationChange, OperationScope, Relation, relation
from bob.workload.operations import Workload

_OF_ALL = (
    What.OTHER_OVERWRITES,
    What.OTHER_APPENDS,
    What.OTHER_NAMES,
    What.OTHER_ATTRIBUTES,
)  # of any file


def graph_under(workload: Workload, taken: Workings, promised: Set[Clause]) -> Graph:
    """Return the graph of the dependencies in a model that promises exactly ``promised``. For this one model, the
    dependencies are the same as in the graph of :mod:`bob.apm.dependencies`. But the edges do not name clauses.
    ``taken`` has the micro-operations of the workload."""
    return _PromisedGraph(workload, taken, promised).graph()


class _PromisedGraph(GraphBuilder):
    def __init__(self, workload: Workload, taken: Workings, promised: Set[Clause]) -> None:
        super().__init__(workload, taken)
        self._promised = frozenset(promised)
        self._unless_synced = frozenset(map(clauses.without_exception, promised))

    def _edge(self, node: int, needs: int, *given: Clause) -> None:
        if self._unless_synced.issuperset(given):
            self._edges.append(Edge(node, needs))

    def _may_be_promised(self, clause: Clause) -> bool:
        return clause in self._promised

    def _link(self, before: int | None, new: int) -> int:
        if before is None:
            return new
        node = self._node()
        self._edge(node, new)
        self._edge(node, before)
        return node

    def _orders(self, later: Mapping[int, int], every: Mapping[int, int]) -> None:
        orders = self._promised, self._unless_synced
        of_logged = orders if clauses.OWN_FIRST in self._promised else tuple(map(clauses.kept_by_logs, orders))
        chains = _ChangeChains(self._unless_synced, {*orders, *of_logged})
        for index, change in enumerate(self._taken.changes):
            if index in later:
                those = of_logged if index in self._taken.logged else orders
                promised = those[0 if self._is_synced(change) else 1]
                means = None if index in self._taken.asked else self._taken.means(index)
                for node in chains.before(change, promised, means):
                    self._edge(later[index], node)
                chains.add(change, partial(self._link, new=every[index]))

    def _durable(self) -> None:
        waiting = _UnsyncedChanges()
        done = 0
        operations = self._taken.operations
        early = {begun for number, begun in self._taken.history.begun.items() if begun < number - 1}
        then: dict[int, _UnsyncedChanges] = {}
        for number in range(1, len(self._returns)):
            if number - 1 in early:
                then[number - 1] = waiting.copied()
            if (sync := self._sync(number)) is not None:
                asked = then.get(self._begun(number), waiting)
                for key in asked.asked_by(sync, self._unless_synced):
                    if clauses.Durable(sync.call, self._what(asked.like[key], sync)) in self._unless_synced:
                        self._edge(self._returns[number], asked.last[key])
                        waiting.drop(key, asked.last[key])
            while done < len(operations) and operations[done].number == number:
                own = operations[done]
                self._edge(self._returns[number], done, clauses.Durable(Call.RETURNED, self._what(own)))
                if sync is not None:
                    self._edge(self._returns[number], done, clauses.Durable(sync.call, self._what(own, sync)))
                key = self._class_of(own)
                waiting.take(key, own, self._about(own), self._link(waiting.last.get(key), done))
                done += 1

    def _class_of(self, operation: MicroOperation) -> tuple[object, ...]:
        """Return the class of a micro-operation, as a key of a dictionary. Every later sync treats all micro-operations
        of one class alike."""
        kind, cell = self._taken.changes[operation.change].kind, operation.cell
        if isinstance(cell, NameCell):
            return kind, operation.block is None, cell.place[0], self._taken.changes[operation.change].things
        return kind, operation.block is None, type(cell), cell.thing

    def _about(self, operation: MicroOperation) -> frozenset[int]:
        cell = operation.cell
        if isinstance(cell, NameCell):
            return self._taken.changes[operation.change].things | {cell.place[0]}
        return frozenset({cell.thing})


class _By(Enum):
    KIND = "nothing else"
    TOUCHED = "a file or directory that they are about, or whose names they change, or in which their file has a name"
    THING = "a file or directory that they are about"
    EXTENT = "all of these"


class _ChangeChains:
    """The chains of the changes so far. All changes in one chain are of the same kind. In some chains, the changes also
    have something else in common, such as one file (:class:`_By`). The last node of a chain stands for all changes in
    the chain."""

    def __init__(self, unless_synced: Set[Clause], every: Iterable[Set[Clause]]) -> None:
        self._unless_synced = unless_synced
        self._nodes: dict[tuple[ChangeKind, _By, object], int] = {}
        self._extents: dict[ChangeKind, dict[OperationScope, None]] = {}
        self._needed = {
            before: {
                by
                for after in ChangeKind
                for orders in every
                for means in (None, *(clauses.means_of(after, is_logged=is_logged) for is_logged in (False, True)))
                if (by := self._by(before, after, orders, means)) is not None
            }
            for before in ChangeKind
        }

    def add(self, change: OperationChange, link: Callable[[int | None], int]) -> None:
        for by in sorted(self._needed[change.kind], key=lambda one: one.name):
            for key in _keys(change, by):
                place = change.kind, by, key
                self._nodes[place] = link(self._nodes.get(place))
        self._extents.setdefault(change.kind, {})[_extent(change)] = None

    def before(self, change: OperationChange, promised: Set[Clause], means: clauses.Means | None) -> Iterator[int]:
        """Yield the chain nodes that ``change`` needs under the ``promised`` orders. ``means`` says how the file system
        writes the change, for example as a change of names. It is None if a call syncs the file or directory that
        changes."""
        for kind, extents in self._extents.items():
            by = self._by(kind, change.kind, promised, means)
            keys: Iterable[object] = () if by is None else _keys(change, by)
            if by is _By.EXTENT:
                related = _related(kind, change.kind, promised)
                keys = [one for one in extents if relation(one, change) in related]
            yield from (self._nodes[kind, by, key] for key in keys if by is not None and (kind, by, key) in self._nodes)

    def _by(
        self, before: ChangeKind, after: ChangeKind, promised: Set[Clause], means: clauses.Means | None
    ) -> _By | None:
        if (
            means is not None
            and (turn := clauses.InTurn(clauses.means_of(before), means)) in clauses.IN_TURN
            and turn in self._unless_synced
        ):
            return _By.KIND
        return _CHAINS.get(_related(before, after, promised), _By.EXTENT)


_CHAINS = {
    frozenset[Relation](): None,
    frozenset(Relation): _By.KIND,
    frozenset({Relation.SAME_FILE, Relation.SAME_DIRECTORY}): _By.TOUCHED,
    frozenset({Relation.SAME_FILE}): _By.THING,
}


@lru_cache(maxsize=1024)
def _related(before: ChangeKind, after: ChangeKind, promised: Set[Clause]) -> frozenset[Relation]:
    return frozenset(one for one in Relation if clauses.Ordered(before, after, one) in promised)


def _keys(change: OperationChange, by: _By) -> Iterable[object]:
    match by:
        case _By.KIND:
            return (None,)
        case _By.TOUCHED:
            return sorted(change.things | change.directories)
        case _By.THING:
            return sorted(change.things)
    return (_extent(change),)


def _extent(change: OperationChange) -> OperationScope:
    return OperationScope(change.things, change.directories)


class _UnsyncedChanges:
    """The micro-operations that no sync has persisted so far, in classes. For each class, there is a chain of helper
    nodes. ``last`` has, by the key of the class, the last node of the chain; it stands for all members of the class so
    far. ``like`` has one member of each class as an example."""

    def __init__(self) -> None:
        self.last: dict[tuple[object, ...], int] = {}
        self.like: dict[tuple[object, ...], MicroOperation] = {}
        self._about: dict[int, dict[tuple[object, ...], None]] = {}

    def take(self, key: tuple[object, ...], operation: MicroOperation, about: frozenset[int], node: int) -> None:
        self.last[key], self.like[key] = node, operation
        for thing in about:
            self._about.setdefault(thing, {})[key] = None

    def copied(self) -> _UnsyncedChanges:
        made = _UnsyncedChanges()
        made.last, made.like = dict(self.last), dict(self.like)
        made._about = {thing: dict(keys) for thing, keys in self._about.items()}
        return made

    def drop(self, key: tuple[object, ...], node: int) -> None:
        """Forget the class with the key ``key``, because a sync has persisted all its members up to ``node``. Do
        nothing if the class has got further members since then."""
        if self.last.get(key) == node:
            del self.last[key]

    def asked_by(self, sync: SyncCall, promised: Set[Clause]) -> list[tuple[object, ...]]:
        of_call = [what for what in clauses.WHATS if clauses.Durable(sync.call, what) in promised]
        if sync.thing is None or set(of_call) & set(_OF_ALL):
            return list(self.last) if of_call else []
        near = {sync.thing} | sync.parents if of_call else set()
        return [key for key in {key: None for thing in near for key in self._about.get(thing, ())} if key in self.last]
