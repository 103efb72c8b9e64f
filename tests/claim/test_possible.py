"""Which names can be there, against performing every set of operations one by one; and what nothing else looks at is
looked at all the same."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from bob.claim.property.possible import Group, groups
from bob.claim.property.presence import Presence, Reading
from bob.claim.property.sightings import Places
from bob.errors import BobError
from bob.observe.observation import Node
from bob.workload.history import History
from bob.workload.language import parse
from bob.workload.operations import Finish, Workload
from bob.workload.simulation import simulate

from .executed import executed
from .test_collateral import Tree, read, world_of

SETUP = "create /a; create /b; mkdir /d; create /d/a; mkdir /e; link /b /e/b"
FILES = ("/a", "/b", "/c", "/d/a", "/d/b", "/e/b")
FOLDERS = ("/d", "/e", "/f", "/d/f")


def history_of(operations: list[str]) -> History:
    finish = Finish("natural", natural=True)
    return simulate(Workload("made up", parse(SETUP), parse("; ".join(operations)), finish))[0]


def random_history(rng: Random, length: int) -> History:
    """Operations on a few names, each of which can be performed after the ones before it."""
    operations: list[str] = []
    history = None
    while len(operations) < length:
        one, other = rng.sample(FILES, 2)
        folder, place = rng.sample(FOLDERS, 2)
        choices = [f"create {one}", f"unlink {one}", f"rename {one} {other}", f"rename {one} {other}"]
        choices += [f"rename {one} {folder}", f"rename {folder} {one}", f"create {folder}"]
        choices += [f"link {one} {other}", f"mkdir {folder}", f"rmdir {folder}", f"rename {folder} {place}"]
        choices += [
            f"rename {one} {other} exchange",
            f"rename {folder} {place} exchange",
            f"rename {one} {folder} exchange",
        ]
        choices += [f"rename {one} {other} noreplace", f"rename {folder} {place} noreplace"]
        try:
            history = history_of([*operations, operation := rng.choice(choices)])
        except BobError:
            continue
        operations.append(operation)
    assert history is not None
    return history


def left_by_sets(history: History, group: Group) -> set[tuple[int | None, ...]]:
    """What is at the places of ``group`` after each set of operations that can have happened."""
    numbers = range(1, len(history.operations) + 1)
    every = ([n for n in numbers if mask >> n - 1 & 1] for mask in range(1 << len(numbers)))
    return {
        tuple(places.get(place) for place in group.places)
        for there in every
        if (places := executed(history, there)) is not None
    }


@pytest.mark.parametrize("seed", range(0, 400, 100))
def test_a_group_knows_just_what_sets_of_operations_leave(seed: int) -> None:
    exact = 0
    for number in range(seed, seed + 100):
        rng = Random(number)
        history = random_history(rng, rng.randint(2, 6))
        for group in groups(history, Places(history)):
            assert group._states is not None
            left, told = left_by_sets(history, group), set(group._states)
            assert left <= told, (number, group.numbers, history.operations)
            if len(group.numbers) == len(history.operations):
                exact += 1
                assert left == told, (number, history.operations)
    assert exact > 20


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
