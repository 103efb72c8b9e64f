"""Crashes after an operation has returned, against the rules spelled out (``brute``): every time, every subset."""

from __future__ import annotations

import io
import lzma
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.crash.cubes import Cube
from bob.crash.departures import FARTHEST, distance, nearest
from bob.crash.device import DeviceModel
from bob.crash.image import Composer
from bob.crash.legal import GrowthPoint, count_sectors, count_writes, growth_points
from bob.crash.plan import Plan, after_return
from bob.crash.search import StateSearch
from bob.crash.state import CrashState, check_state
from bob.crash.units import WriteUnits
from bob.errors import RecordingError
from bob.trace.base import Base
from bob.trace.join import DiskLog, join
from bob.trace.log import LogReader
from bob.trace.model import Mark, Trace
from bob.trace.timeline import parse_timeline
from bob.workload.operations import At
from mediums import put
from wording import text_with

from . import brute
from .brute import durable_and_pending
from .traces import Case, at, cases, journal, patched, replay_all


@st.composite
def marked(draw: st.DrawFn) -> tuple[Case, int]:
    """A case with operations that return at some moments of its window, and the number of the last one."""
    case = draw(cases())
    start, end = case.trace.start.time, case.trace.end.time
    returns = sorted(draw(st.lists(st.integers(start, end), min_size=1, max_size=3)))
    marks = tuple(Mark(at(time), f"op {number} end") for number, time in enumerate(returns, start=1))
    return replace(case, trace=replace(case.trace, marks=marks)), len(returns)


def legal_from(trace: Trace, model: DeviceModel, since: int) -> set[frozenset[int]]:
    """Every set of writes that some crash at ``since`` or later can leave, straight from the rules."""
    legal = set()
    for time in range(since, trace.end.time + 1):
        for durable, pending in brute.durable_and_pending(trace, model, time):
            legal |= {frozenset(durable | kept) for kept in brute.subsets(pending)}
    return legal


@settings(max_examples=400)
@given(marked())
def test_the_states_after_the_return_are_those_that_the_rules_allow_then(found: tuple[Case, int]) -> None:
    case, last = found
    returned = case.trace.marks[-1].at.time
    after = after_return(case.trace, last)
    points = growth_points(after, case.model)
    states = {frozenset(point.durable) | kept for point in points for kept in brute.subsets(point.pending)}
    legal = legal_from(case.trace, case.model, returned)
    assert states == legal
    assert count_writes(points) == len(legal)
    assert count_sectors(points) == len(brute.legal_units(after, case.model))


def image(plan: Plan, case: Case, state: CrashState) -> bytes:
    """What a device of zeros holds in ``state``."""
    device = bytearray(sum(case.trace.device_sectors) * 512)
    for sector, data in plan.runs(state):
        device[sector * 512 : sector * 512 + len(data)] = data
    return bytes(device)


def is_the_same_or_less(one: GrowthPoint, other: GrowthPoint) -> bool:
    """Whether each state of ``one`` is one of ``other``: less is pending where a cache loses the last writes first, and
    the crash comes later."""
    return one.durable == other.durable and set(one.pending) <= set(other.pending)


@settings(max_examples=100)
@given(marked())
def test_a_plan_of_what_was_asked_tells_its_states_as_those_of_the_whole(found: tuple[Case, int]) -> None:
    case, last = found
    length = sum(case.trace.device_sectors) * 512
    zeros = struct.pack(">QI", 0, length // 512) + bytes(length)
    whole = Plan(case.trace, Base("zeros", length, zlib.compress(zeros), "", ""), case.model)
    assert whole.asked(At.ANY, last) is whole
    asked = whole.asked(At.END, last)
    for candidate in asked.search(20, 1):
        state = asked.in_whole(candidate.state)
        assert is_the_same_or_less(asked.points[candidate.state.point], whole.points[state.point])
        assert image(asked, case, candidate.state) == image(whole, case, state)


@settings(max_examples=400)
@given(marked())
def test_its_growth_points_are_the_last_ones_of_the_whole_trace(found: tuple[Case, int]) -> None:
    """So a state of the one, whose point is counted from another beginning, is a state of the other."""
    case, last = found
    whole, some = growth_points(case.trace, case.model), growth_points(after_return(case.trace, last), case.model)
    for one, other in zip(some, whole[len(whole) - len(some) :], strict=True):
        assert is_the_same_or_less(one, other)
        assert one == other or (other.time < one.time == case.trace.marks[-1].at.time and one.becomes_durable)
    assert all(point.time >= case.trace.marks[-1].at.time for point in some)
    assert all(point.time < case.trace.marks[-1].at.time for point in whole[: len(whole) - len(some)])


def test_what_was_durable_at_the_return_is_never_lost() -> None:
    trace = journal(commits=3, blocks=2)
    returned = at(trace.end.time // 2)
    after = after_return(replace(trace, marks=(Mark(returned, "op 1 end"),)), 1)
    [(durable, pending)] = brute.durable_and_pending(trace, DeviceModel(), returned.time)
    assert durable and pending
    for point in growth_points(after, DeviceModel()):
        assert durable <= set(point.durable)
    assert pending - set(growth_points(after, DeviceModel())[0].durable)


@pytest.mark.parametrize("marks", [(), ("op 1 end",), ("op 2 end", "op 2 end"), ("op 22 end", "op 2 begin")])
def test_a_return_that_is_not_marked_once(marks: tuple[str, ...]) -> None:
    trace = replace(journal(commits=1, blocks=1), marks=tuple(Mark(at(3), text) for text in marks))
    with pytest.raises(RecordingError) as refused:
        after_return(trace, 2)
    assert text_with(str(refused.value), 2) == snapshot("the recording does not say when operation 2 returned")


def test_a_return_outside_of_the_recording() -> None:
    trace = journal(commits=1, blocks=1)
    with pytest.raises(RecordingError) as refused:
        after_return(replace(trace, marks=(Mark(at(trace.end.time + 1), "op 1 end"),)), 1)
    assert text_with(str(refused.value), 1) == snapshot("the recording does not say when operation 1 returned")


# The whole way on a real recording: ext4 ``data=ordered`` on Linux 6.1 (the one that ``tests/trace`` joins)

RECORDED = Path(__file__).parents[1] / "trace" / "data" / "ext4-linux-6.1"


def test_a_real_recording() -> None:
    log, base, final, text = (
        lzma.decompress((RECORDED / f"{name}.xz").read_bytes()) for name in ("log", "base", "final", "timeline")
    )
    trace = join([DiskLog(LogReader(io.BytesIO(log)), (253, 0), len(base) // 512)], parse_timeline(text.decode()))
    image = bytearray(base)
    replay_all(trace, image)
    assert image == final

    model = DeviceModel()
    points = growth_points(trace, model)
    for point in points:
        [(durable, pending)] = durable_and_pending(trace, model, point.time)
        assert (set(point.durable), set(point.pending)) == (durable, pending)

    composer = Composer(trace, points, model, Case(trace, model, base).base_sector)
    payload = composer.payload_since(0)
    ground = patched(base, composer.floor_delta(), payload)
    found = StateSearch(trace, points, composer, budget=60, seed=0)
    images = set()
    for candidate in found:
        check_state(trace, model, points, candidate.state)
        put(composer, candidate.state, image := bytearray(base))
        assert patched(ground, composer.delta(candidate.state), payload) == image
        images.add(hash(bytes(image)))
    assert len(images) == 60
    assert composer.payload_since(0) == payload


# How far a crash state departs from a clean prefix: against trying every prefix


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
    state = WriteUnits(case.trace, points, case.model).legal.sample(Cube(), Random(seed))
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
