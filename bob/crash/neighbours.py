"""The *neighbours* of a crash state. A neighbour differs from the state in one pending write: it lacks that write, or
has it in addition. Suppose that the state breaks a claim (what each crash state should satisfy), and the neighbour does
not. Then the violation depends on that write."""

from collections.abc import Callable, Iterator, Sequence

from bob.crash.departures import departures
from bob.crash.drafts import mask, settled, view
from bob.crash.legal import GrowthPoint
from bob.crash.state import CrashState

MOST = 40  # a larger group gets no neighbours, because so many causes would not explain the violation


class Neighbours:
    """A finder of the neighbours of a crash state. ``points`` are the growth points of the trace, the times when the
    set of possible states changes."""

    def __init__(self, points: Sequence[GrowthPoint]) -> None:
        self._points = points
        self._views = [view(number, point) for number, point in enumerate(points)]

    def groups(self, state: CrashState) -> Iterator[list[tuple[int, CrashState]]]:
        """Yield two groups of neighbours of ``state``. Each neighbour comes with the index of the write that makes the
        difference. A *clean prefix* is a state with the first k pending writes and no others. In the first group, the
        write is one that makes ``state`` differ from the nearest clean prefixes (:mod:`bob.crash.departures`). In the
        second group, it is any other pending write. If a group has more than ``MOST`` writes, yield an empty group
        instead."""
        pending = self._points[state.point].pending
        medium = self._views[state.point].durable | mask(state.kept)
        departing = departures(pending, state)
        depart = set(departing)
        for group in (departing, [index for index in pending if index not in depart]):
            few = group if len(group) <= MOST else []
            yield [(index, other) for index in few for other in self._without(state, medium, index)]

    def _without(self, state: CrashState, medium: int, index: int) -> Iterator[CrashState]:
        """Yield the neighbours of ``state`` that differ from it in write ``index``. ``medium`` is a bit mask of the
        writes that ``state`` has as a whole, durable writes included. If ``state`` lost the write, the neighbour keeps
        it. If ``state`` kept the write, the neighbour lost it. If the write is torn, there are two neighbours: the
        first keeps it, and the second lost it."""
        torn = tuple(entry for entry in state.torn if entry[0] != index)
        bit = 1 << index
        if not medium & bit:
            yield settled(self._views, medium | bit, torn, state.point)
        if medium & bit or len(torn) < len(state.torn):
            yield settled(self._views, medium & ~bit, torn, state.point)


def causes(points: Sequence[GrowthPoint], state: CrashState, is_fine: Callable[[CrashState], bool]) -> tuple[int, ...]:
    """Return the writes (indexes) that cause a violation in ``state``. A write is a cause if ``is_fine`` returns True
    for a state that differs from ``state`` in this write alone. First try the writes that make ``state`` differ from
    the nearest clean prefixes (:mod:`bob.crash.departures`). Try other writes only if none of these is a cause."""
    for group in Neighbours(points).groups(state):
        if found := tuple(dict.fromkeys(index for index, other in group if is_fine(other))):
            return found
    return ()
