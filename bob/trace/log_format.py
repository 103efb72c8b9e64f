"""The on-disk format of dm-log-writes, little-endian (Linux ``drivers/md/dm-log-writes.c``).

The superblock fills the log's first sector. Each entry is a header and then its data. The header fills one sector and
is padded with zeros. A *sector* is a logical block of the recorded device (``super.sectorsize`` bytes)."""

from enum import IntFlag

from construct import Int32ul, Int64ul, Struct

MAGIC = 0x6A736677736872  # WRITE_LOG_MAGIC: the first eight bytes of the superblock

VERSION = 1  # WRITE_LOG_VERSION


class EntryFlags(IntFlag):
    FLUSH = 1 << 0  # without data, since dm core sends a PREFLUSH before its data

    FUA = 1 << 1  # durable on completion

    DISCARD = 1 << 2  # names sectors but carries no data

    MARK = 1 << 3  # a text, from ``dmsetup message DEV 0 mark TEXT``

    METADATA = 1 << 4  # REQ_META


KNOWN_FLAGS = sum(EntryFlags)  # any other bit makes a log malformed

SUPER = Struct(
    "magic" / Int64ul,
    "version" / Int64ul,
    "nr_entries" / Int64ul,
    "sectorsize" / Int32ul,
)
"""struct log_write_super, at byte 0. The kernel updates ``nr_entries`` only after a FUA write or a mark."""

ENTRY = Struct(
    "sector" / Int64ul,
    "nr_sectors" / Int64ul,
    "flags" / Int64ul,
    "data_len" / Int64ul,
)  # struct log_write_entry; ``data_len`` counts the bytes of a mark's text, which follows these fields


def check_sectorsize(sectorsize: int) -> str:
    """Return an error message for a bad ``sectorsize`` (bytes), else "". The kernel writes each sector of the log from
    one page of memory (write_metadata), and a page has at most 64 KiB."""
    if 512 <= sectorsize <= 65536 and sectorsize & (sectorsize - 1) == 0:
        return ""
    return f"sectorsize {sectorsize} is not a power of two from 512 to 65536"


def longest_mark(sectorsize: int) -> int:
    """Return the maximal length (bytes) of a mark's text: the kernel keeps one byte for a NUL (log_mark)."""
    return sectorsize - int(ENTRY.sizeof()) - 1
