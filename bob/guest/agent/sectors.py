"""A recording's sectors (512 bytes) in the forms in which they travel: emulated SSH takes 0.2 s for each MiB.

When xfs is mounted it writes 2 MiB of its log: sectors that are zeros but for 20 to 320 bytes at the beginning, and
there the same but for a number. So what is left out of a sector is the zeros at its end, and before them what the
sector before says too. And nearly all that a device holds in the end is in the log as well, so it travels as places in
the log: they are compared here, byte for byte, and what is not in its place there travels itself.
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
HEAD = 32
"""Bytes at the beginning of a sector; there a record says which it is."""
AS_BEFORE = 1 << 15
_ZEROS = bytes(SECTOR - HEAD)
_TAILS = [bytes(SECTOR >> shift) for shift in (1, 2, 3, 4, 5)]


def brief(data: bytes) -> bytes:
    """``data`` with what can be left out of each sector left out: u32 bytes of data; u16 for each sector: bytes that
    are left of it, plus ``AS_BEFORE`` if these are of its ``HEAD`` and the rest is as in the sector before
    (big-endian); and these bytes, in which zeros at the end are left out too."""
    lengths: list[int] = []
    pieces: list[bytes] = []
    rest_before = _ZEROS
    for start in range(0, len(data), SECTOR):
        sector = data[start : start + SECTOR]
        rest, mark = sector[HEAD:], 0
        if rest == rest_before:
            sector, mark = sector[:HEAD], AS_BEFORE
        piece = _without_zeros(sector)
        lengths.append(len(piece) | mark)
        pieces.append(piece)
        rest_before = rest
    return b"".join([_LENGTH.pack(len(data)), struct.pack(f">{len(lengths)}H", *lengths), *pieces])


def in_full(packed: bytes) -> bytes:
    """What :func:`brief` was given."""
    [length] = _LENGTH.unpack_from(packed)
    lengths = struct.unpack_from(f">{-(-length // SECTOR)}H", packed, _LENGTH.size)
    position = _LENGTH.size + 2 * len(lengths)
    sectors = []
    rest = _ZEROS
    for word in lengths:
        left = word & ~AS_BEFORE
        piece = packed[position : position + left]
        sectors.append(piece.ljust(HEAD, b"\0") + rest if word & AS_BEFORE else piece.ljust(SECTOR, b"\0"))
        rest = sectors[-1][HEAD:]
        position += left
    return b"".join(sectors)[:length]


def _without_zeros(piece: bytes) -> bytes:
    """``piece`` without the zeros at its end; ``rstrip`` alone would call a function for each of them."""
    for zeros in _TAILS:
        if piece.endswith(zeros):
            piece = piece[: -len(zeros)]
    return piece.rstrip(b"\0")


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
