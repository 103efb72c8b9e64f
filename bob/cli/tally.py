"""The counts of a running *probe* (an experiment that crashes a file system in a guest): progress, speed, and the time
left."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from bob.progress import Earlier
from bob.text import duration

_WINDOW = 60.0  # seconds over which the speed is measured, since it changes with guests and workloads
# Two shares of the work. When the first is done, the speed of this run counts for the time left. When the second is
# done, earlier runs no longer count (bench/eta.py).
_FEW, _ENOUGH = 0.05, 0.1
_SOME = 10  # after so many tries, their speed gives an estimate


@dataclass(frozen=True, slots=True)
class _TallySample:
    """The work done by the time ``at`` (seconds). ``workloads`` counts the observed workloads; an unfinished workload
    counts as a fraction. ``tries`` counts the crash states that guests have looked at."""

    at: float
    workloads: float = 0.0
    tries: int = 0


class Tally:
    """The counts of a running probe, for the display. It is not thread-safe.

    Progress is measured in workloads. Some guests (virtual machines) record workloads. In each *try*, another guest
    looks at one crash state of a recorded workload. Tries do not measure progress well, since most workloads need fewer
    tries than planned."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.workloads = self.recorded = self.done = 0
        self.states = self.observed = 0
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque()
        self._earlier: Earlier | None = None
        self._first: _TallySample | None = None
        self._last: _TallySample | None = None
        self._under_way: dict[str, int] = {}
        self._used = 0

    def expect(self, earlier: Earlier | None) -> None:
        """Remember ``earlier``, a run that did the same work, for the estimate of the time left. None means that bob
        knows no such run."""
        self._earlier = earlier

    def plan(self, workloads: int, states: int) -> None:
        """Add planned workloads. ``states`` is the largest number of tries that they may need. If both numbers are
        negative, remove planned workloads."""
        if self._first is None:
            self._first = self._last = _TallySample(self._clock())
        self.workloads += workloads
        self.states += states

    def record(self) -> None:
        self._last = _TallySample(self._clock(), self._observed, self.observed)
        if not self.recorded:  # leaves out the start of the guests, which happens only once
            self._first = self._last
        self.recorded += 1

    def observe(self, workload: str, states: int) -> None:
        self.observed += states
        self._under_way[workload] = self._under_way.get(workload, 0) + states
        now = self._clock()
        self._seen.append((now, self.observed))
        while len(self._seen) > 2 and self._seen[1][0] < now - _WINDOW:
            self._seen.popleft()

    def finish(self, workload: str, unused: int) -> None:
        """Count a workload as done. ``unused`` is the number of tries that were planned for it, but not needed."""
        self.done += 1
        self._used += self._under_way.pop(workload, 0)
        self.states = max(self.states - unused, self.observed)

    @property
    def speed(self) -> float:
        """Recent tries per second. The time that the guests need to start does not count."""
        if not self._seen:
            return 0.0
        (began, before), now = self._seen[0], self._clock()
        return max(0.0, (self.observed - before) / (now - began)) if now > began else 0.0

    @property
    def seconds_left(self) -> float | None:
        """The estimated seconds until all work is done (None: it is done, or bob cannot estimate the time). It
        comes from the time that an earlier run took, if there was one. Otherwise the estimate is an upper bound
        until the first workload is done."""
        if self._first is None or self._last is None or self.done >= self.workloads:
            return None
        earlier, observed, now = self._earlier, self._observed, self._clock()
        if earlier is None:  # the time for recordings is not known, so only the speed since the last recording counts
            if 0 < self.recorded < self.workloads and now - self._last.at < _WINDOW:
                return None
            few = max(1.0, _FEW * self.workloads)
            some = not self.done and self.observed - self._last.tries >= _SOME
            if observed - self._last.workloads < few and not some:
                return None
            return (self.workloads - observed) * (now - self._last.at) / (observed - self._last.workloads)
        recorded = earlier.recording * min(1.0, self.recorded / self.workloads)
        done = recorded + (1 - earlier.recording) * earlier.observed(observed, self.workloads)
        own = (1 - done) * (now - self._first.at) / done if done else 0.0
        if earlier.seconds is None:
            return own if done >= _FEW else None
        weight = min(1.0, done / _ENOUGH)
        return (1 - weight) * (1 - done) * earlier.seconds + weight * own

    @property
    def _observed(self) -> float:
        usual = self._used / self.done if self.done else self.states / max(1, self.workloads)
        return self.done + sum(min(0.9, states / max(1.0, usual)) for states in self._under_way.values())

    def line(self) -> str:
        if not self.workloads:
            return f"{self.recorded} recorded"
        parts = [f"{self.observed:,}/{self.states:,} states"]
        if self.speed:
            parts.append(f"{self.speed:.0f}/s" if self.speed >= 10 else f"{self.speed:.1f}/s")
        parts.append(f"{self.done}/{self.workloads} workloads done ({self.recorded} recorded)")
        if (left := self.seconds_left) is not None:
            parts.append(f"{'at most ' if self._earlier is None and not self.done else ''}{duration(left)} left")
        return ", ".join(parts)
