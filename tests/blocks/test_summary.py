"""How the parts of a write are told in one line; whatever is in the blocks, each write has such a name."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.blocks.data import data_part
from bob.blocks.naming import names
from bob.blocks.owners import BlockOwner, Owners
from bob.blocks.parts import UNKNOWN, BlockKind, WritePart
from bob.blocks.summary import LONGEST, BlockName, listed, numbers, sort_of, summary
from bob.trace.base import Base
from bob.workload.pattern import FIRST_SETUP_NUMBER, contents
from wording import text_with

from .images import base_of, made, read, trace_of

TABLE = WritePart(BlockKind.METADATA, "inode table")
PATHS = {inode: f"/d/{inode}" for inode in range(12, 44)}


def text(*parts: WritePart) -> str:
    return summary(parts, lambda place, role: None, PATHS).text


def table(*inodes: int, notes: tuple[str, ...] = ()) -> WritePart:
    return WritePart(BlockKind.METADATA, "inode table", inodes=inodes, notes=notes)


def test_inodes_are_told_with_their_paths() -> None:
    assert text_with(text(table(12)), 12, "/d/12") == snapshot("inode table, inode 12 (/d/12)")
    assert text_with(text(table(50)), 50) == snapshot("inode table, inode 50")
    assert text_with(text(table(50, 51)), "50-51") == snapshot("inode table (inodes 50-51)")
    assert text_with(text(table(12, 50)), 12, 50, "/d/12") == snapshot("inode table (inodes 12, 50: /d/12, inode 50)")
    assert text_with(text(table(*range(12, 28)), table(*range(28, 44))), "12-43", "/d/12", "/d/13") == snapshot(
        "inode table (inodes 12-43: /d/12, /d/13, /d/14, /d/15, /d/16, /d/17, /d/18 and 25 more)"
    )
    assert text_with(text(table(12, notes=("new",)), table(13)), "12-13", "/d/12", "/d/13") == snapshot(
        "inode table (inodes 12-13: /d/12, /d/13): /d/12 new"
    )


def test_blocks_of_one_sort_are_counted_and_many_sorts_cut() -> None:
    journal = WritePart(BlockKind.JOURNAL, "journal data")
    assert text_with(text(*[journal] * 7), 7) == snapshot("journal data (7 blocks)")
    assert text(journal, UNKNOWN) == "journal data; unknown"
    many = [WritePart(BlockKind.METADATA, f"some rather long name of a block, number {number}") for number in range(4)]
    assert text_with(text(*many), 0, 3) == snapshot("some rather long name of a block, number 0, and 3 more")
    assert summary([], lambda place, role: None, {}) == BlockName(BlockKind.UNKNOWN, "unknown", "unknown")
    assert len(text(*(WritePart(BlockKind.METADATA, "x" * 300) for _ in range(3)))) <= LONGEST


def told(data: bytes) -> str:
    part = data_part(data, 0, 1)
    return "" if part is None else summary([part], lambda place, role: BlockOwner(12, "data"), PATHS).text


def test_data_is_told_by_operation_and_sectors() -> None:
    assert text_with(told(contents(3, 0, 4096)), 3, "/d/12", "0-7") == snapshot(
        "data of operation 3 in /d/12 (sectors 0-7)"
    )
    assert text_with(told(contents(3, 0, 100).ljust(4096, b"\0")), 3, "/d/12", 0) == snapshot(
        "data of operation 3 in /d/12 (sector 0)"
    )
    assert text_with(told(contents(3, 0, 9).ljust(4096, b"\0")), 3, "/d/12", 0) == snapshot(
        "data of operation 3 in /d/12 (sector 0)"
    )
    assert text_with(told(contents(FIRST_SETUP_NUMBER + 3, 0, 1024)), "/d/12", "0-1") == snapshot(
        "initial data in /d/12 (sectors 0-1)"
    )
    mixed = contents(3, 0, 600) + contents(FIRST_SETUP_NUMBER, 600, 3496)
    assert text_with(told(mixed), 3, "0-1", "1-7", "/d/12") == snapshot(
        "data of operation 3 (sectors 0-1) and initial data (sectors 1-7) in /d/12"
    )
    assert told(bytes(512)) == told(b"<" * 512) == ""


JOURNAL, METADATA, SUPERBLOCK = BlockKind.JOURNAL, BlockKind.METADATA, BlockKind.SUPERBLOCK


@pytest.mark.parametrize(
    ("kind", "what", "expected"),
    [
        (JOURNAL, "journal commit block of transaction 12", "journal transaction"),
        (JOURNAL, "journal descriptor block of transaction 3 (2 blocks)", "journal transaction"),
        (JOURNAL, "journal copy of inode table", "journal transaction"),
        (JOURNAL, "journal copy of block 77", "journal transaction"),
        (JOURNAL, "journal superblock", "journal superblock"),
        (JOURNAL, "journal header (transactions up to 9 are home)", "journal header"),
        (JOURNAL, "log record at 1/256", "log record"),
        (JOURNAL, "log tree leaf, generation 9, 12 items", "log tree"),
        (JOURNAL, "2 tree blocks of log tree, generation 9", "log tree"),
        (METADATA, "3 tree blocks of fs, root and extent trees, generation 9", "tree blocks"),
        (METADATA, "subvolume 257 tree node, level 1, generation 9, 3 items", "subvolume tree"),
        (METADATA, "fs tree leaf, generation 9, 1 item, copy", "fs tree"),
        (METADATA, "inode table", "inode table"),
        (METADATA, "block bitmap of group 3", "block bitmap"),
        (METADATA, "free space btree by block of group 1, level 1", snapshot("free space btree by block")),
        (METADATA, "tree node, level 2", "tree node"),
        (SUPERBLOCK, "superblock, generation 9", "superblock"),
        (SUPERBLOCK, "superblock, generation 9, with a log tree", snapshot("superblock with a log tree")),
        (BlockKind.DATA, "data block", "data"),
        (BlockKind.UNKNOWN, "unknown", "unknown"),
    ],
)
def test_a_sort_of_block_has_one_name(kind: BlockKind, what: str, expected: str) -> None:
    assert sort_of(kind, what) == expected


def test_the_sort_of_a_write_is_that_of_the_last_block_of_the_kind_that_it_has_most_of() -> None:
    blocks = [WritePart(JOURNAL, f"journal {what} block of transaction 5") for what in ("descriptor", "commit")]
    assert summary([*blocks, TABLE], lambda place, role: None, {}).sort == "journal transaction"
    assert summary([TABLE, TABLE, TABLE, *blocks], lambda place, role: None, {}).sort == "inode table"
    unknown = WritePart(BlockKind.UNKNOWN, "unknown", place=1)
    assert summary([unknown], lambda place, role: BlockOwner(12, "map"), {}).sort == "block map"


def test_lists_and_numbers() -> None:
    assert numbers([1, 2, 3, 5, 7, 8]) == "1-3, 5, 7-8"
    assert listed(["a", "b", "c"], 20) == "a, b, c"
    assert listed(["a" * 10, "b" * 10, "c" * 10], 22) == "a" * 10 + " and 2 more"
    assert listed(["a" * 50], 20) == "a" * 17 + "..."


def test_owners_follow_the_trace() -> None:
    owners = Owners()
    owners.remap(-1, 12, {100: "data", 101: "data"})
    owners.remap(5, 12, {100: "data"})
    owners.remap(9, 13, {101: "data", 102: "map"})
    assert [owners.owner(index, 101) for index in (0, 4)] == [BlockOwner(12, "data")] * 2
    assert [owners.owner(index, 101) for index in (5, 8, 9)] == [BlockOwner(13, "data")] * 3
    assert owners.owner(0, 102) == BlockOwner(13, "map")
    assert owners.owner(0, 103) is None
    assert owners.owner(9, 101, "map") is None
    assert owners.owner(9, 102, "map") == BlockOwner(13, "map")
    owners.remap(11, 13, {})
    assert owners.owner(12, 102) == BlockOwner(13, "map"), "freed and not used again: the former owner's"


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
        assert name.kind in BlockKind
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
