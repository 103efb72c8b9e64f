"""Look for faults of layers in a crash state that mounts. A layer's device must read the same twice, and must keep what
is written and synced. The layer's declaration may have further checks."""

from __future__ import annotations

import errno
import mmap
import os
from contextlib import suppress

from bob.agent.inside.devices import SECTOR, opened, sectors_of

LAYER = "layer"
FORWARD, BACKWARD = 1 << 20, 1 << 16
"""The bytes of a read in the first and in the second pass. Drivers choose a mirror by the place and the length of a
read, so the second pass has other lengths and another order."""
WRITTEN = 1 << 16
NAME = "bobwrite"  # short enough for each file system


def read_twice(path: str) -> str | None:
    """Read the whole device twice, past the page cache. Return a sentence about the first piece that differs, or None.
    A piece does not differ if it can be read neither time: a layer with checksums refuses a block that a crash tore."""
    size = sectors_of(path) * SECTOR
    before, now = mmap.mmap(-1, FORWARD), mmap.mmap(-1, BACKWARD)
    with opened(path, os.O_RDONLY | os.O_DIRECT) as fd:
        for start in range(0, size, FORWARD):
            length = min(FORWARD, size - start)
            is_read = not _read(fd, before, start)
            for at in reversed(range(start, start + length, BACKWARD)):
                count = min(BACKWARD, size - at)
                known = before[at - start : at - start + count]
                if not is_read:  # some piece of it cannot be read; others can
                    refused = _read(fd, now, at)
                    known = b"" if refused else now[:count]
                again = b"" if _read(fd, now, at) else now[:count]
                if known != again:
                    return f"its device reads differently the second time, in {count >> 10} KiB from byte {at}"
    return None


def _read(fd: int, buffer: mmap.mmap, at: int) -> int:
    """Fill ``buffer`` from byte ``at`` of a device on. Return the errno if the device cannot be read there, else 0."""
    try:
        os.preadv(fd, [buffer], at)
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def write_and_read(folder: str) -> str | None:
    """Write a new file into ``folder``, sync it, and read it from the device. Return what is wrong, or None. A full
    file system is not wrong. Remove the file."""
    path, data = f"{folder}/{NAME}", os.urandom(WRITTEN)
    try:
        with opened(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC) as fd:
            written = os.write(fd, data)
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            if os.pread(fd, WRITTEN, 0) != data[:written]:
                return "what is written and synced reads differently"
    except OSError as error:
        return None if error.errno == errno.ENOSPC else f"a new file cannot be written and synced: {error.strerror}"
    finally:
        with suppress(OSError):
            os.unlink(path)
    return None
