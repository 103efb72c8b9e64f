"""The lock of a run directory: only one process at a time may write the directory."""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from bob.errors import StoreError

LOCK = "lock"  # the name of the locked file; it contains the number of the process that locked it last


@contextmanager
def writing(paths: Sequence[Path]) -> Iterator[None]:
    """Lock the run directories ``paths`` while the code in the with block runs. Raise StoreError if another process has
    locked one of them. The lock is flock(2), which the kernel releases when the process ends. On a file system without
    locks, do nothing."""
    with ExitStack() as locks:
        for path in paths:
            locks.enter_context(_locked(path))
        yield


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    try:
        handle = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}", hint="check its permissions") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 20, 0).decode(errors="replace").strip()
            by = f" (process {holder})" if holder.isdecimal() else ""
            raise StoreError(f"another bob{by} is writing {path}", hint="wait until it is done, or stop it") from None
        except OSError:  # a file system without locks
            yield
            return
        with suppress(OSError):  # the disk is full, and the file lacks the number
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(handle)
