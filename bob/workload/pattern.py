r"""The pattern of written data: even a few bytes of it show which operation wrote them.

A byte depends on the operation, on the offset in the file, and on the operation's *shade*. A shade replaces each
character by another one, so that two operations that write to the same place write different bytes
(:mod:`bob.workload.shades`). The data consists of *cells* of 16 bytes, which begin at multiples of 16 in the file.
These are examples of cells::

    [op03:00001A:7F]    operation 3, block 0x1A (4,096-byte blocks of the file), cell 0x7F of that block
    [012C:00001A:7F]    operation 300: numbers from 128 on have four digits
    {23XPZPPPPQaZWf}    [op80:00001A:7F] in shade 32; op80 to opFF are the initial tree's operations, 10000 and on
    \pq14;11112B;8G^    operation 3 in shade 1, where another operation wrote in shade 0
    <stale--medium!>    never written: the contents of the device before mkfs

So bob can tell what any range of bytes is, even if the range begins or ends within a cell. It is data of a certain
operation, zeros, stale medium, or something else. Old recordings and witnesses have cells like ``<op03:00001a:7f>``. In
them, all operations have the same shade, ``UNSHADED``.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from bob.workload.shades import (
    CELL_BYTES,
    FIRST_SETUP_NUMBER,
    PLAIN,
    SHADED,
    SHADES,
    STALE_CELL,
    WORD,
    first_shade,
    plain,
    shaded,
)

__all__ = ["CELL_BYTES", "FIRST_SETUP_NUMBER", "STALE_CELL"]

UNSHADED_PATTERN, PATTERN = 1, 2  # the first pattern, and today's pattern
UNSHADED = -1
PATTERN_BLOCK_BYTES = 4096
MOST_SETUP_OPERATIONS = 128
MAX_OPERATIONS = FIRST_SETUP_NUMBER + MOST_SETUP_OPERATIONS

_SECTOR_BYTES = 512
_CELLS_PER_BLOCK = PATTERN_BLOCK_BYTES // CELL_BYTES
_ZEROS, _STALE = bytes(PATTERN_BLOCK_BYTES), STALE_CELL * _CELLS_PER_BLOCK
# Four hexadecimal digits stand for an operation from 0080 (128) to 270f (9,999).
_FOUR = rb"00[89a-f][0-9a-f]|0[1-9a-f][0-9a-f]{2}|1[0-9a-f]{3}|2[0-6][0-9a-f]{2}|270[0-9a-f]"
_OLD_CELL = re.compile(rb"<(op[0-9a-f]{2}|" + _FOUR + rb"):([0-9a-f]{6}):([0-9a-f]{2})>")
_WORD = re.compile(rb"op[0-9A-F]{2}|" + _FOUR.replace(b"a-f", b"A-F").replace(b"0f", b"0F"))
_CELL = re.compile(rb"\[(" + _WORD.pattern + rb"):([0-9A-F]{6}):([0-9A-F]{2})\]")
_FIRST_SETUP_WORD = 0x80
_MARKS = {0: ord("["), 5: ord(":"), 12: ord(":"), 15: ord("]")}
_DIGITS = [6, 7, 8, 9, 10, 11, 13, 14]


class PatternCell(NamedTuple):
    """The content of a cell (16 bytes of data). ``operation`` is the number of the operation that wrote it. This
    operation wrote it for the place ``offset`` in the file (bytes), and in the shade ``shade``."""

    operation: int
    offset: int
    shade: int


def word_of(operation: int) -> bytes:
    """Return the four bytes that stand for the operation in a plain cell (shade 0)."""
    if operation >= FIRST_SETUP_NUMBER:
        return b"op%02X" % (operation - FIRST_SETUP_NUMBER + _FIRST_SETUP_WORD)
    return (b"op%02X" if operation < _FIRST_SETUP_WORD else b"%04X") % operation


def _operation(word: bytes) -> int:
    if not word.startswith(b"op"):
        return int(word, 16)
    number = int(word[2:], 16)
    return number if number < _FIRST_SETUP_WORD else number - _FIRST_SETUP_WORD + FIRST_SETUP_NUMBER


def _shades_at(position: int, character: int) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
    """Return a table with a number for each of the 256 values of a byte. The number is a shade: the one that turns
    ``character``, at ``position`` of a cell, into this byte. It is negative if no shade does so."""
    table = np.full(256, -1 - position, np.int16)
    table[SHADED[:, position, character]] = np.arange(SHADES)
    return table


_SHADES_AT = {position: _shades_at(position, character) for position, character in _MARKS.items()}


@lru_cache(maxsize=4096)
def _block(operation: int, block: int, shade: int) -> bytes:
    word = word_of(operation)
    if shade == UNSHADED:
        return b"".join(b"<%s:%06x:%02x>" % (word.lower(), block, cell) for cell in range(_CELLS_PER_BLOCK))
    return shaded(b"".join(b"[%s:%06X:%02X]" % (word, block, cell) for cell in range(_CELLS_PER_BLOCK)), shade)


def contents(operation: int, offset: int, length: int, shade: int | None = None) -> bytes:
    """Return the ``length`` bytes that ``operation`` writes at file offset ``offset`` (bytes). They are in the shade
    ``shade`` (None: the operation's first shade). Raises ValueError for an operation number from ``MAX_OPERATIONS`` on,
    and for an unknown shade."""
    if not 0 <= operation < MAX_OPERATIONS:
        raise ValueError(f"operation number {operation} is out of range (0 to {MAX_OPERATIONS - 1})")
    if shade is None:
        shade = first_shade(operation)
    if not UNSHADED <= shade < SHADES:
        raise ValueError(f"shade {shade} is out of range (0 to {SHADES - 1})")
    first, last = offset // PATTERN_BLOCK_BYTES, -(-(offset + length) // PATTERN_BLOCK_BYTES)
    whole = b"".join(_block(operation, block, shade) for block in range(first, last))
    skip = offset - first * PATTERN_BLOCK_BYTES
    return whole[skip : skip + length]


def stale(length: int) -> bytes:
    """Return the first ``length`` bytes of the stale medium: the content that bob gives a device before mkfs."""
    return (STALE_CELL * (length // CELL_BYTES + 1))[:length]


def operations_in(data: bytes) -> frozenset[int]:
    """Return the numbers of the operations that wrote at least one whole cell of ``data``. The cells may begin at any
    offset."""
    numbers: set[int] = set()
    start = position = 0
    while position < len(data):
        cell = place(data[position : position + CELL_BYTES])
        length = 0 if cell is None else _same(data, position, cell)
        if cell is not None and length:
            numbers.add(cell.operation)
            if start < position:
                numbers |= _scattered(data[max(start - CELL_BYTES, 0) : position + CELL_BYTES])
            start = position + length
        position += length or _SECTOR_BYTES
    if start < len(data):  # otherwise whole sectors cover all of ``data``
        numbers |= _scattered(data[max(start - CELL_BYTES, 0) :])
    return frozenset(numbers)


def _same(data: bytes, position: int, cell: PatternCell) -> int:
    """Return how many bytes of ``data``, from ``position`` on, one operation wrote without a gap. ``cell`` is the first
    cell at this position. The function only tries a whole block, and then a sector. It returns the length that fits, or
    else 0."""
    for length in (PATTERN_BLOCK_BYTES, _SECTOR_BYTES):
        piece = data[position : position + length]
        if len(piece) == length and piece == contents(cell.operation, cell.offset, length, cell.shade):
            return length
    return 0


def _scattered(data: bytes) -> set[int]:
    words = {word for word, _block, _cell in _OLD_CELL.findall(data)}
    found = np.frombuffer(data, np.uint8)
    starts = max(len(found) - CELL_BYTES + 1, 0)
    shades = _SHADES_AT[0][found[:starts]]
    alike = shades >= 0
    for position in list(_MARKS)[1:]:
        alike &= _SHADES_AT[position][found[position : position + starts]] == shades
    at = np.flatnonzero(alike)
    if len(at):
        cells = PLAIN[shades[at][:, None], _PLACES, found[at[:, None] + _PLACES]]
        named = np.unique(cells[_IS_DIGIT[cells[:, _DIGITS]].all(axis=1), WORD], axis=0)
        words |= {word for word in map(bytes, named) if _WORD.fullmatch(word)}
    return set(map(_operation, words))


_DESCRIBED: dict[tuple[bytes, int, int], str] = {}
"""The results of :func:`describe`, by digest, length and offset. bob keeps them, since most crash states share most
contents."""
MOST_DESCRIBED = 2**14
_PLACES = np.arange(CELL_BYTES)
_IS_DIGIT = np.isin(np.arange(256), list(b"0123456789ABCDEF"))


def place(data: bytes) -> PatternCell | None:
    """Return the cell at the beginning of ``data``; None if ``data`` does not begin with a cell."""
    return _place(data[:CELL_BYTES])


@lru_cache(maxsize=2**16)
def _place(piece: bytes) -> PatternCell | None:
    if len(piece) < CELL_BYTES:
        return None
    shade = UNSHADED
    found = _OLD_CELL.fullmatch(piece)
    if found is None:
        shade = int(_SHADES_AT[0][piece[0]])
        found = _CELL.fullmatch(plain(piece, 0, shade)) if shade >= 0 else None
    if found is None:
        return None
    return PatternCell(
        _operation(found[1]), int(found[2], 16) * PATTERN_BLOCK_BYTES + int(found[3], 16) * CELL_BYTES, shade
    )


def author(part: bytes, offset: int) -> int | None:
    """Return the operation that can have written ``part``, a piece of a cell. ``part`` begins at file offset
    ``offset``. Return None if no operation can have written it, or if several can."""
    position = offset % CELL_BYTES
    known = [at for at in range(len(part)) if not WORD.start <= position + at < WORD.stop]
    found: set[int] = set()
    for shade in range(UNSHADED, SHADES):
        sample = contents(0, offset, len(part), shade)
        if known and all(sample[at] == part[at] for at in known):
            here = part.upper().replace(b"OP", b"op") if shade == UNSHADED else plain(part, position, shade)
            found.update(_named_by(here, position))
    return found.pop() if len(found) == 1 else None


def _named_by(part: bytes, position: int) -> Iterator[int]:
    seen = [part[at - position : at - position + 1] if 0 <= at - position < len(part) else b"" for at in range(1, 5)]
    form = re.compile(b"".join(re.escape(byte) if byte else b"." for byte in seen))
    return (operation for word, operation in _words().items() if form.fullmatch(word))


@lru_cache(maxsize=1)
def _words() -> dict[bytes, int]:
    return {word_of(operation): operation for operation in range(MAX_OPERATIONS)}


def describe(data: bytes, offset: int = 0) -> str:
    """Return the sources of ``data``, which begins at file offset ``offset`` (bytes): ``"operation 3 (512 B), zeros
    (3,584 B)"``.

    Contents of the initial tree are ``initial data``. A cell that belongs to another offset is ``misplaced``. Bytes
    that are neither data, zeros nor stale medium are ``unknown``. A few bytes may fit two sources. Then bob takes the
    source of the bytes beside them."""
    known = blake2b(data, digest_size=16).digest(), len(data), offset
    if known not in _DESCRIBED:
        if len(_DESCRIBED) == MOST_DESCRIBED:
            _DESCRIBED.clear()
        _DESCRIBED[known] = _described(data, offset)
    return _DESCRIBED[known]


def _described(data: bytes, offset: int) -> str:
    runs: list[tuple[str, int]] = []
    for name, length in _named(data, offset):
        if not length:
            continue
        if runs and runs[-1][0] == name:
            runs[-1] = (name, runs[-1][1] + length)
        else:
            runs.append((name, length))
    return ", ".join(f"{name} ({length:,} B)" for name, length in runs) or "nothing"


def _named(data: bytes, offset: int) -> Iterator[tuple[str, int]]:
    before: PatternCell | None = None
    position = 0
    while position < len(data):
        start = offset + position
        block = b"" if start % PATTERN_BLOCK_BYTES else data[position : position + PATTERN_BLOCK_BYTES]
        if name := _uniform(block, start):
            yield name, PATTERN_BLOCK_BYTES
            position += PATTERN_BLOCK_BYTES
            before = place(block[-CELL_BYTES:])
            continue
        piece = data[position : position + min(CELL_BYTES - start % CELL_BYTES, len(data) - position)]
        position += len(piece)
        whole, after = place(piece), place(data[position : position + CELL_BYTES])
        near = [cell for cell in (before, after) if cell is not None]
        before = whole
        if whole is not None and (len(near) < 2 or _source(whole) in map(_source, near)):
            yield _whole(whole, start), CELL_BYTES
        elif split := _split(piece, start, near):
            yield from split
        elif whole is not None:
            yield _whole(whole, start), CELL_BYTES
        else:
            number = author(piece, start) if len(piece) < CELL_BYTES else None
            yield "unknown" if number is None else _data_of(number), len(piece)


def _source(cell: PatternCell) -> tuple[int, int]:
    return cell.operation, cell.shade


def _uniform(block: bytes, offset: int) -> str | None:
    """Return the name of the source if a whole block has one source, and otherwise None. Without this shortcut, a long
    file would take seconds, cell by cell."""
    if len(block) < PATTERN_BLOCK_BYTES:
        return None
    first = place(block)
    if first is not None:
        same = block == contents(first.operation, offset, len(block), first.shade)
        return _data_of(first.operation) if same else None
    return {_ZEROS: "zeros", _STALE: "stale medium"}.get(block)


def _split(piece: bytes, offset: int, near: Sequence[PatternCell]) -> list[tuple[str, int]]:
    """Return the two sources of ``piece``, one after the other, each with its number of bytes. ``piece`` is in one
    cell, and holds the end of one source and the beginning of the next. ``near`` are the cells before and after
    ``piece``. bob needs them, because the digits of two operations together may look like the number of a third
    operation."""
    for cut in range(len(piece), 0, -1):
        head = _part_of(piece[:cut], offset, near)
        tail = _part_of(piece[cut:], offset + cut, near[::-1])
        if head and tail:
            return [(head, cut), (tail, len(piece) - cut)]
    return []


def _part_of(part: bytes, offset: int, near: Sequence[PatternCell]) -> str | None:
    if not any(part):
        return "zeros"
    for cell in near:
        if contents(cell.operation, offset, len(part), cell.shade) == part:
            return _data_of(cell.operation)
    stale_from = offset % CELL_BYTES
    return "stale medium" if part == STALE_CELL[stale_from : stale_from + len(part)] else None


def _data_of(operation: int) -> str:
    return f"operation {operation}" if operation < FIRST_SETUP_NUMBER else "initial data"


def _whole(cell: PatternCell, offset: int) -> str:
    if cell.offset == offset:
        return _data_of(cell.operation)
    is_own = cell.operation < FIRST_SETUP_NUMBER
    return f"misplaced data of operation {cell.operation}" if is_own else "misplaced initial data"
