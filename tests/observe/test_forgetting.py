"""Recovery that brings each block up to date, whatever it was: one mount for each block, not one for each subset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from random import Random

import numpy as np
from crash.brute import legal_writes
from crash.traces import Case, cases, journal
from hypothesis import given, settings
from hypothesis import strategies as st

from bob.crash.device import DeviceModel
from bob.crash.drafts import mask, settled
from bob.crash.state import CrashState
from bob.crash.units import Parts
from bob.observe.accesses import Access
from bob.observe.left_behind import LONGEST, Left, Stretches
from bob.observe.predict import Contents, Gap, Known, Places, places_read
from bob.observe.torn_courses import TornCourses
from observe.test_courses import Explorer

BLOCKS = 6
STATES = [np.array(each, dtype=np.int32) for each in product((0, 1), repeat=BLOCKS + 1)]
"""The log, and then the blocks: 0 is old and 1 is new."""


def recover(state: Contents, stubborn: frozenset[int]) -> tuple[list[Places], int, Left]:
    """Without a log it reads nothing more; else it reads each block, and all but the ``stubborn`` ones are new then."""
    log, *blocks = state.tolist()
    read = [np.array([place], dtype=np.intp) for place in range(1 + BLOCKS * log)]
    after = [(number, int(bool(old or (log and number not in stubborn)))) for number, old in enumerate(blocks)]
    outcome = sum(1 << number for number, new in after if new == 0) if log else 1000
    return read, outcome, Left(frozenset(after), frozenset(), frozenset())


def mounts(states: Sequence[Contents], stubborn: frozenset[int]) -> int:
    """How many are mounted of ``states``; each that was predicted is predicted right."""
    known, mounted = Known(), 0
    for state in states:
        read, outcome, left = recover(state, stubborn)
        found = known.find(state)
        if isinstance(found, Gap):
            mounted += 1
            known.add(state, read, outcome, left)
            assert known.find(state) == outcome
        else:
            assert found == outcome
    return mounted


def test_one_mount_for_each_block_that_is_forgotten() -> None:
    assert mounts(STATES, frozenset()) == BLOCKS + 2  # one without the log, one with it, one for each block


def test_blocks_that_stay_as_they_are_take_a_mount_for_each_subset() -> None:
    assert mounts(STATES, frozenset(range(BLOCKS))) == 2**BLOCKS + 1
    assert mounts(STATES, frozenset({0, 3})) <= 4 * (BLOCKS - 2 + 1) + 1


@given(st.permutations(range(len(STATES))), st.frozensets(st.integers(0, BLOCKS - 1)))
def test_no_order_makes_a_wrong_prediction(order: list[int], stubborn: frozenset[int]) -> None:
    assert mounts([STATES[number] for number in order], stubborn) <= 2**BLOCKS + 1


def test_what_was_written_elsewhere_must_be_the_same_and_what_was_written_last_need_not() -> None:
    one = Left(frozenset({(1, 7), (2, 8)}), frozenset({2}), frozenset({(800, 8)}))
    assert one.is_alike(Left(frozenset({(1, 7), (2, 9)}), frozenset({2, 3}), frozenset({(800, 8)})))
    assert not one.is_alike(Left(frozenset({(1, 7), (2, 9)}), frozenset(), frozenset({(800, 8)})))
    assert not one.is_alike(Left(frozenset({(1, 7), (2, 8), (3, 9)}), frozenset({2}), frozenset({(800, 8)})))
    assert not one.is_alike(Left(frozenset({(1, 7), (2, 8)}), frozenset({2}), frozenset()))


class Forgetful(Explorer):
    """A recovery that reads the first sector that differs, and then all others if there is something in it; these it
    makes what they have to be by that first one."""

    def outcome(self, state: CrashState) -> tuple[int, list[Access]]:
        first, *_ = contents = self.composer.contents(state).tolist() or [0]
        stretches = Stretches(self.composer)
        reads = [Access(True, sector, count, place) for place, (sector, count) in enumerate(stretches.runs)]
        begin = Access(True, int(self.composer.sectors[0]), 1, -1) if contents and reads else None
        return first % 3, ([begin] if begin else []) + (reads if first else [])

    def learn(self, state: CrashState) -> None:
        outcome, accesses = self.outcome(state)
        contents = self.composer.contents(state)
        left = Left(frozenset({(0, outcome)}), frozenset(), frozenset())
        self.known.add(contents, places_read(self.composer.sectors, accesses), outcome, left)

    def mount(self, gap: Gap) -> None:
        self.learn(self.legal.some(self.courses.open[gap][0]))
        self.mounts += 1
        self.courses.reopen(gap)


@settings(max_examples=150, deadline=None)
@given(cases(), st.integers(1, 5), st.integers(1, 20))
def test_every_state_is_settled_where_recovery_forgets(case: Case, most_open: int, steps: int) -> None:
    explorer = Forgetful(case, 0, 0)
    explorer.run(2000, most_open, steps)
    assert explorer.courses.is_complete
    outcomes = Counter(
        explorer.outcome(settled(explorer.views, mask(kept)))[0] for kept in legal_writes(case.trace, case.model)
    )
    told: Counter[int] = Counter()
    for course in explorer.courses.settled:
        told[course.outcome] += course.states
    assert told == outcomes
    parts = Parts(case.trace, explorer.points, case.model)
    for course in TornCourses(parts, explorer.composer).known(explorer.known):
        assert explorer.outcome(parts.legal.sample(course.cube, Random(0)))[0] == course.outcome


@settings(max_examples=100, deadline=None)
@given(cases())
def test_stretches_are_where_one_set_of_writes_lands(case: Case) -> None:
    explorer = Explorer(case, 0, 0)
    composer, stretches = explorer.composer, Stretches(explorer.composer)
    layers = dict(zip(composer.sectors.tolist(), composer.layers, strict=True))
    covered = [sector for first, count in stretches.runs for sector in range(first, first + count)]
    assert covered == composer.sectors[stretches.covered].tolist()
    for first, count in stretches.runs:
        assert count <= LONGEST
        assert len({tuple(layer.write for layer in layers[sector]) for sector in range(first, first + count)}) == 1


def test_what_was_written_is_told_by_stretches() -> None:
    case = Case(journal(1, 2), DeviceModel(), bytes(512 * 1024))
    stretches = Stretches(Explorer(case, 0, 0).composer)
    (first, count), *_ = stretches.runs
    accesses = [Access(False, first, 1, 0), Access(True, 5000, 8, 1), Access(False, 9000, 8, 2)]
    assert stretches.left([(0, 1)], accesses) == Left(frozenset({(0, 1)}), frozenset(), frozenset({(9000, 8)}))
    accesses.append(Access(False, first + count - 1, 8, 3))
    assert stretches.left([], accesses).late >= {0}
