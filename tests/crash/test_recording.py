"""The whole way on a real recording: ext4 ``data=ordered`` on Linux 6.1 (the one that ``tests/trace`` joins)."""

from __future__ import annotations

import io
import lzma
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from bob.crash.cubes import Cube
from bob.crash.departures import FARTHEST, distance, nearest
from bob.crash.device import DeviceModel
from bob.crash.image import Composer
from bob.crash.legal import growth_points
from bob.crash.search import search
from bob.crash.state import CrashState, check_state
from bob.crash.units import Parts
from bob.trace.join import Logged, join
from bob.trace.log import LogReader
from bob.trace.timeline import parse_timeline

from .brute import durable_and_pending
from .traces import Case, cases, patched, replay_all

RECORDED = Path(__file__).parents[1] / "trace" / "data" / "ext4-linux-6.1"


def test_a_real_recording() -> None:
    log, base, final, text = (
        lzma.decompress((RECORDED / f"{name}.xz").read_bytes()) for name in ("log", "base", "final", "timeline")
    )
    trace = join([Logged(LogReader(io.BytesIO(log)), (253, 0), len(base) // 512)], parse_timeline(text.decode()))
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
    found = search(trace, points, composer, budget=60, seed=0)
    images = set()
    for candidate in found:
        check_state(trace, model, points, candidate.state)
        composer.apply(candidate.state, image := bytearray(base))
        assert patched(ground, composer.delta(candidate.state), payload) == image
        images.add(hash(bytes(image)))
    assert len(images) == found.coverage.explored == 60
    assert composer.payload_sectors == len(payload) // 512


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
