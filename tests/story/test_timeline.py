"""Every write before a crash has its fate, and the time line comes back from JSON as it was."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import samples_of_runs as samples
from bob.crash.cubes import Cube
from bob.crash.legal import growth_points
from bob.crash.state import CrashState
from bob.crash.units import Parts
from bob.errors import MalformedError
from bob.story.timeline import (
    MOST_EVENTS,
    Asked,
    Called,
    Fate,
    Flushed,
    Written,
    from_json,
    timeline,
    to_json,
    with_calls,
)
from bob.trace.model import Mark, Write
from bob.workload.pattern import contents
from crash.traces import Case, cases

NAMES = [("metadata", f"block {number}") for number in range(2000)]
MARKS = (
    Mark(samples.at(10), "start"),
    Mark(samples.at(11), "op 1 begin"),
    Mark(samples.at(13), "op 1 end"),
    Mark(samples.at(15), "op 2 begin"),
    Mark(samples.at(30), "end"),
)
TRACE = replace(samples.TRACE, marks=MARKS)


@settings(max_examples=150, deadline=None)
@given(cases(), st.integers())
def test_each_write_before_the_crash_is_told_with_its_fate(case: Case, seed: int) -> None:
    points = growth_points(case.trace, case.model)
    parts = Parts(case.trace, points, case.model)
    state = parts.legal.sample(Cube(), Random(seed))
    point = points[state.point]
    line = timeline(case.trace, point, state, NAMES)
    told = {index for one in line.writes for index in range(one.first, one.first + one.count)}
    begun = {write.index for write in case.trace.writes if write.submitted.time <= point.time}
    before = {write.index for write in case.trace.writes if write.submitted.time < case.trace.start.time}
    assert begun - (before & set(point.durable)) == told
    assert line.left_out == len(begun - told)
    for one in line.writes:
        for index in range(one.first, one.first + one.count):
            assert (one.fate is Fate.DURABLE) == (index in point.durable)
            assert (one.fate is Fate.KEPT) == (index in state.kept)
            assert (one.fate is Fate.TORN) == (index in dict(state.torn))
    assert [event.seconds for event in line.events] == sorted(event.seconds for event in line.events)
    assert from_json(json.loads(json.dumps(to_json(line)))) == line


def test_operations_and_flushes_are_told_too() -> None:
    point = samples.plan().points[-1]
    line = timeline(TRACE, point, CrashState(len(samples.plan().points) - 1, point.pending), NAMES)
    assert [type(event) for event in line.events] == [Called, Written, Written, Called, Flushed, Written]
    called = [event for event in line.events if isinstance(event, Called)]
    assert [(event.number, event.seconds, event.end) for event in called] == [(1, 0.25, 0.75), (2, 1.25, None)]


def test_the_calls_of_a_program_are_told_up_to_the_crash() -> None:
    point = samples.plan().points[-1]
    line = timeline(TRACE, point, CrashState(len(samples.plan().points) - 1, point.pending), NAMES)
    early = [Asked(-100 + number / 1000, f"early {number}", "there") for number in range(30)]
    calls = [*early, Asked(-99, "lost", "missing"), Asked(1.3, "late", ""), Asked(line.crash + 1, "after", "")]
    told = with_calls(line, calls)
    said = [event.words for event in told.events if isinstance(event, Asked)]
    assert said == [*(f"early {number}" for number in range(20, 30)), "lost", "late"]
    assert [event.seconds for event in told.events] == sorted(event.seconds for event in told.events)
    assert [event for event in told.events if not isinstance(event, Asked)] == list(line.events)
    assert from_json(json.loads(json.dumps(to_json(told)))) == told


def test_many_events_are_not_all_told_and_none_that_was_pending_is_left_out() -> None:
    writes = tuple(
        Write(number, 2 * number, bytes(512), samples.at(1 + 2 * number), samples.at(2 + 2 * number))
        for number in range(400)
    )
    trace = replace(
        samples.TRACE,
        writes=writes,
        flushes=(replace(samples.TRACE.flushes[0], submitted=samples.at(700), completed=samples.at(701)),),
        start=samples.at(0),
        end=samples.at(900),
        device_sectors=(1000,),
    )
    points = growth_points(trace, samples.plan().composer.model)
    line = timeline(trace, points[-1], CrashState(len(points) - 1), NAMES)
    assert sum(one.count for one in line.writes) + line.left_out == 400
    assert sum(one.count for one in line.writes if one.fate is Fate.LOST) == len(points[-1].pending) > 10
    assert len(line.events) <= MOST_EVENTS
    unflushed = replace(trace, flushes=())
    [point] = growth_points(unflushed, samples.plan().composer.model)
    line = timeline(unflushed, point, CrashState(0, point.pending[::2]), NAMES)
    assert [(one.fate, one.count) for one in line.writes] == [(Fate.KEPT, 200), (Fate.LOST, 200)]


def test_data_that_follow_each_other_are_told_together() -> None:
    writes = [
        Write(number, 8 * number, contents(1, 4096 * number, 4096), samples.at(11 + number), samples.at(25))
        for number in range(5)
    ]
    trace = replace(TRACE, writes=tuple(writes), flushes=(), marks=())
    points = growth_points(trace, samples.plan().composer.model)
    line = timeline(trace, points[-1], CrashState(0), [("data", "data of operation 1")] * 5)
    [one] = line.writes
    assert (one.count, one.sectors, one.operations, one.fate) == (5, 40, (1,), Fate.LOST)


@settings(max_examples=100, deadline=None)
@given(cases(), st.integers(), st.sets(st.integers(0, 9)))
def test_writes_that_decide_are_told_by_themselves(case: Case, seed: int, wanted: set[int]) -> None:
    points = growth_points(case.trace, case.model)
    state = Parts(case.trace, points, case.model).legal.sample(Cube(), Random(seed))
    causes = wanted & set(points[state.point].pending)
    line = timeline(case.trace, points[state.point], state, NAMES, causes)
    assert line.causes == causes
    assert all(one.count == 1 for one in line.writes if one.decides)
    document = to_json(line)
    assert from_json(json.loads(json.dumps(document))) == line
    assert sum("decides" in event for event in document["events"]) == len(causes)


def test_of_many_writes_of_one_kind_those_that_decide_stand_alone() -> None:
    writes = tuple(
        Write(number, 2 * number, bytes(512), samples.at(1 + 2 * number), samples.at(900)) for number in range(400)
    )
    trace = replace(
        samples.TRACE,
        writes=writes,
        flushes=(),
        start=samples.at(0),
        end=samples.at(899),
        device_sectors=(1000,),
        marks=(),
    )
    [point] = growth_points(trace, samples.plan().composer.model)
    line = timeline(trace, point, CrashState(0), NAMES, {7, 300})
    assert sorted(one.count for one in line.writes) == [1, 1, 398]
    assert line.causes == {7, 300}


@pytest.mark.parametrize(
    "damaged", [None, {}, {"events": [{"event": "written"}], "crash": 1, "left_out": 0}, {"events": 3, "crash": 1}]
)
def test_damage(damaged: object) -> None:
    with pytest.raises(MalformedError):
        from_json(damaged)
