"""What becomes of work whose guest was lost: another guest begins it anew, once. And of work at which bob itself
breaks: it is told and kept, and the others go on.

If the second guest is lost as well, the work is given up: a run marks it as unknown and goes on with the rest, a
command that shows or shrinks witnesses ends with the loss. The user is told of each new attempt.
"""

from __future__ import annotations

import errno
import traceback
from collections.abc import Hashable
from typing import TypeVar

from bob.errors import BobError, MalformedError, RecordingError
from bob.progress import Progress

T = TypeVar("T")
R = TypeVar("R")


class SecondChances:
    """Remembers which work (by any key) has lost a guest, and how. Workers of several threads may share one, as long as
    each piece of work has one worker at a time."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._losses: dict[Hashable, str] = {}

    def has(self, work: Hashable, title: str, loss: str) -> bool:
        """Whether another guest is to begin ``work`` anew, now that there is a ``loss``; then the user is told."""
        if work in self._losses:
            return False
        self._losses[work] = loss
        self._progress.step(f"{title}: {loss}; another guest begins it anew")
        return True

    def loss(self, work: Hashable) -> str | None:
        """How ``work`` lost its first guest; None where it did not."""
        return self._losses.get(work)


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
