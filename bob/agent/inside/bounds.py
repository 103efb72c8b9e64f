"""What a script may take of its guest: so many processes, so much output, so much that its calls write, the memory that
there is."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from bob.agent.inside.devices import read_text, write_text
from bob.agent.inside.mounts import libc
from bob.agent.inside.processes import Drain, descendants, parents

MOST_TASKS = 500
"""So many processes and threads a script may have at once."""
MOST_WRITTEN = 4 * 1024 * 1024
"""So much a workload may write to its standard output, and to its standard error (bytes)."""
MOST_CALLS = 256 * 1024 * 1024
"""So much strace may write down of a workload (bytes): four for each that a call writes, and some 100 for the call. It
is in the guest's memory three times, and in the host's for each pace."""

IN_MEMORY = "/tmp", "/dev/shm"
"""The folders for temporary files that are file systems in memory."""
MOST_OF_MEMORY = "25%"
"""The share of the guest's memory that each of them may take, and what a program writes in its world. A program that
fills one is told that it is full. Else the guest would have no memory left, and no process to kill that has it."""
_MS_REMOUNT = 1 << 5

SPARED, NOT_SPARED = "-900", "0"
"""What /proc/PID/oom_score_adj says of the agent, and of a script: of which the kernel kills first."""


def spare_agent(*, modestly: bool) -> None:
    """Have the kernel kill others before the agent, where memory is short; and before those that it runs under, sshd
    above all, but ``modestly``."""
    of = {} if modestly else parents()
    pid = os.getpid()
    while pid > 1:
        with suppress(OSError):
            write_text(f"/proc/{pid}/oom_score_adj", SPARED)
        pid = of.get(pid, 0)


def bound_scratch() -> None:
    """Have the folders for temporary files take no more than :data:`MOST_OF_MEMORY`."""
    for folder in IN_MEMORY:
        libc.mount(b"none", folder.encode(), b"tmpfs", _MS_REMOUNT, f"size={MOST_OF_MEMORY}".encode())


def do_not_spare(pid: int) -> None:
    """Have the kernel kill the process ``pid``, and what it starts, before the agent, where memory is short."""
    with suppress(OSError):
        write_text(f"/proc/{pid}/oom_score_adj", NOT_SPARED)


class ScriptBounds:
    """The bounds of a script that is about to be started, ``but`` those processes that are there already. What strace
    writes down of it goes to the file ``calls``, if it is traced."""

    def __init__(self, but: set[int], calls: str = "") -> None:
        self._others, self._calls = but, calls
        self._tasks, self._killed = _all_tasks(), _killed_for_memory()

    def broken(self, drains: Sequence[Drain]) -> str:
        """What the script did that is too much, in words that follow its name; empty where it did not."""
        if any(drain.is_full for drain in drains):
            return f"wrote more than {MOST_WRITTEN / 2**20:g} MiB to its output; what it writes there is what it tells"
        if _all_tasks() - self._tasks > MOST_TASKS and _tasks_of_ours(self._others) > MOST_TASKS:
            return f"started more than {MOST_TASKS:,} processes and threads"
        if self._calls and _size(self._calls) > MOST_CALLS:
            most = f"{MOST_CALLS / 2**20:g} MiB of text, in which each byte that a call writes has four"
            return f"made more calls, or wrote more, than bob takes down: {most}"
        return ""

    def memory(self) -> str:
        """That the guest ran out of memory meanwhile, in words; empty where it did not."""
        if _killed_for_memory() == self._killed:
            return ""
        return f"the guest ran out of memory, of which it has {_memory()}"


@contextmanager
def first_of_all() -> Iterator[None]:
    """Has this thread run before all others: else processes that start processes are quicker than who kills them."""
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _size(path: str) -> int:
    with suppress(OSError):
        return os.path.getsize(path)
    return 0


def _all_tasks() -> int:
    """How many processes and threads there are; 0 where that is not known. To look through all of /proc for them takes
    too long to do it again and again."""
    with suppress(OSError, ValueError, IndexError):
        return int(read_text("/proc/loadavg").split()[3].partition("/")[2])
    return 0


def _tasks_of_ours(others: set[int]) -> int:
    count = 0
    for pid in descendants(os.getpid()):
        if pid not in others:
            with suppress(OSError, ValueError, IndexError):
                count += int(read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()[17])  # num_threads in proc(5)
    return count


def _killed_for_memory() -> int:
    """How many processes the kernel has killed since it had no memory left."""
    with suppress(OSError, ValueError):
        for line in read_text("/proc/vmstat").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def _memory() -> str:
    with suppress(OSError, ValueError, IndexError):
        return f"{int(read_text('/proc/meminfo').split()[1]) // 1024:,} MiB"
    return "too little"
