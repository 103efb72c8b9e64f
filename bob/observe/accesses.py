"""How a crash state's device was accessed while it was recovered and looked at, from the guest's trace."""

from __future__ import annotations

import re
from typing import NamedTuple

_EVENT = re.compile(rb"block_bio_queue: \S+ (\S+) (\d+) \+ (\d+)")
"""As include/trace/events/block.h prints it: device, kind (fs/block: R, RA, RM; W, WS, FWFS, ...), sector, sectors."""


class Access(NamedTuple):
    """One bio with data: whether it ``reads`` or writes, its first sector, and how many sectors."""

    reads: bool
    sector: int
    sectors: int


def accesses(trace: bytes) -> tuple[Access, ...]:
    """The accesses in the text of a trace of ``block_bio_queue`` events, in the order in which they were queued.

    The event shows a bio before it is split, and only once. Readahead is a read like any other.
    """
    return tuple(
        Access(kind.startswith(b"R"), int(sector), int(sectors)) for kind, sector, sectors in _EVENT.findall(trace)
    )
