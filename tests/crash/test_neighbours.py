"""Neighbours are legal and differ in one write; what a state hangs on is found as trying each prefix finds it."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from bob.crash.cubes import Cube
from bob.crash.departures import distance
from bob.crash.legal import growth_points
from bob.crash.neighbours import MOST, Neighbours, causes, departures
from bob.crash.state import CrashState, check_state
from bob.crash.units import Parts

from .traces import Case, cases


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
