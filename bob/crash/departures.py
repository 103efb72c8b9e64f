"""The departures of a state from a clean prefix. A *clean prefix* has the first k pending writes in submission order,
and no other pending writes, as on a disk without a cache. A departure is a write that the state has but the prefix
lacks, or the reverse, or a torn write. A *growth point* is a time when the set of possible states changes."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from bob.crash.drafts import settled, view
from bob.crash.legal import GrowthPoint
from bob.crash.state import CrashState

FARTHEST = 2  # writes in the largest departure whose states bob lists


def distance(pending: Sequence[int], state: CrashState) -> int:
    """Return how many writes make ``state`` differ from the nearest clean prefix of ``pending`` (in submission
    order)."""
    return _nearest_prefixes(pending, state)[0]


def departures(pending: Sequence[int], state: CrashState) -> list[int]:
    """Return the writes (indexes, ascending) that make ``state`` differ from its nearest clean prefix. If several
    prefixes are equally near, return the departures from all of them."""
    _away, shortest, longest = _nearest_prefixes(pending, state)
    kept, torn = set(state.kept), dict(state.torn)
    return [
        index
        for place, index in enumerate(pending)
        if index in torn or (place >= shortest if index in kept else place < longest)
    ]


def _nearest_prefixes(pending: Sequence[int], state: CrashState) -> tuple[int, int, int]:
    """Return how many writes make the state differ from its nearest clean prefixes. Then return the lengths of the
    shortest and the longest of these prefixes."""
    kept, torn = set(state.kept), dict(state.torn)
    # The prefix of length 0 is empty, so each write of the state is one too many.
    away = here = sum(index in kept or index in torn for index in pending)
    shortest = longest = 0
    for length, index in enumerate(pending, start=1):
        here += -1 if index in kept else 0 if index in torn else 1
        if here < away:
            away, shortest, longest = here, length, length
        elif here == away:
            longest = length
    return away, shortest, longest


def nearest(points: Sequence[GrowthPoint], number: int, departure: int) -> Iterator[CrashState]:
    """Yield states of whole writes at growth point ``number``: for each clean prefix, the states that differ from it by
    ``departure`` writes (0 to ``FARTHEST``). The longest prefix comes first, and the empty one last. A state may come
    twice."""
    views = [view(at, point) for at, point in enumerate(points)]
    writes = views[number].writes
    for length in range(len(writes), -1, -1):
        prefix = views[number].durable | sum(1 << index for index in writes[:length])
        for changed in combinations(writes, departure):
            yield settled(views, prefix ^ sum(1 << index for index in changed), (), number)
