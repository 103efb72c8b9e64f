"""Base images: asking for one sector says what the whole image says there, and a recording is checked by sectors."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from tempfile import TemporaryFile

from hypothesis import given
from hypothesis import strategies as st

from bob.crash.device import DeviceModel
from bob.trace import differences
from bob.trace.base import Base
from bob.trace.check import disagreeing
from bob.trace.differences import BLANK, RUN
from bob.trace.model import SECTOR_BYTES
from crash.traces import Case, cases, replay_all

UNWRITTEN = 1 << 31
LENGTH = 40 * SECTOR_BYTES


@st.composite
def packed(draw: st.DrawFn) -> bytes:
    """Runs apart from each other, some of them blank."""
    edges = sorted(draw(st.sets(st.integers(0, 39), max_size=12)))
    pieces = []
    for number, (first, stop) in enumerate(zip(edges[::2], edges[1::2], strict=False)):
        blank = draw(st.booleans())
        pieces.append(struct.pack(">QI", first, stop - first | UNWRITTEN * blank))
        pieces += [] if blank else [bytes([65 + number]) * ((stop - first) * SECTOR_BYTES)]
    return zlib.compress(b"".join(pieces))


@given(packed())
def test_a_sector_is_what_the_image_says(difference: bytes) -> None:
    base = Base("b", LENGTH, difference, "", "")
    image = base.image()
    assert len(image) == LENGTH
    assert image == b"".join(base.sector(number) for number in range(LENGTH // SECTOR_BYTES))


@given(packed())
def test_an_image_is_written_with_holes(difference: bytes) -> None:
    base = Base("b", LENGTH, difference, "", "")
    with TemporaryFile() as file:
        base.write(file)
        file.seek(0)
        assert file.read() == base.image()


def test_zeros_take_no_room(tmp_path: Path) -> None:
    blank = Base(
        "b", 1 << 24, zlib.compress(struct.pack(">QI", 8, ((1 << 24) // SECTOR_BYTES - 8) | UNWRITTEN)), "", ""
    )
    with (tmp_path / "image").open("wb") as file:
        blank.write(file)
    found = (tmp_path / "image").stat()
    assert found.st_size == 1 << 24
    assert found.st_blocks * SECTOR_BYTES < 1 << 20


@given(cases([DeviceModel()]), packed(), packed())
def test_what_the_log_does_not_explain_is_found(case: Case, difference: bytes, final: bytes) -> None:
    base = Base("b", max(LENGTH, len(case.base)), difference, "", "")
    replayed, device = bytearray(base.image()), bytearray(base.image())
    replay_all(case.trace, replayed)
    differences.apply(final, device)
    wrong = [
        number
        for number in range(base.length // SECTOR_BYTES)
        if replayed[number * SECTOR_BYTES :][:SECTOR_BYTES] != device[number * SECTOR_BYTES :][:SECTOR_BYTES]
    ]
    assert disagreeing(case.trace, base, final) == wrong


# Differences laid on each other give what they give one after the other

SECTORS = 40
content = st.integers(1, 255)


@st.composite
def some_runs(draw: st.DrawFn) -> list[tuple[int, bytes]]:
    """Runs that may cover each other, each sector full of one byte."""
    runs = []
    for first in draw(st.lists(st.integers(0, SECTORS - 1), max_size=6)):
        bytes_ = draw(st.lists(content, min_size=1, max_size=SECTORS - first))
        runs.append((first, b"".join(bytes([one]) * SECTOR_BYTES for one in bytes_)))
    return runs


@st.composite
def a_difference(draw: st.DrawFn) -> bytes:
    """Runs in order, none on another, some of them blank."""
    edges = sorted(draw(st.sets(st.integers(0, SECTORS), max_size=10)))
    packed = b""
    for start, stop in zip(edges[::2], edges[1::2], strict=False):
        if draw(st.booleans()):
            packed += RUN.pack(start, (stop - start) | BLANK)
        else:
            packed += RUN.pack(start, stop - start) + b"".join(
                bytes([draw(content)]) * SECTOR_BYTES for _ in range(start, stop)
            )
    return zlib.compress(packed)


@given(a_difference(), some_runs())
def test_it_is_as_if_both_were_applied(packed: bytes, over: list[tuple[int, bytes]]) -> None:
    one = Base("one", SECTORS * SECTOR_BYTES, differences.overlaid(packed, over), "", "")
    image = bytearray(Base("other", SECTORS * SECTOR_BYTES, packed, "", "").image())
    for first, data in over:
        image[first * SECTOR_BYTES : first * SECTOR_BYTES + len(data)] = data
    assert one.image() == bytes(image)
    assert b"".join(map(one.sector, range(SECTORS))) == bytes(image)
