"""No false ×: whatever whole operations leave accuses nobody, and what one torn operation leaves accuses no other."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from random import Random

import pytest
from inline_snapshot import snapshot

from bob.claim.property.possible import OperationGroup, groups
from bob.claim.property.presence import Reading
from bob.claim.property.sightings import NamePlaces
from bob.errors import BobError
from bob.observe.observation import Node, Observation, Presence
from bob.workload import operations as ops
from bob.workload.history import History
from bob.workload.language import parse, write_one
from bob.workload.operations import Finish, How, Workload
from bob.workload.pattern import describe
from bob.workload.simulation import simulate
from workload.generators import random_workload

from .executed import executed
from .test_collateral import Tree, read, world_of
from .worlds import World

THERE = (Presence.FULL, Presence.UNDECIDED)
NOT_THERE = (Presence.NONE, Presence.UNDECIDED)


def shuffle(rng: Random) -> int:
    """Some file systems invent inode numbers at every mount."""
    return rng.choice([0, 0, 3])


def check_prefixes(seed: int) -> None:
    rng = Random(seed)
    workload = random_workload(rng)
    world = World.of(workload)
    oracle = world.oracle()
    for last in range(len(world.all) + 1):
        seen = world.step(last, shuffled=shuffle(rng))
        reading = oracle.read(seen)
        for number in world.all:
            allowed = THERE if number <= last else NOT_THERE
            assert reading.of(number) in allowed, shown(number, set(range(1, last + 1)), set(), workload, seen, reading)
        there = set(range(1, last + 1))
        assert not (reading.damage or reading.collateral), shown(0, there, set(), workload, seen, reading)


def check_whole(seed: int) -> None:
    rng = Random(seed)
    workload = random_workload(rng)
    world = World.of(workload)
    there = {number for number in world.all if rng.random() < 0.6}
    if not world.is_possible(there):
        return
    seen = world.crash(there, shuffled=shuffle(rng))
    reading = world.oracle().read(seen)
    for number in world.all:
        allowed = THERE if number in there else NOT_THERE
        assert reading.of(number) in allowed, shown(number, there, set(), workload, seen, reading)
    assert not (reading.damage or reading.collateral), shown(0, there, set(), workload, seen, reading)


def check_torn(seed: int) -> None:
    rng = Random(seed)
    workload = random_workload(rng, rng.randint(2, 6))
    world = World.of(workload)
    there = {number for number in world.all if rng.random() < 0.7}
    if not there or not world.is_possible(there):
        return
    if any(isinstance(op, ops.Write) and op.how is How.MMAP for op in workload.operations):
        return  # a mapping of what is torn: the model has no answer
    torn = set(rng.sample(sorted(there), min(len(there), rng.choice([1, 1, 2]))))
    seen = world.crash(there, {number: Random(rng.random()) for number in torn}, shuffled=shuffle(rng))
    reading = world.oracle().read(seen)
    for number in set(world.all) - torn:
        allowed = THERE if number in there else NOT_THERE
        made = {thing for thing in world.named(number) if world.history.things[thing].born > 0}
        if any(made & set(world.named(other)) for other in torn):
            allowed = (*THERE, *NOT_THERE)  # what it was done to may have been lost with its name
        assert reading.of(number) in allowed, shown(number, there, torn, workload, seen, reading)
    for damage in (*reading.damage, *reading.collateral):
        assert damage.suspects & torn, shown(0, there, torn, workload, seen, reading)


@pytest.mark.parametrize("seed", range(0, 200, 100))
def test_a_prefix_of_the_program_is_told_as_it_is(seed: int) -> None:
    for number in range(seed, seed + 100):
        check_prefixes(number)


@pytest.mark.parametrize("seed", range(0, 600, 200))
def test_any_whole_operations_are_told_as_they_are(seed: int) -> None:
    for number in range(seed, seed + 200):
        check_whole(number)


@pytest.mark.parametrize("seed", range(0, 600, 200))
def test_a_torn_operation_is_nobody_elses_fault(seed: int) -> None:
    for number in range(seed, seed + 200):
        check_torn(number)


def check_fault(seed: int) -> None:
    """Something that cannot be read accuses an operation only if it alone had to do with it."""
    rng = Random(seed)
    workload = random_workload(rng, rng.randint(2, 6))
    world = World.of(workload)
    last = rng.choice([0, *world.all])
    seen = world.step(last)
    tree = dict(seen.tree or {})
    if not tree:
        return
    path = rng.choice(sorted(tree))
    thing = world.history.steps[last].names[path]
    if rng.random() < 0.5 and tree[path].kind == "file":
        tree[path] = Node("unreadable", fault="Structure needs cleaning")
    else:
        tree[path] = replace(tree[path], content=b"", fault="cannot be read")
        tree = {name: node for name, node in tree.items() if not name.startswith(path + "/")}
    reading = world.oracle().read(Observation(True, None, tree))
    may = {number for number in world.all if thing in world.named(number)}
    may = may or {number for number in world.all if world.named(number)}  # nobody had to do with it: anybody may have
    for number in world.all:
        if reading.of(number) is Presence.PARTIAL:
            assert may == {number}, shown(number, {last}, may, workload, Observation(True, None, tree), reading)
    for damage in reading.damage:
        assert damage.suspects >= may, shown(0, {last}, may, workload, Observation(True, None, tree), reading)


@pytest.mark.parametrize("seed", range(0, 600, 200))
def test_a_fault_is_nobodys_where_it_may_be_anothers(seed: int) -> None:
    for number in range(seed, seed + 200):
        check_fault(number)


def shown(number: int, there: Set[int], torn: Set[int], workload: Workload, seen: Observation, reading: Reading) -> str:
    """What went wrong, in lines."""
    lines = [f"{number}: there {there}, torn {torn}", *map(write_one, workload.operations), str(reading)]
    for path, node in sorted((seen.tree or {}).items()):
        lines.append(f"{path} {node.kind} inode {node.inode} links {node.links}: {describe(node.content)}")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("operations", "there", "presences"),
    [
        ("rename /e/c /d/b; rename /d/a /d/b exchange", (2,), (Presence.NONE, Presence.FULL)),
        ("rename /d/a /d/b exchange; rename /e/c /d/b exchange", (2,), (Presence.NONE, Presence.FULL)),
        ("rename /d/a /d/b exchange", (), (Presence.NONE,)),
        ("rename /d/a /d/b exchange", (1,), (Presence.FULL,)),
    ],
)
def test_an_exchange_brings_whatever_the_other_name_had(
    operations: str, there: tuple[int, ...], presences: tuple[Presence, ...]
) -> None:
    setup = "mkdir /d; mkdir /e; write /d/a 0 100; write /d/b 0 200; write /e/c 0 300"
    world = World.of(Workload("w", tuple(parse(setup)), tuple(parse(operations))))
    reading = world.oracle().read(world.crash(there))
    assert Presence.PARTIAL not in reading.presences
    assert reading.presences[-1] is presences[-1]
    assert not reading.damage and not reading.collateral


def test_a_file_goes_by_the_name_that_it_had_first() -> None:
    world = World.of(Workload("w", tuple(parse("create /a; write /b 0 9")), tuple(parse("rename /a /b exchange"))))
    found = [one.words for one in world.oracle().account(1, world.crash(())).findings]
    assert found == snapshot(
        [
            "the name /a: the file first known as /a instead of the file first known as /b",
            "the name /b: the file first known as /b instead of the file first known as /a",
        ]
    )


@pytest.mark.parametrize(
    ("operations", "there", "number", "words"),
    [
        ("unlink /a", (), 1, ["/a still exists"]),
        ("rename /a /moved", (), 1, ["/a still exists", "/moved does not exist"]),
        ("rename /a /b; rename /b /c", (), 2, ["/b still exists", "/c does not exist"]),
        (
            "rename /a /n; rename /n /c",
            (1,),
            2,
            ["/n still exists: it is the file first known as /a", "/c does not exist"],
        ),
        ("create /n", (), 1, ["/n does not exist"]),
    ],
)
def test_a_name_that_is_or_is_not_there_is_told_of_plainly(
    operations: str, there: tuple[int, ...], number: int, words: list[str]
) -> None:
    world = World.of(Workload("w", tuple(parse("create /a; write /b 0 9")), tuple(parse(operations))))
    found = {one.words for one in world.oracle().account(number, world.crash(there)).findings}
    assert set(words) <= found, found


def test_another_name_in_the_place_of_one_that_was_to_go_is_not_called_still_there() -> None:
    world = World.of(Workload("w", tuple(parse("create /a; write /b 0 9")), tuple(parse("unlink /a; rename /b /a"))))
    found = {one.words for one in world.oracle().account(1, world.crash((1, 2))).findings}
    assert sorted(found) == snapshot(
        ["the file /a is not there", "the name /a: the file first known as /b instead of nothing"]
    )
    assert not any("still" in words for words in found)


# Which names can be there, against performing every set of operations one by one; and what nothing else looks at is

SETUP = "create /a; create /b; mkdir /d; create /d/a; mkdir /e; link /b /e/b"
FILES = ("/a", "/b", "/c", "/d/a", "/d/b", "/e/b")
FOLDERS = ("/d", "/e", "/f", "/d/f")


def history_of(operations: list[str]) -> History:
    finish = Finish("natural", natural=True)
    return simulate(Workload("made up", parse(SETUP), parse("; ".join(operations)), finish))[0]


def random_history(rng: Random, length: int) -> History:
    """Operations on a few names, each of which can be performed after the ones before it. The fewer names, the more
    of what one operation does hangs on others."""
    files, folders = (
        rng.sample(FILES, rng.choice([2, 3, len(FILES)])),
        rng.sample(FOLDERS, rng.choice([2, len(FOLDERS)])),
    )
    operations: list[str] = []
    history = None
    while len(operations) < length:
        one, other = rng.sample(files, 2)
        folder, place = rng.sample(folders, 2)
        choices = [f"create {one}", f"unlink {one}", f"rename {one} {other}", f"rename {one} {other}"]
        choices += [f"rename {one} {folder}", f"rename {folder} {one}", f"create {folder}"]
        choices += [
            f"link {one} {other}",
            f"link {one} {other}",
            f"mkdir {folder}",
            f"rmdir {folder}",
            f"rename {folder} {place}",
        ]
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


def left_by_sets(history: History, group: OperationGroup) -> set[tuple[int | None, ...]]:
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
        for group in groups(history, NamePlaces(history)):
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
