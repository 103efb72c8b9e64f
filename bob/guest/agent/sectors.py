"""A recording's sectors (512 bytes) in the forms in which they travel: emulated SSH takes 0.2 s for each MiB.

When xfs is mounted it writes 2 MiB of its log, and most of these sectors are zeros but for a few bytes at the
beginning: zeros at a sector's end are left out. And nearly all that a device holds in the end is in the log as well, so
it travels as places in the log: they are compared here, byte for byte, and what is not in its place there travels
itself.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from bob.guest.agent.block_log import writes
from bob.guest.agent.images import SECTOR, STEPS, Image, Runs

_LENGTH = struct.Struct(">I")
BLOCK = STEPS[-1] // SECTOR
"""So many sectors are looked for in the log together: what differs from a base is told in such blocks."""
NOWHERE = -1


def without_zeros(data: bytes) -> bytes:
    """``data`` with the zeros at the end of each sector left out: u32 bytes, u16 for each sector: bytes that are left
    of it (big-endian), and these."""
    pieces = [data[start : start + SECTOR].rstrip(b"\0") for start in range(0, len(data), SECTOR)]
    return b"".join([_LENGTH.pack(len(data)), struct.pack(f">{len(pieces)}H", *map(len, pieces)), *pieces])


def with_zeros(packed: bytes) -> bytes:
    """What :func:`without_zeros` was given."""
    [length] = _LENGTH.unpack_from(packed)
    lengths = struct.unpack_from(f">{-(-length // SECTOR)}H", packed, _LENGTH.size)
    position = _LENGTH.size + 2 * len(lengths)
    pieces = []
    for left in lengths:
        pieces.append(packed[position : position + left].ljust(SECTOR, b"\0"))
        position += left
    return b"".join(pieces)[:length]


def placed(image: Image, runs: Runs, log: bytes) -> tuple[list[int], bytes]:
    """Where in ``log`` the sectors ``runs`` of ``image`` are: a flat list of (first sector, sectors, position in the
    log, or ``NOWHERE``), and the data of those that are nowhere."""
    last: dict[int, int] = {}
    for sector, sectors, position in writes(log):
        last.update(zip(range(sector, sector + sectors), range(position, len(log), SECTOR)))
    places: list[int] = []
    rest: list[bytes] = []
    for first, sectors in runs:
        for sector in range(first, first + sectors, BLOCK):
            count = min(BLOCK, first + sectors - sector)
            data = image.get(sector, count)
            position = last.get(sector, NOWHERE)
            if position == NOWHERE or log[position : position + len(data)] != data:
                position = NOWHERE
                rest.append(data)
            if places and _goes_on(places[-3:], sector, position):
                places[-2] += count
            else:
                places += sector, count, position
    return places, b"".join(rest)


def found(places: Sequence[int], rest: bytes, log: bytes) -> list[tuple[int, bytes]]:
    """The runs (first sector, data) that :func:`placed` was given."""
    runs = []
    for sector, sectors, position in zip(places[::3], places[1::3], places[2::3]):
        length = sectors * SECTOR
        if position == NOWHERE:
            runs.append((sector, rest[:length]))
            rest = rest[length:]
        else:
            runs.append((sector, log[position : position + length]))
    return runs


def _goes_on(last: list[int], sector: int, position: int) -> bool:
    """Whether what is at ``position`` for ``sector`` goes on where the ``last`` place ended."""
    first, sectors, begin = last
    expected = NOWHERE if begin == NOWHERE else begin + sectors * SECTOR
    return first + sectors == sector and position == expected
