"""Differences laid on each other give what they give one after the other."""

from __future__ import annotations

import zlib

from hypothesis import given
from hypothesis import strategies as st

from bob.trace import differences
from bob.trace.base import Base
from bob.trace.differences import BLANK, RUN
from bob.trace.model import SECTOR_BYTES

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
