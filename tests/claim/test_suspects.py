"""Damage accuses no operation alone where another one, there in part, may have done it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bob.catalogue.sets import RowSet, probes_of
from bob.claim.property.rules import Rule, is_broken, questions, quoted, violation
from bob.observe.observation import Node, Observation, Presence
from bob.workload.language import parse
from bob.workload.operations import At, Workload
from bob.workload.pattern import contents

from .test_collateral import SETUP, Tree, read, with_content, world_of
from .worlds import World


def suspects_of(operations: str, there: set[int], path: str, node: Node | None) -> set[frozenset[int]]:
    """Who is suspected, each set once, when ``path`` is ``node`` after the operations ``there``; none is PARTIAL."""
    world = world_of(operations)
    tree: Tree = dict(world.crash(there).tree or {})
    assert path in tree
    if node is None:
        del tree[path]
    else:
        tree[path] = replace(node, inode=tree[path].inode)
    reading = read(world, tree)
    assert Presence.PARTIAL not in reading.presences, reading
    return {damage.suspects for damage in (*reading.damage, *reading.collateral)}


EMPTY = Node("file")


def test_a_file_emptied_by_more_than_its_append_accuses_the_operation_on_its_name_as_well() -> None:
    """vfat: the cluster chain is freed, the name is still there, and fsck cuts the file off; a rename there puts down
    the new name without a size, and fills it in afterwards."""
    assert suspects_of("append /e/gone 100; unlink /e/gone", {1}, "/e/gone", EMPTY) == {frozenset({1, 2})}
    assert suspects_of("write /e/gone 0 512; unlink /e/gone", {1}, "/e/gone", EMPTY) == {frozenset({1, 2})}
    assert suspects_of("write /d/b 0 512; rename /d/a /d/b", {1}, "/d/b", EMPTY) == {frozenset({1, 2})}
    assert suspects_of("append /d/a 100; rename /d/a /n", {1, 2}, "/n", EMPTY) == {frozenset({1, 2})}


@pytest.mark.parametrize(
    ("operations", "presences"),
    [
        ("append /a 8192; write /a 0 4096", (Presence.FULL, Presence.NONE)),
        ("write /a 0 4096; write /a 0 8192", (Presence.UNDECIDED, Presence.PARTIAL)),
    ],
)
def test_zeros_where_two_operations_wrote_are_the_tear_of_one_of_them(
    operations: str, presences: tuple[Presence, ...]
) -> None:
    """The size of an append may be there without its data; or the data of the other one is lost."""
    world = World.of(Workload("zeros", tuple(parse("create /a")), tuple(parse(operations))))
    tree = dict(world.step(2).tree or {})
    tree["/a"] = with_content(tree["/a"], bytes(4096) + tree["/a"].content[4096:])
    reading = read(world, tree)
    assert reading.presences == presences
    assert {damage.suspects for damage in reading.damage if "instead of the data of operation" in damage.about} == {
        frozenset({1, 2})
    }


def test_a_size_that_its_append_can_leave_is_the_appends() -> None:
    world = world_of("append /e/gone 100; unlink /e/gone")
    tree = dict(world.crash({1}).tree or {})
    tree["/e/gone"] = with_content(tree["/e/gone"], tree["/e/gone"].content[:4150])
    assert read(world, tree).of(1) is Presence.PARTIAL
    world = world_of("append /e/gone 100")
    tree = dict(world.crash({1}).tree or {})
    tree["/e/gone"] = with_content(tree["/e/gone"], b"")
    assert read(world, tree).of(1) is Presence.PARTIAL


def test_freed_blocks_given_away_are_not_the_fault_of_an_append_alone() -> None:
    """ext4 with data=writeback: the unlink is not there, and its blocks are another's."""
    world = world_of("append /e/gone 10; unlink /e/gone; append /d/a 4K")
    whole = dict(world.crash({1, 3}).tree or {})["/e/gone"]
    spoiled = with_content(whole, contents(3, 8192, 4096) + whole.content[4096:])
    operations = "append /e/gone 10; unlink /e/gone; append /d/a 4K"
    assert suspects_of(operations, {1, 3}, "/e/gone", spoiled) == {frozenset({1, 2})}


def test_a_lost_name_of_a_written_file_accuses_those_that_changed_its_directory_as_well() -> None:
    assert suspects_of("append /d/a 10; create /d/new", {1, 2}, "/d/a", None) == {frozenset({1, 2})}


def test_a_truncation_there_in_part_is_not_the_fault_of_an_earlier_write() -> None:
    """ext4 zeroes the rest of the block before it commits the size, and so the end of what was written there."""
    world = world_of("write /d/a 900 300; truncate /d/a 1000")
    whole = dict(world.crash({1}).tree or {})["/d/a"]
    zeroed = with_content(whole, whole.content[:1000] + bytes(3096) + whole.content[4096:])
    assert suspects_of("write /d/a 900 300; truncate /d/a 1000", {1}, "/d/a", zeroed) == {frozenset({1, 2})}


def test_zeros_are_a_writes_fault_where_the_truncation_is_known_to_be_there_or_not_to_reach() -> None:
    world = world_of("write /d/a 900 300; truncate /d/a 1000")
    tree = dict(world.crash({1}).tree or {})
    whole = tree["/d/a"].content
    tree["/d/a"] = with_content(tree["/d/a"], whole[:900] + bytes(100) + whole[1000:])
    assert read(world, tree).of(1) is Presence.PARTIAL
    world = world_of("truncate /d/a 1000; append /d/a 500")
    tree = dict(world.crash({1, 2}).tree or {})
    tree["/d/a"] = with_content(tree["/d/a"], tree["/d/a"].content[:1000] + bytes(500))
    assert read(world, tree).of(2) is Presence.PARTIAL


@pytest.mark.parametrize(
    ("operations", "row"),
    [
        # Zeros wherever the second one wrote: one of them is there in part.
        ("write /d/a 0 4096; write /d/a 0 100", "collateral"),  # a block and a sector
        ("write /d/a 0 4096; write /d/a 0 3000", "single-block-overwrite"),
        ("append /d/a 9000; write /d/a 8192 8192", "multi-block-append"),
        ("append /d/a 3000; write /d/a 8192 600", "collateral"),  # an append and an overwrite
    ],
)
def test_what_either_of_two_operations_left_half_done_breaks_their_row_and_else_collateral(
    operations: str, row: str
) -> None:
    world = world_of(operations)
    tree, history = dict(world.crash(world.all).tree or {}), world.history
    _thing, start, length = history.data[2]
    whole = tree["/d/a"].content
    tree["/d/a"] = with_content(tree["/d/a"], whole[:start] + bytes(length) + whole[start + length :])
    reading = read(world, tree)
    assert Presence.PARTIAL not in reading.presences
    assert {damage.suspects for damage in reading.damage} == {frozenset({1, 2})}
    properties = [probe.property for probe in probes_of(RowSet.TABLE1) if probe.property.rule is not Rule.ORDERED]
    told = [(p.name, q) for p in properties for q in questions(p, history) if is_broken(p, q, history, reading)]
    assert {name for name, _question in told} == {row}
    question = told[0][1]
    prop = next(p for p in properties if p.name == row)
    found = violation(prop, question, history, world.oracle(), reading, Observation(True, None, tree))
    assert found is not None
    suspects = f"{quoted(history, 1)} or {quoted(history, 2)}"
    assert found.evidence.startswith(suspects)


def test_zeros_of_a_truncation_there_in_part_are_no_hole_that_tells_a_write_was_not_there() -> None:
    """Without the write a later one would have left a hole there; that one is not there either."""
    operations = "append /n 16; append /n 8K; truncate /n 0"
    world = world_of("create /n; " + operations)
    tree = dict(world.crash({1, 2}).tree or {})
    tree["/n"] = with_content(tree["/n"], bytes(16))
    reading = read(world, tree)
    assert reading.of(2) is not Presence.PARTIAL


def test_a_directory_that_cannot_be_listed_accuses_what_set_its_attributes_as_well() -> None:
    broken = Node("directory", fault="cannot be listed: Input/output error")
    assert suspects_of("setxattr /e user.x 8; create /e/new", {1, 2}, "/e", broken) == {frozenset({1, 2})}


def test_zeros_of_a_torn_append_are_no_punched_hole() -> None:
    """Of a part of the append only the size is there, and nothing says that the punch is: not even a part of it."""
    world = world_of("append /d/a 8192; fallocate /d/a 10000 4000 punch")
    tree = dict(world.crash({1}).tree or {})
    whole = tree["/d/a"].content
    tree["/d/a"] = with_content(tree["/d/a"], whole[:10240] + bytes(1024) + whole[11264:])
    reading = read(world, tree)
    assert reading.of(2) is Presence.NONE


@pytest.mark.parametrize("there", [(), (1,), (2,), (1, 2)])
def test_a_hole_behind_a_range_that_moves_is_whole(there: tuple[int, ...]) -> None:
    """A write beyond the end leaves a hole before it, and the hole has two places where it may be."""
    world = world_of("write /d/a 30000 512; fallocate /d/a 4096 4096 collapse")
    reading = read(world, dict(world.crash(there).tree or {}))
    assert not reading.damage and not reading.collateral
    for number in (1, 2):
        assert reading.of(number) is (Presence.FULL if number in there else Presence.NONE)


@pytest.mark.parametrize(
    ("operations", "row"),
    [
        ("append /d/a 4096; fallocate /d/a 4096 4096 insert; fsync /d/a", "fsync-file.size"),
        ("fallocate /d/a 4096 4096 insert; append /d/a 4096; sync", "sync.size"),
        ("write /d/a 4096 4096; fallocate /d/a 4096 4096 insert; fsync /d/a", "fsync-file.data"),
        ("fallocate /d/a 0 4096 insert; fsync /d/a", "fsync-file.size"),
    ],
)
def test_what_is_torn_where_a_range_moves_was_not_made_durable(operations: str, row: str) -> None:
    """Nobody can say whose tear it is, but all of it was to be there."""
    world = World.of(Workload("w", parse(SETUP), parse(operations), at=At.END))
    [prop] = [one.property for one in probes_of(RowSet.DURABILITY) if one.property.name == row]
    tree = dict(world.crash(world.all).tree or {})
    asked = questions(prop, world.history)
    assert asked and not any(is_broken(prop, one, world.history, read(world, tree)) for one in asked)
    content = tree["/d/a"].content
    tree["/d/a"] = with_content(tree["/d/a"], content[:8192] + b"\xa5" * 512 + content[8704:])
    reading = read(world, tree)
    assert all(is_broken(prop, one, world.history, reading) for one in asked)
    seen = Observation(True, None, tree)
    found = violation(prop, asked[0], world.history, world.oracle(), reading, seen)
    assert found is not None and all(quoted(world.history, one) in found.evidence for one in (1, 2))
