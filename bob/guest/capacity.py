"""How many guests this machine can run, and how large a device in a guest may be."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from bob.errors import UsageError
from bob.guest.spec import MEMORY_MIB
from bob.subject import Subject
from bob.subject.file_system import MIB

MIB_OF_A_GUEST = 1024  # with crash states of 300 MiB, and QEMU's own share; most guests take a third of it

LEAST_MIB_OF_A_GUEST = 340  # a guest that only observes crash states takes at least this

JOBS_PER_PROCESSOR = 2  # a guest takes a whole processor: a few more slow all of them down, many more miss deadlines

LARGEST_DEVICE_MIB = 800  # a guest of 2 GiB has a recorded device in memory twice: 850 MiB work, 1,000 MiB do not

LARGEST_CLUSTER_MIB = 1000  # the disks of all nodes: a guest with a gap in its memory is not bob's (domain_xml.py)

_MEMINFO = Path("/proc/meminfo")


def recorders(jobs: int) -> int:
    """Return how many of ``jobs`` workers may record workloads at the same time. A worker that records may keep a
    second guest, which later observes crash states. This second guest takes memory, too, while it waits."""
    return max(1, jobs // 2)


def check_jobs(jobs: int | None) -> None:
    if jobs is None or jobs == 1:
        return
    if jobs < 1:
        raise UsageError(f"invalid --jobs {jobs}", hint="expected 1 or more")
    processors, guests = len(os.sched_getaffinity(0)), jobs + recorders(jobs)
    hint = f"--jobs {guests_that_fit()} fits, and is the default on this machine"
    if jobs > processors * JOBS_PER_PROCESSOR:
        has = "1 processor" if processors == 1 else f"{processors} processors"
        raise UsageError(f"--jobs {jobs}: at most two guests per processor, and bob may use {has}", hint=hint)
    needed, available = guests * LEAST_MIB_OF_A_GUEST, _available_mib()
    if needed > available:
        raise UsageError(
            f"--jobs {jobs} needs at least {needed:,} MiB for {guests} guests (waiting ones included), and "
            f"{available:,} MiB are free",
            hint=hint,
        )


def check_device(configuration: Subject) -> None:
    """Raise UsageError if the configuration's device is too small for its file system, or too large for a guest."""
    for node in configuration.nodes:
        check_device(node)
    if configuration.nodes:
        _check_nodes(configuration)
        return
    fs, volume, mib = configuration.fs, configuration.volume_bytes // MIB, configuration.device_bytes // MIB
    if configuration.volume_bytes < fs.smallest:
        raise UsageError(
            f"a device of {volume} MiB is too small for {fs.name}: below {fs.smallest // MIB} MiB its mkfs refuses, or "
            "makes an unusual file system",
            hint="--device is the size of each disk, and the layers take a part of it"
            if configuration.layers
            else f"--device {fs.smallest // MIB}M or more; the default is {fs.device // MIB}M",
        )
    if mib > LARGEST_DEVICE_MIB:
        raise UsageError(
            f"a device of {mib:,} MiB is too large: a guest holds it in memory, at most {LARGEST_DEVICE_MIB} MiB",
            hint=f"--device {LARGEST_DEVICE_MIB}M or less; the default is {fs.device // MIB}M",
        )


def _check_nodes(cluster: Subject) -> None:
    mib, number = cluster.device_bytes // MIB, len(cluster.nodes)
    if mib > LARGEST_CLUSTER_MIB:
        raise UsageError(
            f"the disks of {number} nodes take {mib:,} MiB: a guest holds them in memory, at most "
            f"{LARGEST_CLUSTER_MIB:,} MiB",
            hint="use fewer nodes, smaller disks (device_mib, --device), or a file system that makes do with less",
        )


def memory_for(subjects: Iterable[Subject]) -> int:
    """Return the memory (MiB) of a guest for each of ``subjects``. A guest has the disks in memory twice."""
    largest = max((subject.device_bytes // MIB for subject in subjects), default=0)
    return MEMORY_MIB + 2 * max(0, largest - LARGEST_DEVICE_MIB)


def guests_that_fit() -> int:
    """Return the largest number for ``--jobs`` that fits this machine, at least 1. It is the number of workers that run
    at the same time. Each worker needs a processor for its guest. The free memory must suffice for the guests of all
    workers, and for the second guests that :func:`recorders` describes."""
    fit = _available_mib() // MIB_OF_A_GUEST
    processors = len(os.sched_getaffinity(0))
    return max((jobs for jobs in range(2, processors + 1) if jobs + recorders(jobs) <= fit), default=1)


def _available_mib() -> int:
    available = re.search(r"^MemAvailable: +(\d+) kB", _MEMINFO.read_text(), re.M)
    return int(available[1]) // 1024 if available else 0
