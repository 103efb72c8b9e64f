"""Images stored as differences from a known content. A difference is a list of *runs*: consecutive sectors, with their
new data. In its packed form, the runs follow each other, compressed by zlib; :mod:`bob.agent.inside.images` has the
format."""

import hashlib
import struct
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from bob.trace.model import SECTOR_BYTES

RUN = struct.Struct(">QI")
BLANK = 1 << 31  # a flag in the number of sectors: the run has only zeros, and its data is left out


class Sectors:
    """The sectors of a packed difference. The time to read one sector does not depend on the device's length."""

    def __init__(self, packed: bytes) -> None:
        self._data = zlib.decompress(packed)
        self._runs = list(_headers(self._data))
        self._starts = [sector for sector, _count, _position in self._runs]

    def __iter__(self) -> Iterator[int]:
        for first, count, _position in self._runs:
            yield from range(first, first + count)

    def get(self, sector: int) -> bytes | None:
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
    """Yield each run of the difference ``packed``: the number of its first sector, and its data."""
    data = zlib.decompress(packed)
    for sector, count, position in _headers(data):
        length = count * SECTOR_BYTES
        yield sector, bytes(length) if position is None else data[position : position + length]


def packed(runs: Iterable[tuple[int, bytes | memoryview]], *, blanks: bool = False) -> bytes:
    """Return the packed form of a difference with these ``runs`` (first sector, data), which must not overlap. If
    ``blanks``, leave out the data of runs that have only zeros."""
    packer = zlib.compressobj(1)
    pieces: list[bytes] = []
    for sector, data in runs:
        if blanks and data == bytes(len(data)):
            pieces.append(packer.compress(RUN.pack(sector, len(data) // SECTOR_BYTES | BLANK)))
            continue
        pieces += packer.compress(RUN.pack(sector, len(data) // SECTOR_BYTES)), packer.compress(data)
    return b"".join([*pieces, packer.flush()])


def digest(packed: bytes) -> str:
    """Return a digest of the sectors in the difference ``packed`` and their data. The division into runs does not
    matter."""
    found, end = hashlib.sha256(), -1
    for sector, data in runs(packed):
        if sector != end:
            found.update(RUN.pack(sector, 0))
        found.update(data)
        end = sector + len(data) // SECTOR_BYTES
    return found.hexdigest()


def by_sector(runs: Iterable[tuple[int, bytes]]) -> dict[int, bytes]:
    """Return the 512 bytes of each sector in ``runs`` (first sector, data). A later run replaces an earlier one."""
    return {
        first + offset // SECTOR_BYTES: data[offset : offset + SECTOR_BYTES]
        for first, data in runs
        for offset in range(0, len(data), SECTOR_BYTES)
    }


def overlaid(packed: bytes, over: Iterable[tuple[int, bytes]]) -> bytes:
    """Return a new packed difference: ``packed``, overwritten by the runs in ``over`` (first sector, data), one after
    the other."""
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
    if position is None:
        return RUN.pack(start, (stop - start) | BLANK)
    begin, end = (position + (sector - first) * SECTOR_BYTES for sector in (start, stop))
    return RUN.pack(start, stop - start) + data[begin:end]


def _headers(data: bytes) -> Iterator[tuple[int, int, int | None]]:
    """Yield for each run its first sector, its number of sectors, and the position of its bytes in ``data`` (None: all
    zeros)."""
    position = 0
    while position < len(data):
        sector, count = RUN.unpack_from(data, position)
        position += RUN.size
        if count & BLANK:
            yield sector, count & ~BLANK, None
        else:
            yield sector, count, position
            position += count * SECTOR_BYTES
