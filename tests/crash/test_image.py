"""The image of a state: three ways to it (rules spelled out, ``apply``, delta and payload) must agree."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bob.crash.caches import CACHES, WriteCache
from bob.crash.device import DeviceModel
from bob.crash.drafts import view
from bob.crash.image import Composer
from bob.crash.legal import GrowthPoint, growth_points
from bob.crash.sampling import random_subsets, random_tears, ranges
from bob.crash.search import StateSearch
from bob.crash.state import CrashState, TornWrites, check_state
from bob.trace.model import DeviceWrite, Trace
from mediums import put

from .brute import Medium, Unit, legal_units, subsets, units_of, units_of_all
from .traces import Case, at, cases, content, journal, patched, trace_of


def composer_of(case: Case, points: Sequence[GrowthPoint]) -> Composer:
    return Composer(case.trace, points, case.model, case.base_sector)


def states_of(case: Case, points: Sequence[GrowthPoint]) -> Iterator[tuple[CrashState, frozenset[Unit]]]:
    """Every recipe of every growth point, with the units that it puts on the medium."""
    for number, point in enumerate(points):
        always = units_of_all(case.trace, case.model, point.durable)
        for chosen in subsets(units_of_all(case.trace, case.model, point.pending)):
            kept, torn = [], []
            for index in point.pending:
                units = sorted(units_of(case.trace.writes[index], case.model))
                here = [unit in chosen for unit in units]
                if all(here):
                    kept.append(index)
                elif any(here):
                    torn.append((index, ranges(sum(1 << k for k, there in enumerate(here) if there))))
            yield CrashState(number, tuple(kept), tuple(torn)), always | chosen


def some(states: list[tuple[CrashState, frozenset[Unit]]], most: int) -> list[tuple[CrashState, frozenset[Unit]]]:
    return Random(0).sample(states, min(most, len(states)))


@settings(max_examples=80, deadline=None)
@given(cases())
def test_a_disk_is_the_same_whatever_is_in_every_state(case: Case) -> None:
    points = growth_points(case.trace, case.model)
    disks: dict[bytes, bytes] = {}
    whole = composer_of(case, points)
    for first in range(len(points)):  # more and more is floor
        composer = composer_of(case, points[first:])
        for state, _units in some(list(states_of(case, points[first:])), 20):
            image = bytearray(case.base)
            put(composer, state, image)
            assert disks.setdefault(composer.disk(state), bytes(image)) == image
            earlier = CrashState(state.point + first, state.kept, state.torn)
            assert composer.disk(state) == whole.disk(earlier)
    assert len(set(disks.values())) == len(disks)


@settings(max_examples=80, deadline=None)
@given(cases())
def test_numbers_of_contents_are_equal_where_the_contents_are(case: Case) -> None:
    points = growth_points(case.trace, case.model)
    composer = composer_of(case, points)
    numbers, images = [], []
    for state, _units in some(list(states_of(case, points)), 40):
        numbers.append(composer.contents(state).tolist())
        image = bytearray(case.base)
        put(composer, state, image)
        images.append([bytes(image[sector * 512 : (sector + 1) * 512]) for sector in composer.sectors.tolist()])
        outside = set(range(len(image) // 512)).difference(composer.sectors.tolist())
        ground = patched(case.base, composer.floor_delta(), composer.payload_since(0))
        assert all(image[s * 512 : (s + 1) * 512] == ground[s * 512 : (s + 1) * 512] for s in outside)
    for place in range(len(composer.sectors)):
        found = [(number[place], image[place]) for number, image in zip(numbers, images, strict=True)]
        assert len(set(found)) == len({number for number, _image in found}) == len({image for _number, image in found})


@settings(max_examples=80, deadline=None)
@given(cases())
def test_every_legal_state_has_its_contents_and_its_key(case: Case) -> None:
    points = growth_points(case.trace, case.model)
    composer = composer_of(case, points)
    medium = Medium(case.trace, case.model, case.base)
    ground = patched(case.base, composer.floor_delta(), composer.payload_since(0))
    assert ground == medium.content(units_of_all(case.trace, case.model, points[0].durable))
    contents: dict[bytes, bytes] = {}
    reached = set()
    for state, units in some(list(states_of(case, points)), 200):
        check_state(case.trace, case.model, points, state)
        expected = medium.content(units)
        image = bytearray(case.base)
        put(composer, state, image)
        assert bytes(image) == expected
        put(composer, state, image := bytearray(ground))
        assert bytes(image) == expected
        runs = composer.delta(state)
        assert patched(ground, runs, composer.payload_since(0)) == expected
        assert all(a[0] + a[2] <= b[0] for a, b in pairwise(runs))
        assert contents.setdefault(composer.key(state), expected) == expected
        reached.add(expected)
    assert len(contents) == len(reached)
    assert reached <= {medium.content(units) for units in legal_units(case.trace, case.model)}


@settings(max_examples=40, deadline=None)
@given(cases([DeviceModel(atomic_write_bytes=256)]), st.randoms(use_true_random=False))
def test_keys_do_not_depend_on_what_was_asked_before(case: Case, random: Random) -> None:
    points = growth_points(case.trace, case.model)
    states = [state for state, _ in some(list(states_of(case, points)), 100)]
    first = composer_of(case, points)
    keys = {state: first.key(state) for state in states}
    random.shuffle(states)
    second = composer_of(case, points)
    assert all(second.key(state) == keys[state] for state in states)


def small(base: bytes = bytes(9 * 512), atomic: int = 512) -> tuple[Case, tuple[GrowthPoint, ...], Composer]:
    writes = [
        DeviceWrite(0, 0, content("aaaaaaaa"), at(1), at(2)),
        DeviceWrite(1, 2, content("bbbb"), at(3), at(4)),
    ]
    case = Case(trace_of(writes, [], 0, 9), DeviceModel(atomic_write_bytes=atomic), base)
    points = growth_points(case.trace, case.model)
    return case, points, composer_of(case, points)


def test_a_write_is_one_run() -> None:
    _, _, composer = small()
    assert composer.delta(CrashState(0, (0,))) == ((0, 0, 4),)
    assert composer.delta(CrashState(0, (0, 1))) == ((0, 0, 2), (2, 4, 2))
    assert composer.delta(CrashState(0, (), ((0, ((0, 1), (3, 4))),))) == ((0, 0, 1), (3, 3, 1))
    assert composer.delta(CrashState(0)) == ()


@pytest.mark.parametrize("start", [0, 8])
def test_an_older_write_stays_below_a_newer_durable_one(start: int) -> None:
    """dm-log-writes logs the FUA write first (facts.md, pitfall 4), and here it may be durable before the window."""
    writes = [
        DeviceWrite(0, 0, content("aaaa"), at(1), at(20)),
        DeviceWrite(1, 1, content("bbbb"), at(3), at(5), fua=True),
        DeviceWrite(2, 2, content("cc"), at(6), at(21)),
    ]
    case = Case(trace_of(writes, [], start, 10), DeviceModel(), bytes(9 * 512))
    points = growth_points(case.trace, case.model)
    composer = composer_of(case, points)
    last, tear = len(points) - 1, ((0, ((1, 2),)),)
    ground = patched(case.base, composer.floor_delta(), composer.payload_since(0))
    for state, expected in [
        (CrashState(last, (0,)), "aabbbb"),
        (CrashState(last, (0, 2)), "aabbcc"),
        (CrashState(last, (2,), tear), "  bbcc"),
    ]:
        image = patched(ground, composer.delta(state), composer.payload_since(0))
        assert image[:1536] == content(expected).replace(b" ", bytes(1))
    assert composer.key(CrashState(last, (), tear)) == composer.key(CrashState(last))


def test_what_the_base_holds_already_is_not_written() -> None:
    _, _, composer = small(base=content("aa" * 2 + "xxbb" + "  " * 5))
    assert composer.delta(CrashState(0, (0,))) == ((2, 2, 2),)
    assert composer.key(CrashState(0, (1,))) != composer.key(CrashState(0))
    assert composer.key(CrashState(0, (), ((0, ((0, 2),)),))) == composer.key(CrashState(0))


def sectors(composer: Composer) -> int:
    """How many sectors the payload has by now."""
    return len(composer.payload_since(0)) // 512


def test_a_sector_torn_inside_adds_to_the_payload() -> None:
    case, _, composer = small(atomic=8)
    before = sectors(composer)
    assert before == 6
    state = CrashState(0, (1,), ((0, ((0, 64), (65, 66), (191, 192))),))
    runs = composer.delta(state)
    assert sectors(composer) == before + 1
    added = composer.payload_since(before)
    assert added == bytes(8) + b"a" * 8 + bytes(496)
    assert runs == ((0, 0, 1), (1, before, 1), (2, 4, 2))
    composer.key(state)
    assert sectors(composer) == before + 1
    image = bytearray(case.base)
    put(composer, state, image)
    assert bytes(image) == patched(case.base, runs, composer.payload_since(0))


def test_the_payload_grows_as_long_as_states_are_torn_inside() -> None:
    data = Random(0).randbytes(20 * 512)
    trace = trace_of([DeviceWrite(0, 0, data, at(1), at(2))], [], 0, 9, (20,))
    model = DeviceModel(atomic_write_bytes=8)
    points = growth_points(trace, model)
    composer = Composer(trace, points, model, lambda sector: bytes(512))
    keys = {composer.key(CrashState(0, (), ((0, ((0, unit),)),))) for unit in range(1, 20 * 64)}
    assert len(keys) == 20 * 64 - 1
    assert sectors(composer) == 20 + 20 * 63
    assert len(composer.payload_since(20)) == 20 * 63 * 512


def test_equal_data_is_in_the_payload_once() -> None:
    writes = [DeviceWrite(k, k, content("aa"), at(2 * k), at(2 * k + 1)) for k in range(4)]
    trace = trace_of(writes, [], 0, 9)
    points = growth_points(trace, DeviceModel())
    assert len(Composer(trace, points, DeviceModel(), lambda sector: bytes(512)).payload_since(0)) == 512


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([8, 64, 512, 4096, 16384]), st.sampled_from(list(CACHES.values())))
def test_random_states_of_longer_traces(seed: int, atomic: int, cache: WriteCache) -> None:
    trace = journal(3, 3, seed=seed, sectors=1 + seed % 9, spare=2)
    trace = Trace(trace.writes, trace.flushes, (), at(seed % 40), trace.end, (300,))
    rng = Random(seed)
    base = rng.randbytes(300 * 512)
    case = Case(trace, DeviceModel(cache, atomic), base)
    points = growth_points(trace, case.model)
    composer = composer_of(case, points)
    ground = patched(base, composer.floor_delta(), composer.payload_since(0))
    keys: dict[bytes, bytes] = {}
    for candidate in StateSearch(trace, points, composer, budget=40, seed=seed):
        check_state(trace, case.model, points, candidate.state)
        image = bytearray(base)
        put(composer, candidate.state, image)
        assert patched(ground, composer.delta(candidate.state), composer.payload_since(0)) == image
        assert keys.setdefault(bytes(image), candidate.key) == candidate.key
    assert len(keys) == len(set(keys.values()))


def states_to_time(trace: Trace, model: DeviceModel, points: Sequence[GrowthPoint]) -> list[CrashState]:
    views = [view(number, point) for number, point in enumerate(points)]
    units = [model.units(write) for write in trace.writes]
    drafts = [*islice(random_subsets(views, Random(1)), 100), *islice(random_tears(views, units, Random(2)), 100)]

    def state(point: int, kept: int, torn: TornWrites) -> CrashState:
        return CrashState(point, tuple(index for index in points[point].pending if kept >> index & 1), torn)

    return [state(*draft) for draft in drafts]


def one_epoch() -> Trace:
    rng = Random(0)
    writes = [DeviceWrite(k, 8 * k, rng.randbytes(4096), at(2 * k), at(2 * k + 1)) for k in range(300)]
    return trace_of(writes, [], 0, 1000, (1 << 20,))


def append(bio_sectors: int) -> Trace:
    """4 MiB of data and a few blocks of metadata."""
    rng = Random(0)
    count = 8192 // bio_sectors
    writes = [
        DeviceWrite(k, 4096 + bio_sectors * k, rng.randbytes(512 * bio_sectors), at(2 * k), at(2 * k + 1))
        for k in range(count)
    ]
    writes += [DeviceWrite(count + k, 8 * k, rng.randbytes(4096), at(9000 + k), at(9001 + k)) for k in range(12)]
    return trace_of(writes, [], 0, 10_000, (1 << 20,))


@pytest.mark.parametrize(
    ("trace", "microseconds"),
    [(journal(50, 2), 200), (one_epoch(), 200), (append(256), 1000), (append(8), 1000)],
    ids=["journal", "one epoch", "append", "append in blocks"],
)
def test_it_is_fast(trace: Trace, microseconds: int) -> None:
    model = DeviceModel()
    points = growth_points(trace, model)
    composer = Composer(trace, points, model, lambda sector: bytes(512))
    states = states_to_time(trace, model, points)
    best = float("inf")
    for _ in range(3):
        begin = time.perf_counter()
        for state in states:
            composer.key(state)
            composer.delta(state)
        best = min(best, (time.perf_counter() - begin) / len(states))
    print(f"{best * 1e6:.0f} µs per state")
    assert best * 1e6 < 4 * microseconds  # a slow machine is not a slow program
