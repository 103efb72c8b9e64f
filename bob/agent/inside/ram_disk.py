"""A disk in memory that the agent has mapped: bios are done when they are submitted, and no image is copied.

A loop device hands each bio to a thread of the kernel, some fifty for a crash state: two switches each. Here the
guest's command line sets memory aside (``memmap=``, bob/guest/domain_xml.py), the kernel's driver of persistent memory
copies to and from it at once, and the agent maps the same memory by /dev/mem. Between the two is a linear target of
device-mapper: it counts sectors, and all that is read through it makes a bio, which pmem alone does not always
(``rw_page``). Where the guest has no such memory, or its kernel no such driver, crash states are on a loop device.
"""

from __future__ import annotations

import mmap
import os
import re
import time
from contextlib import suppress
from functools import cache

from bob.agent.inside import mapper
from bob.agent.inside.devices import SCRATCH, forget_file_systems, read_text, run_anyhow, write_text

MEMORY = "/dev/mem"
_REGION = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) : Persistent Memory \(legacy\)$", re.M)
"""As /proc/iomem has it (e820_print_type in arch/x86/kernel/e820.c)."""
_DRIVERS = ("nd_e820", "nd_pmem", "dm_mod")
_DEVICE = "/dev/pmem0"
_DRIVER_SECONDS = 2.0
_forbidden = False


def forbid() -> None:
    """Have no such disk: the machine is not bob's own, and nor is any memory that its command line sets aside."""
    global _forbidden
    _forbidden = True


def address_of(length: int) -> int | None:
    """The physical address of memory for a disk of ``length`` bytes; None where there is not so much."""
    there = None if _forbidden else _region()
    return there[0] if there is not None and length <= there[1] else None


@cache
def _region() -> tuple[int, int] | None:
    """The memory that was set aside, as address and bytes, if the kernel makes a device of it and it can be mapped."""
    found = _REGION.search(read_text("/proc/iomem"))
    if found is None:
        return None
    for driver in _DRIVERS:
        run_anyhow(["modprobe", "--quiet", driver], "")
    deadline = time.monotonic() + _DRIVER_SECONDS
    while not os.path.exists(_DEVICE):
        if time.monotonic() > deadline:
            return None
        time.sleep(0.01)
    start, last = (int(number, 16) for number in found.groups())
    with suppress(OSError):
        map_memory(start, mmap.PAGESIZE).close()
        return start, last + 1 - start
    return None


def map_memory(address: int, length: int) -> mmap.mmap:
    """``length`` bytes of the guest's memory from the physical ``address`` on. Raises OSError where that is not let."""
    fd = os.open(MEMORY, os.O_RDWR)
    try:
        return mmap.mmap(fd, length, offset=address)
    finally:
        os.close(fd)


class RamDisk:
    """The first ``sectors`` of that memory as a block device without a write cache; ``with`` takes it away."""

    def __init__(self, sectors: int) -> None:
        self.name = f"dm-{mapper.create(SCRATCH, sectors, 'linear', f'{_DEVICE} 0')}"
        self.path = f"/dev/{self.name}"
        self.device = os.stat(self.path).st_rdev
        write_text(f"/sys/block/{self.name}/queue/write_cache", "write through")
        forget_file_systems()

    def __enter__(self) -> RamDisk:
        return self

    def __exit__(self, *_: object) -> None:
        mapper.remove(SCRATCH)
