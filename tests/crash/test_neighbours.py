"""Which states are tried. Neighbours are legal and differ in one write; what a state hangs on is found as trying each
prefix finds it. Drafts beyond the systematic ones are complete where they promise it, legal and repeatable always."""

from __future__ import annotations

from collections import Counter
from itertools import islice, pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bob.crash.cubes import Cube, Divider, LegalStates
from bob.crash.departures import departures, distance
from bob.crash.device import DeviceModel
from bob.crash.drafts import legal_states, mask, parts, spread, view
from bob.crash.image import Composer
from bob.crash.legal import count_sectors, count_writes, growth_points
from bob.crash.neighbours import MOST, Neighbours, causes
from bob.crash.sampling import MOST_TORN_AT_ONCE, every_state, random_subsets, random_tears, ranges
from bob.crash.state import CrashState, check_state
from bob.crash.units import WriteUnits
from bob.trace.model import DeviceWrite

from .brute import legal_writes
from .traces import Case, at, cases, content, journal, trace_of


def by_hand(pending: tuple[int, ...], state: CrashState) -> list[set[int]]:
    """The departures from each of the nearest clean prefixes."""
    torn = dict(state.torn)
    from_prefix = [
        {index for place, index in enumerate(pending) if index in torn or (index in state.kept) != (place < length)}
        for length in range(len(pending) + 1)
    ]
    return [found for found in from_prefix if len(found) == distance(pending, state)]


@settings(max_examples=300, deadline=None)
@given(cases(), st.integers())
def test_the_departures_are_those_from_any_nearest_prefix(case: Case, seed: int) -> None:
    points = growth_points(case.trace, case.model)
    state = WriteUnits(case.trace, points, case.model).legal.sample(Cube(), Random(seed))
    pending = points[state.point].pending
    assert departures(pending, state) == sorted(set().union(*by_hand(pending, state)))


def on_the_medium(case: Case, state: CrashState) -> dict[int, object]:
    """What is there of each write: True for all of it, or which units."""
    points = growth_points(case.trace, case.model)
    return dict.fromkeys((*points[state.point].durable, *state.kept), True) | dict(state.torn)


@settings(max_examples=300, deadline=None)
@given(cases(), st.integers())
def test_a_neighbour_is_legal_and_differs_in_the_write_that_it_takes_back(case: Case, seed: int) -> None:
    points = growth_points(case.trace, case.model)
    state = WriteUnits(case.trace, points, case.model).legal.sample(Cube(), Random(seed))
    pending = points[state.point].pending
    before = on_the_medium(case, state)
    taken: list[int] = []
    for group in Neighbours(points).groups(state):
        for index, other in group:
            check_state(case.trace, case.model, points, other)
            after = on_the_medium(case, other)
            assert {write for write in before.keys() | after.keys() if before.get(write) != after.get(write)} == {index}
            assert after.get(index) in (True, None)
            taken.append(index)
    assert set(taken) == set(pending) or len(pending) > MOST
    assert len(taken) == len(pending) + len(state.torn) or len(pending) > MOST


@settings(max_examples=200, deadline=None)
@given(cases(), st.integers(), st.integers(0, 9))
def test_a_cause_is_a_write_without_which_the_state_does_no_harm(case: Case, seed: int, culprit: int) -> None:
    points = growth_points(case.trace, case.model)
    state = WriteUnits(case.trace, points, case.model).legal.sample(Cube(), Random(seed))
    before = on_the_medium(case, state)

    def is_fine(other: CrashState) -> bool:
        return on_the_medium(case, other).get(culprit) != before.get(culprit)

    is_pending = culprit in points[state.point].pending
    assert causes(points, state, is_fine) == ((culprit,) if is_pending else ())
    assert causes(points, state, lambda _state: False) == ()
    departing = departures(points[state.point].pending, state)
    assert causes(points, state, lambda _state: True) == tuple(departing or points[state.point].pending)


@settings(max_examples=150, deadline=None)
@given(cases(), st.booleans())
def test_every_state_comes_exactly_once(case: Case, torn: bool) -> None:
    points = growth_points(case.trace, case.model)
    views = [view(number, point) for number, point in enumerate(points)]
    units = [case.model.units(write) if torn else 1 for write in case.trace.writes]
    drafts = list(every_state(views, units, Random(0)))
    assert len(drafts) == (count_sectors if torn else count_writes)(points)
    assert len({(views[draft.point].durable | draft.kept, draft.torn) for draft in drafts}) == len(drafts)
    for draft in drafts:
        kept = tuple(index for index in range(len(units)) if draft.kept >> index & 1)
        check_state(case.trace, case.model, points, CrashState(draft.point, kept, draft.torn))
    assert sorted(drafts) == sorted(every_state(views, units, Random(1)))
    assert len(drafts) < 8 or drafts != list(every_state(views, units, Random(1)))


@settings(max_examples=80, deadline=None)
@given(cases(), st.integers())
def test_random_drafts_are_legal_and_repeatable(case: Case, seed: int) -> None:
    points = growth_points(case.trace, case.model)
    views = [view(number, point) for number, point in enumerate(points)]
    units = [case.model.units(write) for write in case.trace.writes]
    first, again = (
        [*islice(random_subsets(views, Random(seed)), 30), *islice(random_tears(views, units, Random(seed)), 30)]
        for _ in range(2)
    )
    assert first == again
    for draft in first:
        assert len(draft.torn) <= MOST_TORN_AT_ONCE
        kept = tuple(index for index in range(len(units)) if draft.kept >> index & 1)
        check_state(case.trace, case.model, points, CrashState(draft.point, kept, draft.torn))


def test_few_writes_are_torn_at_once() -> None:
    trace, model = journal(1, 9), DeviceModel()
    points = growth_points(trace, model)
    views = [view(number, point) for number, point in enumerate(points)]
    drafts = islice(random_tears(views, [model.units(write) for write in trace.writes], Random(1)), 300)
    assert {len(draft.torn) for draft in drafts} == set(range(1, MOST_TORN_AT_ONCE + 1))


@given(st.sets(st.integers(0, 200)))
def test_ranges_are_the_bits(bits: set[int]) -> None:
    found = ranges(sum(1 << bit for bit in bits))
    assert [bit for first, stop in found for bit in range(first, stop)] == sorted(bits)
    assert all(stop < first for (_, stop), (first, _) in pairwise(found))


@pytest.mark.parametrize("count", range(40))
def test_spread_is_a_permutation(count: int) -> None:
    assert sorted(spread(count)) == list(range(count))


def test_spread_is_even() -> None:
    for first in (2, 5, 9, 17, 33):
        chosen = sorted(islice(spread(1000), first))
        assert max(after - before for before, after in pairwise(chosen)) <= 2000 / (first - 1)


def test_parts_of_few_are_all_subsets_and_of_many_the_simple_ones() -> None:
    assert sorted(parts([1, 2, 4, 8])) == list(range(1, 16))
    assert set(parts([1, 2, 4, 8, 16])) == {1, 3, 7, 15, 31, 30, 28, 24, 16, 2, 4, 8}
    assert list(parts([])) == []


# Cubes against all legal states, listed by brute force: counts are exact, samples legal, divisions without a rest

masks = st.integers(0, 2**10 - 1)


def legal_of(case: Case) -> tuple[LegalStates, set[int]]:
    points = growth_points(case.trace, case.model)
    legal = {mask(kept) for kept in legal_writes(case.trace, case.model)}
    return legal_states([view(number, point) for number, point in enumerate(points)]), legal


def inside(cube: Cube, medium: int) -> bool:
    return not cube.kept & ~medium and not cube.lost & medium


def medium_of(case: Case, state: CrashState) -> int:
    points = growth_points(case.trace, case.model)
    check_state(case.trace, case.model, points, state)
    return mask(points[state.point].durable) | mask(state.kept)


@settings(max_examples=200, deadline=None)
@given(cases(), masks, masks, st.integers())
def test_a_cube_is_counted_and_sampled_exactly(case: Case, kept: int, lost: int, seed: int) -> None:
    states, legal = legal_of(case)
    assert states.count(Cube()) == len(legal) == count_writes(growth_points(case.trace, case.model))
    cube = Cube(kept, lost)
    members = {medium for medium in legal if inside(cube, medium)}
    assert states.count(cube) == len(members)
    if members:
        assert medium_of(case, states.some(cube)) in members
        assert {medium_of(case, states.sample(cube, Random(seed + k))) for k in range(5)} <= members


@settings(max_examples=20, deadline=None)
@given(cases())
def test_every_state_of_a_cube_is_sampled(case: Case) -> None:
    states, legal = legal_of(case)
    if len(legal) <= 8:
        random = Random(0)
        assert {medium_of(case, states.sample(Cube(), random)) for _ in range(300)} == legal


def two_points() -> tuple[Case, set[int]]:
    """Three writes, two of them durable from the second growth point on: what is legal there is legal before, too."""
    writes = [DeviceWrite(number, number, content("ab"), at(1 + number), at(6), fua=number < 2) for number in range(3)]
    case = Case(trace_of(writes, [], 0, 9), DeviceModel(), bytes(9 * 512))
    return case, legal_of(case)[1]


def test_all_states_of_a_cube_are_as_likely() -> None:
    """A state that comes again at the next growth point belongs there only."""
    case, legal = two_points()
    assert len(legal) == 2**3
    states, random = legal_of(case)[0], Random(1)
    drawn = Counter(medium_of(case, states.sample(Cube(), random)) for _ in range(4000))
    assert drawn.keys() == legal
    assert 400 < min(drawn.values()) <= max(drawn.values()) < 600


@settings(max_examples=200, deadline=None)
@given(cases(), masks, masks)
def test_the_easiest_state_has_no_write_after_the_last_that_it_must_have(case: Case, kept: int, lost: int) -> None:
    states, legal = legal_of(case)
    if not any(inside(Cube(kept, lost), medium) for medium in legal):
        return
    found = states.some(Cube(kept, lost))
    points = growth_points(case.trace, case.model)
    durable = [mask(point.durable) for point in points]
    medium = medium_of(case, found)
    assert any(not (medium & ~before) >> (kept & ~before).bit_length() for before in durable if not before & ~medium)


@settings(max_examples=200, deadline=None)
@given(cases(), masks, masks, masks)
def test_the_farthest_state_differs_most(case: Case, kept: int, lost: int, away: int) -> None:
    states, legal = legal_of(case)
    members = [medium for medium in legal if inside(Cube(kept, lost), medium)]
    if members:
        found = medium_of(case, states.farthest(Cube(kept, lost), away))
        assert found in members
        points = growth_points(case.trace, case.model)
        ours = [mask(point.durable) | (mask(point.pending) & ~lost & ~away) | kept for point in points]
        assert found in ours
        assert (found ^ away).bit_count() == max((medium ^ away).bit_count() for medium in members)


@settings(max_examples=200, deadline=None)
@given(cases(), masks, masks, st.data())
def test_a_division_has_no_rest_and_one_content_in_each_part(
    case: Case, kept: int, lost: int, data: st.DataObject
) -> None:
    states, legal = legal_of(case)
    points = growth_points(case.trace, case.model)
    composer = Composer(case.trace, points, case.model, case.base_sector)
    every = len(composer.sectors)
    chosen = data.draw(st.lists(st.integers(0, every - 1), unique=True, max_size=6)) if every else []
    places = np.array(chosen, dtype=np.intp)
    cube = Cube(kept, lost)
    parts = list(Divider(states, composer).divide(cube, places))
    members = sorted(medium for medium in legal if inside(cube, medium))
    assert sorted(medium for part in parts for medium in members if inside(part, medium)) == members
    assert sum(states.count(part) for part in parts) == (len(members) if members else 0)
    by_medium = {}
    for number, point in enumerate(points):
        for medium in members:
            if not mask(point.durable) & ~medium and not medium & ~(mask(point.durable) | mask(point.pending)):
                kept_here = tuple(index for index in point.pending if medium >> index & 1)
                by_medium[medium] = composer.contents(CrashState(number, kept_here))[places].tobytes()
    for part in parts:
        assert len({by_medium[medium] for medium in members if inside(part, medium)}) <= 1
        assert not members or states.count(part)


@settings(max_examples=200, deadline=None)
@given(cases(), st.integers(0, 2**40 - 1), st.integers(0, 2**40 - 1))
def test_whole_states_in_a_cube_of_parts_are_counted_exactly(case: Case, kept: int, lost: int) -> None:
    points = growth_points(case.trace, case.model)
    parts = WriteUnits(case.trace, points, case.model)
    states, legal = legal_of(case)
    cube = Cube(kept & (1 << parts.total) - 1, lost & (1 << parts.total) - 1)
    owner = {
        parts.number(write.index, sector): write.index for write in case.trace.writes for sector in range(write.sectors)
    }
    whole = {medium: sum(1 << part for part, write in owner.items() if medium >> write & 1) for medium in legal}
    members = [medium for medium, there in whole.items() if inside(cube, there)]
    assert states.count(parts.whole(cube)) == len(members)
