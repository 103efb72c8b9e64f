"""The easiest crash state of some, and how many there are, beside sorting all of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bob.crash.state import CrashState, departure
from bob.observe.easiest import Easiest, easiest
from bob.observe.observations import ExploredState

_STATES = st.builds(
    lambda point, kept, torn: CrashState(point, tuple(sorted(kept - torn)), tuple((one, ((0, 1),)) for one in torn)),
    st.integers(0, 3),
    st.sets(st.integers(0, 5)),
    st.sets(st.integers(0, 5), max_size=2),
)
_SEEN = st.builds(ExploredState, _STATES, st.integers(0, 3), st.integers(0, 2**80))


@given(st.lists(_SEEN))
def test_the_easiest_departs_least_and_all_count(seen: list[ExploredState]) -> None:
    found = easiest(seen)
    assert found.states == sum(one.states for one in seen)
    assert bool(found) is bool(seen)
    if seen:
        assert found.shown is sorted(seen, key=lambda one: departure(one.state))[0]


@given(st.lists(st.tuples(_SEEN, st.integers(0, 2), st.integers(0, 2)), min_size=1))
def test_what_the_caller_ranks_by_frames_the_departure(ranked: list[tuple[ExploredState, int, int]]) -> None:
    found = Easiest[int]()
    for place, (seen, before, after) in enumerate(ranked):
        is_easiest = found.add(seen.state, place, seen.states, before=(before,), after=(after,))
        ranks = [(first, *departure(one.state), last) for one, first, last in ranked[: place + 1]]
        assert is_easiest is (ranks.index(min(ranks)) == place)
        assert (found.shown, found.rank) == (ranks.index(min(ranks)), min(ranks))
    assert found.states == sum(seen.states for seen, _before, _after in ranked)


def test_an_explanation_takes_the_place_of_what_is_shown() -> None:
    found = Easiest[str]()
    with pytest.raises(LookupError):
        found.explain("nothing was counted")
    found.add(CrashState(1, (0,)), "a run of writes")
    found.explain("the same, explained")
    assert found.shown == "the same, explained"
    assert not found.add(CrashState(2, (4,)), "another run of writes")
    assert found.add(CrashState(3), "no write", 7)
    assert (found.shown, found.states) == ("no write", 9)
