"""Durability: what a call covers must be there once it has returned, and nothing else has to. The pairs: each can be
told from a tree that shows Y without X, and those that were left out cannot."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from random import Random

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.catalogue.finer_rows import UNTELLABLE, durability_rows, pair_rows
from bob.catalogue.sets import RowSet, probes_of
from bob.claim.property.account import EffectExtent
from bob.claim.property.calls import makers
from bob.claim.property.presence import Reading
from bob.claim.property.rules import Property, Question, Rule, is_broken, questions, violation
from bob.claim.property.vocabulary import Call, What
from bob.errors import UsageError
from bob.search.bounds import together
from bob.workload.kinds import ChangeKind, Relation
from bob.workload.language import parse
from bob.workload.operations import At, Workload
from claim.worlds import World
from wording import sentence_with, text_with

PROBES = probes_of(RowSet.DURABILITY)
PROPERTIES = {prop.name: prop for prop in durability_rows()}
SETUP = "mkdir /d; mkdir /e; write /top 0 8192; write /d/a 0 8192; write /d/b 0 8192; link /d/b /e/b; write /e/c 0 8192"


def world_of(operations: str, at: At = At.END) -> World:
    return World.of(Workload("w", parse(SETUP), parse(operations), at=at))


def covered(name: str, operations: str, at: At = At.END) -> str:
    """The operations that the property asks for."""
    found = questions(PROPERTIES[name], world_of(operations, at).history)
    assert {question.returned for question in found} <= {len(parse(operations))}
    return " ".join(str(*question.required) for question in found)


@pytest.mark.parametrize(
    ("name", "operations", "numbers"),
    [
        ("fsync-file.data", "write /d/a 0 512; write /d/b 0 512; fsync /d/a", "1"),
        ("fsync-file.data", "write /d/a 0 512; fsync /d/a; write /d/a 512 512", ""),
        ("fsync-file.data", "write /d/a 0 512; fsync /d", ""),
        ("fsync-file.data", "write /d/a 0 512; fdatasync /d/a", ""),
        ("fsync-file.size", "write /d/a 0 512; append /d/a 10; truncate /d/a 100; fsync /d/a", "2 3"),
        ("fsync-file.size", "rename /d/a /d/x; append /d/x 10; fsync /d/x", "2"),
        ("fsync-file.size", "create /d/x; append /d/x 10; fsync /d/x", "2"),
        ("fsync-file.data", "write /d/a 8000 1000; fallocate /d/a 0 10 punch; fsync /d/a", "2"),
        ("fsync-file.size", "write /d/a 8000 1000; fallocate /d/a 0 9000 zero; fsync /d/a", ""),
        ("fsync-file.size", "fallocate /d/a 0 9000 keep; fallocate /d/a 0 9000; fsync /d/a", "2"),
        ("fsync-file.everything", "write /d/a 8000 1000; fallocate /d/a 0 9999 zero; fsync /d/a", "1 2"),
        ("fsync-file.size", "fallocate /d/a 0 4096 collapse; fallocate /d/b 0 4096 insert; fsync /d/a", "1"),
        ("fsync-file.data", "open /d/a as f; rename /d/a /d/z; write f 0 10; fsync f", "3"),
        ("fsync-file.names", "open /d/a as f; rename /d/a /d/z; write f 0 10; close f; fsync /d/z", "2"),
        ("fsync-file.data", "open /d/a as f; unlink /d/a; write f 0 10; fsync f", ""),
        ("fsync-file.entry", "tmpfile /d as t; append t 10; link t /d/n; fsync t", "3"),
        ("fsync-file.names", "tmpfile /d as t; append t 10; link t /d/n; link t /d/m; fsync /d/n", "4"),
        ("fsync-file.size", "tmpfile /d as t; append t 10; link t /d/n; fsync /d/n", "2"),
        ("fsync-file.size", "tmpfile /d as t; append t 10; fsync t", ""),
        ("fsync-directory.new-entries", "open /d as d; mknod /d/p fifo; mknod /e/p socket; fsync d", "2"),
        ("fsync-file.data", "copy_file_range /d/b /d/a 0 100; reflink /d/b /d/new; fsync /d/a", "1"),
        ("fsync-file.attributes", "utimes /d/a 1000000000; utimes /d 1000000000; fsync /d/a", "1"),
        ("fsync-file.entry", "create /d/x; append /d/x 10; fsync /d/x", "1"),
        ("fsync-file.entry", "write /d/x 0 10; create /d/y; fsync /d/x", ""),
        ("fsync-directory.new-entries", "write /d/x 0 10; fsync /d", ""),
        ("fsync-file.entry", "mkdir /d/s; create /d/s/x; fsync /d/s/x", "2"),
        ("fsync-file.parent", "mkdir /e/t; mkdir /d/s; create /d/s/x; fsync /d/s/x", "2"),
        ("fsync-file.names", "link /d/a /e/x; rename /d/b /d/y; unlink /e/b; fsync /d/a", "1"),
        ("fsync-file.names", "rename /d/b /d/y; rename /d/y /e/c; unlink /e/b; fsync /e/c", "1 2 3"),
        ("fsync-file.attributes", "setxattr /d/a user.x 4; setxattr /d/b user.x 4; fsync /d/a", "1"),
        ("fsync-file.everything", "create /e/x; setxattr /d/a user.x 4; sync; fsync /d/a", "1 2"),
        ("fsync-directory.new-entries", "create /d/x; mkdir /d/s; create /e/x; fsync /d", "1 2"),
        ("fsync-directory.entry", "mkdir /d/s; fsync /d/s", "1"),
        ("fsync-directory.moved-entries", "rename /d/a /e/a; unlink /d/b; fsync /e", "1"),
        ("fsync-directory.moved-entries", "link /d/a /e/x; unlink /e/b; rename /d/a /d/y; fsync /d", "3"),
        ("fsync-directory.moved-entries", "rename /d/a /e/a; fsync /d", "1"),
        ("fsync-directory.new-entries", "mkdir /x; mkdir /d/x; create /f; fsync /d", "2"),
        ("fsync-directory.moved-entries", "rename /e /f; rename /d/a /d/x; fsync /d", "2"),
        ("fsync-directory.entry", "mkdir /y; mkdir /x; fsync /x", "2"),
        ("fsync-directory.other-overwrites", "write /top 0 512; write /d/a 0 512; fsync /d", "2"),
        ("fsync-directory.other-attributes", "setxattr /e user.x 1; setxattr /d/b user.x 1; fsync /d", "2"),
        ("fsync-directory.other-overwrites", "write /d/a 0 512; write /e/c 0 512; fsync /d", "1"),
        ("msync.data", "write /d/a 0 512 mmap; msync /d/a", "1"),
        ("o-sync.data", "write /d/a 0 512 sync", "1"),
        ("o-sync.data", "write /d/a 0 512 dsync", ""),
        ("o-dsync.size", "append /d/a 10 dsync", "1"),
        ("o-sync.entry", "append /d/x 10 sync", "1"),
        ("sync.data", "write /d/a 0 512; sync", "1"),
        ("sync.data", "write /d/a 0 512; syncfs", ""),
        ("syncfs.everything", "write /d/a 0 512; mkdir /e/s; syncfs", "1 2"),
        ("returned.data", "write /d/b 0 512; write /d/a 0 512", "2"),
        ("returned.data", "write /d/a 0 512 sync", ""),
        ("returned.size", "sync_file_range /d/a 0 512", ""),
        ("returned.parent", "mkdir /d/s", "1"),
        ("returned.entry", "write /d/x 0 10", ""),
    ],
)
def test_what_a_call_covers(name: str, operations: str, numbers: str) -> None:
    assert covered(name, operations) == numbers
    assert covered(name, operations, At.ANY) == ""


def test_the_properties_are_every_call_with_everything() -> None:
    of_a_file = "data size entry names parent attributes everything"
    of_a_directory = "other-overwrites other-appends new-entries moved-entries entry other-attributes everything"
    without = dict.fromkeys((Call.FDATASYNC_DIRECTORY, Call.SYNC_FILE_RANGE), "")
    words = dict.fromkeys(Call, of_a_file) | {Call.FSYNC_DIRECTORY: of_a_directory} | without
    wanted = {f"{call}.{What(what)}" for call in Call for what in words[call].split()}
    assert set(PROPERTIES) == wanted - {"returned.everything"}
    assert list(PROPERTIES) == [probe.property.name for probe in PROBES]
    assert len({prop.meaning for prop in PROPERTIES.values()}) == len(PROPERTIES)


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.property.name)
def test_a_loss_after_the_return_turns_it_red_and_nothing_else_does(probe) -> None:  # type: ignore[no-untyped-def]
    prop, told = probe.property, 0
    for workload in probe.workloads:
        world = World.of(workload)
        oracle = world.oracle()
        asked = questions(prop, world.history)
        whole = world.step(len(world.all))
        assert not any(is_broken(prop, question, world.history, oracle.read(whole)) for question in asked)
        for lost in world.all:
            seen = world.crash(set(world.all) - {lost})
            reading = oracle.read(seen)
            wrong = [question for question in asked if is_broken(prop, question, world.history, reading)]
            assert {question.required for question in wrong} <= {(lost,)}
            for question in wrong:
                found = violation(prop, question, world.history, oracle, reading, seen)
                assert found is not None
                # What a later operation would leave as well, the size above all, cannot be told to be missing.
                assert {one.extent for one in found.accounts if one.number == lost} <= {
                    EffectExtent.NOTHING,
                    EffectExtent.UNCLEAR,
                }
                assert " had returned, but " in found.evidence
                told += 1
    assert told


def test_a_part_is_not_enough() -> None:
    world = world_of("write /d/a 0 8192; fsync /d/a")
    prop, oracle = PROPERTIES["fsync-file.data"], world.oracle()
    seen = world.crash(world.all, {1: Random(1)})
    [question] = questions(prop, world.history)
    found = violation(prop, question, world.history, oracle, oracle.read(seen), seen)
    assert found is not None
    assert sentence_with(found.evidence, 2, "/d/a", 1, 0, 8192) == snapshot(
        "operation 2 (fsync /d/a) had returned, but only a part of operation 1 (write /d/a 0 8192) is there (bytes 0 to 8,192 of /d/a:"
    )


def test_where_it_cannot_be_told_nobody_is_accused() -> None:
    world = world_of("write /d/a 0 512; write /d/a 0 512; fsync /d/a")
    prop = PROPERTIES["fsync-file.data"]
    reading = world.oracle().read(world.crash({2, 3}))
    assert [question for question in questions(prop, world.history) if question.required == (1,)]
    assert not any(is_broken(prop, one, world.history, reading) for one in questions(prop, world.history))


@pytest.mark.parametrize(
    ("name", "operations", "required", "makers"),
    [
        ("fsync-file.size", "create /d/x; append /d/x 10; fsync /d/x", 2, {1}),
        ("fsync-file.entry", "mkdir /d/s; create /d/s/x; fsync /d/s/x", 2, {1}),
        ("sync.everything", "mkdir /d/s; create /d/s/x; append /d/s/x 10; sync", 3, {1, 2}),
        ("syncfs.names", "create /d/x; unlink /d/x; syncfs", 2, {1}),
        ("sync.attributes", "mkdir /d/s; setxattr /d/s user.x 10; sync", 2, {1}),
        ("sync.data", "write /d/x 0 5000; fallocate /d/x 0 512 punch; sync", 2, {1}),
        ("sync.entry", "tmpfile /d as t; append t 10; link t /d/x; sync", 3, set()),
        ("sync.attributes", "tmpfile /d as t; link t /d/x; setxattr t user.x 10; sync", 3, {2}),
    ],
)
def test_of_what_was_never_made_only_the_making_is_lost(
    name: str, operations: str, required: int, makers: set[int]
) -> None:
    world = world_of(operations)
    prop, oracle = PROPERTIES[name], world.oracle()
    [asked] = [one for one in questions(prop, world.history) if one.required == (required,)]
    every = set(world.all)

    def is_lost(there: set[int]) -> bool:
        return is_broken(prop, asked, world.history, oracle.read(world.crash(there)))

    assert is_lost(every - {required})
    assert not is_lost(every)
    for maker in makers:
        assert not is_lost({number for number in every - {required} if number < maker})


PROMISES = ("data", "size", "entry", "names", "parent", "attributes")


@pytest.mark.parametrize(
    ("call", "operations", "there"),
    [
        ("sync", "mkdir /A; create /A/f; rename /A /B; sync", ()),
        ("sync", "mkdir /y; rename /y /z; sync", ()),
        ("sync", "create /x; link /x /y; unlink /x; sync", ()),
        ("fsync-file", "create /x; link /x /y; unlink /x; fsync /y", ()),
        ("sync", "create /t; create /b; rename /t /b; sync", (1, 2, 4)),
    ],
)
def test_a_loss_is_told_by_one_of_the_promises(call: str, operations: str, there: tuple[int, ...]) -> None:
    """Also where it cannot be seen whether the operation was lost, or that which made what it is about."""
    world = world_of(operations)
    promises = [PROPERTIES[f"{call}.{what}"] for what in PROMISES]
    asked = [(one, question) for one in (*promises, *together(promises)) for question in questions(one, world.history)]
    lost, whole = (world.oracle().read(world.crash(some)) for some in (there, world.all))
    assert any(is_broken(prop, one, world.history, lost) for prop, one in asked)
    assert not any(is_broken(prop, one, world.history, whole) for prop, one in asked)


STEPS = (
    *("mkdir /d/s", "create /d/x", "create /d/s/x", "append /d/x 10", "append /d/s/x 10", "write /d/s/x 0 20"),
    *("setxattr /d/x user.x 4", "setxattr /d/s user.x 4", "link /d/x /d/y", "rename /d/x /d/z", "append /d/z 10"),
    *("write /d/a 0 512", "write /d/a 8000 1000", "rename /d/s /e/t", "create /e/t/n"),
)
CALLS = ("fsync /d/x", "fsync /d/s/x", "fdatasync /d/x", "fsync /d/y", "fsync /d/z", "fsync /e/t/n", "sync", "syncfs")


@settings(max_examples=120)
@given(
    st.lists(st.sampled_from(STEPS), max_size=5, unique=True),
    st.sampled_from(CALLS),
    st.sets(st.sampled_from(PROMISES)),
)
@example(["create /d/x", "append /d/z 10", "rename /d/x /d/z"], "fsync /d/z", {"entry", "names"})  # over a victim
def test_where_what_was_promised_is_there_and_nothing_else_no_promise_is_broken(
    steps: list[str], call: str, promised: set[str]
) -> None:
    """What hangs on something that nobody promised may be lost with that."""
    done: list[str] = []
    for step in (*steps, call):
        try:
            world = world_of("; ".join([*done, step]))
        except UsageError:
            continue
        done.append(step)
    assume(done and done[-1] == call)
    name = call.split()[0] + ("-file" if " " in call else "")
    promises = [PROPERTIES[f"{name}.{what}"] for what in PROMISES if what in promised]
    promises += together(promises)
    asked = [(prop, one) for prop in promises for one in questions(prop, world.history)]
    there: set[int] = set()
    for number in sorted({one.required[0] for _prop, one in asked}):
        # A rename that is there over a file that is not is no state of this world: its victim is there, too.
        victims = {world.history.things[thing].born for thing in world.named(number)} & set(world.all)
        if makers(world.history, number) <= there and world.is_possible(there | victims | {number}):
            there |= victims | {number}
    reading = world.oracle().read(world.crash(there))
    assert not [one for prop, one in asked if is_broken(prop, one, world.history, reading)]


def test_what_an_operation_itself_had_done() -> None:
    world = world_of("create /d/x")
    prop, oracle = PROPERTIES["returned.entry"], world.oracle()
    seen = world.crash(())
    found = violation(prop, Question((1,), returned=1), world.history, oracle, oracle.read(seen), seen)
    assert found is not None
    assert text_with(found.evidence, 1, "/d/x") == snapshot(
        "operation 1 (create /d/x) had returned, but nothing of it is there (/d/x does not exist)"
    )


PAIRS = probes_of(RowSet.PAIRS)
WORLDS = {(workload.setup, workload.operations): World.of(workload) for probe in PAIRS for workload in probe.workloads}
ORACLES = {done: world.oracle() for done, world in WORLDS.items()}
DONE = tuple(WORLDS)


@cache
def without(place: int, lost: int) -> Reading:
    """What is read from the tree that workload ``place`` leaves where operation ``lost`` is not there."""
    world = WORLDS[DONE[place]]
    return ORACLES[DONE[place]].read(world.crash(set(world.all) - {lost}))


def broken(properties: Sequence[Property]) -> dict[str, list[tuple[int, Question]]]:
    """Where the loss of X alone breaks each of ``properties``."""
    found: dict[str, list[tuple[int, Question]]] = {prop.name: [] for prop in properties}
    for place, world in enumerate(WORLDS.values()):
        for prop in properties:
            for question in questions(prop, world.history):
                (lost,) = question.required
                if is_broken(prop, question, world.history, without(place, lost)):
                    found[prop.name].append((place, question))
    return found


def test_every_pair_that_can_be_told_is_asked() -> None:
    properties = list(pair_rows())
    assert len(properties) == 3 * 14 * 14 - len(UNTELLABLE)
    told = {name for name, several in broken(properties).items() if several}
    assert told == {probe.property.name for probe in PAIRS}


def test_what_was_left_out_cannot_be_told() -> None:
    same_file = (Relation.SAME_FILE,)
    left_out = [
        Property(f"{first} {later}", "", "", Rule.ORDERED, kinds=(first,), later_kinds=(later,), relations=same_file)
        for first, later in UNTELLABLE
    ]
    assert not any(broken(left_out).values())


def test_no_order_is_broken_where_all_is_there_up_to_some_operation() -> None:
    for done, world in WORLDS.items():
        readings = [ORACLES[done].read(world.step(last)) for last in (0, *world.all)]
        for probe in PAIRS:
            for question in questions(probe.property, world.history):
                assert not any(is_broken(probe.property, question, world.history, one) for one in readings)


def test_a_violation_is_told_in_words() -> None:
    [probe] = [probe for probe in PAIRS if probe.property.name == "append-then-rename.same-file"]
    place, question = broken([probe.property])[probe.property.name][0]
    world, oracle = WORLDS[DONE[place]], ORACLES[DONE[place]]
    seen = world.crash(set(world.all) - {question.required[0]})
    found = violation(probe.property, question, world.history, oracle, oracle.read(seen), seen)
    assert found is not None
    assert text_with(found.evidence, "/d/f", "/d/y-moved", 1, 4096) == snapshot(
        "operation 5 (rename /d/f /d/y-moved) survived; nothing of operation 1 (append /d/f 4096), issued earlier, is there (the size of /d/f: 32,768 B instead of 36,864 B)"
    )


def test_a_pair_is_asked_in_its_relation_only() -> None:
    setup = "mkdir /d; mkdir /e; write /d/a 0 8192; write /d/b 0 8192; write /e/c 0 8192"
    operations = "write /d/a 0 4096; append /d/a 10; append /d/b 10; append /e/c 10; write /d/new 0 10"
    history = World.of(Workload("w", parse(setup), parse(operations))).history
    for relation, later in zip(Relation, (2, 3, 4), strict=True):
        [prop] = [one for one in pair_rows() if one.name == f"overwrite-then-append.{relation.value}"]
        assert questions(prop, history) == (Question((1,), later),)


@pytest.mark.parametrize("relation", Relation)
def test_names_say_all(relation: Relation) -> None:
    of_it = [prop for prop in pair_rows() if prop.relations == (relation,)]
    for first, later in product(ChangeKind, ChangeKind):
        named = [prop for prop in of_it if (prop.kinds, prop.later_kinds) == ((first,), (later,))]
        assert [prop.name for prop in named] in ([], [f"{first.value}-then-{later.value}.{relation.value}"])
