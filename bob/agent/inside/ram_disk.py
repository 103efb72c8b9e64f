"""A disk in the guest's memory. It completes a bio on submission, while a loop device hands each bio to a kernel
thread. The kernel's command line (``memmap=``, bob/guest/domain_xml.py) sets the memory aside for the kernel's driver
of persistent memory (pmem), and the agent maps the same memory. A linear device-mapper target lies over pmem. This
target counts sectors, and turns each read into a bio. pmem alone may read without a bio (``rw_page``), and the kernel's
trace would lack such a read."""

from __future__ import annotations

import mmap
import os
import re
from contextlib import suppress
from functools import cache

from bob.agent.inside import devices
from bob.agent.inside.devices import SCRATCH, comes_true, opened, read_text, run_anyhow, write_text

MEMORY = "/dev/mem"
_REGION = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) : Persistent Memory \(legacy\)$", re.M)
"""A line of /proc/iomem (e820_print_type in arch/x86/kernel/e820.c)."""
_DRIVERS = ("nd_e820", "nd_pmem", "dm_mod")
_DEVICE = "/dev/pmem0"
_DRIVER_SECONDS = 2.0
_forbidden = False


def forbid() -> None:
    """Use no set-aside memory for disks from now on. The agent calls this on a machine that bob did not boot,
    because other programs there may use that memory."""
    global _forbidden
    _forbidden = True


def address_of(length: int) -> int | None:
    """Return the physical address of memory for ``length`` bytes; None if the guest has not set aside so much."""
    there = None if _forbidden else _region()
    return there[0] if there is not None and length <= there[1] else None


@cache
def _region() -> tuple[int, int] | None:
    found = _REGION.search(read_text("/proc/iomem"))
    if found is None:
        return None
    for driver in _DRIVERS:
        run_anyhow(["modprobe", "--quiet", driver], "")
    if not comes_true(lambda: os.path.exists(_DEVICE), _DRIVER_SECONDS, 0.01):
        return None
    start, last = (int(number, 16) for number in found.groups())
    with suppress(OSError):
        map_memory(start, mmap.PAGESIZE).close()
        return start, last + 1 - start
    return None


def map_memory(address: int, length: int) -> mmap.mmap:
    """Map ``length`` bytes from the physical ``address`` on. Raises OSError if that is forbidden."""
    with opened(MEMORY) as fd:
        return mmap.mmap(fd, length, offset=address)


class RamDisk:
    """A block device without a write cache: the first ``sectors`` of the memory that is set aside."""

    def __init__(self, sectors: int) -> None:
        self.name = f"dm-{devices.make_mapped(SCRATCH, sectors, 'linear', f'{_DEVICE} 0')}"
        self.path = f"/dev/{self.name}"
        self.device = os.stat(self.path).st_rdev
        write_text(f"/sys/block/{self.name}/queue/write_cache", "write through")
        devices.forget_file_systems()

    def close(self) -> None:
        devices.remove_mapped(SCRATCH)
