"""Predicting against a made-up recovery: it reads what it read decides, writes too, and is never predicted wrongly."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bob.observe.accesses import Access
from bob.observe.predict import Contents, Contradiction, Gap, ReadTree, places_read

SECTORS = 24
"""Of the device. Every third one is the same in all states."""
VARYING = np.array([sector for sector in range(SECTORS) if sector % 3], dtype=np.int64)


def recover(program: int, contents: Contents, *, steps: int = 12) -> tuple[int, list[Access]]:
    """A recovery that is different for each ``program``: its outcome, and how it accessed the device.

    Each step depends on everything that was read before. It reads and writes several sectors at a time, what it wrote
    and what was read already among them, and some steps use an earlier read later on.
    """
    device = {int(sector): int(content) for sector, content in zip(VARYING, contents, strict=True)}
    memory = hashlib.sha256(str(program).encode())
    accesses: list[Access] = []
    for step in range(steps):
        chance = Random(memory.digest())
        sector, count = chance.randrange(SECTORS), chance.randint(1, 4)
        reads = chance.random() < 0.75
        sectors = range(sector, min(sector + count, SECTORS))
        accesses.append(Access(reads, sector, len(sectors), step + chance.randrange(4) * reads))
        if reads:
            memory.update(repr([device.get(one, -1) for one in sectors]).encode())
        else:
            device.update((one, 1000 + chance.randrange(3)) for one in sectors)
        if chance.random() < 0.1:
            break
    return memory.digest()[0] % 5, accesses


def vectors(seed: int, count: int) -> Iterable[Contents]:
    """States with few contents, most of them near another one."""
    chance = Random(seed)
    state = np.zeros(len(VARYING), dtype=np.int32)
    for _ in range(count):
        state = state.copy() if chance.random() < 0.8 else np.zeros_like(state)
        for _change in range(chance.randint(1, 3)):
            state[chance.randrange(len(state))] = chance.randrange(3)
        yield state


def mispredicted(program: int, seed: int, count: int, drop: int = 0) -> tuple[int, int]:
    """How many of ``count`` states were predicted, and how many of these wrongly; ``drop`` reads are kept back."""
    known, predicted, wrong = ReadTree(), 0, 0
    for contents in vectors(seed, count):
        outcome, accesses = recover(program, contents)
        found = known.find(contents)
        if isinstance(found, Gap):
            reads = [place for place, access in enumerate(accesses) if access.reads]
            kept = [access for place, access in enumerate(accesses) if place not in reads[len(reads) - drop :]]
            known.add(contents, places_read(VARYING, kept), outcome)
        else:
            predicted += 1
            wrong += found != outcome
    return predicted, wrong


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 10**6))
@example(0, 0)
def test_no_prediction_is_wrong(program: int, seed: int) -> None:
    assert mispredicted(program, seed, 60)[1] == 0


def test_many_states_are_predicted() -> None:
    counts = [mispredicted(program, program, 200) for program in range(20)]
    assert sum(predicted for predicted, _wrong in counts) > 20 * 200 // 4


def test_without_all_reads_predictions_are_wrong() -> None:
    # This is why the trace is held against the device's own count, and predictions have a control.
    wrong = 0
    for program in range(20):
        try:
            wrong += mispredicted(program, program, 200, drop=3)[1]
        except Contradiction:
            wrong += 1
    assert wrong > 20


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_another_order_of_the_same_reads_predicts_nothing_wrong(program: int, seed: int) -> None:
    known, chance = ReadTree(), Random(seed)
    for contents in vectors(seed, 40):
        outcome, accesses = recover(program, contents)
        found = known.find(contents)
        read = places_read(VARYING, accesses)
        if isinstance(found, Gap):
            known.add(contents, chance.sample(read, len(read)), outcome)
        assert found == outcome or isinstance(found, Gap)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_going_on_from_a_gap_finds_what_starting_anew_does(program: int, seed: int) -> None:
    known = ReadTree()
    states = list(vectors(seed, 30))
    gaps: dict[int, Gap] = {}
    for contents in states:
        for number, other in enumerate(states):
            found = known.find(other, gaps.get(number))
            assert found == known.find(other)
            if isinstance(found, Gap):
                gaps[number] = found
        if isinstance(known.find(contents), Gap):
            outcome, accesses = recover(program, contents)
            known.add(contents, places_read(VARYING, accesses), outcome)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_states_with_different_gaps_predict_nothing_of_each_other(program: int, seed: int) -> None:
    states = list(vectors(seed, 20))
    known = ReadTree()
    outcome, accesses = recover(program, states[0])
    known.add(states[0], places_read(VARYING, accesses), outcome)
    kinds: dict[Gap, Contents] = {}
    for contents in states:
        if isinstance(gap := known.find(contents), Gap):
            kinds.setdefault(gap, contents)
    for contents in kinds.values():
        assert isinstance(known.find(contents), Gap)
        outcome, accesses = recover(program, contents)
        known.add(contents, places_read(VARYING, accesses), outcome)


def contents(*numbers: int) -> Contents:
    return np.array(numbers, dtype=np.int32)


def places(*numbers: int) -> np.ndarray:  # type: ignore[type-arg]
    return np.array(numbers, dtype=np.intp)


def test_a_state_is_known_by_what_was_read_alone() -> None:
    known = ReadTree()
    assert isinstance(known.find(contents(0, 0, 0)), Gap)
    known.add(contents(7, 1, 0), [places(0), places(2)], 4)
    assert known.find(contents(7, 9, 0)) == 4
    assert isinstance(known.find(contents(7, 1, 1)), Gap)
    first, same = known.find(contents(7, 1, 1)), known.find(contents(7, 2, 1))
    assert first == same
    assert first != known.find(contents(7, 1, 2))


def test_a_recovery_that_reads_nothing_that_differs_is_known_of_all_states() -> None:
    known = ReadTree()
    known.add(contents(1, 2), [], 3)
    assert known.find(contents(8, 9)) == 3


def test_two_outcomes_of_like_states_contradict_each_other() -> None:
    known = ReadTree()
    known.add(contents(1, 2), [places(0)], 3)
    known.add(contents(1, 5), [places(0)], 3)
    with pytest.raises(Contradiction) as caught:
        known.add(contents(1, 4), [places(0)], 5)
    assert (caught.value.one, caught.value.other) == (3, 5)


@pytest.mark.parametrize(
    ("accesses", "read"),
    [
        ([], []),
        ([(True, 10, 2)], [[0, 1]]),
        ([(True, 0, 100)], [[0, 1, 2, 3]]),
        ([(True, 12, 8)], []),
        ([(True, 11, 10)], [[1, 2]]),
        ([(True, 10, 1), (True, 10, 2)], [[0], [1]]),
        ([(False, 11, 1), (True, 10, 2)], [[0]]),
        ([(True, 10, 2), (False, 10, 2), (True, 10, 2)], [[0, 1]]),
        ([(False, 0, 15), (True, 10, 15)], [[2, 3]]),
    ],
)
def test_what_was_written_before_it_was_read_is_left_out(
    accesses: Sequence[tuple[bool, int, int]], read: list[list[int]]
) -> None:
    sectors = np.array([10, 11, 20, 21], dtype=np.int64)
    found = places_read(sectors, [Access(*access, used=number) for number, access in enumerate(accesses)])
    assert [each.tolist() for each in found] == read


def test_reads_come_in_the_order_of_their_use_whatever_was_written_between() -> None:
    sectors = np.arange(4, dtype=np.int64)
    accesses = [Access(True, 0, 1, 9), Access(True, 1, 1, 1), Access(False, 0, 1, 2), Access(True, 2, 1, 3)]
    assert [each.tolist() for each in places_read(sectors, accesses)] == [[1], [2], [0]]


def test_a_prediction_takes_well_under_a_millisecond() -> None:
    chance = np.random.default_rng(1)
    known = ReadTree()
    runs = np.array_split(np.arange(4000), 100)
    base = chance.integers(0, 50, 4000, dtype=np.int32)
    states = []
    for number in range(300):
        state = base.copy()
        state[chance.integers(0, 4000, 40)] = number + 100
        states.append(state)
        if isinstance(known.find(state), Gap):
            known.add(state, runs, number)
    started = time.perf_counter()
    assert [known.find(state) for state in states] == list(range(300))
    assert (time.perf_counter() - started) / 300 < 0.001
