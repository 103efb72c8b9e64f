"""Mixtures of old and new sectors, against recovering every legal state of small made-up disks with files. What recovers
them passes data through, or checks it; and where it lies about a mixture, a control fails."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bob.crash.device import DeviceModel
from bob.crash.image import ByteRun
from bob.crash.plan import Plan
from bob.crash.state import CrashState
from bob.observe import mixtures
from bob.observe import rounds as module
from bob.observe.accesses import Access
from bob.observe.effort import Effort
from bob.observe.mixtures import CourseEnd, Mixture, Mixtures
from bob.observe.observation import Observation, OutcomeTable
from bob.observe.observations import MixedStates
from bob.observe.predict import Gap
from bob.observe.rounds import Misprediction, Rounds, StateCounts
from bob.observe.session import MountedState
from bob.observe.unknown_torn import TornCause
from bob.trace.base import Base
from bob.trace.model import DeviceWrite, Flush
from crash.traces import Case, at, trace_of
from mediums import image_of
from samples_of_runs import packed

from .test_courses import Explorer, all_separate

SECTORS = 32
METADATA = range(4)
DATA = range(8, 20)


def old(sector: int) -> bytes:
    return f"<old sector: {sector:02}>".encode() * 32


def new(sector: int) -> bytes:
    return f"<new sector: {sector:02}>".encode() * 32


@dataclass(frozen=True)
class MadeUpFile:
    """A file with these sectors, of ``size`` bytes, if sector ``when`` is new (-1: always). ``check`` says what recovery
    makes of its sectors beside showing them: nothing; a fault unless all are new (a checksum) or alike (whole); to read
    more, if the first is new; to say whether the last is (look behind); or a lie, another outcome than these sectors make if they are mixed in some way."""

    sectors: range
    size: int
    when: int = -1
    check: str = ""


@dataclass(frozen=True)
class MadeUpDisk:
    """Writes as (first sector, sectors), flushed after each of ``flushed``; and what is on the disk."""

    writes: tuple[tuple[int, int], ...]
    flushed: frozenset[int]
    files: tuple[MadeUpFile, ...]
    order: tuple[int, ...] = tuple(METADATA)
    model: DeviceModel = DeviceModel()  # noqa: RUF009

    def plan(self) -> Plan:
        writes, flushes, time = [], [], 2
        for number, (first, count) in enumerate(self.writes):
            data = b"".join(new(sector) for sector in range(first, first + count))
            writes.append(DeviceWrite(number, first, data, at(time), at(time + 1)))
            time += 3
            if number in self.flushed:
                flushes.append(Flush(at(time), at(time + 1)))
                time += 2
        image = b"".join(map(old, range(SECTORS)))
        base = Base("b", SECTORS * 512, packed([(0, image)]), "", "")
        return Plan(trace_of(writes, flushes, 1, time, (SECTORS,)), base, self.model)

    def recover(self, image: bytes) -> tuple[str, list[int]]:
        """The outcome as it travels, with contents in place of numbers, and the sectors that are read."""

        def of(sector: int) -> bytes:
            return image[sector * 512 : (sector + 1) * 512]

        read, tree = [], dict[str, dict[str, object]]()
        there = {-1}
        for sector in self.order:
            read.append(sector)
            if of(sector) == new(sector):
                there.add(sector)
            elif sector % 2:  # after some that are old it looks no further
                break
        shown = ""
        for number, file in enumerate(self.files):
            if file.when in there:
                read += file.sectors
                content = b"".join(map(of, file.sectors))[: file.size]
                kinds = {of(sector) == new(sector) for sector in file.sectors}
                entry: dict[str, object] = {"kind": "file", "inode": number + 1, "size": file.size}
                tree[f"/f{number}"] = {**entry, "content": content.decode()}
                if (file.check == "checksum" and kinds != {True}) or (file.check == "whole" and len(kinds) > 1):
                    tree[f"/f{number}"] = {**entry, "content": "", "fault": "Input/output error"}
                if file.check == "follow" and of(file.sectors[0]) == new(file.sectors[0]):
                    read.append(METADATA[-1])
                fresh = [of(sector) == new(sector) for sector in file.sectors]
                if (
                    (file.check == "lie" and len(kinds) > 1)
                    or (file.check == "lie about two" and fresh[:2] == [True, False])
                    or (file.check == "look behind" and fresh[-1])
                    or (file.check == "lie about three" and fresh[:3] == [True, False, True])
                ):
                    shown = "torn"
        tree["/status"] = {"kind": "symlink", "target": shown}
        return json.dumps({"error": None, "repaired": False, "tree": tree}, sort_keys=True), read


class Mounting:
    """In place of a session."""

    forgettable, forgets = None, False

    def __init__(self, disk: MadeUpDisk, plan: Plan) -> None:
        self.findings = OutcomeTable()
        self.mounts = 0
        self._disk, self._base = disk, image_of(plan.base)
        self._floor = plan.composer.floor_delta()
        self._numbers: dict[str, int] = {}

    def mount(
        self, deltas: Sequence[Sequence[ByteRun]], payload: bytes, *, audit: bool = True, in_guest: bool = False
    ) -> list[MountedState]:
        del audit, in_guest
        return [self._mount(delta, payload) for delta in deltas]

    def _mount(self, delta: Sequence[ByteRun], payload: bytes) -> MountedState:
        self.mounts += 1
        image = bytearray(self._base)
        for sector, source, count in (*self._floor, *delta):
            image[sector * 512 : (sector + count) * 512] = payload[source * 512 : (source + count) * 512]
        outcome, read = self._disk.recover(bytes(image))
        if outcome not in self._numbers:
            self._numbers[outcome] = len(self._numbers)
            document = json.loads(outcome)
            for entry in document["tree"].values():
                if "content" in entry:
                    entry["content"] = [self._number(entry["content"].encode())] if entry["content"] else []
            self.findings.found.append(json.dumps(document, sort_keys=True))
        accesses = tuple(Access(True, sector, 1, number) for number, sector in enumerate(read))
        return MountedState(self._numbers[outcome], accesses)

    def _number(self, chunk: bytes) -> int:
        if chunk not in self.findings.chunks:
            self.findings.chunks.append(chunk)
        return self.findings.chunks.index(chunk)


class Exploration:
    def __init__(
        self,
        disk: MadeUpDisk,
        *,
        seed: int = 1,
        budget: int = 200,
        audit: float = 0.01,
        judges: Callable[[Observation, Observation], bool] = lambda _one, _other: True,
    ) -> None:
        self.disk, self.plan = disk, disk.plan()
        self.session = Mounting(disk, self.plan)
        effort = Effort(budget, seed, audit, mixing=judges)
        self.rounds = Rounds(self.session, self.plan, effort, int)  # type: ignore[arg-type]
        self.counts = StateCounts()
        self.before_mixing = self.after_mixing = 0

    def run(self, *, torn: int = 20) -> None:
        """Without the bounds on mixtures: these disks are so small that bob would leave them out."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module.Rounds, "_mixing_mounts", 1000)
            patch.setattr(module, "ENOUGH", 1)
            self.run_bounded(torn=torn)

    def run_bounded(self, *, torn: int = 20) -> None:
        rounds, plan = self.rounds, self.plan
        rounds.observe([candidate.state for candidate in plan.search(20, 1, torn=False)])
        division = rounds.divide()
        rounds.observe([candidate.state for candidate in plan.search(torn, 1, torn=True)])
        self.before_mixing = self.session.mounts
        rounds.mix()
        self.after_mixing = self.session.mounts
        self.counts = rounds.count(division)
        rounds.settle()

    @property
    def mixtures(self) -> Sequence[MixedStates]:
        return self.counts.mixtures

    def every(self) -> list[CrashState]:
        trace = self.plan.trace
        case = Case(trace, self.disk.model, image_of(self.plan.base))
        explorer = Explorer.__new__(Explorer)
        explorer.points = self.plan.points
        return all_separate(case, explorer)

    def outcome(self, state: CrashState) -> str:
        image = bytearray(image_of(self.plan.base))
        for sector, data in self.plan.runs(state):
            image[sector * 512 : sector * 512 + len(data)] = data
        return self.disk.recover(bytes(image))[0]

    def mixed(self, mixture: MixedStates) -> set[str]:
        """All trees that the mixture says there are, as recovery tells them."""
        first, second = (json.loads(self.outcome(self.rounds.ledger.states[row])) for row in mixture.rows[:2])
        documents = [first]
        for path, entry in first["tree"].items():
            for offset in range(0, len(entry.get("content", "")), 512):
                place = slice(offset, offset + 512)
                old_, new_ = entry["content"][place], second["tree"][path]["content"][place]
                if old_ != new_:
                    for document in tuple(documents):
                        other = json.loads(json.dumps(document))
                        content = other["tree"][path]["content"]
                        other["tree"][path]["content"] = content[:offset] + new_ + content[offset + 512 :]
                        documents.append(other)
        return {json.dumps(document, sort_keys=True) for document in documents}


@st.composite
def disks(draw: st.DrawFn) -> MadeUpDisk:
    metadata = draw(st.lists(st.sampled_from(METADATA), min_size=1, max_size=3, unique=True))
    writes = [(sector, 1) for sector in metadata]
    first = DATA.start
    for length in draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)):
        writes.append((first, length))
        first += length + draw(st.integers(0, 1))
    if draw(st.booleans()):  # the same data again, so that a sector has several writes
        writes.append((DATA.start, 1))
    files, start = [], DATA.start
    while start < min(first, DATA.stop) and len(files) < 3:
        count = draw(st.integers(1, 4))
        size = max(60, count * 512 - draw(st.sampled_from([0, 0, 100, 490, 700])))
        when = draw(st.sampled_from([-1, *METADATA]))
        files.append(MadeUpFile(range(start, start + count), size, when, draw(st.sampled_from(["", "", "checksum"]))))
        start += count
    writes = draw(st.permutations(writes))
    while sum(count for _first, count in writes) > 9:
        writes = writes[:-1]
    flushed = draw(st.frozensets(st.integers(0, len(writes) - 1), max_size=2))
    model = DeviceModel(atomic_write_bytes=draw(st.sampled_from([512, 512, 512, 1024])))
    return MadeUpDisk(tuple(writes), flushed, tuple(files), tuple(draw(st.permutations(METADATA))), model)


def check_all(found: Exploration) -> int:
    """Hold all that mixtures say against every legal state; return how many torn states only mixtures know."""
    known, composer = found.rounds.known, found.plan.composer
    unknown = [state for state in found.every() if isinstance(known.find(composer.contents(state)), Gap)]
    counting = Mixtures(known, found.plan, found.session.findings)
    taken = [(mixture, more) for mixture, _rows in found.rounds._mixtures if (more := counting.more(mixture))]
    claimed = set[CrashState]()
    for (mixture, more), told in zip(taken, found.mixtures, strict=True):
        places = np.flatnonzero(mixture.read >= 0)
        members = [
            state
            for state in unknown
            if state.torn and (composer.contents(state)[places] == mixture.read[places]).all()
        ]
        assert told.states == more == len(members)
        assert not claimed.intersection(members)
        claimed.update(members)
        trees = found.mixed(told)
        for state in members:
            assert found.outcome(state) in trees
    return len(claimed)


@settings(max_examples=300, deadline=None)
@given(disks(), st.integers(0, 100), st.integers(0, 20))
def test_what_mixtures_say_is_so_of_every_state(disk: MadeUpDisk, seed: int, torn: int) -> None:
    found = Exploration(disk, seed=seed)
    found.run(torn=torn)
    check_all(found)


def test_mixtures_are_found_of_most_made_up_disks() -> None:
    found = Counter[str]()
    for seed in range(60):
        exploration = Exploration(random_disk(seed))
        exploration.run(torn=0)
        known = check_all(exploration)
        found["mixtures"] += len(exploration.mixtures)
        found["states"] += known
    assert found["mixtures"] > 10
    assert found["states"] > 500


def random_disk(seed: int) -> MadeUpDisk:
    """Two files, of one to six sectors each, and metadata."""
    rng = Random(seed)
    first, second = rng.randint(1, 6), rng.randint(1, 3)
    middle = DATA.start + first
    writes = [(DATA.start, first), (middle, second), (0, 1)]
    rng.shuffle(writes)
    files = (
        MadeUpFile(range(DATA.start, middle), first * 512 - rng.choice([0, 200]), rng.choice([-1, 0])),
        MadeUpFile(range(middle, middle + second), second * 512, -1, rng.choice(["", "checksum"])),
    )
    return MadeUpDisk(tuple(writes), frozenset(rng.choice([[], [0], [1]])), files)


def plain(check: str = "", sectors: int = 6, behind: int = 0) -> MadeUpDisk:
    """A file of some sectors that one write changes, some of them ``behind`` its end, and a sector of metadata."""
    file = MadeUpFile(range(DATA.start, DATA.start + sectors), (sectors - behind) * 512 - (behind > 0) * 10, -1, check)
    return MadeUpDisk(((DATA.start, sectors), (0, 1), (METADATA[-1], 1)), frozenset(), (file,), (0,))


@pytest.mark.parametrize(
    ("one", "other", "apart"), [((1, -1), (1, 2), False), ((1, -1), (-1, 2), False), ((1, 0), (1, 2), True)]
)
def test_mixtures_are_apart_if_both_read_a_place_with_other_content(
    one: tuple[int, int], other: tuple[int, int], apart: bool
) -> None:
    first, second = (Mixture(CourseEnd(0, 0, np.array(read)), (), np.array(read), (), 0) for read in (one, other))
    assert first.is_apart(second) == second.is_apart(first) == apart


@pytest.mark.parametrize("behind", [0, 3])
def test_where_all_data_passes_through_every_torn_state_is_known(behind: int) -> None:
    found = Exploration(plain(sectors=8, behind=behind))
    found.run()
    check_all(found)
    known = sum(found.counts.states.values()) + sum(mixture.states for mixture in found.mixtures)
    assert known == found.plan.nothing_explored().legal_sectors == 2**10
    assert found.session.mounts < 100


@pytest.mark.parametrize("check", ["checksum", "follow", "look behind"])
def test_data_that_recovery_does_more_with_than_show_it_makes_no_mixture(check: str) -> None:
    found = Exploration(plain(check, behind=2))
    found.run(torn=0)
    assert found.mixtures == ()


@pytest.mark.parametrize("check", ["lie", "lie about two", "whole"])
@pytest.mark.parametrize("seed", range(5))
def test_a_lie_about_two_sectors_is_noticed_by_rows(check: str, seed: int) -> None:
    """A row is no prediction yet: the workload has no mixtures, and all else of it stays known."""
    found = Exploration(plain(check), seed=seed)
    found.run(torn=0)
    assert found.mixtures == ()
    assert found.rounds._is_refuted
    assert found.rounds.mounts.outcomes.keys() == set(range(len(found.rounds.ledger.states)))


@dataclass(frozen=True)
class LyingDisk(MadeUpDisk):
    """Recovery says of the first file that it is torn if its sectors are as in ``lie`` (new: True), where sector 0 and
    sector 1 are as in ``where`` (None: either). If it ``refuses``, it does not mount such a state, and repairs it."""

    lie: tuple[bool | None, ...] = ()
    where: tuple[bool | None, bool | None] = (None, None)
    refuses: bool = False

    def recover(self, image: bytes) -> tuple[str, list[int]]:
        outcome, read = super().recover(image)

        def is_like(sectors: Iterable[int], wanted: Iterable[bool | None]) -> bool:
            there = (image[sector * 512 : (sector + 1) * 512] == new(sector) for sector in sectors)
            return all(one in (None, is_new) for one, is_new in zip(wanted, there, strict=False))

        if self.lie and is_like(self.files[0].sectors, self.lie) and is_like((0, 1), self.where):
            document = json.loads(outcome)
            if self.refuses:
                document |= {"error": "Structure needs cleaning", "repaired": True}
            else:
                document["tree"]["/status"]["target"] = "torn"
            outcome = json.dumps(document, sort_keys=True)
        return outcome, read


def two_courses(lie: tuple[bool | None, ...], where: tuple[bool | None, bool | None]) -> LyingDisk:
    """A file in one write, and metadata in two: the mixtures of its data are several, with equal trees."""
    sectors = range(DATA.start, DATA.start + 8)
    return LyingDisk(
        ((DATA.start, 8), (0, 1), (1, 1)), frozenset(), (MadeUpFile(sectors, 4096),), (0, 1), lie=lie, where=where
    )


@pytest.mark.parametrize("lie", [(True, False), (False, True), (False, None, True), (None, None, True, None, False)])
@pytest.mark.parametrize("where", [(None, None), (False, False), (True, True), (True, False), (False, True)])
def test_each_mixture_has_its_own_pairs(lie: tuple[bool | None, ...], where: tuple[bool | None, bool | None]) -> None:
    """A lie in one course of recovery is noticed although other courses have the same trees and show no lie."""
    honest = Exploration(two_courses((), where))
    honest.run(torn=0)
    assert len(honest.mixtures) > 1
    for seed in range(4):
        found = Exploration(two_courses(lie, where), seed=seed)
        found.run(torn=0)
        assert found.mixtures == ()
        assert found.rounds._is_refuted


def shown_ways(found: Exploration) -> set[tuple[bool, ...]]:
    """Return in which ways the first three sectors of the file occur in the mounted states."""
    composer = found.plan.composer
    places = [composer.sectors.tolist().index(sector) for sector in range(DATA.start, DATA.start + 3)]
    states = [found.rounds.ledger.states[number] for number in found.rounds.mounts.mounted]
    return {tuple(bool(composer.contents(state)[place]) for place in places) for state in states}


def test_a_lie_that_no_row_shows_is_noticed_by_random_members() -> None:
    """Rows need not have three sectors in all ways. With ``--audit 1`` there are as many random members as rows."""
    noticed, tried = Counter[float](), Counter[float]()
    every = {tuple(bool(mask >> bit & 1) for bit in range(3)) for mask in range(8)}
    for audit in (0, 1):
        for seed in range(40):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(module.Rounds, "_member", lambda *_: None)
                rows_alone = Exploration(LyingDisk(**vars_of(plain("", 12))), seed=seed, audit=audit)
                rows_alone.run(torn=0)
            assert rows_alone.mixtures
            for lie in sorted(every - shown_ways(rows_alone))[:1]:
                tried[audit] += 1
                found = Exploration(LyingDisk(**vars_of(plain("", 12)), lie=lie), seed=seed, audit=audit)
                try:
                    found.run(torn=0)
                except Misprediction as wrong:
                    assert "has other data than the sectors of its files" in str(wrong)
                    assert found.rounds.mounts.outcomes.keys() <= found.rounds.mounts.here
                    assert found.mixtures == ()
                    noticed[audit] += 1
                else:  # after a member, other rows may follow
                    assert not found.mixtures or lie not in shown_ways(found)
    assert tried[0] == tried[1] >= 10
    assert noticed[0] >= 1
    assert noticed[1] * 2 > tried[1]


def vars_of(disk: MadeUpDisk) -> dict[str, Any]:
    return {one.name: getattr(disk, one.name) for one in fields(MadeUpDisk)}


@pytest.mark.parametrize("refuses", [False, True])
def test_states_mounted_before_are_controls_of_a_mixture(refuses: bool) -> None:
    """Smallest input: sectors 1 to 3 new, old, old, which only single torn states show, or which is repaired."""
    lie = (True, False, False)
    contradicted = 0
    for seed in range(8):
        found = Exploration(LyingDisk(**vars_of(plain("", 8)), lie=lie, refuses=refuses), seed=seed)
        try:
            found.run(torn=20)
        except Misprediction:
            assert found.mixtures == ()
            continue
        contradicted += lie in shown_ways(found)
        assert not found.mixtures or lie not in shown_ways(found)
        states = range(len(found.rounds.ledger.states))
        known = sum(found.counts.states.get(number, 1) for number in states)
        assert known + sum(one.states for one in found.mixtures) <= found.plan.nothing_explored().legal_sectors
    assert contradicted >= 4


@pytest.mark.parametrize(
    ("budget", "sectors", "finds"), [(6, 6, False), (12, 6, True), (12, 12, False), (36, 12, True)]
)
def test_mixtures_take_few_mounts(budget: int, sectors: int, finds: bool) -> None:
    """At most a sixth of the budget, and as many as all others."""
    for seed in range(8):
        found = Exploration(plain("", sectors), seed=seed, budget=budget)
        found.run_bounded(torn=20)
        assert found.after_mixing - found.before_mixing <= min(budget // 6, found.before_mixing)
        assert bool(found.mixtures) == finds
        assert finds or budget == 6 or found.rounds._left_out


def causes(found: Exploration) -> set[TornCause | None]:
    """Return the causes that mixtures give for the torn states that bob does not know."""
    known, composer = found.rounds.known, found.plan.composer
    contents = [composer.contents(state) for state in found.every() if state.torn]
    return {found.rounds._of_mixtures(one) for one in contents if isinstance(known.find(one), Gap)}


@pytest.mark.parametrize("budget", [12, 200, 10_000])
def test_rows_that_are_not_legal_are_no_matter_of_the_budget(budget: int) -> None:
    """Smallest input: two writes with a flush between them, into one file that recovery reads."""
    sectors = range(DATA.start, DATA.start + 8)
    disk = MadeUpDisk(((DATA.start, 4), (DATA.start + 4, 4)), frozenset([0]), (MadeUpFile(sectors, 4096),))
    found = Exploration(disk, budget=budget)
    found.run_bounded(torn=2)
    assert found.mixtures == ()
    assert causes(found) == {TornCause.UNTESTABLE}


def test_too_many_parts_are_no_matter_of_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixtures, "MOST_PARTS", 11)
    found = Exploration(plain("", 12), budget=10_000)
    found.run_bounded(torn=20)
    assert causes(found) == {TornCause.UNTESTABLE}
    assert causes(few_mounts()) == {TornCause.BUDGET}


def few_mounts() -> Exploration:
    """A mixture with legal rows, which would take too many mounts."""
    found = Exploration(plain("", 10), budget=12)
    found.run_bounded(torn=20)
    return found


def test_mixtures_stop_at_five_eighths_of_the_torn_states() -> None:
    found = Exploration(two_courses((), (None, None)), budget=100)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.Rounds, "_mixing_mounts", 1000)
        found.run_bounded(torn=0)
    known = (
        sum(found.counts.states.values()) - sum(found.counts.whole.values()) + sum(one.states for one in found.mixtures)
    )
    legal = found.plan.nothing_explored().legal_torn
    assert 8 * (known - found.mixtures[-1].states) < 5 * legal <= 8 * known
    everything = Exploration(two_courses((), (None, None)), budget=100)
    everything.run(torn=0)
    assert len(everything.mixtures) > len(found.mixtures)


def test_mixtures_that_no_claim_can_judge_take_the_pure_rows_alone() -> None:
    found = Exploration(plain("", 12), judges=lambda _one, _other: False)
    found.run(torn=0)
    assert found.mixtures == ()
    judged = Exploration(plain("", 12))
    judged.run(torn=0)
    assert found.session.mounts + 5 < judged.session.mounts


def test_data_that_two_files_show_makes_no_mixture() -> None:
    """Which of them a sector decides cannot be said."""
    sectors = range(DATA.start, DATA.start + 4)
    disk = MadeUpDisk(((DATA.start, 4),), frozenset(), (MadeUpFile(sectors, 2048), MadeUpFile(sectors, 2048)))
    found = Exploration(disk)
    found.run(torn=0)
    assert found.mixtures == ()
