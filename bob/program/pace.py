"""The pace of a program's workload while it is recorded, and its neighbours."""

from __future__ import annotations

from enum import StrEnum


class Pace(StrEnum):
    """A pace. It decides what the kernel has made durable by itself when the next call comes. ext4 commits the names of
    calls that follow each other at once together, so a crash finds all of them or none.

    UNDISTURBED: as fast as the machine is, with nothing else to do. SLOW: with :meth:`delay` after each call that
    changes or syncs something, so the kernel's timers come in between. SLOWER: the delay is so long that the file
    system commits by itself after each call. BUSY: a short delay, in which another process syncs a file of its own.
    """

    UNDISTURBED = "undisturbed"
    SLOW = "slow"
    SLOWER = "slower"
    BUSY = "busy"

    def delay(self, commit: float) -> float:
        """Return the seconds of the guest's clock after each call, if the file system commits by itself after at most
        ``commit`` seconds. The shortest of the kernel's timers are 5 s (``JBD2_DEFAULT_MAX_COMMIT_AGE``, fs/jbd2;
        ``dirty_writeback_interval``, mm/page-writeback.c). Data is written when it is 30 to 35 s old."""
        return {Pace.UNDISTURBED: 0.0, Pace.SLOW: 7.0, Pace.SLOWER: commit + 2.0, Pace.BUSY: 0.5}[self]

    def patience(self, commit: float) -> float:
        """Return the factor by which a script may take longer, as it waits after each call."""
        return 1.0 if self is Pace.UNDISTURBED else max(100.0, 15 * self.delay(commit))

    @staticmethod
    def on(commit: float) -> tuple[Pace, ...]:
        """Return the paces that differ on a file system that commits by itself every ``commit`` seconds."""
        is_slow = Pace.SLOWER.delay(commit) <= Pace.SLOW.delay(commit)
        return tuple(pace for pace in Pace if not (is_slow and pace is Pace.SLOWER))

    @property
    def has_neighbour(self) -> bool:
        """Whether another process syncs a file of its own."""
        return self is Pace.BUSY

    def of(self, configuration: str) -> str:
        """Return the name of a configuration's answer at this pace."""
        return configuration if self is Pace.UNDISTURBED else f"{configuration}-{self.value}"
