"""Make a program wait after each change, as on a slow machine: bob stops strace, and the program waits for strace.
Meanwhile bob may sync a *neighbour*, a file that the program does not use. In a file system with one journal for all
files, that sync also commits the program's changes while their data is still pending."""

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

COMMITS_BY_REQUEST = "btrfs"  # on this file system, a sync of a file commits nothing but that file
START_COMMIT, AWAIT_COMMIT = 0x80089418, 0x40089416
"""BTRFS_IOC_START_SYNC and BTRFS_IOC_WAIT_SYNC (include/uapi/linux/btrfs.h). They commit without writing data back."""
NO_CALL = 255  # the exit code if no call changed anything; no error of the kernel has this number
_TRACER = re.compile(r"^TracerPid:\t(\d+)$", re.MULTILINE)


class Neighbour:
    """A file beside the workload's files, in the file system of type ``fs`` at ``root``. bob writes to this file and
    syncs it while the workload waits. The file is unlinked at once, so that checkers do not see it. It grows at each
    sync, because reiserfs commits nothing otherwise (``reiserfs_commit_for_inode``, fs/reiserfs/journal.c).

    On btrfs, a sync of an unlinked file writes only that file's data (``btrfs_log_inode_parent``, fs/btrfs/tree-log.c),
    and a sync of a named file logs only that file. So on btrfs bob also asks for a commit (``BTRFS_IOC_START_SYNC``).
    """

    def __init__(self, root: str, fs: str) -> None:
        self._fs = fs
        path = f"{root}/.neighbour"  # made and unlinked, as not every file system has O_TMPFILE
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
    """A process that copies strace's output from ``pipe`` into the file ``out``. ``pipe`` is the path of a named pipe,
    which is made at the start of a ``with`` block. After each change below ``root``, this process stops strace for
    ``delay`` seconds. The program waits for strace, and so it stands still, too. Meanwhile the process syncs
    ``neighbour``, if there is one."""

    def __init__(self, pipe: str, out: str, root: str, delay: float, neighbour: Neighbour | None) -> None:
        super().__init__(pipe, self._copy)
        self._out, self._root, self._delay, self._neighbour = out, root, delay, neighbour

    def finish(self) -> None:
        """Wait until strace has ended. Raises Denial if the process that copies strace's output failed. Also raises
        Denial if the neighbour was never synced, because the program made no change."""
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
