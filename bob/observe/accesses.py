"""The accesses to a crash state's device while the file system recovers and bob reads the files. bob takes them from
the kernel's trace of that state.

The kernel reads some blocks ahead, whose data may then stay unused. Code that uses such a block looks it up once more
in the kernel's cache. So bob counts a block as unused if it was read ahead, is in one bio only, and only readahead
looked it up. All other blocks count as used.

To read a block of its journal, jbd2 reads 32 blocks, beginning with that block (do_readahead in fs/jbd2/recovery.c).
Its function ``jread`` first looks up the wanted block, and sends a bio for it. Readahead then looks up the same block
again, and the blocks after it. This second lookup of the wanted block is not a use. It tells bob that readahead has
begun, so bob takes it and all later lookups of this ``jread`` call as lookups by readahead. In other file systems, such
as reiserfs, readahead looks up each block once. So if a block had just one lookup before the bio that reads it ahead,
bob counts that lookup as readahead's.

A file system may be on layers (device-mapper or md devices). Its block numbers are then those of the device that the
layers make. The kernel translates each read of that device into bios to the disks. From these bios, bob knows the
places of the blocks on the disks. If the lengths of these bios do not add up to the length of the read, bob does not
know the places. It then counts all blocks of this read as used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bob.observe.events import AccessEvent, Bio, Lookup, ReadAhead, VolumeRead

_MADE_ANEW = 3
"""Lookups of a buffer that does not exist yet: one in __getblk_gfp, and two in __getblk_slow (fs/buffer.c)."""


class Access(NamedTuple):
    """One bio with data. ``used`` is the number, in the trace, of the event that first used the data. This event is the
    bio itself, or a later lookup in a cache."""

    reads: bool
    sector: int
    sectors: int
    used: int


@dataclass(frozen=True, slots=True)
class Accesses:
    """The bios of one crash state in the order of queueing. Readahead whose data was not used is left out, but
    ``sectors_read`` includes it. ``ahead`` maps each block that was read ahead to its sectors. ``wanted`` has the
    blocks that jbd2 looked up for its own use, in calls that also read ahead."""

    bios: tuple[Access, ...] = ()
    sectors_read: int = 0
    ahead: Mapping[int, Sequence[int]] = field(default_factory=dict)
    wanted: frozenset[int] = frozenset()


def accesses(events: Iterable[AccessEvent]) -> Accesses:
    """Return the accesses in the events of a trace. The trace must show each bio once, before the kernel splits it."""
    bios: list[Access] = []
    blocks = _Blocks()
    volume: _VolumePlaces | None = None
    for number, event in enumerate(events):
        if isinstance(event, Bio):
            bios.append(Access(event.reads, event.sector, event.sectors, number))
            blocks.queued()
            if volume is not None:
                volume.passed_on(event)
        elif isinstance(event, Lookup):
            blocks.looked_up(event.block, number)
        elif isinstance(event, ReadAhead):
            blocks.read_ahead(event.blocks, event.sectors)
        elif isinstance(event, VolumeRead):
            volume = volume or _VolumePlaces()
            volume.queued(event)
        else:
            blocks.in_jread(begins=event.begins)
    if volume is not None:
        blocks.move(volume.places())
    total = sum(bio.sectors for bio in bios if bio.reads)
    if not blocks.ahead:
        return Accesses(tuple(bios), total)
    read = Counter(sector for bio in bios if bio.reads for sector in range(bio.sector, bio.sector + bio.sectors))
    never = {sector for block in blocks.unused for sector in blocks.ahead[block] if read[sector] == 1}
    kept = [
        bio if bio.sector not in blocks.used else bio._replace(used=blocks.used[bio.sector])
        for bio in bios
        if not (bio.reads and bio.sector in never and never.issuperset(range(bio.sector, bio.sector + bio.sectors)))
    ]
    return Accesses(tuple(kept), total, blocks.ahead, frozenset(blocks.wanted))


class _VolumePlaces:
    """The places of sectors on the disks, if the file system is on layers. It maps each sector that was read on the
    layers' device to the sector of the disks that had the data.

    A layer may let another task send the bios, after further reads have come. RAID 5 without a disk does so: its task
    reads other disks to compute the data. bob knows the bios of a read only if all bios up to the next read are
    together as long as the read. If an earlier read lacked bios, then the task of the read itself must have sent
    them."""

    def __init__(self) -> None:
        self._places: dict[int, int] = {}
        self._read = VolumeRead(0, 0)
        self._parts: list[int] = []
        self._tasks: set[int] = set()
        self._owed = False  # whether an earlier read lacks bios, which may still come

    def queued(self, read: VolumeRead) -> None:
        self._settle()
        self._read, self._parts, self._tasks = read, [], set()

    def passed_on(self, bio: Bio) -> None:
        if bio.reads:
            self._parts += range(bio.sector, bio.sector + bio.sectors)
            self._tasks.add(bio.task)

    def places(self) -> dict[int, int]:
        self._settle()
        return self._places

    def _settle(self) -> None:
        if len(self._parts) == self._read.sectors and not (self._owed and self._tasks != {self._read.task}):
            self._places.update(enumerate(self._parts, self._read.sector))
        self._owed = self._owed or len(self._parts) < self._read.sectors


class _Blocks:
    def __init__(self) -> None:
        self.ahead: dict[int, Sequence[int]] = {}
        self.unused: set[int] = set()
        self.used: dict[int, int] = {}
        self.wanted: set[int] = set()
        self._lookups: list[int] = []  # without the lookups of jbd2's readahead
        self._jread: _OpenJournalRead | None = None

    def move(self, places: Mapping[int, int]) -> None:
        """Replace each sector of the layers' device by the sector of the disks that ``places`` maps it to. A block with
        a sector that ``places`` lacks counts as used."""
        self.ahead = {
            block: [places[sector] for sector in sectors]
            for block, sectors in self.ahead.items()
            if all(sector in places for sector in sectors)
        }
        self.unused &= self.ahead.keys()
        self.used = {places[sector]: number for sector, number in self.used.items() if sector in places}

    def in_jread(self, *, begins: bool) -> None:
        self._jread = _OpenJournalRead() if begins else None

    def queued(self) -> None:
        if self._jread is not None:
            self._jread.before_bio |= self._jread.looked_up

    def looked_up(self, block: int, number: int) -> None:
        if self._jread is not None and self._jread.is_by_readahead(block):
            return
        self._lookups.append(block)
        if block in self.unused:
            self.unused.remove(block)
            self.used.update((sector, number) for sector in self.ahead[block])

    def read_ahead(self, blocks: Sequence[int], size: int) -> None:
        for block in blocks:
            if block not in self.ahead and self._looked_up_by_readahead(block):
                self.unused.add(block)
        self.ahead.update((block, range(block * size, (block + 1) * size)) for block in blocks)
        if self._jread is not None:
            self.wanted |= self._jread.looked_up

    def _looked_up_by_readahead(self, block: int) -> bool:
        found = self._lookups.count(block)
        if self._jread is not None:
            return not found and block in self._jread.by_readahead
        return found == 1 or (found == _MADE_ANEW and self._in_a_row(block))

    def _in_a_row(self, block: int) -> bool:
        first = self._lookups.index(block)
        return self._lookups[first : first + _MADE_ANEW] == [block] * _MADE_ANEW


class _OpenJournalRead:
    """The blocks that were looked up so far in one call of ``jread``, jbd2's function that reads a block of its
    journal. ``looked_up`` has the blocks that jbd2 looked up for itself. ``before_bio`` has those of them that it had
    looked up before the last bio was sent. ``by_readahead`` has the blocks that readahead looked up."""

    def __init__(self) -> None:
        self.looked_up: set[int] = set()
        self.before_bio: set[int] = set()
        self.by_readahead: set[int] = set()

    def is_by_readahead(self, block: int) -> bool:
        if self.by_readahead or block in self.before_bio:
            self.by_readahead.add(block)
            return True
        self.looked_up.add(block)
        return False
