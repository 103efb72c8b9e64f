"""Which system calls of a program had not begun when the disk was as a crash has left it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import inf

from bob.judge.looked import Looked
from bob.program.strace import SystemCall
from bob.protocol.arguments import STORE

SURELY = 0.25
"""By so much (seconds) a call begins later than a write, to be later for sure: strace and the kernel have each a clock
of its own."""


class Unmade:
    """The ``calls`` that had not begun when the last write that is on the disk was sent: no disk has anything of them.

    ``offset`` leads from the clock of the calls to that of the recordings (seconds; None: not known, then none is
    unmade). When something was stored through a mapping strace does not know.
    """

    def __init__(self, looked: Sequence[Looked], calls: Sequence[SystemCall], offset: float | None) -> None:
        self._looked, self._calls, self._offset = looked, calls, offset
        self._last: dict[int, dict[int, float]] = {}
        self._later = lru_cache(maxsize=1024)(self._begun_after)

    def of(self, place: int, outcome: int) -> frozenset[int]:
        """Those of an outcome of the window with the number ``place``: of several crash states with it, by the one of
        the earliest moment."""
        if self._offset is None:
            return frozenset()
        if place not in self._last:
            self._last[place] = last_sent(self._looked[place])
        last = self._last[place].get(outcome)
        return frozenset() if last is None else self._later(last - self._offset + SURELY)

    def _begun_after(self, seconds: float) -> frozenset[int]:
        return frozenset(
            number for number, call in enumerate(self._calls) if call.seconds > seconds and call.name != STORE
        )


def last_sent(looked: Looked) -> dict[int, float]:
    """By outcome when the last write was sent that is on the disk: seconds of the guest's clock. Of several crash
    states with one outcome, the earliest counts."""
    plan = looked.case.plan
    sent = [write.submitted.seconds for write in plan.trace.writes]
    durable = [max((sent[index] for index in point.durable), default=-inf) for point in plan.points]
    found: dict[int, float] = {}
    for seen in looked.observed.states:
        if seen.outcome is not None:
            state = seen.state
            there = [*state.kept, *(index for index, _ranges in state.torn)]
            last = max([durable[state.point], *(sent[index] for index in there)])
            found[seen.outcome] = min(last, found.get(seen.outcome, last))
    return found
