"""Another process of the machine, that syncs a file of its own when a call of the program has returned: a busy machine
in small.

What the program's calls have changed is then committed with that file, as far as the file system commits all in one,
and what they have written is still on its way. The file has no name, so that no checker sees it. It grows: where its
size stays, reiserfs commits nothing (``reiserfs_commit_for_inode``, fs/reiserfs/journal.c).

On btrfs the sync of a file without a name writes its data alone (``btrfs_log_inode_parent``, fs/btrfs/tree-log.c), and
that of a file with one puts this file alone into the log. So there the process asks for a commit, too. The kernel makes
one when a snapshot of another subvolume is taken, or 30 s have gone by.
"""

from __future__ import annotations

import fcntl
import os
import signal
from contextlib import suppress

from bob.agent.inside.frames import Refused

MARK = b"(DELAYED)"
"""In the line of each call after which strace makes a process wait. It writes the line before the waiting begins."""

COMMITS_BY_REQUEST = "btrfs"
"""The file system that commits nothing else when a file is synced."""
START_COMMIT, AWAIT_COMMIT = 0x80089418, 0x40089416
"""BTRFS_IOC_START_SYNC and BTRFS_IOC_WAIT_SYNC (include/uapi/linux/btrfs.h): the running transaction is committed, and
data that was not written back is left where it is, in memory."""

NO_CALL = 255
"""How the process ends where there was no such line; no error of the kernel has this number."""


class Neighbour:
    """While it lasts there is a file without a name in the file system of the type ``fs`` at ``root``. Between
    :meth:`begin` and :meth:`wait` a process copies what strace writes into ``pipe`` (a path; it is made) into the file
    ``out``, and appends to its own file and syncs it at each call after which the program waits."""

    def __init__(self, root: str, fs: str, pipe: str, out: str) -> None:
        self._root, self._fs, self.pipe, self._out = root, fs, pipe, out
        self._fd, self._pid = -1, 0

    def __enter__(self) -> Neighbour:
        with suppress(FileNotFoundError):
            os.unlink(self.pipe)
        os.mkfifo(self.pipe)
        path = f"{self._root}/.neighbour"  # not every file system has O_TMPFILE
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.unlink(path)
        self._sync(0)
        return self

    def begin(self) -> None:
        """Start the process."""
        self._pid = os.fork()
        if self._pid == 0:
            code = 1
            try:
                code = 0 if self._copy() else NO_CALL
            except OSError as error:
                code = error.errno or 1
            finally:
                os._exit(code)

    def wait(self) -> None:
        """Wait until all is copied: whoever writes to the pipe has ended. Refuses where not all of it was: then the
        machine was not busy."""
        pid, self._pid = self._pid, 0
        _pid, status = os.waitpid(pid, 0)
        if (code := os.waitstatus_to_exitcode(status)) == NO_CALL:
            raise Refused("the process that syncs beside the workload had no call to wait for")
        if code:
            why = os.strerror(code) if code > 0 else f"signal {-code}"
            raise Refused(f"the process that syncs beside the workload failed: {why}")

    def __exit__(self, *_what: object) -> None:
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._fd)

    def _copy(self) -> int:
        """Copy all, and say how often it has synced."""
        syncs, rest = 0, b""
        with open(self.pipe, "rb", buffering=0) as lines, open(self._out, "wb") as copied:
            while piece := lines.read(1 << 16):
                copied.write(piece)
                *whole, rest = (rest + piece).split(b"\n")
                for _line in filter(lambda line: line.endswith(MARK), whole):
                    syncs += 1
                    self._sync(syncs)
        return syncs

    def _sync(self, number: int) -> None:
        os.write(self._fd, b"%08d" % number)
        os.fsync(self._fd)
        if self._fs == COMMITS_BY_REQUEST:
            transaction = fcntl.ioctl(self._fd, START_COMMIT, bytes(8))
            fcntl.ioctl(self._fd, AWAIT_COMMIT, transaction)
