"""The order of search: only legal states, none twice, every kind early, and claims of exhaustion that are exact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bob.crash.device import DeviceModel
from bob.crash.image import Composer
from bob.crash.legal import count_sectors, count_writes, growth_points
from bob.crash.search import StateSearch
from bob.crash.state import CrashState, check_state
from bob.trace.model import DeviceWrite, Flush, Trace
from mediums import put

from .brute import Medium, legal_units, legal_writes, units_of_all
from .traces import Case, at, cases, content, journal, trace_of


def start(case: Case, budget: int, seed: int = 0, focus: Sequence[frozenset[int]] = ()) -> tuple[StateSearch, Composer]:
    points = growth_points(case.trace, case.model)
    composer = Composer(case.trace, points, case.model, case.base_sector)
    return StateSearch(case.trace, points, composer, budget=budget, seed=seed, focus=focus), composer


def case_of(trace: Trace, model: DeviceModel | None = None) -> Case:
    return Case(trace, model or DeviceModel(), bytes(trace.device_sectors[0] * 512))


def states(case: Case, budget: int, focus: Sequence[frozenset[int]] = ()) -> set[CrashState]:
    return {candidate.state for candidate in start(case, budget, focus=focus)[0]}


def focuses() -> st.SearchStrategy[list[frozenset[int]]]:
    return st.lists(st.frozensets(st.integers(0, 9)), max_size=6)


def flat(count: int, sectors: int = 1) -> Trace:
    """So many writes, all in flight to the end, with contents of their own."""
    writes = [
        DeviceWrite(k, k * sectors, content(chr(65 + k) * 2 * sectors), at(k), at(1000 + k)) for k in range(count)
    ]
    return trace_of(writes, [], 0, 500, (4096,))


@settings(max_examples=60, deadline=None)
@given(cases(), st.integers(0, 60), st.integers(), focuses())
def test_torn_states_alone_or_none_of_them(case: Case, budget: int, seed: int, focus: list[frozenset[int]]) -> None:
    points = growth_points(case.trace, case.model)
    composer = Composer(case.trace, points, case.model, case.base_sector)
    torn = StateSearch(case.trace, points, composer, budget=budget, seed=seed, focus=focus, torn=True)
    whole = StateSearch(case.trace, points, composer, budget=budget, seed=seed, focus=focus, torn=False)
    for state in (candidate.state for candidate in torn):
        check_state(case.trace, case.model, points, state)
        assert state.torn
    assert not any(candidate.state.torn for candidate in whole)
    # What the claim rests on: no torn state has contents that were not tried.
    medium = Medium(case.trace, case.model, case.base)
    tried = set()
    for candidate in StateSearch(case.trace, points, composer, budget=budget, seed=seed, focus=focus, torn=True):
        image = bytearray(case.base)
        put(composer, candidate.state, image)
        tried.add(bytes(image))
    kept = {units_of_all(case.trace, case.model, kept) for kept in legal_writes(case.trace, case.model)}
    missing = {medium.content(units) for units in legal_units(case.trace, case.model) - kept} - tried
    complete = torn.sector_states - torn.write_states == torn.legal_sectors - torn.legal_writes
    assert complete == (not missing)


@settings(max_examples=80, deadline=None)
@given(cases(), st.integers(0, 60), st.integers(), focuses())
def test_candidates_are_legal_and_claims_are_exact(
    case: Case, budget: int, seed: int, focus: list[frozenset[int]]
) -> None:
    points = growth_points(case.trace, case.model)
    medium = Medium(case.trace, case.model, case.base)
    legal = {units: medium.content(units) for units in legal_units(case.trace, case.model)}
    whole = [
        medium.content(units_of_all(case.trace, case.model, kept)) for kept in legal_writes(case.trace, case.model)
    ]
    found, composer = start(case, budget, seed, focus)
    explored: dict[bytes, bytes] = {}
    for candidate in found:
        check_state(case.trace, case.model, points, candidate.state)
        image = bytearray(case.base)
        put(composer, candidate.state, image)
        assert bytes(image) not in explored and candidate.key not in explored.values()
        explored[bytes(image)] = candidate.key
        # A claim holds at any moment, not only at the end
        assert found.write_states < found.legal_writes or set(whole) <= explored.keys()
        assert found.sector_states < found.legal_sectors or set(legal.values()) <= explored.keys()
    assert len(explored) <= budget
    assert explored.keys() <= set(legal.values())
    assert (found.legal_writes, found.legal_sectors) == (len(whole), len(legal))
    assert found.write_states <= sum(image in explored for image in whole)
    assert found.sector_states <= sum(image in explored for image in legal.values())
    has_writes, has_sectors = set(whole) <= explored.keys(), set(legal.values()) <= explored.keys()
    assert (found.write_states == found.legal_writes) == has_writes
    assert (found.sector_states == found.legal_sectors) == has_sectors
    assert found.exhaustive == ("sectors" if has_sectors else "writes" if has_writes else None)


@settings(max_examples=60, deadline=None)
@given(cases(), st.integers(), focuses())
def test_with_budget_enough_every_legal_content_is_explored(case: Case, seed: int, focus: list[frozenset[int]]) -> None:
    medium = Medium(case.trace, case.model, case.base)
    found, composer = start(case, 10_000, seed, focus)
    images = []
    for candidate in found:
        put(composer, candidate.state, image := bytearray(case.base))
        images.append(bytes(image))
    assert len(set(images)) == len(images)
    assert set(images) == {medium.content(units) for units in legal_units(case.trace, case.model)}
    assert found.exhaustive == "sectors"


def test_the_same_arguments_give_the_same_candidates() -> None:
    case = case_of(journal(6, 3, sectors=2))
    first, again, other = (list(start(case, 300, seed)[0]) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert len(first) == 300


def test_a_larger_budget_goes_on_where_a_smaller_one_stopped() -> None:
    case = case_of(journal(6, 3, sectors=2))
    assert list(start(case, 400)[0])[:150] == list(start(case, 150)[0])


def test_every_systematic_state_is_there() -> None:
    case = case_of(flat(5, sectors=3))
    found = states(case, 4000)
    everything = set(range(5))
    for k in range(6):
        assert CrashState(0, tuple(range(k))) in found
    for k in everything:
        assert CrashState(0, (k,)) in found
        assert CrashState(0, tuple(sorted(everything - {k}))) in found
        for others in ((), tuple(sorted(everything - {k}))):
            for part in ((0, 1), (0, 2), (1, 3), (2, 3)):
                assert CrashState(0, others, ((k, (part,)),)) in found


def test_a_small_budget_sees_every_kind_at_many_growth_points() -> None:
    case = case_of(journal(50, 4))
    groups = [frozenset(range(k, 450, 45)) for k in range(10)]
    candidates = list(start(case, 120, focus=groups)[0])
    kinds = Counter(candidate.stage for candidate in candidates)
    assert kinds.keys() == {"prefix", "lost", "alone", "torn", "focus", "subset", "tears"}
    assert min(kinds.values()) >= 5
    points = [candidate.state.point for candidate in candidates]
    assert len(set(points)) >= 50
    assert min(points) < 10 and max(points) > 90


def test_parts_of_operations_are_lost() -> None:
    case = case_of(flat(12))
    groups = [frozenset({1, 3}), frozenset({4, 5, 6, 7, 8, 9})]
    every = frozenset(range(12))
    expected = [{1}, {3}, {1, 3}, set(groups[1]), every & {1, 3, 4, 5, 6, 7, 8, 9}]
    expected += [{4}, {4, 5}, {4, 5, 6}, {7, 8, 9}, {8, 9}, {9}, {6}]
    lost = {every - set(c.state.kept) for c in start(case, 400, focus=groups)[0] if c.stage == "focus"}
    lost |= {every - set(c.state.kept) for c in start(case, 400)[0] if c.stage == "lost"}
    assert all(frozenset(one) in lost for one in expected)


def test_operations_may_name_writes_that_no_state_has() -> None:
    assert states(case_of(flat(2)), 100, [frozenset({7})]) == states(case_of(flat(2)), 100)


def test_a_state_that_keeps_what_becomes_durable_is_not_repeated() -> None:
    trace = trace_of(
        [DeviceWrite(k, k, content("ab"), at(10 * k), at(10 * k + 5), fua=True) for k in range(20)], [], 0, 500, (64,)
    )
    case = case_of(trace)
    found, _ = start(case, 1000)
    candidates = list(found)
    assert len(candidates) == found.legal_writes == 21
    # Each is named by the last growth point that has it: just before the next write becomes durable
    assert {candidate.state for candidate in candidates} == {CrashState(k) for k in range(21)}


def test_states_with_equal_contents_are_explored_together() -> None:
    writes = [DeviceWrite(k, 0, content("aa"), at(k), at(100 + k)) for k in range(12)]
    case = case_of(trace_of(writes, [], 0, 50, (64,)))
    found, _ = start(case, 2)
    assert len(list(found)) == 2
    assert found.legal_writes == found.write_states == 2**12
    assert found.exhaustive == "sectors"


def test_after_the_budget_the_rest_may_turn_out_to_be_explored() -> None:
    writes = [DeviceWrite(k, 0, content("aabb"), at(k), at(100 + k)) for k in range(10)]
    found, _ = start(case_of(trace_of(writes, [], 0, 50, (64,))), 2)
    assert {candidate.state.torn for candidate in found} == {()}
    assert found.exhaustive == "writes"


def test_an_exhausted_budget_that_missed_a_state_claims_nothing() -> None:
    found, _ = start(case_of(flat(4)), 15)
    assert len(list(found)) == 15
    assert found.exhaustive is None
    found, _ = start(case_of(flat(4)), 16)
    list(found)
    assert found.exhaustive == "sectors"


def test_budget_is_set_aside_for_all_states_of_whole_writes() -> None:
    found, _ = start(case_of(flat(6, sectors=4)), 100)
    kinds = Counter(bool(candidate.state.torn) for candidate in found)
    assert found.exhaustive == "writes"
    assert kinds == {False: 64, True: 36}


def test_a_search_that_is_broken_off_claims_what_it_handed_out() -> None:
    found, _ = start(case_of(flat(4)), 100)
    list(islice(found, 15))
    assert found.exhaustive is None
    list(found)
    assert found.exhaustive == "sectors"


def test_endless_stages_end() -> None:
    writes = [DeviceWrite(k, 0, content("aa" if k % 2 else "bb"), at(k), at(100 + k)) for k in range(60)]
    found, _ = start(case_of(trace_of(writes, [], 0, 90, (64,))), 50)
    assert len(list(found)) == 3
    assert found.exhaustive is None


@pytest.mark.parametrize("budget", [0, 1])
def test_tiny_budgets(budget: int) -> None:
    found, _ = start(case_of(flat(3)), budget)
    assert len(list(found)) == budget
    assert found.exhaustive is None


def test_a_trace_without_writes_has_one_state() -> None:
    found, _ = start(case_of(trace_of([], [Flush(at(1), at(2))], 0, 9, (64,))), 10)
    assert [candidate.state for candidate in found] == [CrashState(0)]
    assert found.exhaustive == "sectors"


def test_4096_byte_units_leave_blocks_whole() -> None:
    case = case_of(journal(2, 2, sectors=8), DeviceModel(atomic_write_bytes=4096))
    points = growth_points(case.trace, case.model)
    assert count_writes(points) == count_sectors(points)
    assert not any(state.torn for state in states(case, 2000))
