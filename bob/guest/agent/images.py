"""Device images in the guest's memory, and the form in which they travel.

*Images* travel as the sectors (512 bytes) in which they differ from something that both ends have: ``u64 sector, u32
sectors`` (big-endian) and the data, again and again, all compressed by zlib.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from collections.abc import Callable
from typing import Any

SECTOR = 512
CHUNK = 64 * 1024
RUN = struct.Struct(">QI")


def differences(new: Any, old: Callable[[int, int], bytes], length: int) -> bytes:
    """The sectors of ``new`` (a buffer of ``length`` bytes) that are not what ``old(offset, length)`` says, packed."""
    runs: list[list[int]] = []
    for offset in range(0, length, CHUNK):
        size = min(CHUNK, length - offset)
        ours, theirs = bytes(new[offset : offset + size]), old(offset, size)
        if ours == theirs:
            continue
        for inner in range(0, size, SECTOR):
            if ours[inner : inner + SECTOR] != theirs[inner : inner + SECTOR]:
                sector = (offset + inner) // SECTOR
                if runs and runs[-1][0] + runs[-1][1] == sector:
                    runs[-1][1] += 1
                else:
                    runs.append([sector, 1])
    pieces = []
    for sector, count in runs:
        pieces.append(RUN.pack(sector, count))
        pieces.append(bytes(new[sector * SECTOR : (sector + count) * SECTOR]))
    return zlib.compress(b"".join(pieces), 1)


def apply_differences(packed: bytes, image: Any) -> None:
    """Write packed ``differences`` into ``image``, a writable buffer."""
    data = memoryview(zlib.decompress(packed))
    position = 0
    while position < len(data):
        sector, count = RUN.unpack_from(data, position)
        position += RUN.size
        image[sector * SECTOR : (sector + count) * SECTOR] = data[position : position + count * SECTOR]
        position += count * SECTOR


def map_file(path: str, length: int = 0) -> mmap.mmap:
    """``path`` in memory, writable and shared; made with ``length`` bytes if that is given."""
    fd = os.open(path, os.O_RDWR | (os.O_CREAT | os.O_TRUNC if length else 0), 0o600)
    try:
        if length:
            os.ftruncate(fd, length)
        return mmap.mmap(fd, 0)
    finally:
        os.close(fd)


def fill(image: mmap.mmap, cell: bytes) -> None:
    """Repeat ``cell`` over the whole of ``image``."""
    piece = cell * (CHUNK // len(cell))
    for offset in range(0, len(image), CHUNK):
        size = min(CHUNK, len(image) - offset)
        image[offset : offset + size] = piece[:size]
