"""Micro-operations of workloads, and what a model allows for small ones, counted by hand."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import combinations, islice
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis.strategies import integers, lists, sampled_from

from bob.apm.allowed import Implications, TreeOracle, at_time
from bob.apm.builtin import builtin
from bob.apm.builtin import names as builtin_names
from bob.apm.clauses import WHATS, Clause, Durable, Fill, Intact, Never, Ordered, Whole, clause_of, closed, every_clause
from bob.apm.counting import StateCount, count
from bob.apm.dependencies import Graph, graph
from bob.apm.micro import AttributeCell, DataCell, MicroKind, SizeCell, workings
from bob.apm.model_graph import graph_under
from bob.apm.model_states import (
    CrashStage,
    Lattice,
    ModelCrash,
    ModelStates,
    allowed_trees,
    closed_sets,
    crashes,
    dependencies,
)
from bob.apm.readings import CellReading
from bob.apm.tree_digests import Shapes, _with_status, bits, shape_of
from bob.apm.trees import ModelTree, nodes
from bob.apm.what_if import what_if
from bob.claim.property.vocabulary import Call, Unit, What
from bob.errors import UsageError
from bob.observe.observation import Node
from bob.workload.kinds import ChangeKind, Relation
from bob.workload.language import parse
from bob.workload.operations import Workload
from bob.workload.simulation import simulate
from tests.apm.built_trees import trees
from tests.apm.cases import EVERYTHING, NOTHING, graph_of, graph_of_workload, without_order, workload
from tests.workload.generators import random_workload


def names(tree: ModelTree) -> list[str]:
    return [path for path, _entry in tree]


def test_in_program_order_and_all_at_once_there_is_a_state_before_and_after_each_operation() -> None:
    promised = EVERYTHING - _durable()
    allowed = allowed_trees(graph_of("create /a; append /a 10; rename /a /b; mkdir /c"), promised, 1000)
    assert allowed.complete
    assert sorted(map(names, allowed.trees)) == [[], ["/a"], ["/a"], ["/b"], ["/b", "/c"]]


def test_without_an_order_every_set_of_operations_may_be_there() -> None:
    allowed = allowed_trees(graph_of("create /a; create /b; mkdir /c"), without_order() - _durable(), 1000)
    assert len(allowed.trees) == 2**3


def test_a_rename_that_is_not_whole_may_leave_both_names_or_none() -> None:
    promised = EVERYTHING - _durable() - {Whole(ChangeKind.RENAME, Unit.WHOLE)}
    allowed = allowed_trees(graph_of("rename /a /b", "create /a"), promised, 1000)
    assert sorted(map(names, allowed.trees)) == [[], ["/a"], ["/a", "/b"], ["/b"]]


def test_an_append_may_show_zeros_or_stale_contents_where_nothing_forbids_it() -> None:
    contents = {}
    for forbidden in [(), (Fill.STALE,), (Fill.ZEROS,), (Fill.ZEROS, Fill.STALE)]:
        promised = frozenset(Never(ChangeKind.APPEND, fill) for fill in forbidden)
        allowed = allowed_trees(graph_of("append /a 16", "create /a"), promised, 1000)
        contents[forbidden] = sorted(dict(tree)["/a"].content[:6] for tree in allowed.trees)
    assert contents[()] == [b"", b"\0" * 6, b"<stale", b"[op01:"]
    assert contents[Fill.STALE,] == [b"", b"\0" * 6, b"[op01:"]
    assert contents[Fill.ZEROS,] == [b"", b"<stale", b"[op01:"]
    assert contents[Fill.ZEROS, Fill.STALE] == [b"", b"[op01:"]


def test_overwrites_come_in_sectors_blocks_or_whole() -> None:
    asked = graph_of("write /a 2048 4096", "write /a 0 8192")
    assert len(allowed_trees(asked, frozenset({Whole(ChangeKind.OVERWRITE, Unit.WHOLE)}), 100).trees) == 2
    assert len(allowed_trees(asked, frozenset({Whole(ChangeKind.OVERWRITE, Unit.BLOCK)}), 100).trees) == 4
    assert len(allowed_trees(asked, NOTHING, 2**8 + 1).trees) == 2**8


def test_what_was_synced_is_there_before_anything_that_was_done_later() -> None:
    operations = "append /a 10; fsync /a; create /b"
    promised = frozenset({Durable(Call.FSYNC_FILE, What.DATA), Durable(Call.FSYNC_FILE, What.SIZE)})
    for tree in allowed_trees(graph_of(operations, "create /a"), promised, 1000).trees:
        found = dict(tree)
        assert "/b" not in found or found["/a"].content == b"[op01:0000"
    lost = allowed_trees(graph_of(operations, "create /a"), NOTHING, 1000).trees
    assert any("/b" in dict(tree) and not dict(tree)["/a"].content for tree in lost)


def test_more_than_the_limit_is_said_to_be_incomplete() -> None:
    allowed = allowed_trees(graph_of("write /a 0 8192", "write /a 0 8192"), NOTHING, 50)
    assert not allowed.complete
    assert len(allowed.trees) <= 50


def test_safe_rename_is_an_order_of_one_file() -> None:
    asked = graph_of("write /new 0 16; rename /new /a", "write /a 0 32")
    safe = Ordered(ChangeKind.APPEND, ChangeKind.RENAME_OVER, Relation.SAME_FILE)
    kept = frozenset({Whole(ChangeKind.RENAME_OVER, Unit.WHOLE)})
    sizes = [
        {len(dict(tree)["/a"].content) for tree in allowed_trees(asked, promised, 10_000).trees}
        for promised in (kept, kept | {safe})
    ]
    assert sizes == [{0, 16, 32}, {16, 32}]


def test_every_clause_has_words_for_people_and_a_name_of_its_own() -> None:
    clauses = every_clause()
    assert len({clause.name for clause in clauses}) == len({clause.words for clause in clauses}) == len(clauses)
    assert all(clause_of(clause.name) == clause for clause in clauses)


@given(integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_a_stronger_model_allows_no_more(seed: int) -> None:
    rng = Random(seed)
    asked = graph_of_workload(random_workload(rng, most=4, shifting=False))
    strong = allowed_trees(asked, EVERYTHING, 300)
    weak = allowed_trees(asked, without_order(), 2000)
    if strong.complete and weak.complete:
        assert set(strong.trees) <= set(weak.trees)
    for needed, all_of in zip(dependencies(asked, NOTHING), dependencies(asked, EVERYTHING), strict=True):
        assert needed <= all_of


FAST = what_if(builtin("ext3-j"), ["fsync persists only its file"], "ext3-fast").after.promised
ONE_CHANGE = (
    "append /a 16", "append /a 8", "append /b 16", "append /d/c 16", "truncate /a 40", "rename /r /d/r", "mkdir /e",
    "create /d/n", "unlink /d/g", "fsync /a", "fsync /d/c", "fsync /d", "fsync /b",
    "append /b 8 sync", "append /a 9 dsync",
)  # fmt: skip


@given(lists(sampled_from(ONE_CHANGE), min_size=1, max_size=6, unique=True))
@settings(max_examples=150, deadline=None)
def test_a_sync_that_persists_only_its_file_overtakes_the_rest_and_nothing_else_does(operations: list[str]) -> None:
    """Against the words of OSDI'14, section 4.6: what is synced depends on what was synced before, and on what it needs
    to exist; all else is in order. Changes are whole here, so a crash state is a set of operations."""
    setup = "write /a 0 64; write /b 0 64; write /r 0 64; mkdir /d; write /d/c 0 64; write /d/g 0 64"
    asked = graph_of("; ".join(operations), setup)
    whole = FAST | {Whole(ChangeKind.APPEND, Unit.WHOLE)}
    found = {
        frozenset(asked.workings.operations[at].number for at in bits(there))
        for there in closed_sets(Lattice(asked, whole))
    }
    assert found == _fast(operations)


def test_the_directory_of_what_is_synced_overtakes_too_since_it_is_needed() -> None:
    whole = FAST | {Whole(ChangeKind.APPEND, Unit.WHOLE)}
    allowed = allowed_trees(graph_of("append /a 16; mkdir /e; create /e/x; fsync /e/x", "create /a"), whole, 100).trees
    left = {(len(dict(tree)["/a"].content), *names(tree)[1:]) for tree in allowed}
    assert left == {(0,), (16,), (0, "/e"), (16, "/e"), (0, "/e", "/e/x"), (16, "/e", "/e/x")}
    unsynced = allowed_trees(graph_of("append /a 16; mkdir /e; create /e/x", "create /a"), whole, 100).trees
    assert {(len(dict(tree)["/a"].content), *names(tree)[1:]) for tree in unsynced} == {
        (0,), (16,), (16, "/e"), (16, "/e", "/e/x")
    }  # fmt: skip


def _fast(operations: list[str]) -> set[frozenset[int]]:
    """Every set of operations, by their numbers, that a crash may leave of ``operations``."""
    steps = [operation.split() for operation in operations]
    changing = [number for number, step in enumerate(steps, start=1) if step[0] != "fsync"]
    syncs = [number for number, step in enumerate(steps, start=1) if step[0] == "fsync" or step[-1].endswith("sync")]

    def paths(number: int) -> set[str]:
        verb, *words = steps[number - 1]
        return set(words[:2] if verb == "rename" else words[:1])

    def is_kept(sync: int, number: int) -> bool:
        """Whether a sync, or a write that comes with one, persists a change before it, or its own."""
        path, verb = steps[sync - 1][1], steps[number - 1][0]
        if number > sync:
            return False
        in_it = verb in ("rename", "create", "unlink") and any(one.rsplit("/", 1)[0] == path for one in paths(number))
        return path in paths(number) or in_it

    def needs(later: int, earlier: int) -> bool:
        is_same = bool(_files(paths(later)) & _files(paths(earlier)))
        is_synced = any(is_kept(sync, later) for sync in syncs)
        return is_same or not is_synced

    def is_left(there: frozenset[int]) -> bool:
        begun = max(there, default=0)
        synced = {
            number
            for sync in syncs
            if sync < begun
            for number in changing
            # What was asked is that an fsync persists only its file: a write with O_SYNC persists everything still.
            if is_kept(sync, number) or (number <= sync and steps[sync - 1][0] != "fsync")
        }
        return synced <= there and all(
            earlier in there for later in there for earlier in changing if earlier < later and needs(later, earlier)
        )

    sets = (frozenset(one) for count in range(len(changing) + 1) for one in combinations(changing, count))
    return {one for one in sets if is_left(one)}


def _files(paths: set[str]) -> set[str]:
    """The files behind paths: /r and /d/r are one."""
    return {"/r" if path == "/d/r" else path for path in paths}


def _durable() -> frozenset[Clause]:
    return frozenset(clause for clause in EVERYTHING if isinstance(clause, Durable))


FILE = "write /a 0 1000"


def micro_operations(operations: str) -> list[tuple[MicroKind, object]]:
    taken = workings(simulate(Workload("w", parse(FILE), parse(operations)))[0])
    return [(one.kind, one.value) for one in taken.operations]


@pytest.mark.parametrize("mode", ["punch", "zero-keep"])
def test_a_range_of_zeros_is_written_piece_by_piece_and_no_size_is_changed(mode: str) -> None:
    """A piece ends at a sector, at the old end of the file, and where the range ends."""
    assert micro_operations(f"fallocate /a 100 1000 {mode}") == [
        (MicroKind.WRITE_BLOCK, bytes(412)),
        (MicroKind.WRITE_BLOCK, bytes(488)),
        (MicroKind.WRITE_BLOCK, bytes(24)),
        (MicroKind.WRITE_BLOCK, bytes(76)),
    ]


def test_where_it_grows_the_file_it_changes_the_size_too() -> None:
    kinds = micro_operations("fallocate /a 512 1000 zero")
    assert [value for kind, value in kinds if kind is MicroKind.CHANGE_FILE_SIZE] == [1512]
    assert sum(len(value) for kind, value in kinds if isinstance(value, bytes)) == 1000


def test_what_changes_nothing_that_can_be_read_is_no_micro_operation() -> None:
    assert micro_operations("fallocate /a 0 5000 keep") == []


def test_a_mode_and_an_owner_are_attributes() -> None:
    taken = workings(simulate(Workload("w", parse(FILE), parse("chmod /a 600; chown /a 1:2")))[0])
    assert [(one.cell, one.value) for one in taken.operations] == [
        (AttributeCell(1, "mode"), b"600"),
        (AttributeCell(1, "owner"), b"1:2"),
    ]
    assert not any(isinstance(one.cell, DataCell | SizeCell) for one in taken.operations)


def told_at_random(asked: Graph, rng: Random) -> list[bytes]:
    """What had been told when each operation had returned: more and more."""
    told = [b""]
    for _ in asked.returns[1:]:
        told.append(told[-1] + (b"x" if rng.random() < 0.3 else b""))
    return told


def brute_force(asked: Graph, promised: frozenset[Clause], told: list[bytes]) -> set[tuple[bytes, int]]:
    """Every set of micro-operations, tried one by one, at each time."""
    implications, count = Implications(asked, promised), len(asked.workings.operations)
    found = set()
    for returned, said in enumerate(told):
        for there in range(1 << count):
            inside = frozenset(bits(there))
            reading = CellReading(inside, frozenset(range(count)) - inside)
            known: dict[int, bool] = {}
            if implications.force(known, at_time(asked, returned)) and implications.force(known, reading):
                found.add((said, there))
    return found


@given(integers(0, 2**32))
@settings(max_examples=120, deadline=None)
def test_the_crash_states_of_a_model_are_all_closed_sets_at_each_time(seed: int) -> None:
    rng = Random(seed)
    asked = graph_of_workload(random_workload(rng, most=4, shifting=False))
    if len(asked.workings.operations) > 9:
        return
    promised = frozenset(clause for clause in every_clause() if rng.random() < rng.choice((0.05, 0.5, 0.95)))
    told = told_at_random(asked, rng)
    lattice = Lattice(asked, promised)
    made = list(crashes(lattice, told))
    assert {(told[one.returned], one.there) for one in made} == brute_force(asked, promised, told)
    assert count(lattice, told) == StateCount(len(brute_force(asked, promised, told)), is_exact=True)
    for most in (0, 3, 30):
        least = count(lattice, told, most)
        assert 1 <= least.states <= len({(told[one.returned], one.there) for one in made})
        assert not least.is_exact or least == count(lattice, told)
    further = [(one.returned, one.there) for one in made if one.stage is CrashStage.FURTHER]
    assert len({(told[returned], there) for returned, there in further}) == len(further), "one came twice"


@given(integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_what_is_tried_leaves_the_trees_that_are_allowed_and_each_of_them_once(seed: int) -> None:
    rng = Random(seed)
    asked = graph_of_workload(random_workload(rng, most=4, shifting=False))
    promised = frozenset(clause for clause in every_clause() if rng.random() < rng.choice((0.3, 0.95)))
    allowed = allowed_trees(asked, promised, 400)
    if not allowed.complete:
        return
    tries = ModelStates(asked, promised, [b""] * len(asked.returns), 10_000)
    made = [(state, tries.tree(state)) for state in tries]
    assert tries.is_all
    assert {tree for _state, tree in made} == set(allowed.trees)
    assert len({state.digest for state, _tree in made}) == len(made)
    by_digest = {state.digest: tree for state, tree in made}
    history = asked.workings.history
    for step, prefix in zip(history.steps, tries.prefixes, strict=False):
        contents = {path: step.inodes[thing].content for path, thing in step.names.items() if path != "/"}
        assert {path: entry.content for path, entry in by_digest[prefix]} == contents
    assert len(tries.prefixes) == len(asked.returns)


@given(integers(0, 2**32))
@example(22801)  # zeros are forbidden by one size of a file, and old contents by an earlier one
@example(24547)
@settings(max_examples=60, deadline=None)
def test_what_a_model_leaves_of_a_program_is_not_missed_by_it(seed: int) -> None:
    """Each tree that it allows after so much had been told, with inode numbers that tell nothing."""
    rng = Random(seed)
    asked = graph_of_workload(random_workload(rng, most=5, shifting=False))
    promised = closed({clause for clause in every_clause() if isinstance(clause, Intact) or rng.random() < 0.5})
    told = told_at_random(asked, rng)
    foreseen = TreeOracle(asked, promised, told)
    tries = ModelStates(asked, promised, told, 500)
    for state in islice(tries, 100):
        tree = tries.nodes(state)
        assert foreseen.allows(state.output, tree) is not False, (state, tree)


NAMING = (
    *("create /n", "rename /n /a", "create /a", "unlink /a", "link /a /l", "rename /l /a", "rename /a /n exchange"),
    *("mkdir /d", "rename /d /e", "rename /e /d", "rmdir /d", "create /d/n", "rename /a /d/n", "rename /d/n /a"),
    *("append /n 100", "append /a 100", "append /d/n 100", "truncate /a 0", "fsync /a", "fsync /n", "fsync /"),
)


@given(lists(sampled_from(NAMING), min_size=2, max_size=6), integers(0, 2**32))
@example(["create /n", "rename /n /a", "create /n"], 1)
@example(["create /n", "rename /a /n exchange"], 10)
@example(["mkdir /d", "create /d/n", "rename /d /e", "unlink /e/n", "mkdir /d"], 0)  # of two that were /d one is there
@example(["mkdir /d", "create /d/n", "rename /d /e", "create /d"], 9)  # where a directory was, a file is
@settings(max_examples=40, deadline=None)
def test_a_model_allows_just_the_trees_in_its_list(steps: list[str], seed: int) -> None:
    """Also where one name may lead to several files, and several names to one: of all trees with nothing broken."""
    asked = graph_of_those_that_work(steps)
    if asked is None or len(asked.workings.operations) > 9:
        return
    rng, told = Random(seed), [str(number).encode() for number in range(len(asked.returns))]
    intact = {clause for clause in every_clause() if isinstance(clause, Intact)}
    share = rng.choice([0.3, 0.7, 0.95])
    promised = closed(intact | {clause for clause in sorted_by_name() if rng.random() < share})
    tries, every = (ModelStates(asked, clauses, told, 6000) for clauses in (promised, closed(intact)))
    listed = dict.fromkeys((state.output, tries.tree(state)) for state in tries)
    if not tries.is_all or tries.shows_stale:
        return
    foreseen = TreeOracle(asked, promised, told)
    for words, tree in islice(listed, 100):
        assert foreseen.allows(words, found_as(tree)), tree
    for tree in islice(dict.fromkeys(every.tree(state) for state in every), 30):
        # In a list, a directory with two names is what two of them are.
        assert all((words, tree) in listed for words in told if foreseen.allows(words, found_as(tree))), tree


def found_as(tree: ModelTree) -> dict[str, Node]:
    return {"/": Node("directory", 2), **nodes(tree)}


def sorted_by_name() -> list[Clause]:
    return sorted(every_clause(), key=lambda clause: clause.name)


def graph_of_those_that_work(steps: list[str]) -> Graph | None:
    """Those of the operations that can be done one after the other; None if it is none."""
    done: list[str] = []
    for step in steps:
        with suppress(UsageError):
            graph_of("; ".join([*done, step]), "create /a; create /b")
            done.append(step)
    return graph_of("; ".join(done), "create /a; create /b") if done else None


def test_a_tree_that_a_model_forbids_is_missed() -> None:
    operations = "create /f; append /f 4096; rename /f /g"
    asked, told = graph_of(operations), [b"", b"", b"", b"told"]
    every = TreeOracle(asked, frozenset(every_clause()), told)
    tries = ModelStates(asked, frozenset(every_clause()), told, 100)
    whole = next(tries.nodes(state) for state in tries if state.output == b"told")
    assert every.allows(b"told", whole) is True
    assert every.allows(b"", whole) is True  # the rename is there, and has not returned
    empty = {path: replace(node, size=0, content=b"") for path, node in whole.items()}
    assert every.allows(b"", empty) is every.allows(b"told", empty) is False
    assert TreeOracle(asked, frozenset(), told).allows(b"told", empty) is True
    for words in (b"", b"told"):
        by = every.clauses(words, empty)
        assert by and TreeOracle(asked, by, told).allows(words, empty) is False
        assert all(TreeOracle(asked, by - {one}, told).allows(words, empty) for one in by)
    assert every.allows(b"", {}) is True


@given(integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_the_clauses_that_forbid_a_tree_do_so_whenever_the_crash_came_and_each_is_needed(seed: int) -> None:
    rng = Random(seed)
    asked = graph_of_workload(random_workload(rng, most=5, shifting=False))
    promised = closed({clause for clause in every_clause() if rng.random() < 0.7})
    told = told_at_random(asked, rng)
    foreseen = TreeOracle(asked, promised, told)
    tries = ModelStates(asked, frozenset(), told, 200)
    for state in islice(tries, 40):
        tree = tries.nodes(state)
        if foreseen.allows(state.output, tree) is False and (by := foreseen.clauses(state.output, tree)):
            assert by <= promised and TreeOracle(asked, by, told).allows(state.output, tree) is False
            assert all(TreeOracle(asked, by - {one}, told).allows(state.output, tree) is not False for one in by)


def test_where_it_takes_too_long_it_is_not_known_whether_a_tree_is_missed() -> None:
    operations = "; ".join(f"write /f {4096 * number} 4096" for number in range(6))
    asked = graph_of(operations)
    told = [b""] * 7
    tries = ModelStates(asked, frozenset(), told, 100)
    [*_more, last] = tries
    assert TreeOracle(asked, frozenset(), told, most=0).allows(b"", tries.nodes(last)) is None


def digest_of(told: bytes, tree: ModelTree) -> bytes:
    """What :class:`Shapes` makes step by step, made of a whole tree."""
    return _with_status(shape_of(told, tree), [entry for _path, entry in tree])


@given(integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_a_tree_that_is_made_out_of_another_one_is_the_one_that_is_built_from_nothing(seed: int) -> None:
    """Any sets, near each other and far apart, in any order; more of them than are remembered."""
    rng = Random(seed)
    taken = graph_of_workload(random_workload(rng, most=8, shifting=False)).workings
    promised = frozenset(clause for clause in every_clause() if rng.random() < rng.choice((0.05, 0.5, 0.95)))
    shapes, count = Shapes(taken, promised), len(taken.operations)
    there = 0
    for _ in range(25):
        there = rng.getrandbits(count) if rng.random() < 0.3 else there ^ 1 << rng.randrange(count) if count else 0
        built = list(trees(taken, promised, frozenset(bits(there))))
        assert shapes.of(b"told", there) == [(digest_of(b"told", tree), shape_of(b"told", tree)) for tree in built]
        for variant in rng.sample(range(len(built)), rng.randint(0, len(built))):
            made = shapes.tree(there, variant)
            assert made == built[variant]
            assert nodes(made) == nodes(built[variant])  # modes and owners, too


@given(integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_chains_tie_together_what_the_edges_of_all_pairs_do(seed: int) -> None:
    rng = Random(seed)
    asked = random_workload(rng, most=12, shifting=False)
    history = simulate(asked)[0]
    if rng.random() < 0.5:  # calls of several processes
        begun = {
            number: rng.randrange(number) for number in range(1, len(history.operations) + 1) if rng.random() < 0.5
        }
        history = replace(history, begun=begun)
    taken = workings(history, asked.finish.operations)
    share = rng.choice((0.05, 0.5, 0.95, 1))
    clauses = [clause for clause in every_clause() if rng.random() < share]
    may_break = (rng.random() < 0.2 for _ in clauses)
    promised = frozenset(
        replace(clause, unless_synced=True) if isinstance(clause, Ordered) and breaks else clause
        for clause, breaks in zip(clauses, may_break, strict=False)
    )
    for one in (promised, rng.choice([FAST, *(builtin(name).promised for name in builtin_names())])):
        pairs, chains = Lattice(graph(asked, taken), one), Lattice(graph_under(asked, taken, one), NOTHING)
        assert (chains.needs, chains.needed_by, chains.forced) == (pairs.needs, pairs.needed_by, pairs.forced)


@pytest.mark.parametrize("count", range(len(Relation) + 1))
def test_each_way_to_chain_orders_and_syncs_is_the_one_that_the_edges_say(count: int) -> None:
    """Orders with these relations and no others; a sync that makes one thing durable and nothing else."""
    asked = workload(
        "mkdir /d; create /d/a; create /d/b; append /d/b 600; create /c; rename /d/a /a; fsync /d/b; fsync /d"
    )
    taken = workings(simulate(asked)[0], asked.finish.operations)
    pairs = graph(asked, taken)
    orders = [
        frozenset(clause for clause in every_clause() if isinstance(clause, Ordered) and clause.relation in related)
        for related in combinations(Relation, count)
    ]
    syncs = [
        frozenset(clause for clause in every_clause() if isinstance(clause, Durable) and clause.what is what)
        for what in (WHATS if not count else ())
    ]
    for promised in (*orders, *syncs):
        made = Lattice(graph_under(asked, taken, promised), NOTHING)
        expected = Lattice(pairs, promised)
        assert (made.needs, made.forced) == (expected.needs, expected.forced)


def test_the_work_begins_as_alice_does() -> None:
    """Prefixes; the next call split; a prefix without one earlier call."""
    asked = graph_of("create /a; create /b")
    made = list(crashes(Lattice(asked, NOTHING), [b""] * 3))
    first = [(one.stage, one.returned, one.there) for one in made if one.stage is not CrashStage.FURTHER]
    assert first[:3] == [(CrashStage.PREFIX, 0, 0b00), (CrashStage.PREFIX, 1, 0b01), (CrashStage.PREFIX, 2, 0b11)]
    assert (CrashStage.WITHOUT, 2, 0b10) in first
    assert {one.there for one in made} == {0b00, 0b01, 0b10, 0b11}


def test_splits_do_not_use_up_a_budget() -> None:
    """Splits and prefixes without one call take turns, and the first call that is left out is one before the end."""
    asked = graph_of("write /a 0 8192; write /a 8192 8192", "write /a 0 16384")
    made = list(islice(crashes(Lattice(asked, NOTHING), [b""] * 3), 3, 7))  # behind the three prefixes
    assert [one.stage for one in made] == [CrashStage.SPLIT, CrashStage.WITHOUT] * 2
    assert (made[1].returned, made[1].there) == (2, 2**16 - 1)


def test_a_split_begins_with_the_first_parts_of_a_call() -> None:
    asked = graph_of("write /a 0 1536", "write /a 0 1536")
    splits = [one.there for one in crashes(Lattice(asked, NOTHING), [b""] * 2) if one.stage is CrashStage.SPLIT]
    assert splits[:3] == [0b001, 0b011, 0b111]
    assert set(splits) == set(range(1, 8))


def test_a_budget_ends_the_work_and_is_said() -> None:
    asked = graph_of("write /a 0 8192", "write /a 0 8192")
    tries = ModelStates(asked, NOTHING, [b""] * 2, 50)
    assert len(list(tries)) == tries.tried == 50
    assert not tries.is_all


AFTER_CALLS = frozenset(clause for clause in every_clause() if isinstance(clause, Durable))


def test_where_a_budget_is_less_than_the_prefixes_it_is_spread_over_the_workload() -> None:
    """And all that is left comes behind it, as ever."""
    asked = graph_of("; ".join(f"create /f{number}" for number in range(40)))
    told, lattice = [b""] * 41, Lattice(asked, EVERYTHING)
    made = list(crashes(lattice, told, 10))
    assert [one.returned for one in made[:6]] == [0, 8, 16, 24, 32, 40]
    assert {one.stage for one in made[:6]} == {CrashStage.PREFIX}
    next_ones = list(islice(crashes(Lattice(asked, NOTHING), told, 10), 6, 17))
    assert next_ones.pop(2) == ModelCrash(0, 0, CrashStage.LEAST), "all is lost"
    assert [one.stage for one in next_ones] == [CrashStage.SPLIT, CrashStage.WITHOUT] * 5
    assert [one.returned for one in next_ones[::2]] == [0, 32, 16, 8, 24]
    assert [one.returned for one in next_ones[1::2]] == [40, 32, 16, 8, 24]
    assert {one.there for one in made} == {one.there for one in crashes(lattice, told)}
    most = list(islice(crashes(Lattice(asked, NOTHING), told, 50), 50))
    assert sum(one.stage is CrashStage.PREFIX for one in most) == 26, "prefixes alone are not tried"


def test_what_is_left_where_all_is_lost_is_tried_soon_after_each_telling() -> None:
    """A program tells of 90 appends that nothing syncs: the state without any comes within the budget."""
    asked = graph_of("; ".join(["create /a", *["append /a 4"] * 90]))
    told, lattice = [b"", *[b"begun"] * 90, b"all"], Lattice(asked, EVERYTHING - AFTER_CALLS)
    made = list(islice(crashes(lattice, told, 100), 100))
    assert {(91, 0), (1, 0), (0, 0)} <= {(one.returned, one.there) for one in made}
    left = {(one.returned, one.there) for one in crashes(lattice, told)}
    assert {(one.returned, one.there) for one in crashes(lattice, told, 100)} == left, "and all others come, too"


def test_a_workload_with_countless_states_is_begun_at_once() -> None:
    """2**400 sets: what is tried is bounded by what is asked for."""
    asked = graph_of("write /a 0 204800", "write /a 0 204800")
    assert count(Lattice(asked, NOTHING), [b""] * 2) == StateCount(2**400, is_exact=True)
    tries = ModelStates(asked, NOTHING, [b""] * 2, 500)
    assert len({state.digest for state in tries}) == 500


def test_what_was_told_makes_two_states_of_one_tree() -> None:
    asked = graph_of("create /a; fsync /a; create /b")
    promised = frozenset({Durable(Call.FSYNC_FILE, What.ENTRY)})
    told = [b"", b"", b"synced", b"synced"]
    tries = ModelStates(asked, promised, told, 100)
    found = {(state.output, *names(tries.tree(state))) for state in tries}
    assert found == {
        (b"",), (b"", "/a"), (b"synced", "/a"), (b"synced", "/a", "/b"),
    }  # fmt: skip


def test_a_tree_has_modes_and_owners_and_which_names_are_of_one_file() -> None:
    asked = graph_of("chmod /a 600; chown /a 1:2", "write /a 0 10; link /a /b")
    tries = ModelStates(asked, EVERYTHING, [b""] * 3, 100)
    trees = [tries.nodes(state) for state in tries]
    assert {(tree["/a"].mode, tree["/a"].uid, tree["/a"].gid) for tree in trees} == {
        (0o644, 0, 0), (0o600, 0, 0), (0o600, 1, 2),
    }  # fmt: skip
    assert all(tree["/a"].inode == tree["/b"].inode and tree["/a"].links == 2 for tree in trees)
