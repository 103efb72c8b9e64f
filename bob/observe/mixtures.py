"""Torn states in which files have some sectors from before a write and some from after it: *mixtures*.

The look reads the data of files, and copies it. A sector of it *passes through*: it decides some bytes of a file, and
nothing else. So if one mounted state shows such sectors, every mixture of them is known: it is the same tree with these
bytes. That is exact in number, since each sector is a part of a write (:mod:`bob.crash.units`).

A sector is a candidate if recovery read it, and if one place of one file shows its content. This is no proof yet: what
was read may be checked, too, as btrfs checks data. So bob mounts *rows*, members of the mixture: all its sectors lost,
and all kept. If one is not the same tree with their bytes, or if other places were read, there is no mixture. Further
rows have each two sectors in all four ways, and random members follow. If one of these differs, a control has failed.

The assumption is that a sector that passes through for two contents does so among any others. ext2, ext3, ext4 and xfs
copy data (mm/filemap.c), and keep no checksum of it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bob.crash.cubes import Cube
from bob.crash.plan import Plan
from bob.crash.state import CrashState
from bob.observe.observation import OutcomeTable
from bob.observe.predict import Contents, ReadNode, ReadTree
from bob.observe.torn_courses import TornCourses
from bob.trace.model import SECTOR_BYTES

UNREAD = -1  # in place of a content
MOST_LEAVES = 400  # ends of courses: each mixture is compared with all
LEAST_SHOWN = 32  # bytes of a sector that a file must show: two cells, which recur nowhere
LEAST_SHARE = 64  # a mixture with less than this part of all torn states is not worth its mounts


@dataclass(frozen=True, slots=True, eq=False)
class CourseEnd:
    """The end of a course: its ``outcome``, seen first in state number ``source``, and in ``read`` the content of each
    sector that decided (or ``UNREAD``)."""

    outcome: int
    source: int
    read: Contents

    @property
    def places(self) -> NDArray[np.bool_]:
        return np.not_equal(self.read, UNREAD)


@dataclass(frozen=True, slots=True)
class DataSector:
    """A sector of data: its ``place`` among the composer's sectors, the ``part`` of a write there, and the ``offset``
    (bytes) at which the file with the names ``paths`` shows it."""

    place: int
    part: int
    paths: tuple[str, ...]
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """The states that show recovery what ``leaf`` did, but for the ``free`` sectors. ``read`` has what they share,
    ``cubes`` are these states, and ``torn`` is the number of torn ones. ``rows`` have each two parts in all four ways,
    first all lost and all kept."""

    leaf: CourseEnd
    free: tuple[DataSector, ...]
    read: Contents
    cubes: tuple[Cube, ...]
    torn: int
    rows: tuple[CrashState, ...] = ()

    def has(self, leaf: CourseEnd) -> bool | None:
        """Return whether all states of ``leaf`` are in the mixture (True), or none (False); None if bob cannot say."""
        shared = self.read != UNREAD
        if (leaf.places & shared & (leaf.read != self.read)).any():
            return False
        return True if leaf.places[shared].all() else None

    def is_apart(self, other: Mixture) -> bool:
        """Return whether no state is in both."""
        shared = (self.read != UNREAD) & (other.read != UNREAD)
        return bool((self.read != other.read)[shared].any())


class Mixtures:
    """The mixtures of the mounted states that ``known`` has."""

    def __init__(self, known: ReadTree, plan: Plan, findings: OutcomeTable) -> None:
        self._known, self._plan, self._findings = known, plan, findings
        self._torn = TornCourses(plan.parts, plan.composer)
        self._shown: dict[int, _ShownData] = {}

    def worth(self) -> list[Mixture]:
        """Return mixtures that share no state, the largest first; of equal ones that of the earliest leaf."""
        leaves = self._leaves() or []
        possible = [mixture for leaf in leaves if (mixture := self._of(leaf)) is not None]
        legal = self._plan.nothing_explored().legal_torn
        taken: list[Mixture] = []
        for mixture in sorted(possible, key=lambda mixture: (-mixture.torn, mixture.leaf.source)):
            if mixture.torn * LEAST_SHARE < legal:
                break
            if all(mixture.is_apart(other) for other in taken):
                more = self._more(mixture, leaves)
                if more is not None and more * LEAST_SHARE >= legal and (rows := self._rows(mixture)):
                    taken.append(replace(mixture, rows=rows))
        return taken

    def more(self, mixture: Mixture) -> int | None:
        """Return how many torn states of ``mixture`` are in no known course; None if bob cannot say."""
        leaves = self._leaves()
        return None if leaves is None else self._more(mixture, leaves)

    def member(self, mixture: Mixture, random: Random) -> CrashState:
        """Return a state of ``mixture``, each with the same probability."""
        legal = self._plan.parts.legal
        number = random.randrange(sum(legal.count(cube) for cube in mixture.cubes))
        for cube in mixture.cubes:
            if number < legal.count(cube):
                break
            number -= legal.count(cube)
        return legal.sample(cube, random)

    def is_shown(self, mixture: Mixture, state: CrashState, outcome: int) -> bool:
        """Return whether ``outcome`` is that of the leaf, with the bytes of the free sectors in ``state``."""
        wanted, found = (json.loads(self._findings.found[number]) for number in (mixture.leaf.outcome, outcome))
        if found["tree"] is None or found["tree"].keys() != wanted["tree"].keys():
            return False
        contents = self._plan.composer.contents(state)
        files = {path: bytearray(self._content(wanted, path)) for sector in mixture.free for path in sector.paths}
        for sector in mixture.free:
            data = self._plan.composer.content(sector.place, int(contents[sector.place]))
            for path in sector.paths:
                file = files[path]
                stop = min(sector.offset + SECTOR_BYTES, len(file))
                file[sector.offset : stop] = data[: stop - sector.offset]
        for path, file in files.items():
            if "content" not in found["tree"][path] or self._content(found, path) != file:
                return False
            del wanted["tree"][path]["content"], found["tree"][path]["content"]
        return bool(wanted == found)

    def reads_alike(self, mixture: Mixture, state: CrashState) -> bool:
        """Return whether recovery of the mounted ``state`` was decided in the same places as that of the leaf."""
        read = _read(self._known, self._plan.composer.contents(state))
        return read is not None and np.array_equal(read, mixture.leaf.places)

    def _leaves(self) -> list[CourseEnd] | None:
        """Return the ends of all courses; None if recovery forgets, or if there are too many."""
        if self._known.forgets:
            return None
        found: list[CourseEnd] = []
        sectors = len(self._plan.composer.sectors)
        left: list[tuple[ReadNode, tuple[Any, ...] | None]] = [(self._known.root, None)]
        while left:
            node, path = left.pop()
            if node.outcome is not None:
                if len(found) == MOST_LEAVES:
                    return None
                read = np.full(sectors, UNREAD, dtype=np.int32)
                while path is not None:
                    path, places, content = path
                    read[places] = np.frombuffer(content, dtype=np.int32)
                found.append(CourseEnd(node.outcome, node.source, read))
            elif node.places is not None:
                left += [(child, (path, node.places, content)) for content, child in node.by_content.items()]
        return found

    def _of(self, leaf: CourseEnd) -> Mixture | None:
        free = self._free(leaf)
        if len({sector.part for sector in free}) < 2:
            return None
        read = leaf.read.copy()
        read[[sector.place for sector in free]] = UNREAD
        cubes = self._cubes(read)
        if cubes is None:
            return None
        return Mixture(leaf, free, read, tuple(cubes), self._count(cubes))

    def _free(self, leaf: CourseEnd) -> tuple[DataSector, ...]:
        composer, alone = self._plan.composer, self._torn.alone
        if leaf.outcome not in self._shown:
            self._shown[leaf.outcome] = _ShownData(self._findings, leaf.outcome, self._content)
        shown = self._shown[leaf.outcome]
        found: dict[tuple[Any, int], list[DataSector]] = defaultdict(list)
        for place in np.flatnonzero(leaf.places & (alone >= 0)).tolist():
            if (where := shown.find(composer.content(place, int(leaf.read[place])))) is not None:
                file, offset = where
                found[where].append(DataSector(place, int(alone[place]), shown.paths[file], offset))
        free = [sectors[0] for sectors in found.values() if len(sectors) == 1]
        # A part of several sectors is there or not as a whole.
        fixed = leaf.places.copy()
        fixed[[sector.place for sector in free]] = False
        decided = {*alone[fixed].tolist()}
        return tuple(sector for sector in free if sector.part not in decided)

    def _more(self, mixture: Mixture, leaves: Sequence[CourseEnd]) -> int | None:
        known = 0
        for leaf in leaves:
            inside = mixture.has(leaf)
            if inside is None:
                return None
            if inside:
                cubes = self._cubes(leaf.read)
                if cubes is None:
                    return None
                known += self._count(cubes)
        return mixture.torn - known

    def _cubes(self, read: Contents) -> list[Cube] | None:
        """Return all states with these contents; None if they are too many cubes."""
        places = np.flatnonzero(read != UNREAD)
        return self._torn.showing(places, read[places])

    def _count(self, cubes: Sequence[Cube]) -> int:
        parts, legal = self._plan.parts, self._plan.legal
        return sum(parts.legal.count(cube) - legal.count(parts.whole(cube)) for cube in cubes)

    def _rows(self, mixture: Mixture) -> tuple[CrashState, ...]:
        """Return the rows; none if some combination is not legal."""
        parts = sorted({sector.part for sector in mixture.free})
        every, found = _mask(parts), list[CrashState]()
        for row in rows(len(parts)):
            kept = _mask([part for number, part in enumerate(parts) if row >> number & 1])
            some = (Cube(cube.kept | kept, cube.lost | (every ^ kept)) for cube in mixture.cubes)
            state = next((self._plan.parts.legal.some(one) for one in some if self._plan.parts.legal.count(one)), None)
            if state is None:
                return ()
            found.append(state)
        return tuple(found)

    def _content(self, document: dict[str, Any], path: str) -> bytes:
        return b"".join(self._findings.chunks[number] for number in document["tree"][path]["content"])


class _ShownData:
    """The sectors that the files of an outcome show, and in ``paths`` the names of each file."""

    def __init__(self, findings: OutcomeTable, outcome: int, content: Any) -> None:
        self.paths: dict[Any, tuple[str, ...]] = {}
        self._whole: dict[bytes, set[tuple[Any, int]]] = defaultdict(set)
        self._tails: list[tuple[bytes, Any, int]] = []
        document = json.loads(findings.found[outcome])
        if document["error"] is not None or document["repaired"]:
            return
        for path, entry in sorted((document["tree"] or {}).items()):
            if entry["kind"] != "file" or "places" in entry or "fault" in entry:
                continue
            file = entry["inode"] or path
            is_new = file not in self.paths
            self.paths[file] = (*self.paths.get(file, ()), path)
            data = content(document, path)
            if is_new and len(data) == entry["size"]:
                for offset in range(0, len(data), SECTOR_BYTES):
                    shown = data[offset : offset + SECTOR_BYTES]
                    if len(shown) == SECTOR_BYTES:
                        self._whole[shown].add((file, offset))
                    elif len(shown) >= LEAST_SHOWN:
                        self._tails.append((shown, file, offset))

    def find(self, data: bytes) -> tuple[Any, int] | None:
        """Return file and offset of the only place that shows this sector; None without one, or with several."""
        found = set(self._whole.get(data, ()))
        found |= {(file, offset) for shown, file, offset in self._tails if data.startswith(shown)}
        return found.pop() if len(found) == 1 else None


def rows(count: int) -> Iterator[int]:
    """Yield masks of ``count`` bits, in which each two bits are 00, 01, 10 and 11: first no bit, then all."""
    every = (1 << count) - 1
    yield 0
    yield every
    for digit in range((count - 1).bit_length()):
        some = _mask([number for number in range(count) if number >> digit & 1])
        yield some
        yield every ^ some


def _read(known: ReadTree, contents: Contents) -> NDArray[np.bool_] | None:
    """Return which sectors decided the course of a state; None if it is not known."""
    read = np.zeros(len(contents), dtype=np.bool_)
    node = known.root
    while node.outcome is None:
        child = None if node.places is None else node.by_content.get(contents[node.places].tobytes())
        if child is None:
            return None
        read[node.places] = True
        node = child
    return read


def _mask(parts: Sequence[int]) -> int:
    return sum(1 << part for part in parts)
