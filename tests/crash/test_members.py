"""The disks of a cluster's nodes, one by one and together, against the rules spelled out (``brute``)."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from bob.crash.cubes import Cube
from bob.crash.drafts import mask
from bob.crash.members import ClusterCrash, NodeDisk, node_disks, together
from bob.crash.plan import Plan
from bob.crash.state import CrashState
from bob.trace.base import Base
from bob.trace.differences import packed

from . import brute
from .test_disks import several
from .traces import Case

MOST = 40  # states of a disk


def base_of(case: Case) -> Base:
    lengths = tuple(512 * sectors for sectors in case.trace.device_sectors)
    return Base("base", len(case.base), packed([(0, case.base)]), "", "", lengths)


def states(disk: NodeDisk) -> list[CrashState]:
    return [
        CrashState(number, tuple(sorted(kept)))
        for number, point in enumerate(disk.plan.points)
        for kept in brute.subsets(point.pending)
    ]


@settings(max_examples=150, deadline=None)
@given(several())
def test_a_state_of_a_node_is_possible_at_the_moments_at_which_it_is_legal(case: Case) -> None:
    for disk in node_disks(case.trace, base_of(case), case.model):
        for state in states(disk):
            medium = {disk.writes[n] for n in disk.whole(state)}
            legal = []
            for time in brute.window(case.trace):
                [(durable, pending)] = brute.durable_and_pending(case.trace, case.model, time)
                mine = set(disk.writes)
                if durable & mine <= medium <= (durable | pending) & mine:
                    legal.append(time)
            first, last = disk.moments(state)
            assert [time for time in brute.window(case.trace) if first <= time <= last] == legal


@settings(max_examples=100, deadline=None)
@given(several())
def test_nodes_at_moments_of_their_own_are_together_what_each_is_alone(case: Case) -> None:
    """The image of all disks, each at its own moment, has the image of each disk alone."""
    base = base_of(case)
    disks = node_disks(case.trace, base, case.model)
    whole = Plan(case.trace, base, case.model)
    chosen = [states(disk)[:: max(1, len(states(disk)) // 4)] for disk in disks]
    crashes = [
        ClusterCrash(tuple(disk.moments(state).first for disk, state in zip(disks, each, strict=True)), each)
        for each in list(product(*chosen))[:MOST]
    ]
    joined = [together(disks, crash, number) for number, crash in enumerate(crashes, 1)]
    plan = Plan(case.trace, base, case.model, [whole.points[0], *(point for point, _state in joined), whole.points[-1]])
    assert plan.legal.count(Cube()) >= 1
    for crash, (point, state) in zip(crashes, joined, strict=True):
        image = bytearray(case.base)
        for sector, data in plan.runs(state):
            image[sector * 512 : sector * 512 + len(data)] = data
        start = 0
        for disk, alone in zip(disks, crash.states, strict=True):
            length = disk.plan.base.length
            expected = bytearray(case.base[start : start + length])
            for sector, data in disk.plan.runs(alone):
                expected[sector * 512 : sector * 512 + len(data)] = data
            assert image[start : start + length] == expected
            start += length
        assert {*state.kept} <= {*point.pending}


@settings(max_examples=100, deadline=None)
@given(several())
def test_a_power_cut_leaves_what_is_durable(case: Case) -> None:
    for disk in node_disks(case.trace, base_of(case), case.model):
        for time in brute.window(case.trace):
            [(durable, _pending)] = brute.durable_and_pending(case.trace, case.model, time)
            assert {disk.writes[n] for n in disk.whole(disk.bare(time))} == durable & set(disk.writes)
            assert set(disk.durable(time)) == durable & set(disk.writes)


@settings(max_examples=100, deadline=None)
@given(several(), st.data())
def test_a_set_of_states_is_possible_at_one_interval_of_moments(case: Case, data: st.DataObject) -> None:
    for disk in node_disks(case.trace, base_of(case), case.model):
        every = (1 << len(disk.writes)) - 1
        kept = data.draw(st.integers(0, every))
        cube = Cube(kept, data.draw(st.integers(0, every)) & ~kept)
        legal = set()
        for time in brute.window(case.trace):
            [(durable, pending)] = brute.durable_and_pending(case.trace, case.model, time)
            sure, perhaps = (
                mask([disk.writes.index(n) for n in some if n in disk.writes]) for some in (durable, pending)
            )
            if not sure & cube.lost and not cube.kept & ~(sure | perhaps):
                legal.add(time)
        found = disk.moments_of(cube)
        assert {time for time in brute.window(case.trace) if found and found.first <= time <= found.last} == legal
        for moment in legal:
            state = disk.state_at(cube, moment)
            assert mask(disk.whole(state)) in cube
            within = disk.moments(state)
            assert within.first <= moment <= within.last
