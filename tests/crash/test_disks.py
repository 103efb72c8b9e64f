"""Several disks: a crash state is one legal state of each disk at the same instant. Here each disk is a trace of its
own, by the rules for one disk (``brute``), and their products at each instant are what the joint trace must have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bob.crash.caches import CACHES
from bob.crash.cubes import Cube
from bob.crash.device import DeviceModel
from bob.crash.legal import count_sectors, count_writes, growth_points
from bob.crash.plan import Plan
from bob.trace.base import Base
from bob.trace.differences import packed
from bob.trace.model import DeviceWrite, Flush, Trace

from . import brute
from .brute import Unit
from .traces import Case, at, cases, content, trace_of

TWO, THREE = (5, 4), (4, 3, 2)
MODELS = [DeviceModel(cache, size) for cache in CACHES.values() if not cache.one_disk_only for size in (256, 512, 1024)]


def several() -> st.SearchStrategy[Case]:
    return st.one_of(cases(MODELS, TWO), cases(MODELS, THREE))


def alone(trace: Trace) -> list[Trace]:
    """The writes and flushes of each disk alone; writes keep their indexes."""
    return [
        replace(
            trace,
            writes=tuple(replace(write, device=0) for write in trace.writes if write.device == number),
            flushes=tuple(replace(flush, device=0) for flush in trace.flushes if flush.device == number),
            device_sectors=(sectors,),
        )
        for number, sectors in enumerate(trace.device_sectors)
    ]


def at_instants(case: Case, *, torn: bool) -> Iterator[frozenset[int] | frozenset[Unit]]:
    """One legal state of each disk at the same instant, for each instant of the window."""
    disks, model = alone(case.trace), case.model
    for time in brute.window(case.trace):
        of_each = []
        for disk in disks:
            [(durable, pending)] = brute.durable_and_pending(disk, model, time)
            some = brute.units_of_all(case.trace, model, pending) if torn else frozenset(pending)
            sure = brute.units_of_all(case.trace, model, durable) if torn else frozenset(durable)
            of_each.append([sure | kept for kept in brute.subsets(some)])
        for parts in product(*of_each):
            yield frozenset().union(*parts)


@settings(max_examples=300, deadline=None)
@given(several())
def test_the_states_of_several_disks_are_products_at_one_instant(case: Case) -> None:
    points = growth_points(case.trace, case.model)
    found = {frozenset(point.durable) | kept for point in points for kept in brute.subsets(point.pending)}
    assert found == set(at_instants(case, torn=False))
    assert count_writes(points) == len(found)
    assert count_sectors(points) == len(set(at_instants(case, torn=True)))


@settings(max_examples=200, deadline=None)
@given(several())
def test_a_plan_of_several_disks_counts_them_and_lays_them_end_to_end(case: Case) -> None:
    base = Base(
        "base", len(case.base), packed([(0, case.base)]), "", "", tuple(512 * n for n in case.trace.device_sectors)
    )
    plan = Plan(case.trace, base, case.model)
    whole = set(at_instants(case, torn=False))
    assert plan.legal.count(Cube()) == len(whole)
    if case.model.atomic_write_bytes >= 512:
        assert plan.parts.legal.count(Cube()) == len(set(at_instants(case, torn=True)))
    medium = brute.Medium(case.trace, case.model, case.base)
    for state in (*plan.controls, *plan.bare):
        image = bytearray(case.base)
        for sector, data in plan.runs(state):
            image[sector * 512 : sector * 512 + len(data)] = data
        there = {*plan.points[state.point].durable, *state.kept}
        assert bytes(image) == medium.content(brute.units_of_all(case.trace, case.model, there))


def mirrored(pairs: int) -> Trace:
    """Each write goes to two mirrors, which flush at different times."""
    writes, flushes = [], []
    for number in range(pairs):
        begin = 10 * number
        for device in (0, 1):
            writes.append(
                DeviceWrite(
                    2 * number + device, number, content("ab"), at(begin + device), at(begin + 5), device=device
                )
            )
        flushes.append(Flush(at(begin + 6), at(begin + 7), device=0))
        flushes.append(Flush(at(begin + 6), at(begin + 9), device=1))
    return trace_of(writes, flushes, 0, 10 * pairs, (pairs, pairs))


@pytest.mark.parametrize("pairs", [1, 2, 3])
def test_a_mirror_is_behind_the_other_only_until_its_own_flush(pairs: int) -> None:
    """Before the first flush of a pair, both or the first may be lost: two states. Before the second flush, the other
    may be lost: one state. Afterwards both are there, so the last state has everything."""
    trace = mirrored(pairs)
    points = growth_points(trace, DeviceModel())
    assert count_writes(points) == 3 * pairs + 1
    assert len(set(at_instants(Case(trace, DeviceModel(), b""), torn=False))) == 3 * pairs + 1
