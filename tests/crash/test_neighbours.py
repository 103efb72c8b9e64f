"""Which states are tried. Neighbours are legal and differ in one write; what a state hangs on is found as trying each
prefix finds it. Drafts beyond the systematic ones are complete where they promise it, legal and repeatable always."""

from __future__ import annotations

from itertools import islice, pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bob.crash.cubes import Cube
from bob.crash.departures import distance
from bob.crash.device import DeviceModel
from bob.crash.drafts import parts, spread, view
from bob.crash.legal import count_sectors, count_writes, growth_points
from bob.crash.neighbours import MOST, Neighbours, causes, departures
from bob.crash.sampling import MOST_TORN_AT_ONCE, every_state, random_subsets, random_tears, ranges
from bob.crash.state import CrashState, check_state
from bob.crash.units import Parts

from .traces import Case, cases, journal


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
    state = Parts(case.trace, points, case.model).legal.sample(Cube(), Random(seed))
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
    state = Parts(case.trace, points, case.model).legal.sample(Cube(), Random(seed))
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
    state = Parts(case.trace, points, case.model).legal.sample(Cube(), Random(seed))
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
