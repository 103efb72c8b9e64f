"""Images as the sectors in which they differ from what both ends have (the form is bob.agent.inside.images')."""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from bob.trace.model import SECTOR_BYTES

RUN = struct.Struct(">QI")
BLANK = 1 << 31
"""Set in the number of sectors: they are all zeros, and no data follows."""


class Sectors:
    """The sectors of a packed difference, to be asked for one by one: nothing costs what the device is long."""

    def __init__(self, packed: bytes) -> None:
        self._data = zlib.decompress(packed)
        self._runs = list(_headers(self._data))
        self._starts = [sector for sector, _count, _position in self._runs]

    def __iter__(self) -> Iterator[int]:
        """The numbers of the sectors with a difference."""
        for first, count, _position in self._runs:
            yield from range(first, first + count)

    def get(self, sector: int) -> bytes | None:
        """The 512 bytes of ``sector``; None where there is no difference."""
        number = bisect_right(self._starts, sector) - 1
        if number < 0:
            return None
        first, count, position = self._runs[number]
        if sector >= first + count:
            return None
        if position is None:
            return bytes(SECTOR_BYTES)
        start = position + (sector - first) * SECTOR_BYTES
        return self._data[start : start + SECTOR_BYTES]


def runs(packed: bytes) -> Iterator[tuple[int, bytes]]:
    """The runs of a packed difference: first sector, and the data from there."""
    data = zlib.decompress(packed)
    for sector, count, position in _headers(data):
        length = count * SECTOR_BYTES
        yield sector, bytes(length) if position is None else data[position : position + length]


def packed(runs: Iterable[tuple[int, bytes | memoryview]]) -> bytes:
    """The packed difference that has these runs, none of which covers another."""
    packer = zlib.compressobj(1)
    pieces: list[bytes] = []
    for sector, data in runs:
        pieces += packer.compress(RUN.pack(sector, len(data) // SECTOR_BYTES)), packer.compress(data)
    return b"".join([*pieces, packer.flush()])


def by_sector(runs: Iterable[tuple[int, bytes]]) -> dict[int, bytes]:
    """The 512 bytes of each sector that ``runs`` (first sector, data) cover; the last of several runs counts."""
    return {
        first + offset // SECTOR_BYTES: data[offset : offset + SECTOR_BYTES]
        for first, data in runs
        for offset in range(0, len(data), SECTOR_BYTES)
    }


def apply(packed: bytes, image: bytearray) -> None:
    """Write a packed difference into ``image``."""
    for sector, data in runs(packed):
        image[sector * SECTOR_BYTES : sector * SECTOR_BYTES + len(data)] = data


def overlaid(packed: bytes, over: Iterable[tuple[int, bytes]]) -> bytes:
    """A packed difference with the runs ``over`` (first sector, data) laid on it, a later one on an earlier one."""
    sectors = by_sector(over)
    covered = sorted(sectors)
    data = zlib.decompress(packed)
    pieces = [(sector, RUN.pack(sector, 1) + sectors[sector]) for sector in covered]
    for first, count, position in _headers(data):
        start = first
        inside = covered[bisect_left(covered, first) : bisect_left(covered, first + count)]
        for stop in (*inside, first + count):
            if stop > start:
                pieces.append((start, _piece(data, start, stop, first, position)))
            start = stop + 1
    return zlib.compress(b"".join(piece for _sector, piece in sorted(pieces)), 1)


def _piece(data: bytes, start: int, stop: int, first: int, position: int | None) -> bytes:
    """The sectors ``start`` to ``stop`` of the run from ``first`` on, as a run of their own."""
    if position is None:
        return RUN.pack(start, (stop - start) | BLANK)
    begin, end = (position + (sector - first) * SECTOR_BYTES for sector in (start, stop))
    return RUN.pack(start, stop - start) + data[begin:end]


def _headers(data: bytes) -> Iterator[tuple[int, int, int | None]]:
    """First sector and number of sectors of each run, and where in ``data`` theirs are; None: they are all zeros."""
    position = 0
    while position < len(data):
        sector, count = RUN.unpack_from(data, position)
        position += RUN.size
        if count & BLANK:
            yield sector, count & ~BLANK, None
        else:
            yield sector, count, position
            position += count * SECTOR_BYTES
