"""The superblock of an md array, as the kernel's header lays it out (include/uapi/linux/raid/md_p.h)."""

from __future__ import annotations

import struct

import pytest

from bob.agent.inside.devices import SECTOR
from bob.agent.inside.md_array import checksum, superblock


def number(block: bytes, at: int, form: str) -> int:
    [found] = struct.unpack_from(f"<{form}", block, at)
    assert isinstance(found, int)
    return found


@pytest.mark.parametrize("disk", [0, 1, 2])
def test_fields_are_where_the_kernel_reads_them(disk: int) -> None:
    block = superblock(disk, 3, 5, 61440, 2048, chunk=128, layout=2)
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
    first, second = superblock(0, 2, 1, 8, 2048), superblock(1, 2, 1, 8, 2048)
    assert first[16:32] == second[16:32]
    assert first[168:184] != second[168:184]


def test_the_checksum_is_over_all_but_itself() -> None:
    block = bytearray(superblock(0, 2, 1, 8, 2048))
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
