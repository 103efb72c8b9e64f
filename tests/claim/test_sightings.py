"""Which thing an observed name is: by inode numbers where these can be believed, and else by what is in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from inline_snapshot import snapshot

from bob.claim.idempotence import difference, judged
from bob.claim.property.contents import FileStory
from bob.claim.property.sightings import NamePlaces, Sightings
from bob.claim.verdict import Verdict
from bob.crash.coverage import States
from bob.crash.state import CrashState
from bob.observe.observation import Node, Observation, OutcomeTable
from bob.observe.observations import ExploredState, Observations

from .test_collateral import done, read, world_of
from .worlds import World


def sightings(world: World, tree: Mapping[str, Node], inodes: Mapping[int, int] | None = None) -> Sightings:
    stories = {thing.identity: FileStory(world.history, thing.identity) for thing in world.history.things}
    known = world.numbers if inodes is None else inodes
    return Sightings(NamePlaces(world.history), world.history, stories, known, Observation(True, None, tree))


def without_numbers(tree: Mapping[str, Node]) -> dict[str, Node]:
    return {path: replace(node, inode=0) for path, node in tree.items()}


def test_what_loses_a_name_and_what_is_elsewhere() -> None:
    world = world_of("create /d/n; link /d/a /d/l; unlink /d/l; rename /d/b /e/gone; rename /d/sub /e/sub; mkdir /e/x")
    places, first = NamePlaces(world.history), world.history.steps[0].names
    assert {path for path, thing in first.items() if places.is_removed(thing)} == {"/d/a", "/e/gone"}
    assert {path for path, thing in first.items() if places.is_moved(thing)} == {
        *("/d/a", "/d/b", "/e/gone", "/d/sub", "/d/sub/in")
    }
    made = [world.history.steps[-1].names[path] for path in ("/d/n", "/e/x")]
    assert not any(places.is_removed(thing) for thing in made)


def test_what_is_in_a_directory_that_is_not_there() -> None:
    world = world_of("mkdir /n; create /n/x; mkdir /gone; create /gone/x; unlink /gone/x; rmdir /gone")
    names = world.history.steps[4].names
    seen = sightings(world, dict(world.step(0).tree or {}))
    assert seen.at((names["/n"], "x")) == {None}, "where no directory was made there is no name"
    assert seen.at((names["/gone"], "x")) is None, "it may be gone with its names"
    assert seen.at((names["/d"], "x")) == {None}


def test_what_is_in_a_directory_that_may_be_one_of_two() -> None:
    world = world_of("mkdir /p; rename /p /q; mkdir /p")
    one, other = (world.history.steps[3].names[path] for path in ("/q", "/p"))
    tree = without_numbers(dict(world.step(1).tree or {}))
    seen = sightings(world, tree, {})
    assert seen.at((0, "p")) == {one, other}
    assert seen.at((one, "x")) is None
    assert seen.at((other, "x")) is None


NEW = "rename /d/a /d/moved; write /d/a 0 100"
"""After it /d/a is another file."""


@pytest.mark.parametrize(
    ("numbers", "believed"),
    [
        ({}, True),
        ({"/d/b": 900, "/d/sub/in": 901}, True),
        ({"/d/b": 900, "/d/sub/in": 901, "/d/sub": 902, "/d": 903}, False),
        (dict.fromkeys(("/d/b", "/d/sub/in", "/d/sub", "/d", "/e"), 900), False),
        (dict.fromkeys(("/d/b", "/d/sub/in", "/d/sub", "/d", "/e"), 0), True),
        (dict.fromkeys(("/d/b", "/d/sub/in", "/d/sub", "/d", "/e", "/e/gone"), 0), False),
        ({"/d/b": 900, "/d/sub/in": 901, "/d/sub": 902, "/d/moved": 907}, False),
        ({"/d/b": 900, "/d/sub/in": 901, "/d/moved": 907}, True),
    ],
)
def test_inode_numbers_are_believed_where_most_are_what_they_were(numbers: dict[str, int], believed: bool) -> None:
    """Six names are moved by no operation; a name that is moved says nothing."""
    world = world_of(NEW)
    tree = {path: replace(node, inode=numbers.get(path, node.inode)) for path, node in done(world).items()}
    assert sightings(world, tree)._stable == believed


def test_inode_numbers_that_are_not_known_say_nothing() -> None:
    world = world_of(NEW)
    one = world.history.steps[0].names["/d/b"]
    assert sightings(world, done(world), {one: world.numbers[one]})._stable


def test_where_numbers_say_nothing_contents_tell() -> None:
    world = world_of(NEW)
    old, new = world.history.steps[0].names["/d/a"], world.history.steps[2].names["/d/a"]
    for step, thing in [(0, old), (2, new)]:
        tree = without_numbers(dict(world.step(step).tree or {}))
        assert sightings(world, tree, {}).at((world.history.steps[0].names["/d"], "a")) == {thing}
        for spoiled in (
            replace(tree["/d/a"], content=b"!" * 500, size=500),
            replace(tree["/d/a"], content=b"", fault="Input/output error"),
        ):
            seen = sightings(world, {**tree, "/d/a": spoiled}, {})
            assert seen.at((world.history.steps[0].names["/d"], "a")) == {old, new}


def test_a_thing_of_another_kind_is_none_of_those_that_a_name_was_given_to() -> None:
    world = world_of("create /d/new", "mkdir /d; symlink /d/x /l; write /f 0 100")
    for path, node in [("/f", Node("directory")), ("/l", Node("symlink", target="/d/y")), ("/d", Node("file"))]:
        tree = without_numbers(done(world))
        tree[path] = node
        assert sightings(world, tree, {}).at((0, path[1:])) == frozenset()
        assert read(world, {**done(world), path: node}).collateral


def test_names_of_a_file_are_counted_with_those_that_nothing_gave() -> None:
    world = world_of("link /d/a /e/a")
    file, tree = world.history.steps[0].names["/d/a"], done(world)
    tree["/stray"] = tree["/d/a"]
    assert sightings(world, tree).names(file) == 3
    assert sightings(world, without_numbers(tree), {}).names(file) == 2


# Recovery is idempotent: planted differences fail, and what was not controlled is unknown

WHOLE, SHORT, GONE = ({"/a": {"kind": "file", "size": size}} if size else {} for size in (8, 4, 0))
DAMAGED = None
FIRST, SECOND = CrashState(0), CrashState(1, (2, 3))


def observed(
    *trees: object,
    states: Sequence[ExploredState] = (ExploredState(FIRST, 0), ExploredState(SECOND, 1, 7)),
    lost: str = "",
) -> Observations:
    """Outcomes with these trees; None for one that does not mount."""
    outcomes = [{"error": "Bad message" if tree is None else None, "repaired": False, "tree": tree} for tree in trees]
    findings = OutcomeTable([json.dumps(outcome) for outcome in outcomes])
    return Observations(tuple(states), findings, States(8, 8, 2**20, "writes"), lost or None)


EXPECTED = observed(WHOLE).findings.observation(0)


def test_the_same_tree_holds() -> None:
    result, shown = judged(observed(WHOLE, WHOLE), EXPECTED)
    assert (result.verdict, shown, result.violations) == (Verdict.HOLDS, None, 0)


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        (
            SHORT,
            snapshot(
                "after a crash during recovery, /a is a file of 4 B (inode 0, 1 links): nothing, and without that crash a file of 8 B (inode 0, 1 links): nothing"
            ),
        ),
        (GONE, snapshot("after a crash during recovery, /a is missing")),
        (
            {**WHOLE, "/b": WHOLE["/a"]},
            snapshot("after a crash during recovery, /b is there, and missing without that crash"),
        ),
    ],
)
def test_another_tree_fails_and_says_how(tree: object, words: str) -> None:
    result, shown = judged(observed(WHOLE, tree), EXPECTED)
    assert (result.verdict, result.violations) == (Verdict.FAILS, 7)
    assert shown is not None
    assert shown[0] == SECOND
    assert shown[1] == words


def test_the_easiest_state_is_shown() -> None:
    torn = ExploredState(CrashState(0, (), ((2, ((0, 1),)),)), 1)
    _result, shown = judged(
        observed(WHOLE, GONE, states=(ExploredState(FIRST, 0), torn, ExploredState(SECOND, 1))), EXPECTED
    )
    assert shown is not None
    assert shown[0] == SECOND


def test_what_does_not_mount_is_not_judged() -> None:
    result, shown = judged(observed(WHOLE, DAMAGED), EXPECTED)
    assert (result.verdict, shown) == (Verdict.HOLDS, None)


@pytest.mark.parametrize(
    "seen",
    [
        observed(GONE, GONE),  # recovered anew, it is not what it was
        observed(DAMAGED, WHOLE),
        observed(WHOLE, states=[ExploredState(SECOND, 0)]),  # without the control
        observed(WHOLE, states=[ExploredState(FIRST, 0)], lost="the guest was lost"),
        observed(WHOLE, states=[ExploredState(FIRST, None)], lost="the guest was lost"),
    ],
)
def test_without_its_controls_nothing_holds(seen: Observations) -> None:
    result, shown = judged(seen, EXPECTED)
    assert (result.verdict, shown) == (Verdict.UNKNOWN, None)
    assert result.reason


def test_a_violation_that_was_seen_stays_one_when_the_guest_is_lost() -> None:
    result, shown = judged(observed(WHOLE, GONE, lost="the guest was lost"), EXPECTED)
    assert result.verdict is Verdict.FAILS
    assert shown is not None


def test_a_difference_is_of_what_is_observed() -> None:
    one, other = (Observation(True, None, {"/a": Node("file", inode, content=b"x", size=1)}) for inode in (12, 13))
    assert difference(one, one) is None
    assert "inode 13" in (difference(one, other) or "")


def test_a_mode_is_compared_and_a_time_is_not() -> None:
    node = Node("directory", 12, 2, mode=0o755, uid=0, gid=0, mtime=7)
    before = Observation(True, None, {"/d": node})
    assert difference(before, Observation(True, None, {"/d": replace(node, mtime=0)})) is None
    assert "mode 0700" in (difference(before, Observation(True, None, {"/d": replace(node, mode=0o700)})) or "")
