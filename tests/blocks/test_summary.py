"""How the parts of a write are told in one line."""

from __future__ import annotations

import pytest

from bob.blocks.data import data_part
from bob.blocks.owners import Owner, Owners
from bob.blocks.parts import UNKNOWN, Kind, Part
from bob.blocks.summary import LONGEST, listed, numbers, sort, sort_of, summary
from bob.workload.pattern import FIRST_SETUP_NUMBER, contents

TABLE = Part(Kind.METADATA, "inode table")
PATHS = {inode: f"/d/{inode}" for inode in range(12, 44)}


def text(*parts: Part) -> str:
    return summary(parts, lambda place, role: None, PATHS)[1]


def table(*inodes: int, notes: tuple[str, ...] = ()) -> Part:
    return Part(Kind.METADATA, "inode table", inodes=inodes, notes=notes)


def test_inodes_are_told_with_their_paths() -> None:
    assert text(table(12)) == "inode table, inode 12 (/d/12)"
    assert text(table(50)) == "inode table, inode 50"
    assert text(table(50, 51)) == "inode table (inodes 50-51)"
    assert text(table(12, 50)) == "inode table (inodes 12, 50: /d/12, inode 50)"
    assert text(table(*range(12, 28)), table(*range(28, 44))).startswith("inode table (inodes 12-43: /d/12, /d/13")
    assert text(table(12, notes=("new",)), table(13)) == "inode table (inodes 12-13: /d/12, /d/13): /d/12 new"


def test_blocks_of_one_sort_are_counted_and_many_sorts_cut() -> None:
    journal = Part(Kind.JOURNAL, "journal data")
    assert text(*[journal] * 7) == "journal data (7 blocks)"
    assert text(journal, UNKNOWN) == "journal data; unknown"
    many = [Part(Kind.METADATA, f"some rather long name of a block, number {number}") for number in range(4)]
    assert text(*many) == "some rather long name of a block, number 0, and 3 more"
    assert summary([], lambda place, role: None, {}) == (Kind.UNKNOWN, "unknown")
    assert len(text(*(Part(Kind.METADATA, "x" * 300) for _ in range(3)))) <= LONGEST


def told(data: bytes) -> str:
    part = data_part(data, 0, 1)
    return "" if part is None else summary([part], lambda place, role: Owner(12, "data"), PATHS)[1]


def test_data_is_told_by_operation_and_sectors() -> None:
    assert told(contents(3, 0, 4096)) == "data of operation 3 in /d/12 (sectors 0-7)"
    assert told(contents(3, 0, 100).ljust(4096, b"\0")) == "data of operation 3 in /d/12 (sector 0)"
    assert told(contents(3, 0, 9).ljust(4096, b"\0")) == "data of operation 3 in /d/12 (sector 0)"
    assert told(contents(FIRST_SETUP_NUMBER + 3, 0, 1024)) == "initial data in /d/12 (sectors 0-1)"
    mixed = contents(3, 0, 600) + contents(FIRST_SETUP_NUMBER, 600, 3496)
    assert told(mixed) == "data of operation 3 (sectors 0-1) and initial data (sectors 1-7) in /d/12"
    assert told(bytes(512)) == told(b"<" * 512) == ""


JOURNAL, METADATA, SUPERBLOCK = Kind.JOURNAL, Kind.METADATA, Kind.SUPERBLOCK


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
        (METADATA, "free space btree by block of group 1, level 1", "free space btree by block"),
        (METADATA, "tree node, level 2", "tree node"),
        (SUPERBLOCK, "superblock, generation 9", "superblock"),
        (SUPERBLOCK, "superblock, generation 9, with a log tree", "superblock with a log tree"),
        (Kind.DATA, "data block", "data"),
        (Kind.UNKNOWN, "unknown", "unknown"),
    ],
)
def test_a_sort_of_block_has_one_name(kind: Kind, what: str, expected: str) -> None:
    assert sort_of(kind, what) == expected


def test_the_sort_of_a_write_is_that_of_the_last_block_of_the_kind_that_it_has_most_of() -> None:
    blocks = [Part(JOURNAL, f"journal {what} block of transaction 5") for what in ("descriptor", "commit")]
    assert sort([*blocks, TABLE], lambda place, role: None) == "journal transaction"
    assert sort([TABLE, TABLE, TABLE, *blocks], lambda place, role: None) == "inode table"
    assert sort([Part(Kind.UNKNOWN, "unknown", place=1)], lambda place, role: Owner(12, "map")) == "block map"
    assert sort([], lambda place, role: None) == "unknown"


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
    assert [owners.owner(index, 101) for index in (0, 4)] == [Owner(12, "data")] * 2
    assert [owners.owner(index, 101) for index in (5, 8, 9)] == [Owner(13, "data")] * 3
    assert owners.owner(0, 102) == Owner(13, "map")
    assert owners.owner(0, 103) is None
    assert owners.owner(9, 101, "map") is None
    assert owners.owner(9, 102, "map") == Owner(13, "map")
    owners.remap(11, 13, {})
    assert owners.owner(12, 102) == Owner(13, "map"), "freed and not used again: the former owner's"
