"""What is there of an operation: the sentence of a × against the tree that it is about."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from time import process_time

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.catalogue.probe_files import shipped_probes
from bob.claim.property.account import Account, EffectExtent, EffectPart
from bob.claim.property.rules import Property, Violation, questions, violation
from bob.errors import BobError
from bob.observe.observation import Node, Observation, Presence
from bob.workload.history import FileKind
from bob.workload.language import parse
from bob.workload.operations import Workload
from bob.workload.pattern import FIRST_SETUP_NUMBER, contents, stale
from wording import text_with

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
    assert (later.extent, lost.extent) == (EffectExtent.PART, EffectExtent.NOTHING)
    assert {one.part for one in later.lacking} == {EffectPart.SIZE, EffectPart.DATA}
    assert not later.there
    assert "survived" not in found.evidence
    assert "20,480 B" in found.evidence and "zeros (1,096 B)" in found.evidence


def test_an_append_that_is_whole_survived() -> None:
    world = world_of(LOST_THEN_GROWN)
    found = shown("overwrite-any", world, world.crash((2,)))
    assert [one.extent for one in found.accounts] == [EffectExtent.NOTHING, EffectExtent.WHOLE]
    assert text_with(found.evidence, 2, "/d/g", 65536) == snapshot(
        "operation 2 (append /d/g 65536) survived; nothing of operation 1 (write /d/f 2000 16384), issued earlier, is there (bytes 2,000 to 18,384 of /d/f: initial data (16,384 B) instead of the data of operation 1)"
    )


@pytest.mark.parametrize(
    ("operations", "there", "path", "content", "number", "extent"),
    [
        # its size is there, and its data is zeros, what the medium had, or something of its own
        ("append /d/empty 4096", (1,), "/d/empty", bytes(4096), 1, EffectExtent.PART),
        ("append /d/empty 4096", (1,), "/d/empty", stale(4096), 1, EffectExtent.PART),
        ("append /d/empty 4096", (1,), "/d/empty", contents(1, 0, 512) + bytes(3584), 1, EffectExtent.PART),
        # in the place of its data, and of what was there, is something else
        ("write /e/c 0 4096", (1,), "/e/c", stale(4096), 1, EffectExtent.BROKEN),
        ("write /e/c 0 4096", (1,), "/e/c", stale(3584) + contents(1, 3584, 512), 1, EffectExtent.PART),
        # another operation made the file as long: whether this one did, too, cannot be told
        ("append /d/empty 4096; append /d/empty 4096", (2,), "/d/empty", None, 1, EffectExtent.UNCLEAR),
        ("append /d/empty 4096; append /d/empty 4096", (2,), "/d/empty", None, 2, EffectExtent.WHOLE),
        # nothing of what it overwrote is seen where the file ends
        ("append /d/empty 8192; write /d/empty 0 8192", (1, 2), "/d/empty", contents(2, 0, 4096, 1), 2, EffectExtent.UNCLEAR),
        ("append /e/c 4096 trunc", (1,), "/e/c", b"", 1, EffectExtent.PART),
        ("append /e/c 4096 trunc", (), "/e/c", None, 1, EffectExtent.NOTHING),
        ("append /e/c 8192 trunc", (1,), "/e/c", None, 1, EffectExtent.WHOLE),
    ],
)  # fmt: skip
def test_how_much_of_a_write_is_there(
    operations: str, there: tuple[int, ...], path: str, content: bytes | None, number: int, extent: EffectExtent
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
    assert told.extent is EffectExtent.PART
    assert [one.about for one in told.there] == ["the name /d/moved"]
    assert text_with(found.evidence, "/d/moved", "/e/c") == snapshot(
        "only a part of operation 1 (rename /e/c /d/moved) is there (/d/moved exists; /e/c still exists)"
    )


def test_where_the_file_is_gone_not_a_part_of_the_write_is_there() -> None:
    world = world_of("append /e/c 4096")
    tree = {path: node for path, node in (world.crash(()).tree or {}).items() if path != "/e/c"}
    found = shown("single-block-append", world, Observation(True, None, tree))
    assert account(found, 1).extent is EffectExtent.BROKEN
    assert "part" not in found.evidence


def test_a_rename_over_a_file_is_whole_where_that_one_is_gone() -> None:
    world = world_of("rename /e/c /d/f")
    assert world.oracle().account(1, world.crash((1,))).extent is EffectExtent.WHOLE
    assert world.oracle().account(1, world.crash(())).extent is EffectExtent.NOTHING


def test_what_is_out_of_sight_did_not_survive() -> None:
    """Its other name is in a directory that is not there."""
    world = world_of("write /d/f 2000 16384; mkdir /e/new; rename /e/c /e/new/c")
    tree = dict(world.crash(()).tree or {})
    del tree["/e/c"]
    told = world.oracle().account(3, Observation(True, None, tree))
    assert told.extent is not EffectExtent.WHOLE


def test_a_file_that_cannot_be_read_is_not_there_in_part() -> None:
    world = world_of("write /e/c 0 4096")
    tree = dict(world.crash(()).tree or {})
    tree["/e/c"] = Node("unreadable", fault="Structure needs cleaning")
    assert world.oracle().account(1, Observation(True, None, tree)).extent is EffectExtent.BROKEN


# Every sentence against a slow model of what is in a tree. It knows what an operation did by performing it, finds a
# thing by its inode number, and reads who wrote the bytes from their pattern.


@dataclass(frozen=True)
class Effects:
    """Of one operation: which of its effects a tree has (``there``), which are as before it (``missing``), and which
    are neither (``wrong``). ``shared`` are those that another operation of the workload works on, too."""

    there: frozenset[str]
    missing: frozenset[str]
    wrong: frozenset[str]
    shared: frozenset[str]


def effects(world: World, number: int, seen: Observation) -> Effects:
    """What is there of the names, size, bytes and attributes of operation ``number``."""
    tree, history = seen.tree or {}, world.history
    found: dict[str, set[str]] = {"there": set(), "missing": set(), "wrong": set()}
    shared: set[str] = set()
    things = {world.numbers[thing]: thing for thing in range(len(history.things)) if thing in world.numbers}
    at = {path: things.get(node.inode) for path, node in tree.items()}
    folders = {0: "", **{thing: path for path, thing in at.items() if thing is not None}}
    before, after = world.at(number - 1), world.changed(number)
    for (folder, name), now in after.items():
        what = f"name {folder}/{name}"
        if any((folder, name) in world.changed(other) for other in world.all if other != number):
            shared.add(what)
        if folder not in folders:
            shared.add(what)
            continue
        there = at.get(f"{folders[folder]}/{name}")
        kind = "there" if there == now else "missing" if there == before.get((folder, name)) else "wrong"
        found[kind].add(what)
    was, now = history.steps[number - 1].inodes, history.steps[number].inodes
    for thing in sorted(now):
        if was.get(thing) == now[thing] or history.things[thing].kind is not FileKind.FILE:
            continue
        path = next((path for path, it in at.items() if it == thing), None)
        others = {
            other
            for other in world.all
            if other != number
            and history.steps[other].names.get(getattr(history.operations[other - 1], "path", "")) == thing
        }
        old, new = was[thing].content if thing in was else b"", now[thing].content
        if path is None and not now[thing].links:
            continue  # it is to be gone
        if path is None:
            found["wrong" if thing in history.steps[0].inodes else "missing"].add("file")
            continue
        content = tree[path].content
        if len(old) != len(new):
            kind = "there" if len(content) == len(new) else "missing" if len(content) == len(old) else "wrong"
            found[kind].add("size")
            if others:
                shared.add("size")
        if number not in history.data:
            continue
        _thing, start, length = history.data[number]
        first = history.steps[0].inodes.get(thing)
        initial = b"" if first is None else first.content
        for byte in range(start, start + length):
            wanted = new[byte] if byte < len(new) else 0
            earlier = {content_before[byte] for content_before in (old, initial) if byte < len(content_before)}
            if wanted in earlier:
                continue
            if byte >= len(content) or content[byte] in earlier:
                found["missing"].add("data")
            else:
                found["there" if content[byte] == wanted else "wrong"].add("data")
        if others:
            shared.add("data")
    return Effects(*(frozenset(found[kind]) for kind in ("there", "missing", "wrong")), frozenset(shared))


def check(world: World, number: int, seen: Observation, told: Account) -> None:
    """Hold an account against the slow model. What others work on, too, may be theirs."""
    known = effects(world, number, seen)
    own_missing, own_wrong = known.missing - known.shared, known.wrong - known.shared
    where = (told, known)
    match told.extent:
        case EffectExtent.WHOLE:
            assert not own_missing and not own_wrong, where
            assert known.there or known.shared, where
        case EffectExtent.NOTHING:
            assert not known.there - known.shared, where
            assert not own_wrong, where
            assert known.missing or known.wrong, where
        case EffectExtent.PART:
            assert known.there or known.wrong & {"size", "data"}, where
            assert known.missing or known.wrong, where
        case EffectExtent.BROKEN:
            assert not known.there - known.shared - {"data"}, where
            assert known.wrong, where
        case EffectExtent.UNCLEAR:
            assert known.shared or known.wrong, where


OPERATIONS_AT_RANDOM = st.lists(
    st.sampled_from(
        [
            "write /d/f 2000 16384", "write /e/c 0 4096", "write /e/c 512 512", "append /d/g 65536", "append /e/c 300",
            "append /d/empty 4096", "append /d/empty 700 sync", "append /d/f 4096 trunc", "truncate /d/f 3000",
            "rename /e/c /d/moved", "rename /d/empty /e/c", "link /d/f /e/linked", "unlink /d/g", "create /d/new",
            "mkdir /e/new", "fallocate /d/f 0 8192 punch", "fallocate /d/g 0 30000", "write /d/made 0 5000",
        ]
    ),
    min_size=1,
    max_size=5,
    unique=True,
).map("; ".join)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(OPERATIONS_AT_RANDOM, st.randoms(use_true_random=False))
def test_an_account_says_what_the_tree_has(operations: str, rng: Random) -> None:
    try:
        world = world_of(operations)
    except BobError:
        reject()
    world.numbers = {thing: 11 + thing for thing in world.numbers}  # the model knows things by theirs
    there = {number for number in world.all if rng.random() < 0.7}
    if not world.is_possible(there):
        reject()
    torn = {number: Random(rng.random()) for number in there if rng.random() < 0.4}
    seen = world.crash(there, torn)
    oracle = world.oracle()
    reading = oracle.read(seen)
    for number in world.all:
        told = oracle.account(number, seen)
        assert told.presence is reading.of(number)
        assert (told.extent is EffectExtent.WHOLE) == (number in reading.whole)
        if told.presence is not Presence.UNDECIDED:
            check(world, number, seen, told)
    for probe in shipped_probes():
        for question in questions(probe.property, world.history):
            found = violation(probe.property, question, world.history, oracle, reading, seen)
            if found is None:
                continue
            later = next((one for one in found.accounts if one.number == question.later), None)
            is_whole = later is None or later.extent is EffectExtent.WHOLE
            assert found.is_clear == is_whole
            assert ("survived" in found.evidence) == (later is not None and is_whole)
            nothing = {one.number for one in found.accounts if one.extent is EffectExtent.NOTHING}
            for number in world.all:
                if f"nothing of operation {number} " in found.evidence:
                    assert number in nothing


def test_a_large_write_of_which_nothing_explains_anything_is_told_at_once() -> None:
    """Cut in half again and again, down to single bytes, 16 MiB of them would take minutes."""
    world = world_of("append /d/empty 16777216")
    seen = with_content(world, (1,), "/d/empty", stale(16777216 - 512) + contents(1, 16777216 - 512, 512))
    began = process_time()
    assert world.oracle().account(1, seen).extent is EffectExtent.PART
    assert process_time() - began < 10
