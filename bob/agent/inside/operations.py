"""Perform a workload's logical operations, such as ``write /a 0 4096``, by plain system calls, as a program would: open
the file, act on it, close it. If a path lacks a slash, it is a *handle*. A handle is the name of an open file: an
earlier operation opened the file, and left it open."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from bob.agent.inside.devices import opened
from bob.agent.inside.frames import OperationRefused
from bob.agent.inside.mounts import libc

CLOCK_FILE = "/.bob-clock"
"""A file that no workload has. A change of it begins a transaction, and an fsync of it commits one."""
FIRST_OF_SETUP = 10_000  # from this number on, operations make the initial tree (bob/workload/shades.py)

OPEN_FLAGS = {"plain": 0, "direct": os.O_DIRECT, "sync": os.O_SYNC, "dsync": os.O_DSYNC, "trunc": os.O_TRUNC}

AT_FDCWD = -100
RENAME_FLAGS = {"noreplace": 1, "exchange": 2}  # include/uapi/linux/fs.h
# Modes of fallocate(2), from include/uapi/linux/falloc.h.
_KEEP_SIZE, _PUNCH_HOLE, _COLLAPSE_RANGE, _ZERO_RANGE, _INSERT_RANGE = 1, 2, 8, 16, 32
FALLOCATE_MODES = {
    "keep": _KEEP_SIZE,
    "punch": _PUNCH_HOLE | _KEEP_SIZE,
    "zero": _ZERO_RANGE,
    "zero-keep": _ZERO_RANGE | _KEEP_SIZE,
    "collapse": _COLLAPSE_RANGE,
    "insert": _INSERT_RANGE,
}


SPECIAL = {"fifo": stat.S_IFIFO, "socket": stat.S_IFSOCK, "character": stat.S_IFCHR, "block": stat.S_IFBLK}
DEVICE_NUMBER = os.makedev(7, 11)
# Flags from include/uapi/linux/fs.h and fcntl.h; Python 3.9 does not have all of them.
RWF_FLAGS = {"plain": 0, "dsync": 2, "sync": 4}
RWF_APPEND = 16
FICLONE = 0x40049409
BTRFS_IOC_START_SYNC, BTRFS_IOC_WAIT_SYNC = 0x80089418, 0x40089416  # include/uapi/linux/btrfs.h
WRITE_AND_WAIT = 7  # all flags of sync_file_range(2), which waits for the writes, but sends no flush
AT_SYMLINK_FOLLOW = 0x400
ON_PATHS: dict[str, Callable[..., None]] = {
    "truncate": os.truncate, "unlink": os.unlink, "rmdir": os.rmdir, "setxattr": os.setxattr,
    "removexattr": os.removexattr, "chmod": os.chmod, "chown": os.chown,
}  # fmt: skip
"""Operations that are a single system call on a path or a handle."""
ON_OPEN_FILES: dict[str, Callable[[int], None]] = {"fsync": os.fsync, "fdatasync": os.fdatasync}


class Operations:
    """A performer of logical operations below the directory ``root``."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.handles: dict[str, int] = {}

    def close(self) -> None:
        for handle in list(self.handles):
            self.do_close(handle)

    def at(self, path: str) -> str:
        return self.root + path

    def what(self, path: str) -> str | int:
        return self.at(path) if path.startswith("/") else self.handles[path]

    def perform(self, verb: str, *arguments: Any, data: bytes = b"") -> None:
        if call := ON_PATHS.get(verb):
            path, *others = arguments
            call(self.what(path), *others, *([data] if data else []))
        elif sync := ON_OPEN_FILES.get(verb):
            with self._opened(*arguments) as fd:
                sync(fd)
        else:
            getattr(self, "do_" + verb)(*arguments, **({"data": data} if data else {}))

    def do_create(self, path: str) -> None:
        os.close(os.open(self.at(path), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))

    def do_mknod(self, path: str, special: str) -> None:
        os.mknod(self.at(path), 0o644 | SPECIAL[special], DEVICE_NUMBER)

    def do_open(self, path: str, handle: str) -> None:
        is_directory = stat.S_ISDIR(os.lstat(self.at(path)).st_mode)
        self.handles[handle] = os.open(self.at(path), os.O_RDONLY if is_directory else os.O_RDWR)

    def do_tmpfile(self, path: str, handle: str) -> None:
        self.handles[handle] = os.open(self.at(path), os.O_TMPFILE | os.O_RDWR, 0o644)

    def do_close(self, handle: str) -> None:
        os.close(self.handles.pop(handle))

    def do_write(self, path: str, offset: int, how: str, append: bool, data: bytes) -> None:
        if how == "mmap":
            return self._write_mapped(path, offset, data)
        if not path.startswith("/"):
            return self._write_on(self.handles[path], offset, RWF_FLAGS[how], append, data)
        flags = os.O_WRONLY | os.O_CREAT | OPEN_FLAGS[how] | (os.O_APPEND if append else 0)
        buffer: Any = data
        if how == "direct":
            buffer = mmap.mmap(-1, len(data))  # O_DIRECT wants aligned memory
            buffer[:] = data
        with self._opened(path, flags) as fd:
            written = 0
            while written < len(data):
                piece = memoryview(buffer)[written:]
                written += os.write(fd, piece) if append else os.pwrite(fd, piece, offset + written)
        return None

    def _write_on(self, fd: int, offset: int, flags: int, append: bool, data: bytes) -> None:
        """Write ``data`` to a file that is open already. Therefore the ``flags`` are those of pwritev2(2), not of
        open(2)."""
        flags |= RWF_APPEND if append else 0
        written = 0
        while written < len(data):
            written += os.pwritev(fd, [memoryview(data)[written:]], offset + written, flags)

    def _write_mapped(self, path: str, offset: int, data: bytes) -> None:
        first = offset - offset % mmap.ALLOCATIONGRANULARITY
        with self._opened(path, os.O_RDWR) as fd, mmap.mmap(fd, offset - first + len(data), offset=first) as mapped:
            mapped[offset - first :] = data

    def do_copy_file_range(self, source: str, path: str, offset: int, length: int) -> None:
        with self._opened(source) as read, self._opened(path, os.O_WRONLY | os.O_CREAT) as fd:
            copied = 0
            while copied < length:
                piece = os.copy_file_range(read, fd, length - copied, offset + copied, offset + copied)
                if not piece:
                    raise OSError(0, "the source ends early")
                copied += piece

    def do_reflink(self, source: str, path: str) -> None:
        with self._opened(source) as read, self._opened(path, os.O_WRONLY | os.O_CREAT) as fd:
            fcntl.ioctl(fd, FICLONE, read)

    def do_fallocate(self, path: str, offset: int, length: int, mode: str = "grow") -> None:
        with self._opened(path, os.O_WRONLY) as fd:
            if mode == "grow":  # if the kernel cannot allocate the range, the C library writes zeros
                os.posix_fallocate(fd, offset, length)
            elif libc.fallocate(fd, FALLOCATE_MODES[mode], ctypes.c_int64(offset), ctypes.c_int64(length)):
                raise _refusal()

    def do_rename(self, old: str, new: str, replacing: str = "replace") -> None:
        if replacing == "replace":
            os.rename(self.at(old), self.at(new))
        elif libc.renameat2(AT_FDCWD, self.at(old).encode(), AT_FDCWD, self.at(new).encode(), RENAME_FLAGS[replacing]):
            raise _refusal()

    def do_link(self, old: str, new: str) -> None:
        if old.startswith("/"):
            return os.link(self.at(old), self.at(new))
        opened = f"/proc/self/fd/{self.handles[old]}".encode()
        if libc.linkat(AT_FDCWD, opened, AT_FDCWD, self.at(new).encode(), AT_SYMLINK_FOLLOW):
            raise _refusal()
        return None

    def do_symlink(self, target: str, path: str) -> None:
        os.symlink(target, self.at(path))

    def do_mkdir(self, path: str) -> None:
        os.mkdir(self.at(path), 0o755)

    def do_utimes(self, path: str, seconds: int) -> None:
        os.utime(self.what(path), (seconds, seconds))

    def do_sync_file_range(self, path: str, offset: int, length: int) -> None:
        with self._opened(path, os.O_WRONLY) as fd:
            _sync_file_range(fd, offset, length)

    def do_writeback(self, path: str) -> None:
        with self._opened(path, os.O_WRONLY) as fd:
            _sync_file_range(fd, 0, 0)  # a length of 0 is the rest of the file

    def do_writeback_metadata(self) -> None:
        """Write the dirty pages of the block device, unless the file system has none of its own: btrfs may have several
        disks, and caches its metadata elsewhere."""
        device = os.stat(self.root).st_dev
        with suppress(FileNotFoundError):
            name = os.path.basename(os.readlink(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}"))
            with opened(f"/dev/{name}", os.O_RDONLY) as fd:
                _sync_file_range(fd, 0, 0)

    def do_commit(self) -> None:
        """Commit as another program's fsync does. On btrfs, such an fsync commits no transaction, so ask for that."""
        with suppress(FileNotFoundError), opened(self.at(CLOCK_FILE), os.O_WRONLY) as fd:  # msdos has no such file
            os.utime(fd)
            transaction = bytearray(8)
            try:
                fcntl.ioctl(fd, BTRFS_IOC_START_SYNC, transaction)
            except OSError:
                os.fsync(fd)
            else:
                fcntl.ioctl(fd, BTRFS_IOC_WAIT_SYNC, transaction)

    def do_msync(self, path: str) -> None:
        with self._opened(path, os.O_RDWR) as fd, mmap.mmap(fd, 0) as mapped:
            mapped.flush()  # msync(2) with MS_SYNC

    def do_sync(self) -> None:
        os.sync()

    def do_syncfs(self) -> None:
        with self._opened("/") as fd:
            if libc.syncfs(fd):
                raise OSError(ctypes.get_errno(), "syncfs")

    def do_sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def do_acknowledge(self, _text: str) -> None:
        """Do nothing. The agent writes a mark before and after each operation. The marks around this operation show
        when a program would confirm its work so far to its user."""

    @contextmanager
    def _opened(self, path: str, flags: int = os.O_RDONLY) -> Iterator[int]:
        """Yield a file descriptor for ``path``. If it is a real path, open the file, and close it afterwards. If it is
        a handle, the descriptor is open already, and stays open."""
        if not path.startswith("/"):
            yield self.handles[path]
            return
        with opened(self.at(path), flags, 0o644) as fd:
            yield fd


def _sync_file_range(fd: int, offset: int, length: int) -> None:
    if libc.sync_file_range(fd, ctypes.c_int64(offset), ctypes.c_int64(length), WRITE_AND_WAIT):
        raise OSError(ctypes.get_errno(), "sync_file_range")


def _refusal() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


def perform_all(performer: Operations, operations: list[list[Any]], blob: bytes, mark: Callable[[str], None]) -> None:
    """Perform each operation ``[number, verb, arguments, data offset, data length]``, and call ``mark`` before and
    after it. Raises OperationRefused if the file system refuses an operation."""
    for number, verb, arguments, start, length in operations:
        mark(f"op {number} begin")
        try:
            performer.perform(verb, *arguments, data=blob[start : start + length])
        except OSError as error:
            words = " ".join(map(str, [verb, *arguments]))
            is_setup = number >= FIRST_OF_SETUP
            which = f"{number - FIRST_OF_SETUP + 1} of the initial tree" if is_setup else f"{number}"
            raise OperationRefused(f"operation {which} ({words}) failed: {error.strerror}") from None
        mark(f"op {number} end")
