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

COMMITS_BY_REQUEST = "btrfs"
"""The file system that commits nothing else when a file is synced."""
START_COMMIT, AWAIT_COMMIT = 0x80089418, 0x40089416
"""BTRFS_IOC_START_SYNC and BTRFS_IOC_WAIT_SYNC (include/uapi/linux/btrfs.h): the running transaction is committed, and
data that was not written back is left where it is, in memory."""


class Neighbour:
    """While it lasts there is a file without a name in the file system of the type ``fs`` at ``root``."""

    def __init__(self, root: str, fs: str) -> None:
        self._root, self._fs = root, fs
        self._fd = -1

    def __enter__(self) -> Neighbour:
        path = f"{self._root}/.neighbour"  # not every file system has O_TMPFILE
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.unlink(path)
        self.sync(0)
        return self

    def __exit__(self, *_what: object) -> None:
        os.close(self._fd)

    def sync(self, number: int) -> None:
        """Append to the file, and sync it, for the ``number``-th time."""
        os.write(self._fd, b"%08d" % number)
        os.fsync(self._fd)
        if self._fs == COMMITS_BY_REQUEST:
            transaction = fcntl.ioctl(self._fd, START_COMMIT, bytes(8))
            fcntl.ioctl(self._fd, AWAIT_COMMIT, transaction)
