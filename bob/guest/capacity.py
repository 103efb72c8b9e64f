"""How many guests this machine can run side by side."""

from __future__ import annotations

import os
import re
from pathlib import Path

MIB_OF_A_GUEST = 1024
"""What a guest takes that looks at crash states of 300 MiB, QEMU's own share included; most take a third of it."""

_MEMINFO = Path("/proc/meminfo")


def recorders(jobs: int) -> int:
    """Of so many guests that work side by side, so many may be recording: each beside another one, which waits."""
    return max(1, jobs // 2)


def guests_that_fit() -> int:
    """As many as there are processors that bob may use (a guest takes a whole one) and free memory for, that of the
    waiting ones included; at least 1."""
    available = re.search(r"^MemAvailable: +(\d+) kB", _MEMINFO.read_text(), re.M)
    fit = int(available[1]) // 1024 // MIB_OF_A_GUEST if available else 1
    processors = len(os.sched_getaffinity(0))
    return max((jobs for jobs in range(2, processors + 1) if jobs + recorders(jobs) <= fit), default=1)
