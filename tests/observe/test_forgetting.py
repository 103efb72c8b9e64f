"""Recovery that brings each block up to date, whatever it was: one mount for each block, not one for each subset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice, permutations, product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bob.crash.device import DeviceModel
from bob.crash.drafts import mask, settled
from bob.crash.state import CrashState
from bob.crash.units import WriteUnits
from bob.observe.accesses import Access
from bob.observe.leftovers import LONGEST, Leftovers, Stretches
from bob.observe.predict import Contents, Contradiction, Gap, Indexes, ReadTree, places_read
from bob.observe.torn_courses import TornCourses
from bob.trace.model import DeviceWrite
from crash.brute import legal_writes
from crash.traces import Case, at, cases, journal, trace_of
from observe.test_courses import Explorer

BLOCKS = 6
STATES = [np.array(each, dtype=np.int32) for each in product((0, 1), repeat=BLOCKS + 1)]
"""The log, and then the blocks: 0 is old and 1 is new."""


def recover(state: Contents, stubborn: frozenset[int]) -> tuple[list[Indexes], int, Leftovers]:
    """Without a log it reads nothing more; else it reads each block, and all but the ``stubborn`` ones are new then."""
    log, *blocks = state.tolist()
    read = [np.array([place], dtype=np.intp) for place in range(1 + BLOCKS * log)]
    after = [(number, int(bool(old or (log and number not in stubborn)))) for number, old in enumerate(blocks)]
    outcome = sum(1 << number for number, new in after if new == 0) if log else 1000
    return read, outcome, Leftovers(frozenset(after), frozenset(), frozenset())


def mounts(states: Sequence[Contents], stubborn: frozenset[int]) -> int:
    """How many are mounted of ``states``; each that was predicted is predicted right."""
    known, mounted, learnt = ReadTree(), 0, []
    for state in states:
        read, outcome, left = recover(state, stubborn)
        found = known.find(state)
        if isinstance(found, Gap):
            mounted += 1
            known.add(state, read, outcome, left)
            learnt.append((state, outcome))
            assert known.find(state) == outcome
        else:
            assert found == outcome
    assert all(known.find(state) == outcome for state, outcome in learnt), "nothing is lost by forgetting"
    return mounted


def test_one_mount_for_each_block_that_is_forgotten() -> None:
    assert mounts(STATES, frozenset()) == BLOCKS + 2  # one without the log, one with it, one for each block


def test_blocks_that_stay_as_they_are_take_a_mount_for_each_subset() -> None:
    assert mounts(STATES, frozenset(range(BLOCKS))) == 2**BLOCKS + 1
    assert mounts(STATES, frozenset({0, 3})) <= 4 * (BLOCKS - 2 + 1) + 1


@given(st.permutations(range(len(STATES))), st.frozensets(st.integers(0, BLOCKS - 1)))
def test_no_order_makes_a_wrong_prediction(order: list[int], stubborn: frozenset[int]) -> None:
    assert mounts([STATES[number] for number in order], stubborn) <= 2**BLOCKS + 1


def learnt_of(
    rows: Sequence[tuple[list[int], list[list[int]], int, int]], able: Sequence[bool] | None = None
) -> ReadTree:
    """What is known after states with these contents: what each read, its outcome, and which content it left."""
    known = ReadTree(None if able is None else np.array(able))
    for contents, read, outcome, left in rows:
        places = [np.array(each, dtype=np.intp) for each in read]
        left_behind = Leftovers(frozenset({(0, left)}), frozenset(), frozenset())
        known.add(np.array(contents, dtype=np.int32), places, outcome, left_behind)
    return known


def found_of(known: ReadTree, *contents: int) -> int | None:
    found = known.find(np.array(contents, dtype=np.int32))
    return None if isinstance(found, Gap) else found


def test_what_differs_in_the_end_in_anything_is_not_forgotten() -> None:
    first = ([0, 0, 0], [[0], [1]], 1, 7)
    alike = learnt_of([first, ([1, 0, 0], [[0], [1]], 1, 7), ([0, 1, 0], [[0], [1]], 2, 7)])
    assert found_of(alike, 1, 1, 0) == 2, "what was read first was forgotten"
    outcome = learnt_of([first, ([1, 0, 0], [[0], [1]], 3, 7), ([0, 1, 0], [[0], [1]], 2, 7)])
    assert (found_of(outcome, 1, 0, 0), found_of(outcome, 1, 1, 0)) == (3, None)
    left = learnt_of([first, ([1, 0, 0], [[0], [1]], 1, 8), ([0, 1, 0], [[0], [1]], 2, 7)])
    assert (found_of(left, 1, 0, 0), found_of(left, 1, 1, 0)) == (1, None)
    elsewhere = learnt_of([first, ([1, 0, 0], [[0], [2]], 1, 7), ([0, 1, 0], [[0], [1]], 2, 7)])
    assert (found_of(elsewhere, 1, 0, 0), found_of(elsewhere, 1, 1, 0)) == (1, 1)


def test_what_was_learnt_on_a_way_that_is_forgotten_is_still_known() -> None:
    read = [[0], [1]]
    known = learnt_of([([0, 0], read, 1, 7), ([1, 5], read, 3, 9), ([1, 6], read, 4, 10), ([0, 5], read, 3, 9)])
    assert known.forgets
    assert [found_of(known, 1, other) for other in (0, 5, 6)] == [1, 3, 4]


def test_what_cannot_be_looked_at_is_not_forgotten() -> None:
    rows = [
        ([0, 0, 0], [[0, 1], [2]], 1, 7),
        ([1, 1, 0], [[0, 1], [2]], 1, 7),
        ([0, 0, 1], [[0, 1], [2]], 2, 7),
    ]
    assert found_of(learnt_of(rows, [True, True, True]), 1, 1, 1) == 2
    for able in ([False, False, True], [False, True, True], [True, False, True]):
        assert found_of(learnt_of(rows, able), 1, 1, 1) is None


def test_long_stretches_are_left_alone() -> None:
    sizes = [LONGEST + 1, LONGEST]
    writes = [
        DeviceWrite(number, 100 * number, b"new!" * 128 * size, at(2 + number), at(6 + number))
        for number, size in enumerate(sizes)
    ]
    case = Case(trace_of(writes, [], 1, 20, (200,)), DeviceModel(), bytes(200 * 512))
    stretches = Stretches(Explorer(case, 0, 0).composer)
    assert stretches.runs == [(100, LONGEST)]
    assert stretches.forgettable.tolist() == [False] * (LONGEST + 1) + [True] * LONGEST


@pytest.mark.parametrize(
    ("exempt", "forgettable"),
    [
        (range(0), "11"),
        (range(100, 104), "01"),
        (range(101, 102), "01"),
        (range(99, 100), "11"),
        (range(104, 200), "11"),
        (range(90, 400), "00"),
    ],
)
def test_a_part_of_the_log_is_not_forgotten(exempt: range, forgettable: str) -> None:
    """The header of a log record and its body: a body of before makes no difference without the header, and all with
    it. (On xfs: `write; fdatasync` of a file with an attribute; what was seen without the header was held of all.)"""
    writes = [DeviceWrite(n, 100 * (n + 1), b"new!" * 128 * 4, at(2 + n), at(6 + n)) for n in (0, 1)]
    case = Case(trace_of(writes, [], 1, 20, (400,)), DeviceModel(), bytes(400 * 512))
    stretches = Stretches(Explorer(case, 0, 0).composer, exempt)
    assert stretches.forgettable.tolist() == [one == "1" for one in forgettable for _sector in range(4)]


@pytest.mark.parametrize("told", list(product((False, True), repeat=2)))
def test_where_it_is_not_known_what_was_left_behind_nothing_is_forgotten(told: tuple[bool, bool]) -> None:
    known, left = ReadTree(), Leftovers(frozenset(), frozenset(), frozenset())
    for content, is_told in enumerate(told):
        known.add(np.array([content], dtype=np.int32), [np.array([0])], 7, left if is_told else None)
    assert known.forgets is all(told)


def test_what_was_written_elsewhere_must_be_the_same_and_what_was_written_last_need_not() -> None:
    elsewhere = frozenset({(800, 8, "a")})
    one = Leftovers(frozenset({(1, 7), (2, 8)}), frozenset({2}), elsewhere)
    assert one.is_alike(Leftovers(frozenset({(1, 7), (2, 9)}), frozenset({2, 3}), elsewhere))
    assert not one.is_alike(Leftovers(frozenset({(1, 7), (2, 9)}), frozenset(), elsewhere))
    assert not one.is_alike(Leftovers(frozenset({(1, 7), (2, 8), (3, 9)}), frozenset({2}), elsewhere))
    assert not one.is_alike(Leftovers(frozenset({(1, 7), (2, 8), (3, 9)}), frozenset({2, 3}), elsewhere)), (
        "late in both"
    )
    assert not one.is_alike(Leftovers(frozenset({(1, 7), (2, 8)}), frozenset({2}), frozenset()))
    assert not one.is_alike(Leftovers(frozenset({(1, 7), (2, 8)}), frozenset({2}), frozenset({(800, 8, "b")})))


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
        left = Leftovers(frozenset({(0, outcome)}), frozenset(), frozenset())
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
    parts = WriteUnits(case.trace, explorer.points, case.model)
    for course in TornCourses(parts, explorer.composer).known(explorer.known):
        assert explorer.outcome(parts.legal.sample(course.cube, Random(0)))[0] == course.outcome


@settings(max_examples=100, deadline=None)
@given(cases())
def test_stretches_are_where_one_set_of_writes_lands(case: Case) -> None:
    explorer = Explorer(case, 0, 0)
    composer, stretches = explorer.composer, Stretches(explorer.composer)
    layers = dict(zip(composer.sectors.tolist(), composer.layers, strict=True))
    covered = [sector for first, count in stretches.runs for sector in range(first, first + count)]
    assert covered == composer.sectors[stretches.forgettable].tolist()
    for first, count in stretches.runs:
        assert count <= LONGEST
        assert len({tuple(layer.write for layer in layers[sector]) for sector in range(first, first + count)}) == 1


def test_what_was_written_is_told_by_stretches() -> None:
    case = Case(journal(1, 2), DeviceModel(), bytes(512 * 1024))
    composer = Explorer(case, 0, 0).composer
    (first, count), *_ = Stretches(composer).runs
    accesses = [Access(False, first, 1, 0), Access(True, 5000, 8, 1), Access(False, 9000, 8, 2)]
    elsewhere = [(9000, 8, "what is there")]
    late = [*accesses, Access(False, first + count - 1, 8, 3)]

    nowhere = Stretches(composer)
    assert nowhere.left([(0, 1)], elsewhere, accesses) == Leftovers(
        frozenset({(0, 1)}), frozenset(), frozenset({(9000, 8, "what is there")})
    )
    assert not nowhere.left([], elsewhere, late).late, "what is written late is evidence, but in the log"

    in_log = Stretches(composer, range(first, 9008))
    assert in_log.left([(0, 1)], [], accesses) == Leftovers(
        frozenset({(0, 1)}), frozenset(), frozenset({(9000, 8, "")})
    )
    assert in_log.left([], [], late).late >= {0}
    assert not Stretches(composer, range(first + 1, 9007)).left([], [], late).late >= {0}, "a part of it is outside"
    assert Stretches(composer, range(first, 9007)).left([], [], accesses).written == frozenset()


THREE = [tuple(each) for each in product((0, 1), repeat=3)]
"""Three sectors, old (0) or new (1), one after the other with room between them."""
SPREAD = [0, 8, 16]
Made = tuple[tuple[int, ...], str]
"""A recovery that is made up: what it makes of an old and of a new sector, for each (2 bits), and which of the eight
results have something to show (8 bits); and where it writes: ``early`` and ``late`` in place, ``beside``, or nowhere
but in the log."""


class ThreeSectors:
    """Stretches of three sectors, one by one, as a session tells of them."""

    def __init__(self) -> None:
        writes = [
            DeviceWrite(number, sector, b"new!" * 128, at(2 + number), at(6 + number))
            for number, sector in enumerate(SPREAD)
        ]
        trace = trace_of(writes, [], 1, 20, (64,))
        self.explorer = Explorer(Case(trace, DeviceModel(), bytes(64 * 512)), 0, 0)
        self.stretches = Stretches(self.explorer.composer)
        assert [first for first, _count in self.stretches.runs] == SPREAD


ALL_THREE = ThreeSectors()


@lru_cache(maxsize=16)
def recover_three(made: Made, state: tuple[int, ...]) -> tuple[list[Indexes], int, Leftovers]:
    """Reads all three, and makes of each by itself what it makes of such a one; what is found follows from these."""
    (*becomes, shows), where = made
    after = [of >> old & 1 for of, old in zip(becomes, state, strict=True)]
    outcome = shows >> sum(new << number for number, new in enumerate(after)) & 1
    reads = [Access(True, sector, 1, number) for number, sector in enumerate(SPREAD)]
    room = [sector + 32 if where == "beside" else sector for sector in SPREAD]
    writes = [Access(False, sector, 1, 9) for sector in room]
    look = [Access(True, 60, 1, 20)]
    in_place = where != "beside"
    left = ALL_THREE.stretches.left(
        [(number, new) for number, new in enumerate(after if in_place else state) if new],
        [] if in_place else [(sector, 1, str(new)) for sector, new in zip(room, after, strict=True)],
        reads + (look + writes if where != "early" else writes + look),
    )
    return places_read(ALL_THREE.explorer.composer.sectors, reads), outcome, left


def wrong_predictions(made: Made, order: Sequence[int]) -> int:
    """How many of the eight states are predicted wrongly if they come in this order; 0 where that is noticed."""
    known, wrong = ReadTree(), 0
    recovered = [recover_three(made, state) for state in THREE]
    for number in order:
        read, outcome, left = recovered[number]
        found = known.find(NUMBERED[number])
        if isinstance(found, Gap):
            try:
                known.add(NUMBERED[number], read, outcome, left)
            except Contradiction:
                return 0
        else:
            wrong += found != outcome
    return wrong


NUMBERED = [np.array(each, dtype=np.int32) for each in THREE]
KEPT, RENEWED, SPOILT = 0b10, 0b11, 0b00


@settings(max_examples=400, deadline=None)
@given(
    st.tuples(*[st.integers(0, 3)] * 3, st.integers(0, 255)),
    st.sampled_from(["early", "late", "beside"]),
    st.permutations(range(8)),
)
def test_three_sectors_of_which_each_is_recovered_by_itself(
    becomes: tuple[int, ...], where: str, order: list[int]
) -> None:
    assert wrong_predictions((becomes, where), order) == 0


@pytest.mark.parametrize("where", ["early", "late", "beside"])
def test_three_sectors_that_stay_as_they_are_whatever_comes_first(where: str) -> None:
    """All three must be new for something to show: two of them make no difference to what is found, and show only in
    what is left, however late that is written and wherever."""
    made = ((KEPT, KEPT, KEPT, 1 << 7), where)
    for first in permutations(range(8), 4):
        rest = [number for number in range(8) if number not in first]
        assert wrong_predictions(made, [*first, *rest]) == wrong_predictions(made, [*first, *rest[::-1]]) == 0


def test_what_is_waived_in_the_log_only_would_be_missed_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same where all the disk counts as the log: this is why it must not be."""
    made = ((KEPT, KEPT, KEPT, 1 << 7), "late")
    monkeypatch.setattr(ALL_THREE.stretches, "exempt", range(64))
    recover_three.cache_clear()
    missed = sum(wrong_predictions(made, order) > 0 for order in islice(permutations(range(8)), 0, None, 40))
    recover_three.cache_clear()
    assert missed > 200
