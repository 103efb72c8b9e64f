"""How far a crash state departs from a clean prefix: against trying every prefix."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from bob.crash.cubes import Cube
from bob.crash.departures import FARTHEST, distance, nearest
from bob.crash.legal import growth_points
from bob.crash.state import CrashState, check_state
from bob.crash.units import Parts

from .traces import Case, cases


def by_hand(pending: tuple[int, ...], state: CrashState) -> int:
    torn = dict(state.torn)
    return min(
        sum((index in state.kept) != (place < length) or index in torn for place, index in enumerate(pending))
        for length in range(len(pending) + 1)
    )


@settings(max_examples=200, deadline=None)
@given(cases(), st.integers())
def test_the_distance(case: Case, seed: int) -> None:
    points = growth_points(case.trace, case.model)
    state = Parts(case.trace, points, case.model).legal.sample(Cube(), Random(seed))
    pending = points[state.point].pending
    assert distance(pending, state) == by_hand(pending, state)


@settings(max_examples=100, deadline=None)
@given(cases(), st.integers(0, FARTHEST))
def test_the_nearest_states_are_legal_and_as_near_as_they_say(case: Case, departure: int) -> None:
    points = growth_points(case.trace, case.model)
    for number, point in enumerate(points):
        for state in nearest(points, number, departure):
            check_state(case.trace, case.model, points, state)
            medium = {*points[state.point].durable, *state.kept} - {*point.durable}
            here = CrashState(number, tuple(index for index in point.pending if index in medium))
            assert by_hand(point.pending, here) <= departure
