"""The number of guests that this machine can run side by side, and the size of a device in one of them."""

from __future__ import annotations

import os
import re
from pathlib import Path

from bob.errors import UsageError
from bob.subject import Subject
from bob.subject.file_system import MIB

MIB_OF_A_GUEST = 1024
"""A guest that looks at crash states of 300 MiB takes so much, QEMU's own share included; most take a third of it."""

LEAST_MIB_OF_A_GUEST = 340  # a guest that looks at crash states takes so much at least

JOBS_PER_PROCESSOR = 2
"""A guest takes a whole processor. With some more, all are slower; with many more, deadlines pass."""

LARGEST_DEVICE_MIB = 800
"""A guest has 2 GiB of memory, where a recorded device lies twice: 850 MiB work, 1,000 MiB do not."""

_MEMINFO = Path("/proc/meminfo")


def recorders(jobs: int) -> int:
    """Return how many of ``jobs`` guests may be recording, each beside another one, which waits."""
    return max(1, jobs // 2)


def check_jobs(jobs: int | None) -> None:
    """Raise UsageError for less than one guest, and for more than this machine has processors or memory for."""
    if jobs is None or jobs == 1:
        return
    if jobs < 1:
        raise UsageError(f"--jobs {jobs}: that many guests do nothing", hint="1 or more")
    processors, guests = len(os.sched_getaffinity(0)), jobs + recorders(jobs)
    hint = f"--jobs {guests_that_fit()} is what fits, and what bob takes where --jobs is not given"
    if jobs > processors * JOBS_PER_PROCESSOR:
        has = "1 processor" if processors == 1 else f"{processors} processors"
        raise UsageError(f"--jobs {jobs}: each guest takes a whole processor, and bob may use {has}", hint=hint)
    needed, available = guests * LEAST_MIB_OF_A_GUEST, _available_mib()
    if needed > available:
        raise UsageError(
            f"--jobs {jobs}: {guests} guests, those that wait included, take {needed:,} MiB at the least, and "
            f"{available:,} MiB are free",
            hint=hint,
        )


def check_device(configuration: Subject) -> None:
    """Raise UsageError for a device that is too small for its file system, or too large for a guest."""
    fs, mib = configuration.fs, configuration.device_bytes // MIB
    if configuration.device_bytes < fs.smallest:
        raise UsageError(
            f"a device of {mib} MiB is too small for {fs.name}: below {fs.smallest // MIB} MiB its mkfs refuses, or "
            "makes another file system than people have",
            hint=f"--device {fs.smallest // MIB}M or more; {fs.device // MIB}M where it is not given",
        )
    if mib > LARGEST_DEVICE_MIB:
        raise UsageError(
            f"a device of {mib:,} MiB is too large: a guest holds it in memory, and {LARGEST_DEVICE_MIB} MiB at most",
            hint=f"--device {LARGEST_DEVICE_MIB}M or less; {fs.device // MIB}M where it is not given",
        )


def guests_that_fit() -> int:
    """Return one guest per usable processor, limited by free memory, waiting guests included; at least 1."""
    fit = _available_mib() // MIB_OF_A_GUEST
    processors = len(os.sched_getaffinity(0))
    return max((jobs for jobs in range(2, processors + 1) if jobs + recorders(jobs) <= fit), default=1)


def _available_mib() -> int:
    """Return the free memory for guests; 0 where the kernel does not say."""
    available = re.search(r"^MemAvailable: +(\d+) kB", _MEMINFO.read_text(), re.M)
    return int(available[1]) // 1024 if available else 0
