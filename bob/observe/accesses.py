"""How a crash state's device was accessed while it was recovered and looked at, from the guest's trace.

The trace has three kinds of events: bios as they are queued; readahead of buffers, and lookups of buffers. The last two
tell what was only read ahead. jbd2 scans the journal, and whenever it wants a block that nobody has asked for, it reads
32 of them ahead: it looks each buffer up (``__find_get_block``), has eight at a time read by ``__bh_read_batch``
without waiting, and lets go of them (do_readahead in fs/jbd2/recovery.c). Who uses such a buffer looks it up once more.
So a block that was read ahead, was looked up once only and is in one bio only was used by nobody, and what is in it
made no difference. Everything else counts as read: what is looked up before it is read ahead, as the block that jbd2
wanted; what a lookup was not traced of; and all of it where the kernel lets nobody trace these functions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

_EVENT = re.compile(
    rb"block_bio_queue: \S+ (?P<kind>\S+) (?P<sector>\d+) \+ (?P<sectors>\d+)"
    rb"|lookup: \S+ b=(?P<block>\d+)"
    rb"|ahead: \S+ n=(?P<n>\d+) wait=0 size=(?P<size>\d+) (?P<blocks>.*)"
)
"""The first as include/trace/events/block.h prints it: device, kind (R, RA, RM; W, WS, FWFS, ...), sector, sectors. The
others as bob/guest/agent/observer.py makes them: blocks, and their size in bytes."""
_SECTOR = 512
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
    with its sectors: of these it is worth tracing the lookups.
    """

    bios: tuple[Access, ...] = ()
    sectors_read: int = 0
    ahead: Mapping[int, range] = field(default_factory=dict)


def accesses(trace: bytes) -> Accesses:
    """What the text of a trace says. The event shows a bio before it is split, and only once."""
    bios: list[Access] = []
    ahead: dict[int, range] = {}
    lookups: list[int] = []
    unused: set[int] = set()
    used: dict[int, int] = {}
    for number, event in enumerate(_EVENT.finditer(trace)):
        if event["kind"]:
            bios.append(Access(event["kind"].startswith(b"R"), int(event["sector"]), int(event["sectors"]), number))
        elif event["block"]:
            lookups.append(block := int(event["block"]))
            if block in unused:
                unused.remove(block)
                used.update((sector, number) for sector in ahead[block])
        else:
            words = event["blocks"].split()[: int(event["n"])]
            blocks = [int(word.partition(b"=")[2]) for word in words]
            unused.update(block for block in blocks if block not in ahead and _looked_up_once(block, lookups))
            size = int(event["size"]) // _SECTOR
            ahead.update((block, range(block * size, (block + 1) * size)) for block in blocks)
    total = sum(bio.sectors for bio in bios if bio.reads)
    if not ahead:
        return Accesses(tuple(bios), total)
    read = Counter(sector for bio in bios if bio.reads for sector in range(bio.sector, bio.sector + bio.sectors))
    never = {sector for block in unused for sector in ahead[block] if read[sector] == 1}
    kept = [
        bio._replace(used=used.get(bio.sector, bio.used))
        for bio in bios
        if not (bio.reads and never.issuperset(range(bio.sector, bio.sector + bio.sectors)))
    ]
    return Accesses(tuple(kept), total, ahead)


def _looked_up_once(block: int, lookups: list[int]) -> bool:
    """Whether the ``lookups`` up to now are those of one caller: one of a buffer that was there, or those of one that
    was made anew."""
    found = lookups.count(block)
    return found == 1 or (found == _MADE_ANEW and _in_a_row(block, lookups))


def _in_a_row(block: int, lookups: list[int]) -> bool:
    first = lookups.index(block)
    return lookups[first : first + _MADE_ANEW] == [block] * _MADE_ANEW
