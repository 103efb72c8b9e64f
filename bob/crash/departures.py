"""Departures of a state from a clean prefix: writes that are extra, missing, or torn. A *clean prefix* has the first k
pending writes in submission order and no others, as on a disk without a cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from bob.crash.drafts import settled, view
from bob.crash.legal import GrowthPoint
from bob.crash.state import CrashState

FARTHEST = 2  # writes: the largest departure whose states bob lists


def distance(pending: Sequence[int], state: CrashState) -> int:
    """Return by how many writes of ``pending`` (in submission order) ``state`` departs from the nearest prefix."""
    kept, torn = set(state.kept), dict(state.torn)
    # With k = 0 each write that is there is one too many.
    best = here = sum(index in kept or index in torn for index in pending)
    for index in pending:
        if index in kept:
            here -= 1
        elif index not in torn:
            here += 1
        best = min(best, here)
    return best


def nearest(points: Sequence[GrowthPoint], number: int, departure: int) -> Iterator[CrashState]:
    """Yield the states of whole writes at point ``number`` that depart by ``departure`` writes from a clean prefix.
    ``departure`` is 0 to ``FARTHEST``. The longest prefix comes first; states may recur."""
    views = [view(at, point) for at, point in enumerate(points)]
    writes = views[number].writes
    for length in range(len(writes), -1, -1):
        prefix = views[number].durable | sum(1 << index for index in writes[:length])
        for changed in combinations(writes, departure):
            yield settled(views, prefix ^ sum(1 << index for index in changed), (), number)
