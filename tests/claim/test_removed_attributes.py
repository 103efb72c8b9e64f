"""An attribute that is removed: what a crash leaves of it, and of the operations before it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bob.claim.property.presence import Presence

from .test_rules import world_of
from .worlds import World

SETUP = "mkdir /d; write /d/a 0 100; setxattr /d/a user.x 20"


def presences(world: World, *there: int) -> list[Presence]:
    return [world.oracle().read(world.crash(there)).of(number + 1) for number in range(len(world.history.operations))]


def test_it_is_there_or_it_is_not() -> None:
    world = world_of(SETUP, "removexattr /d/a user.x")
    assert presences(world) == [Presence.NONE]
    assert presences(world, 1) == [Presence.FULL]
    [words] = [one.words for one in world.oracle().findings(1, world.crash(()))]
    assert words == "the attribute user.x of /d/a: set instead of absent"


def test_a_value_between_tells_of_both() -> None:
    world = world_of(SETUP, "setxattr /d/a user.x 30; removexattr /d/a user.x")
    assert presences(world) == [Presence.NONE, Presence.NONE]
    assert presences(world, 1) == [Presence.FULL, Presence.NONE]
    assert presences(world, 1, 2) == [Presence.UNDECIDED, Presence.FULL]


@pytest.mark.parametrize("value", [b"another", b""])
def test_a_value_that_no_operation_gave_is_damage(value: bytes) -> None:
    world = world_of(SETUP, "removexattr /d/a user.x")
    seen = world.crash(())
    assert seen.tree is not None
    node = replace(seen.tree["/d/a"], xattrs={"user.x": value})
    reading = world.oracle().read(replace(seen, tree={**seen.tree, "/d/a": node}))
    assert reading.of(1) is Presence.PARTIAL
