"""The tuples of a cluster: each possible one comes once, those with few nodes behind first."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bob.crash.cuts import Cuts, Interval, Message, intervals_of
from bob.crash.tuples import Classes, PossibleTuples, widest

from .test_cuts import LAST, MESSAGES, NODES, STATES, consistent, interval, possible

TREES = st.tuples(*[STATES] * (NODES - 1))
ENDS = st.lists(st.integers(1, LAST), max_size=2, unique=True)


def outputs(ends: Sequence[int]) -> list[Interval]:
    """The moments between outputs at the times ``ends``."""
    edges = [0, *sorted(ends), LAST + 1]
    return [Interval(one, other - 1) for one, other in pairwise(edges)]


@given(MESSAGES, TREES, ENDS, st.integers())
def test_each_possible_tuple_comes_once_with_few_nodes_behind_first(
    messages: list[Message] | None,
    trees: tuple[list[list[Interval]], ...],
    ends: list[int],
    seed: int,
) -> None:
    cuts, told = Cuts(NODES, messages), outputs(ends)
    tuples = PossibleTuples(cuts, trees, told, seed)
    expected = set(possible(messages, [*trees, [[one] for one in told]]))
    found = list(tuples.in_order())
    assert len(found) == len(set(found)) == tuples.possible
    assert set(found) == expected
    assert [len(tuples.behind(one)) for one in found] == sorted(len(tuples.behind(one)) for one in found)
    assert tuples.possible == sum(tuples.possible_after(number) for number in range(len(told)))


@given(MESSAGES, TREES, ENDS)
def test_the_moments_of_a_tuple_are_a_consistent_cut(
    messages: list[Message] | None, trees: tuple[list[list[Interval]], ...], ends: list[int]
) -> None:
    cuts, states = Cuts(NODES, messages), [*trees, [[one] for one in outputs(ends)]]
    every = set(consistent(messages))
    for chosen in possible(messages, states):
        intervals = intervals_of(cuts, states, chosen)
        cut = cuts.cut(intervals)
        assert cut in every
        for node, (one, moment) in enumerate(zip(intervals, cut, strict=True)):
            assert one.first <= moment <= one.last and one in states[node][chosen[node]]


@given(st.lists(interval(), max_size=8))
def test_the_widest_intervals_have_the_moments_of_all(intervals: list[Interval]) -> None:
    few = widest(intervals)
    assert list(few) == sorted(few) and set(few) <= set(intervals)
    for one in intervals:
        assert any(other.first <= one.first and one.last <= other.last for other in few)
    assert not any(a != b and a.first <= b.first and b.last <= a.last for a in few for b in few)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 1)), unique=True), st.integers())
def test_the_first_tuple_of_each_class_comes_first(tuples: list[tuple[int, ...]], seed: int) -> None:
    classes = Classes((("a", "a", "b"), ("c", "d", "d")))
    found = list(classes.in_order(tuples, seed))
    assert sorted(found) == sorted(tuples)
    kinds = [classes.of(one) for one in found]
    count = len(set(kinds))
    assert len(set(kinds[:count])) == count
    assert [one for one in tuples if one in found[:count]] == found[:count]


@given(st.dictionaries(st.tuples(st.integers(0, 2), st.integers(0, 2), st.just(0)), st.sampled_from([None, 0, 10])))
def test_a_class_with_two_answers_decides_nothing_but_what_was_checked(
    asked: dict[tuple[int, ...], int | None],
) -> None:
    """Brute force: a tuple is decided if it was checked, or if all checked tuples of its class agree."""
    classes, answers = (
        Classes((("a", "a", "b"), ("c", "d", "d"))),
        {one: n for one, n in asked.items() if n is not None},
    )
    alike = [{answers[other] for other in answers if classes.of(other) == classes.of(one)} for one in asked]
    decided = sum(one in answers or len(some) == 1 for one, some in zip(asked, alike, strict=True))
    split = {classes.of(one) for one, some in zip(asked, alike, strict=True) if len(some) > 1}
    assert classes.decided(asked, answers) == (len({classes.of(one) for one in asked}), decided, len(split))
