"""Whatever is in the blocks, there is a name for each write, short enough for a line."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from bob.blocks.naming import Kind, names
from bob.blocks.summary import LONGEST
from bob.trace.base import Base
from bob.workload.pattern import contents

from .images import base_of, made, read, trace_of

FILE_SYSTEMS = ("ext2", "ext3", "ext4", "xfs", "btrfs", "reiserfs")

MAGICS = (
    *(b"XFSB", b"XAGF", b"XAGI", b"XDB3", b"XDD3", b"XDF3", b"BMA3", b"IAB3", b"IN\x81\xa4", b"INA\xed\x03\x02"),
    *(b"\xfe\xed\xba\xbe\0\0\0\1\0\0\0\2\0\0\x10\0", bytes(8) + b"\x3d\xf1"),
    *(b"\xc0\x3b\x39\x98\0\0\0" + bytes([kind]) + b"\0\0\0\5" for kind in range(1, 6)),
    *(b"\x0a\xf3\x04\0\x04\0\0\0", b"\x02\0\0\0\x0c\0\x01\x02.\0\0\0", b"\x01\0\x05\0\x20\0", b"\x02\0\x05\0\x20\0"),
)


def interesting(fs: str, base: Base) -> list[int]:
    """Sectors of which most is known: those near the sectors that mkfs wrote."""
    places = {"ext2": 700, "ext3": 3000, "ext4": 3000, "xfs": 200, "btrfs": 300, "reiserfs": 400}
    return [*range(places[fs]), base.length // 512 - 8]


@st.composite
def damage(draw: st.DrawFn, fs: str, base: Base) -> list[tuple[int, bytes]]:
    """Writes of blocks of the image with some bytes changed, of blocks that only begin well, and of anything."""
    writes = []
    log = {"xfs": 307272, "btrfs": 59000, "reiserfs": 8211 * 8}.get(fs, 0)
    for _number in range(draw(st.integers(1, 6))):
        sector = draw(st.sampled_from(interesting(fs, base)) | st.integers(log, log + 300))
        sector = min(sector, base.length // 512 - 1)
        length = draw(st.sampled_from((512, 1024, 4096, 16384, 20480)))
        block = bytearray(read(base, min(sector * 512, base.length - length), length))
        shape = draw(st.integers(0, 3))
        if shape == 0:
            block = bytearray(draw(st.binary(min_size=64, max_size=64)) * (length // 64))
        elif shape == 1:
            magic = draw(st.sampled_from(MAGICS))
            block[: len(magic)] = magic
        elif shape == 2:
            block[: length // 2] = contents(3, 0, length // 2)
        for at, value in draw(st.lists(st.tuples(st.integers(0, 511), st.integers(0, 255)), max_size=8)):
            block[at] = value
        writes.append((sector * 512, bytes(block)))
    return writes


def check(fs: str, base: Base, writes: list[tuple[int, bytes]]) -> None:
    found = names(fs, base, trace_of(base, writes), {2: "/", 12: "/d/a", 128: "/"})
    assert len(found) == len(writes)
    for name in found:
        assert name.kind in Kind
        assert 0 < len(name.text) <= LONGEST
        assert name.text.isprintable()


@settings(max_examples=40)
@given(st.data(), st.sampled_from(FILE_SYSTEMS))
def test_damaged_blocks_have_names(data: st.DataObject, fs: str) -> None:
    base = made(fs)
    check(fs, base, data.draw(damage(fs, base)))


@settings(max_examples=40)
@given(st.data(), st.sampled_from(FILE_SYSTEMS))
def test_on_damaged_file_systems_too(data: st.DataObject, fs: str) -> None:
    """A base image of which some of the beginning is damaged: its geometry may be anything."""
    image = bytearray(read(made(fs), 0, 128 << 10))
    for at, value in data.draw(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=12)):
        start = {"xfs": 0, "btrfs": 65536, "reiserfs": 65536}.get(fs, 1024)
        image[start + at] = value
    base = base_of({0: bytes(image)}, 1 << 20)
    writes = [(at, bytes(image[at : at + 4096])) for at in data.draw(st.lists(st.sampled_from(range(0, 131072, 4096))))]
    check(fs, base, writes)
