"""What share of wrong predictions the controls find: ``python bench/audit_power.py RUN [EVERY [BUDGET [TABLE]]]``.

Takes recordings from the run directory RUN (every EVERYth workload, 8; a budget of BUDGET, 100). Explores each in a
guest. Then, for each block of 4 KiB that recovery read there, explores it once more as if no read of that block had
been traced: what is predicted then may be wrong. Prints for each workload of how many blocks the controls noticed it,
and of which blocks they did not though something was wrong: a state, or one drawn from what one course speaks for, has
another outcome than was predicted.

To explore once for each block would take hours of mounting. So what was mounted is kept in a table: a state that agrees
in all that was read (truly) of a mounted one has its outcome and its reads. A state that the table does not have is
mounted, and then it has it. With TABLE, a file, the table is kept there, and where it has a workload no guest is
started: states that are not in it then do not count (they are told as ``unknown``).

With ``made-up`` for TABLE no guest is asked. A recovery is made up for each recording: it reads the blocks of the
log one by one up to the first that is not there, then some of the other blocks that were written, by what it has read
so far; some of what it has read decides what is found, and some does not. It is no file system, but a hard case for
controls: each block matters in some courses only.

Not for file systems of which recovery forgets (xfs): what a state leaves behind is not known from what it read.
"""

from __future__ import annotations

import json
import pickle
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import numpy as np

from bob.agent.client import Agent, AgentBroken
from bob.crash.caches import CACHES
from bob.crash.device import DeviceModel
from bob.crash.image import ByteRun, Composer
from bob.crash.plan import Plan
from bob.crash.state import CrashState
from bob.guest.hypervisor import Hypervisor
from bob.guest.spec import Clock, GuestSpec
from bob.image import ensure
from bob.observe import explore as exploring
from bob.observe.accesses import Access
from bob.observe.effort import Effort
from bob.observe.observation import OutcomeTable
from bob.observe.observations import Complaint, Observations
from bob.observe.predict import Contents, Gap, ReadTree, places_read
from bob.observe.rounds import Division, Rounds
from bob.observe.session import MountedState, Session
from bob.observe.torn_courses import TornCourses
from bob.run.agents import agent_stream
from bob.store.run_directory import RunDirectory
from bob.subject import Subject, configuration
from bob.trace.base import Base
from bob.trace.check import checked
from bob.trace.model import SECTOR_BYTES

BLOCK_SECTORS = 8
DRAWN = 4
"""States of each course that are held against the table."""


@dataclass
class Table:
    """What was mounted of a workload: ``mounted`` in order, each with the contents by which it was built."""

    findings: OutcomeTable
    mounted: list[tuple[list[int], MountedState]] = field(default_factory=list)


class Truth:
    """Answers for a guest, from the states of one workload that were mounted, and by the guest's ``session`` where
    these do not tell. ``mounts`` is how many were asked for."""

    def __init__(self, composer: Composer, table: Table, session: Session | MadeUp | None) -> None:
        self.table, self.mounts = table, 0
        self._composer, self._session = composer, session
        self._place = {sector: place for place, sector in enumerate(composer.sectors.tolist())}
        self._numbers: dict[bytes, int] = {}
        self._known, self._alone = ReadTree(), dict[bytes, MountedState]()
        for contents, mounted in table.mounted:
            self._learn(np.array(contents, dtype=np.int32), mounted)

    def find(self, contents: Contents) -> MountedState | None:
        """What mounting a state shows; None where only mounting it tells."""
        if (mounted := self._alone.get(contents.tobytes())) is not None:
            return mounted
        found = self._known.find(contents)
        return None if isinstance(found, Gap) else self.table.mounted[found][1]

    def mount(self, deltas: Sequence[Sequence[ByteRun]], payload: bytes) -> list[MountedState]:
        """As :meth:`Session.mount`. AgentBroken where there is no guest to ask."""
        self.mounts += len(deltas)
        asked = [self._contents(delta, payload) for delta in deltas]
        fresh = [number for number, contents in enumerate(asked) if self.find(contents) is None]
        if fresh:
            if self._session is None:
                raise AgentBroken("not in the table")
            answers = self._session.mount([deltas[number] for number in fresh], payload, audit=True)
            for number, mounted in zip(fresh, answers, strict=True):
                self.table.mounted.append((asked[number].tolist(), mounted))
                self._learn(asked[number], mounted)
        found = [self.find(contents) for contents in asked]
        return [mounted for mounted in found if mounted is not None]

    def of_state(self, state: CrashState) -> MountedState | None:
        """As :meth:`find`, of a state."""
        return self.find(self._contents(self._composer.delta(state), self._composer.payload_since(0)))

    def _contents(self, delta: Sequence[ByteRun], payload: bytes) -> Contents:
        contents = np.zeros(len(self._place), dtype=np.int32)
        for sector, source, count in delta:
            for offset in range(count):
                data = payload[(source + offset) * SECTOR_BYTES : (source + offset + 1) * SECTOR_BYTES]
                contents[self._place[sector + offset]] = 1 + self._numbers.setdefault(data, len(self._numbers))
        return contents

    def _learn(self, contents: Contents, mounted: MountedState) -> None:
        self._alone[contents.tobytes()] = mounted
        known = isinstance(self._known.find(contents), Gap)
        if known and not self.table.findings.repaired(mounted.outcome):
            number = next(number for number, (_contents, one) in enumerate(self.table.mounted) if one is mounted)
            self._known.add(contents, places_read(self._composer.sectors, mounted.accesses), number)


class MadeUp:
    """In place of a guest: a recovery that is made up for one recording; see above."""

    def __init__(self, plan: Plan) -> None:
        self.findings = OutcomeTable()
        self._numbers: dict[int, int] = {}
        composer = plan.composer
        differing = sorted({sector // BLOCK_SECTORS for sector in composer.sectors.tolist()})
        logged = dict.fromkeys(
            sector // BLOCK_SECTORS
            for write in plan.trace.writes
            if write.task.startswith(("jbd2", "xfs"))
            for sector in range(write.sector, write.sector + write.sectors)
        )
        self._log = [block for block in logged if block in set(differing)]
        self._others = [block for block in differing if block not in logged]

    def mount(self, deltas: Sequence[Sequence[ByteRun]], payload: bytes, *, audit: bool) -> list[MountedState]:
        """As :meth:`Session.mount`."""
        del audit
        return [self._mount(delta, payload) for delta in deltas]

    def _mount(self, delta: Sequence[ByteRun], payload: bytes) -> MountedState:
        device: dict[int, dict[int, int]] = {}
        for sector, source, count in delta:
            for offset in range(count):
                data = payload[(source + offset) * SECTOR_BYTES : (source + offset + 1) * SECTOR_BYTES]
                device.setdefault((sector + offset) // BLOCK_SECTORS, {})[sector + offset] = zlib.crc32(data)
        read: list[int] = []
        memory = 0
        for block in self._log:
            read.append(block)
            if block not in device:
                break
            memory = zlib.crc32(repr(sorted(device[block].items())).encode(), memory)
        found = len(read)
        for block in self._others:
            if zlib.crc32(repr((block, found)).encode()) % 4 == 0:  # brought up to date from the log
                continue
            read.append(block)
            content = zlib.crc32(repr(sorted(device.get(block, {}).items())).encode())
            if content % 3:  # or else it makes no difference
                memory = zlib.crc32(repr((memory, content)).encode())
        text = json.dumps({"error": None, "repaired": False, "tree": {f"/{memory % 40}": {"kind": "file"}}})
        number = self._numbers.setdefault(memory % 40, len(self._numbers))
        if number == len(self.findings.found):
            self.findings.found.append(text)
        accesses = (Access(True, block * BLOCK_SECTORS, BLOCK_SECTORS, place) for place, block in enumerate(read))
        return MountedState(number, tuple(accesses))


class Dropping:
    """In place of a session: what ``truth`` says, but without the reads of the sectors ``dropped``."""

    forgets, forgettable = False, None

    def __init__(self, truth: Truth, dropped: range) -> None:
        self.findings = truth.table.findings
        self._truth, self._dropped = truth, dropped

    def mount(self, deltas: Sequence[Sequence[ByteRun]], payload: bytes, *, audit: bool = True) -> list[MountedState]:
        """As :meth:`Session.mount`."""
        del audit
        return [replace(mounted, accesses=self._kept(mounted)) for mounted in self._truth.mount(deltas, payload)]

    def examine(self, deltas: Sequence[Sequence[ByteRun]], payload: bytes) -> list[list[Complaint]]:
        """Nothing is examined here."""
        del payload
        return [[] for _delta in deltas]

    def _kept(self, mounted: MountedState) -> tuple[Access, ...]:
        kept: list[Access] = []
        for access in mounted.accesses:
            stop = access.sector + access.sectors
            if not access.reads or stop <= self._dropped.start or access.sector >= self._dropped.stop:
                kept.append(access)
                continue
            if access.sector < self._dropped.start:
                kept.append(access._replace(sectors=self._dropped.start - access.sector))
            if stop > self._dropped.stop:
                kept.append(access._replace(sector=self._dropped.stop, sectors=stop - self._dropped.stop))
        return tuple(kept)


class Remembering(Rounds):
    """Has what was divided."""

    divided = Division()

    def divide(self) -> Division:
        """Divide, and remember it."""
        self.divided = super().divide()
        return self.divided


def explored(plan: Plan, made: Subject, base: Base, session: object, budget: int) -> tuple[Observations, Remembering]:
    """One exploration that mounts by ``session``."""
    kept: list[Remembering] = []

    def rounds(*arguments: Any, **more: Any) -> Remembering:
        kept.append(Remembering(*arguments, **more))
        return kept[-1]

    def opened(*_arguments: object, **_more: object) -> object:
        return session

    with mock.patch.object(exploring, "Session", opened), mock.patch.object(exploring, "Rounds", rounds):
        nobody: Any = None
        remembering = replace(made, fs=replace(made.fs, forgets=False))
        seen = exploring.explore(nobody, remembering, plan, Effort(budget, 1), ignore)
    return seen, kept[0]


def ignore(_states: int) -> None:
    """Progress is not shown."""


def wrong(seen: Observations, rounds: Remembering, plan: Plan, truth: Truth) -> bool:
    """Whether something of what was predicted is not so."""
    chance = Random(0)
    for one in seen.states:
        found = truth.of_state(one.state)
        if one.outcome is not None and found is not None and found.outcome != one.outcome:
            return True
    courses = [(plan.legal, course) for course in rounds.divided.courses]
    courses += [(plan.parts.legal, course) for course in TornCourses(plan.parts, plan.composer).known(rounds.known)]
    for legal, course in courses:
        for _number in range(DRAWN):
            found = truth.of_state(legal.sample(course.cube, chance))
            if found is not None and found.outcome != course.outcome:
                return True
    return False


def blocks_read(plan: Plan, table: Table) -> list[range]:
    """The blocks with sectors that differ between states and that were read."""
    differing = set(plan.composer.sectors.tolist())
    found = {
        sector // BLOCK_SECTORS
        for _contents, mounted in table.mounted
        for access in mounted.accesses
        if access.reads
        for sector in range(access.sector, access.sector + access.sectors)
        if sector in differing
    }
    return [range(block * BLOCK_SECTORS, (block + 1) * BLOCK_SECTORS) for block in sorted(found)]


@contextmanager
def agent_of(image: str) -> Iterator[Agent]:
    """A guest's agent."""
    spec = GuestSpec(ensure(image, print), Clock.REAL)
    with Hypervisor.open() as hypervisor, hypervisor.guest(spec) as guest:
        yield Agent(agent_stream(guest))


def measured(plan: Plan, made: Subject, base: Base, truth: Truth, budget: int) -> Counter[str]:
    """Of how many blocks the dropped reads were ``flagged``, ``missed`` though something was wrong, or made no
    difference (``right``); ``unknown`` where there was no guest to tell."""
    told: Counter[str] = Counter()
    for block in blocks_read(plan, truth.table):
        seen, rounds = explored(plan, made, base, Dropping(truth, block), budget)
        if seen.lost is not None and "a control of the predictions failed" not in seen.lost:
            told["unknown"] += 1
        elif seen.lost is not None:
            told["flagged"] += 1
        elif wrong(seen, rounds, plan, truth):
            told["missed"] += 1
            print(f"    missed: block of sector {block.start}", flush=True)
        else:
            told["right"] += 1
    return told


def main() -> None:
    """Run and print."""
    run = RunDirectory(Path(sys.argv[1]))
    every, budget = (int(sys.argv[n]) if len(sys.argv) > n else default for n, default in ((2, 8), (3, 100)))
    is_made_up = sys.argv[4:5] == ["made-up"]
    keep = Path(sys.argv[4]) if len(sys.argv) > 4 and not is_made_up else None
    tables: dict[str, Table] = pickle.loads(keep.read_bytes()) if keep is not None and keep.exists() else {}
    asked = run.about()["request"]
    made = configuration(asked["fs"], asked["mkfs_options"], asked["mount_options"], asked["device"])
    if made.fs.forgets and not is_made_up:
        sys.exit(f"what {made.fs.name} leaves behind is not known from what it read")
    model = DeviceModel(CACHES[asked["write_cache"]], asked["atomic_write_bytes"])
    total: Counter[str] = Counter()
    folders = [folder for folder in run.workloads() if run.refusal(folder) is None][::every]
    with ExitStack() as stack:
        agent = None
        if not is_made_up and any(folder.name not in tables for folder in folders):
            agent = stack.enter_context(agent_of(asked["image"]))
        for folder in folders:
            _workload, base_name, recording = run.recording(folder)
            base = run.base(base_name)
            plan = Plan(checked(recording, base), base, model)
            session: Session | MadeUp | None = None
            if is_made_up:
                session = MadeUp(plan)
                tables[folder.name] = Table(session.findings)
            elif folder.name not in tables:
                assert agent is not None
                composer = plan.composer
                floor, watched = composer.floor_delta(), composer.sectors.tolist()
                session = Session(agent, made, base, floor, composer.payload_since(0), watched=watched)
                tables[folder.name] = Table(session.findings)
            truth = Truth(plan.composer, tables[folder.name], session)
            honest, _rounds = explored(plan, made, base, Dropping(truth, range(0)), budget)
            mounts, told = truth.mounts, measured(plan, made, base, truth, budget)
            total += told
            total["mounts"] += mounts
            print(
                f"{folder.name}: {mounts} mounts, {dict(told)}{f'  LOST: {honest.lost}' if honest.lost else ''}",
                flush=True,
            )
            if keep is not None:
                keep.write_bytes(pickle.dumps(tables))
    bad = total["flagged"] + total["missed"]
    print(f"{dict(total)}: {total['flagged']} of {bad} flagged, {total['flagged'] / max(bad, 1):.1%}")


if __name__ == "__main__":
    main()
