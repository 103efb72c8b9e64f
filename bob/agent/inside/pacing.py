"""Make a program wait after each change, as on a slow machine: while bob stops strace, it waits. A *neighbour* may sync
its own file then. With one journal for all, that commits the program's changes while their data is pending."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import signal
import time
from contextlib import suppress

from bob.agent.inside.devices import read_text
from bob.agent.inside.frames import Denial
from bob.agent.inside.strace_lines import Ahead, StraceLines, lines_of
from bob.agent.inside.traced_calls import TracedChanges

COMMITS_BY_REQUEST = "btrfs"  # a sync of a file commits nothing else here
START_COMMIT, AWAIT_COMMIT = 0x80089418, 0x40089416
"""BTRFS_IOC_START_SYNC, BTRFS_IOC_WAIT_SYNC (include/uapi/linux/btrfs.h): they commit without writing data back."""
NO_CALL = 255  # the exit code if no call changed anything; no error of the kernel has this number
_TRACER = re.compile(r"^TracerPid:\t(\d+)$", re.MULTILINE)


class Neighbour:
    """A file in the file system of type ``fs`` at ``root``, until it is closed. It has no name, so that no checker sees
    it, and grows: otherwise reiserfs commits nothing (``reiserfs_commit_for_inode``, fs/reiserfs/journal.c). On btrfs
    its sync writes its data alone (``btrfs_log_inode_parent``, fs/btrfs/tree-log.c), and a named file logs itself
    alone. So bob also asks for a commit, by the ioctl for snapshots of another subvolume."""

    def __init__(self, root: str, fs: str) -> None:
        self._fs = fs
        path = f"{root}/.neighbour"  # not every file system has O_TMPFILE
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.unlink(path)
        self.sync(0)

    def close(self) -> None:
        os.close(self._fd)

    def sync(self, number: int) -> None:
        os.write(self._fd, b"%08d" % number)
        os.fsync(self._fd)
        if self._fs == COMMITS_BY_REQUEST:
            transaction = fcntl.ioctl(self._fd, START_COMMIT, bytes(8))
            fcntl.ioctl(self._fd, AWAIT_COMMIT, transaction)


class PacedPipe(Ahead):
    """Copy strace's output from ``pipe`` (a path; ``with`` makes it) into the file ``out``. At each change below
    ``root`` strace waits ``delay`` seconds, and the ``neighbour`` syncs."""

    def __init__(self, pipe: str, out: str, root: str, delay: float, neighbour: Neighbour | None) -> None:
        super().__init__(pipe, self._copy)
        self._out, self._root, self._delay, self._neighbour = out, root, delay, neighbour

    def finish(self) -> None:
        """Wait for strace's end. Raises Denial if this process failed after a call, or the neighbour did nothing."""
        code = self.wait()
        if code == NO_CALL and self._neighbour is not None:
            raise Denial("the process that syncs beside the workload saw no call to sync after")
        if code not in (0, NO_CALL):
            why = os.strerror(code) if code > 0 else f"signal {-code}"
            what = "syncs beside the workload" if self._neighbour else "makes the workload wait"
            raise Denial(f"the process that {what} failed: {why}")

    def _copy(self) -> int:
        lines, changes, waits, tracer = StraceLines(), TracedChanges(self._root), 0, 0
        with open(self._pipe, "rb", buffering=0) as pipe, open(self._out, "wb") as copied:
            for whole in lines_of(pipe):
                for text in whole:
                    copied.write(text + b"\n")
                    line = lines.take(text)
                    if line is not None and changes.made_by(line):
                        waits += 1
                        tracer = tracer or _tracer_of(line.pid)
                        self._hold(tracer, waits)
        return 0 if waits else NO_CALL

    def _hold(self, tracer: int, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(tracer, signal.SIGSTOP)
        try:
            if self._neighbour is not None:
                self._neighbour.sync(number)
            time.sleep(self._delay)
        finally:
            with suppress(ProcessLookupError):
                os.kill(tracer, signal.SIGCONT)


def _tracer_of(pid: int) -> int:
    found = _TRACER.search(read_text(f"/proc/{pid}/status"))
    if found is None or found[1] == "0":
        raise OSError(errno.ESRCH, "strace does not trace it")
    return int(found[1])
