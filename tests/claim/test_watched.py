"""What nothing else looks at is looked at all the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bob.claim.property.presence import Presence, Reading
from bob.observe.observation import Node

from .test_collateral import Tree, read, world_of


def spoiled(operations: str, there: set[int], path: str, **changes: object) -> Reading:
    world = world_of(operations)
    tree: Tree = dict(world.crash(there).tree or {})
    reading = read(world, tree)
    assert not (reading.damage or reading.collateral) and Presence.PARTIAL not in reading.presences
    tree[path] = replace(tree[path], **changes)  # type: ignore[arg-type]
    return read(world, tree)


def test_a_root_that_cannot_be_listed_is_damage_where_no_operation_changed_it() -> None:
    reading = read(world_of("create /d/new"), {"/": Node("directory", fault="cannot be listed: Input/output error")})
    (damage,) = reading.collateral
    assert not damage.suspects


def test_an_attribute_of_a_directory_is_looked_at() -> None:
    operations = "setxattr /d user.x 8"
    assert spoiled(operations, {1}, "/d", xattrs={"user.x": b"garbage!"}).of(1) is Presence.PARTIAL
    assert spoiled(operations, {1}, "/d", fault="Input/output error").of(1) is Presence.PARTIAL
    world = world_of(operations)
    assert read(world, world.step(0).tree or {}).of(1) is Presence.NONE
    assert read(world, world.step(1).tree or {}).of(1) is Presence.FULL


@pytest.mark.parametrize("operations", ["truncate /d/a 8K", "fallocate /d/a 0 4K"])
def test_a_file_that_an_operation_leaves_as_it_was_can_be_read(operations: str) -> None:
    (damage,) = spoiled(operations, {1}, "/d/a", fault="Input/output error", content=b"").collateral
    assert damage.suspects == {1}


@pytest.mark.parametrize("links", [0, 2])
@pytest.mark.parametrize(
    ("operations", "there", "path", "suspects"),
    [
        ("unlink /e/gone", set(), "/e/gone", {1}),
        ("rename /d/a /d/b", set(), "/d/b", {1}),
        ("create /d/new; unlink /d/new", {1}, "/d/new", {1, 2}),
    ],
)
def test_a_file_that_is_not_removed_has_as_many_names_as_it_says(
    links: int, operations: str, there: set[int], path: str, suspects: set[int]
) -> None:
    (damage,) = spoiled(operations, there, path, links=links).collateral
    assert damage.suspects == suspects


@pytest.mark.parametrize(
    ("operations", "path"), [("create /d/new", "/d/a"), ("rename /d/a /n", "/n"), ("setxattr /d/a user.x 8", "/d/a")]
)
def test_a_file_can_be_read_to_its_end(operations: str, path: str) -> None:
    assert spoiled(operations, {1}, path, content=b"").collateral


def test_names_that_many_operations_made_beside_it_hide_no_impossible_set() -> None:
    """There are more than MOST_STATES ways to leave them."""
    made = "; ".join(f"create /d/n{number}" for number in range(1, 15))
    world = world_of(f"{made}; mkdir /new; rename /d/a /new/a; unlink /d/b")
    every = set(world.all)
    for there in (every, every - {1, 3}, every - {16}, every - {15, 16}, every - {17}):
        assert not read(world, world.crash(there).tree or {}).damage
    tree = dict(world.crash(every - {15, 16}).tree or {})
    del tree["/d/a"]
    assert {damage.suspects for damage in read(world, tree).damage} == {frozenset({15, 16})}
