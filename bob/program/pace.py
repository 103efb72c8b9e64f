"""At which pace a program's workload runs while it is recorded, and beside what."""

from __future__ import annotations

from enum import StrEnum


class Pace(StrEnum):
    """A pace. What the kernel has made durable by itself when the next call comes hangs on it: of calls that follow
    each other at once, ext4 commits all names together, and a crash finds all of them or none.

    UNDISTURBED: as fast as the machine is, with nothing else to do. SLOW: with :attr:`delay` after each call that
    changes or syncs something, so that the kernel's timers come in between. BUSY: with a short one, in which another
    process syncs a file of its own.
    """

    UNDISTURBED = "undisturbed"
    SLOW = "slow"
    BUSY = "busy"

    @property
    def delay(self) -> float:
        """Seconds of the guest's clock after each call. Five are the shortest of the kernel's timers
        (``JBD2_DEFAULT_MAX_COMMIT_AGE``, fs/jbd2; ``dirty_writeback_interval``, mm/page-writeback.c)."""
        return {Pace.UNDISTURBED: 0.0, Pace.SLOW: 7.0, Pace.BUSY: 0.5}[self]

    @property
    def patience(self) -> float:
        """By this factor a script may take longer."""
        return 1.0 if self is Pace.UNDISTURBED else 100.0

    @property
    def has_neighbour(self) -> bool:
        """Whether another process syncs a file of its own."""
        return self is Pace.BUSY

    def of(self, configuration: str) -> str:
        """What the answer of a configuration at this pace is called."""
        return configuration if self is Pace.UNDISTURBED else f"{configuration}-{self.value}"
