"""Superblocks of bcache: the kernel takes them (tests/agent/test_stacks.py); here is what stands in them."""

from __future__ import annotations

import struct

from bob.agent.inside import bcache


def test_the_checksum_is_the_one_of_the_kernel() -> None:
    """CRC-64/WE of the catalogue of CRC algorithms has the kernel's polynomial, begin and end."""
    assert bcache.checksum(b"123456789") == 0x62EC59E3F1A4F00A


def test_a_backing_device_says_how_it_caches() -> None:
    block = bcache.superblock(bcache.BACKING_DEVICE, b"u" * 16, flags=bcache.MODES["writeback"])
    total, offset, version = struct.unpack_from("<3Q", block)
    assert (total, offset, version) == (bcache.checksum(block[8:]), 8, 1)
    assert block[24:40] == bcache.MAGIC and block[40:56] == b"u" * 16 and block[56:72] == bcache.SET
    assert struct.unpack_from("<Q", block, 104) == (1,)


def test_a_cache_is_the_first_of_its_set() -> None:
    block = bcache.superblock(bcache.CACHE_DEVICE, b"u" * 16, buckets=1024)
    assert struct.unpack_from("<Q4H", block, 184) == (1024, bcache.BLOCK, bcache.BUCKET, 1, 0)
    assert len(block) == 208, "the kernel's checksum ends there (csum_set in drivers/md/bcache/bcache.h)"
