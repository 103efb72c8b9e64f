"""Write a log in the format of dm-log-writes, so that programs such as ``replay-log`` of xfstests can replay it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import BinaryIO

from bob.errors import UsageError
from bob.trace.log_format import ENTRY, MAGIC, SUPER, VERSION, EntryFlags, check_sectorsize, longest_mark
from bob.trace.model import SECTOR_BYTES

_PLAIN = EntryFlags(0)


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An entry to write. ``sector`` and ``nr_sectors`` count sectors of the size that :func:`write_log` gets. An entry
    for a write has ``data``. The data must fill whole sectors, and its length is the length of the write. Only an entry
    for a discard has ``nr_sectors``, and only a mark has the text ``mark``."""

    flags: EntryFlags = _PLAIN
    sector: int = 0
    data: bytes = b""
    nr_sectors: int = 0
    mark: str = ""


def write_log(file: BinaryIO, entries: Iterable[NewEntry], *, sectorsize: int = SECTOR_BYTES) -> int:
    """Write a whole log into the seekable ``file`` from byte 0, and return its number of entries. Raises UsageError for
    data that is not whole sectors, a mark that is too long, or data in a mark or discard."""
    if wrong := check_sectorsize(sectorsize):
        raise UsageError(wrong)
    count = 0
    file.seek(sectorsize)
    for entry in entries:
        file.write(_header(count, entry, sectorsize).ljust(sectorsize, b"\0"))
        file.write(entry.data)
        count += 1
    # The superblock is written last, as in the kernel, so that it never counts entries that the log does not have.
    fields = {"magic": MAGIC, "version": VERSION, "nr_entries": count, "sectorsize": sectorsize}
    file.seek(0)
    file.write(SUPER.build(fields).ljust(sectorsize, b"\0"))
    return count


def _header(index: int, entry: NewEntry, sectorsize: int) -> bytes:
    text = entry.mark.encode()
    is_mark = bool(entry.flags & EntryFlags.MARK)
    is_discard = bool(entry.flags & EntryFlags.DISCARD)
    if len(entry.data) % sectorsize:
        raise UsageError(f"log entry {index}: {len(entry.data)} bytes of data are not whole sectors of {sectorsize}")
    if entry.data and (is_mark or is_discard):
        raise UsageError(f"log entry {index}: a mark or a discard cannot have data")
    if is_mark and (entry.flags != EntryFlags.MARK or entry.nr_sectors):
        raise UsageError(f"log entry {index}: a mark cannot have other flags or sectors")
    if text and not is_mark:
        raise UsageError(f"log entry {index}: it has a text, but lacks the flag MARK")
    if entry.nr_sectors and not is_discard:
        raise UsageError(f"log entry {index}: only a discard can set nr_sectors; the data of a write gives its length")
    if len(text) > longest_mark(sectorsize):
        raise UsageError(f"log entry {index}: a mark of {len(text)} bytes, longer than {longest_mark(sectorsize)}")
    fields = {
        "sector": entry.sector,
        "nr_sectors": entry.nr_sectors if is_discard else len(entry.data) // sectorsize,
        "flags": int(entry.flags),
        "data_len": len(text),
    }
    return bytes(ENTRY.build(fields)) + text
