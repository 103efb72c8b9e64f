"""What is there of an operation: the sentence of a × against the tree that it is about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bob.catalogue.probe_files import shipped_probes
from bob.claim.property.account import Account, Extent, Part
from bob.claim.property.rules import Property, Violation, questions, violation
from bob.observe.observation import Node, Observation
from bob.workload.language import parse
from bob.workload.operations import Workload
from bob.workload.pattern import FIRST_SETUP_NUMBER, contents, stale

from .worlds import World

SETUP = "mkdir /d; mkdir /e; write /d/f 0 19384; write /d/g 0 19384; write /e/c 0 4096; create /d/empty"
GROWING = contents(FIRST_SETUP_NUMBER + 3, 0, 19384)


def world_of(operations: str) -> World:
    return World.of(Workload("w", parse(SETUP), parse(operations)))


def with_content(world: World, there: tuple[int, ...], path: str, content: bytes) -> Observation:
    tree = dict(world.crash(there).tree or {})
    return Observation(True, None, {**tree, path: replace(tree[path], content=content, size=len(content))})


def row(name: str) -> Property:
    [probe] = shipped_probes([name])
    return probe.property


def shown(name: str, world: World, seen: Observation) -> Violation:
    oracle = world.oracle()
    reading = oracle.read(seen)
    found = [
        broken
        for question in questions(row(name), world.history)
        if (broken := violation(row(name), question, world.history, oracle, reading, seen))
    ]
    return found[0]


def account(found: Violation, number: int) -> Account:
    return next(one for one in found.accounts if one.number == number)


# What ext4 data=ordered leaves: the size is that of the first block, and in it are zeros.
LOST_THEN_GROWN = "write /d/f 2000 16384; append /d/g 65536"


def test_an_append_of_which_only_zeros_are_there_did_not_survive() -> None:
    world = world_of(LOST_THEN_GROWN)
    found = shown("overwrite-any", world, with_content(world, (), "/d/g", GROWING + bytes(1096)))
    later, lost = account(found, 2), account(found, 1)
    assert (later.extent, lost.extent) == (Extent.PART, Extent.NOTHING)
    assert {one.part for one in later.lacking} == {Part.SIZE, Part.DATA}
    assert not later.there
    assert "survived" not in found.evidence
    assert "20,480 B" in found.evidence and "zeros (1,096 B)" in found.evidence


def test_an_append_that_is_whole_survived() -> None:
    world = world_of(LOST_THEN_GROWN)
    found = shown("overwrite-any", world, world.crash((2,)))
    assert [one.extent for one in found.accounts] == [Extent.NOTHING, Extent.WHOLE]
    assert "operation 2 (append /d/g 65536) survived" in found.evidence


@pytest.mark.parametrize(
    ("operations", "there", "path", "content", "number", "extent"),
    [
        # its size is there, and its data is zeros, what the medium had, or something of its own
        ("append /d/empty 4096", (1,), "/d/empty", bytes(4096), 1, Extent.PART),
        ("append /d/empty 4096", (1,), "/d/empty", stale(4096), 1, Extent.PART),
        ("append /d/empty 4096", (1,), "/d/empty", contents(1, 0, 512) + bytes(3584), 1, Extent.PART),
        # in the place of its data, and of what was there, is something else
        ("write /e/c 0 4096", (1,), "/e/c", stale(4096), 1, Extent.BROKEN),
        ("write /e/c 0 4096", (1,), "/e/c", stale(3584) + contents(1, 3584, 512), 1, Extent.PART),
        # another operation made the file as long: whether this one did, too, cannot be told
        ("append /d/empty 4096; append /d/empty 4096", (2,), "/d/empty", None, 1, Extent.UNCLEAR),
        ("append /d/empty 4096; append /d/empty 4096", (2,), "/d/empty", None, 2, Extent.WHOLE),
        # nothing of what it overwrote is seen where the file ends
        ("append /d/empty 8192; write /d/empty 0 8192", (1, 2), "/d/empty", contents(2, 0, 4096, 1), 2, Extent.UNCLEAR),
        ("append /e/c 4096 trunc", (1,), "/e/c", b"", 1, Extent.PART),
        ("append /e/c 4096 trunc", (), "/e/c", None, 1, Extent.NOTHING),
        ("append /e/c 8192 trunc", (1,), "/e/c", None, 1, Extent.WHOLE),
    ],
)  # fmt: skip
def test_how_much_of_a_write_is_there(
    operations: str, there: tuple[int, ...], path: str, content: bytes | None, number: int, extent: Extent
) -> None:
    world = world_of(operations)
    seen = world.crash(there) if content is None else with_content(world, there, path, content)
    assert world.oracle().account(number, seen).extent is extent


def test_a_rename_of_which_one_name_is_there_is_told_with_both() -> None:
    world = world_of("rename /e/c /d/moved")
    tree = dict(world.crash((1,)).tree or {})
    tree["/e/c"] = tree["/d/moved"]
    found = shown("directory-op", world, Observation(True, None, tree))
    [told] = found.accounts
    assert told.extent is Extent.PART
    assert [one.about for one in told.there] == ["the name /d/moved"]
    assert "/d/moved exists; /e/c still exists" in found.evidence


def test_where_the_file_is_gone_not_a_part_of_the_write_is_there() -> None:
    world = world_of("append /e/c 4096")
    tree = {path: node for path, node in (world.crash(()).tree or {}).items() if path != "/e/c"}
    found = shown("single-block-append", world, Observation(True, None, tree))
    assert account(found, 1).extent is Extent.BROKEN
    assert "part" not in found.evidence


def test_what_is_out_of_sight_did_not_survive() -> None:
    """Its other name is in a directory that is not there."""
    world = world_of("write /d/f 2000 16384; mkdir /e/new; rename /e/c /e/new/c")
    tree = dict(world.crash(()).tree or {})
    del tree["/e/c"]
    told = world.oracle().account(3, Observation(True, None, tree))
    assert told.extent is not Extent.WHOLE


def test_a_file_that_cannot_be_read_is_not_there_in_part() -> None:
    world = world_of("write /e/c 0 4096")
    tree = dict(world.crash(()).tree or {})
    tree["/e/c"] = Node("unreadable", fault="Structure needs cleaning")
    assert world.oracle().account(1, Observation(True, None, tree)).extent is Extent.BROKEN
