"""The letters that describe a bio in block tracepoints (blk_fill_rwbs in kernel/trace/blktrace.c)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache


class Op(Enum):
    """The operation of a bio; OTHER for write zeroes and unknown letters."""

    READ = "R"
    WRITE = "W"
    DISCARD = "D"
    FLUSH = "F"
    OTHER = "N"


@dataclass(frozen=True, slots=True)
class Rwbs:
    """A bio's operation and its flags for durability; ``text`` is the kernel's."""

    text: str
    op: Op
    preflush: bool = False
    fua: bool = False
    meta: bool = False

    @property
    def flushes(self) -> bool:
        """Return whether it flushes the device's cache: REQ_PREFLUSH, or REQ_OP_FLUSH as drivers see it."""
        return self.preflush or self.op is Op.FLUSH


# A leading F is REQ_PREFLUSH if an operation follows it. Behind the operation: FUA, rAhead, Sync, Meta, atomic (U).
_RWBS = re.compile(r"(?P<preflush>F(?=[RWDNF]))?(?P<op>[RWDNF])(?P<flags>F?A?S?M?U?)")


@lru_cache(maxsize=256)
def parse_rwbs(text: str) -> Rwbs:
    """Read e.g. "FWFSM": a synchronous metadata write that flushes first and is FUA.

    Unknown letters give OTHER, never an error: they may be on an irrelevant bio. (So do DE, secure erase, and the zone
    operations Z?: a log-writes target does not offer them.)
    """
    if (found := _RWBS.fullmatch(text)) is None:
        return Rwbs(text, Op.OTHER, preflush=text.startswith("F"))
    flags = found["flags"]
    return Rwbs(text, Op(found["op"]), found["preflush"] is not None, "F" in flags, "M" in flags)
