"""ext2, ext3, ext4: blocks at home, by fixed place and by owner, and in the journal."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from inline_snapshot import snapshot

from bob.blocks import ext_format as form
from bob.blocks.ext import Ext
from bob.blocks.ext_directories import entries
from bob.blocks.ext_geometry import ExtGeometry
from bob.blocks.medium import OverlayMedium
from bob.trace.base import Base
from bob.workload.pattern import contents

from .images import made, named, read

BLOCK = 1024
MAGIC = 0xC03B3998


def geometry(base: Base) -> ExtGeometry:
    return ExtGeometry(OverlayMedium(base.length, base.sector))


def paths(base: Base) -> dict[int, str]:
    """The inodes of the tree, by what its directories say."""
    found = {2: "/"}
    ext = Ext(OverlayMedium(base.length, base.sector))
    for parent in (2, *range(11, 30)):
        for block, role in ext.owners.blocks(parent).items():
            if role == "directory":
                names = entries(read(base, block * BLOCK, BLOCK), 1 << 20) or {}
                for name, inode in names.items():
                    if name not in (b".", b"..") and parent in found:
                        found[inode] = f"{found[parent].rstrip('/')}/{name.decode()}"
    return found


def blocks(base: Base, inode: int, role: str) -> list[int]:
    ext = Ext(OverlayMedium(base.length, base.sector))
    return [block for block, found in ext.owners.blocks(inode).items() if found == role]


def inode_of(base: Base, path: str) -> int:
    return next(inode for inode, found in paths(base).items() if found == path)


@pytest.mark.parametrize("fs", ["ext2", "ext3", "ext4"])
def test_fixed_places(fs: str) -> None:
    base = made(fs)
    places = geometry(base)
    group = places.groups[0]
    bitmap = bytearray(read(base, group.block_bitmap * BLOCK, BLOCK))
    free = next(bit for bit in range(8000) if not bitmap[bit // 8] >> bit % 8 & 1)
    bitmap[free // 8] |= 1 << free % 8
    writes = [
        (1024, read(base, 1024, 1024)),
        (2048, read(base, 2048, 1024)),
        (group.block_bitmap * BLOCK, bytes(bitmap)),
        (group.inode_bitmap * BLOCK, read(base, group.inode_bitmap * BLOCK, BLOCK)),
    ]
    block = free + places.first_block
    assert [name.replace(f" {block}", " FREE") for name in named(fs, base, writes)] == [
        "superblock: superblock",
        "metadata: group descriptors",
        snapshot("metadata: block bitmap of group 0: allocates block FREE"),
        snapshot("metadata: inode bitmap of group 0"),
    ]


@pytest.mark.parametrize("fs", ["ext2", "ext3", "ext4"])
def test_only_changed_inodes_of_a_table_block_are_named(fs: str) -> None:
    base = made(fs)
    places = geometry(base)
    inode = inode_of(base, "/d/a")
    at = places.place(inode)
    block = bytearray(read(base, at // BLOCK * BLOCK, BLOCK))
    struct.pack_into("<I", block, at % BLOCK + 4, 512)
    found = named(fs, base, [(at // BLOCK * BLOCK, bytes(block))] * 2, paths(base))
    assert [name.replace(f"inode {inode} ", "inode NUMBER ") for name in found] == [
        snapshot("metadata: inode table, inode NUMBER (/d/a): size 9000 to 512"),
        snapshot("metadata: inode table: nothing changed"),
    ]


@pytest.mark.parametrize("fs", ["ext2", "ext3", "ext4"])
def test_blocks_belong_to_files(fs: str) -> None:
    base = made(fs)
    known = paths(base)
    data = blocks(base, inode_of(base, "/d/a"), "data")[0] * BLOCK
    maps = blocks(base, inode_of(base, "/e/long"), "map")
    directory = blocks(base, inode_of(base, "/d"), "directory")[0] * BLOCK
    entries = bytearray(read(base, directory, BLOCK))
    entries[entries.index(b"\x01\x01b") + 2] = ord("x")
    writes = [(data, contents(3, 0, 1024)), (data, bytes(1024)), (directory, bytes(entries))]
    assert named(fs, base, writes, known) == snapshot(
        [
            "data: data of operation 3 in /d/a (sectors 0-1)",
            "data: zeros of /d/a",
            "metadata: directory block of /d: adds x; removes b",
        ]
    )
    for block in maps:
        assert named(fs, base, [(block * BLOCK, bytes(1024))], known)[0].endswith("of /e/long")
    assert bool(maps) == (fs != "ext4")


def journal(base: Base) -> list[int]:
    """The blocks of the journal, in order."""
    ext = Ext(OverlayMedium(base.length, base.sector))
    inode = form.INODE.parse(read(base, geometry(base).place(8) // 512 * 512, 512)[geometry(base).place(8) % 512 :])
    return [block for block, role in ext._maps.blocks_of(inode).items() if role == "data"]


def superblock(features: int) -> bytes:
    return struct.pack(">12I", MAGIC, 4, 0, BLOCK, 1024, 1, 5, 1, 0, 0, features, 0).ljust(BLOCK, b"\0")


TAGS: dict[int, Callable[[int, int], bytes]] = {
    0x0: lambda home, flags: struct.pack(">IHH", home, 0, flags),
    0x2: lambda home, flags: struct.pack(">IHHI", home, 0, flags, 0),
    0x8: lambda home, flags: struct.pack(">IHHH", home, 0, flags, 0),
    0xA: lambda home, flags: struct.pack(">IHHIH", home, 0, flags, 0, 0),
    0x12: lambda home, flags: struct.pack(">IIII", home, flags, 0, 0),
}
"""A tag by the features of the journal: 64bit, csum v2, csum v3."""


@pytest.mark.parametrize("features", TAGS)
@pytest.mark.parametrize("uuid", [False, True])
def test_a_transaction_of_the_journal(features: int, uuid: bool) -> None:
    base = made("ext3")
    places, known = geometry(base), paths(base)
    own = journal(base)
    inode = inode_of(base, "/d/a")
    table = places.place(inode) // BLOCK
    block = bytearray(read(base, table * BLOCK, BLOCK))
    struct.pack_into("<I", block, places.place(inode) % BLOCK + 4, 9999)
    data = blocks(base, inode, "data")[0]
    tag = TAGS[features]
    same = 0 if uuid else 2
    tags = tag(table, same) + bytes(16) * uuid + tag(data, same | 1) + bytes(16) * uuid + tag(data, same | 8)
    descriptor = (struct.pack(">III", MAGIC, 1, 5) + tags).ljust(BLOCK, b"\0")
    revoked = 8 if features & 2 else 4
    at = [number * BLOCK for number in own]
    writes = [
        (at[0], superblock(features)),
        (at[1023], descriptor),
        (at[1], bytes(block)),
        (at[2], b"\0\0\0\0" + contents(7, 4, BLOCK - 4)),
        (at[3], contents(3, 0, BLOCK)),
        (at[4], struct.pack(">IIII", MAGIC, 5, 5, 16 + 2 * revoked).ljust(BLOCK, b"\0")),
        (at[5], struct.pack(">III", MAGIC, 2, 5).ljust(BLOCK, b"\0")),
        (table * BLOCK, bytes(block)),
        (at[9], contents(3, 0, BLOCK)),
    ]
    found = named("ext3", base, writes, known)
    assert [name.replace(f"inode {inode} ", "inode NUMBER ") for name in found] == [
        snapshot("journal: journal superblock: starts with transaction 5"),
        snapshot("journal: journal descriptor block of transaction 5 (3 blocks)"),
        snapshot("journal: journal copy of inode table, inode NUMBER (/d/a): size 9000 to 9999"),
        snapshot("journal: journal copy of data of operation 7 in /d/a (sectors 0-1)"),
        snapshot("journal: journal copy of data of operation 3 in /d/a (sectors 0-1)"),
        snapshot("journal: journal revoke block of transaction 5 (2 blocks)"),
        snapshot("journal: journal commit block of transaction 5"),
        snapshot("metadata: inode table, inode NUMBER (/d/a): size 9000 to 9999"),
        "journal: journal data",
    ]


def test_data_written_before_its_inode_is_the_next_owners() -> None:
    base = made("ext2")
    places, known = geometry(base), paths(base)
    inode = inode_of(base, "/d/b")
    at = places.place(inode)
    block = bytearray(read(base, at // BLOCK * BLOCK, BLOCK))
    struct.pack_into("<I", block, at % BLOCK + 44, 8000)
    writes = [(8000 * BLOCK, contents(1, 0, 1024)), (8000 * BLOCK, b"odd " * 256), (at // BLOCK * BLOCK, bytes(block))]
    found = named("ext2", base, writes, known)
    assert found[:2] == snapshot(["data: data of operation 1 in /d/b (sectors 0-1)", "data: data block of /d/b"])
    assert named("ext2", base, writes[:2]) == snapshot(["data: data of operation 1 (sectors 0-1)", "unknown: unknown"])
