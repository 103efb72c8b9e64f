"""Clauses of a part of a change, or of what no call asks for: what they forbid, set by set, against their meaning told
plainly; and how much a model allows that was never seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from random import Random
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis.strategies import integers

from bob.apm.allowed import Implications
from bob.apm.clauses import (
    IN_TURN,
    JOURNALED,
    OWN_FIRST,
    PIECES,
    SYNCED,
    AppendPart,
    Clause,
    Fill,
    Intact,
    InTurn,
    Means,
    Never,
    Ordered,
    TreePart,
    Whole,
    clause_of,
    closed,
    every_clause,
    saying_more,
)
from bob.apm.dependencies import Graph
from bob.apm.evidence import ObservedCase, OutcomeConstraints
from bob.apm.micro import DataCell, MicroOperation, SizeCell
from bob.apm.model_states import allowed_trees
from bob.apm.readings import CellReading, ObservationReader
from bob.apm.tightness import count, in_blocks
from bob.apm.trees import ModelEntry, ModelTree
from bob.claim.property.vocabulary import Unit
from bob.crash.state import CrashState
from bob.errors import UsageError
from bob.observe.observation import Observation
from bob.workload import operations as ops
from bob.workload.kinds import ChangeKind, OperationChange, Relation
from bob.workload.language import parse
from bob.workload.operations import Finish, Workload
from tests.apm.cases import EVERYTHING, NOTHING, graph_of, graph_of_workload
from tests.apm.test_allowed import found_as

SETUP = "mkdir /d; mkdir /e; write /a 0 4000; write /b 0 9000; write /d/f 0 100; create /e/g"
OPERATIONS = (
    "append /a 200", "append /a 5000", "append /a 9000", "append /b 100", "append /b 9000", "append /b 300 sync",
    "append /e/g 9000", "append /a 4096 direct", "write /b 100 50", "write /b 0 600 dsync", "truncate /a 100",
    "truncate /b 5000", "truncate /b 4096", "truncate /b 0", "truncate /a 9000", "append /b 5000 trunc", "create /n",
    "create /d/n", "rename /d/f /e/moved", "rename /d/f /e/g", "link /a /d/l", "unlink /b", "mkdir /d/x",
    "symlink a /s",
    "setxattr /b user.x 3", "fsync /a", "fsync /b", "fsync /d", "fsync /e", "fsync /e/moved", "sync",
    "fallocate /b 100 600 punch", "sync_file_range /a 0 4096", "sync_file_range /b 4096 4096",
)  # fmt: skip
OF_A_NAME = {
    Ordered(before, after, Relation.SAME_FILE)
    for before in (ChangeKind.APPEND, ChangeKind.OVERWRITE, ChangeKind.CREATE, ChangeKind.SETXATTR)
    for after in (ChangeKind.LINK, ChangeKind.UNLINK, ChangeKind.RENAME, ChangeKind.RENAME_OVER, ChangeKind.APPEND)
}
CUT = clause_of("whole truncate-down block")


def random_case(rng: Random) -> Workload:
    while True:
        chosen = tuple(parse("; ".join(rng.choice(OPERATIONS) for _ in range(rng.randint(1, 4)))))
        finish = Finish("f", tuple(parse(rng.choice(["sync", "fsync /a", "fsync /d", "fsync /b"]))))
        workload = Workload("case", tuple(parse(SETUP)), chosen, finish)
        try:
            graph_of_workload(workload)
        except UsageError:
            continue
        return workload


# What each clause forbids, told of one set of micro-operations


def calls(workload: Workload, graph: Graph, first: int) -> Iterator[tuple[int, ops.Operation, int | None]]:
    for number, operation in enumerate((*workload.operations, *workload.finish.operations), start=1):
        is_write = isinstance(operation, ops.Write) and operation.how.value in ("sync", "dsync", "direct")
        if number >= first and (is_write or isinstance(operation, ops.Fsync | ops.Msync | ops.SyncFileRange)):
            steps = graph.workings.history.steps
            step = steps[number] if number < len(steps) else steps[-1]
            yield number, operation, step.names.get(operation.path)  # type: ignore[union-attr]


def in_part(workload: Workload, graph: Graph, change: OperationChange) -> bool:
    for _number, operation, thing in calls(workload, graph, change.number):
        if isinstance(operation, ops.Write | ops.SyncFileRange) and (thing is None or thing in change.things):
            return True
    return False


def alone(workload: Workload, graph: Graph, change: OperationChange) -> bool:
    for number, _operation, thing in calls(workload, graph, change.number):
        asked = {thing}
        for other in graph.workings.changes:
            names = ("create", "link", "mkdir", "rename", "rename-over")
            if other.number <= number and other.kind.value in names and thing in other.things:
                asked |= other.directories
        if thing is None or asked & (change.things | change.directories):
            return True
    return False


MEANS = {
    "overwrite": "overwrites",
    "zero": "overwrites",
    "append": "appends",
    "truncate-down": "sizes",
    "truncate-up": "sizes",
}


def means(workload: Workload, graph: Graph, change: OperationChange) -> str:
    found = MEANS.get(change.kind, "names")
    places, every = {change}, graph.workings.changes
    while True:  # a new directory is as its own one is
        more = {
            one
            for one in every
            if one.kind.value in ("mkdir", "create", "link", "rename", "rename-over")
            and any(one.things & place.directories for place in places)
        }
        if more <= places:
            break
        places |= more
    is_beside = any(
        one.kind.value in RENAMING
        and is_of_synced(workload, graph, one)
        and any(one.directories & place.directories for place in places)
        for one in every
    )
    return "synced-names" if found == "names" and (is_beside or is_of_synced(workload, graph, change)) else found


def is_of_synced(workload: Workload, graph: Graph, change: OperationChange) -> bool:
    return any(
        number < change.number and (thing is None or thing in change.things)
        for number, _operation, thing in calls(workload, graph, 1)
    )


RENAMING = ("link", "unlink", "rename", "rename-over")


def but_rest(graph: Graph, index: int, mine: dict[int, MicroOperation]) -> set[int]:
    """What a change does, but for the zeros in a block that the file still has."""
    if graph.workings.changes[index].kind is not ChangeKind.TRUNCATE_DOWN:
        return set(mine)
    size = next(one.value for one in mine.values() if isinstance(one.cell, SizeCell))
    assert isinstance(size, int)
    return {
        at for at, one in mine.items() if not (isinstance(one.cell, DataCell) and one.cell.start // 4096 * 4096 < size)
    }


def but_in_place(graph: Graph, index: int, mine: dict[int, MicroOperation]) -> set[int]:
    """What a change puts elsewhere than where its file had data before, in the block in which the file ended."""
    change, steps = graph.workings.changes[index], graph.workings.history.steps
    if change.kind is ChangeKind.TRUNCATE_DOWN:
        return but_rest(graph, index, mine)
    if change.kind is not ChangeKind.APPEND:
        return set(mine)
    (thing,) = change.things
    sizes = [len(step.inodes[thing].content) for step in steps[: change.number] if thing in step.inodes]
    operation = graph.workings.history.operations[change.number - 1]
    is_cut = isinstance(operation, ops.Write) and operation.how is ops.How.TRUNC
    before = 0 if is_cut or not sizes or thing not in steps[change.number - 1].inodes else sizes[-1]
    is_old = [
        isinstance(one.cell, DataCell)
        and any(one.cell.stop <= size for size in sizes)
        and before % 4096 != 0
        and one.cell.start // 4096 == before // 4096
        for one in mine.values()
    ]
    return {at for at, old in zip(mine, is_old, strict=True) if not old}


def is_broken(clause: Clause, workload: Workload, graph: Graph, there: frozenset[int], *, with_own: bool) -> bool:
    taken = graph.workings
    parts: list[dict[int, MicroOperation]] = [{} for _ in taken.changes]
    for at, one in enumerate(taken.operations):
        parts[one.change][at] = one
    for index, change in enumerate(taken.changes):
        mine = parts[index]
        data = {at: one.cell for at, one in mine.items() if isinstance(one.cell, DataCell)}
        sizes = {at: cast(int, one.value) for at, one in mine.items() if isinstance(one.cell, SizeCell)}
        match clause:
            case Never(_kind, _fill, where) if change.kind is ChangeKind.APPEND:
                was = taken.history.steps[change.number - 1].inodes.get(next(iter(change.things)))
                operation = workload.operations[change.number - 1]
                is_cut = isinstance(operation, ops.Write) and operation.how is ops.How.TRUNC
                before = 0 if was is None or is_cut else len(was.content)
                for size in (size for at, size in sizes.items() if at in there):
                    for cell in (cell for at, cell in data.items() if at not in there and cell.stop <= size):
                        is_begun, is_last = (
                            cell.start // 4096 * 4096 >= before,
                            cell.start // 4096 == (size - 1) // 4096,
                        )
                        place = AppendPart.TAIL if not is_begun else AppendPart.LAST if is_last else AppendPart.EARLIER
                        if place is where and (where is AppendPart.LAST or not in_part(workload, graph, change)):
                            return True
            case Whole(ChangeKind.TRUNCATE_DOWN, Unit.BLOCK) if change.kind is ChangeKind.TRUNCATE_DOWN:
                ((size_at, size),) = sizes.items()
                gone = {at for at, cell in data.items() if cell.start // 4096 * 4096 >= size} | {size_at}
                if gone & there and gone - there:
                    return True
            case Ordered(before, after, Relation.SAME_FILE) if (
                change.kind is before and not but_rest(graph, index, mine) <= there
            ):
                for behind in range(index + 1, len(taken.changes)):
                    later = taken.changes[behind]
                    is_of_a_log = after.value in RENAMING and means(workload, graph, later) == "synced-names"
                    shown = but_in_place(graph, behind, parts[behind]) & there
                    is_after = later.kind is after and later.things & change.things and shown
                    if is_after and (with_own or not is_of_a_log):
                        return True
            case InTurn(before_it, after_it) if (
                MEANS.get(change.kind, "names") == before_it and not but_rest(graph, index, mine) <= there
            ):
                for behind in range(index + 1, len(taken.changes)):
                    later = taken.changes[behind]
                    is_after = means(workload, graph, later) == after_it and not alone(workload, graph, later)
                    if is_after and but_in_place(graph, behind, parts[behind]) & there:
                        return True
    return False


def some_sets(rng: Random, count: int) -> Iterator[frozenset[int]]:
    """Sets that lack little, have little, or begin."""
    for _ in range(40):
        share = rng.choice((0.05, 0.5, 0.9, 1.0))
        chosen = {at for at in range(count) if rng.random() < share}
        upto = rng.randint(0, count) if rng.random() < 0.5 else count
        yield frozenset(at for at in chosen if at < upto) ^ frozenset(rng.sample(range(count), min(count, 1)))


@given(integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_a_clause_forbids_what_it_says_and_nothing_else(seed: int) -> None:
    rng = Random(seed)
    workload = random_case(rng)
    graph = graph_of_workload(workload)
    count = len(graph.workings.operations)
    by_place = {where: frozenset(one for one in PIECES if one.where is where) for where in AppendPart}
    for clauses in (
        *(by_place[piece.where] for piece in PIECES[::2]),
        {CUT},
        *({one} for one in IN_TURN),
        OF_A_NAME,
        {*OF_A_NAME, OWN_FIRST},
    ):
        implications = Implications(graph, frozenset(clauses))
        for there in some_sets(rng, count):
            reading = CellReading(there, frozenset(range(count)) - there)
            with_own = OWN_FIRST in clauses
            is_broken_by = any(is_broken(clause, workload, graph, there, with_own=with_own) for clause in clauses)
            assert implications.force({}, reading) is not is_broken_by, (clauses, workload, there)


@pytest.mark.parametrize(
    ("operations", "promised", "left"),
    [  # the file is 4,000 bytes long at first: which sizes a crash may leave where data is missing, and of which block
        ("append /a 5000", {AppendPart.TAIL, AppendPart.LAST, AppendPart.EARLIER}, set()),
        ("append /a 5000", {AppendPart.LAST, AppendPart.EARLIER}, {(4096, 0), (8192, 0), (9000, 0)}),
        ("append /a 5000", {AppendPart.TAIL, AppendPart.EARLIER}, {(8192, 1), (9000, 2)}),
        ("append /a 5000", {AppendPart.TAIL, AppendPart.LAST}, {(9000, 1)}),
        (
            "append /a 5000; sync_file_range /a 8192 808", {AppendPart.EARLIER},
            {(4096, 0), (8192, 0), (8192, 1), (9000, 0), (9000, 1), (9000, 2)},
        ),
    ],
)  # fmt: skip
def test_zeros_are_left_where_nothing_forbids_them(
    operations: str, promised: set[AppendPart], left: set[tuple[int, int]]
) -> None:
    clauses = frozenset(piece for piece in PIECES if piece.where in promised) | {
        clause for clause in EVERYTHING if isinstance(clause, Intact)
    }
    graph = in_blocks(graph_of(operations, "write /a 0 4000"))
    found = set()
    for tree in allowed_trees(graph, clauses, 5000).trees:
        content = dict(tree)["/a"].content
        for block in range(3):
            if content[4000:][block * 4096 - 4000 if block else 0 : (block + 1) * 4096 - 4000].startswith(bytes(8)):
                found.add((len(content), block))
    assert found == left


def test_what_says_less_than_a_promised_clause_is_promised() -> None:
    zeros = Never(ChangeKind.APPEND, Fill.ZEROS)
    assert closed({zeros}) == {zeros, *(Never(ChangeKind.APPEND, Fill.ZEROS, where) for where in AppendPart)}
    assert closed({Whole(ChangeKind.TRUNCATE_DOWN, Unit.WHOLE)}) >= {CUT}
    assert closed({Intact(TreePart.CONTENTS)}) >= {Intact(TreePart.KEPT)}
    assert closed(EVERYTHING) == EVERYTHING | {JOURNALED, SYNCED} and closed(NOTHING) == NOTHING
    orders = {one for one in every_clause() if one.name.startswith("ordered ")}
    assert closed(orders) - orders == set(IN_TURN)
    assert InTurn(Means.NAMES, Means.NAMES) not in closed(orders - {clause_of("ordered create mkdir same-directory")})
    assert all(one not in saying_more(one) for one in every_clause())


# How much of what a model allows was seen


@dataclass
class Seen:
    """A workload with what was seen of it: stands in for :class:`bob.apm.evidence.ObservedCase`."""

    workload: Workload
    trees: Sequence[ModelTree]
    exhaustive: bool = True
    folder: Path = Path("000-case")

    @property
    def graph(self) -> Graph:
        return graph_of_workload(self.workload)

    @property
    def sights(self) -> tuple[OutcomeConstraints, ...]:
        reader = ObservationReader(self.graph.workings, {})
        return tuple(
            OutcomeConstraints(CrashState(0), number, 0, 1, reader.read(found_as(tree)))
            for number, tree in enumerate(self.trees)
        )

    def observation(self, sight: OutcomeConstraints) -> Observation:
        return found_as(self.trees[sight.outcome])


def counted(promised: frozenset[Clause], *seen: Seen, limit: int = 1000) -> list[tuple[int, int]]:
    found = count(promised, [cast(ObservedCase, one) for one in seen], limit)
    return [(one.allowed, one.seen) for one in found]


INTACT = closed({Intact(part) for part in TreePart})


def case(operations: str, finish: str = "sync") -> Workload:
    return Workload(
        "case", tuple(parse("write /a 0 8192")), tuple(parse(operations)), Finish(finish, tuple(parse(finish)))
    )


def with_contents(content: bytes) -> ModelTree:
    return (("/a", ModelEntry("file", content, same="/a")),)


def test_torn_blocks_are_not_counted_and_finishes_are_counted_together() -> None:
    written = case("write /a 0 8192")
    old, new = (
        dict(tree)["/a"].content for tree in allowed_trees(in_blocks(graph_of_workload(written)), INTACT, 9).trees[::3]
    )
    torn = old[:512] + new[512:]
    mixed = old[:4096] + new[4096:]
    one = Seen(written, [with_contents(old), with_contents(torn)])
    other = Seen(case("write /a 0 8192", "fsync /a"), [with_contents(old), with_contents(mixed)])
    assert counted(INTACT, one) == [(4, 1)]
    assert counted(INTACT, one, other) == [(4, 2)]
    assert counted(INTACT, one, Seen(case("write /a 0 4096"), [with_contents(old)])) == [(4, 1), (2, 1)]


def test_what_was_not_explored_says_nothing_of_a_model() -> None:
    written = case("write /a 0 8192")
    assert counted(INTACT, Seen(written, [], exhaustive=False)) == []
    assert counted(INTACT, Seen(written, []), Seen(written, [], exhaustive=False)) == []
    assert counted(INTACT, Seen(written, []), limit=3) == []
    assert counted(INTACT - {Intact(TreePart.NAMES)}, Seen(written, [])) == []


def test_the_contents_of_a_file_that_is_removed_are_one_state_where_anything_may_be_found() -> None:
    removed = case("unlink /a; create /b")
    kept = INTACT - {Intact(TreePart.CONTENTS)}
    garbage = with_contents(b"?" * 8192)
    assert counted(INTACT, Seen(removed, [garbage])) == [(4, 0)]
    assert counted(kept, Seen(removed, [garbage])) == [(6, 1)]  # with /b and without
    assert counted(kept, Seen(removed, [garbage, with_contents(b"!" * 8192), ()])) == [(6, 2)]
    assert counted(kept, Seen(case("create /b"), [garbage])) == [(2, 0)]


@given(integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_whole_blocks_are_the_sets_that_have_all_of_a_block_or_nothing(seed: int) -> None:
    rng = Random(seed)
    graph = graph_of(
        rng.choice(["write /a 100 900; create /b", "append /a 700", "write /a 3800 600", "truncate /a 3500"]),
        "write /a 0 4000",
    )
    operations = graph.workings.operations
    promised = frozenset(one for one in every_clause() if rng.random() < 0.5)
    tied, free = Implications(in_blocks(graph), promised), Implications(graph, promised)
    for size in range(len(operations) + 1):
        for chosen in combinations(range(len(operations)), size):
            there = frozenset(chosen)
            reading = CellReading(there, frozenset(range(len(operations))) - there)
            blocks: dict[object, set[bool]] = {}
            for at, one in enumerate(operations):
                if isinstance(one.cell, DataCell):
                    blocks.setdefault((one.change, one.cell.start // 4096), set()).add(at in there)
            is_whole = all(len(found) == 1 for found in blocks.values())
            assert tied.force({}, reading) == (free.force({}, reading) and is_whole)
