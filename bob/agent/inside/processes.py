"""Processes of scripts: their output, their end, their descendants, and limits on the memory and the processes that
they may use."""

from __future__ import annotations

import os
import re
import select
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress

from bob.agent.inside.devices import READ_AT_ONCE, read_text, stat_of, write_text
from bob.agent.inside.mounts import libc

WAKING = 50  # milliseconds: a wait for a script wakes up so often
MOST_TASKS = 500  # processes and threads of one script
MOST_WRITTEN = 4 * 1024 * 1024  # bytes of a workload's standard output, and of its standard error
MOST_CALLS = 256 * 1024 * 1024
"""Bytes of strace's output on a workload, at most. Each byte that a call writes takes 4, and each call some 100. The
guest has this output in memory three times, and the host once for each pace."""

IN_MEMORY = "/tmp", "/dev/shm"  # folders for temporary files that are file systems in memory
MOST_OF_MEMORY = "25%"
"""The share of the guest's memory for each folder of ``IN_MEMORY``, and for a program's writes in its world. A program
gets an error when such a file system is full. Without a limit the guest would run out of memory, and to kill a process
would free none of it."""
_MS_REMOUNT = 1 << 5

SPARED, NOT_SPARED = "-900", "0"  # oom_score_adj of the agent and of a script: the kernel kills the script first
FIRST_TO_GO = "1000"  # a sandbox's, which the kernel kills before the user's programs

MOST_ON_HOST = 2 * 2**30  # bytes of memory of a script in a sandbox, besides its files
LEAST_LEFT = 1 / 16  # the share of the host's memory that a sandbox leaves: with less, its script is ended
is_on_host = False  # whether this is a sandbox: its processes are the agent's and the script's alone


def stay_on_host() -> None:
    """Limit this process and all that it starts, because they run on the host. There may be only a certain number of
    processes, and no core dumps. The user's processes outside of the sandbox do not count, because the kernel counts
    separately in each user namespace. When memory runs out, the kernel kills these processes before any others."""
    import resource  # guests do without it

    global is_on_host
    is_on_host = True
    most = 2 * MOST_TASKS  # more than a script may have: bob then says so
    for limit, value in ((resource.RLIMIT_NPROC, most), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(limit, (value, value))
    write_text("/proc/self/oom_score_adj", FIRST_TO_GO)


class Drain:
    """The output of a script: the read end ``fd`` of a pipe. Only the last ``most`` bytes are kept (0: all). After more
    than ``limit`` bytes (0: no limit), ``is_full`` is true, and nothing more is read, so the writer waits."""

    def __init__(self, fd: int, most: int = 0, limit: int = 0) -> None:
        self.fd, self._most, self._limit = fd, most, limit
        self._kept, self._total = bytearray(), 0
        self.is_full = self.is_over = False

    def read(self) -> None:
        """Read what is in the pipe. Wait until there is something, or until no writer is left."""
        piece = os.read(self.fd, READ_AT_ONCE)
        self._total += len(piece)
        self._kept += piece
        self.is_full, self.is_over = self._total > self._limit > 0, not piece
        if self._most:
            del self._kept[: -self._most]

    def all(self) -> bytes:
        """Read the pipe to its end, close it, and return what was kept."""
        while not (self.is_full or self.is_over):
            self.read()
        with suppress(OSError):
            os.close(self.fd)
        self.fd = -1
        return bytes(self._kept)


def name_of(pid: int) -> str:
    with suppress(OSError):
        return read_text(f"/proc/{pid}/comm").strip()
    return ""


def state_of(pid: int) -> str:
    """Return the state of a process, as in proc(5). The state D means that the process waits for a disk. Empty if the
    process is gone."""
    with suppress(OSError):
        return stat_of(pid)[0]
    return ""


def ends_within(
    pid: int, seconds: float, is_enough: Callable[[], object] = lambda: False, outputs: Iterable[Drain] = ()
) -> bool:
    """Wait until the child ``pid`` ends, ``is_enough()`` is true, or ``seconds`` are over. Meanwhile, read ``outputs``.
    Return whether the child has ended; it is not reaped. The wait is a series of short waits. During one long wait, the
    whole guest might sleep. A virtual clock would then jump to the end of the wait, even while a disk is still busy."""
    fd, deadline = os.pidfd_open(pid), time.monotonic() + seconds
    try:
        waiting = select.poll()
        waiting.register(fd, select.POLLIN)
        reading = {output.fd: output for output in outputs if not (output.is_full or output.is_over)}
        for number in reading:
            waiting.register(number, select.POLLIN)
        look = time.monotonic() + WAKING / 1000
        while True:
            ready = {number for number, _event in waiting.poll(WAKING)}
            for number in ready & reading.keys():
                reading[number].read()
                if reading[number].is_full or reading[number].is_over:
                    waiting.unregister(number)
                    del reading[number]
            if fd in ready:
                return True
            now = time.monotonic()
            if now >= deadline:
                return False
            if now >= look:
                if is_enough():
                    return False
                look = now + WAKING / 1000
    finally:
        os.close(fd)


def has_children(but: Set[int] = frozenset()) -> bool:
    """Return whether this process has a child. Children whose process ids are in ``but`` do not count. All orphans
    count, because this process is a subreaper. This takes less time than a search of /proc."""
    if but:
        with suppress(OSError):  # CONFIG_PROC_CHILDREN
            tasks = [read_text(f"/proc/self/task/{task}/children").split() for task in os.listdir("/proc/self/task")]
            return not {int(pid) for pids in tasks for pid in pids} <= but
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def descendants(but: Set[int] = frozenset()) -> list[int]:
    """Return the process ids of the descendants of this process. The ids in ``but`` are left out."""
    of = parents()
    found, new = [], [os.getpid()]
    while new:
        above = set(new)
        new = [child for child, parent in of.items() if parent in above]
        found += new
    return [pid for pid in found if pid not in but]


def parents() -> dict[int, int]:
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):
                found[int(entry)] = int(stat_of(int(entry))[1])
    return found


def spare_agent(*, modestly: bool) -> None:
    """Tell the kernel not to kill the agent when memory runs out. Unless ``modestly`` is true, protect the agent's
    ancestors, such as sshd, in the same way."""
    of = {} if modestly else parents()
    pid = os.getpid()
    while pid > 1:
        with suppress(OSError):
            write_text(f"/proc/{pid}/oom_score_adj", SPARED)
        pid = of.get(pid, 0)


def bound_scratch() -> None:
    for folder in IN_MEMORY:
        libc.mount(b"none", folder.encode(), b"tmpfs", _MS_REMOUNT, f"size={MOST_OF_MEMORY}".encode())


def do_not_spare(pid: int) -> None:
    """Tell the kernel that when memory runs out it should kill the process ``pid``, and what this process starts,
    before the agent."""
    if is_on_host:
        return  # the agent is not spared, either
    with suppress(OSError):
        write_text(f"/proc/{pid}/oom_score_adj", NOT_SPARED)


class ScriptBounds:
    """Limits for a script that is about to start: on its output, on the number of its processes, and (in a sandbox on
    the host) on its memory. ``but`` has the ids of processes that were running before the script; the limits do not
    apply to these. The size of the file ``calls``, which gets strace's output, is limited, too. (``calls`` is "" if
    strace does not run.)"""

    def __init__(self, but: set[int], calls: str = "") -> None:
        self._others, self._calls = but, calls
        self._tasks, self._killed = _all_tasks(), _killed_for_memory()

    def broken(self, drains: Sequence[Drain]) -> str:
        """Return which limit the script exceeds, as words that follow the script's name in a message. Return "" if it
        exceeds none. ``drains`` read the script's outputs."""
        if outgrown := self.outgrown(drains):
            return outgrown
        if _all_tasks() - self._tasks > MOST_TASKS and _tasks_of_ours(self._others) > MOST_TASKS:
            return f"started more than {MOST_TASKS:,} processes and threads"
        return _took_too_much(self._others) if is_on_host else ""

    def outgrown(self, drains: Sequence[Drain]) -> str:
        """Return which limit on its output the script exceeds, as :meth:`broken` does."""
        if any(drain.is_full for drain in drains):
            return f"wrote more than {MOST_WRITTEN / 2**20:g} MiB to its output, which bob keeps as acknowledgements"
        if self._calls and _size(self._calls) > MOST_CALLS:
            most = f"{MOST_CALLS / 2**20:g} MiB of text, with four bytes for each byte that a call writes"
            return f"made more calls, or wrote more, than bob records: {most}"
        return ""

    def memory(self) -> str:
        if _killed_for_memory() == self._killed:
            return ""
        return f"the guest ran out of memory; it has {_memory()}"


@contextmanager
def first_of_all() -> Iterator[None]:
    """Give this thread the highest priority during a ``with`` block that kills processes. Otherwise processes that
    start other processes would be faster than the thread that kills them. In a sandbox on the host, the agent cannot
    raise its priority. There, this function first kills all other processes of the sandbox by a single call."""
    if is_on_host:
        os.kill(-1, signal.SIGKILL)
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
    """Return the number of processes and threads in the guest; 0 if unknown. This reads only /proc/loadavg, because it
    would take too long to read the folder of each process."""
    with suppress(OSError, ValueError, IndexError):
        return int(read_text("/proc/loadavg").split()[3].partition("/")[2])
    return 0


def _tasks_of_ours(others: set[int]) -> int:
    count = 0
    for pid in descendants(others):
        with suppress(OSError, ValueError, IndexError):
            count += int(stat_of(pid)[17])  # num_threads in proc(5)
    return count


def _took_too_much(others: set[int]) -> str:
    taken = 0
    for pid in descendants(others):
        with suppress(OSError, ValueError, IndexError):
            resident, shared = read_text(f"/proc/{pid}/statm").split()[1:3]
            taken += (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
    if taken > MOST_ON_HOST and _shared_out(others) > MOST_ON_HOST:
        return f"took more than {MOST_ON_HOST / 2**30:g} GiB of memory"
    lines = (line.partition(":")[::2] for line in read_text("/proc/meminfo").splitlines())
    kib = {name: int(value.split()[0]) for name, value in lines}
    if kib["MemAvailable"] < kib["MemTotal"] * LEAST_LEFT:
        return f"was ended, as the host had only {kib['MemAvailable'] // 1024:,} MiB of memory left"
    return ""


def _shared_out(others: set[int]) -> int:
    """Return how many bytes of memory the processes of a script use. Pages of files do not count, and a page that
    several processes share counts once. Processes with ids in ``others`` do not belong to the script."""
    taken = 0
    for pid in descendants(others):
        with suppress(OSError):
            for kib in re.findall(r"^Pss_(?:Anon|Shmem): *(\d+) kB$", read_text(f"/proc/{pid}/smaps_rollup"), re.M):
                taken += 1024 * int(kib)
    return taken


def _killed_for_memory() -> int:
    with suppress(OSError):
        if said := re.search(r"^oom_kill (\d+)$", read_text("/proc/vmstat"), re.M):
            return int(said[1])
    return 0


def _memory() -> str:
    with suppress(OSError, ValueError, IndexError):
        return f"{int(read_text('/proc/meminfo').split()[1]) // 1024:,} MiB"
    return "too little"
