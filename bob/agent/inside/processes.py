"""Processes: their output, their end, their descendants."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Set
from contextlib import suppress

from bob.agent.inside.devices import read_text, stat_of

WAKING = 50  # a wait for a script wakes up after so many milliseconds


class Drain(threading.Thread):
    """Reads a pipe to its end, so that the writer never waits; keeps the last ``most`` bytes (0: all). After more than
    ``limit`` bytes (0: no limit) it ``is_full`` and reads no more: the writer waits for ever."""

    def __init__(self, fd: int, most: int = 0, limit: int = 0) -> None:
        super().__init__(daemon=True)
        self._fd, self._most, self._limit, self._read = fd, most, limit, bytearray()
        self.is_full = False
        self.start()

    def run(self) -> None:
        total = 0
        while not self.is_full and (piece := os.read(self._fd, 65536)):
            total += len(piece)
            self.is_full = total > self._limit > 0
            self._read += piece
            if self._most:
                del self._read[: -self._most]
        if not self.is_full:
            os.close(self._fd)

    def all(self) -> bytes:
        """Return what was read, when all writers are gone."""
        self.join()
        if self.is_full:
            os.close(self._fd)
        return bytes(self._read)


def name_of(pid: int) -> str:
    """Return the name of a process; empty if it is gone."""
    with suppress(OSError):
        return read_text(f"/proc/{pid}/comm").strip()
    return ""


def state_of(pid: int) -> str:
    """Return the state of a process, a letter as in proc(5) (D: it waits for a disk); empty if it is gone."""
    with suppress(OSError):
        return stat_of(pid)[0]
    return ""


def ends_within(pid: int, seconds: float, is_enough: Callable[[], object] = lambda: False) -> bool:
    """Wait for the end of a child, for so many seconds at most, or until it ``is_enough``; return whether it has ended.
    The child is not reaped. The wait wakes up now and then: where all of a guest sleeps, its virtual time jumps to the
    next timer, however long its disk takes."""
    fd, deadline = os.pidfd_open(pid), time.monotonic() + seconds
    try:
        waiting = select.poll()
        waiting.register(fd, select.POLLIN)
        while not (ended := bool(waiting.poll(WAKING))) and time.monotonic() < deadline:
            if is_enough():
                break
        return ended
    finally:
        os.close(fd)


def has_children(but: Set[int] = frozenset()) -> bool:
    """Return whether this process has any child, dead or alive, ``but`` these. It is its descendants' subreaper, so
    without a child it has no descendant. To look through all of /proc takes an emulated guest longer than a shell takes
    to start."""
    if but:
        with suppress(OSError):  # CONFIG_PROC_CHILDREN
            tasks = [read_text(f"/proc/self/task/{task}/children").split() for task in os.listdir("/proc/self/task")]
            return not {int(pid) for pids in tasks for pid in pids} <= but
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def descendants(pid: int) -> list[int]:
    """Return the children of ``pid``, theirs, and so on."""
    of = parents()
    found, new = [], [pid]
    while new:
        above = set(new)
        new = [child for child, parent in of.items() if parent in above]
        found += new
    return found


def parents() -> dict[int, int]:
    """Return the parent of each process."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):
                found[int(entry)] = int(stat_of(int(entry))[1])
    return found
