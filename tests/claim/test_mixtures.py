"""Properties held against mixtures of two trees, sector by sector: a few rows show what any mixture shows, where bob says
so. Against judging every mixture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

import pytest

from bob.catalogue.probe_files import shipped_probes
from bob.claim.property.contents import FileStory
from bob.claim.property.presence import Oracle
from bob.claim.property.rules import Property, is_broken, questions
from bob.observe.mixtures import missing_rows
from bob.observe.observation import Observation
from bob.workload import operations as ops
from bob.workload.history import History
from bob.workload.operations import How, Operation, Workload
from workload.generators import FEW_FILES, random_workload

from .worlds import SECTOR, World

PROPERTIES = [probe.property for probe in shipped_probes()]
MOST = 6  # sectors: 64 mixtures


def overwrites(rng: Random) -> Workload:
    """Writes inside of two files, many of them over each other; some other operations between them."""
    made: list[Operation] = []
    for _ in range(rng.randint(1, 4)):
        length = rng.choice([60, 512, 700, 1500, 3000])
        made.append(ops.Write("/a", rng.randrange(0, 8000 - length, 100), length, rng.choice([How.PLAIN, How.MMAP])))
        made += rng.choice([[], [], [ops.Rename("/a", "/e")], [ops.Write("/c", 0, 60)], [ops.Truncate("/a", 8000)]])
        if isinstance(made[-1], ops.Rename):
            break
    return Workload("random", FEW_FILES, tuple(made))


def two_trees(world: World, rng: Random, noise: float) -> tuple[Observation, Observation]:
    """Two trees that differ in sectors of data alone, up to ``MOST``; a share of them, ``noise``, is from no operation."""
    there = {number for number in world.all if rng.random() < 0.5}
    torn = {number: Random(rng.random()) for number in there if rng.random() < 0.1}
    first, second = (
        world.crash(there, torn).tree,
        world.crash(set(world.all) - there if rng.random() < 0.8 else there).tree,
    )
    assert first is not None
    assert second is not None
    places = [
        (path, offset)
        for path, node in first.items()
        if path in second and len(second[path].content) == len(node.content)
        for offset in range(0, len(node.content), SECTOR)
        if node.content[offset : offset + SECTOR] != second[path].content[offset : offset + SECTOR]
    ]
    other = dict(first)
    for path, offset in rng.sample(places, min(MOST, len(places))):
        data = second[path].content[offset : offset + SECTOR]
        if rng.random() < noise:
            data = rng.choice([bytes(len(data)), b"\xa5" * len(data)])
        content = other[path].content
        other[path] = replace(other[path], content=content[:offset] + data + content[offset + len(data) :])
    return Observation(True, None, first), Observation(True, None, other)


def differing(one: Observation, other: Observation) -> list[tuple[str, int]]:
    assert one.tree is not None
    assert other.tree is not None
    return [
        (path, offset)
        for path, node in sorted(one.tree.items())
        for offset in range(0, len(node.content), SECTOR)
        if node.content[offset : offset + SECTOR] != other.tree[path].content[offset : offset + SECTOR]
    ]


def mixed(one: Observation, other: Observation, places: list[tuple[str, int]], mask: int) -> Observation:
    assert one.tree is not None
    assert other.tree is not None
    tree = dict(one.tree)
    for number, (path, offset) in enumerate(places):
        if mask >> number & 1:
            content, data = tree[path].content, other.tree[path].content[offset : offset + SECTOR]
            tree[path] = replace(tree[path], content=content[:offset] + data + content[offset + len(data) :])
    return Observation(True, None, tree)


def broken(oracle: Oracle, history: History, seen: Observation) -> set[str]:
    reading = oracle.read(seen)
    return {prop.name for prop in PROPERTIES if breaks(prop, history, reading)}


def breaks(prop: Property, history: History, reading: object) -> bool:
    return any(is_broken(prop, question, history, reading) for question in questions(prop, history))  # type: ignore[arg-type]


def compared(seeds: range, noise: float = 0.05) -> Iterator[tuple[bool, set[str], set[str], set[str]]]:
    """For each two trees: whether bob says that rows are enough; what rows break, all mixtures, and the two alone."""
    for seed in seeds:
        rng = Random(seed)
        workload = overwrites(rng) if rng.random() < 0.7 else random_workload(rng)
        world = World.of(workload)
        one, other = two_trees(world, rng, noise)
        places = differing(one, other)
        if len(places) < 2:
            continue
        oracle = world.oracle()
        all_broken = [
            broken(oracle, world.history, mixed(one, other, places, mask)) for mask in range(1 << len(places))
        ]
        rows = missing_rows(len(places), [], rng) or []
        some = set().union(*(all_broken[row] for row in rows))
        yield oracle.is_mixed_by_sectors(one, other), some, set().union(*all_broken), all_broken[0] | all_broken[-1]


@pytest.mark.parametrize("part", range(4))
def test_rows_show_all_that_any_mixture_shows(part: int) -> None:
    seen = Counter[str]()
    for is_judged, by_rows, by_all, alone in compared(range(1000 * part, 1000 * part + 60)):
        if is_judged:
            assert by_rows == by_all
            seen["judged"] += 1
            seen["broken by a mixture alone"] += by_all > alone
    assert seen["judged"] >= 5
    assert seen["broken by a mixture alone"] >= 2


def test_rows_are_not_enough_where_bob_does_not_say_so() -> None:
    """With bytes of no operation, a third sector can hide the damage in two others."""
    [(is_judged, by_rows, by_all, _alone)] = compared(range(5165, 5166), noise=0.5)
    assert not is_judged
    assert by_all - by_rows == {"collateral"}


def is_mixed_by_bytes(setup: Sequence[Operation], made: Sequence[Operation], whole: int = 1) -> bool:
    """Whether bob says that each byte of /a means the same in any mixture of two contents: the first, and that after
    ``whole`` operations."""
    history = World.of(Workload("w", tuple(setup), tuple(made))).history
    identity = history.steps[0].names["/a"]
    first, last = (history.steps[step].inodes[identity].content for step in (0, whole))
    assert first != last
    return FileStory(history, identity).is_mixed_by_bytes(first, last)


WRITE = ops.Write("/a", 0, 4096)


@pytest.mark.parametrize("mode", [ops.Allocation.INSERT, ops.Allocation.COLLAPSE])
def test_a_byte_in_a_file_with_a_moved_range_does_not_say_where_it_was(mode: ops.Allocation) -> None:
    setup = [ops.Write("/a", 0, 12288)]
    assert is_mixed_by_bytes(setup, [WRITE])
    assert not is_mixed_by_bytes(setup, [WRITE, ops.Fallocate("/a", 4096, 4096, mode)])


def test_a_zero_may_be_a_hole() -> None:
    assert not is_mixed_by_bytes([ops.Write("/a", 8192, 100)], [WRITE])


def test_a_byte_of_two_operations_does_not_say_which() -> None:
    setup = [ops.Write("/a", 0, 4096), ops.Write("/b", 0, 4096)]
    copy = ops.CopyRange("/b", "/a", 0, 4096)
    assert is_mixed_by_bytes(setup, [ops.Write("/b", 0, 4096), copy], 2)
    assert not is_mixed_by_bytes(setup, [ops.Write("/b", 0, 4096), copy, WRITE, copy], 2)


@pytest.mark.parametrize("count", [2, 3, 7, 8, 9, 64])
@pytest.mark.parametrize("before", [0, 1, 5])
def test_each_two_sectors_are_in_rows_in_all_ways(count: int, before: int) -> None:
    chance = Random(f"{count} {before}")
    have = [chance.getrandbits(count) for _ in range(before)]
    found = missing_rows(count, have, Random(1))
    assert found is not None
    assert len(found) <= 2 + {2: 2, 3: 3, 7: 5, 8: 5, 9: 5, 64: 8}[count]
    if not before:
        assert found[:2] == [0, (1 << count) - 1]
    every = {*have, *found}
    assert {0, (1 << count) - 1} <= every
    for one in range(count):
        for other in range(one):
            assert {(row >> one & 1, row >> other & 1) for row in every} == {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert missing_rows(count, [*every], Random(1)) == []


def test_very_many_sectors_have_no_rows() -> None:
    assert missing_rows(257, [], Random(1)) is None
