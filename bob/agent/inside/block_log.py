"""The part of a dm-log-writes log that was written, read from the log device's file, and what it says was written."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from bob.agent.inside.frames import Denial

SECTOR = 512
SUPER = struct.Struct("<QQQI")
ENTRY = struct.Struct("<QQQQ")
MAGIC = 0x6A736677736872
DISCARD = 4
MARK = 8
LAST_MARK = b"dm-log-writes-end"
"""What the target writes as the very last entry, when it is removed (log_writes_dtr in drivers/md/dm-log-writes.c)."""


def read_log(path: str) -> bytes:
    """The log in the file ``path``, up to the end of its last entry.

    A target that runs out of room, or cannot write its log, goes on without logging and says so only to the kernel log.
    But then it does not log its last mark either: a log without that is refused.
    """
    fd = os.open(path, os.O_RDONLY)
    try:
        magic, _version, entries, sectorsize = SUPER.unpack(os.pread(fd, SUPER.size, 0))
        if magic != MAGIC:
            raise Denial("there is no dm-log-writes log on the log device")
        end, last = sectorsize, b""
        for _ in range(entries):
            header = os.pread(fd, sectorsize, end)
            _sector, sectors, flags, length = ENTRY.unpack_from(header)
            end += sectorsize * (1 if flags & DISCARD else 1 + sectors)
            last = header[ENTRY.size : ENTRY.size + length] if flags & MARK else b""
        if last != LAST_MARK:
            raise Denial("the log device is full: writes are missing from the log")
        pieces, position = [], 0
        while position < end and (piece := os.pread(fd, end - position, position)):
            pieces.append(piece)
            position += len(piece)
        return b"".join(pieces)
    finally:
        os.close(fd)


def writes(log: bytes) -> Iterator[tuple[int, int, int]]:
    """The writes in ``log``, in its order: first sector, sectors, and where in ``log`` their data begins."""
    _magic, _version, entries, sectorsize = SUPER.unpack_from(log)
    factor = sectorsize // SECTOR
    end = sectorsize
    for _ in range(entries):
        sector, sectors, flags, _length = ENTRY.unpack_from(log, end)
        end += sectorsize
        if not flags & DISCARD:
            if sectors:
                yield sector * factor, sectors * factor, end
            end += sectorsize * sectors
