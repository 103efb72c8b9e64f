"""At which pace a program's workload runs while it is recorded, and beside what."""

from __future__ import annotations

from enum import StrEnum


class Pace(StrEnum):
    """A pace. What the kernel has made durable by itself when the next call comes hangs on it: of calls that follow
    each other at once, ext4 commits all names together, and a crash finds all of them or none.

    UNDISTURBED: as fast as the machine is, with nothing else to do. SLOW: with :meth:`delay` after each call that
    changes or syncs something, so that the file system's timer comes in between. BUSY: with a short one, in which
    another process syncs a file of its own.
    """

    UNDISTURBED = "undisturbed"
    SLOW = "slow"
    BUSY = "busy"

    def delay(self, commit: float) -> float:
        """Seconds of the guest's clock after each call on a file system that commits by itself every ``commit`` seconds
        at the latest. Slow, it is a little more, so that a commit comes after each call; data is written when it is 30
        to 35 s old (``dirty_expire_interval``, ``dirty_writeback_interval``, mm/page-writeback.c)."""
        return {Pace.UNDISTURBED: 0.0, Pace.SLOW: commit + 2.0, Pace.BUSY: 0.5}[self]

    def patience(self, commit: float) -> float:
        """By this factor a script may take longer, where it waits as :meth:`delay` says."""
        return 1.0 if self is Pace.UNDISTURBED else max(100.0, 15 * self.delay(commit))

    @property
    def has_neighbour(self) -> bool:
        """Whether another process syncs a file of its own."""
        return self is Pace.BUSY

    def of(self, configuration: str) -> str:
        """What the answer of a configuration at this pace is called."""
        return configuration if self is Pace.UNDISTURBED else f"{configuration}-{self.value}"
