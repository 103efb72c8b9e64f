"""Growth points and counts against the rules spelled out (``brute``)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from inline_snapshot import snapshot

from bob.crash.caches import CACHES, VOLATILE
from bob.crash.device import DeviceModel
from bob.crash.legal import count_sectors, count_writes, growth_points
from bob.errors import MalformedError, UsageError
from bob.trace.model import DeviceWrite, Flush, Trace

from . import brute
from .traces import Case, at, cases, content, journal, trace_of


def write(index: int, submitted: int, completed: int, *, sector: int = 0, fua: bool = False) -> DeviceWrite:
    return DeviceWrite(index, sector, content("aa"), at(submitted), at(completed), fua)


@settings(max_examples=300, deadline=None)
@given(cases())
def test_the_growth_points_have_exactly_the_legal_states(case: Case) -> None:
    points = growth_points(case.trace, case.model)
    found = {frozenset(point.durable) | kept for point in points for kept in brute.subsets(point.pending)}
    legal = brute.legal_writes(case.trace, case.model)
    assert found == legal
    assert count_writes(points) == len(legal)
    assert count_sectors(points) == len(brute.legal_units(case.trace, case.model))


@settings(max_examples=200, deadline=None)
@given(cases())
def test_each_growth_point_is_what_the_rules_say_at_its_time(case: Case) -> None:
    points = growth_points(case.trace, case.model)
    assert points[-1].time == case.trace.end.time
    assert points[-1].becomes_durable == ()
    for point in points:
        both = set(point.durable), set(point.pending)
        assert both in list(brute.durable_and_pending(case.trace, case.model, point.time))
        assert [list(point.durable), list(point.pending)] == [*map(sorted, both)]
        assert case.trace.start.time <= point.time <= case.trace.end.time
    for point, after in pairwise(points):
        assert point.becomes_durable
        assert set(point.durable) | set(point.becomes_durable) == set(after.durable)


@settings(max_examples=200, deadline=None)
@given(cases())
def test_what_was_flushed_or_fua_is_never_lost_afterwards(case: Case) -> None:
    points = growth_points(case.trace, case.model)
    for one, since in zip(case.trace.writes, case.model.write_cache.durable_since(case.trace), strict=True):
        if one.fua or case.model.write_cache.name in ("none", "ordered"):
            assert since == one.completed.time
        for point in points:
            assert one.index not in point.durable or (since is not None and since <= point.time)
            assert one.index not in point.pending or one.submitted.time <= point.time


def test_a_commit_block_after_its_preflush_never_gets_ahead() -> None:
    trace = trace_of(
        [write(0, 1, 2, sector=0), write(1, 10, 12, sector=1, fua=True)], [Flush(at(5), at(10))], start=0, end=20
    )
    assert brute.legal_writes(trace, DeviceModel()) == {frozenset(), frozenset({0}), frozenset({0, 1})}
    points = growth_points(trace, DeviceModel())
    assert [(point.time, point.durable, point.pending) for point in points] == [
        (9, (), (0,)),
        (11, (0,), (1,)),
        (20, (0, 1), ()),
    ]
    assert count_writes(points) == 3


def test_a_write_completed_during_a_flush_waits_for_the_next() -> None:
    trace = trace_of([write(0, 1, 6)], [Flush(at(5), at(8))], start=0, end=20)
    assert [point.pending for point in growth_points(trace, DeviceModel())] == [(0,)]


def test_of_flushes_in_flight_the_one_that_completes_first_counts() -> None:
    trace = trace_of([write(0, 1, 2)], [Flush(at(3), at(15)), Flush(at(4), at(6))], start=0, end=20)
    assert VOLATILE.durable_since(trace) == (6,)


def test_a_flush_is_for_its_own_device() -> None:
    trace = trace_of([write(0, 1, 2)], [Flush(at(3), at(4), device=1)], start=0, end=20)
    assert VOLATILE.durable_since(trace) == (None,)


def test_without_a_write_cache_completion_is_durability() -> None:
    trace = trace_of([write(0, 1, 4), write(1, 2, 3, sector=1)], [], start=0, end=20)
    points = growth_points(trace, DeviceModel(CACHES["none"]))
    assert [(point.time, point.durable, point.pending) for point in points] == [
        (2, (), (0, 1)),
        (3, (1,), (0,)),
        (20, (0, 1), ()),
    ]


ORDERED = DeviceModel(CACHES["ordered"])


def test_a_cache_that_keeps_the_order_loses_the_last_writes() -> None:
    trace = trace_of(
        [write(n, submitted, done, sector=n) for n, (submitted, done) in enumerate([(1, 5), (2, 3), (4, 6), (7, 12)])],
        [],
        start=8,
        end=9,
        device_sectors=(9,),
    )
    points = growth_points(trace, ORDERED)
    # Write 1 was done first, then 0, then 2; write 3 was under way.
    assert [(point.time, point.durable, point.pending) for point in points] == [
        (8, (), (1,)),
        (8, (1,), (0,)),
        (8, (0, 1), (2,)),
        (9, (0, 1, 2), (3,)),
    ]
    assert count_writes(points) == 5


def test_a_flush_and_a_fua_write_bound_what_an_ordered_cache_may_lose() -> None:
    writes = [write(0, 1, 2), write(1, 3, 4), write(2, 5, 6), write(3, 7, 8)]
    flushed = trace_of(writes, [Flush(at(4), at(9))], start=10, end=10, device_sectors=(9,))
    assert [point.durable for point in growth_points(flushed, ORDERED)] == [(0, 1), (0, 1, 2), (0, 1, 2, 3)]
    under_way = replace(flushed, flushes=(Flush(at(4), at(11)),))
    assert growth_points(under_way, ORDERED)[0].durable == ()
    forced = replace(flushed, flushes=(), writes=(*writes[:2], write(2, 5, 6, fua=True), writes[3]))
    assert [point.durable for point in growth_points(forced, ORDERED)] == [(0, 1, 2), (0, 1, 2, 3)]


@settings(max_examples=200, deadline=None)
@given(cases([DeviceModel(CACHES["ordered"])]))
def test_what_an_ordered_cache_may_leave_any_cache_may(case: Case) -> None:
    assert brute.legal_writes(case.trace, case.model) <= brute.legal_writes(case.trace, DeviceModel())


def test_an_ordered_cache_is_of_one_disk() -> None:
    with pytest.raises(UsageError) as refused:
        growth_points(trace_of([write(0, 1, 2)], [], 0, 9), ORDERED)
    assert str(refused.value) == snapshot("the write cache 'ordered' is for one disk, and this recording has 2")


def test_an_empty_trace_has_one_state() -> None:
    points = growth_points(trace_of([], [], 0, 0), DeviceModel())
    assert len(points) == count_writes(points) == count_sectors(points) == 1


def test_big_counts_are_exact() -> None:
    trace = trace_of([write(index, index, 1000 + index) for index in range(200)], [], 0, 5000)
    assert count_writes(growth_points(trace, DeviceModel())) == 2**200
    assert count_sectors(growth_points(trace, DeviceModel(atomic_write_bytes=8))) == 2 ** (200 * 64)


def _good() -> Trace:
    return trace_of([write(0, 1, 2), write(1, 3, 4)], [Flush(at(5), at(6))], 0, 10)


@pytest.mark.parametrize(
    "bad",
    [
        replace(_good(), start=at(11)),
        replace(_good(), writes=_good().writes[::-1]),
        replace(_good(), writes=(write(0, 3, 4), write(1, 1, 2))),
        replace(_good(), writes=(write(0, 1, 1),)),
        replace(_good(), writes=(write(0, 1, 2, sector=6),)),
        replace(_good(), writes=(write(0, 1, 2, sector=-1),)),
        replace(_good(), writes=(replace(write(0, 1, 2), device=2),)),
        replace(_good(), writes=(replace(write(0, 1, 2), data=b""),)),
        replace(_good(), writes=(replace(write(0, 1, 2), data=b"x" * 513),)),
        replace(_good(), flushes=(Flush(at(7), at(6)),)),
    ],
)
def test_traces_that_would_give_wrong_states_are_refused(bad: Trace) -> None:
    growth_points(_good(), DeviceModel())
    with pytest.raises(MalformedError):
        growth_points(bad, DeviceModel())


def test_growth_points_of_a_long_trace() -> None:
    trace = journal(commits=40, blocks=5)
    points = growth_points(trace, DeviceModel())
    assert 80 <= len(points) <= 130
    assert all(point.pending_units == 8 * len(point.pending) for point in points)
