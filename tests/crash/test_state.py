"""Recipes: their JSON, what is refused, and that replaying everything gives what the device holds; and the device."""

from __future__ import annotations

import json
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bob.crash.caches import CACHES
from bob.crash.device import DeviceModel
from bob.crash.legal import growth_points
from bob.crash.state import CrashState, check_state, effective, is_legal_at
from bob.errors import MalformedError, UsageError
from bob.schema import ShapeError, decode, encode
from bob.trace.model import DeviceWrite

from .brute import Medium, units_of_all
from .traces import Case, at, cases, content, replay_all, trace_of

indexes = st.lists(st.integers(0, 99), unique=True).map(sorted).map(tuple)
ranges = (
    st.lists(st.integers(0, 99), min_size=2, unique=True)
    .map(sorted)
    .map(lambda edges: tuple(zip(edges[::2], edges[1::2], strict=False)))
)
torn = st.dictionaries(st.integers(0, 99), ranges).map(lambda found: tuple(sorted(found.items())))


@given(st.builds(CrashState, st.integers(0, 99), indexes, torn))
def test_json_there_and_back(state: CrashState) -> None:
    assert decode(CrashState, json.loads(json.dumps(encode(state)))) == state


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"kept": [], "torn": []},
        {"point": 0, "kept": []},
        {"point": "0", "kept": [], "torn": []},
        {"point": 0, "kept": [1.5], "torn": []},
        {"point": 0, "kept": [True], "torn": []},
        {"point": 0, "kept": "12", "torn": []},
        {"point": 0, "kept": [], "torn": [1]},
        {"point": 0, "kept": [], "torn": [[1, [2]]]},
        {"point": 0, "kept": [], "torn": [[1, [[2, "3"]]]]},
    ],
)
def test_what_is_no_state_is_refused(document: object) -> None:
    with pytest.raises(ShapeError):
        decode(CrashState, document)


@pytest.mark.parametrize(
    "state",
    [
        CrashState(2),
        CrashState(-1),
        CrashState(0, (1,)),
        CrashState(0, (9,)),
        CrashState(1, (0,)),
        CrashState(1, (2, 1)),
        CrashState(1, (1, 1)),
        CrashState(1, (1,), ((1, ((0, 1),)),)),
        CrashState(1, (), ((1, ()),)),
        CrashState(1, (), ((1, ((0, 3),)),)),
        CrashState(1, (), ((1, ((0, 1), (1, 2))),)),
        CrashState(1, (), ((1, ((1, 1),)),)),
        CrashState(1, (), ((1, ((2, 4),)),)),
        CrashState(1, (), ((1, ((-1, 1),)),)),
        CrashState(1, (), ((2, ((0, 1),)), (1, ((0, 1),)))),
    ],
)
def test_what_is_not_legal_is_refused(state: CrashState) -> None:
    writes = [
        DeviceWrite(0, 0, content("aa"), at(1), at(2), fua=True),
        DeviceWrite(1, 0, content("bbbbbb"), at(3), at(4)),
        DeviceWrite(2, 2, content("cccc"), at(5), at(6)),
    ]
    trace, model = trace_of(writes, [], 0, 10), DeviceModel()
    points = growth_points(trace, model)
    check_state(trace, model, points, CrashState(0, (0,)))
    check_state(trace, model, points, CrashState(1, (1,), ((2, ((1, 2),)),)))
    check_state(trace, model, points, CrashState(1, (2,), ((1, ((0, 1), (2, 3))),)))
    with pytest.raises(MalformedError):
        check_state(trace, model, points, state)


def test_pieces_land_in_submission_order() -> None:
    writes = [
        DeviceWrite(0, 0, content("aaaa"), at(1), at(20)),
        DeviceWrite(1, 1, content("bbbb"), at(3), at(4), fua=True),
        DeviceWrite(2, 2, content("cccccc"), at(5), at(6)),
    ]
    trace, model = trace_of(writes, [], 0, 10), DeviceModel()
    state = CrashState(1, (0,), ((2, ((0, 1), (2, 3))),))
    pieces = [(p.write.index, p.start, p.stop) for p in effective(trace, model, growth_points(trace, model), state)]
    assert pieces == [(0, 0, 1024), (1, 0, 1024), (2, 0, 512), (2, 1024, 1536)]


def test_the_later_of_two_writes_wins_whatever_their_numbers() -> None:
    writes = [DeviceWrite(k, 0, content(chr(97 + k) * 2), at(k + 1), at(90 + k)) for k in range(20)]
    trace, model = trace_of(writes, [], 0, 50), DeviceModel()
    points = growth_points(trace, model)
    for first in range(20):
        for later in range(first + 1, 20):
            landed = [piece.write.index for piece in effective(trace, model, points, CrashState(0, (first, later)))]
            assert landed == [first, later]


@settings(max_examples=100, deadline=None)
@given(cases())
def test_a_state_is_legal_where_some_subset_gives_it(case: Case) -> None:
    points = growth_points(case.trace, case.model)
    whole = [
        CrashState(number, tuple(index for index, is_kept in zip(point.pending, kept, strict=True) if is_kept))
        for number, point in enumerate(points)
        for kept in product((False, True), repeat=len(point.pending))
    ]
    mediums = [frozenset({*points[state.point].durable, *state.kept}) for state in whole]
    there = {(state.point, medium) for state, medium in zip(whole, mediums, strict=True)}
    for state, medium in zip(whole, mediums, strict=True):
        for number in range(len(points)):
            assert is_legal_at(points, state, number) == ((number, medium) in there)


@given(cases())
def test_replaying_all_is_what_the_device_holds(case: Case) -> None:
    image = bytearray(case.base)
    replay_all(case.trace, image)
    everything = units_of_all(case.trace, case.model, range(len(case.trace.writes)))
    assert bytes(image) == Medium(case.trace, case.model, case.base).content(everything)


# The device model


def write(sector: int, sectors: int) -> DeviceWrite:
    return DeviceWrite(0, sector, bytes(512 * sectors), at(0), at(1))


@pytest.mark.parametrize("size", [8, 64, 512, 4096, 16384])
def test_sizes_that_a_device_can_have(size: int) -> None:
    assert DeviceModel(CACHES["none"], size).atomic_write_bytes == size


@pytest.mark.parametrize("size", [-512, 0, 1, 4, 7, 12, 513, 4095])
def test_sizes_that_it_cannot_have(size: int) -> None:
    with pytest.raises(UsageError):
        DeviceModel(atomic_write_bytes=size)


def test_units_are_aligned_on_the_device() -> None:
    model = DeviceModel(atomic_write_bytes=4096)
    across = write(6, 4)
    assert model.units(across) == 2
    assert model.byte_range(across, 0, 1) == (0, 1024)
    assert model.byte_range(across, 1, 2) == (1024, 2048)
    assert model.units(write(8, 8)) == 1
    assert model.units(write(1, 2)) == 1
    assert DeviceModel(atomic_write_bytes=8).units(write(3, 1)) == 64
    assert DeviceModel(atomic_write_bytes=8).byte_range(write(3, 1), 1, 3) == (8, 24)


@given(st.integers(3, 14), st.integers(0, 40), st.integers(1, 40))
def test_the_units_of_a_write_are_its_bytes(bits: int, sector: int, sectors: int) -> None:
    model = DeviceModel(atomic_write_bytes=1 << bits)
    one = write(sector, sectors)
    edges = [model.byte_range(one, unit, unit + 1) for unit in range(model.units(one))]
    assert model.byte_edges(one, np.array([range(model.units(one)), range(1, model.units(one) + 1)])).T.tolist() == [
        list(edge) for edge in edges
    ]
    assert edges[0][0] == 0 and edges[-1][1] == len(one.data)
    assert all(before[1] == after[0] < after[1] for before, after in pairwise(edges))
    assert all((sector * 512 + stop) % (1 << bits) == 0 for _, stop in edges[:-1])
    assert model.byte_range(one, 0, model.units(one)) == (0, len(one.data))
