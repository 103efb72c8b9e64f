"""Mixtures of old and new sectors, against recovering every legal state of small made-up disks with files. What recovers
them passes data through, or checks it; and where it lies about a mixture, a control fails."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bob.crash.device import DeviceModel
from bob.crash.image import ByteRun
from bob.crash.plan import Plan
from bob.crash.state import CrashState
from bob.observe.accesses import Access
from bob.observe.effort import Effort
from bob.observe.mixtures import Mixtures
from bob.observe.observation import OutcomeTable
from bob.observe.observations import MixedStates
from bob.observe.predict import Gap
from bob.observe.rounds import Misprediction, Rounds, StateCounts
from bob.observe.session import MountedState
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
    more, if the first is new; or a lie, another outcome than these sectors make if they are mixed in some way."""

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

    def mount(self, deltas: Sequence[Sequence[ByteRun]], payload: bytes, *, audit: bool = True) -> list[MountedState]:
        del audit
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
    def __init__(self, disk: MadeUpDisk, *, seed: int = 1, budget: int = 200, audit: float = 0.01) -> None:
        self.disk, self.plan = disk, disk.plan()
        self.session = Mounting(disk, self.plan)
        effort = Effort(budget, seed, audit, mixing=True)
        self.rounds = Rounds(self.session, self.plan, effort, int)  # type: ignore[arg-type]
        self.counts = StateCounts()

    def run(self, *, torn: int = 20) -> None:
        rounds, plan = self.rounds, self.plan
        rounds.observe([candidate.state for candidate in plan.search(20, 1, torn=False)])
        division = rounds.divide()
        rounds.observe([candidate.state for candidate in plan.search(torn, 1, torn=True)])
        rounds.mix()
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
        size = count * 512 - draw(st.sampled_from([0, 0, 100, 490]))
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
    claimed = 0
    for (mixture, more), told in zip(taken, found.mixtures, strict=True):
        places = np.flatnonzero(mixture.read >= 0)
        members = [
            state
            for state in unknown
            if state.torn and (composer.contents(state)[places] == mixture.read[places]).all()
        ]
        assert told.states == more == len(members)
        claimed += len(members)
        trees = found.mixed(told)
        for state in members:
            assert found.outcome(state) in trees
    assert claimed <= len(unknown)
    return claimed


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


def plain(check: str = "", sectors: int = 6) -> MadeUpDisk:
    """A file of some sectors that one write changes, and a sector of metadata."""
    file = MadeUpFile(range(DATA.start, DATA.start + sectors), sectors * 512, -1, check)
    return MadeUpDisk(((DATA.start, sectors), (0, 1), (METADATA[-1], 1)), frozenset(), (file,), (0,))


def test_where_all_data_passes_through_every_torn_state_is_known() -> None:
    found = Exploration(plain(sectors=8))
    found.run()
    check_all(found)
    known = sum(found.counts.states.values()) + sum(mixture.states for mixture in found.mixtures)
    assert known == found.plan.nothing_explored().legal_sectors == 2**10
    assert found.session.mounts < 100


@pytest.mark.parametrize("check", ["checksum", "follow"])
def test_data_that_recovery_does_more_with_than_show_it_makes_no_mixture(check: str) -> None:
    found = Exploration(plain(check))
    found.run(torn=0)
    assert found.mixtures == ()


@pytest.mark.parametrize("check", ["lie", "lie about two", "whole"])
@pytest.mark.parametrize("seed", range(5))
def test_a_lie_about_mixtures_is_noticed(check: str, seed: int) -> None:
    with pytest.raises(Misprediction) as caught:
        Exploration(plain(check), seed=seed).run(torn=0)
    assert "has other data than the sectors of its files" in str(caught.value)


def test_a_lie_about_three_sectors_is_noticed_by_random_members() -> None:
    """One member of eight shows it; with ``--audit 1`` as many as rows are drawn."""
    noticed = Counter[float]()
    for audit in (0.01, 1):
        for seed in range(20):
            try:
                Exploration(plain("lie about three", 12), seed=seed, audit=audit).run(torn=0)
            except Misprediction:
                noticed[audit] += 1
    assert noticed[1] >= 14
    assert noticed[0.01] >= 3


def test_after_a_lie_only_mounts_are_believed() -> None:
    found = Exploration(plain("lie"))
    with pytest.raises(Misprediction):
        found.run(torn=0)
    assert found.rounds.mounts.outcomes.keys() <= found.rounds.mounts.here
    assert found.mixtures == ()


def test_data_that_two_files_show_makes_no_mixture() -> None:
    """Which of them a sector decides cannot be said."""
    sectors = range(DATA.start, DATA.start + 4)
    disk = MadeUpDisk(((DATA.start, 4),), frozenset(), (MadeUpFile(sectors, 2048), MadeUpFile(sectors, 2048)))
    found = Exploration(disk)
    found.run(torn=0)
    assert found.mixtures == ()
