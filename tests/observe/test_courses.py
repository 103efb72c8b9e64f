"""Dividing legal states by the courses of a made-up recovery: against listing, recovering and counting every one."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bob.crash.cubes import Cube
from bob.crash.device import DeviceModel
from bob.crash.drafts import legal_states, mask, settled, view
from bob.crash.image import Composer
from bob.crash.legal import growth_points
from bob.crash.sampling import ranges
from bob.crash.state import CrashState, check_state
from bob.crash.units import WriteUnits
from bob.observe.accesses import Access
from bob.observe.courses import Courses
from bob.observe.predict import Contents, Gap, ReadTree, places_read
from bob.observe.torn_courses import TornCourses
from crash.brute import legal_units, legal_writes, units_of
from crash.traces import Case, cases, journal


def recover(program: int, sectors: list[int], contents: Contents, steps: int) -> tuple[int, list[Access]]:
    """A recovery that is different for each ``program``: each step depends on all that was read before."""
    device = dict(zip(sectors, contents.tolist(), strict=True))
    memory = hashlib.sha256(str(program).encode())
    accesses: list[Access] = []
    for step in range(steps):
        chance = Random(memory.digest())
        sector, count = chance.choice(sectors or [0]), chance.randint(1, 3)
        accesses.append(Access(chance.random() < 0.8, sector, count, step))
        if accesses[-1].reads:
            memory.update(repr([device.get(one, -1) for one in range(sector, sector + count)]).encode())
        else:
            device.update((one, -2) for one in range(sector, sector + count))
    return memory.digest()[0] % 4, accesses


class Explorer:
    """Divides the legal states of a case, mounting where it must."""

    def __init__(self, case: Case, program: int, steps: int) -> None:
        self.points = growth_points(case.trace, case.model)
        self.composer = Composer(case.trace, self.points, case.model, case.base_sector)
        self.views = [view(number, point) for number, point in enumerate(self.points)]
        self.legal = legal_states(self.views)
        self.known = ReadTree()
        self.courses = Courses(self.known, self.legal, self.composer)
        self.program, self.steps, self.mounts = program, steps, 0

    def outcome(self, state: CrashState) -> tuple[int, list[Access]]:
        return recover(self.program, self.composer.sectors.tolist(), self.composer.contents(state), self.steps)

    def mount(self, gap: Gap) -> None:
        state = self.legal.some(self.courses.open[gap][0])
        outcome, accesses = self.outcome(state)
        self.known.add(self.composer.contents(state), places_read(self.composer.sectors, accesses), outcome)
        self.mounts += 1
        self.courses.reopen(gap)

    def run(self, most_mounts: int, most_open: int, steps: int) -> None:
        while not self.courses.is_complete and self.mounts < most_mounts:
            self.courses.advance(most_open, steps)
            for gap in list(self.courses.open)[: most_mounts - self.mounts]:
                self.mount(gap)
        if not self.courses.is_complete:
            self.courses.give_up(10**9)


@settings(max_examples=150, deadline=None)
@given(cases(), st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 5), st.integers(1, 20))
def test_every_state_is_settled_with_its_own_outcome(
    case: Case, program: int, reads: int, most_open: int, steps: int
) -> None:
    explorer = Explorer(case, program, reads)
    explorer.run(10**6, most_open, steps)
    assert explorer.courses.is_complete
    outcomes: Counter[int] = Counter()
    courses = set()
    for kept in legal_writes(case.trace, case.model):
        medium = mask(kept)
        outcome, accesses = explorer.outcome(settled(explorer.views, medium))
        outcomes[outcome] += 1
        state = settled(explorer.views, medium)
        contents, sectors = explorer.composer.contents(state), explorer.composer.sectors
        courses.add(b"".join(contents[places].tobytes() for places in places_read(sectors, accesses)))
        [course] = [
            course
            for course in explorer.courses.settled
            if not course.cube.kept & ~medium and not course.cube.lost & medium
        ]
        assert course.outcome == outcome
    told: Counter[int] = Counter()
    for course in explorer.courses.settled:
        told[course.outcome] += course.states
    assert told == outcomes
    assert explorer.mounts == len(courses)


@settings(max_examples=60, deadline=None)
@given(cases(), st.integers(0, 10**6), st.integers(0, 6), st.integers(1, 20))
def test_what_is_settled_early_is_right_too(case: Case, program: int, most_mounts: int, steps: int) -> None:
    explorer = Explorer(case, program, 6)
    explorer.run(most_mounts, 3, steps)
    assert not explorer.courses.open
    legal = legal_writes(case.trace, case.model)
    found = 0
    for kept in legal:
        medium = mask(kept)
        state = settled(explorer.views, medium)
        outcomes = [course.outcome for course in explorer.courses.settled if medium in course.cube]
        known = explorer.known.find(explorer.composer.contents(state))
        assert outcomes == ([] if isinstance(known, Gap) else [known])
        assert outcomes in ([], [explorer.outcome(state)[0]])
        found += len(outcomes)
    assert sum(course.states for course in explorer.courses.settled) == found
    assert explorer.courses.is_complete == (found == len(legal))


@settings(max_examples=150, deadline=None)
@given(cases(), st.integers(0, 10**6), st.integers(0, 6), st.integers(0, 12), st.integers())
def test_torn_states_are_known_by_what_was_read(
    case: Case, program: int, steps: int, most_mounts: int, seed: int
) -> None:
    explorer = Explorer(case, program, steps)
    explorer.run(most_mounts, 3, 20)
    parts = WriteUnits(case.trace, explorer.points, case.model)
    torn = TornCourses(parts, explorer.composer)
    known = explorer.known
    told: Counter[int] = Counter()
    for course in torn.known(known):
        assert course.states > 0
        told[course.outcome] += course.states
        sample = parts.legal.sample(course.cube, Random(seed))
        check_state(case.trace, case.model, explorer.points, sample)
        assert parts.separate(sample)
        assert known.find(explorer.composer.contents(sample)) == course.outcome == explorer.outcome(sample)[0]
    wanted: Counter[int] = Counter()
    every = all_separate(case, explorer)
    assert parts.legal.count(Cube()) == len(every)
    for state in every:
        outcome = known.find(explorer.composer.contents(state))
        if isinstance(outcome, int):
            wanted[outcome] += 1
    assert told == wanted


@given(cases([DeviceModel(atomic_write_bytes=size) for size in (256, 512, 1024, 4096)]))
def test_a_part_is_the_atomic_unit_that_a_sector_is_in(case: Case) -> None:
    parts = WriteUnits(case.trace, growth_points(case.trace, case.model), case.model)
    model, first = replace(case.model, atomic_write_bytes=max(512, case.model.atomic_write_bytes)), 0
    for write in case.trace.writes:
        units = list(units_of(write, model).values())
        for sector in range(len(write.data) // 512):
            [place] = [place for place, offsets in enumerate(units) if sector * 512 in offsets]
            assert parts.number(write.index, sector) == first + place
        first += len(units)
    assert parts.total == first


def test_contents_that_no_write_leaves_are_in_no_torn_course() -> None:
    trace = journal(1, 2)
    explorer = Explorer(Case(trace, DeviceModel(), bytes(trace.device_sectors[0] * 512)), 1, 6)
    torn = TornCourses(WriteUnits(trace, explorer.points, DeviceModel()), explorer.composer)
    [alone] = [place for place, layers in enumerate(explorer.composer.layers) if len(layers) == 1][:1]
    for content, courses in [(0, 1), (explorer.composer.layers[alone][0].content, 1), (10**6, 0)]:
        known, contents = ReadTree(), np.zeros(len(explorer.composer.sectors), dtype=np.int32)
        contents[alone] = content
        known.add(contents, [np.array([alone])], 0)
        assert len(list(torn.known(known))) == courses


def test_torn_courses_are_found_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """All at once they took 200 MB, of a workload with 12,000 sectors."""
    asked: list[int] = []
    showing = TornCourses._showing

    def counted(self: TornCourses, cubes: Sequence[Cube], *there: Any) -> tuple[list[Cube], bool]:
        asked.append(len(cubes))
        return showing(self, cubes, *there)

    monkeypatch.setattr(TornCourses, "_showing", counted)
    trace = journal(3, 40)
    explorer = Explorer(Case(trace, DeviceModel(), bytes(trace.device_sectors[0] * 512)), 1, 6)
    explorer.run(10**6, 50, 1000)
    courses = TornCourses(WriteUnits(trace, explorer.points, DeviceModel()), explorer.composer).known(explorer.known)
    next(courses)
    first = len(asked)
    more = len(list(courses))
    assert more > 1
    assert 0 < first < len(asked) / 2


def all_separate(case: Case, explorer: Explorer) -> list[CrashState]:
    """Every legal state that is torn between sectors, once: its units on the medium, made a state of the model."""
    model = replace(case.model, atomic_write_bytes=max(512, case.model.atomic_write_bytes))
    grain = model.atomic_write_bytes // case.model.atomic_write_bytes
    states = []
    for units in legal_units(case.trace, model):
        there: dict[int, list[int]] = {}
        for index, unit in sorted(units):
            there.setdefault(index, []).append(unit - case.trace.writes[index].sector * 512 // model.atomic_write_bytes)
        whole = {index for index, some in there.items() if len(some) == model.units(case.trace.writes[index])}
        point = max(
            number
            for number, one in enumerate(explorer.points)
            if set(one.durable) <= whole and set(there) <= {*one.durable, *one.pending}
        )
        pending = explorer.points[point].pending
        torn = tuple(
            (
                index,
                tuple((first * grain, stop * grain) for first, stop in ranges(sum(1 << unit for unit in there[index]))),
            )
            for index in pending
            if index in there and index not in whole
        )
        states.append(CrashState(point, tuple(index for index in pending if index in whole), torn))
    return states


def test_many_states_take_few_mounts() -> None:
    # 2^40 states and more, of which recovery reads a few sectors
    trace = journal(3, 40)
    explorer = Explorer(Case(trace, DeviceModel(), bytes(trace.device_sectors[0] * 512)), 1, 6)
    explorer.run(10**6, 50, 1000)
    assert explorer.courses.is_complete
