"""Shades: variants of the written data. Two operations that write to one place use different shades, so that their data
differ in every byte.

An operation writes cells of 16 characters (:mod:`bob.workload.pattern`). In *shade* n, each character of a cell is
replaced by the n-th character after it in an alphabet. The alphabet of a position in the cell has all printable
characters but one: the character of ``STALE_CELL`` at that position. Before mkfs, bob fills the device with copies of
``STALE_CELL``. So no byte that an operation writes is zero or equal to the device's byte from before mkfs.

Suppose that two operations with different shades write to the same place. Without shades, their cells would have the
same characters at most positions, and the shades turn these into different bytes. But the cells also have digits from
the numbers of the operations, and these digits may differ. The shades may turn two different digits into the same byte.
In that case bob chooses another shade for the later operation.

There are 93 shades (``ALPHABET``) of printable characters. Each of them has a second version, which is also a shade:
all its bytes have the highest bit set. For an operation, bob tries shade 0 first, which is plain text. For an operation
that makes the initial tree, bob tries shade 32 first."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CELL_BYTES = 16
STALE_CELL = b"<stale--medium!>"
ALPHABET = 93  # characters in the alphabet of a position
SHADES = 2 * ALPHABET
SETUP_SHADE = 32
FIRST_SETUP_NUMBER = 10_000  # the first number of the initial tree's operations; a workload's numbers are 1, 2, ...
WORD = slice(1, 5)  # the place of the operation's number in a cell
# A range of at most this many bytes may lack a whole cell, which would name its operation.
SHORT_BYTES = 2 * CELL_BYTES - 1
_HIGH = 0x80


def _alphabet(position: int) -> bytes:
    return bytes(byte for byte in range(33, 127) if byte != STALE_CELL[position])


def _tables() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    shaded = np.zeros((SHADES, CELL_BYTES, 256), np.uint8)
    plain = np.zeros((SHADES, CELL_BYTES, 256), np.uint8)
    for position in range(CELL_BYTES):
        alphabet = np.frombuffer(_alphabet(position), np.uint8)
        for shade in range(SHADES):
            moved = np.roll(alphabet, -(shade % ALPHABET)) | (_HIGH if shade >= ALPHABET else 0)
            shaded[shade, position, alphabet] = moved
            plain[shade, position, moved] = alphabet
    return shaded, plain


SHADED, PLAIN = _tables()
"""For each shade, position in the cell and byte: the byte in that shade, and the plain byte; 0 if the shade lacks
it."""
_PLACES = np.arange(CELL_BYTES)


def shaded(cells: bytes, shade: int) -> bytes:
    rows = np.frombuffer(cells, np.uint8).reshape(-1, CELL_BYTES)
    return bytes(SHADED[shade, _PLACES, rows].tobytes())


def plain(part: bytes, position: int, shade: int) -> bytes:
    """Return ``part`` of a cell as it would be in shade 0, which is plain text. ``part`` is written in ``shade``, and
    begins at ``position`` of the cell. A byte that ``shade`` cannot have at its position becomes 0."""
    places = _PLACES[position : position + len(part)]
    return bytes(PLAIN[shade, places, np.frombuffer(part, np.uint8)].tobytes())


class _WrittenRange(NamedTuple):
    start: int
    stop: int
    shade: int
    word: bytes

    @property
    def is_short(self) -> bool:
        return self.stop - self.start < SHORT_BYTES


class Shades:
    """A chooser of shades. It chooses a shade for each operation of a workload, one operation after the other. The
    choice depends only on earlier operations."""

    def __init__(self) -> None:
        self._shifted: set[Hashable] = set()
        self._written: dict[Hashable, list[_WrittenRange]] = {}
        self._short: list[_WrittenRange] = []

    def choose(self, number: int, word: bytes, thing: Hashable, start: int, length: int) -> int:
        """Return a shade for operation ``number``, which writes ``length`` bytes at offset ``start``. ``thing`` is the
        file (or the attribute of a file) that it writes to. ``word`` is the four characters that stand for the
        operation's number in each cell.

        In this shade, every written byte differs from the bytes of earlier writes to the same place. A write may be too
        short for a whole cell. If possible, the bytes of such a write differ from all other writes to any file. Raises
        ValueError if no shade gives bytes that differ from earlier writes to the same place."""
        made = _WrittenRange(start, start + length, 0, word)
        here = self._written.setdefault(thing, [])
        if thing in self._shifted:  # old data has moved, so only the highest bit is sure to differ
            met = {*range(ALPHABET), *_taken(here, word)}
        else:
            met = _taken((one for one in here if one.start < made.stop and start < one.stop), word)
        seen = chain.from_iterable(self._written.values()) if made.is_short else self._short
        shade = _first(number, met | _taken(seen, word))
        if shade is None:
            shade = _first(number, met)
        if shade is None:
            raise ValueError(f"too many operations write to the {length:,} bytes at {start:,} for bob to distinguish")
        made = made._replace(shade=shade)
        here.append(made)
        if made.is_short:
            self._short.append(made)
        return shade

    def copied(self) -> Shades:
        copied = Shades()
        copied._shifted, copied._short = set(self._shifted), list(self._short)
        copied._written = {thing: list(written) for thing, written in self._written.items()}
        return copied

    def shift(self, thing: Hashable) -> None:
        """Record that an operation moves contents of the file ``thing`` to another offset. Later writes to the file
        must then differ from all earlier ones, at any offset. Raises ValueError if there are not enough shades for
        that."""
        if any(one.shade >= ALPHABET for one in self._written.get(thing, [])):
            raise ValueError(
                "too many operations wrote to a file before it is shifted for bob to distinguish later ones"
            )
        self._shifted.add(thing)

    def copy(self, source: Hashable, thing: Hashable, start: int, length: int) -> None:
        """Record that ``length`` bytes of ``thing`` from ``start`` on are a copy of the same range of ``source``. So
        later writes to that range of ``thing`` must differ from the copied data."""
        copied = [
            one._replace(start=max(one.start, start), stop=min(one.stop, start + length))
            for one in self._written.get(source, [])
            if one.start < start + length and start < one.stop
        ]
        self._written.setdefault(thing, []).extend(copied)


def first_shade(number: int) -> int:
    """Return the shade of operation ``number`` if no other operation writes to the same place."""
    return SETUP_SHADE if number >= FIRST_SETUP_NUMBER else 0


def _first(number: int, taken: set[int]) -> int | None:
    begin = first_shade(number)
    order = chain(range(begin, ALPHABET), range(begin), range(ALPHABET, SHADES))
    return next((shade for shade in order if shade not in taken), None)


def _taken(others: Iterable[_WrittenRange], word: bytes) -> set[int]:
    """Return the shades that a new write cannot use. ``word`` has the four characters that stand for the operation in
    the write's cells. In such a shade, some byte of a cell would be equal to the byte at the same position in a cell of
    one of the earlier writes ``others``."""
    taken: set[int] = set()
    for shade, theirs in {(one.shade, one.word) for one in others}:
        high = shade // ALPHABET * ALPHABET
        taken.add(shade)
        for position, (mine, other) in enumerate(zip(word, theirs, strict=True), start=WORD.start):
            apart = _index(position, other) - _index(position, mine)
            taken.add(high + (shade + apart) % ALPHABET)
    return taken


def _index(position: int, byte: int) -> int:
    return byte - 33 - (byte > STALE_CELL[position])
