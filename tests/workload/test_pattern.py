"""Whatever is found after a crash can be told: whose data, zeros, stale medium, or none of these."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bob.workload import pattern
from bob.workload.pattern import (
    CELL_BYTES,
    FIRST_SETUP_NUMBER,
    MAX_OPERATIONS,
    UNSHADED,
    contents,
    describe,
    operations_in,
    place,
    stale,
)
from bob.workload.shades import SHADES, first_shade

NUMBERS = st.integers(1, MAX_OPERATIONS - 1)
OFFSETS = st.one_of(st.integers(0, 10_000), st.integers(0, 2**33))
SHADE = st.one_of(st.none(), st.integers(UNSHADED, SHADES - 1))


def name(number: int) -> str:
    return f"operation {number}" if number < FIRST_SETUP_NUMBER else "initial data"


@given(NUMBERS, OFFSETS, st.integers(0, 9000), st.integers(0, 9000), SHADE)
def test_contents_depend_on_operation_offset_and_shade_only(
    number: int, offset: int, skip: int, length: int, shade: int | None
) -> None:
    assert contents(number, offset, skip + length, shade)[skip:] == contents(number, offset + skip, length, shade)
    assert len(contents(number, offset, length, shade)) == length


@given(NUMBERS, OFFSETS, st.integers(2 * CELL_BYTES - 1, 9000), SHADE)
def test_any_range_is_recognised(number: int, offset: int, length: int, shade: int | None) -> None:
    data = contents(number, offset, length, shade)
    assert operations_in(data) == {number}
    assert describe(data, offset) == f"{name(number)} ({length:,} B)"


@given(NUMBERS, OFFSETS, SHADE)
def test_a_cell_says_what_it_is(number: int, offset: int, shade: int | None) -> None:
    start = offset // CELL_BYTES * CELL_BYTES
    cell = place(contents(number, start, CELL_BYTES, shade))
    assert cell == (number, start, first_shade(number) if shade is None else shade)
    assert all(place(contents(number, start, CELL_BYTES)[:length]) is None for length in range(CELL_BYTES))


@pytest.mark.parametrize("shade", range(UNSHADED, SHADES))
def test_cells_name_no_other_operation_from_any_place_in_them(shade: int) -> None:
    """What begins within a cell, or where two meet, is no cell of any shade."""
    for numbers in itertools.pairwise((1, 0x7F, 0x80, 0x1111, 9_999, FIRST_SETUP_NUMBER, MAX_OPERATIONS - 1, 1)):
        for other in (UNSHADED, 0, 1, 32, shade):
            pieces = contents(numbers[0], 0xABCDEF000, 48, shade), contents(numbers[1], 0x30, 48, other)
            for cut in range(16):
                assert operations_in(pieces[0][:48] + pieces[1][cut:]) == set(numbers)


@given(
    st.lists(st.tuples(NUMBERS, OFFSETS, st.integers(31, 6000), SHADE), max_size=5),
    st.one_of(st.binary(max_size=20), st.integers(0, 4096).map(bytes)),
)
def test_operations_are_found_wherever_they_stand(
    pieces: list[tuple[int, int, int, int | None]], between: bytes
) -> None:
    data = between.join(contents(*piece) for piece in pieces)
    assert {number for number, *_ in pieces} <= operations_in(data) == operations_by_hand(data)
    assert operations_in(stale(9000) + bytes(9000)) == frozenset()


def operations_by_hand(data: bytes) -> set[int]:
    cells = (place(data[at : at + CELL_BYTES]) for at in range(len(data)))
    return {cell.operation for cell in cells if cell is not None}


PIECE = st.one_of(st.just("zeros"), st.just("stale medium"), st.integers(1, 30).map(name))


@given(st.lists(st.tuples(PIECE, st.integers(2, 40)), min_size=1, max_size=6), st.integers(0, 600))
def test_mixtures_of_whole_cells(pieces: list[tuple[str, int]], first: int) -> None:
    start = position = first * CELL_BYTES
    data = b""
    merged: list[tuple[str, int]] = []
    for what, cells in pieces:
        data += made_of(what, position, cells * CELL_BYTES)
        position += cells * CELL_BYTES
        if merged and merged[-1][0] == what:
            merged[-1] = (what, merged[-1][1] + cells * CELL_BYTES)
        else:
            merged.append((what, cells * CELL_BYTES))
    assert describe(data, start) == ", ".join(f"{what} ({length:,} B)" for what, length in merged)


def made_of(what: str, offset: int, length: int) -> bytes:
    if what == "zeros":
        return bytes(length)
    if what == "stale medium":
        return stale(offset + length)[offset:]
    return contents(int(what.split()[1]), offset, length)


@given(st.lists(st.tuples(PIECE, st.integers(1, 9000)), max_size=6), st.integers(0, 9000), st.integers(0, 1))
def test_whole_blocks_are_named_as_their_cells_are(pieces: list[tuple[str, int]], start: int, moved: int) -> None:
    data = b""
    for what, length in pieces:
        data += made_of(what, start + len(data) + moved * 4096, length)
    told = describe(data, start)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pattern, "_uniform", lambda _block, _offset: None)
        assert describe(data, start) == told


@given(st.lists(st.tuples(PIECE, st.integers(31, 500)), min_size=1, max_size=5), st.integers(0, 5000))
def test_mixtures_that_change_anywhere(pieces: list[tuple[str, int]], start: int) -> None:
    data = b""
    for what, length in pieces:
        data += made_of(what, start + len(data), length)
    told = describe(data, start)
    runs = re.findall(r"(?:^|, )([a-z]+(?: [a-z0-9]+)*) \(([\d,]+) B\)", told)
    assert sum(int(length.replace(",", "")) for _what, length in runs) == len(data)
    names = [what for at, (what, _length) in enumerate(pieces) if at == 0 or pieces[at - 1][0] != what]
    # Where two meet, up to a few bytes can be of both (all data begins with "[op"): the names still come in order.
    assert [what for what, _length in runs] == names


@pytest.mark.parametrize(
    ("data", "offset", "told"),
    [
        (b"", 0, "nothing"),
        (b"\0", 5, "zeros (1 B)"),
        (b"?", 0, "unknown (1 B)"),
        (b"<op03:", 16, "operation 3 (6 B)"),
        (b"[op03:", 16, "operation 3 (6 B)"),
        (contents(3, 16, 6, 77), 16, "operation 3 (6 B)"),
        (contents(3, 17, 4, 77), 17, "unknown (4 B)"),
        (contents(3, 0, 20, 1) + contents(3, 20, 40), 0, "operation 3 (60 B)"),
        (b"garbage, and more of it.", 0, "unknown (24 B)"),
        (contents(3, 4096, 64), 0, "misplaced data of operation 3 (64 B)"),
        (contents(FIRST_SETUP_NUMBER + 72, 4096, 64), 0, "misplaced initial data (64 B)"),
        (contents(FIRST_SETUP_NUMBER + 2, 0, 100) + bytes(3996), 0, "initial data (100 B), zeros (3,996 B)"),
        (
            contents(FIRST_SETUP_NUMBER + 2, 0, 100) + contents(3, 100, 60),
            0,
            "initial data (100 B), operation 3 (60 B)",
        ),
        (
            contents(FIRST_SETUP_NUMBER + 2, 0, 100) + stale(4096)[100:],
            0,
            "initial data (100 B), stale medium (3,996 B)",
        ),
        (
            contents(2, 0, 512) + contents(FIRST_SETUP_NUMBER + 2, 512, 512) + b"?" * 16,
            0,
            "operation 2 (512 B), initial data (512 B), unknown (16 B)",
        ),
    ],
)
def test_what_people_are_told(data: bytes, offset: int, told: str) -> None:
    assert describe(data, offset) == told


@pytest.mark.parametrize("shade", [UNSHADED - 1, SHADES])
def test_shades_that_are_none(shade: int) -> None:
    with pytest.raises(ValueError, match="no shade"):
        contents(1, 0, 10, shade)


@pytest.mark.parametrize("number", [-1, MAX_OPERATIONS])
def test_numbers_that_do_not_fit(number: int) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        contents(number, 0, 10)


@pytest.mark.parametrize("word", [b"ffff", b"2710", b"2711", b"0003", b"007f"])
@pytest.mark.parametrize("form", [b"<%s:000000:%02x>", b"[%s:000000:%02X]"])
def test_a_cell_that_names_no_operation_is_nobodys(word: bytes, form: bytes) -> None:
    data = b"".join(form % (word.upper() if form[:1] == b"[" else word, cell) for cell in range(256))
    assert operations_in(data) == frozenset()
    assert describe(data) == "unknown (4,096 B)"
