"""Drafts beyond the systematic ones: complete where they promise it, legal and repeatable always."""

from __future__ import annotations

from itertools import islice, pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bob.crash.device import DeviceModel
from bob.crash.drafts import parts, spread, view
from bob.crash.legal import count_sectors, count_writes, growth_points
from bob.crash.sampling import MOST_TORN_AT_ONCE, every_state, random_subsets, random_tears, ranges
from bob.crash.state import CrashState, check_state

from .traces import Case, cases, journal


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
