"""Under which circumstances a workload tries a clause.

Most orders are broken by what the kernel writes when nobody asks, or when one file is asked for
(docs/design.md, section 4). An order that was not tried under both has hardly been tried. And a sync that takes the
overwrites of other files along may do so since they are in its transaction; those through a mapping are in none.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from bob.apm.clauses import Clause, Durable, Ordered
from bob.apm.dependencies import Graph
from bob.apm.micro import Workings
from bob.claim.property.vocabulary import What
from bob.workload.kinds import Change, Relation, relation
from bob.workload.operations import Fsync, How, Msync, Operation, Workload, Write


class Tried(StrEnum):
    """A circumstance."""

    NATURAL = "with natural writeback"
    SYNCED = "with a sync of the later one alone"
    MAPPED = "with a write through a mapping"


def needed(clause: Clause) -> frozenset[Tried]:
    """Under which circumstances a clause must have been tried. Who syncs a file alone asks for all of that file."""
    match clause:
        case Ordered(_before, _after, Relation.SAME_FILE):
            return frozenset({Tried.NATURAL})
        case Ordered():
            return frozenset({Tried.NATURAL, Tried.SYNCED})
        case Durable(_call, What.OTHER_OVERWRITES):
            return frozenset({Tried.MAPPED})
    return frozenset()


def how_tried(workload: Workload, graph: Graph) -> Mapping[Clause, frozenset[Tried]]:
    """For each clause that depends on them, under which circumstances ``workload`` tries it."""
    taken, found = graph.workings, _mapped(workload, graph)
    for at, after in enumerate(taken.changes):
        tried = _circumstances(workload, taken, after)
        for before in taken.changes[:at]:
            clause = Ordered(before.kind, after.kind, relation(before, after))
            found[clause] = found.get(clause, frozenset()) | tried
    return found


def _mapped(workload: Workload, graph: Graph) -> dict[Clause, frozenset[Tried]]:
    """The clauses of durability that a write through a mapping puts to the test."""
    mapped = {
        number
        for number, operation in enumerate(workload.operations, start=1)
        if isinstance(operation, Write) and operation.how is How.MMAP
    }
    return {
        clause: frozenset({Tried.MAPPED})
        for edge in graph.edges
        for clause in edge.clauses
        if isinstance(clause, Durable) and graph.workings.operations[edge.needs].number in mapped
    }


def _circumstances(workload: Workload, taken: Workings, later: Change) -> frozenset[Tried]:
    tried = {Tried.NATURAL} if workload.finish.natural else set()
    operations = (*workload.operations, *workload.finish.operations)
    for number, operation in enumerate(operations[later.number - 1 :], start=later.number):
        step = taken.history.steps[min(number, len(taken.history.steps) - 1)]
        path = _synced(operation)
        if step.names.get(path, step.handles.get(path)) in later.things | later.directories:
            tried.add(Tried.SYNCED)
    return frozenset(tried)


def _synced(operation: Operation) -> str:
    """What an operation syncs by itself."""
    match operation:
        case Fsync(path) | Msync(path):
            return path
        case Write(path, _offset, _length, how) if how in (How.SYNC, How.DSYNC):
            return path
    return ""
