"""xfs, btrfs, reiserfs and file systems that are not known."""

from __future__ import annotations

import struct

import pytest
from inline_snapshot import snapshot

from bob.blocks import btrfs_format
from bob.blocks.btrfs_tree import Trees
from bob.blocks.medium import OverlayMedium
from bob.blocks.xfs_geometry import XfsGeometry, log_area
from bob.trace.base import Base
from bob.workload.pattern import contents
from wording import text_with

from .images import base_of, made, named, read


def xfs_geometry(base: Base) -> XfsGeometry:
    return XfsGeometry(OverlayMedium(base.length, base.sector))


def test_xfs_groups_and_inodes() -> None:
    base = made("xfs")
    places = xfs_geometry(base)
    group = places.group_blocks * places.block_bytes
    root = root_inode(base)
    cluster = places.inode_place(root) // places.block_bytes * places.block_bytes
    inodes = bytearray(read(base, cluster, places.block_bytes))
    at = places.inode_place(root) % places.block_bytes
    struct.pack_into(">Q", inodes, at + 56, 77)
    writes = [(0, read(base, 0, 512)), (group, read(base, group, 2048)), (cluster, bytes(inodes))]
    found = named("xfs", base, writes, {root: "/"})
    assert found[0] == "superblock: superblock"
    assert found[1] == snapshot(
        "metadata: superblock, copy in group 1; agf of group 1; agi of group 1; agfl of group 1"
    )
    assert text_with(found[2], root, "(/)").startswith("metadata: ")


def test_xfs_log_area() -> None:
    base = made("xfs")
    log = log_area("xfs", base)
    places = xfs_geometry(base)
    assert (log.start * 512, log.stop * 512) == (places.log.start, places.log.stop)
    assert 0 < log.start < log.stop <= base.length // 512
    # What mkfs makes of the log begins with a record of its own.
    assert base.sector(log.start)[:4] == bytes.fromhex("feedbabe")
    assert log_area("", base) == range(0)
    assert log_area("xfs", base_of({}, 1 << 20)) == range(0)


def root_inode(base: Base) -> int:
    return int.from_bytes(read(base, 0, 512)[56:64], "big")


def test_xfs_blocks_that_say_whose_they_are() -> None:
    base = made("xfs")
    places = xfs_geometry(base)
    at = 5000 * places.block_bytes
    entry = struct.pack(">QB", 131, 3) + b"abc" + b"\x01\0\0"
    body = entry.ljust(16, b"\0") + struct.pack(">HH", 0xFFFF, 4096 - 64 - 16 - 8)
    directory = b"XDB3".ljust(40, b"\0") + struct.pack(">Q", 130) + bytes(16) + body
    leaf = bytes(8) + b"\x3d\xf1" + bytes(38) + struct.pack(">Q", 130)
    writes = [(at, directory.ljust(4096, b"\0")), (at, leaf.ljust(4096, b"\0")), (at, bytes(4096))]
    assert named("xfs", base, writes, {130: "/d"}) == snapshot(
        ["metadata: directory block of /d: adds abc", "metadata: directory leaf block of /d", "unknown: unknown"]
    )


def record(cycle: int, block: int, operations: list[tuple[int, bytes]]) -> bytes:
    """A log record with operations (flags, bytes)."""
    body = b"".join(struct.pack(">IIBBH", 1, len(data), 0x69, flags, 0) + data for flags, data in operations)
    kept = [body[at : at + 4] for at in range(0, len(body), 512)]
    stored = bytearray(body.ljust(-(-len(body) // 512) * 512, b"\0"))
    for at in range(0, len(stored), 512):
        stored[at : at + 4] = struct.pack(">I", cycle)
    head = b"\xfe\xed\xba\xbe" + struct.pack(">IIIQQII", cycle, 2, len(stored), cycle << 32 | block, 0, 0, 0)
    head += struct.pack(">I", len(operations)) + b"".join(kept).ljust(256, b"\0")
    return head.ljust(512, b"\0") + bytes(stored)


def test_xfs_log() -> None:
    base = made("xfs")
    places = xfs_geometry(base)
    inode = struct.pack("<HHIHHIQ16xqII", 0x123B, 3, 5, 0, 16, 0, 131, 128, 32, 0)
    extent = struct.pack(">QQ", 0, 4000 << 21 | 1)
    agf = struct.pack("<HHHHqI", 0x123C, 2, 5 << 11, 1, 1, 1)
    operations = [
        (1, b""),
        (0, b"NART" + bytes(12)),
        (0, inode),
        (0, bytes(176)),
        (0, extent),
        (0, agf),
        (0, b"x" * 128),
    ]
    start = places.log.start
    writes = [
        (start, record(1, 2, operations)),
        (4000 * places.block_bytes, contents(2, 0, 4096)),
        (start + 4096, record(1, 4, [(0x20, b"nU" + bytes(6))])),
        (start + 8192, struct.pack(">I", 1) + bytes(508)),
        (start + 8192, b"".join((b"\xfe\xed\xba\xbe" + bytes(508)) for _ in range(8))),
    ]
    assert named("xfs", base, writes, {131: "/f"}) == snapshot(
        [
            "journal: log record at 1/2, inode 131 (/f): agf",
            "data: data of operation 2 in /f (sectors 0-7)",
            "journal: log unmount record at 1/4",
            "journal: log record, continued",
            "journal: log, 8 stale blocks cleared",
        ]
    )


def test_btrfs_tree_blocks() -> None:
    base = made("btrfs")
    superblock = btrfs_format.SUPERBLOCK.parse(read(base, 65536, 4096))
    medium = OverlayMedium(base.length, base.sector)
    trees = Trees(medium, superblock)
    fs_tree = trees.fs_tree(superblock)
    assert fs_tree is not None
    chunk = next(chunk for chunk in trees._chunks if chunk.start <= fs_tree < chunk.start + chunk.length)
    first, second = (stripe + fs_tree - chunk.start for stripe in (*chunk.stripes, *chunk.stripes)[:2])
    node = trees.node_bytes
    block = bytearray(read(base, first, node))
    log = bytearray(block)
    log[88:96] = struct.pack("<Q", btrfs_format.LOG_TREE)
    log[0:32] = b"l" * 32
    changed = bytearray(block)
    changed[0:32] = b"c" * 32
    size_at = changed.index(struct.pack("<Q", 9000))
    changed[size_at : size_at + 8] = struct.pack("<Q", 9001)
    writes = [
        (65536, read(base, 65536, 4096)),
        (first, bytes(block)),
        (first, bytes(log)),
        (first, bytes(changed)),
        (second, bytes(changed)),
        (first, bytes(changed) + bytes(log)),
        (first + 4096, bytes(4096)),
    ]
    found = named("btrfs", base, writes)
    items, generation = items_of(block), int.from_bytes(block[80:88], "little")
    copy = ", copy" if len(chunk.stripes) > 1 else ""
    assert found[0] == f"superblock: superblock, generation {superblock.generation}"
    assert found[1] == f"metadata: fs tree leaf, generation {generation}, {items} items"
    assert found[2] == f"journal: log tree leaf, generation {generation}, {items} items"
    assert found[3].startswith(f"metadata: fs tree leaf, generation {generation}, {items} items, inode ")
    assert found[4].startswith(f"metadata: fs tree leaf, generation {generation}, {items} items{copy}, inode ")
    assert found[5].startswith(f"metadata: 2 tree blocks of fs and log trees, generation {generation}")
    assert found[6] == snapshot("metadata: rest of a tree block")


def items_of(block: bytearray) -> int:
    return int.from_bytes(block[96:100], "little")


def test_reiserfs_journal_and_tree() -> None:
    base = made("reiserfs")
    superblock = read(base, 65536, 4096)
    root, first, _device, size = struct.unpack_from("<IIII", superblock, 8)
    leaf = read(base, root * 4096, 4096)
    bitmap = bytearray(read(base, 17 * 4096, 4096))
    bitmap[9000 // 8] |= 1
    changed = bytearray(leaf)
    changed[-10] ^= 1
    descriptor = struct.pack("<IIIII", 9, 2, 1, root, 16).ljust(4096 - 12, b"\0") + b"ReIsErLB".ljust(12, b"\0")
    at = [first + number for number in (size - 1, 0, 1, 2)]
    writes = [
        (at[0] * 4096, descriptor),
        (at[1] * 4096, bytes(changed)),
        (at[2] * 4096, superblock),
        (at[3] * 4096, struct.pack("<II", 9, 2).ljust(4096, b"\0")),
        ((first + size) * 4096, struct.pack("<III", 9, 0, 1).ljust(4096, b"\0")),
        (root * 4096, bytes(changed)),
        (17 * 4096, bytes(bitmap)),
        (9000 * 4096, contents(4, 0, 4096)),
    ]
    found = named("reiserfs", base, writes, {2: "/"})
    assert found[0] == snapshot("journal: journal descriptor block of transaction 9 (2 blocks)")
    assert text_with(found[1], "tree leaf", "inode").startswith("journal: ")
    assert found[2:5] == snapshot(
        [
            "journal: journal copy of superblock",
            "journal: journal commit block of transaction 9",
            "journal: journal header (transactions up to 9 are home)",
        ]
    )
    assert found[5] == found[1].replace("journal: journal copy of", "metadata:")
    assert found[6] == snapshot("metadata: block bitmap 0: allocates block 9000")
    assert found[7] == snapshot("data: data of operation 4 (sectors 0-7)")


def f2fs_superblock(**more: int) -> bytes:
    """One of areas that begin at blocks 512, 1024, 1536, 2048 and 2560, on 4,096 blocks."""
    known = {"log_block_bytes": 12, "main": 2560, **more}
    head = struct.pack("<IHHIIIIIII", 0xF2F52010, 1, 16, 9, 3, known["log_block_bytes"], 9, 1, 1, 0)
    areas = struct.pack("<5I", 512, 1024, 1536, 2048, known["main"])
    return (head + struct.pack("<Q", 4096) + bytes(32) + areas).ljust(1024, b"\0")


def node(number: int, inode: int, flags: int, following: int, body: bytes = b"") -> bytes:
    """A node block of f2fs."""
    return body.ljust(4072, b"\0") + struct.pack("<IIIQI", number, inode, flags, 7, following)


def test_f2fs() -> None:
    base = base_of({1024: f2fs_superblock()}, 4096 * 4096)
    inline = contents(1, 0, 512)
    blocks = {
        0: bytes(1024) + f2fs_superblock() + bytes(2048),
        513: bytes(4096),
        1024: bytes(4096),
        1537: bytes(4096),
        2559: bytes(4096),
        2560: node(5, 5, 2, 2561, inline),
        2561: node(9, 5, 0, 2562),
        2562: contents(1, 0, 4096),
        2563: b"a directory".ljust(4096, b"\0"),
        2564: node(5, 5, 0, 2),
    }
    assert named("f2fs", base, [(4096 * block, data) for block, data in blocks.items()], {5: "/f"}) == snapshot(
        [
            "superblock: superblock",
            "metadata: checkpoint",
            "metadata: segment information table",
            "metadata: node address table",
            "metadata: segment summary",
            "metadata: node block of /f: marked by fsync",
            "metadata: node block of /f",
            "data: data of operation 1 (sectors 0-7)",
            "unknown: unknown",
            "unknown: unknown",
        ]
    )


@pytest.mark.parametrize("wrong", [{"log_block_bytes": 14}, {"main": 2000}, {"main": 9000}])
def test_of_an_f2fs_that_cannot_be_only_data_is_told(wrong: dict[str, int]) -> None:
    base = base_of({1024: f2fs_superblock(**wrong)}, 4096 * 4096)
    writes = [(4096 * 513, bytes(4096)), (4096 * 2560, node(5, 5, 2, 2561)), (4096 * 3000, contents(1, 0, 512))]
    assert named("f2fs", base, writes) == snapshot(
        ["unknown: unknown", "unknown: unknown", "data: data of operation 1 (sector 0)"]
    )


def test_a_file_system_that_is_not_known() -> None:
    base = base_of({}, 1 << 20)
    f2fs = struct.pack("<I", 0xF2F52010).ljust(512, b"\0")
    writes = [(1024, f2fs), (8192, contents(1, 0, 512)), (0, bytes(512)), (1024, bytes(512))]
    expected = [
        "superblock: superblock",
        "data: data of operation 1 (sector 0)",
        "unknown: unknown",
        "unknown: unknown",
    ]
    for fs in ("other", "ext4", "xfs", "btrfs", "reiserfs", "f2fs"):
        assert named(fs, base, writes) == expected
