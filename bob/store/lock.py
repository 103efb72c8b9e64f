"""A run directory is written by one process at a time: who writes holds a lock, which ends with the process."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from bob.errors import StoreError

LOCK = "lock"
"""The file in a run directory that is locked; it has the number of the process that locked it last."""


@contextmanager
def writing(paths: Sequence[Path]) -> Iterator[None]:
    """Locks the run directories ``paths``, for as long as the block lasts. Raises StoreError if another bob writes one.

    The kernel lets go of a lock (flock(2)) when the process that holds it is gone, however it ended: the file itself
    means nothing. Where the file system has no locks, nothing is locked.
    """
    with ExitStack() as locks:
        for path in paths:
            locks.enter_context(_locked(path))
        yield


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    try:
        handle = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}", hint="is it yours?") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 20, 0).decode(errors="replace").strip()
            by = f" (process {holder})" if holder.isdecimal() else ""
            raise StoreError(f"another bob{by} is writing {path}", hint="wait until it is done, or end it") from None
        except OSError:  # a file system without locks
            yield
            return
        with suppress(OSError):  # a full disk: then it has no name
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(handle)
