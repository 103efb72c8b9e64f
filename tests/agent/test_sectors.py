"""A recording's sectors come out of a guest as they went in."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bob.guest.agent.images import SECTOR, Image
from bob.guest.agent.sectors import BLOCK, NOWHERE, brief, found, in_full, placed
from bob.trace import differences
from bob.trace.log_format import Flags
from bob.trace.log_writer import NewEntry, write_log

SECTORS = 64


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    image = Image(SECTORS * SECTOR)
    yield image
    image.close()


def log_of(entries: list[NewEntry], sectorsize: int = SECTOR) -> bytes:
    file = io.BytesIO()
    write_log(file, entries, sectorsize=sectorsize)
    return file.getvalue()


def full(*fillings: bytes) -> bytes:
    """A sector full of each."""
    return b"".join(filling * SECTOR for filling in fillings)


@given(
    st.lists(st.one_of(st.binary(max_size=20), st.just(b""), st.just(b"\0" * 600), st.just(b"x" * 1000))),
    st.sampled_from([SECTOR, 700]),
)
def test_what_is_left_out_of_sectors_comes_back(pieces: list[bytes], length: int) -> None:
    data = b"".join(piece.ljust(length, b"\0") for piece in pieces)
    assert in_full(brief(data)) == data


def test_sectors_that_are_zeros_but_for_some_bytes_are_short() -> None:
    data = b"log record".ljust(SECTOR, b"\0") * 4096
    assert len(brief(data)) < len(data) // 40


def test_of_sectors_that_say_the_same_but_for_a_number_the_number_is_told() -> None:
    data = b"".join((b"%07d" % number + b"the same" * 40).ljust(SECTOR, b"\0") for number in range(4096))
    assert in_full(brief(data)) == data
    assert len(brief(data)) < len(data) // 10


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 511), st.binary(max_size=3)), max_size=12))
def test_a_sector_may_be_the_one_before_but_for_some_bytes(changes: list[tuple[int, int, bytes]]) -> None:
    fillings = (bytes(SECTOR), b"x" * SECTOR, b"y" * 300 + bytes(212), b"record" + bytes(506))
    sectors = []
    for filling, place, some in changes:
        sector = bytearray(fillings[filling])
        sector[place : place + len(some)] = some
        sectors.append(bytes(sector[:SECTOR]))
    assert in_full(brief(b"".join(sectors))) == b"".join(sectors)


writes = st.lists(
    st.tuples(st.integers(0, SECTORS - 12), st.lists(st.sampled_from([b"a", b"b", b"\0"]), min_size=1, max_size=12)),
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(writes, writes, st.sampled_from([SECTOR, 4096]))
def test_what_a_device_holds_is_found_in_the_log_or_beside_it(
    image: Image, logged: list[tuple[int, list[bytes]]], unlogged: list[tuple[int, list[bytes]]], sectorsize: int
) -> None:
    image.put(0, bytes(SECTORS * SECTOR))
    grain = sectorsize // SECTOR
    entries = [NewEntry(Flags.MARK, mark="start"), NewEntry(Flags.DISCARD, sector=0, nr_sectors=2)]
    for first, fillings in logged:
        data = full(*fillings * grain)[: (SECTORS - first // grain * grain) * SECTOR // sectorsize * sectorsize]
        entries.append(NewEntry(sector=first // grain, data=data))
        image.put(first // grain * grain, data)
    for first, fillings in unlogged:
        image.put(first, full(*fillings))
    runs = [(0, 3 * BLOCK), (4 * BLOCK, BLOCK), (6 * BLOCK, 2)]
    log = log_of(entries, sectorsize)
    places, rest = placed(image, runs, log)
    held = differences.by_sector((sector, image.get(sector, count)) for sector, count in runs)
    assert differences.by_sector(found(places, rest, log)) == held
    assert differences.by_sector(differences.runs(differences.packed(found(places, rest, log)))) == held


def test_what_is_in_the_log_does_not_travel_again(image: Image) -> None:
    image.put(0, bytes(SECTORS * SECTOR))
    data = full(*[bytes([65 + k]) for k in range(2 * BLOCK)])
    image.put(BLOCK, data)
    log = log_of([NewEntry(sector=BLOCK, data=full(b"x") * 2 * BLOCK), NewEntry(sector=BLOCK, data=data)])
    runs = [(BLOCK, 2 * BLOCK)]
    assert placed(image, runs, log) == ([BLOCK, 2 * BLOCK, len(log) - len(data)], b"")
    image.put(BLOCK + 3, full(b"?"))  # written behind the log's back
    places, rest = placed(image, runs, log)
    assert places == [BLOCK, BLOCK, NOWHERE, 2 * BLOCK, BLOCK, len(log) - len(data) // 2]
    assert rest == image.get(BLOCK, BLOCK)
