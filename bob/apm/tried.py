"""Under which circumstances a workload tries an order of two changes.

Most orders are broken by what the kernel writes when nobody asks, or when one file is asked for
(docs/design.md, section 4). An order that was not tried under both has hardly been tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from bob.apm.clauses import Clause, Ordered
from bob.apm.micro import Workings
from bob.workload.kinds import Change, relation
from bob.workload.operations import Fsync, How, Msync, Operation, Workload, Write


class Tried(StrEnum):
    """A circumstance."""

    NATURAL = "with natural writeback"
    SYNCED = "with a sync of the later one alone"


def how_tried(workload: Workload, taken: Workings) -> Mapping[Clause, frozenset[Tried]]:
    """For each order that ``workload`` has, under which circumstances it tries it."""
    found: dict[Clause, frozenset[Tried]] = {}
    for at, after in enumerate(taken.changes):
        tried = _circumstances(workload, taken, after)
        for before in taken.changes[:at]:
            clause = Ordered(before.kind, after.kind, relation(before, after))
            found[clause] = found.get(clause, frozenset()) | tried
    return found


def _circumstances(workload: Workload, taken: Workings, later: Change) -> frozenset[Tried]:
    tried = {Tried.NATURAL} if workload.finish.natural else set()
    operations = (*workload.operations, *workload.finish.operations)
    for number, operation in enumerate(operations[later.number - 1 :], start=later.number):
        step = taken.history.steps[min(number, len(taken.history.steps) - 1)]
        path = _synced(operation)
        if path in step.names and step.names[path] in later.things | later.directories:
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
