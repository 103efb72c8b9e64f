"""The crash states that a model allows for a workload, as directory trees.

They are what the dependency-closed sets of micro-operations leave, whenever the crash comes. Where data may be missing
while the file is long enough already, the hole is shown as zeros, and as stale contents where the model allows these.
What a model that does not even promise intact names or contents allows beside that is not enumerated.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

from bob.apm.allowed import Implications, Known
from bob.apm.clauses import Clause
from bob.apm.dependencies import Graph
from bob.apm.readings import Reading
from bob.apm.trees import Tree, trees


@dataclass(frozen=True, slots=True)
class Allowed:
    """The distinct trees that a model allows; ``complete`` is False where there are more than were asked for."""

    trees: tuple[Tree, ...]
    complete: bool


def allowed_trees(graph: Graph, promised: Set[Clause], limit: int) -> Allowed:
    """Up to ``limit`` distinct trees, from at most as many sets of micro-operations."""
    found: dict[Tree, None] = {}
    for count, there in enumerate(closed_sets(graph, promised)):
        if count >= limit:
            return Allowed(tuple(found), complete=False)
        for tree in trees(graph.workings, promised, there):
            found.setdefault(tree)
    return Allowed(tuple(found), complete=True)


def dependencies(graph: Graph, promised: Set[Clause]) -> tuple[frozenset[int], ...]:
    """For each micro-operation all others that it needs, directly or not (indexes)."""
    implications, count = Implications(graph, promised), len(graph.workings.operations)
    needed = []
    for at in range(count):
        known: Known = {}
        implications.force(known, Reading(there=frozenset({at})))
        needed.append(frozenset(node for node in known if node < count and node != at))
    return tuple(needed)


def closed_sets(graph: Graph, promised: Set[Clause]) -> Iterator[frozenset[int]]:
    """Every dependency-closed set of micro-operations, the empty one first."""
    implications, count = Implications(graph, promised), len(graph.workings.operations)
    stack: list[tuple[int, Known]] = [(0, {})]
    while stack:
        at, known = stack.pop()
        while at < count and at in known:
            at += 1
        if at == count:
            yield frozenset(node for node in range(count) if known[node])
            continue
        # What only implications tie together can always be completed: by leaving out all that is open.
        for reading in (Reading(there=frozenset({at})), Reading(missing=frozenset({at}))):
            then = dict(known)
            implications.force(then, reading)
            stack.append((at + 1, then))
