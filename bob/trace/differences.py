"""Images as the sectors in which they differ from what both ends have (the form is bob.guest.agent.images')."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from bob.trace.model import SECTOR_BYTES

RUN = struct.Struct(">QI")
BLANK = 1 << 31
"""Set in the number of sectors: they are all zeros, and no data follows."""


def runs(packed: bytes) -> Iterator[tuple[int, bytes]]:
    """The runs of a packed difference: first sector, and the data from there."""
    data = zlib.decompress(packed)
    position = 0
    while position < len(data):
        sector, count = RUN.unpack_from(data, position)
        position += RUN.size
        if count & BLANK:
            yield sector, bytes((count & ~BLANK) * SECTOR_BYTES)
        else:
            yield sector, data[position : position + count * SECTOR_BYTES]
            position += count * SECTOR_BYTES


def apply(packed: bytes, image: bytearray) -> None:
    """Write a packed difference into ``image``."""
    for sector, data in runs(packed):
        image[sector * SECTOR_BYTES : sector * SECTOR_BYTES + len(data)] = data
