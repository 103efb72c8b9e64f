"""The on-disk format of dm-log-writes, declared: what the bytes are, not what they mean.

The source of every line here is Linux ``drivers/md/dm-log-writes.c`` (struct log_write_super, struct
log_write_entry, write_metadata, log_mark). All integers are little-endian. The super fills the first sector of the
log and each entry's header one further sector, zero-padded; the data of a write follows its header. *Sector* means
the logical block size of the recorded device (``super.sectorsize``), which is not always 512 bytes.
"""

from __future__ import annotations

from enum import IntFlag

from construct import Int32ul, Int64ul, Struct

MAGIC = 0x6A736677736872
"""First eight bytes of the super (WRITE_LOG_MAGIC)."""

VERSION = 1
"""The only version there is (WRITE_LOG_VERSION)."""


class EntryFlags(IntFlag):
    """What an entry is (LOG_*_FLAG)."""

    FLUSH = 1 << 0
    """A cache flush; through device-mapper always without data, since dm core sends a PREFLUSH ahead of its data."""

    FUA = 1 << 1
    """Durable when it completed."""

    DISCARD = 1 << 2
    """Names sectors but carries no data."""

    MARK = 1 << 3
    """No input or output at all: a text, from ``dmsetup message DEV 0 mark TEXT``."""

    METADATA = 1 << 4
    """The bio had REQ_META."""


KNOWN_FLAGS = sum(EntryFlags)
"""Every bit that has a meaning; any other bit makes a log malformed."""

SUPER = Struct(
    "magic" / Int64ul,
    "version" / Int64ul,
    "nr_entries" / Int64ul,
    "sectorsize" / Int32ul,
)
"""struct log_write_super: at byte 0. ``nr_entries`` is rewritten only after a FUA write or a mark."""

ENTRY = Struct(
    "sector" / Int64ul,
    "nr_sectors" / Int64ul,
    "flags" / Int64ul,
    "data_len" / Int64ul,
)
"""struct log_write_entry. ``data_len`` counts the bytes of a mark's text, which stands right behind these fields."""


def check_sectorsize(sectorsize: int) -> str:
    """What is wrong with ``sectorsize`` in bytes, or nothing.

    It is a logical block size, and write_metadata puts one into a single page: the largest page of Linux is 64 KiB.
    """
    if 512 <= sectorsize <= 65536 and sectorsize & (sectorsize - 1) == 0:
        return ""
    return f"sectorsize {sectorsize} is not a power of two from 512 to 65536"


def longest_mark(sectorsize: int) -> int:
    """Bytes that a mark's text may have in a log of ``sectorsize``: the kernel keeps one back for a NUL (log_mark)."""
    return sectorsize - int(ENTRY.sizeof()) - 1
