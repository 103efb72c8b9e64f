"""What to do where bob itself breaks at one workload: it is told and kept, and the others go on."""

from __future__ import annotations

import errno
import traceback

from bob.errors import BobError, MalformedError, RecordingError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}


def ends_the_run(error: Exception) -> bool:
    """Whether what went wrong with one workload would go wrong with all: it is about the machine or the run directory,
    or what the configuration was refused with."""
    if isinstance(error, OSError):
        return error.errno in _FULL
    return isinstance(error, BobError) and not isinstance(error, RecordingError | MalformedError)


def broke(error: Exception, done: str) -> tuple[str, str]:
    """What to say where bob itself broke, by ``error``, when a workload was ``done``: in a line, and its traceback."""
    said = " ".join(f"{type(error).__name__}: {error}".split())
    return f"bob broke while it {done} this workload: {said}", "".join(traceback.format_exception(error))
