"""Under which circumstances a workload tries a clause.

Most orders are broken by what the kernel writes when nobody asks, or when one file is asked for
(docs/design.md, section 4). An order that was not tried under both has hardly been tried. And a sync that takes the
overwrites of other files along may do so since they are in its transaction; those through a mapping are in none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

from bob.apm import asking
from bob.apm.clauses import DATA_KINDS, Clause, Durable, Fill, InTurn, Never, Ordered, Where, Whole, means_of
from bob.apm.dependencies import Graph
from bob.apm.micro import NameCell, SizeCell, Workings
from bob.claim.property.subjects import BLOCK_BYTES
from bob.claim.property.vocabulary import Unit, What
from bob.workload.kinds import Change, ChangeKind, Relation, relation
from bob.workload.operations import Fsync, How, Msync, Operation, Sync, Workload, Write


class Tried(StrEnum):
    """A circumstance."""

    NATURAL = "with natural writeback"
    SYNCED = "with a sync of the later one alone"
    ELSEWHERE = "with a sync of something else"
    EVERYTHING = "with a sync of everything"
    PART = "with a call that asks for a later part of it, into an open transaction"
    ONE_END = "with a sync of one of two directories"
    MAPPED = "with a write through a mapping"


OFTEN = {Tried.ONE_END: 2}
"""In how many lists of operations a circumstance must have been met, where one is too few: whether a sync of a
directory commits all that was done hangs on what that was."""
_RENAMES = (ChangeKind.RENAME, ChangeKind.RENAME_OVER)
_OF_ONE = frozenset({Tried.NATURAL, Tried.SYNCED, Tried.ELSEWHERE})


def needed(clause: Clause) -> frozenset[Tried]:
    """Under which circumstances a clause must have been tried. A sync of a file asks for all of it; one of another file
    may commit its names, and leave its data; and one of everything writes all data before any size."""
    match clause:
        case Ordered(relation=Relation.SAME_FILE) | InTurn():
            return frozenset({Tried.NATURAL, Tried.ELSEWHERE})
        case Ordered():
            return frozenset({Tried.NATURAL, Tried.SYNCED})
        case Whole(ChangeKind.TRUNCATE_DOWN, Unit.WHOLE):
            return frozenset({Tried.NATURAL, Tried.EVERYTHING})
        case Whole(ChangeKind.RENAME | ChangeKind.RENAME_OVER):
            return frozenset({Tried.NATURAL, Tried.ONE_END})
        case Never(ChangeKind.APPEND, where=Where.ANYWHERE):
            return _OF_ONE | {Tried.PART}
        case Never(ChangeKind.APPEND) | Whole(ChangeKind.OVERWRITE | ChangeKind.APPEND, Unit.BLOCK):
            return _OF_ONE
        case Durable(_call, What.OTHER_OVERWRITES):
            return frozenset({Tried.MAPPED})
    return frozenset()


def how_tried(workload: Workload, graph: Graph) -> Mapping[Clause, frozenset[Tried]]:
    """For each clause that depends on them, under which circumstances ``workload`` tries it."""
    taken, found = graph.workings, _mapped(workload, graph)
    for at, after in enumerate(taken.changes):
        tried = _circumstances(workload, taken, at)
        clauses: list[Clause] = [*_of_change(taken, at)]
        for before in taken.changes[:at]:
            clauses.append(Ordered(before.kind, after.kind, relation(before, after)))
            if at not in taken.asked:
                clauses.append(InTurn(means_of(before.kind), means_of(after.kind)))
        for clause in clauses:
            found[clause] = found.get(clause, frozenset()) | tried
    return found


def _of_change(taken: Workings, change: int) -> Iterator[Clause]:
    """The clauses that a change tries by itself, of those that depend on the circumstances."""
    kind = taken.changes[change].kind
    parts = [operation for operation in taken.operations if operation.change == change]
    if kind in DATA_KINDS:
        yield Whole(kind, Unit.BLOCK)
    if kind in _RENAMES:
        yield Whole(kind, Unit.WHOLE)
    if kind is ChangeKind.APPEND:
        for where in (Where.ANYWHERE, *_pieces(taken, change)):
            yield from (Never(kind, fill, where) for fill in Fill)
    # Of a file that is cut between two blocks there is no rest that could become zeros by other means.
    if kind is ChangeKind.TRUNCATE_DOWN and any(
        isinstance(part.cell, SizeCell) and int(part.value or 0) % BLOCK_BYTES for part in parts
    ):
        yield Whole(kind, Unit.WHOLE)


def _pieces(taken: Workings, change: int) -> Iterator[Where]:
    """Which parts an append has, of those that clauses speak of."""
    if change in taken.grown:
        growth = taken.grown[change]
        blocks = {operation.block for operation in taken.operations if operation.change == change}
        begun = sum(growth.begins(block) for block in blocks)
        if begun < len(blocks) and not growth.is_asked_in_part:
            yield Where.TAIL
        if begun:
            yield Where.LAST
        if begun > 1 and not growth.is_asked_in_part:
            yield Where.EARLIER


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


def _circumstances(workload: Workload, taken: Workings, at: int) -> frozenset[Tried]:
    later = taken.changes[at]
    tried = {Tried.NATURAL} if workload.finish.natural else set()
    if at not in taken.asked and asking.elsewhere(taken.history, workload.finish.operations, later):
        tried.add(Tried.ELSEWHERE)
    finish = workload.finish.operations
    if workload.finish.phase and at in taken.grown:
        before = taken.grown[at].before
        tried |= {Tried.PART} if asking.for_a_later_part(taken.history, finish, later, before) else set()
    operations = (*workload.operations, *finish)
    for number, operation in enumerate(operations[later.number - 1 :], start=later.number):
        step = taken.history.steps[min(number, len(taken.history.steps) - 1)]
        path = _synced(operation)
        if step.names.get(path, step.handles.get(path)) in later.things | later.directories:
            tried.add(Tried.SYNCED)
        if later.kind in _RENAMES and _is_one_end(taken, later, step.names.get(path)):
            tried.add(Tried.ONE_END)
        if isinstance(operation, Sync):
            tried.add(Tried.EVERYTHING)
    return frozenset(tried)


def _is_one_end(taken: Workings, rename: Change, synced: int | None) -> bool:
    """Whether a file that was there all along moved from one directory to another, and ``synced`` is one of these."""
    moved = [
        operation
        for operation in taken.operations
        if operation.number == rename.number and isinstance(operation.cell, NameCell)
    ]
    was = {operation.cell.place[0] for operation in moved if isinstance(operation.cell, NameCell)}
    things = {operation.value for operation in moved if operation.value is not None}
    return len(was) > 1 and synced in was and all(thing in taken.history.steps[0].inodes for thing in things)


def _synced(operation: Operation) -> str:
    """What an operation syncs by itself."""
    match operation:
        case Fsync(path) | Msync(path):
            return path
        case Write(path, _offset, _length, how) if how in (How.SYNC, How.DSYNC):
            return path
    return ""
