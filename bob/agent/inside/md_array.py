"""md arrays: write superblocks of version 1.2 (include/uapi/linux/raid/md_p.h), and assemble arrays by ioctl. The agent
does not use mdadm, because its start takes longer than all of the kernel's work, and its superblocks have random
UUIDs."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from bob.agent.inside.devices import (
    ARRAY_PAUSE,
    ARRAY_SECONDS,
    BASE_EPOCH,
    SECTOR,
    comes_true,
    opened,
    read_text,
    run_anyhow,
    sectors_of,
    stop_array,
    write_text,
)
from bob.agent.inside.frames import Denial
from bob.agent.inside.refusals import refusal

PARAMETERS = "/sys/module/md_mod/parameters"
SET_ARRAY_INFO, ADD_NEW_DISK, RUN_ARRAY = 0x40480923, 0x40140921, 0x400C0930
VERSION = (1, 2)
MODPROBE = "/proc/sys/kernel/modprobe"  # the program that the kernel starts to load a module (proc_sys_kernel(5))

SUPER_SECTOR = 8  # version 1.2 lies 4 KiB from the start of a disk
MAGIC = 0xA92B4EFC
CLEAN = (1 << 64) - 1  # resync_offset: the whole array is in sync
NO_ROLE, FAULTY, JOURNAL = 0xFFFF, 0xFFFE, 0xFFFD  # MD_DISK_ROLE_SPARE and so on
HAS_BITMAP, HAS_JOURNAL, HAS_PPL = 1, 512, 1024  # MD_FEATURE_BITMAP_OFFSET and so on
AFTER_SUPER = 8  # sectors from the superblock to a bitmap, or to a partial parity log
UUID = b"bob's md array.."
MISSING = "missing"  # mdadm's word for a disk that is missing
JOURNAL_DISK = "journal:"  # begins the word for a journal; its path follows
SUPER = struct.Struct("<4I16s32sQ2iQ2I i IQ4I 4Q2I16s2BHI 3Q2I32s")
"""struct mdp_superblock_1: magic, major_version, feature_map, pad0, set_uuid, set_name, ctime, level, layout, size,
chunksize, raid_disks, bitmap_offset, new_level, reshape_position, delta_disks, new_layout, new_chunk, new_offset,
data_offset, data_size, super_offset, recovery_offset, dev_number, cnt_corrected_read, device_uuid, devflags,
bblog_shift, bblog_size, bblog_offset, utime, events, resync_offset, sb_csum, max_dev, pad3. Then come dev_roles."""
SUM_AT = 216
BITMAP = struct.Struct("<2I16s3Q6I")
"""The beginning of struct bitmap_super_s (drivers/md/md-bitmap.h): magic, version, uuid, events, events_cleared,
sync_size, state, chunksize, daemon_sleep, write_behind, sectors_reserved, nodes. The bits begin after 256 bytes."""
BITMAP_MAGIC, BITMAP_VERSION, BITMAP_SECONDS = 0x6D746962, 4, 5
BITMAP_HEADER, BITMAP_BYTES = 256, 4096
MOST_DEVICES = 128  # in dev_roles: the superblock then fits into one sector, which a disk writes whole


def make_array(
    disks: Sequence[str], level: int, data: int, *, chunk: int = 0, layout: int = 0, bitmap: int = 0, ppl: int = 0
) -> None:
    """Write the superblocks of a new array whose ``disks`` (paths) are in sync. If one of them is the word ``missing``,
    the array is degraded. The last one may be ``journal:`` with the path of a journal. The array's data begins at
    sector ``data`` of each disk.

    ``chunk`` is the length of a chunk in sectors. If it is not 0, the array uses only whole chunks of each disk.
    ``bitmap`` is the number of sectors that one bit of the write-intent bitmap covers (0: no bitmap). ``ppl`` is the
    length of the partial parity log in sectors (0: no log).
    """
    journals = [disk for disk in disks if disk.startswith(JOURNAL_DISK)]
    disks = [disk for disk in disks if disk not in journals]
    there = [number for number, disk in enumerate(disks) if disk != MISSING]
    size = min(sectors_of(disks[number]) for number in there) - data
    size -= size % chunk if chunk else 0
    array = Array(len(disks), tuple(there), level, size, data, chunk, layout, bool(bitmap), ppl, bool(journals))
    paths = {number: disks[number] for number in there}
    paths |= {len(disks): path[len(JOURNAL_DISK) :] for path in journals}
    for number, path in paths.items():
        with opened(path) as fd:
            os.pwrite(fd, superblock(number, array), SUPER_SECTOR * SECTOR)
            if bitmap:
                os.pwrite(fd, bitmap_block(size, bitmap), (SUPER_SECTOR + AFTER_SUPER) * SECTOR)
            os.fsync(fd)


class Array(NamedTuple):
    """An array that is in sync. ``disks`` is the number of disks that a complete array would have. ``there`` has the
    numbers of the disks that this array has. ``size``, ``data``, ``chunk`` and ``ppl`` (the partial parity log) are in
    sectors."""

    disks: int
    there: tuple[int, ...]
    level: int
    size: int
    data: int
    chunk: int = 0
    layout: int = 0
    has_bitmap: bool = False
    ppl: int = 0
    has_journal: bool = False


def superblock(number: int, array: Array) -> bytes:
    """Return the superblock of disk ``number`` of the array. If the array has a journal, its journal device counts as
    one more disk, whose number is that of the last disk plus 1."""
    own = b"bob's md disk %02d" % number
    features = HAS_BITMAP * array.has_bitmap | HAS_PPL * bool(array.ppl) | HAS_JOURNAL * array.has_journal
    after = (
        AFTER_SUPER | array.ppl << 16 if array.has_bitmap or array.ppl else 0
    )  # bitmap_offset, or the offset and size of ppl
    fields = [MAGIC, VERSION[0], features, 0, UUID, b"bob", BASE_EPOCH, array.level, array.layout, array.size]
    fields += [array.chunk, array.disks, after]
    fields += [0, 0, 0, 0, 0, 0]  # the array is not being reshaped
    fields += [array.data, array.size, SUPER_SECTOR, 0, number, 0, own, 0, 0, 0, 0]
    fields += [BASE_EPOCH, 0, CLEAN]
    roles = [role if role in array.there else FAULTY for role in range(array.disks)] + [JOURNAL] * array.has_journal
    roles += [NO_ROLE] * (MOST_DEVICES - len(roles))
    block = bytearray(SUPER.pack(*fields, 0, MOST_DEVICES, b"") + struct.pack(f"<{MOST_DEVICES}H", *roles))
    struct.pack_into("<I", block, SUM_AT, checksum(bytes(block)))
    return bytes(block)


def bitmap_block(size: int, each: int) -> bytes:
    """Return the write-intent bitmap, with its superblock, of an array whose disks have ``size`` sectors. All bits are
    clear, and each bit stands for ``each`` sectors. Raises Denial if the bitmap is too large for its place."""
    fields = [BITMAP_MAGIC, BITMAP_VERSION, UUID, 0, 0, size, 0, each * SECTOR, BITMAP_SECONDS, 0, 0, 0]
    block = BITMAP.pack(*fields)
    if BITMAP_HEADER + (bits := -(-size // each)) // 8 >= BITMAP_BYTES:
        raise Denial(f"a bitmap with {bits} bits is larger than {BITMAP_BYTES} bytes")
    return block + bytes(BITMAP_BYTES - len(block))


def checksum(block: bytes) -> int:
    """Return the checksum of a superblock, which is computed with 0 in the place of the checksum (calc_sb_1_csum in
    drivers/md/md.c)."""
    total: int = sum(struct.unpack(f"<{len(block) // 4}I", block))
    return ((total & 0xFFFFFFFF) + (total >> 32)) & 0xFFFFFFFF


def assemble(name: str, disks: Sequence[str]) -> str:
    """Assemble the array ``name`` from the superblocks on ``disks``, and return its path. The array does not begin a
    resync before the first write. So if the caller freezes resyncs before its first write to the array, the kernel
    writes nothing to the disks of its own accord. Raises Denial with the kernel's message."""
    if not os.path.isdir(PARAMETERS):
        run_anyhow(["modprobe", "--quiet", "md_mod"], "")
    _name_array(name)
    path = f"/dev/{name}"
    if not comes_true(lambda: os.path.exists(path), ARRAY_SECONDS, ARRAY_PAUSE):
        raise Denial(f"the kernel made no {path}")
    earlier = read_text(f"{PARAMETERS}/start_ro").strip()
    write_text(f"{PARAMETERS}/start_ro", "1")
    step = ""
    try:
        with opened(path) as fd:
            step = "SET_ARRAY_INFO"
            fcntl.ioctl(fd, SET_ARRAY_INFO, struct.pack("<18i", *VERSION, *[0] * 16))
            for disk in disks:
                if disk == MISSING:
                    continue
                step = "ADD_NEW_DISK"
                device = os.stat(disk).st_rdev
                fcntl.ioctl(fd, ADD_NEW_DISK, struct.pack("<5i", 0, os.major(device), os.minor(device), 0, 0))
            step = "RUN_ARRAY"
            _run(fd, name)
    except OSError as error:
        with suppress(Denial):
            stop_array(name)
        if not step:  # the array could not even be opened
            raise
        raise refusal(f"md cannot assemble the array: {step}", error) from error
    finally:
        write_text(f"{PARAMETERS}/start_ro", earlier)
    return path


def _run(fd: int, name: str) -> None:
    """Start the array whose disks were added. The kernel always starts modprobe first, even if the driver of the
    array's level is loaded (request_module in md_run, drivers/md/md.c). modprobe takes longer than all other steps. The
    kernel gets it here only if the driver is missing. Raises OSError."""
    try:
        with _without_modprobe():
            fcntl.ioctl(fd, RUN_ARRAY, bytes(12))
    except OSError:
        if not _lacks_driver(name):
            raise
        fcntl.ioctl(fd, RUN_ARRAY, bytes(12))


@contextmanager
def _without_modprobe() -> Iterator[None]:
    path = read_text(MODPROBE)
    write_text(MODPROBE, "\n")
    try:
        yield
    finally:
        write_text(MODPROBE, path)


def _lacks_driver(name: str) -> bool:
    """Return whether the kernel lacks a driver for the level of an array that did not start. Return False if the level
    is unknown."""
    level = read_text(f"/sys/block/{name}/md/level").strip()
    driver = "linear" if level == "-1" else f"raid{level}" if level.isdigit() else level
    return bool(level) and f"[{driver}]" not in read_text("/proc/mdstat").partition("\n")[0]


def _name_array(name: str) -> None:
    deadline = time.monotonic() + ARRAY_SECONDS
    while True:
        try:
            write_text(f"{PARAMETERS}/new_array", name)
        except OSError as error:
            if error.errno != errno.EEXIST or time.monotonic() > deadline:
                raise Denial(f"md cannot make the array {name}: {error.strerror}") from error
            time.sleep(ARRAY_PAUSE)  # the kernel is still removing the last array of this name
        else:
            return
