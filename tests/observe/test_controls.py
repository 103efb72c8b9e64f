"""Controls of predictions, against recoveries that depend on what nobody saw them read: always, in one course of a few,
or in torn states only. What is predicted wrongly is noticed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from bob.crash.cubes import Cube
from bob.crash.device import DeviceModel
from bob.crash.image import ByteRun
from bob.crash.plan import Plan
from bob.crash.state import CrashState, departure
from bob.observe import controls, torn_courses
from bob.observe.accesses import Access
from bob.observe.controls import LEAST, Controls, Prediction, Reservoir
from bob.observe.effort import Effort
from bob.observe.leftovers import Leftovers
from bob.observe.observation import OutcomeTable
from bob.observe.predict import Contents, Contradiction, Gap, ReadNode, ReadTree
from bob.observe.rounds import Division, Misprediction, Rounds, StateCounts
from bob.observe.session import MountedState
from bob.observe.torn_courses import TornCourses
from bob.trace.base import Base
from bob.trace.model import DeviceWrite, Flush
from crash.traces import at, trace_of
from samples_of_runs import packed

SECTORS = 64
A, B, C, D, LONG = 0, 2, 4, 6, range(16, 24)
"""What the writes touch: four of them a sector each, and one eight."""
Device = dict[int, bool]
"""Which sectors are new."""
Recovery = Callable[[Device], tuple[list[int], int]]
"""What is told to be read, and the outcome."""


def plan(model: DeviceModel = DeviceModel()) -> Plan:  # noqa: B008
    places = [(A, 1), (B, 1), (C, 1), (D, 1), (LONG.start, len(LONG))]
    writes = [
        DeviceWrite(number, sector, b"new!" * 128 * count, at(2 + number), at(10 + number))
        for number, (sector, count) in enumerate(places)
    ]
    base = Base("b", SECTORS * 512, packed([(0, bytes(SECTORS * 512))]), "", "")
    return Plan(trace_of(writes, [], 1, 30, (SECTORS,)), base, model)


class MadeUp:
    """In place of a session: recovers by a function. Outcomes that are ``refused`` do not mount."""

    forgettable = None
    on_host: Recovery | None = None
    """How the host recovers, if it does."""

    def __init__(self, recovery: Recovery, *, forgets: bool = False, refused: frozenset[int] = frozenset()) -> None:
        self.forgets = forgets
        self.findings = OutcomeTable()
        self.mounts: list[Device] = []
        self.left: Callable[[Device], Leftovers] = lambda _device: Leftovers(frozenset(), frozenset(), frozenset())
        self._recovery, self._refused = recovery, refused
        self._numbers: dict[str, int] = {}
        self._repaired: set[int] = set()

    def mount(
        self, deltas: Sequence[Sequence[ByteRun]], _payload: bytes, *, audit: bool = True, in_guest: bool = False
    ) -> list[MountedState]:
        del audit
        if self.on_host is None or in_guest:
            return [self._mount(delta) for delta in deltas]
        guests, self._recovery = self._recovery, self.on_host
        try:
            return [replace(self._mount(delta), on_host=True) for delta in deltas]
        finally:
            self._recovery = guests

    def _mount(self, delta: Sequence[ByteRun]) -> MountedState:
        new = {sector + offset for sector, _source, count in delta for offset in range(count)}
        device = {sector: sector in new for sector in range(SECTORS)}
        self.mounts.append(device)
        read, outcome = self._recovery(device)
        found = {"error": None, "repaired": False, "tree": {f"/{outcome}": {"kind": "file"}}}
        if outcome in self._refused:
            found |= {"error": f"no {outcome}", "repaired": outcome not in self._repaired}
            self._repaired.add(outcome)
        text = json.dumps(found)
        number = self._numbers.setdefault(text, len(self._numbers))
        if number == len(self.findings.found):
            self.findings.found.append(text)
        accesses = tuple(Access(True, sector, 1, place) for place, sector in enumerate(read))
        return MountedState(number, accesses, self.left(device) if self.forgets else None)


class Remembering(Rounds):
    """Has what was divided and counted last."""

    division = Division()
    counts = StateCounts()

    def divide(self) -> Division:
        self.division = super().divide()
        return self.division

    def count(self, division: Division) -> StateCounts:
        self.counts = super().count(division)
        return self.counts


def rounds(session: MadeUp, made: Plan, seed: int) -> Remembering:
    return Remembering(session, made, Effort(100, seed), int)  # type: ignore[arg-type]


def by_singles(session: MadeUp, seed: int, *, torn: bool = False) -> Remembering:
    made = plan()
    found = rounds(session, made, seed)
    found.observe([candidate.state for candidate in made.search(60, seed, torn=torn)])
    found.settle()
    return found


def by_courses(session: MadeUp, seed: int) -> Remembering:
    found = rounds(session, plan(), seed)
    found.divide()
    found.settle()
    return found


def by_torn_courses(session: MadeUp, seed: int) -> Remembering:
    found = rounds(session, plan(), seed)
    found.divide()
    found.controls.chosen.clear()  # those of whole writes: what is left are the controls of what is counted
    found.count(found.division)
    found.settle()
    return found


def by_all(session: MadeUp, seed: int) -> Remembering:
    """As a workload is explored."""
    made = plan()
    found = rounds(session, made, seed)
    found.observe([candidate.state for candidate in made.search(50, seed, torn=False)])
    found.divide()
    found.observe([candidate.state for candidate in made.search(50, seed, torn=True)])
    found.count(found.division)
    found.settle()
    return found


WAYS = {"singles": by_singles, "courses": by_courses, "torn courses": by_torn_courses, "all": by_all}


def honest(device: Device) -> tuple[list[int], int]:
    """Four courses, each with an outcome of its own."""
    return [A, B], device[A] + 2 * device[B]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(5))
def test_what_is_predicted_rightly_is_believed(way: str, seed: int) -> None:
    session = MadeUp(honest)
    found = WAYS[way](session, seed)
    assert found.mounts.outcomes.keys() == set(range(len(found.ledger.states)))
    assert found.mounts.mounted >= set(found.ledger.easiest()), "what witnesses are made of"
    assert len(session.mounts) <= 4 + 4 + (4 if way == "all" else 2) * LEAST


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(5))
def test_a_host_that_recovers_as_the_guest_is_believed(way: str, seed: int) -> None:
    session = MadeUp(honest)
    session.on_host = honest
    found = WAYS[way](session, seed)
    assert found.mounts.outcomes.keys() == set(range(len(found.ledger.states)))
    assert not found.mounts.on_host


def test_evidence_that_only_the_host_recovered_is_controlled() -> None:
    """However rarely the host is wrong: here about the last of 60 states, which no sample may find."""
    session, made = MadeUp(lambda device: ([*range(SECTORS)], device[A])), plan()
    session.on_host = session._recovery
    found = rounds(session, made, 1)
    found.observe([candidate.state for candidate in made.search(60, 1, torn=False)])
    found.settle()
    wrong = max(found.mounts.only_on_host)
    before = len(session.mounts)
    found.control([])
    assert len(session.mounts) == before
    found.ledger.found[wrong] = 1 - found.ledger.found[wrong]  # as if the host had said so
    with pytest.raises(Misprediction, match="the file system's check on the host"):
        found.control([wrong])
    assert session.mounts[before:] == [device_of(found.ledger.states[wrong], made)]
    assert wrong not in found.mounts.only_on_host, "a guest has recovered it"


def device_of(state: CrashState, made: Plan) -> Device:
    new = {sector + offset for sector, _source, count in made.composer.delta(state) for offset in range(count)}
    return {sector: sector in new for sector in range(SECTORS)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(5))
def test_a_host_that_recovers_otherwise_is_noticed_and_not_believed(way: str, seed: int) -> None:
    session = MadeUp(honest)
    session.on_host = lambda device: (honest(device)[0], honest(device)[1] + 4)
    made = plan()
    found = rounds(session, made, seed)
    found.observe([candidate.state for candidate in made.search(60, seed, torn=False)])
    with pytest.raises(Misprediction, match="the file system's check on the host"):
        found.settle()
    for number, outcome in found.mounts.outcomes.items():
        [name] = session.findings.observation(outcome).tree or {}
        assert name == f"/{honest(device_of(found.ledger.states[number], made))[1]}", "only guests are believed"
    with pytest.raises(Misprediction):
        again = MadeUp(honest)
        again.on_host = session.on_host
        WAYS[way](again, seed)


@pytest.mark.parametrize("way", ["courses", "all"])
@pytest.mark.parametrize("leaf", range(4))
@pytest.mark.parametrize("seed", range(5))
def test_a_lie_in_one_course_of_four_is_noticed(way: str, leaf: int, seed: int) -> None:
    def lying(device: Device) -> tuple[list[int], int]:
        read, outcome = honest(device)
        return read, outcome + 4 * (device[D] and outcome == leaf)

    with pytest.raises(Misprediction):
        WAYS[way](MadeUp(lying), seed)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("hidden", [C, D, LONG.start, LONG.stop - 1])
@pytest.mark.parametrize("seed", range(5))
def test_a_sector_that_is_never_told_is_noticed(way: str, hidden: int, seed: int) -> None:
    def forgetful(device: Device) -> tuple[list[int], int]:
        read, outcome = honest(device)
        return read, outcome + 4 * device[hidden]

    if way == "torn courses":  # three at random miss one sector in eight times, and here others are not asked
        missed = sum(is_believed(way, MadeUp(forgetful), chance) for chance in range(10 * seed, 10 * seed + 10))
        assert missed <= 5
    else:
        assert not is_believed(way, MadeUp(forgetful), seed)


def is_believed(way: str, session: MadeUp, seed: int) -> bool:
    try:
        WAYS[way](session, seed)
    except Misprediction:
        return False
    return True


def lies_when_torn(leaf: int | None) -> Recovery:
    def lying(device: Device) -> tuple[list[int], int]:
        read, outcome = honest(device)
        is_torn = len({device[sector] for sector in LONG}) > 1
        return read, outcome + 4 * (is_torn and leaf in (None, outcome))

    return lying


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("way", ["torn courses", "all"])
def test_a_lie_about_torn_states_is_noticed(way: str, seed: int) -> None:
    assert is_believed("courses", MadeUp(lies_when_torn(None)), seed), "whole states do not show it"
    assert not is_believed(way, MadeUp(lies_when_torn(None)), seed)


@pytest.mark.parametrize("seed", range(10))
def test_torn_states_that_are_tried_one_by_one_have_controls(seed: int) -> None:
    session = MadeUp(lies_when_torn(None))
    made = plan()
    found = rounds(session, made, seed)
    found.observe([candidate.state for candidate in made.search(20, seed, torn=False)])
    found.observe([candidate.state for candidate in made.search(50, seed, torn=True)])
    with pytest.raises(Misprediction):
        found.settle()


@pytest.mark.parametrize("leaf", range(4))
def test_a_lie_about_one_torn_course_is_noticed(leaf: int) -> None:
    """Of four, by torn courses alone as often as three are drawn of these, and mostly by all together."""
    noticed = Counter(
        way
        for way in ("torn courses", "all")
        for seed in range(20)
        if not is_believed(way, MadeUp(lies_when_torn(leaf)), seed)
    )
    assert noticed["torn courses"] >= 8
    assert noticed["all"] >= 15


def test_all_that_is_predicted_is_mounted_where_that_is_asked() -> None:
    made = plan()
    session = MadeUp(honest)
    found = Remembering(session, made, Effort(100, 1, audit=1), int)  # type: ignore[arg-type]
    found.observe([candidate.state for candidate in made.search(60, 1)])
    found.settle()
    assert found.mounts.mounted == set(range(len(found.ledger.states))) == found.mounts.outcomes.keys()


def with_a_commit() -> Plan:
    """A, B and C are flushed, then D becomes durable alone, as a journal's commit block does."""
    writes = [DeviceWrite(n, sector, b"new!" * 128, at(2 + n), at(10 + n)) for n, sector in enumerate((A, B, C))]
    writes.append(DeviceWrite(3, D, b"new!" * 128, at(22), at(24), fua=True))
    base = Base("b", SECTORS * 512, packed([(0, bytes(SECTORS * 512))]), "", "")
    return Plan(trace_of(writes, [Flush(at(20), at(21))], 1, 30, (SECTORS,)), base, DeviceModel())


def test_a_commit_that_is_never_told_is_noticed_where_it_became_durable_alone() -> None:
    """In the few states before it the other controls seldom find it, since they are mostly of the many others."""

    def forgetful(device: Device) -> tuple[list[int], int]:
        return [A, B], device[A] + 2 * device[B] + 4 * device[D]

    made = with_a_commit()
    assert made.bare == (CrashState(0), CrashState(1), CrashState(2))
    for is_checked in (False, True):
        found = rounds(MadeUp(forgetful), made, 1)
        states = [candidate.state for candidate in made.search(60, 1, torn=False)]
        found.observe(sorted(states, key=lambda state: state == CrashState(2)))  # so it is predicted
        found.controls.chosen.clear()
        [number] = [n for n, state in enumerate(found.ledger.states) if state == CrashState(2)]
        assert number not in found.mounts.mounted
        if is_checked:
            found.check(made.bare)
            with pytest.raises(Misprediction):
                found.settle()
        else:
            found.settle()


def test_of_very_many_states_without_anything_pending_some_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    made = plan()
    states = [candidate.state for candidate in made.search(60, 1, torn=False)]
    monkeypatch.setattr(controls, "MOST_BARE", 5)
    found = rounds(MadeUp(honest), made, 1)
    found.observe(states)
    found.controls.chosen.clear()
    found.check(states)
    assert len(found.controls.chosen) == 5
    assert not found.controls.chosen & found.mounts.mounted


def test_all_torn_courses_have_a_control_where_that_is_asked() -> None:
    made = plan()
    session = MadeUp(lambda device: ([A, B, C, D], 0))
    found = Remembering(session, made, Effort(100, 1, audit=1), int)  # type: ignore[arg-type]
    found.divide()
    found.controls.chosen.clear()
    found.count(found.division)
    assert len(found.controls.chosen) == 2**4


def test_controls_of_single_states_that_were_settled_are_none_of_courses() -> None:
    made = plan()
    found = rounds(MadeUp(honest), made, 1)
    found.observe([candidate.state for candidate in made.search(8, 1, torn=False)])
    assert len(found.controls.chosen) == LEAST
    found.settle()
    found.divide()
    assert len(found.controls.chosen - found.mounts.mounted) >= LEAST


def test_a_state_that_was_repaired_predicts_nothing() -> None:
    """Of all with one refusal the first is repaired: the others are refused, and that is their outcome."""
    session = MadeUp(honest, refused=frozenset({3}))
    found = by_singles(session, 1)
    repaired = [number for number, outcome in found.mounts.outcomes.items() if session.findings.repaired(outcome)]
    assert len(repaired) == 1
    assert repaired[0] in found.mounts.mounted
    alike = [
        number
        for number, outcome in found.mounts.outcomes.items()
        if session.findings.observation(outcome).error == "no 3" and number not in repaired
    ]
    assert len(alike) > 3, "the others are refused and not repaired"


def test_a_state_that_was_repaired_speaks_for_itself_alone() -> None:
    session = MadeUp(honest, refused=frozenset({3}))
    made = plan()
    found = rounds(session, made, 1)
    found.observe([candidate.state for candidate in made.search(20, 1, torn=False)])
    found.divide()
    found.count(found.division)
    found.settle()
    [repaired] = [number for number, outcome in found.mounts.outcomes.items() if session.findings.repaired(outcome)]
    assert found.counts.states.get(repaired, 1) == 1
    total = sum(found.counts.states.get(number, 1) for number in range(len(found.ledger.states)))
    assert total == made.nothing_explored().legal_sectors == 2 ** (4 + len(LONG))


def test_a_mounted_state_that_its_course_contradicts_is_noticed_when_it_is_counted() -> None:
    """Where recovery forgets, what is merged may no longer say of a mounted state what was seen of it."""
    session = MadeUp(honest)
    found = by_courses(session, 1)
    number = min(found.mounts.mounted)
    found.ledger.found[number] = next(
        outcome for outcome in found.ledger.found.values() if outcome != found.ledger.found[number]
    )
    with pytest.raises(Misprediction):
        found.count(found.division)


def test_two_outcomes_of_like_states_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def contradicting(*_args: object) -> None:
        raise Contradiction(0, 0)

    monkeypatch.setattr(ReadTree, "add", contradicting)
    with pytest.raises(Misprediction):
        by_singles(MadeUp(honest), 1)


@pytest.mark.parametrize("recalled", [False, True])
def test_after_a_wrong_prediction_nothing_is_believed_but_what_was_mounted_here(*, recalled: bool) -> None:
    """Neither earlier predictions, though their controls passed, nor what was recalled."""
    is_lying = False

    def recovery(device: Device) -> tuple[list[int], int]:
        _read, outcome = honest(device)
        return [A, B, C], outcome + 4 * (is_lying and device[D])

    made = plan()
    states = [candidate.state for candidate in made.search(32, 1, torn=False)]
    disks: Any = {}
    session: Any = MadeUp(recovery)
    session.recall = session.sight = lambda mounted: mounted
    if recalled:
        before = Remembering(session, made, Effort(100, 1, predicting=False), int, disks)
        before.observe(states[:16])
        before.settle()
        disks.update(before.mounts.new_disks)
    found = Remembering(session, made, Effort(100, 1), int, disks)
    found.observe(states[:16])
    found.settle()
    assert found.mounts.outcomes.keys() > found.mounts.mounted
    assert (len(found.mounts.recalled) > LEAST) is recalled
    is_lying = True
    found.observe(states[16:])
    with pytest.raises(Misprediction):
        found.settle()
    assert found.mounts.outcomes
    assert found.mounts.outcomes.keys() <= found.mounts.here


def test_what_is_checked_is_mounted_though_its_disk_was_seen_in_another_workload() -> None:
    made = plan()
    states = [candidate.state for candidate in made.search(32, 1, torn=False)]
    disks: Any = {}
    session: Any = MadeUp(honest)
    session.recall = session.sight = lambda mounted: mounted
    for again in (False, True):
        found = Remembering(session, made, Effort(100, 1, predicting=again), int, disks)
        found.observe(states)
        checks = set(found.controls.chosen)
        found.settle()
        disks.update(found.mounts.new_disks)
    assert len(disks) == len(states)
    assert len(checks) == LEAST
    assert checks <= found.mounts.here
    assert found.mounts.here < found.mounts.mounted, "others are recalled"


def test_leaves_that_were_not_checked_before_are_checked_by_torn_states() -> None:
    made = plan()
    found = rounds(MadeUp(lies_when_torn(None)), made, 1)
    found.observe([CrashState(len(made.points) - 1, kept) for kept in ((), (0,), (1,), (0, 1))])
    assert not found.controls.chosen
    found.count(found.division)
    assert found.controls.chosen
    with pytest.raises(Misprediction):
        found.settle()


def test_a_state_that_is_torn_inside_a_sector_is_counted_beside_those_that_are_not() -> None:
    """It is none of those that are torn between sectors, and may speak for them."""
    made = plan(DeviceModel(atomic_write_bytes=256))
    inside = CrashState(len(made.points) - 1, (), ((4, ((1, 2),)),))
    assert not made.parts.separate(inside)
    found = rounds(MadeUp(honest), made, 1)
    found.observe([inside])
    found.count(found.division)
    assert found.counts.states[0] == 1 + 2 ** (2 + len(LONG))
    assert found.counts.whole[0] == 2**3


def test_where_recovery_forgets_whole_states_are_counted_though_not_all_torn_ones_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torn_courses, "MOST_CUBES", 1)
    session = MadeUp(lambda _device: ([A, B, C, D, *LONG], 0), forgets=True)
    found = by_all(session, 1)
    assert len(list(TornCourses(found._plan.parts, found._plan.composer).known(found.known))) == 1
    assert found.division.is_complete
    assert sum(found.counts.whole.get(number, 1) for number in range(len(found.ledger.states))) == 2**5
    for number, whole in found.counts.whole.items():
        assert 0 <= whole <= found.counts.states[number]


@pytest.mark.parametrize("is_right", [True, False])
def test_what_was_merged_with_other_knowledge_since_is_mounted(
    monkeypatch: pytest.MonkeyPatch, *, is_right: bool
) -> None:
    """Of a course that was settled, and of a state that was predicted, nothing may be known any more in the end."""
    lost: list[int] = []

    def recovery(device: Device) -> tuple[list[int], int]:
        read, outcome = honest(device)
        return read, outcome if is_right or not lost else outcome + 100

    def leaf(known: ReadTree, contents: Contents, gap: Gap | None = None) -> ReadNode | Gap:
        del contents, gap
        lost.append(1)
        return Gap(known.root, b"lost")

    session = MadeUp(recovery)
    found = rounds(session, plan(), 1)
    monkeypatch.setattr(ReadTree, "leaf", leaf)
    found.divide()
    mounted = len(session.mounts)
    several = [course for course in found.division.courses if course.states > 1]
    assert len(found.controls.chosen) >= len(several) > 0
    if is_right:
        found.settle()
        assert len(session.mounts) > mounted
    else:
        with pytest.raises(Misprediction):
            found.settle()


def test_all_torn_states_are_counted_of_what_is_forgotten() -> None:
    found = by_all(MadeUp(lambda _device: ([A, B, C, D], 0), forgets=True), 1)
    assert sum(found.counts.states.get(number, 1) for number in range(len(found.ledger.states))) == 2 ** (4 + len(LONG))


@pytest.mark.parametrize("seed", range(5))
def test_the_easiest_of_all_states_that_were_divided_explains_an_outcome(seed: int) -> None:
    session, made = MadeUp(lambda device: ([D, C, B, A], device[A] ^ device[B] ^ device[C])), plan()
    found = rounds(session, made, seed)
    found.divide()
    found.count(found.division)
    for course in found.division.courses:
        easiest = found.ledger.states[found.ledger.speaker(course.outcome)]
        assert departure(easiest) <= departure(made.legal.some(course.cube))
    found.controls.chosen.clear()
    found.settle()
    assert found.mounts.mounted >= set(found.ledger.easiest()), "it is mounted, for a witness is made of it"


def test_of_outcomes_and_leaves_those_that_were_checked_least_come_first() -> None:
    for seed in range(20):
        samples = Controls(Effort(1, seed, audit=0.01))
        offered = [Prediction(f"{leaf}", leaf, leaf // 3, leaf) for leaf in range(9)]
        first = samples.take(offered, 3)
        assert {one.outcome for one in first} == {0, 1, 2}
        assert [one.distance % 3 for one in first] == [2, 2, 2], "the farthest of each"
        rest = samples.take(offered, 6)
        assert not {one.leaf for one in first} & {one.leaf for one in rest}
        assert samples.leaves.keys() == set(range(9))
        assert len(samples.take(offered, 20)) == 9
        alike = samples.take([Prediction(f"{number}", 0, 0) for number in range(5)], 4)
        assert len({one.item for one in alike}) == 4, "none is taken twice"


@pytest.mark.parametrize(
    ("audit", "count", "wanted"), [(0.01, 0, 0), (0.01, 2, 2), (0.01, 200, 3), (0.1, 95, 10), (1, 7, 7)]
)
def test_at_least_three_of_each_kind_and_all_where_that_is_asked(audit: float, count: int, wanted: int) -> None:
    assert Controls(Effort(1, 0, audit=audit)).wanted(count) == wanted


def test_a_reservoir_keeps_some_of_each_outcome_each_as_likely() -> None:
    found = np.zeros(40, dtype=np.int64)
    for seed in range(600):
        reservoir = Reservoir[int](3, Random(seed))
        for number in range(40):
            reservoir.offer(number >= 38, number)
        assert len(reservoir.kept) == 3 + 2
        found[reservoir.kept] += 1
    assert found[38:].tolist() == [600, 600]
    assert found[:38].min() > 15
    assert found[:38].max() < 90


def test_the_farthest_state_has_what_the_other_has_not() -> None:
    made = plan()
    assert made.medium(made.legal.farthest(Cube(), 0b00101)) == 0b11010
    assert made.medium(made.legal.farthest(Cube(0b1, 0b10), 0b00101)) == 0b11001
