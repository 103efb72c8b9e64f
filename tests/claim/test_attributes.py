"""Attributes, modes, owners, link counts and targets: what is expected of them, and what a crash leaves of one that is
removed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from inline_snapshot import snapshot

from bob.claim.expectation.evaluate import check, evidence, holds
from bob.claim.expectation.language import parse
from bob.errors import PointedError
from bob.observe.observation import Presence
from bob.workload.language import parse as operations
from bob.workload.operations import Workload
from wording import text_with

from .test_rules import world_of
from .worlds import World

SETUP = "write /a 0 100; setxattr /a user.x 20; mkdir /d; chmod /d 700; utimes /d 500000000"
DONE = (
    "link /a /b; chmod /a 600; chown /a 1000:100; setxattr /a user.x 30; removexattr /a user.x; symlink ../a /d/s;"
    "chmod /d 750; setxattr /d user.y 5; rename /a /c; utimes /d 1000000000"
)
EVERY = tuple(range(1, 11))


def world() -> World:
    return World.of(Workload("try", operations(SETUP), operations(DONE)))


@pytest.mark.parametrize(
    ("there", "text", "is_so"),
    [
        ((), "links /a = 1 and mode /a = 644 and owner /a = 0:0", True),
        ((1,), "links /a = 2 and links /b > 1", True),
        ((1,), "links /a < 2 or links /b != 2", False),
        ((), "links /b = 0 or links /b != 0", False),
        ((), "links /d >= 0", False),
        ((2,), "mode /a = 600", True),
        ((3,), "mode /a = 600", False),
        ((3,), "owner /a = 1000:100", True),
        ((2,), "owner /a = 1000:100", False),
        ((), "mode /d = 700 and not mode /d = 750", True),
        ((7,), "mode /d = 750", True),
        ((6,), "target /d/s = ../a", True),
        ((6,), "target /d/s = /a", False),
        ((), "target /d/s = ../a", False),
        ((), "target /a = ../a", False),
        ((), "attribute /a user.x = old", True),
        ((4,), "attribute /a user.x = old", False),
        ((4,), "attribute /a user.x = op4", True),
        ((4, 5), "attribute /a user.x = op5", True),
        ((4, 5), "attribute /a user.x = op4", False),
        (EVERY, "attribute /c user.x = new and mode /c = 600 and owner /c = 1000:100", True),
        (EVERY, "attribute /a user.x = new", False),
        ((), "attribute /d user.y = new", False),
        ((8,), "attribute /d user.y = new", True),
        ((), "time /d = 500000000", True),
        ((10,), "time /d = 1000000000", True),
        ((7,), "time /d = 1000000000", False),
        ((6,), "time /d = 500000000 or time /d = 1000000000", False),
        ((), "attribute /d user.y = old", True),
    ],
)
def test_what_is_there_is_held_against_it(there: tuple[int, ...], text: str, is_so: bool) -> None:
    found, expectation = world(), parse(text)
    check(expectation, found.history)
    observation = found.crash(there)
    assert holds(expectation.test, observation, found.history) is is_so
    assert evidence(expectation.test, observation, found.history)


def test_what_is_told_of_it() -> None:
    found, text = world(), "links /a = 1 and mode /a = 644 and owner /a = 0:0 and attribute /a user.x = old"
    told = evidence(parse(text).test, found.crash({1, 2, 3, 4, 5}), found.history)
    assert text_with(told, "/a", 2, 600, "1000:100", "user.x") == snapshot(
        "/a has initial data (100 B); /a has 2 names; /a has mode 600; /a has owner 1000:100; /a has no user.x"
    )
    told = evidence(parse("target /d/s = /a").test, found.crash({6}), found.history)
    assert told == "/d/s leads to ../a"


def test_a_mode_that_was_not_observed_is_no_other_mode() -> None:
    plain = World.of(Workload("try", operations("create /a"), operations("append /a 1")))
    for text in ("mode /a = 600", "owner /a = 1:1"):
        assert holds(parse(text).test, plain.crash(()), plain.history) is None


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("attribute /a user.z = old", 11, "nothing in this workload has an attribute user.z"),
        ("attribute /a user.x = op11", 23, "operation 11 does not exist"),
        ("attribute /a user.x = op2", 23, "operation 2 (chmod /a 600) does not set user.x"),
        ("attribute /a user.x = op8", 23, "operation 8 (setxattr /d user.y 5) does not set user.x"),
        ("mode /none = 600", 6, "neither the setup nor the operations make /none"),
    ],
)
def test_what_cannot_be_asked_is_pointed_at(text: str, column: int, said: str) -> None:
    with pytest.raises(PointedError) as caught:
        check(parse(text), world().history)
    assert (caught.value.column, caught.value.message) == (column, said)


ONE_FILE = "mkdir /d; write /d/a 0 100; setxattr /d/a user.x 20"


def presences(world: World, *there: int) -> list[Presence]:
    return [world.oracle().read(world.crash(there)).of(number + 1) for number in range(len(world.history.operations))]


def test_it_is_there_or_it_is_not() -> None:
    world = world_of(ONE_FILE, "removexattr /d/a user.x")
    assert presences(world) == [Presence.NONE]
    assert presences(world, 1) == [Presence.FULL]
    [words] = [one.words for one in world.oracle().account(1, world.crash(())).findings]
    assert text_with(words, "user.x", "/d/a") == snapshot("the attribute user.x of /d/a: set instead of absent")


def test_a_value_between_tells_of_both() -> None:
    world = world_of(ONE_FILE, "setxattr /d/a user.x 30; removexattr /d/a user.x")
    assert presences(world) == [Presence.NONE, Presence.NONE]
    assert presences(world, 1) == [Presence.FULL, Presence.NONE]
    assert presences(world, 1, 2) == [Presence.UNDECIDED, Presence.FULL]


@pytest.mark.parametrize("value", [b"another", b""])
def test_a_value_that_no_operation_gave_is_damage(value: bytes) -> None:
    world = world_of(ONE_FILE, "removexattr /d/a user.x")
    seen = world.crash(())
    assert seen.tree is not None
    node = replace(seen.tree["/d/a"], xattrs={"user.x": value})
    reading = world.oracle().read(replace(seen, tree={**seen.tree, "/d/a": node}))
    assert reading.of(1) is Presence.PARTIAL
