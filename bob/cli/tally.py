"""Counts of a probe that is under way: how far it is, how fast, and how long it will take."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from bob.report.counts import duration

_WINDOW = 60.0
"""Seconds over which the speed is measured: it changes as guests start and as workloads do."""


class Tally:
    """What a Progress is told, added up. Not thread-safe: its owner is."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.workloads = self.recorded = self.done = 0
        self.states = self.observed = 0
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque()

    def plan(self, workloads: int, states: int) -> None:
        """So many more (or fewer) workloads, and crash states at the most, are to come."""
        self.workloads += workloads
        self.states += states

    def record(self) -> None:
        """One more workload is recorded."""
        self.recorded += 1

    def observe(self, states: int) -> None:
        """So many more crash states are done."""
        self.observed += states
        now = self._clock()
        self._seen.append((now, self.observed))
        while len(self._seen) > 2 and self._seen[1][0] < now - _WINDOW:
            self._seen.popleft()

    def finish(self, unused: int) -> None:
        """One more workload is done, with so many states less than were planned for it."""
        self.done += 1
        self.states = max(self.states - unused, self.observed)

    @property
    def speed(self) -> float:
        """Crash states per second, of late; the guests' start is not part of it."""
        if not self._seen:
            return 0.0
        (began, before), now = self._seen[0], self._clock()
        return max(0.0, (self.observed - before) / (now - began)) if now > began else 0.0

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at this speed; None if there is none, or it cannot be said yet."""
        left, speed = self.states - self.observed, self.speed
        return left / speed if left and speed else None

    def line(self) -> str:
        """All of it in one line."""
        parts = [f"{self.observed:,}/{self.states:,} crash states"]
        if self.speed:
            parts.append(f"{self.speed:.0f}/s" if self.speed >= 10 else f"{self.speed:.1f}/s")
        parts.append(f"{self.done}/{self.workloads} workloads done ({self.recorded} recorded)")
        if self.seconds_left is not None:
            parts.append(f"{duration(self.seconds_left)} left")
        return ", ".join(parts)
