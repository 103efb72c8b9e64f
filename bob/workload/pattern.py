"""What is written names its operation: contents that can be recognised in every few bytes.

A file's bytes are a function of the operation that wrote them and of the offset in the file. They come in *cells* of
16 printable bytes, aligned to the file offset, so that a hexdump of a crash image reads like a sentence::

    <op03:00001a:7f>    operation 3, block 0x1a (4,096-byte blocks of the file), cell 0x7f of that block
    <012c:00001a:7f>    operation 300: from 128 on they have four digits
    <op80:00001a:7f>    what made the initial tree: from 0x80 on its operations are counted
    <stale--medium!>    never written: what the device held before mkfs

Whoever knows the operations of a workload can therefore tell of any range, unaligned ends included, whether it is data
of operation k, zeros, stale medium or none of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

CELL_BYTES = 16
STALE_CELL = b"<stale--medium!>"
PATTERN_BLOCK_BYTES = 4096
FIRST_SETUP_NUMBER = 10_000
"""Operations of a workload are 1, 2, ...; those that make its initial tree have numbers from here on."""
MOST_SETUP_OPERATIONS = 128
MAX_OPERATIONS = FIRST_SETUP_NUMBER + MOST_SETUP_OPERATIONS

_CELLS_PER_BLOCK = PATTERN_BLOCK_BYTES // CELL_BYTES
_ZEROS, _STALE = bytes(PATTERN_BLOCK_BYTES), STALE_CELL * _CELLS_PER_BLOCK
# Four digits are 0080 to 270f (9,999): a cell that names no operation is none.
_FOUR = rb"00[89a-f][0-9a-f]|0[1-9a-f][0-9a-f]{2}|1[0-9a-f]{3}|2[0-6][0-9a-f]{2}|270[0-9a-f]"
_CELL = re.compile(rb"<(op[0-9a-f]{2}|" + _FOUR + rb"):([0-9a-f]{6}):([0-9a-f]{2})>")
_FIRST_SETUP_WORD = 0x80


def _word(operation: int) -> bytes:
    """The four bytes of a cell that name its operation."""
    if operation >= FIRST_SETUP_NUMBER:
        return b"op%02x" % (operation - FIRST_SETUP_NUMBER + _FIRST_SETUP_WORD)
    return (b"op%02x" if operation < _FIRST_SETUP_WORD else b"%04x") % operation


def _operation(word: bytes) -> int:
    """The operation that a cell names."""
    if not word.startswith(b"op"):
        return int(word, 16)
    number = int(word[2:], 16)
    return number if number < _FIRST_SETUP_WORD else number - _FIRST_SETUP_WORD + FIRST_SETUP_NUMBER


@lru_cache(maxsize=4096)
def _block(operation: int, block: int) -> bytes:
    return b"".join(b"<%s:%06x:%02x>" % (_word(operation), block, cell) for cell in range(_CELLS_PER_BLOCK))


def contents(operation: int, offset: int, length: int) -> bytes:
    """The ``length`` bytes that operation number ``operation`` writes at file offset ``offset`` (bytes).

    Raises ValueError for a number of ``MAX_OPERATIONS`` or more.
    """
    if not 0 <= operation < MAX_OPERATIONS:
        raise ValueError(f"operation {operation} does not fit the pattern (0 to {MAX_OPERATIONS - 1})")
    first, last = offset // PATTERN_BLOCK_BYTES, -(-(offset + length) // PATTERN_BLOCK_BYTES)
    whole = b"".join(_block(operation, block) for block in range(first, last))
    skip = offset - first * PATTERN_BLOCK_BYTES
    return whole[skip : skip + length]


def stale(length: int) -> bytes:
    """``length`` bytes of medium that nobody has written since before mkfs (cell-aligned)."""
    return (STALE_CELL * (length // CELL_BYTES + 1))[:length]


def operations_in(data: bytes) -> frozenset[int]:
    """The numbers of the operations whose whole cells occur in ``data``, wherever they stand in it."""
    return frozenset(_operation(word) for word in {word for word, _block, _cell in _CELL.findall(data)})


def place(data: bytes) -> tuple[int, int] | None:
    """The operation and the file offset (bytes) that the cell at the beginning of ``data`` names; None if there is no
    cell."""
    found = _CELL.match(data)
    if found is None:
        return None
    return _operation(found[1]), int(found[2], 16) * PATTERN_BLOCK_BYTES + int(found[3], 16) * CELL_BYTES


def describe(data: bytes, offset: int = 0) -> str:
    """What a person is told of ``data``, found at file offset ``offset`` (bytes): runs of who wrote what.

    For example ``"operation 3 (512 B), zeros (3,584 B)"``; what the initial tree held is ``initial data``. Bytes that
    are none of data, zeros or stale medium are ``unknown``; a cell that was found elsewhere than it says is
    ``misplaced``. A few bytes that could be of several operations count with those beside them.
    """
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
    """Each cell of ``data``, or part of one where an operation began or ended inside it: its name and length."""
    before: int | None = None
    position = 0
    while position < len(data):
        start = offset + position
        block = b"" if start % PATTERN_BLOCK_BYTES else data[position : position + PATTERN_BLOCK_BYTES]
        if name := _uniform(block, start):
            yield name, PATTERN_BLOCK_BYTES
            position += PATTERN_BLOCK_BYTES
            last = _CELL.fullmatch(block[-CELL_BYTES:])
            before = None if last is None else _operation(last[1])
            continue
        piece = data[position : position + min(CELL_BYTES - start % CELL_BYTES, len(data) - position)]
        position += len(piece)
        whole, after = _CELL.fullmatch(piece), _CELL.match(data, position)
        near = [number for number in (before, None if after is None else _operation(after[1])) if number is not None]
        before = None if whole is None else _operation(whole[1])
        if whole is not None and (before in near or len(near) < 2):
            yield _whole(whole, start), CELL_BYTES
        elif split := _split(piece, start, near):
            yield from split
        elif whole is not None:
            yield _whole(whole, start), CELL_BYTES
        else:
            yield (_only_data(piece, start) if len(piece) < CELL_BYTES else None) or "unknown", len(piece)


def _uniform(block: bytes, offset: int) -> str | None:
    """The name of a whole block of one kind, as are nearly all of a long file: cell by cell they take seconds."""
    if len(block) < PATTERN_BLOCK_BYTES:
        return None
    first = _CELL.match(block)
    if first is not None:
        operation = _operation(first[1])
        return _data_of(operation) if block == contents(operation, offset, len(block)) else None
    return {_ZEROS: "zeros", _STALE: "stale medium"}.get(block)


def _split(piece: bytes, offset: int, near: Sequence[int]) -> list[tuple[str, int]]:
    """``piece`` of a cell as what is before and after a point in it; empty if it cannot be told so.

    Two operations that meet inside a cell can make the number of a third there.
    """
    for cut in range(len(piece), 0, -1):
        head = _part_of(piece[:cut], offset, near)
        tail = _part_of(piece[cut:], offset + cut, near[::-1])
        if head and tail:
            return [(head, cut), (tail, len(piece) - cut)]
    return []


def _part_of(part: bytes, offset: int, near: Sequence[int]) -> str | None:
    """The name of ``part`` of a cell; data only of the operations ``near``."""
    if not any(part):
        return "zeros"
    for number in near:
        if contents(number, offset, len(part)) == part:
            return _data_of(number)
    stale_from = offset % CELL_BYTES
    return "stale medium" if part == STALE_CELL[stale_from : stale_from + len(part)] else None


def _only_data(part: bytes, offset: int) -> str | None:
    """The name of ``part`` of a cell if it can be data of one operation only."""
    found = [number for number in range(MAX_OPERATIONS) if _in_cell(number, offset, len(part)) == part]
    return _data_of(found[0]) if len(found) == 1 else None


@lru_cache(maxsize=2 * MAX_OPERATIONS)
def _in_cell(operation: int, offset: int, length: int) -> bytes:
    """What ``contents`` is, within one cell."""
    block, start = divmod(offset, PATTERN_BLOCK_BYTES)
    cell, skip = divmod(start, CELL_BYTES)
    return (b"<%s:%06x:%02x>" % (_word(operation), block, cell))[skip : skip + length]


def _data_of(operation: int) -> str:
    return f"operation {operation}" if operation < FIRST_SETUP_NUMBER else "initial data"


def _whole(cell: re.Match[bytes], offset: int) -> str:
    operation, block, number = _operation(cell[1]), int(cell[2], 16), int(cell[3], 16)
    if (block * _CELLS_PER_BLOCK + number) * CELL_BYTES == offset:
        return _data_of(operation)
    return f"misplaced data of operation {operation}" if operation < FIRST_SETUP_NUMBER else "misplaced initial data"
