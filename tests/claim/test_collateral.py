"""Nothing else changed: whatever an operation was not to change is held against the initial tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from random import Random

import pytest

from bob.catalogue.probe_files import shipped_probes
from bob.claim.property.contents import FileStory
from bob.claim.property.presence import Oracle, Reading
from bob.claim.property.readings import inodes_of_things
from bob.claim.property.rules import is_broken, questions, violation
from bob.observe.observation import Node, Observation, Presence
from bob.trace.recording import InodeStatus
from bob.workload.history import FileKind
from bob.workload.language import parse
from bob.workload.operations import Finish, Workload
from bob.workload.pattern import STALE_CELL, contents
from workload.generators import random_workload

from .worlds import World

SETUP = "mkdir /d; mkdir /d/sub; write /d/sub/in 0 100; write /d/a 0 8K; write /d/b 0 4K; mkdir /e; write /e/gone 0 4K"
Tree = dict[str, Node]


def world_of(operations: str, setup: str = SETUP) -> World:
    return World.of(Workload("made up", parse(setup), parse(operations), Finish("natural", natural=True)))


def read(world: World, tree: Mapping[str, Node]) -> Reading:
    return world.oracle().read(Observation(True, None, tree))


def done(world: World) -> Tree:
    return dict(world.crash(world.all).tree or {})


def with_content(node: Node, content: bytes) -> Node:
    return replace(node, content=content, size=len(content))


def bytes_before_an_append(tree: Tree) -> None:
    tree["/d/a"] = with_content(tree["/d/a"], bytes(8192) + tree["/d/a"].content[8192:])


def rest_of_an_overwritten_block(tree: Tree) -> None:
    tree["/d/a"] = with_content(tree["/d/a"], tree["/d/a"].content[:200] + bytes(7992))


def an_emptied_renamed_file(tree: Tree) -> None:
    tree["/e/a"] = with_content(tree["/e/a"], b"")


def a_lost_first_name(tree: Tree) -> None:
    del tree["/d/a"]
    tree["/e/a"] = replace(tree["/e/a"], links=1)


def garbage_in_a_new_directory(tree: Tree) -> None:
    tree["/d/new/garbage"] = Node("file", 99)


def a_name_that_nothing_gave(tree: Tree) -> None:
    tree["/d/stray"] = Node("file", 99)


def a_moved_directory_without_its_contents(tree: Tree) -> None:
    del tree["/e/sub/in"]


def a_lost_neighbour(tree: Tree) -> None:
    del tree["/d/b"]


def freed_blocks_given_away(tree: Tree) -> None:
    tree["/e/gone"] = with_content(tree["/e/gone"], contents(2, 8192, 4096))


@pytest.mark.parametrize(
    ("operations", "spoil", "suspects", "there"),
    [
        ("append /d/a 4K", bytes_before_an_append, {1}, None),
        ("write /d/a 100 100", rest_of_an_overwritten_block, {1}, None),
        ("rename /d/a /e/a", an_emptied_renamed_file, {1}, None),
        ("link /d/a /e/a", a_lost_first_name, {1}, None),
        ("mkdir /d/new", garbage_in_a_new_directory, {1}, None),
        ("create /d/new", a_name_that_nothing_gave, {1}, None),
        ("append /e/gone 10", a_name_that_nothing_gave, set(), None),
        ("rename /d/sub /e/sub", a_moved_directory_without_its_contents, {1}, None),
        ("create /d/new", a_lost_neighbour, {1}, None),
        ("unlink /e/gone; append /d/a 4K", freed_blocks_given_away, {1}, {2}),
        ("rename /d/b /e/gone; append /d/a 4K", freed_blocks_given_away, {1}, {2}),
    ],
)
def test_made_up_trees_are_damage(
    operations: str, spoil: Callable[[Tree], None], suspects: set[int], there: set[int] | None
) -> None:
    world = world_of(operations)
    tree = dict(world.crash(world.all if there is None else there).tree or {})
    assert not read(world, tree).collateral
    spoil(tree)
    found = read(world, tree).collateral
    assert found, "read as undamaged"
    assert all(damage.suspects == suspects for damage in found), found


WITH_ATTRIBUTES = f"{SETUP}; setxattr /d/a user.x 20; setxattr /d/b user.x 20"


@pytest.mark.parametrize(
    ("operations", "attributes", "suspects"),
    [
        ("append /d/b 10", {}, [set()]),
        ("append /d/b 10", {"user.x": b"another"}, [set()]),
        ("append /d/b 10", {"user.y": b"new"}, [set(), set()]),
        ("append /d/a 10", {}, [{1}]),
        ("setxattr /d/a user.x 30", {"user.x": b"another"}, []),
        ("setxattr /d/a user.x 20", {"user.x": b"another"}, []),
        ("setxattr /d/a user.y 30", {}, [{1}]),
        ("setxattr /d/a user.y 30", {"user.y": b"another"}, [{1}]),
    ],
)
def test_attributes_that_no_operation_set(
    operations: str, attributes: dict[str, bytes], suspects: list[set[int]]
) -> None:
    """What an operation did set is told by its presence."""
    world = world_of(operations, WITH_ATTRIBUTES)
    tree = done(world)
    assert not read(world, tree).collateral
    tree["/d/a"] = replace(tree["/d/a"], xattrs=attributes)
    assert [set(damage.suspects) for damage in read(world, tree).collateral] == suspects


def test_what_may_be_one_of_two_files_is_undamaged_if_it_is_so_as_one() -> None:
    """Empty files without inode numbers, told apart by nothing but what is damage of one and not of the other."""
    world = world_of("rename /d/y /d/x", "mkdir /d; create /d/x; create /d/y; setxattr /d/y user.x 20")
    for number in (0, 1):
        tree = {path: replace(node, inode=0) for path, node in dict(world.step(number).tree or {}).items()}
        oracle = Oracle(world.history, {})
        assert not oracle.read(Observation(True, None, tree)).collateral
        tree["/d/x"] = replace(tree["/d/x"], xattrs={"user.y": b"1"})
        assert oracle.read(Observation(True, None, tree)).collateral


@pytest.mark.parametrize(
    ("operations", "path", "content", "suspects"),
    [
        ("append /d/a 4K; create /e/x", "/e/gone", contents(1, 8192, 4096), {1}),
        ("append /d/a 4K; create /e/x", "/e/gone", b"x" * 4096, {2}),
        ("create /d/x", "/e/gone", contents(10_005, 0, 4096), set()),
        ("write /d/a 100 100; link /d/a /e/a", "/d/a", None, {1, 2}),  # an operation on its name may damage a file
        ("write /d/a 100 100; truncate /d/a 8000; append /d/a 500", "/d/a", None, {1, 2, 3}),
        ("link /d/a /e/a", "/d/a", None, {1}),
    ],
)
def test_bytes_are_damaged_by_what_is_nearest(
    operations: str, path: str, content: bytes | None, suspects: set[int]
) -> None:
    """What changes the file; what has to do with it; what wrote the data that is there; what is beside it."""
    world = world_of(operations)
    tree = done(world)
    node = tree[path]
    spoiled = replace(node, content=node.content[:1000] + b"!" + node.content[1001:] if content is None else content)
    tree |= {name: spoiled for name, other in tree.items() if other.inode == node.inode}
    found = read(world, tree).collateral
    assert found
    assert all(damage.suspects == suspects for damage in found), found


@pytest.mark.parametrize(
    ("operations", "at", "suspects"),
    [
        ("truncate /d/a 6000; append /d/b 10; append /d/a 1000", 5000, {1, 3}),
        ("truncate /d/a 6000; append /d/b 10; append /d/a 1000", 7500, {1}),
        ("fallocate /d/a 9000 1000; setxattr /d/a user.x 10", 8500, {1}),
        ("fallocate /d/a 9000 1000; truncate /d/a 8200", 9500, {1, 2}),
        ("fallocate /d/a 9000 1000; truncate /d/a 8200", 8195, {1}),
        ("fallocate /d/a 9000 1000; truncate /d/a 12000", 9500, {1}),
        ("fallocate /d/a 9000 1000; truncate /d/a 12000", 100, {1, 2}),
        ("write /d/a 9000 1000; write /d/a 100 100", 8600, {1}),
    ],
)
def test_ranges_are_damaged_by_what_grew_the_file_over_them_or_cut_it_off(
    operations: str, at: int, suspects: set[int]
) -> None:
    world = world_of(operations)
    story = FileStory(world.history, world.history.steps[0].names["/d/a"])
    content = done(world)["/d/a"].content.ljust(at + 1, b"\0")
    assert not list(story.outside(content))
    [(start, stop, found)] = story.outside(content[:at] + b"!" + content[at + 1 :])
    assert start <= at < stop
    assert found == suspects


@pytest.mark.parametrize("mode", ["keep", "punch", "zero-keep"])
@pytest.mark.parametrize("size", [8192 + 4096, 8000, 10_000])
def test_a_file_that_is_longer_or_shorter_than_an_operation_leaves_it(mode: str, size: int) -> None:
    """f2fs makes it longer where a hole is punched beyond its end (docs/findings.md)."""
    world = world_of(f"fallocate /d/a 8100 5000 {mode}")
    tree = done(world)
    assert len(tree["/d/a"].content) == 8192
    tree["/d/a"] = with_content(tree["/d/a"], tree["/d/a"].content.ljust(size, b"\0")[:size])
    assert read(world, tree).collateral


def test_one_fault_is_told_once() -> None:
    world = world_of("append /d/a 4K")
    tree = done(world)
    tree |= {"/stray": Node("directory", 99), "/stray/a": Node("file", 98), "/stray/b": Node("file", 97)}
    assert len(read(world, tree).collateral) == 1, "what is in a stray directory is no other fault"
    tree = done(world)
    tree["/d/a"] = replace(tree["/d/a"], fault="Input/output error", content=b"")
    reading = read(world, tree)
    assert (reading.presences, reading.collateral) == ((Presence.PARTIAL,), ()), (
        "the operation is told to be there in part"
    )
    tree = done(world)
    tree["/d/b"] = Node("symlink", 99, target="elsewhere")
    assert len(read(world, tree).collateral) == 1, "that it is another thing says that its name is lost"


def test_a_torn_rename_needs_no_other_explanation() -> None:
    world = world_of("rename /d/a /d/moved; create /d/new")
    tree = done(world)
    tree["/d/a"] = tree["/d/moved"]
    reading = read(world, tree)
    assert reading.of(1) is Presence.PARTIAL
    assert not reading.damage


def test_names_in_a_directory_that_is_not_there_are_out_of_sight() -> None:
    world = world_of("mkdir /new; rename /d/a /new/a; rename /new/a /new/b")
    tree = dict(world.step(0).tree or {})
    del tree["/d/a"]
    (damage,) = read(world, tree).damage
    assert damage.suspects == {1, 2, 3}


def test_what_is_none_of_what_it_can_be_is_no_matter_of_sets() -> None:
    world = world_of("rename /d/a /d/moved; create /d/a")
    tree = done(world)
    tree["/d/a"] = Node("symlink", 99, target="elsewhere")
    damage = read(world, tree).damage
    assert damage
    assert not [one for one in damage if one.about.startswith("of the names,")]


def test_a_truncation_that_is_there_in_part_damages_nothing_beside_it() -> None:
    """ext4 zeroes the rest of the block before it commits the size."""
    world = world_of("truncate /d/a 1000; create /d/new")
    tree = dict(world.step(0).tree or {})
    whole = tree["/d/a"].content
    tree["/d/a"] = with_content(tree["/d/a"], whole[:1000] + bytes(3096) + whole[4096:])
    assert not read(world, tree).collateral
    tree["/d/a"] = with_content(tree["/d/a"], whole[:1000] + b"x" * 3096 + whole[4096:])
    assert read(world, tree).collateral
    tree["/d/a"] = with_content(tree["/d/a"], whole[:900] + bytes(3196) + whole[4096:])
    assert read(world, tree).collateral


def test_a_link_count_that_fits_the_names_in_sight_is_no_damage_of_its_own() -> None:
    """ext2: of a rename that is there in part the file has both names, and e2fsck counts two."""
    world = world_of("append /d/a 4096; rename /d/a /e/moved")
    tree = dict(world.crash({1}).tree or {})
    tree["/e/moved"] = tree["/d/a"] = replace(tree["/d/a"], links=2)
    reading = read(world, tree)
    assert (reading.of(2), reading.collateral) == (Presence.PARTIAL, ())
    tree["/e/moved"] = tree["/d/a"] = replace(tree["/d/a"], links=3)
    assert read(world, tree).collateral
    del tree["/e/moved"]
    tree["/d/a"] = replace(tree["/d/a"], links=2)
    assert read(world, tree).collateral


def test_a_set_that_would_have_been_refused_explains_nothing() -> None:
    """f2fs with fsync_mode=posix: the rename is not there, the create is, which would have found the name taken."""
    world = world_of("rename /d/a /d/moved; create /d/a")
    tree = dict(world.step(0).tree or {})
    tree["/d/a"] = Node("file", world.numbers[world.history.steps[2].names["/d/a"]])
    (damage,) = read(world, tree).damage
    assert damage.suspects == {1, 2}


def test_each_group_of_operations_is_accused_once() -> None:
    """Not those around it; nor is another one left out."""
    world = world_of("rename /d/a /d/moved; create /d/a; create /d/z; rename /e/gone /e/moved; create /e/gone")
    tree = dict(world.step(0).tree or {})
    names = {
        path: world.numbers[thing] for step in (2, 3, 5) for path, thing in world.history.steps[step].names.items()
    }
    tree |= {path: Node("file", names[path]) for path in ("/d/a", "/d/z", "/e/gone")}
    reading = read(world, tree)
    assert [set(damage.suspects) for damage in reading.damage] == [{1, 2}, {4, 5}]
    [prop] = [probe.property for probe in shipped_probes() if probe.property.name == "directory-op"]
    asked = questions(prop, world.history)
    broken = [question.required for question in asked if is_broken(prop, question, world.history, reading)]
    assert broken == [(1,), (2,), (4,), (5,)], "and no other operation"


def test_what_was_moved_into_a_directory_that_is_not_there_is_lost() -> None:
    world = world_of("mkdir /new; rename /d/a /new/a")
    tree = dict(world.step(0).tree or {})
    del tree["/d/a"]
    (damage,) = read(world, tree).damage
    assert damage.suspects == {1, 2}


def test_a_removed_directory_that_was_not_empty() -> None:
    world = world_of("unlink /d/sub/in; rmdir /d/sub; create /d/new")
    tree = {path: node for path, node in done(world).items() if path != "/d/new"}
    assert not read(world, tree).damage
    world = world_of("create /d/sub/x; unlink /d/sub/x; unlink /d/sub/in; rmdir /d/sub")
    tree = dict(world.crash({1, 2, 3}).tree or {})
    assert not read(world, tree).damage


# Whatever is spoiled of a tree that no operation touched shows, whatever sets of operations are there.


def bystanders(world: World, tree: Mapping[str, Node]) -> Iterator[str]:
    """The names that no operation of the workload has anything to do with, nor with a directory above them."""
    steps = [step.names for step in world.history.steps]
    touched = {thing for number in world.all for thing in world.named(number)}
    for path in sorted(tree):
        things = {names.get(path) for names in steps}
        if len(things) == 1 and None not in things and not things & touched:
            yield path


def spoiled(rng: Random, tree: Tree, path: str) -> str:
    """Spoil ``path`` in one way; which."""
    node = tree[path]
    ways = ["gone", "kind", "attribute", "fault"]
    if node.kind == FileKind.FILE:
        ways += ["links", "longer"]
        ways += ["shorter", "byte", "zeros", "stale"] if node.content else []
    way = rng.choice(ways)
    middle = rng.randrange(len(node.content)) if node.content else 0
    match way:
        case "gone":
            for name in [name for name in tree if name == path or name.startswith(path + "/")]:
                del tree[name]
        case "kind":
            kind = "symlink" if node.kind != "symlink" else "file"
            tree[path] = replace(node, kind=kind, target="elsewhere", content=b"", size=0)
        case "attribute":
            tree[path] = replace(node, xattrs={**node.xattrs, "user.nobody": b"1"})
        case "fault":
            tree[path] = replace(node, fault="Input/output error", content=b"")
        case "links":
            tree[path] = replace(node, links=node.links + rng.choice([-1, 1]))
        case "longer":
            tree[path] = with_content(node, node.content + bytes(rng.choice([1, 4096])))
        case "shorter":
            tree[path] = with_content(node, node.content[:middle])
        case "byte":
            spot = bytes([node.content[middle] ^ 0xFF])
            tree[path] = with_content(node, node.content[:middle] + spot + node.content[middle + 1 :])
        case "zeros":
            tree[path] = with_content(node, node.content[:middle] + bytes(len(node.content) - middle))
        case "stale":
            tree[path] = with_content(node, (STALE_CELL * len(node.content))[: len(node.content)])
    return way


@pytest.mark.parametrize("seed", range(0, 600, 200))
def test_what_no_operation_touched_is_watched(seed: int) -> None:
    ways: set[str] = set()
    for number in range(seed, seed + 200):
        rng = Random(number)
        world = World.of(random_workload(rng))
        there = {one for one in world.all if rng.random() < 0.6}
        if not world.is_possible(there):
            continue
        tree = dict(world.crash(there).tree or {})
        if not (alone := list(bystanders(world, tree))):
            continue
        path = rng.choice(alone)
        way = spoiled(rng, tree, path)
        ways.add(way)
        reading = read(world, tree)
        assert reading.collateral, (number, path, way, world.history.operations)
    assert len(ways) > 7


@pytest.mark.parametrize("seed", range(0, 600, 200))
def test_a_name_that_nothing_gave_is_seen(seed: int) -> None:
    for number in range(seed, seed + 200):
        rng = Random(number)
        world = World.of(random_workload(rng))
        there = {one for one in world.all if rng.random() < 0.6}
        if not world.is_possible(there):
            continue
        tree = dict(world.crash(there).tree or {})
        folders = ["", *(path for path, node in sorted(tree.items()) if node.kind == FileKind.DIRECTORY)]
        path = f"{rng.choice(folders)}/stray"
        tree[path] = Node(rng.choice(["file", "directory", "symlink"]), 9999)
        assert [one for one in read(world, tree).collateral if path in one.about], (number, path)


@pytest.mark.parametrize("seed", range(0, 400, 200))
def test_no_tree_that_no_set_of_operations_leaves_reads_as_whole(seed: int) -> None:
    """Names exchanged, given twice or taken away: unless some set of operations leaves just these, it shows."""
    for number in range(seed, seed + 200):
        rng = Random(number)
        world = World.of(random_workload(rng, rng.randint(1, 5)))
        every = [{n for n in world.all if mask >> n - 1 & 1} for mask in range(1 << len(world.all))]
        possible = [there for there in every if world.is_possible(there)]
        trees = [dict(world.crash(there).tree or {}) for there in possible]
        tree = dict(rng.choice(trees))
        files = [path for path, node in sorted(tree.items()) if node.kind == FileKind.FILE]
        if len(files) < 2:
            continue
        one, other = rng.sample(files, 2)
        match rng.randrange(3):
            case 0:
                tree[one], tree[other] = tree[other], tree[one]
            case 1:
                tree[one] = tree[other]
            case 2:
                del tree[one]
        numbers = {path: (node.kind, node.inode) for path, node in tree.items()}
        if any(numbers == {path: (node.kind, node.inode) for path, node in t.items()} for t in trees):
            continue
        reading = read(world, tree)
        assert reading.collateral or reading.damage or Presence.PARTIAL in reading.presences, (number, one, other)


STATUS = {
    "/": InodeStatus(0o755, 0, 0, 7, 4),
    "/d": InodeStatus(0o755, 0, 0, 7, 3),
    "/d/sub": InodeStatus(0o755, 0, 0, 7, 2),
}
STATUS |= {path: InodeStatus(0o644, 0, 0, 7, 1) for path in ("/d/sub/in", "/d/a", "/d/b", "/e/gone")}
STATUS |= {"/e": InodeStatus(0o755, 0, 0, 7, 2)}


def with_status(tree: Mapping[str, Node]) -> Tree:
    """``tree`` as stat would tell it, all of it modified when the initial tree was made."""
    found = {}
    for path, node in tree.items():
        inside = sum(one.kind == "directory" and name.rpartition("/")[0] == path for name, one in tree.items())
        links = 2 + inside if node.kind == "directory" else node.links
        mode = 0o755 if node.kind == "directory" else 0o644
        found[path] = replace(node, mode=mode, uid=0, gid=0, mtime=7, links=links)
    return found


@pytest.mark.parametrize(
    ("operations", "path", "change", "suspects"),
    [
        ("create /d/new", "/e/gone", {"mode": 0o600}, set()),
        ("create /d/new", "/d/a", {"uid": 1}, {1}),
        ("create /d/new", "/e/gone", {"gid": 1}, set()),
        ("create /d/new", "/e/gone", {"mtime": 0}, set()),
        ("append /e/gone 10", "/e/gone", {"mode": 0}, {1}),
        ("append /e/gone 10", "/e/gone", {"mtime": 0}, None),
        ("create /d/new", "/d", {"mtime": 0}, None),
        ("create /d/new", "/d/new", {"mode": 0}, {1}),
        ("mkdir /d/new", "/d", {"links": 3}, {1}),
        ("create /d/new", "/d", {"links": 2}, set()),
        ("create /d/new", "/e", {"links": 3}, set()),
    ],
)
def test_modes_owners_times_and_links(
    operations: str, path: str, change: dict[str, int], suspects: set[int] | None
) -> None:
    world = world_of(operations)
    after = {**STATUS, "/d/new": InodeStatus(0o755 if "mkdir" in operations else 0o644, 0, 0, 0, 1)}
    known = [{name: world.numbers[thing] for name, thing in world.history.steps[at].names.items()} for at in (0, -1)]
    oracle = Oracle(world.history, inodes_of_things(world.history, *known), (STATUS, after))
    tree = with_status(done(world))
    assert not oracle.read(Observation(True, None, tree)).collateral
    tree[path] = replace(tree[path], **change)  # type: ignore[arg-type]
    found = oracle.read(Observation(True, None, tree)).collateral
    assert [set(damage.suspects) for damage in found] == ([] if suspects is None else [suspects])


@pytest.mark.parametrize(
    ("operations", "change", "presence"),
    [
        ("chmod /d/a 600", {"mode": 0o600}, Presence.FULL),
        ("chmod /d/a 600", {"mode": 0o644}, Presence.NONE),
        ("chmod /d/a 600", {"mode": 0o604}, Presence.PARTIAL),
        ("chmod /d/a 600", {"mode": None}, Presence.UNDECIDED),
        ("chown /d/a 7:8", {"uid": 7, "gid": 8}, Presence.FULL),
        ("chown /d/a 7:8", {"uid": 0, "gid": 0}, Presence.NONE),
        ("chown /d/a 7:8", {"uid": 7, "gid": 0}, Presence.PARTIAL),
        ("chown /d/a 7:8", {"uid": None, "gid": None}, Presence.UNDECIDED),
        ("chmod /d/a 600; chmod /d/a 640", {"mode": 0o600}, Presence.FULL),
    ],
)
def test_what_sets_a_mode_or_an_owner_is_told_by_it_and_damages_nothing(
    operations: str, change: dict[str, int | None], presence: Presence
) -> None:
    world = world_of(operations)
    known = [{name: world.numbers[thing] for name, thing in world.history.steps[at].names.items()} for at in (0, -1)]
    after = {**STATUS, "/d/a": STATUS["/d/a"]._replace(mode=0o600, uid=7, gid=8)}
    oracle = Oracle(world.history, inodes_of_things(world.history, *known), (STATUS, after))
    tree = with_status(done(world))
    tree["/d/a"] = replace(tree["/d/a"], **change)  # type: ignore[arg-type]
    reading = oracle.read(Observation(True, None, tree))
    assert reading.of(1) is presence
    assert not reading.collateral
    tree["/d/b"] = replace(tree["/d/b"], mode=0o777)
    assert oracle.read(Observation(True, None, tree)).collateral


def test_what_was_not_observed_is_no_damage() -> None:
    world = world_of("create /d/new")
    oracle = Oracle(world.history, {}, (STATUS, STATUS))
    assert not oracle.read(Observation(True, None, done(world))).collateral, "no modes, owners and times"
    unknown = {path: status._replace(mtime=0) for path, status in STATUS.items()}
    oracle = Oracle(world.history, {}, (unknown, unknown))
    assert not oracle.read(Observation(True, None, with_status(done(world)))).collateral, "no time before"
    some = {path: status._replace(links=2 if path == "/e" else 1) for path, status in STATUS.items()}
    tree = {path: replace(node, links=1) for path, node in with_status(done(world)).items()}
    oracle = Oracle(world.history, {}, (some, some))
    assert not oracle.read(Observation(True, None, tree)).collateral, "that one count fits says nothing"


def test_a_file_system_that_does_not_count_directories_is_not_held_to_it() -> None:
    world = world_of("mkdir /d/new")
    one = {path: status._replace(links=1) for path, status in STATUS.items()}
    oracle = Oracle(world.history, {}, (one, one))
    tree = {path: replace(node, links=1) for path, node in with_status(done(world)).items()}
    assert not oracle.read(Observation(True, None, tree)).collateral


def test_damage_breaks_the_atomicity_of_its_only_suspect_and_else_is_collateral() -> None:
    broken = {
        "an overwrite": ("write /d/a 100 100", rest_of_an_overwritten_block, "single-sector-overwrite"),
        "an append": ("append /d/a 4K", bytes_before_an_append, "single-block-append"),
        "a prefix": ("append /d/a 8K", bytes_before_an_append, "multi-block-prefix-append"),
        "a mkdir": ("mkdir /d/new", garbage_in_a_new_directory, "directory-op"),
        "two": ("create /d/new; create /d/newer", a_lost_neighbour, "collateral"),
        "another": ("append /e/gone 10", a_lost_neighbour, "collateral"),
        "a truncation": ("truncate /d/a 8000", rest_of_an_overwritten_block, "collateral"),
    }
    properties = {probe.property.name: probe.property for probe in shipped_probes()}
    for what, (operations, spoil, name) in broken.items():
        world = world_of(operations)
        oracle, tree = world.oracle(), done(world)
        whole = Observation(True, None, dict(tree))
        spoil(tree)
        spoiled_tree = Observation(True, None, tree)
        shown = {"directory-op": "directory-op", "collateral": "collateral", name: name}
        for row in shown:
            (question,) = questions(properties[row], world.history)[:1] or (None,)
            if question is None:
                continue
            prop, history = properties[row], world.history
            assert violation(prop, question, history, oracle, oracle.read(whole), whole) is None, what
            found = violation(prop, question, history, oracle, oracle.read(spoiled_tree), spoiled_tree)
            assert (found is not None) == (row == name), (what, row)


def test_a_workload_that_changes_nothing_has_nothing_beside_it() -> None:
    [prop] = [probe.property for probe in shipped_probes() if probe.property.name == "collateral"]
    assert not questions(prop, world_of("fsync /d/a; sync").history)
    assert questions(prop, world_of("fsync /d/a; append /d/a 10").history)
