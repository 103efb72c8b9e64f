"""Torn states in which files have some sectors from before a write and some from after it: *mixtures*.

The look reads the data of files, and copies it. A sector of it *passes through*: it decides some bytes of a file, and
nothing else. So if mounted states show such sectors, every mixture of them is known: it is the same tree with these
bytes. That is exact in number, since each sector is a part of a write (:mod:`bob.crash.units`).

A sector is a candidate if recovery read it, and if one place of one file shows its content. A sector behind the file's
end, in the same block and write, is a candidate, too: no read shows it. This proves nothing yet: recovery may check
what it reads, as btrfs checks data. So bob mounts *rows*, members of this mixture: all its sectors lost, all kept, and
others until each two sectors were there in all four ways. Members that were mounted before count. If one is not the
same tree with its own bytes, or if other places were read, bob drops the mixture. Random members beyond the rows
follow: if one of them differs, a control has failed.

The assumption is that a sector that passes through for two contents does so among any others. ext2, ext3, ext4 and xfs
copy data up to the file's size (filemap_read in mm/filemap.c), and keep no checksum of it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
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
BLOCK_SECTORS = 8  # of the smallest block with which bob makes a file system
LEAST_SHOWN = 32  # bytes of a sector that a file must show: two cells, which recur nowhere
LEAST_SHARE = 16  # a mixture with less than this part of all torn states is not worth its mounts
MOST_PARTS = 256  # free ones in a mixture: bob compares each two
MOST_COMPARED = 8  # mixtures: bob takes the cheapest
DRAWN_ROWS = 8  # random choices of rows: bob takes the fewest rows


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
    (bytes) at which the file with the names ``paths`` shows it. Behind a file's end there are no paths."""

    place: int
    part: int
    paths: tuple[str, ...]
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """The states that show recovery what ``leaf`` did, but for the ``free`` sectors. ``read`` has what they share,
    ``cubes`` are these states, and ``torn`` is the number of torn ones. The free sectors are ``parts`` of writes."""

    leaf: CourseEnd
    free: tuple[DataSector, ...]
    read: Contents
    cubes: tuple[Cube, ...]
    torn: int

    @property
    def parts(self) -> list[int]:
        return sorted({sector.part for sector in self.free})

    @property
    def key(self) -> bytes:
        return self.read.tobytes()

    @property
    def every(self) -> int:
        """The mask of all parts. In a mask, bit n is part n of ``parts``."""
        return (1 << len(self.parts)) - 1

    def kept(self, contents: Contents) -> int | None:
        """Return the mask of the parts that a state with these contents has; None if it is not in the mixture."""
        shared = self.read != UNREAD
        if (contents[shared] != self.read[shared]).any():
            return None
        place_of = {sector.part: sector.place for sector in self.free}
        # The ground is content 0, and no only write of a sector leaves that.
        return _mask([number for number, part in enumerate(self.parts) if contents[place_of[part]]])

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
        self._places = {sector: place for place, sector in enumerate(plan.composer.sectors.tolist())}

    def worth(self, taken: Sequence[Mixture]) -> list[tuple[Mixture, int]]:
        """Return the largest mixtures apart from those ``taken``, each with its number of unknown torn states."""
        leaves = self._leaves() or []
        legal = self._plan.nothing_explored().legal_torn
        possible: dict[bytes, Mixture] = {}
        for leaf in sorted(leaves, key=lambda leaf: leaf.source):
            if (mixture := self._of(leaf)) is not None and mixture.torn * LEAST_SHARE >= legal:
                possible.setdefault(mixture.key, mixture)
        apart = [mixture for mixture in possible.values() if all(mixture.is_apart(other) for other in taken)]
        largest = sorted(apart, key=lambda mixture: -mixture.torn)[:MOST_COMPARED]
        counted = [(mixture, more) for mixture in largest if (more := self._more(mixture, leaves)) is not None]
        return [(mixture, more) for mixture, more in counted if more * LEAST_SHARE >= legal]

    @property
    def is_possible(self) -> bool:
        """Whether the courses are few enough to compare mixtures with them."""
        return self._leaves() is not None

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

    def row(self, mixture: Mixture, kept: int) -> CrashState | None:
        """Return a state of ``mixture`` with just these of its parts; None if none is legal."""
        parts, legal = mixture.parts, self._plan.parts.legal
        there = _mask([part for number, part in enumerate(parts) if kept >> number & 1])
        lost = _mask(parts) ^ there
        some = (Cube(cube.kept | there, cube.lost | lost) for cube in mixture.cubes)
        return next((legal.some(cube) for cube in some if legal.count(cube)), None)

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
        sizes = {paths[0]: shown.sizes[file] for file, paths in shown.paths.items()}
        free = [*free, *self._behind(leaf, free, sizes)]
        # A part of several sectors is there or not as a whole.
        fixed = leaf.places.copy()
        fixed[[sector.place for sector in free]] = False
        decided = {*alone[fixed].tolist()}
        return tuple(sector for sector in free if sector.part not in decided)

    def _behind(self, leaf: CourseEnd, free: Sequence[DataSector], sizes: Mapping[str, int]) -> Iterator[DataSector]:
        """Yield the sectors behind the ends of files that share block and write with a sector of ``free``: a write has
        the data of one file."""
        composer, alone = self._plan.composer, self._torn.alone
        taken = {sector.place for sector in free}
        for sector in free:
            first, size = int(composer.sectors[sector.place]), sizes[sector.paths[0]]
            [layer] = composer.layers[sector.place]
            for distance in range(1, BLOCK_SECTORS - sector.offset // SECTOR_BYTES % BLOCK_SECTORS):
                place, offset = self._places.get(first + distance, -1), sector.offset + distance * SECTOR_BYTES
                if place < 0 or place in taken or offset < size or not leaf.places[place] or alone[place] < 0:
                    continue
                if composer.layers[place][0].write == layer.write:
                    taken.add(place)
                    yield DataSector(place, int(alone[place]), (), offset)

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

    def _content(self, document: dict[str, Any], path: str) -> bytes:
        return b"".join(self._findings.chunks[number] for number in document["tree"][path]["content"])


class _ShownData:
    """The sectors that the files of an outcome show, and the ``paths`` and ``sizes`` (bytes) of these."""

    def __init__(self, findings: OutcomeTable, outcome: int, content: Any) -> None:
        self.paths: dict[Any, tuple[str, ...]] = {}
        self.sizes: dict[Any, int] = {}
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
            self.sizes[file] = entry["size"]
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


def missing_rows(count: int, have: Sequence[int], chance: Random, most: int) -> list[int] | None:
    """Return masks of ``count`` bits: with ``have``, each two bits are 00, 01, 10 and 11 in some. None if they are more
    than ``most``, or if there are more than ``MOST_PARTS`` bits.

    First come no bit and all bits, unless ``have`` has them. Then each two bits must differ in both ways: so if a bit's
    *word* says in which further rows it is, no word may contain another. Of k rows, C(k, k/2) words are like that
    (Sperner's theorem). Rows that ``have`` makes unnecessary are left out."""
    if count > MOST_PARTS:
        return None
    pure = [mask for mask in (0, (1 << count) - 1) if mask not in have]
    missing = ~np.eye(count, dtype=np.bool_)
    for mask in have:
        missing &= ~_differing(mask, count)
    length = next(length for length in range(1, count + 2) if comb(length, length // 2) >= count)
    words = [sum(1 << row for row in some) for some in combinations(range(length), length // 2)]
    best: list[int] | None = None
    for _ in range(DRAWN_ROWS):
        drawn = chance.sample(words, count)
        left = [_mask([bit for bit, word in enumerate(drawn) if word >> row & 1]) for row in range(length)]
        found = _needed(left, missing, count)
        if best is None or len(found) < len(best):
            best = found
    found = [*pure, *(best or ())]
    return found if len(found) <= most else None


def _needed(rows: Sequence[int], missing: NDArray[np.bool_], count: int) -> list[int]:
    """Return as many of ``rows`` as it takes to show all that is ``missing``, each time what shows the most."""
    found, left = list[int](), {row: _differing(row, count) for row in rows}
    while missing.any():
        best = max(left, key=lambda row: int((missing & left[row]).sum()))
        found.append(best)
        missing = missing & ~left.pop(best)
    return found


def _differing(mask: int, count: int) -> NDArray[np.bool_]:
    """Return for each two bits whether ``mask`` has the first and lacks the second."""
    bits = np.array([mask >> number & 1 for number in range(count)], dtype=np.bool_)
    shown: NDArray[np.bool_] = np.logical_and.outer(bits, ~bits)
    return shown


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
