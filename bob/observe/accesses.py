"""How a crash state's device was accessed while it was recovered and looked at, from the events of its trace.

The trace has four kinds of events: bios as they are queued; readahead of buffers; lookups of buffers; and when jbd2
begins and ends to read a block of its journal. All but the first tell what was only read ahead. Whenever jbd2 wants a
block that was not asked for (``jread``), it has it read, and then 32 blocks from there on, this one again included:
it looks each buffer up (``__find_get_block``), has eight at a time read by ``__bh_read_batch`` without waiting, and
lets go of them (do_readahead in fs/jbd2/recovery.c). So within ``jread`` readahead begins where something is looked up
again after a bio. Who uses such a buffer looks it up once more, elsewhere. So a block that was read ahead, was looked
up by readahead only and is in one bio only was not used, and what is in it made no difference.

Others read ahead in the same way, such as reiserfs; there the lookup that comes before is the only one of readahead.
Everything else counts as read: what is looked up before it is read ahead; what a lookup was not traced of; and all of
it where these functions cannot be traced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bob.observe.events import AccessEvent, Bio, Lookup, ReadAhead

_MADE_ANEW = 3
"""Lookups of a buffer that is not there yet: __find_get_block in __getblk_gfp, and twice in __getblk_slow, before and
after the buffer is made (fs/buffer.c)."""


class Access(NamedTuple):
    """One bio with data: whether it ``reads`` or writes, its first sector, how many sectors, and when what it read was
    first used, as the number of an event: its own, or that of the first lookup if it was read ahead."""

    reads: bool
    sector: int
    sectors: int
    used: int


@dataclass(frozen=True, slots=True)
class Accesses:
    """The bios of one crash state in the order in which they were queued, without ``unused`` readahead.

    ``sectors_read`` counts all sectors that were read, used or not. ``ahead`` are the blocks that were read ahead, each
    with its sectors, and ``wanted`` those that jbd2 looked up before it read ahead: of all these it is worth tracing
    the lookups.
    """

    bios: tuple[Access, ...] = ()
    sectors_read: int = 0
    ahead: Mapping[int, range] = field(default_factory=dict)
    wanted: frozenset[int] = frozenset()


def accesses(events: Iterable[AccessEvent]) -> Accesses:
    """What the events of a trace say. They show a bio before it is split, and only once."""
    bios: list[Access] = []
    blocks = _Blocks()
    for number, event in enumerate(events):
        if isinstance(event, Bio):
            bios.append(Access(*event, number))
            blocks.queued()
        elif isinstance(event, Lookup):
            blocks.looked_up(event.block, number)
        elif isinstance(event, ReadAhead):
            blocks.read_ahead(event.blocks, event.sectors)
        else:
            blocks.in_jread(begins=event.begins)
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


class _Blocks:
    """The blocks that were read ahead: the sectors of each, and those that are ``unused`` so far.

    ``used`` has, for each sector that was read ahead and then used, the number of the event that showed it. ``wanted``
    are the blocks that jbd2 looked up where it went on to read ahead.
    """

    def __init__(self) -> None:
        self.ahead: dict[int, range] = {}
        self.unused: set[int] = set()
        self.used: dict[int, int] = {}
        self.wanted: set[int] = set()
        self._lookups: list[int] = []  # but those of jbd2's readahead
        self._jread: _OpenJournalRead | None = None

    def in_jread(self, *, begins: bool) -> None:
        """jbd2 begins to read a block of its journal, or is done with it."""
        self._jread = _OpenJournalRead() if begins else None

    def queued(self) -> None:
        """A bio."""
        if self._jread is not None:
            self._jread.before_bio |= self._jread.looked_up

    def looked_up(self, block: int, number: int) -> None:
        """A lookup, by event ``number``."""
        if self._jread is not None and self._jread.is_by_readahead(block):
            return
        self._lookups.append(block)
        if block in self.unused:
            self.unused.remove(block)
            self.used.update((sector, number) for sector in self.ahead[block])

    def read_ahead(self, blocks: Sequence[int], size: int) -> None:
        """Readahead of blocks of ``size`` sectors."""
        for block in blocks:
            if block not in self.ahead and self._looked_up_by_readahead(block):
                self.unused.add(block)
        self.ahead.update((block, range(block * size, (block + 1) * size)) for block in blocks)
        if self._jread is not None:
            self.wanted |= self._jread.looked_up

    def _looked_up_by_readahead(self, block: int) -> bool:
        """Whether lookups of ``block`` are traced, and up to now only readahead has looked it up."""
        found = self._lookups.count(block)
        if self._jread is not None:
            return not found and block in self._jread.by_readahead
        return found == 1 or (found == _MADE_ANEW and self._in_a_row(block))

    def _in_a_row(self, block: int) -> bool:
        first = self._lookups.index(block)
        return self._lookups[first : first + _MADE_ANEW] == [block] * _MADE_ANEW


class _OpenJournalRead:
    """While jbd2 reads a block of its journal: what was looked up, before the last bio and in all, and by readahead."""

    def __init__(self) -> None:
        self.looked_up: set[int] = set()
        self.before_bio: set[int] = set()
        self.by_readahead: set[int] = set()

    def is_by_readahead(self, block: int) -> bool:
        """Take note of a lookup; whether it is one of readahead."""
        if self.by_readahead or block in self.before_bio:
            self.by_readahead.add(block)
            return True
        self.looked_up.add(block)
        return False
