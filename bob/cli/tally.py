"""Counts of a probe that is under way: how far it is, how fast, and how long it will take."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from bob.progress import Earlier
from bob.report.counts import duration

_WINDOW = 60.0
"""Seconds over which the speed is measured: it changes as guests start and as workloads do."""
_FEW, _ENOUGH, _MOST = 0.05, 0.1, 0.3
"""Shares of the work. Of a smaller one than the first bob cannot say how long all takes. After the second, the pace of
this run counts, and no longer that of an earlier one. After the third, counted from when all was recorded, all that
counts is how long observing takes. bench/eta.py shows what comes of it."""
_SOME = 10
"""After so many tries one can say how long all that are planned would take."""


@dataclass(frozen=True, slots=True)
class _Moment:
    """What was done by a time (seconds): workloads that were observed, with parts of those that are under way."""

    at: float
    observed: float


class Tally:
    """What a Progress is told, added up. Not thread-safe: its owner is.

    What is left is counted in workloads. They are recorded first, by half of the guests, while the others observe what
    is recorded; when all are recorded, all observe. A *try* is a crash state that is looked at by itself; what is seen
    then tells of many others, so there are fewer tries than crash states. It is no good measure: most workloads need
    fewer than they may have.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.workloads = self.recorded = self.done = 0
        self.states = self.observed = 0
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque()
        self._guests = 1
        self._earlier: Earlier | None = None
        self._began: float | None = None
        self._first: float | None = None
        self._last: float | None = None
        self._all_recorded: _Moment | None = None
        self._under_way: dict[str, int] = {}
        self._used = 0

    def expect(self, guests: int, earlier: Earlier | None) -> None:
        """So many guests work side by side; and what the same took ``earlier``, where that is known."""
        self._guests, self._earlier = guests, earlier

    def plan(self, workloads: int, states: int) -> None:
        """So many more (or fewer) workloads, and tries at the most, are to come."""
        if self._began is None:
            self._began = self._clock()
        if workloads > 0 and self.recorded:
            self._all_recorded = None
        self.workloads += workloads
        self.states += states

    def record(self) -> None:
        """One more workload is recorded."""
        self.recorded += 1
        self._last = self._clock()
        if self._first is None:
            self._first = self._last
        if self.recorded >= self.workloads:
            self._all_recorded = _Moment(self._last, self._observed)

    def observe(self, workload: str, states: int) -> None:
        """So many more tries of a workload are done."""
        self.observed += states
        self._under_way[workload] = self._under_way.get(workload, 0) + states
        now = self._clock()
        self._seen.append((now, self.observed))
        while len(self._seen) > 2 and self._seen[1][0] < now - _WINDOW:
            self._seen.popleft()

    def finish(self, workload: str, unused: int) -> None:
        """One more workload is done, with so many states less than were planned for it."""
        self.done += 1
        self._used += self._under_way.pop(workload, 0)
        self.states = max(self.states - unused, self.observed)

    @property
    def speed(self) -> float:
        """Tries per second, of late; the guests' start is not part of it."""
        if not self._seen:
            return 0.0
        (began, before), now = self._seen[0], self._clock()
        return max(0.0, (self.observed - before) / (now - began)) if now > began else 0.0

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes; None if there is none, or it cannot be said yet."""
        left = self.workloads - self._observed
        if self._began is None or left <= 0 or self.done >= self.workloads:
            return None
        now = self._clock()
        if self._earlier is not None and self._earlier.in_turns:
            return self._by_earlier(now)
        before = self._all_recorded
        if before is None and not self.recorded and self._observed >= self._few:  # there was nothing to record
            before = _Moment(self._began, 0.0)
        if before is None:
            return self._by_earlier(now) or self._while_recording(now)
        done = self._share(self._observed)
        since = done - self._share(before.observed)
        weight = min(1.0, since / _MOST)
        measured = (1 - done) * (now - before.at) / since if weight > 0 else 0.0
        if weight == 1:
            return measured
        guess = self._by_earlier(now) or self._while_recording(now)
        if guess is None:
            return measured if self._observed - before.observed >= self._few else None
        return (1 - weight) * guess + weight * measured

    @property
    def most_seconds_left(self) -> float | None:
        """How long the rest takes at the most: if each try that is planned is made, and takes as long as those of the
        last minute. None where too few were made, or a recording may still come between."""
        now = self._clock()
        if not self._seen or self.observed < _SOME or (self._last is not None and now - self._last < _WINDOW):
            return None
        return max(0, self.states - self.observed) * (now - self._seen[0][0]) / (self.observed - self._seen[0][1] or 1)

    @property
    def _observed(self) -> float:
        """How many workloads are observed, with parts of those that are under way."""
        usual = self._used / self.done if self.done else self.states / max(1, self.workloads)
        return self.done + sum(min(0.9, states / max(1.0, usual)) for states in self._under_way.values())

    def _share(self, observed: float) -> float:
        """Which share of all observing so many observed workloads are."""
        return self._earlier.observed(observed, self.workloads) if self._earlier else observed / self.workloads

    @property
    def _few(self) -> float:
        """While fewer workloads are observed, bob cannot say how long all take."""
        return max(1.0, _FEW * self.workloads)

    def _by_earlier(self, now: float) -> float | None:
        """What is left as an earlier run had it, at the pace of this one."""
        earlier = self._earlier
        if earlier is None or self._began is None:
            return None
        share = earlier.recording
        done = share * min(1.0, self.recorded / self.workloads) + (1 - share) * self._share(self._observed)
        if earlier.seconds is None:  # of short work the guests' start is a large part, and comes but once
            began = self._began if self._first is None else self._first
            return (1 - done) * (now - began) / done if done >= _FEW else None
        weight = min(1.0, done / _ENOUGH)
        at_this_pace = (now - self._began) / done if done else 0.0
        return (1 - done) * ((1 - weight) * earlier.seconds + weight * at_this_pace)

    def _while_recording(self, now: float) -> float | None:
        """What is left by how long recording and observing took so far, each by its own guests; None where too little
        was observed."""
        if self._began is None or self._first is None or self._last is None or self._observed < self._few:
            return None
        if self._guests == 1:  # it has observed nothing yet
            return None
        recorders = max(1, self._guests // 2)
        observers = max(1, self._guests - recorders)
        a_recording = (self._last - self._began) / self.recorded
        an_observation = observers * (now - self._first) / self._observed
        still = max(0, self.workloads - self.recorded) * a_recording
        left = self.workloads - self._observed - still * observers / an_observation
        return still + max(0.0, left) * an_observation / self._guests

    def line(self) -> str:
        """All of it in one line."""
        parts = [f"{self.observed:,}/{self.states:,} tries"]
        if self.speed:
            parts.append(f"{self.speed:.0f}/s" if self.speed >= 10 else f"{self.speed:.1f}/s")
        parts.append(f"{self.done}/{self.workloads} workloads done ({self.recorded} recorded)")
        left, most = self.seconds_left, self.most_seconds_left
        if left is not None:
            parts.append(f"{duration(left)} left")
        elif most and not self.done:
            parts.append(f"{duration(most)} left at most")
        return ", ".join(parts)
