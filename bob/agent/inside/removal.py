"""Remove everything in a file system, or return why that is impossible. The process changes into each directory, so
that no path is too long."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable
from contextlib import suppress

from bob.agent.inside.devices import opened
from bob.agent.inside.look import HIDDEN_NAMES
from bob.agent.inside.statx import FS_IOC_GETFLAGS

DEEPEST = 100_000  # directories; a deeper tree contains itself
FS_IOC_SETFLAGS = 0x40086602
KEEPING = 0x10 | 0x20  # flags that keep a file from being removed: immutable, and append-only (chattr(1))


def remove_all(root: str) -> str | None:
    """Remove everything below ``root``, except names of the file system's own such as lost+found. Return why something
    could not be removed, or None."""
    outside = os.open(".", os.O_PATH | os.O_DIRECTORY)
    try:
        os.chdir(root)
        return _remove_below([name for name in _names() if name not in HIDDEN_NAMES])
    except OSError as error:
        return f"/: {error.strerror}"
    finally:
        os.fchdir(outside)
        os.close(outside)


def _remove_below(names: list[str]) -> str | None:
    above: list[str] = []
    left = [names]
    while left[-1] or above:
        name = left[-1].pop() if left[-1] else ""
        path = [*above, name] if name else above
        try:
            if not name:
                os.chdir("..")
                _remove(os.rmdir, above[-1])
                del above[-1], left[-1]
            elif (inside := _enter(name)) is None:
                _remove(os.unlink, name)
            elif len(path) > DEEPEST:
                return f"/{'/'.join(path)}: directories without an end"
            else:
                above.append(name)
                left.append(inside)
        except OSError as error:
            return f"/{'/'.join(path)}: {error.strerror}"
    return None


def _enter(name: str) -> list[str] | None:
    if not stat.S_ISDIR(os.lstat(name).st_mode):
        return None
    os.chdir(name)
    return _names()


def _names() -> list[str]:
    return sorted(os.listdir("."), reverse=True)


def _remove(call: Callable[[str], None], name: str) -> None:
    try:
        call(name)
    except PermissionError:
        for path in (".", name):
            with suppress(OSError):
                _release(path)
        call(name)


def _release(path: str) -> None:
    if stat.S_IFMT(os.lstat(path).st_mode) not in (stat.S_IFREG, stat.S_IFDIR):
        return
    flags = bytearray(8)
    with opened(path, os.O_RDONLY) as one:
        fcntl.ioctl(one, FS_IOC_GETFLAGS, flags)
        kept = int.from_bytes(flags, "little") & ~KEEPING
        fcntl.ioctl(one, FS_IOC_SETFLAGS, kept.to_bytes(8, "little"))
