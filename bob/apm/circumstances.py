"""The circumstances under which a workload tests a clause (a promise of a model), such as natural writeback or a sync
of one file. Most orders between changes break in some of these circumstances (docs/design.md, 4). So a clause that was
tested in other circumstances only, and held, may still be false."""

from collections.abc import Iterator, Mapping
from enum import StrEnum

from bob.apm import clauses, sync_scope
from bob.apm.clauses import Clause
from bob.apm.dependencies import Graph
from bob.apm.micro import NameCell, SizeCell, Workings
from bob.claim.property.subjects import BLOCK_BYTES
from bob.claim.property.vocabulary import Unit, What
from bob.workload.kinds import ChangeKind, OperationChange, Relation, relation
from bob.workload.operations import Fsync, How, Msync, Operation, Rename, Sync, Workload, Write


class Circumstance(StrEnum):
    NATURAL = "with natural writeback"
    SYNCED = "with a sync of the later one alone"
    ELSEWHERE = "with a sync of something else"
    EVERYTHING = "with a sync of everything"
    PART = "with a call that asks for a later part of it, into an open transaction"
    MOVED = "with a rename of its file over another one, and then a sync of something else"
    OPEN = "with natural writeback, into a transaction that is soon committed"
    BEGUN = "with natural writeback, in a block that another append has begun"
    ONE_END = "with a sync of one of two directories"
    MAPPED = "with a write through a mapping"


SOON = 4.0  # seconds: the workload begins at most so long before the commit of an open transaction
OFTEN = {Circumstance.ONE_END: 2, Circumstance.PART: 2}
"""How many different lists of operations must meet a circumstance, if more than one. The effect of these circumstances
depends on the operations, or on the sizes of files."""
RARE = frozenset({Circumstance.MOVED, Circumstance.OPEN, Circumstance.BEGUN})  # refuting workloads may add these
RARE_CLAUSES = frozenset(
    {clauses.OWN_FIRST, *(clause for clause in clauses.IN_TURN if clause.after is clauses.Means.SYNCED_NAMES)}
)  # only refuting workloads need to test these
_OF_ONE = frozenset({Circumstance.NATURAL, Circumstance.SYNCED, Circumstance.ELSEWHERE})


def needed(clause: Clause) -> frozenset[Circumstance]:
    """Return the circumstances under which a clause must be tested before it counts as tested.

    The reasons are facts about file systems. A sync of a file writes all of it. A sync of another file may commit names
    of a file without its data. A sync of everything writes data first. A file that replaces another file is written at
    once (ext4_alloc_da_blocks). A transaction that is open while a file grows may commit before the new data is
    written."""
    match clause:
        case clauses.Ordered(ChangeKind.OVERWRITE | ChangeKind.APPEND, relation=Relation.SAME_FILE):
            return frozenset({Circumstance.NATURAL, Circumstance.ELSEWHERE, Circumstance.OPEN})
        case clauses.Ordered(relation=Relation.SAME_FILE) | clauses.InTurn():
            return frozenset({Circumstance.NATURAL, Circumstance.ELSEWHERE})
        case clauses.Ordered():
            return frozenset({Circumstance.NATURAL, Circumstance.SYNCED})
        case clauses.Whole(ChangeKind.TRUNCATE_DOWN, Unit.WHOLE):
            return frozenset({Circumstance.NATURAL, Circumstance.EVERYTHING})
        case clauses.Whole(ChangeKind.RENAME | ChangeKind.RENAME_OVER):
            return frozenset({Circumstance.NATURAL, Circumstance.ONE_END})
        case clauses.Never(ChangeKind.APPEND, where=clauses.AppendPart.ANYWHERE):
            return _OF_ONE | {Circumstance.PART, Circumstance.MOVED}
        case clauses.Never(ChangeKind.APPEND, where=clauses.AppendPart.TAIL):
            return _OF_ONE | {Circumstance.MOVED, Circumstance.BEGUN}
        case clauses.Never(ChangeKind.APPEND):
            return _OF_ONE | {Circumstance.MOVED}
        case clauses.Whole(ChangeKind.APPEND, Unit.BLOCK):
            return _OF_ONE | {Circumstance.PART}
        case clauses.Whole(ChangeKind.OVERWRITE, Unit.BLOCK):
            return _OF_ONE
        case clauses.Durable(_call, What.OTHER_OVERWRITES):
            return frozenset({Circumstance.MAPPED})
    return frozenset()


def how_tried(workload: Workload, graph: Graph, commit: float) -> Mapping[Clause, frozenset[Circumstance]]:
    """Return, for each clause that ``workload`` tests, the circumstances of the test. The file system commits every
    ``commit`` seconds."""
    taken, found = graph.workings, _mapped(workload, graph)
    for at, after in enumerate(taken.changes):
        tried = _circumstances(workload, taken, at, commit)
        tested: list[Clause] = [*_of_change(taken, at)]
        for before in taken.changes[:at]:
            if after.kind is ChangeKind.UNLINK and not _has_a_name(taken, before.things & after.things):
                continue  # crash states do not show whether the earlier change persisted
            order = clauses.Ordered(before.kind, after.kind, relation(before, after))
            tested.append(clauses.OWN_FIRST if taken.is_of_a_log(order, at) else order)
            if at not in taken.asked:
                tested.append(clauses.InTurn(clauses.means_of(before.kind), taken.means(at)))
        for clause in tested:
            found[clause] = found.get(clause, frozenset()) | tried
    return found


def _of_change(taken: Workings, change: int) -> Iterator[Clause]:
    """Yield the clauses that the change with index ``change`` tests by itself, without a second change. Clauses that
    hold or break in the same way in all circumstances are left out."""
    kind = taken.changes[change].kind
    parts = [operation for operation in taken.operations if operation.change == change]
    if kind in clauses.DATA_KINDS:
        yield clauses.Whole(kind, Unit.BLOCK)
    if kind in clauses.RENAMES:
        yield clauses.Whole(kind, Unit.WHOLE)
    if kind is ChangeKind.APPEND:
        for where in (clauses.AppendPart.ANYWHERE, *_pieces(taken, change)):
            yield from (clauses.Never(kind, fill, where) for fill in clauses.Fill)
    # A cut at the end of a block leaves no part of a block that other writes could turn into zeros.
    if kind is ChangeKind.TRUNCATE_DOWN and any(
        isinstance(part.cell, SizeCell) and int(part.value or 0) % BLOCK_BYTES for part in parts
    ):
        yield clauses.Whole(kind, Unit.WHOLE)


def _pieces(taken: Workings, change: int) -> Iterator[clauses.AppendPart]:
    if change in taken.grown:
        growth = taken.grown[change]
        blocks = {operation.block for operation in taken.operations if operation.change == change}
        begun = sum(growth.begins(block) for block in blocks)
        if begun < len(blocks) and not growth.is_asked_in_part:
            yield clauses.AppendPart.TAIL
        if begun:
            yield clauses.AppendPart.LAST
        if begun > 1 and not growth.is_asked_in_part:
            yield clauses.AppendPart.EARLIER


def _mapped(workload: Workload, graph: Graph) -> dict[Clause, frozenset[Circumstance]]:
    mapped = {
        number
        for number, operation in enumerate(workload.operations, start=1)
        if isinstance(operation, Write) and operation.how is How.MMAP
    }
    return {
        clause: frozenset({Circumstance.MAPPED})
        for edge in graph.edges
        for clause in edge.clauses
        if isinstance(clause, clauses.Durable) and graph.workings.operations[edge.needs].number in mapped
    }


def _circumstances(workload: Workload, taken: Workings, at: int, commit: float) -> frozenset[Circumstance]:
    later = taken.changes[at]
    tried = {Circumstance.NATURAL} if workload.finish.natural else set()
    if workload.finish.natural and commit - SOON <= workload.finish.phase < commit and workload.finish.phase:
        tried.add(Circumstance.OPEN)
    if at not in taken.asked and sync_scope.elsewhere(taken.history, workload.finish.operations, later):
        tried.add(Circumstance.ELSEWHERE)
        if any(_takes_a_place(taken, one, later.things) for one in taken.changes[at + 1 :]):
            tried.add(Circumstance.MOVED)
    finish = workload.finish.operations
    if workload.finish.natural and at in taken.grown and _was_begun(taken, at):
        tried.add(Circumstance.BEGUN)
    if workload.finish.phase and at in taken.grown:
        before = taken.grown[at].before
        tried |= {Circumstance.PART} if sync_scope.for_a_later_part(taken.history, finish, later, before) else set()
    operations = (*workload.operations, *finish)
    for number, operation in enumerate(operations[later.number - 1 :], start=later.number):
        step = taken.history.after(number)
        path = _synced(operation)
        if step.names.get(path, step.handles.get(path)) in later.things | later.directories:
            tried.add(Circumstance.SYNCED)
        if later.kind in clauses.RENAMES and _is_one_end(taken, later, step.names.get(path)):
            tried.add(Circumstance.ONE_END)
        if isinstance(operation, Sync):
            tried.add(Circumstance.EVERYTHING)
    return frozenset(tried)


def _was_begun(taken: Workings, at: int) -> bool:
    """Return whether the append with index ``at`` begins in the middle of a block, and an earlier append began this
    block."""
    ended_in, rest = divmod(taken.grown[at].before, BLOCK_BYTES)
    return rest > 0 and any(
        operation.change in taken.grown
        and operation.change < at
        and operation.block == ended_in
        and taken.changes[operation.change].things & taken.changes[at].things
        and taken.grown[operation.change].begins(ended_in)
        for operation in taken.operations
    )


def _has_a_name(taken: Workings, things: frozenset[int]) -> bool:
    return not things or not things.isdisjoint(taken.history.steps[-1].names.values())


def _takes_a_place(taken: Workings, change: OperationChange, things: frozenset[int]) -> bool:
    match taken.history.operations[change.number - 1]:
        case Rename(_old, new) if change.kind is ChangeKind.RENAME_OVER:
            return taken.history.steps[change.number].names.get(new) in things
    return False


def _is_one_end(taken: Workings, rename: OperationChange, synced: int | None) -> bool:
    """Return whether ``rename`` moves a file or directory of the initial tree from one directory to another, and
    ``synced`` is one of the two directories."""
    moved = [
        operation
        for operation in taken.operations
        if operation.number == rename.number and isinstance(operation.cell, NameCell)
    ]
    was = {operation.cell.place[0] for operation in moved if isinstance(operation.cell, NameCell)}
    things = {operation.value for operation in moved if operation.value is not None}
    return len(was) > 1 and synced in was and all(thing in taken.history.steps[0].inodes for thing in things)


def _synced(operation: Operation) -> str:
    match operation:
        case Fsync(path) | Msync(path):
            return path
        case Write(path, _offset, _length, how) if how in (How.SYNC, How.DSYNC):
            return path
    return ""
