"""Consistent cuts, against brute force: every vector of moments, held against every message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bob.crash.cuts import Cuts, Interval, Message, count_tuples, fitting
from bob.crash.legal import count_writes, growth_points

from . import brute
from .test_disks import alone, several
from .traces import Case

NODES, LAST = 3, 6
Cut = tuple[int, ...]


def is_consistent(cut: Cut, messages: Sequence[Message]) -> bool:
    """The definition."""
    return all(one.sent <= cut[one.sender] for one in messages if one.received <= cut[one.receiver])


def consistent(messages: Sequence[Message] | None) -> Iterator[Cut]:
    for cut in product(range(LAST + 1), repeat=NODES):
        if len(set(cut)) == 1 if messages is None else is_consistent(cut, messages):
            yield cut


def allowed(messages: Sequence[Message] | None, intervals: Sequence[Interval]) -> bool:
    return any(
        all(one.first <= moment <= one.last for one, moment in zip(intervals, cut, strict=True))
        for cut in consistent(messages)
    )


@st.composite
def message(draw: st.DrawFn) -> Message:
    sent = draw(st.integers(0, LAST - 1))
    sender, receiver = draw(st.permutations(range(NODES)))[:2]
    return Message(sender, sent, receiver, draw(st.integers(sent + 1, LAST)))


@st.composite
def interval(draw: st.DrawFn) -> Interval:
    return Interval(*sorted((draw(st.integers(0, LAST)), draw(st.integers(0, LAST)))))


MESSAGES = st.none() | st.lists(message(), max_size=8)
STATES = st.lists(st.lists(interval(), min_size=1, max_size=2), max_size=3)


@given(MESSAGES, st.tuples(*[interval()] * NODES))
def test_a_tuple_of_intervals_is_allowed_if_some_consistent_cut_lies_in_them(
    messages: list[Message] | None, intervals: tuple[Interval, ...]
) -> None:
    assert Cuts(NODES, messages).allow(intervals) == allowed(messages, intervals)


def possible(messages: Sequence[Message] | None, states: Sequence[Sequence[Sequence[Interval]]]) -> list[Cut]:
    """By brute force: each possible tuple, in lexicographic order."""
    return [
        numbers
        for numbers in product(*(range(len(of_node)) for of_node in states))
        if any(allowed(messages, each) for each in product(*(states[node][n] for node, n in enumerate(numbers))))
    ]


@given(MESSAGES, st.tuples(*[STATES] * NODES))
def test_possible_tuples_are_as_many_as_by_brute_force(
    messages: list[Message] | None, states: tuple[list[list[Interval]], ...]
) -> None:
    assert count_tuples(Cuts(NODES, messages), states) == len(possible(messages, states))


@given(MESSAGES, st.tuples(*[st.lists(interval(), max_size=3)] * NODES))
def test_the_choices_that_fit_are_those_of_brute_force(
    messages: list[Message] | None, choices: tuple[list[Interval], ...]
) -> None:
    assert fitting(Cuts(NODES, messages), enumerate(choices)) == [
        each for each in product(*choices) if allowed(messages, each)
    ]


@given(st.lists(message(), max_size=8), st.integers(0, NODES - 1), st.integers(0, LAST))
def test_the_earliest_cut_is_the_least_consistent_one(messages: list[Message], node: int, moment: int) -> None:
    least = Cuts(NODES, messages).earliest(node, moment)
    later = [cut for cut in consistent(messages) if cut[node] >= moment]
    assert tuple(max(0, one) for one in least) == tuple(map(min, zip(*later, strict=True)))


MESSAGES_OF_A_REQUEST = [Message(0, 0, 1, 1), Message(1, 1, 2, 2), Message(2, 3, 0, 4)]
"""A request to the leader, its copy to a follower, and the follower's answer to the client, which is node 0."""


def test_one_instant_allows_fewer_tuples_than_all_consistent_cuts() -> None:
    every = [[[Interval(moment, moment)] for moment in range(LAST)]] * NODES
    assert count_tuples(Cuts(NODES, None), every) == LAST
    assert count_tuples(Cuts(NODES, MESSAGES_OF_A_REQUEST), every) == sum(
        is_consistent(cut, MESSAGES_OF_A_REQUEST) for cut in product(range(LAST), repeat=NODES)
    )


@pytest.mark.parametrize("left_out", range(len(MESSAGES_OF_A_REQUEST)))
def test_each_dependency_forbids_something(left_out: int) -> None:
    """With fewer dependencies than there are, bob would report crashes that cannot happen."""
    lost = MESSAGES_OF_A_REQUEST[left_out]
    fewer = [one for one in MESSAGES_OF_A_REQUEST if one != lost]
    impossible = [Interval(LAST, LAST)] * NODES
    impossible[lost.sender] = Interval(lost.sent - 1, lost.sent - 1) if lost.sent else Interval(-1, -1)
    impossible[lost.receiver] = Interval(lost.received, lost.received)
    assert not Cuts(NODES, MESSAGES_OF_A_REQUEST).go_together(
        lost.sender, impossible[lost.sender], lost.receiver, impossible[lost.receiver]
    )
    assert Cuts(NODES, fewer).go_together(
        lost.sender, impossible[lost.sender], lost.receiver, impossible[lost.receiver]
    )


def runs(moments: list[int]) -> list[Interval]:
    """The intervals that ascending moments form."""
    together = groupby(enumerate(moments), lambda pair: pair[1] - pair[0])
    each = [[moment for _place, moment in run] for _key, run in together]
    return [Interval(run[0], run[-1]) for run in each]


@settings(max_examples=150, deadline=None)
@given(several())
def test_tuples_at_one_instant_are_the_legal_states_of_several_disks(case: Case) -> None:
    """bob counts the states of all disks on one time line. Here each node's states are found alone, with the moments at
    which they are legal, and put together."""
    of_nodes = []
    for disk in alone(case.trace):
        legal: dict[frozenset[int], list[int]] = {}
        for moment, time in enumerate(brute.window(case.trace)):
            [(durable, pending)] = brute.durable_and_pending(disk, case.model, time)
            for kept in brute.subsets(frozenset(pending)):
                legal.setdefault(frozenset(durable) | kept, []).append(moment)
        of_nodes.append([runs(moments) for moments in legal.values()])
    cuts = Cuts(len(of_nodes), None)
    assert count_tuples(cuts, of_nodes) == count_writes(growth_points(case.trace, case.model))
