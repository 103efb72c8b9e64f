"""What a model allows never refutes what it promises; and under which circumstances a workload tries a clause."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random

import pytest
from hypothesis import assume, example, given, settings
from hypothesis.strategies import integers, lists, randoms, sampled_from

from bob.apm.allowed import Implications, refuted
from bob.apm.circumstances import Circumstance, how_tried, needed
from bob.apm.clauses import (
    OWN_FIRST,
    UNITS,
    AppendPart,
    Clause,
    Durable,
    Fill,
    Intact,
    InTurn,
    Means,
    Never,
    Ordered,
    Whole,
    clause_of,
    closed,
    every_clause,
)
from bob.apm.dependencies import Graph
from bob.apm.holes import hole
from bob.apm.micro import DataCell, SizeCell
from bob.apm.model_states import Lattice, allowed_trees, closed_sets
from bob.apm.readings import CellReading, Constraint, ObservationReader
from bob.apm.tree_digests import bits
from bob.apm.trees import ModelTree, nodes, observed_tree
from bob.claim.property.vocabulary import Call, Unit, What
from bob.errors import UsageError
from bob.observe.observation import Node, Observation
from bob.workload.kinds import ChangeKind, Relation
from bob.workload.language import parse
from bob.workload.operations import Finish, Workload
from bob.workload.pattern import stale
from tests.apm.built_trees import trees
from tests.apm.cases import EVERYTHING, graph_of, graph_of_workload
from tests.workload.generators import random_workload

UNORDERED = frozenset(clause for clause in EVERYTHING if not isinstance(clause, Durable | Ordered | InTurn))


def found_as(tree: ModelTree) -> Observation:
    """A tree as if it had been found after a crash."""
    return Observation(True, None, {"/": Node("directory", 2), **nodes(tree)})


def read(graph: Graph, tree: ModelTree) -> tuple[Constraint, ...]:
    return ObservationReader(graph.workings, {}).read(found_as(tree))


def after_all(graph: Graph) -> int:
    return len(graph.returns) - 1


def seen(graph: Graph, tree: ModelTree) -> tuple[Constraint, ...]:
    """What a tree says, but of names in a directory that the workload makes and that is not there. A model may have
    them, and they cannot be seen."""
    return ObservationReader(graph.workings, {}, hidden=False).read(found_as(tree))


@given(integers(0, 2**32))
@example(7617576)  # mkdir /d; create /d/b; create /f: of these /f alone
@example(7618989)  # mkdir /d; rename /b /d/a: neither
@example(1381890)  # what a log keeps of an order is promised, and the order is not
@settings(max_examples=100, deadline=None)
def test_what_a_model_allows_is_read_back_as_allowed_and_refutes_none_of_its_clauses(seed: int) -> None:
    rng = Random(seed)
    graph = graph_of_workload(random_workload(rng, most=4, shifting=False))
    known = sorted((clause for clause in every_clause() if not isinstance(clause, Durable)), key=lambda one: one.name)
    promised = closed({clause for clause in known if isinstance(clause, Intact) or rng.random() < 0.7})
    for tree in allowed_trees(graph, promised, 40).trees:
        assert observed_tree(found_as(tree)) == tree
        constraints = seen(graph, tree)
        assert Implications(graph, promised).is_allowed(constraints, after_all(graph)), tree
        assert not refuted(graph, promised, constraints, after_all(graph))
        for conflict in refuted(graph, EVERYTHING - {OWN_FIRST}, constraints, after_all(graph)):
            assert not any(clause in promised for clause in conflict.clauses), (tree, conflict)


STEPS = (
    *("write /a 0 512", "write /a 0 512", "write /a 100 600", "setxattr /a user.x 4", "setxattr /a user.x 5"),
    *("chmod /a 600", "chmod /a 640", "truncate /a 300", "truncate /a 1200", "append /a 200", "rename /b /c"),
    *("unlink /b", "create /n", "rename /n /a", "link /a /l", "truncate /a 0", "create /b", "setxattr /n user.x 4"),
    *("mkdir /d", "rename /b /d/b", "create /d/b", "rename /d /e", "rmdir /d", "rename /a /n exchange"),
)


@given(lists(sampled_from(STEPS), min_size=1, max_size=4), randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_what_is_read_of_a_tree_is_so_of_no_set_that_leaves_another_one(steps: list[str], rng: Random) -> None:
    """Of each cell some reading is true, and tells of no hole: then all that shows is there, and nothing that hides
    it."""
    done: list[str] = []
    for step in steps:
        try:
            graph = graph_of("; ".join([*done, step]), "write /a 0 1000; write /b 0 100")
        except UsageError:
            continue
        done.append(step)
    assume(done)
    left = left_by_sets(graph, 200)
    tree = rng.choice(sorted(left[rng.choice(list(left))], key=repr))
    constraints = read(graph, tree)
    for there, leaves in left.items():
        readings = [[reading for reading in one.readings if is_so(reading, there)] for one in constraints]
        if all(any(not reading.breaks for reading in those) for those in readings):
            assert tree in leaves, (sorted(there), done)
        if all(readings):  # in a hole there may be anything, but what was written there would show
            for written, found in shown(graph, there, tree):
                assert written[: len(found)] == found, (sorted(there), done)


@pytest.mark.parametrize(
    "operations",
    [
        "create /n; rename /n /a; create /n",  # /n may be the file that is also /a, or another one
        "create /n; rename /n /a; link /a /l",
        "create /n; rename /n /a; link /a /n",
        "link /a /l; unlink /a; create /a; rename /l /a",
        "rename /a /b exchange; create /n; rename /a /n exchange",
        "unlink /a; create /a; setxattr /a user.x 4",  # /a may be the old file, or the new one without its attribute
        "unlink /a; create /a; append /a 100; rename /b /a",
        "rename /d /e; mkdir /d; create /d/n",  # /d may be the old directory, or the new one without its name
        "rmdir /d; mkdir /d; rename /a /d/n",
        "create /d/n; rename /d /e; mkdir /d; create /d/n",
        "mkdir /d/x; create /d/x/n; rename /d /e; mkdir /d; mkdir /d/x",
        "symlink x /s; rename /s /t; symlink x /s; unlink /t",
    ],
)
def test_a_tree_is_read_as_just_the_sets_that_leave_it(operations: str) -> None:
    """With all that the sets leave, by names that may lead to several things alike."""
    graph = graph_of(operations, "create /a; create /b; mkdir /d")
    left = left_by_sets(graph, 2000)
    for tree in {tree for leaves in left.values() for tree in leaves}:
        constraints = read(graph, tree)
        for there, leaves in left.items():
            is_read = all(any(is_so(one, there) and not one.breaks for one in each.readings) for each in constraints)
            assert not is_read or tree in leaves, (tree, sorted(there))
        for there in (there for there, leaves in left.items() if any(is_just(tree, leaf) for leaf in leaves)):
            for each in seen(graph, tree):  # a hole may break a promise, but no part of the tree is broken
                assert any(is_so(one, there) and not has_broken_part(one) for one in each.readings), (tree, each)


def left_by_sets(graph: Graph, most: int) -> dict[frozenset[int], frozenset[ModelTree]]:
    """The trees that each of ``most`` closed sets of a model without promises leaves."""
    sets = (frozenset(bits(there)) for there in islice(closed_sets(Lattice(graph, frozenset())), most))
    return {there: frozenset(trees(graph.workings, frozenset(), there)) for there in sets}


def is_just(one: ModelTree, other: ModelTree) -> bool:
    """Whether two trees have the same things under the same names, so also those directories that have two of them."""
    return one == other and identities(one) == identities(other)


def identities(tree: ModelTree) -> list[int]:
    return [entry.thing for _path, entry in tree]


def has_broken_part(reading: CellReading) -> bool:
    return any(isinstance(clause, Intact) for clause in reading.breaks)


@given(
    sampled_from([0, 100, 4096]),
    lists(sampled_from(["append /a 3000", "append /a 9000", "sync_file_range /a 0 100"]), min_size=1, max_size=2),
    randoms(use_true_random=False),
)
@settings(max_examples=60, deadline=None)
def test_a_hole_breaks_just_the_clauses_whose_edges_it_breaks(before: int, steps: list[str], rng: Random) -> None:
    """By which size a hole of an append is seen is told twice: by edges, and by what is read of a tree."""
    graph = graph_of("; ".join(steps), f"write /a 0 {before}" if before else "create /a")
    operations = graph.workings.operations
    parts: dict[int, list[int]] = {}
    for edge in graph.edges:
        if not edge.clauses:
            parts.setdefault(edge.node, []).append(edge.needs)

    def is_there(node: int) -> bool:
        return node in there if node < len(operations) else all(map(is_there, parts[node]))

    for _ in range(10):
        share = rng.choice([0.2, 0.9])
        there = {at for at, one in enumerate(operations) if isinstance(one.cell, SizeCell) or rng.random() < share}
        there -= {at for at in there if isinstance(operations[at].cell, SizeCell) and rng.random() < 0.7}
        by_edges = {
            clause.where
            for edge in graph.edges
            for clause in edge.clauses
            if isinstance(clause, Never) and edge.node in there and not is_there(edge.needs)
        }
        missing = [one.cell for at, one in enumerate(operations) if at not in there and isinstance(one.cell, DataCell)]
        broken = (hole(graph.workings, cell).breaks(Fill.ZEROS, there) for cell in missing)
        assert {one.where for several in broken for one in several if isinstance(one, Never)} == by_edges


def is_so(reading: CellReading, there: frozenset[int]) -> bool:
    return reading.there <= there and there.isdisjoint(reading.missing | reading.lost)


def shown(graph: Graph, there: frozenset[int], tree: ModelTree) -> Iterator[tuple[bytes, bytes]]:
    """What micro-operations that are ``there`` have written last, and what ``tree`` has in its place."""
    contents = {entry.thing: entry.content for _path, entry in tree}
    for cell, writers in graph.workings.writers.items():
        if isinstance(cell, DataCell) and (last := max(there.intersection(writers), default=None)) is not None:
            value = graph.workings.operations[last].value
            if not graph.workings.is_cut(last) and isinstance(value, bytes):
                yield value, contents.get(cell.thing, b"")[cell.start : cell.stop]


@pytest.mark.parametrize(
    ("operations", "setup", "found", "clauses"),
    [
        (  # the second of two changes without the first
            "create /a; mkdir /b", "", {"/b": Node("directory", 11)},
            {
                Ordered(ChangeKind.CREATE, ChangeKind.MKDIR, Relation.SAME_DIRECTORY),
                InTurn(Means.NAMES, Means.NAMES),
            },
        ),
        (  # a rename that left both names
            "rename /a /b", "create /a", {"/a": Node("file", 11), "/b": Node("file", 11)},
            {Whole(ChangeKind.RENAME, Unit.WHOLE)},
        ),
        (  # a size without its data
            "append /a 16", "create /a", {"/a": Node("file", 11, size=16, content=bytes(16))},
            {Never(ChangeKind.APPEND, Fill.ZEROS), Never(ChangeKind.APPEND, Fill.ZEROS, AppendPart.LAST)},
        ),
    ],
)  # fmt: skip
def test_an_observation_refutes_just_what_it_contradicts(
    operations: str, setup: str, found: dict[str, Node], clauses: set[Clause]
) -> None:
    graph = graph_of(operations, setup)
    seen = Observation(True, None, {"/": Node("directory", 2), **found})
    constraints = ObservationReader(graph.workings, {}).read(seen)
    promised = set(EVERYTHING - {clause for clause in EVERYTHING if isinstance(clause, Durable)})
    conflicts = refuted(graph, promised, constraints, after_all(graph))
    assert {clause for conflict in conflicts for clause in conflict.clauses} >= clauses
    gone = set()
    while not Implications(graph, promised).is_allowed(constraints, after_all(graph)):
        conflicts = refuted(graph, promised, constraints, after_all(graph))
        assert conflicts
        for conflict in conflicts:
            gone |= conflict.clauses
            promised -= conflict.clauses
    assert gone - {Whole(ChangeKind.APPEND, unit) for unit in UNITS} == clauses


def test_a_file_with_thousands_of_cells_that_may_be_several_things_is_no_matter() -> None:
    graph = graph_of("create /a", "")
    either = Constraint("a cell that is full of what nobody knows", (CellReading(), CellReading()))
    allowed = Implications(graph, frozenset())
    assert allowed.is_allowed([either] * 3000, after_all(graph))
    assert not allowed.is_allowed([*[either] * 3000, Constraint("one that cannot be", ())], after_all(graph))


def test_what_nobody_made_refutes_that_things_are_intact() -> None:
    graph = graph_of("append /a 16", "create /a")
    tree = {"/": Node("directory", 2), "/a": Node("file", 11, size=16, content=b"?" * 16), "/stray": Node("file", 12)}
    constraints = ObservationReader(graph.workings, {}).read(Observation(True, None, tree))
    names = {name.name for conflict in refuted(graph, EVERYTHING, constraints, 1) for name in conflict.clauses}
    assert names >= {"intact names", "intact contents"}


def test_what_had_returned_when_the_power_failed_is_known() -> None:
    graph = graph_of("create /a; fsync /a")
    constraints = ObservationReader(graph.workings, {}).read(Observation(True, None, {"/": Node("directory", 2)}))
    durable = frozenset(clause for clause in EVERYTHING if clause.name == "durable fsync-file entry")
    assert [Implications(graph, durable).is_allowed(constraints, returned) for returned in (0, 1, 2)] == [
        True,
        True,
        False,
    ]


# Under which circumstances a workload tries a clause


ORDER = Ordered(ChangeKind.OVERWRITE, ChangeKind.APPEND, Relation.SAME_DIRECTORY)
TAKEN_ALONG = Durable(Call.FSYNC_FILE, What.OTHER_OVERWRITES)
SETUP = "write /a 0 4096; write /b 0 4096; write /s 0 100"


def tried(operations: str, finish: Finish, clause: Clause, commit: float = 5.0) -> frozenset[Circumstance]:
    workload = Workload("w", parse(SETUP), parse(operations), finish)
    return how_tried(workload, graph_of_workload(workload), commit).get(clause, frozenset())


@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        (Finish("natural", natural=True), {Circumstance.NATURAL}),
        (Finish("fsync", parse("fsync /b")), {Circumstance.SYNCED}),
        (Finish("fsync", parse("fsync /")), {Circumstance.SYNCED}),
        (Finish("fsync", parse("fsync /a")), set()),
        (Finish("sync", parse("sync")), set()),
    ],
)
def test_an_order_is_tried_by_natural_writeback_and_by_a_sync_of_the_later_one(
    finish: Finish, expected: set[Circumstance]
) -> None:
    assert (
        tried("write /a 0 512; append /b 100", finish, ORDER) & {Circumstance.NATURAL, Circumstance.SYNCED} == expected
    )
    assert needed(ORDER) == {Circumstance.NATURAL, Circumstance.SYNCED}


def test_an_overwrite_that_an_fsync_takes_along_is_tried_with_a_mapping_too() -> None:
    # reiserfs with data=journal takes along what write(2) wrote, and not what a mapping did.
    finish = Finish("fsync", parse("fsync /b"))
    assert Circumstance.MAPPED not in tried("write /a 0 512; append /b 100", finish, TAKEN_ALONG)
    assert Circumstance.MAPPED in tried("write /a 0 512 mmap; append /b 100", finish, TAKEN_ALONG)
    assert needed(TAKEN_ALONG) == {Circumstance.MAPPED}


TURN = clause_of("in-turn names appends")
ZEROS, CUT = clause_of("never append zeros"), clause_of("whole truncate-down whole")
LAST, EARLIER, TAIL = (
    clause_of(f"never-in append {where} zeros") for where in ("last-block", "earlier-blocks", "tail-block")
)
NAMES, SYNCED_NAMES = clause_of("in-turn names names"), clause_of("in-turn names synced-names")
GONE = clause_of("ordered append unlink same-file")
SAFE, RENAME = clause_of("ordered append rename same-file"), clause_of("whole rename whole")
NATURAL, PHASE, SYNC = (
    Finish("natural", natural=True),
    Finish("natural", natural=True, phase=2.5),
    Finish("s", parse("sync")),
)
OF_A, OF_B, OF_ROOT = (Finish("f", parse(f"fsync {path}")) for path in ("/a", "/b", "/"))
PART = "append /c 9000; sync_file_range /c 8192 808"


@pytest.mark.parametrize(
    ("operations", "finish", "clause", "expected"),
    [
        ("create /n; append /b 100", NATURAL, TURN, {Circumstance.NATURAL}),
        ("create /n; append /b 100", OF_A, TURN, {Circumstance.ELSEWHERE}),
        ("create /n; append /b 100", OF_B, TURN, set()),  # it asks for the append: this clause does not speak of it
        ("create /n; append /b 100", OF_ROOT, TURN, set()),
        ("create /n; append /b 100", SYNC, TURN, {Circumstance.EVERYTHING}),
        ("append /b 100; rename /b /c", OF_A, SAFE, {Circumstance.ELSEWHERE}),
        ("append /b 100; rename /b /c", Finish("f", parse("fsync /c")), SAFE, {Circumstance.SYNCED}),
        ("append /b 9000", OF_B, LAST, {Circumstance.SYNCED}),
        ("append /b 4096", OF_A, LAST, {Circumstance.ELSEWHERE}),
        ("create /n; append /n 9000; rename /n /b", OF_A, EARLIER, {Circumstance.ELSEWHERE, Circumstance.MOVED}),
        ("create /n; append /n 9000; rename /n /c", OF_A, EARLIER, {Circumstance.ELSEWHERE}),
        ("create /n; append /b 9000; rename /n /b", OF_A, EARLIER, {Circumstance.ELSEWHERE}),
        ("create /n; rename /n /b; append /b 9000", OF_A, EARLIER, {Circumstance.ELSEWHERE}),
        ("create /n; append /n 9000; rename /n /b", NATURAL, EARLIER, {Circumstance.NATURAL}),
        ("append /b 100; link /b /c; unlink /b", NATURAL, GONE, {Circumstance.NATURAL}),
        ("append /b 100; unlink /b", NATURAL, GONE, set()),
        ("append /b 100; append /b 100", OF_A, TAIL, {Circumstance.ELSEWHERE}),
        ("append /b 5000; append /b 100", NATURAL, TAIL, {Circumstance.NATURAL, Circumstance.BEGUN}),
        ("append /b 100; append /b 9000; append /b 100", NATURAL, TAIL, {Circumstance.NATURAL, Circumstance.BEGUN}),
        ("append /a 100; append /s 100", NATURAL, TAIL, {Circumstance.NATURAL}),  # what /s ended in was durable
        ("append /s 9000; append /s 100", NATURAL, TAIL, {Circumstance.NATURAL, Circumstance.BEGUN}),
        ("append /b 100", OF_A, EARLIER, set()),
        ("append /b 4096", OF_A, TAIL, set()),  # /b has no block that it ends in the middle of
        ("append /b 100; fsync /b; append /b 100; rename /b /c", OF_A, SAFE, set()),
        ("append /b 100; fsync /b; append /b 100; rename /b /c", OF_A, OWN_FIRST, {Circumstance.ELSEWHERE}),
        ("append /b 100; fsync /a; rename /b /c", OF_A, SAFE, {Circumstance.ELSEWHERE}),
        ("append /b 100; fsync /a; rename /b /c", OF_A, OWN_FIRST, set()),
        ("create /n; fsync /b; link /b /c", OF_A, SYNCED_NAMES, {Circumstance.ELSEWHERE}),
        ("create /n; fsync /b; link /b /c", OF_A, NAMES, set()),
        ("create /n; link /b /c; fsync /b", OF_A, SYNCED_NAMES, set()),
        ("create /m; create /n; fsync /b; link /b /c", OF_A, SYNCED_NAMES, {Circumstance.ELSEWHERE}),
        ("mkdir /d; create /d/m; create /n; fsync /b; link /b /d/c; fsync /d/m", OF_A, NAMES, set()),
        (PART, PHASE, ZEROS, {Circumstance.NATURAL, Circumstance.OPEN, Circumstance.PART}),
        (PART, PHASE, EARLIER, set()),
        (PART.replace("8192", "0"), PHASE, ZEROS, {Circumstance.NATURAL, Circumstance.OPEN}),
        ("truncate /a 100", SYNC, CUT, {Circumstance.EVERYTHING}),
        ("truncate /a 0", SYNC, CUT, set()),  # there is no rest of a block
        ("mkdir /d; rename /a /d/a", Finish("f", parse("fsync /d")), RENAME, {Circumstance.SYNCED, Circumstance.ONE_END}),
        ("rename /a /c", OF_ROOT, RENAME, {Circumstance.SYNCED}),
        ("mkdir /d; create /n; rename /n /d/n", OF_ROOT, RENAME, {Circumstance.SYNCED}),
    ],
)  # fmt: skip
def test_a_clause_is_tried_where_it_would_be_broken(
    operations: str, finish: Finish, clause: Clause, expected: set[Circumstance]
) -> None:
    assert tried(operations, finish, clause) == expected


@pytest.mark.parametrize(
    ("phase", "commit", "is_open"),
    [
        (0.0, 3.0, False),
        (0.5, 5.0, False),
        (2.5, 5.0, True),
        (2.5, 30.0, False),
        (27.0, 30.0, True),
        (27.0, 5.0, False),
    ],
)
def test_a_name_is_held_against_data_that_came_just_before_a_commit(phase: float, commit: float, is_open: bool) -> None:
    finish = Finish("natural", natural=True, phase=phase)
    met = tried("append /b 100; rename /b /c", finish, SAFE, commit)
    assert (Circumstance.OPEN in met) is is_open
    assert Circumstance.OPEN in needed(SAFE) and Circumstance.OPEN not in needed(ORDER)


@pytest.mark.parametrize(
    ("filled", "broken"),
    [
        (stale(8192), {"never fallocate stale"}),
        (bytes(8192), set()),
        (bytes(4096) + stale(8192)[4096:], {"never fallocate stale"}),
        (bytes(4096) + stale(8192)[4096:8000] + b"?" * 192, {"intact contents", "intact kept-contents"}),
    ],
)
def test_old_contents_beside_zeros_are_no_garbage(filled: bytes, broken: set[str]) -> None:
    graph = graph_of("fallocate /a 0 8192", "create /a")
    tree = {"/": Node("directory", 2), "/a": Node("file", 11, size=8192, content=filled)}
    constraints = ObservationReader(graph.workings, {}).read(Observation(True, None, tree))
    names = {name.name for conflict in refuted(graph, EVERYTHING, constraints, 1) for name in conflict.clauses}
    assert names == broken


@pytest.mark.parametrize(
    ("begin", "end", "byte", "broken"),
    [
        (4096, 5000, None, {"never overwrite stale"}),
        (5100, 8192, None, {"never overwrite stale"}),
        (5100, 5632, None, {"never overwrite stale"}),
        (4096, 4096, None, set()),
        (4096, 4097, b"?", {"intact contents", "intact kept-contents"}),  # old contents are bob's own
        (8192, 8704, None, {"intact contents", "intact kept-contents"}),  # another block
        (3584, 4096, None, {"intact contents", "intact kept-contents"}),
    ],
)
def test_an_overwrite_of_a_hole_is_given_a_whole_block(
    begin: int, end: int, byte: bytes | None, broken: set[str]
) -> None:
    """ext3 with data=writeback: what the block had before shows beside the data."""
    graph = graph_of("write /a 5000 100", "create /a; truncate /a 16384")
    written = bytearray(graph.workings.history.steps[1].inodes[graph.workings.history.steps[1].names["/a"]].content)
    written[begin:end] = (byte or stale(16384)[begin:end]) if end > begin else b""
    tree = {"/": Node("directory", 2), "/a": Node("file", 11, size=16384, content=bytes(written))}
    constraints = ObservationReader(graph.workings, {}).read(Observation(True, None, tree))
    names = {name.name for one in refuted(graph, EVERYTHING, constraints, 1) for name in one.clauses}
    assert names == broken


@pytest.mark.parametrize(
    ("operations", "broken"),
    [
        ("truncate /b 100; append /a 4096", {"never append stale"}),
        ("unlink /b; append /a 4096", {"never append stale"}),
        ("append /a 4096", {"intact contents", "intact kept-contents"}),  # /b has its blocks
    ],
)
def test_what_a_freed_block_had_is_old_and_no_garbage(operations: str, broken: set[str]) -> None:
    """reiserfs with data=writeback: a file that grows has what was in the end of one that was cut."""
    graph = graph_of(operations, "create /a; write /b 0 8192")
    old = graph.workings.history.steps[0].inodes[graph.workings.history.steps[0].names["/b"]].content
    tree = {"/": Node("directory", 2), "/a": Node("file", 11, size=4096, content=old[4096:])}
    constraints = ObservationReader(graph.workings, {}).read(Observation(True, None, tree))
    promised = EVERYTHING - {clause for clause in EVERYTHING if isinstance(clause, Durable | Ordered | InTurn | Whole)}
    names = {name.name for one in refuted(graph, promised, constraints, 0) for name in one.clauses}
    assert {name for name in names if "append" in name or "contents" in name} == broken


CUT_AND_LONG_AGAIN = "write /a 4096 12288; truncate /a 512; append /d/h 100; fsync /a; append /a 7680"
NO_STALE = {clause for clause in EVERYTHING if isinstance(clause, Never) and clause.fill is Fill.STALE}


@pytest.mark.parametrize("of", [0, 1, None], ids=["before all", "before the cut", "before mkfs"])
def test_a_file_that_is_cut_and_grows_again_may_show_what_it_had(of: int | None) -> None:
    """ext2, ext3 and reiserfs with data=writeback: the sync had returned, and the block has what the file once had."""
    graph = graph_of(CUT_AND_LONG_AGAIN, "mkdir /d; write /d/h 0 100; write /a 0 8192")
    steps = graph.workings.history.steps
    [thing] = [one.identity for one in graph.workings.history.things if "/a" in one.names]
    was = stale(8192) if of is None else steps[of].inodes[thing].content
    content = steps[-1].inodes[thing].content[:4096] + was[4096:8192]
    helper = steps[-1].inodes[steps[-1].names["/d/h"]].content
    tree = {
        "/": Node("directory", 2),
        "/a": Node("file", 11, size=8192, content=content),
        "/d": Node("directory", 12),
        "/d/h": Node("file", 13, size=200, content=helper),
    }
    constraints = ObservationReader(graph.workings, {}).read(Observation(True, None, tree))
    fsync = {clause for clause in EVERYTHING if isinstance(clause, Durable) and clause.call is Call.FSYNC_FILE}
    synced = fsync | {clause for clause in EVERYTHING if isinstance(clause, Intact | Never)}
    assert Implications(graph, synced - NO_STALE).is_allowed(constraints, after_all(graph))
    assert not Implications(graph, synced).is_allowed(constraints, after_all(graph))


def test_what_a_file_has_later_is_not_what_it_had_before_it_was_cut() -> None:
    graph = graph_of("truncate /a 0; append /a 4096; append /b 4096", "create /b; write /a 0 4096")
    steps = graph.workings.history.steps
    later = steps[-1].inodes[steps[-1].names["/a"]].content
    tree = {
        "/": Node("directory", 2),
        "/a": Node("file", 11, size=0),
        "/b": Node("file", 12, size=4096, content=later),
    }
    constraints = ObservationReader(graph.workings, {}).read(Observation(True, None, tree))
    assert not Implications(graph, UNORDERED - NO_STALE).is_allowed(constraints, 0)


def test_a_file_that_is_cut_and_grows_again_is_left_with_zeros_and_with_old_contents_of_the_disk_and_its_own() -> None:
    graph = graph_of("append /a 500 trunc", "write /a 0 500")
    steps = graph.workings.history.steps
    own = steps[0].inodes[steps[0].names["/a"]].content
    promised = {clause for clause in EVERYTHING if isinstance(clause, Intact | Never)}
    found = allowed_trees(graph, promised - NO_STALE, 1000)
    contents = {entry.content for tree in found.trees for path, entry in tree if path == "/a"}
    assert {bytes(500), stale(500), own} <= contents
    found = allowed_trees(graph, promised, 1000)
    assert stale(500) not in {entry.content for tree in found.trees for path, entry in tree if path == "/a"}


def test_of_what_a_file_had_its_last_contents_are_shown_which_were_there() -> None:
    """Two overwrites, a cut, and a growth behind it: old contents are those of the overwrite that a crash state has."""
    graph = graph_of("write /a 0 512; write /a 0 512; truncate /a 0; truncate /a 512", "write /a 0 512")
    steps = graph.workings.history.steps
    had = [steps[at].inodes[steps[at].names["/a"]].content for at in range(3)]
    promised = {clause for clause in EVERYTHING if isinstance(clause, Intact)}
    last = {one.number: at for at, one in enumerate(graph.workings.operations)}
    cut = {at for at, one in enumerate(graph.workings.operations) if one.number in (3, 4)}
    for number, there in enumerate([cut, cut | {last[1]}, cut | {last[1], last[2]}]):
        contents = [dict(tree)["/a"].content for tree in trees(graph.workings, promised, there)]
        assert contents == [bytes(512), stale(512), had[number]]


def test_what_a_file_had_is_told_in_a_piece_that_begins_within_a_sector() -> None:
    graph = graph_of("truncate /a 5000; fsync /a; append /a 3192", "write /a 0 8192")
    first = graph.workings.history.steps[0]
    was = first.inodes[first.names["/a"]].content
    tree = {"/": Node("directory", 2), "/a": Node("file", 11, size=8192, content=was)}
    constraints = ObservationReader(graph.workings, {}).read(Observation(True, None, tree))
    fsync = {clause for clause in EVERYTHING if isinstance(clause, Durable) and clause.call is Call.FSYNC_FILE}
    synced = fsync | {clause for clause in EVERYTHING if isinstance(clause, Intact | Never)}
    assert Implications(graph, synced - NO_STALE).is_allowed(constraints, after_all(graph))
    assert not Implications(graph, synced).is_allowed(constraints, after_all(graph))
