"""bcache: write the superblocks of a backing device and of its cache (struct cache_sb_disk,
include/uapi/linux/bcache.h), and register both devices with the kernel. The agent does not use make-bcache, because its
superblocks have random UUIDs."""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from functools import cache

from bob.agent.inside.devices import (
    ARRAY_PAUSE,
    ARRAY_SECONDS,
    CACHE_SET,
    SECTOR,
    comes_true,
    in_sysfs,
    opened,
    sectors_of,
    stop_cached,
    write_text,
)
from bob.agent.inside.frames import ContentRefused, Denial
from bob.agent.inside.refusals import refusal

REGISTER = "/sys/fs/bcache/register"
SUPER_SECTOR = 8  # SB_SECTOR
MAGIC = bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")
SET = bytes.fromhex(CACHE_SET.replace("-", ""))
CACHE_DEVICE, BACKING_DEVICE = 0, 1  # BCACHE_SB_VERSION_CDEV and BCACHE_SB_VERSION_BDEV
MODES = {"writethrough": 0, "writeback": 1, "writearound": 2}  # the lowest bits of a backing device's flags
BUCKET, BLOCK = 32, 1  # sectors; the kernel takes no cache of fewer than 513 buckets (cache_alloc in super.c)
FIRST_BUCKET = 1  # bucket 0 has the superblock
SUPER = struct.Struct("<3Q16s16s16s32s2Q64xQ4HI2H")
"""The fields up to ``keys``: checksum, offset, version, magic, uuid, set_uuid, label, flags, seq, 64 bytes of features
and padding, nbuckets, block_size, bucket_size, nr_in_set, nr_this_dev, last_mount, first_bucket, keys."""
POLYNOMIAL, ALL_ONES = 0x42F0E1EBA9EA3693, (1 << 64) - 1


def superblock(version: int, uuid: bytes, *, flags: int = 0, buckets: int = 0) -> bytes:
    """Return the superblock of a device. For a cache, ``buckets`` is its number of buckets. For a backing device,
    ``flags`` is the number of its caching mode."""
    fields = [SUPER_SECTOR, version, MAGIC, uuid, SET, b"", flags, 0, buckets, BLOCK, BUCKET if buckets else 0]
    fields += [int(bool(buckets)), 0, 0, FIRST_BUCKET * bool(buckets), 0]
    body = SUPER.pack(0, *fields)[8:]
    return struct.pack("<Q", checksum(body)) + body


def checksum(data: bytes) -> int:
    """Return the kernel's bch_crc64 of ``data`` (drivers/md/bcache/util.h)."""
    value, table = ALL_ONES, _table()
    for byte in data:
        value = table[value >> 56 ^ byte] ^ value << 8 & ALL_ONES
    return value ^ ALL_ONES


@cache
def _table() -> list[int]:
    found = []
    for byte in range(256):
        value = byte << 56
        for _ in range(8):
            value = (value << 1 ^ (POLYNOMIAL if value >> 63 else 0)) & ALL_ONES
        found.append(value)
    return found


def make(backing: str, cache_path: str, mode: str) -> None:
    """Write the superblocks of a ``backing`` device and of its cache. The kernel treats a cache with a new
    superblock as empty. Raises Denial for an unknown ``mode``."""
    if mode not in MODES:
        raise Denial(f"invalid mode of bcache {mode!r}; expected {', '.join(MODES)}")
    blocks = {
        backing: superblock(BACKING_DEVICE, b"bob's bcache own", flags=MODES[mode]),
        cache_path: superblock(CACHE_DEVICE, b"bob's bcache ssd", buckets=sectors_of(cache_path) // BUCKET),
    }
    for path, block in blocks.items():
        with opened(path) as fd:
            os.pwrite(fd, block.ljust(8 * SECTOR, b"\0"), SUPER_SECTOR * SECTOR)
            os.fsync(fd)


def register(backing: str, cache_path: str) -> str:
    """Register the devices with the kernel, and return the path of the cached device. An empty ``cache_path`` says that
    the cache is lost; the backing device then runs alone. Raises Denial if the kernel refuses."""
    folder = f"{in_sysfs(backing)}/bcache"
    try:
        for path in filter(None, (cache_path, backing)):
            write_text(REGISTER, os.path.realpath(path))
        if not cache_path and not os.path.exists(f"{folder}/dev"):
            write_text(f"{folder}/running", "1")
    except OSError as error:
        stop(backing, cache_path)
        raise refusal("bcache does not take the devices", error) from error
    if not comes_true(lambda: os.path.exists(f"{folder}/dev"), ARRAY_SECONDS, ARRAY_PAUSE):
        stop(backing, cache_path)
        raise ContentRefused("bcache does not start the backing device")
    path = f"/dev/{os.path.basename(os.path.realpath(f'{folder}/dev'))}"
    if not comes_true(lambda: os.path.exists(path), ARRAY_SECONDS, ARRAY_PAUSE):
        raise Denial(f"the kernel made no {path}")
    return path


def stop(backing: str, cache_path: str) -> None:
    """Stop the cached device and the cache set on these devices, and wait until the kernel has let go of them. Raises
    Denial if it does not."""
    with suppress(FileNotFoundError):
        write_text(f"{in_sysfs(backing)}/bcache/stop", "1")
    stop_cached(CACHE_SET)
    paths = [path for path in (backing, cache_path) if path]
    if not comes_true(lambda: all(map(_is_free, paths)), ARRAY_SECONDS, ARRAY_PAUSE):
        raise Denial(f"bcache was busy for {ARRAY_SECONDS:g} s")


def _is_free(path: str) -> bool:
    """Return whether the kernel uses the block device ``path`` for nothing, so that it can be opened exclusively."""
    try:
        with opened(path, os.O_RDONLY | os.O_EXCL):
            return True
    except OSError:
        return False
