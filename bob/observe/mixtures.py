"""Mixtures: sets of torn states whose files have some sectors from before a write and some from after it.

When bob reads the files after a crash, the kernel copies their data. So a sector of data may *pass through*: it becomes
some bytes of a file, and has no other influence on the outcome (what a mount of the state shows). Suppose that bob
knows two states that differ only in such sectors. Now take each of these sectors from either the first or the second
state. The result is another state, whose tree differs from the known trees only in the bytes of these sectors. So bob
knows this tree without a mount. All such states together are a *mixture*. bob can count these states exactly: each
sector belongs to a part of a write, and parts reach the disk independently (:mod:`bob.crash.units`).

A sector may pass through only if recovery or bob read it, and if exactly one place of one file shows its content. The
states of a mixture may also differ in a sector behind the end of that file, since no file shows it. Such a sector must
be in the same block as a sector that the file shows, and the same write must have written both sectors. These
conditions are not sufficient: a file system may check data that it reads, as btrfs does. So bob mounts some states of
the mixture, its *rows*. In one row all sectors have the content from before their writes, and in another row all have
the content from after their writes. The other rows ensure that for any two sectors, the rows together have all four
combinations of before and after. States that bob mounted for other reasons count as rows, too. If recovery of a row
reads other sectors than recovery of the known states, bob drops the mixture. It also drops the mixture if one of the
first two rows does not have the predicted tree. If another row lacks its predicted tree, bob uses no mixture of this
workload. In addition to the rows, bob mounts random states of the mixture. If such a state does not have its predicted
tree, a control has failed, and bob then trusts only the outcomes of mounted states.

Suppose that a sector passed through in rows with its old content, and in rows with its new content. Then bob assumes
that it passes through in every state of the mixture, whatever the other sectors contain. The file systems ext2, ext3,
ext4 and xfs copy data up to the file's size (filemap_read in mm/filemap.c), and keep no checksum of this data."""

from __future__ import annotations

import json
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

UNREAD = -1  # stands in place of a content
MOST_LEAVES = 400  # ends of courses: bob compares each mixture with all of them
BLOCK_SECTORS = 8  # sectors of the smallest block that bob gives a file system
LEAST_SHOWN = 32  # a file must show this many bytes of a sector: two cells, which occur nowhere else
LEAST_SHARE = 16  # a mixture with less than a sixteenth of all torn states is not worth its mounts
MOST_PARTS = 256  # free parts in a mixture: bob compares each two of them
MOST_COMPARED = 8  # bob compares this many mixtures, and takes the cheapest
DRAWN_ROWS = 8  # bob draws rows this many times, and takes the draw with the fewest rows

CourseKey = tuple[int, int, bytes]


@dataclass(frozen=True, slots=True, eq=False)
class CourseEnd:
    """The end of a course of recovery (what recovery reads, in order). The course leads to outcome number ``outcome``.
    ``source`` is the number of the first mounted state with this course. ``read`` has the content of each sector that
    recovery read in this course, and ``UNREAD`` for each other sector."""

    outcome: int
    source: int
    read: Contents

    @property
    def places(self) -> NDArray[np.bool_]:
        return np.not_equal(self.read, UNREAD)

    @property
    def key(self) -> CourseKey:
        return self.outcome, self.source, self.read.tobytes()


@dataclass(frozen=True, slots=True)
class DataSector:
    """A sector that holds data of a file. ``place`` is its index among the sectors that differ between crash states
    (``Composer.sectors``). ``part`` is the number of the part of a write that contains the sector. The file with the
    names ``paths`` shows the sector at ``offset`` (bytes). If the sector lies behind the file's end, ``paths`` is
    empty."""

    place: int
    part: int
    paths: tuple[str, ...]
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """The states where recovery reads the same contents as in a certain mounted state, except in the sectors ``free``.
    ``leaf`` is the end of that mounted state's course (what recovery reads, in order). The free sectors may have any
    content, and so may sectors that recovery does not read.

    ``read`` has the content of each sector that recovery read, and ``UNREAD`` for free and unread sectors. A cube
    (:mod:`bob.crash.cubes`) is the set of all states that have certain parts of writes and lack certain others.
    ``cubes`` together have the states of the mixture, each once. ``torn`` is the number of torn states. ``parts`` are
    the parts of writes that contain the free sectors."""

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
        """The mask with the bits of all parts of the mixture. A mask is a number, and its bit n stands for
        ``parts[n]``."""
        return (1 << len(self.parts)) - 1

    def kept(self, contents: Contents) -> int | None:
        """Return a mask of the mixture's parts (bit n stands for ``parts[n]``). It has the parts that are on the disk
        in the state with these ``contents``. Return None if that state is not in the mixture."""
        shared = self.read != UNREAD
        if (contents[shared] != self.read[shared]).any():
            return None
        place_of = {sector.part: sector.place for sector in self.free}
        # Content 0 is that of a sector without any write. If only one write goes to a sector, it leaves another
        # content.
        return _mask([number for number, part in enumerate(self.parts) if contents[place_of[part]]])

    def has(self, leaf: CourseEnd) -> bool | None:
        """Return True if all states of the course that ends at ``leaf`` are in the mixture. Return False if none of
        these states is in it. Return None if bob cannot say, or if only some of them are."""
        shared = self.read != UNREAD
        if (leaf.places & shared & (leaf.read != self.read)).any():
            return False
        return True if leaf.places[shared].all() else None

    def is_apart(self, other: Mixture) -> bool:
        """Return whether no state is in both mixtures."""
        shared = (self.read != UNREAD) & (other.read != UNREAD)
        return bool((self.read != other.read)[shared].any())


class Mixtures:
    """A search for mixtures around the mounted states. ``known`` is the tree of recovery's reads in these states."""

    def __init__(self, known: ReadTree, plan: Plan, findings: OutcomeTable) -> None:
        self._known, self._plan, self._findings = known, plan, findings
        self._torn = TornCourses(plan.parts, plan.composer)
        self._shown: dict[int, _ShownData] = {}
        self._around: dict[CourseKey, Mixture | None] = {}  # most courses stay as they are while bob mounts more states
        self._torn_in: dict[bytes, int | None] = {}
        self._places = {sector: place for place, sector in enumerate(plan.composer.sectors.tolist())}

    def worth(self, taken: Sequence[Mixture]) -> list[tuple[Mixture, int]]:
        """Return large mixtures that do not overlap the mixtures ``taken``, the largest first. Each mixture is paired
        with the number of its torn states that belong to no known course. This number is at least a sixteenth
        (``LEAST_SHARE``) of all legal torn states."""
        leaves = self._leaves() or []
        legal = self._plan.nothing_explored().legal_torn
        possible: dict[bytes, Mixture] = {}
        for leaf in sorted(leaves, key=lambda leaf: leaf.source):
            if leaf.key not in self._around:
                self._around[leaf.key] = self._of(leaf)
            if (mixture := self._around[leaf.key]) is not None and mixture.torn * LEAST_SHARE >= legal:
                possible.setdefault(mixture.key, mixture)
        apart = [mixture for mixture in possible.values() if all(mixture.is_apart(other) for other in taken)]
        largest = sorted(apart, key=lambda mixture: -mixture.torn)[:MOST_COMPARED]
        counted = [(mixture, more) for mixture in largest if (more := self._more(mixture, leaves)) is not None]
        return [(mixture, more) for mixture, more in counted if more * LEAST_SHARE >= legal]

    @property
    def is_possible(self) -> bool:
        """Whether bob can search for mixtures. A course is what recovery reads in some state, in order. bob cannot
        search if there are too many known courses to compare each mixture with all of them. Nor can it if recovery
        *forgets* blocks: the disk after recovery is the same, whatever these blocks contained."""
        return self._leaves() is not None

    def more(self, mixture: Mixture) -> int | None:
        """Return how many torn states of ``mixture`` belong to no known course. Return None if bob cannot count
        them."""
        leaves = self._leaves()
        return None if leaves is None else self._more(mixture, leaves)

    def member(self, mixture: Mixture, random: Random) -> CrashState:
        """Return a random state of ``mixture``. Each of its states has the same probability."""
        legal = self._plan.parts.legal
        number = random.randrange(sum(legal.count(cube) for cube in mixture.cubes))
        for cube in mixture.cubes:
            if number < legal.count(cube):
                break
            number -= legal.count(cube)
        return legal.sample(cube, random)

    def row(self, mixture: Mixture, kept: int) -> CrashState | None:
        """Return a state of ``mixture`` that has exactly the parts of the mask ``kept`` on the disk (bit n stands for
        part n of the mixture). Return None if there is no such legal state."""
        parts, legal = mixture.parts, self._plan.parts.legal
        there = _mask([part for number, part in enumerate(parts) if kept >> number & 1])
        lost = _mask(parts) ^ there
        some = (Cube(cube.kept | there, cube.lost | lost) for cube in mixture.cubes)
        return next((legal.some(cube) for cube in some if legal.count(cube)), None)

    def is_shown(self, mixture: Mixture, state: CrashState, outcome: int) -> bool:
        """Return whether ``outcome`` is what the mixture predicts for ``state``. The predicted outcome is the outcome
        of the mixture's leaf, with one change: in the files, the bytes from free sectors are the bytes of these sectors
        in ``state``."""
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
        """Return whether recovery of the mounted ``state`` depends on the same sectors as recovery of the mixture's
        leaf."""
        read = _read(self._known, self._plan.composer.contents(state))
        return read is not None and np.array_equal(read, mixture.leaf.places)

    def _leaves(self) -> list[CourseEnd] | None:
        """Return the ends of all known courses. Return None if there are too many, or if recovery forgets what it
        reads."""
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
        found: dict[tuple[Any, int], int | None] = {}  # None: several sectors have the bytes of this place of a file
        places = np.flatnonzero(leaf.places & (alone >= 0))
        for place, number in zip(places.tolist(), leaf.read[places].tolist(), strict=True):
            if (where := shown.find(composer.content(place, number))) is not None:
                found[where] = None if where in found else place
        free = [
            DataSector(place, int(alone[place]), shown.paths[file], offset)
            for (file, offset), place in found.items()
            if place is not None
        ]
        sizes = {paths[0]: shown.sizes[file] for file, paths in shown.paths.items()}
        free = [*free, *self._behind(leaf, free, sizes)]
        # A part of several sectors is there or not as a whole.
        fixed = leaf.places.copy()
        fixed[[sector.place for sector in free]] = False
        decided = {*alone[fixed].tolist()}
        return tuple(sector for sector in free if sector.part not in decided)

    def _behind(self, leaf: CourseEnd, free: Sequence[DataSector], sizes: Mapping[str, int]) -> Iterator[DataSector]:
        """Yield the sectors that lie behind the end of a file. Such a sector is in the same block as a sector of
        ``free``, and the same write wrote both. So it belongs to the same file, since a write has the data of one
        file."""
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
                torn = self._torn_states(leaf)
                if torn is None:
                    return None
                known += torn
        return mixture.torn - known

    def _torn_states(self, leaf: CourseEnd) -> int | None:
        """Return how many torn states have the course that ends at ``leaf``; None if there are too many cubes."""
        key = leaf.read.tobytes()
        if key not in self._torn_in:
            cubes = self._cubes(leaf.read)
            self._torn_in[key] = None if cubes is None else self._count(cubes)
        return self._torn_in[key]

    def _cubes(self, read: Contents) -> list[Cube] | None:
        """Return all legal states, as cubes, whose sectors have the contents ``read``. ``UNREAD`` in ``read`` allows
        any content. Return None if there are too many cubes."""
        places = np.flatnonzero(read != UNREAD)
        return self._torn.showing(places, read[places])

    def _count(self, cubes: Sequence[Cube]) -> int:
        parts, legal = self._plan.parts, self._plan.legal
        return sum(parts.legal.count(cube) - legal.count(parts.whole(cube)) for cube in cubes)

    def _content(self, document: dict[str, Any], path: str) -> bytes:
        return b"".join(self._findings.chunks[number] for number in document["tree"][path]["content"])


class _ShownData:
    """The sectors of data that the files of an outcome show. ``paths`` has the names of each file, and ``sizes`` its
    size in bytes."""

    def __init__(self, findings: OutcomeTable, outcome: int, content: Any) -> None:
        self.paths: dict[Any, tuple[str, ...]] = {}
        self.sizes: dict[Any, int] = {}
        self._whole: dict[bytes, tuple[Any, int] | None] = {}  # None: several places show these bytes
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
                        self._whole[shown] = None if shown in self._whole else (file, offset)
                    elif len(shown) >= LEAST_SHOWN:
                        self._tails.append((shown, file, offset))

    def find(self, data: bytes) -> tuple[Any, int] | None:
        """Return the file and the offset that show a sector with these bytes. Return None if no place shows them, or if
        several do."""
        tails = [(file, offset) for shown, file, offset in self._tails if data.startswith(shown)]
        if data not in self._whole:
            return tails[0] if len(tails) == 1 else None
        return None if tails else self._whole[data]


def missing_rows(count: int, have: Sequence[int], chance: Random) -> list[int] | None:
    """Return the rows that bob must mount in addition to the rows ``have``. A row is a mask of ``count`` bits. For any
    two bits, all rows together must have all four combinations 00, 01, 10 and 11. Return None if there are more than
    ``MOST_PARTS`` bits.

    The row with only zeros comes first, and then the row with only ones, unless they are in ``have``. For any two bits,
    the further rows must include a row with the first bit but not the second, and a row with the second bit but not the
    first. The *word* of a bit is the set of rows with this bit. So no bit's word may contain the word of another bit.
    With k rows, there are C(k, k/2) such words (Sperner's theorem). The result lacks rows that are not needed because
    of ``have``."""
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
    return [*pure, *(best or ())]


def _needed(rows: Sequence[int], missing: NDArray[np.bool_], count: int) -> list[int]:
    """Return some of ``rows`` that together show all pairs of bits that are True in the table ``missing``. A row shows
    an ordered pair of bits if it has the first bit and lacks the second. The row that shows the most pairs comes
    first."""
    found, left = list[int](), {row: _differing(row, count) for row in rows}
    while missing.any():
        best = max(left, key=lambda row: int((missing & left[row]).sum()))
        found.append(best)
        missing = missing & ~left.pop(best)
    return found


def _differing(mask: int, count: int) -> NDArray[np.bool_]:
    """Return a table with a truth value for each pair of bits: whether ``mask`` has the first bit and lacks the
    second."""
    bits = np.array([mask >> number & 1 for number in range(count)], dtype=np.bool_)
    shown: NDArray[np.bool_] = np.logical_and.outer(bits, ~bits)
    return shown


def _read(known: ReadTree, contents: Contents) -> NDArray[np.bool_] | None:
    """Return, for each sector, whether recovery of the state with these ``contents`` depends on it. Return None if bob
    does not know what recovery reads in this state."""
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
