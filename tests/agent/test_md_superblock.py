"""The superblock of an md array, as the kernel's header lays it out (include/uapi/linux/raid/md_p.h)."""

from __future__ import annotations

import struct

import pytest

from bob.agent.inside.devices import SECTOR
from bob.agent.inside.frames import Denial
from bob.agent.inside.md_array import Array, bitmap_block, checksum, superblock


def number(block: bytes, at: int, form: str) -> int:
    [found] = struct.unpack_from(f"<{form}", block, at)
    assert isinstance(found, int)
    return found


MIRRORS = Array(2, (0, 1), 1, 8, 2048)


@pytest.mark.parametrize("disk", [0, 1, 2])
def test_fields_are_where_the_kernel_reads_them(disk: int) -> None:
    block = superblock(disk, Array(3, (0, 1, 2), 5, 61440, 2048, 128, 2))
    assert len(block) == SECTOR, "one sector, which a disk writes whole"
    assert [number(block, at, "I") for at in (0, 4, 8)] == [0xA92B4EFC, 1, 0]
    assert [number(block, at, "I") for at in (72, 76, 88, 92)] == [5, 2, 128, 3]  # level, layout, chunk, disks
    assert [number(block, at, "Q") for at in (80, 128, 136, 144)] == [61440, 2048, 61440, 8]
    assert number(block, 160, "I") == disk
    assert number(block, 208, "Q") == 2**64 - 1, "all in sync"
    assert number(block, 220, "I") == 128
    roles = [number(block, 256 + 2 * place, "H") for place in range(128)]
    assert roles == [0, 1, 2] + [0xFFFF] * 125


def test_disks_of_an_array_have_its_uuid_and_their_own() -> None:
    first, second = (superblock(disk, MIRRORS) for disk in (0, 1))
    assert first[16:32] == second[16:32]
    assert first[168:184] != second[168:184]


def test_the_checksum_is_over_all_but_itself() -> None:
    block = bytearray(superblock(0, MIRRORS))
    said = number(block, 216, "I")
    block[216:220] = bytes(4)
    assert checksum(bytes(block)) == said
    block[300] ^= 1
    assert checksum(bytes(block)) != said


def test_the_checksum_folds_its_carry() -> None:
    """calc_sb_1_csum: the sum has 64 bits, and its upper half is added to the lower one."""
    assert (
        checksum(struct.pack("<4I", *[0xFFFFFFFF] * 3, 5))
        == (3 * 0xFFFFFFFF + 5) % 2**32 + (3 * 0xFFFFFFFF + 5) // 2**32
    )


def test_a_missing_disk_is_faulty_for_the_others() -> None:
    block = superblock(1, Array(3, (1, 2), 5, 61440, 2048, 128, 2))
    assert [number(block, 256 + 2 * place, "H") for place in range(4)] == [0xFFFE, 1, 2, 0xFFFF]
    assert number(block, 92, "I") == 3


def test_features_are_behind_the_superblock() -> None:
    none = superblock(0, MIRRORS)
    mapped, logged = superblock(0, MIRRORS._replace(has_bitmap=True)), superblock(0, MIRRORS._replace(ppl=512))
    assert [number(block, 8, "I") for block in (none, mapped, logged)] == [0, 1, 1024]
    assert [number(block, 96, "H") for block in (none, mapped, logged)] == [0, 8, 8]
    assert [number(block, 98, "H") for block in (none, mapped, logged)] == [0, 0, 512]


def test_a_journal_has_a_role_of_its_own() -> None:
    blocks = [superblock(disk, Array(3, (0, 1, 2), 5, 61440, 2048, 128, 2, has_journal=True)) for disk in (0, 3)]
    for block, disk in zip(blocks, (0, 3), strict=True):
        assert (number(block, 8, "I"), number(block, 96, "I"), number(block, 160, "I")) == (512, 0, disk)
        assert [number(block, 256 + 2 * place, "H") for place in range(5)] == [0, 1, 2, 0xFFFD, 0xFFFF]


def test_a_bitmap_has_a_clear_bit_for_each_piece() -> None:
    block = bitmap_block(61440, 128)
    assert (len(block), block[:4], block[8:24]) == (4096, b"bitm", superblock(0, MIRRORS)[16:32])
    assert [number(block, at, "I") for at in (4, 52, 56)] == [4, 65536, 5]
    assert number(block, 40, "Q") == 61440
    assert not any(block[256:])
    with pytest.raises(Denial, match="a bitmap with 61440 bits is larger than 4096 bytes"):
        bitmap_block(61440, 1)
