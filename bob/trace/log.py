"""Read a log of dm-log-writes, entry by entry, with one entry in memory at a time. A reader is not safe for two
threads."""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import FileIO
from os import SEEK_END, PathLike
from typing import BinaryIO, NoReturn

from bob.errors import MalformedError
from bob.trace.log_format import ENTRY, KNOWN_FLAGS, MAGIC, SUPER, VERSION, EntryFlags, check_sectorsize, longest_mark
from bob.trace.model import SECTOR_BYTES

# The loop over headers is hot: construct would take ten times as long as struct, and IntFlag would double the loop's
# time. So the declaration gives a struct, and the flags come from a table of all combinations.
_ENTRY = struct.Struct("<" + "".join(member.subcon.fmtstr[1:] for member in ENTRY.subcons))
_FLAGS = tuple(EntryFlags(bits) for bits in range(KNOWN_FLAGS + 1))
_MARK = int(EntryFlags.MARK)
_DISCARD = int(EntryFlags.DISCARD)

_LONGEST_BIO = 1 << 32
"""One more than the most bytes of a bio: struct bvec_iter.bi_size is an unsigned int (include/linux/bvec.h)."""


@dataclass(frozen=True, slots=True)
class LogSuper:
    """The superblock, in the log's first sector: the number of complete entries, and the size of a sector (bytes)."""

    nr_entries: int
    sectorsize: int


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry of the log: a header, and then data. ``sector`` and ``nr_sectors`` say where the data belongs on the
    recorded device, in sectors of ``sectorsize`` bytes. The header begins at byte ``offset`` of the log. ``data_len``
    is the length (bytes) of the text of a mark, which is a note from ``dmsetup message``. ``data_bytes`` is the length
    of :meth:`data`, which is 0 for flushes, marks and discards."""

    index: int
    offset: int
    sector: int
    nr_sectors: int
    flags: EntryFlags
    data_len: int
    mark: str
    data_bytes: int
    sectorsize: int
    _read: Callable[[int, int], bytes] = field(repr=False, compare=False)

    @property
    def first(self) -> int:
        """The entry's first sector, counted in sectors of 512 bytes."""
        return self.sector * (self.sectorsize // SECTOR_BYTES)

    @property
    def sectors(self) -> int:
        """The entry's number of sectors of 512 bytes. For a discard, it is the number of discarded sectors."""
        return self.nr_sectors * (self.sectorsize // SECTOR_BYTES)

    def data(self) -> bytes:
        """Read and return the ``data_bytes`` that were written. Raises MalformedError if the log has become too short
        meanwhile."""
        data = self._read(self.offset + self.sectorsize, self.data_bytes)
        if len(data) != self.data_bytes:
            _malformed(self.index, self.offset, f"its data ends after {len(data)} of {self.data_bytes} bytes")
        return data


class LogReader:
    """A reader of the log in ``file``: a path (of a regular file, or of the log device itself) or a seekable binary
    file object.

    The superblock says how many entries the log has. The log of a guest that died may have more, since the kernel
    updates the number only after FUA writes and marks. If ``past_count`` is true, the reader also reads these further
    entries, until it finds bytes that cannot be an entry. For this, the log device must have been zeroed before the
    recording. Raises OSError if the path cannot be opened. Raises MalformedError, which names the entry and the offset,
    if the bytes are not a log."""

    super: LogSuper

    def __init__(self, file: BinaryIO | str | PathLike[str], *, past_count: bool = False) -> None:
        # FileIO is unbuffered: headers are far apart, and a buffered file would read much for nothing.
        self._own = FileIO(file) if isinstance(file, str | PathLike) else None
        self._file: BinaryIO = file if self._own is None else self._own  # type: ignore[assignment]
        self._past_count = past_count
        try:
            self._size = self._file.seek(0, SEEK_END)  # st_size is 0 for a block device
            self.super = self._read_super()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._own is not None:
            self._own.close()

    def __iter__(self) -> Iterator[LogEntry]:
        offset = self.super.sectorsize
        for index in range(self.super.nr_entries):
            entry = self._entry(index, offset)
            yield entry
            offset += self.super.sectorsize + entry.data_bytes
        index = self.super.nr_entries
        while self._past_count and (found := self._plausible(index, offset)) is not None:
            yield found
            index += 1
            offset += self.super.sectorsize + found.data_bytes

    def _read(self, offset: int, length: int) -> bytes:
        """Return ``length`` bytes at ``offset``, or fewer at the end of the file. The method may read several times,
        since a single unbuffered read may return too few bytes."""
        self._file.seek(offset)
        data = self._file.read(length)
        while 0 < len(data) < length and (more := self._file.read(length - len(data))):
            data += more
        return data

    def _read_super(self) -> LogSuper:
        raw = self._read(0, SUPER.sizeof())
        if len(raw) < SUPER.sizeof():
            raise MalformedError(f"not a dm-log-writes log: {self._size} bytes are too few for a super")
        found = SUPER.parse(raw)
        if found.magic != MAGIC:
            raise MalformedError(
                f"not a dm-log-writes log: magic {found.magic:#x} at byte 0 where {MAGIC:#x} should be",
                hint="this takes the log device of a log-writes target, not the device that was recorded",
            )
        if found.version != VERSION:
            raise MalformedError(f"dm-log-writes log of version {found.version} at byte 8: only {VERSION} is known")
        if wrong := check_sectorsize(found.sectorsize):
            raise MalformedError(f"not a dm-log-writes log: {wrong} (byte 24)")
        return LogSuper(int(found.nr_entries), int(found.sectorsize))

    def _entry(self, index: int, offset: int) -> LogEntry:
        sectorsize = self.super.sectorsize
        if offset + sectorsize > self._size:
            _malformed(index, offset, f"its header is cut off: the log has {self._size} bytes")
        sector, nr_sectors, bits, data_len = _ENTRY.unpack(self._read(offset, _ENTRY.size))
        if bits > KNOWN_FLAGS:
            _malformed(index, offset, f"unknown flags {bits & ~KNOWN_FLAGS:#x}")
        mark = ""
        if bits & _MARK:
            if bits != _MARK or nr_sectors:
                _malformed(index, offset, f"a mark with {nr_sectors} sectors and flags {bits:#x}")
            mark = self._mark(index, offset, data_len)
        elif data_len > nr_sectors * sectorsize:
            _malformed(index, offset, f"{data_len} bytes of inline data in {nr_sectors} sectors")
        data_bytes = 0 if bits & _DISCARD else nr_sectors * sectorsize
        if offset + sectorsize + data_bytes > self._size:
            _malformed(index, offset, f"its {data_bytes} bytes of data are cut off: the log has {self._size} bytes")
        flags = _FLAGS[bits]
        return LogEntry(index, offset, sector, nr_sectors, flags, data_len, mark, data_bytes, sectorsize, self._read)

    def _mark(self, index: int, offset: int, length: int) -> str:
        if length > longest_mark(self.super.sectorsize):
            _malformed(index, offset, f"a mark of {length} bytes, longer than {longest_mark(self.super.sectorsize)}")
        text = self._read(offset + _ENTRY.size, length)
        try:
            return text.decode()
        except UnicodeDecodeError:
            _malformed(index, offset, f"a mark that is not text: {text!r}")

    def _plausible(self, index: int, offset: int) -> LogEntry | None:
        """Return the entry at ``offset`` if the kernel could have written it there. Return None if the bytes are
        something else: for example zeros, or old data from before the recording."""
        try:
            entry = self._entry(index, offset)
        except MalformedError:
            return None
        header = self._read(offset, self.super.sectorsize)
        text = entry.data_len if entry.flags & EntryFlags.MARK else 0
        # log_writes_map writes only entries that have sectors, a flush or a mark.
        says_something = entry.nr_sectors or entry.flags & (EntryFlags.FLUSH | EntryFlags.MARK)
        padded = not any(header[_ENTRY.size + text :])  # write_metadata zeroes the rest of the sector
        return entry if says_something and padded and entry.data_bytes < _LONGEST_BIO else None


def _malformed(index: int, offset: int, what: str) -> NoReturn:
    raise MalformedError(f"log entry {index} at byte {offset}: {what}")
