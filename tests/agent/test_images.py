"""Images in memory: what differs, how it travels, and the medium that is put back to what it was."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.agent.inside import medium
from bob.agent.inside.frames import Denial
from bob.agent.inside.images import (
    GAP,
    SECTOR,
    STEPS,
    DeviceImage,
    PatternImage,
    differing,
    merged,
    outside,
    pack,
    unpack,
)
from bob.trace import differences
from bob.workload.pattern import STALE_CELL, stale
from mediums import lay

LENGTH = 3 * STEPS[0] + STEPS[1]
BLOCK_SECTORS = STEPS[-1] // SECTOR

Change = tuple[int, bytes]
"""A sector, and what is written from there on."""

changes: st.SearchStrategy[list[Change]] = st.lists(
    st.builds(
        lambda sector, cell, count: (sector, cell * (count * SECTOR // len(cell))),
        st.integers(0, LENGTH // SECTOR - 40),
        st.sampled_from([bytes(16), b"x", STALE_CELL]),
        st.integers(1, 40),
    ),
    max_size=12,
)


@pytest.fixture(scope="module")
def image() -> Iterator[DeviceImage]:
    image = DeviceImage(LENGTH)
    yield image
    image.close()


@given(changes)
@settings(max_examples=60, deadline=None)
def test_what_is_packed_is_what_the_host_unpacks(image: DeviceImage, changed: list[Change]) -> None:
    pattern = PatternImage(STALE_CELL)
    pattern.fill(image, [(0, LENGTH // SECTOR)])
    expected = bytearray(stale(LENGTH))
    for sector, data in changed:
        image.put(sector, data)
        expected[sector * SECTOR : sector * SECTOR + len(data)] = data
    runs = differing(image, pattern.address)
    assert all(first + count < second for (first, count), (second, _) in pairwise(runs))
    packed = pack(image, runs)
    on_the_host = bytearray(stale(LENGTH))
    lay(packed, on_the_host)
    assert on_the_host == expected == image.data
    in_the_guest = bytearray(stale(LENGTH))
    for sector, data_there in unpack(packed):
        in_the_guest[sector * SECTOR : sector * SECTOR + len(data_there)] = data_there
    assert in_the_guest == expected


def test_equal_images_differ_nowhere_and_every_single_sector_is_seen() -> None:
    one, other = DeviceImage(LENGTH), DeviceImage(LENGTH)
    assert differing(one, other.address) == []
    assert one.is_same(other, 0, one.length // SECTOR)
    for sector in (0, 7, 8, STEPS[1] // SECTOR, LENGTH // SECTOR - 1):
        one.put(sector, b"\1" + bytes(SECTOR - 1))
        assert differing(one, other.address) == [(sector - sector % BLOCK_SECTORS, BLOCK_SECTORS)]
        assert not one.is_same(other, 0, one.length // SECTOR)
        one.copy(other, [(sector, 1)])
        assert one.is_same(other, 0, one.length // SECTOR)
    one.close()
    other.close()


def test_zeros_travel_without_their_data() -> None:
    image = DeviceImage(LENGTH)
    image.put(16, b"x" * 8 * SECTOR)
    packed = pack(image, [(0, LENGTH // SECTOR)])
    assert len(packed) < 200
    assert [(sector, len(data)) for sector, data in differences.runs(packed)] == [
        (0, 16 * SECTOR),
        (16, 8 * SECTOR),
        (24, LENGTH - 24 * SECTOR),
    ]
    image.close()


@pytest.mark.parametrize("sector", [LENGTH // SECTOR - 1, LENGTH // SECTOR, 10**9])
def test_nothing_is_written_beyond_the_end(image: DeviceImage, sector: int) -> None:
    with pytest.raises(ValueError):
        image.put(sector, bytes(2 * SECTOR))


def test_two_images_never_share_a_place_in_the_tlb() -> None:
    one = DeviceImage(LENGTH)
    other = DeviceImage(LENGTH, beside=one)
    apart = (one.address(0) - other.address(0)) // 4096 % 256
    assert apart == 128
    assert other.get(0, LENGTH // SECTOR) == bytes(LENGTH)
    one.close()
    other.close()


runs = st.lists(st.tuples(st.integers(0, 2000), st.integers(1, 200)), max_size=20)


@given(runs, st.tuples(st.integers(0, 2000), st.integers(1, 400)))
def test_what_is_outside_of_places_is_what_no_place_has(some: list[tuple[int, int]], run: tuple[int, int]) -> None:
    found = outside(run, sorted(some))
    taken = {sector for first, count in some for sector in range(first, first + count)}
    listed = [sector for first, count in found for sector in range(first, first + count)]
    assert listed == [sector for sector in range(run[0], sum(run)) if sector not in taken]
    assert all(before[0] + before[1] < after[0] for before, after in pairwise(found))


@given(runs)
def test_merged_runs_cover_all_and_little_more(some: list[tuple[int, int]]) -> None:
    covering = merged(some)
    asked = {sector for first, count in some for sector in range(first, first + count)}
    covered = [sector for first, count in covering for sector in range(first, first + count)]
    assert len(covered) == len(set(covered))
    assert asked <= set(covered)
    assert covered == sorted(covered)
    assert all(first + count + GAP < second for (first, count), (second, _) in pairwise(covering))
    assert all(any(abs(sector - other) <= GAP for other in asked) for sector in covered)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The agent's media, in a folder of the host."""
    monkeypatch.setattr(medium, "WORK", str(tmp_path))
    monkeypatch.setattr(medium, "bases", {})
    yield
    medium.drop()


def base(*changed: Change) -> medium.PackedBase:
    image = DeviceImage(LENGTH)
    PatternImage(STALE_CELL).fill(image, [(0, LENGTH // SECTOR)])
    for sector, data in changed:
        image.put(sector, data)
    packed = pack(image, differing(image, PatternImage(STALE_CELL).address))
    image.close()
    return medium.PackedBase((LENGTH,), STALE_CELL, packed)


def blocks(runs: list[tuple[int, int]]) -> list[int]:
    """The blocks that have a sector of ``runs``, as they come."""
    numbers = [range(first // BLOCK_SECTORS, -(-(first + count) // BLOCK_SECTORS)) for first, count in runs]
    return [block for each in numbers for block in each]


anywhere = st.lists(st.tuples(st.integers(0, LENGTH // SECTOR - 300), st.integers(1, 300)), max_size=8)


@given(anywhere, anywhere)
@settings(max_examples=60)
def test_differences_are_looked_for_where_it_is_asked(
    changed: list[tuple[int, int]], asked: list[tuple[int, int]]
) -> None:
    one = DeviceImage(LENGTH)
    other = DeviceImage(LENGTH, beside=one)
    for first, count in changed:
        one.put(first, b"x" * count * SECTOR)
    found = blocks(differing(one, other.address, asked))
    assert found == sorted(set(blocks(changed)) & set(blocks(merged(asked))))
    assert blocks(differing(one, other.address, [*asked, *changed])) == blocks(differing(one, other.address))
    one.close()
    other.close()


def test_loading_another_base_leaves_nothing_of_the_one_before(here: None) -> None:
    medium.bases.update(one=base((3, b"1" * SECTOR), (500, bytes(40 * SECTOR))), two=base((4, b"2" * SECTOR)))
    images = {}
    for name in ("one", "two", "one", "two"):
        loaded = medium.medium_with(name)
        assert loaded.work.is_same(loaded.pristine, 0, loaded.work.length // SECTOR)
        images.setdefault(name, bytes(loaded.work.data))
        assert images[name] == loaded.work.data
        expected = bytearray(stale(LENGTH))
        lay(medium.bases[name].packed, expected)
        assert loaded.work.data == expected
    assert medium.medium_of(LENGTH, STALE_CELL).work.data == stale(LENGTH)


def test_what_was_made_is_adopted_as_a_base(here: None) -> None:
    made = medium.medium_of(LENGTH, STALE_CELL)
    made.work.put(9, b"9" * SECTOR)
    runs = made.adopt("new")
    medium.bases["new"] = medium.PackedBase((LENGTH,), STALE_CELL, pack(made.work, runs))
    medium.bases["other"] = base()
    after = bytes(made.work.data)
    assert made.pristine.data == after
    assert medium.medium_with("other").work.data == stale(LENGTH)
    assert medium.medium_with("new").work.data == after


def test_work_is_put_back(here: None) -> None:
    medium.bases["one"] = base((3, b"1" * SECTOR))
    loaded = medium.medium_with("one")
    loaded.work.put(1000, b"w" * 5 * SECTOR)
    runs = loaded.changed()
    assert runs
    loaded.put_back(runs)
    assert loaded.changed() == []
    assert loaded.work.is_same(loaded.pristine, 0, loaded.work.length // SECTOR)


def test_where_it_is_known_what_was_written_all_is_compared_only_once_in_a_while(here: None) -> None:
    medium.bases["one"] = base((3, b"1" * SECTOR))
    loaded = medium.medium_with("one")
    loaded.work.put(1000, b"w" * SECTOR)
    found = [blocks(loaded.changed([(500, 1)])) for _ in range(2 * medium.WHOLE_EVERY)]
    assert found.count([1000 // BLOCK_SECTORS]) == 2
    assert found.count([]) == 2 * medium.WHOLE_EVERY - 2
    assert all(blocks(loaded.changed([(1000, 1)])) for _ in range(medium.WHOLE_EVERY))
    assert all(blocks(loaded.changed()) for _ in range(medium.WHOLE_EVERY))


def test_a_base_that_is_not_there_is_refused(here: None) -> None:
    with pytest.raises(Denial) as refused:
        medium.medium_with("missing")
    assert str(refused.value) == snapshot("the guest lacks the base image missing")


def test_media_of_another_size_or_after_a_failure_are_new(here: None, tmp_path: Path) -> None:
    first = medium.medium_of(LENGTH, STALE_CELL)
    assert medium.medium_of(LENGTH, STALE_CELL) is first
    medium.medium_of(STEPS[0], STALE_CELL)
    assert len(list(tmp_path.iterdir())) == 1
    medium.drop()
    assert list(tmp_path.iterdir()) == []
