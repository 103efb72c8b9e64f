"""Bounds of a script in its guest: processes, output, bytes that its calls write, memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from bob.agent.inside.devices import read_text, stat_of, write_text
from bob.agent.inside.mounts import libc
from bob.agent.inside.processes import Drain, descendants, parents

MOST_TASKS = 500  # processes and threads of one script
MOST_WRITTEN = 4 * 1024 * 1024  # a workload's standard output, and its standard error (bytes each)
MOST_CALLS = 256 * 1024 * 1024
"""strace's output on a workload (bytes): four for each byte that a call writes, and some 100 for the call. The guest
has it in memory three times, and the host once for each pace."""

IN_MEMORY = "/tmp", "/dev/shm"  # folders for temporary files that are file systems in memory
MOST_OF_MEMORY = "25%"
"""The share of the guest's memory for each of them, and for what a program writes in its world. A program that fills
one learns that it is full. Else the guest would have no memory left, and no process to kill that holds it."""
_MS_REMOUNT = 1 << 5

SPARED, NOT_SPARED = "-900", "0"
"""/proc/PID/oom_score_adj of the agent, and of a script: the kernel kills the script first."""


def spare_agent(*, modestly: bool) -> None:
    """Have the kernel kill other processes before the agent where memory is short, and unless ``modestly`` before the
    agent's ancestors, such as sshd."""
    of = {} if modestly else parents()
    pid = os.getpid()
    while pid > 1:
        with suppress(OSError):
            write_text(f"/proc/{pid}/oom_score_adj", SPARED)
        pid = of.get(pid, 0)


def bound_scratch() -> None:
    """Limit the folders for temporary files to :data:`MOST_OF_MEMORY`."""
    for folder in IN_MEMORY:
        libc.mount(b"none", folder.encode(), b"tmpfs", _MS_REMOUNT, f"size={MOST_OF_MEMORY}".encode())


def do_not_spare(pid: int) -> None:
    """Have the kernel kill the process ``pid``, and what it starts, before the agent."""
    with suppress(OSError):
        write_text(f"/proc/{pid}/oom_score_adj", NOT_SPARED)


class ScriptBounds:
    """The bounds of a script that is about to start. Processes ``but`` are there already; strace writes to ``calls``,
    if it traces the script."""

    def __init__(self, but: set[int], calls: str = "") -> None:
        self._others, self._calls = but, calls
        self._tasks, self._killed = _all_tasks(), _killed_for_memory()

    def broken(self, drains: Sequence[Drain]) -> str:
        """Say which bound the script broke, in words that follow its name; empty if none."""
        if any(drain.is_full for drain in drains):
            return f"wrote more than {MOST_WRITTEN / 2**20:g} MiB to its output; what it writes there is what it tells"
        if _all_tasks() - self._tasks > MOST_TASKS and _tasks_of_ours(self._others) > MOST_TASKS:
            return f"started more than {MOST_TASKS:,} processes and threads"
        if self._calls and _size(self._calls) > MOST_CALLS:
            most = f"{MOST_CALLS / 2**20:g} MiB of text, in which each byte that a call writes has four"
            return f"made more calls, or wrote more, than bob takes down: {most}"
        return ""

    def memory(self) -> str:
        """Say that the guest ran out of memory meanwhile; empty if it did not."""
        if _killed_for_memory() == self._killed:
            return ""
        return f"the guest ran out of memory, of which it has {_memory()}"


@contextmanager
def first_of_all() -> Iterator[None]:
    """Run this thread before all others: else processes that start processes outrun the one that kills them."""
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
    """Return the number of processes and threads; 0 if unknown. A walk through /proc takes too long to be repeated."""
    with suppress(OSError, ValueError, IndexError):
        return int(read_text("/proc/loadavg").split()[3].partition("/")[2])
    return 0


def _tasks_of_ours(others: set[int]) -> int:
    count = 0
    for pid in descendants(os.getpid()):
        if pid not in others:
            with suppress(OSError, ValueError, IndexError):
                count += int(stat_of(pid)[17])  # num_threads in proc(5)
    return count


def _killed_for_memory() -> int:
    """Return how many processes the kernel has killed for lack of memory."""
    with suppress(OSError, ValueError):
        for line in read_text("/proc/vmstat").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def _memory() -> str:
    with suppress(OSError, ValueError, IndexError):
        return f"{int(read_text('/proc/meminfo').split()[1]) // 1024:,} MiB"
    return "too little"
