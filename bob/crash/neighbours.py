"""The crash states next to one: the same but for one pending write, which is taken back.

Which write a violation hangs on is seen there: where one write less, or one more, does no harm, that write is a cause.
What is asked first are the writes by which the state departs from a clean prefix (:mod:`bob.crash.departures`): a state
that has all that it should have, and nothing too early, needs no explanation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bob.crash.drafts import mask, settled, view
from bob.crash.legal import GrowthPoint
from bob.crash.state import CrashState

MOST = 40
"""Of more writes than this in a group nothing is asked: no sentence would be shorter for it."""


class Neighbours:
    """The neighbours of legal states at the growth points ``points``."""

    def __init__(self, points: Sequence[GrowthPoint]) -> None:
        self._points = points
        self._views = [view(number, point) for number, point in enumerate(points)]

    def groups(self, state: CrashState) -> Iterator[list[tuple[int, CrashState]]]:
        """The neighbours of ``state``, each with the write (its index) that is taken back, in two groups: those without
        one of its departures from the nearest clean prefixes, and those by any other pending write. Of more than
        ``MOST`` writes a group has none."""
        pending = self._points[state.point].pending
        medium = self._views[state.point].durable | mask(state.kept)
        departing = departures(pending, state)
        depart = set(departing)
        for group in (departing, [index for index in pending if index not in depart]):
            few = group if len(group) <= MOST else []
            yield [(index, other) for index in few for other in self._without(state, medium, index)]

    def _without(self, state: CrashState, medium: int, index: int) -> Iterator[CrashState]:
        """``state``, which has the writes ``medium`` whole, with what became of the write ``index`` taken back: kept
        where it was lost, lost where it was kept, and either where it was torn."""
        torn = tuple(entry for entry in state.torn if entry[0] != index)
        bit = 1 << index
        if not medium & bit:
            yield settled(self._views, medium | bit, torn, state.point)
        if medium & bit or len(torn) < len(state.torn):
            yield settled(self._views, medium & ~bit, torn, state.point)


def departures(pending: Sequence[int], state: CrashState) -> list[int]:
    """The writes by which ``state`` departs from one of the clean prefixes that are nearest to it; in their order."""
    kept, torn = set(state.kept), dict(state.torn)
    away = here = sum(index in kept or index in torn for index in pending)
    shortest = longest = 0
    for place, index in enumerate(pending, start=1):
        here += -1 if index in kept else 0 if index in torn else 1
        if here < away:
            away, shortest, longest = here, place, place
        elif here == away:
            longest = place
    return [
        index
        for place, index in enumerate(pending)
        if index in torn or (place >= shortest if index in kept else place < longest)
    ]


def causes(points: Sequence[GrowthPoint], state: CrashState, is_fine: Callable[[CrashState], bool]) -> tuple[int, ...]:
    """The writes (indexes) without any one of which ``state`` would do no harm, in their order.

    ``is_fine`` says of a state that it is known to do none. Departures from a clean prefix come before all others.
    Empty where no single write is known to make the difference.
    """
    for group in Neighbours(points).groups(state):
        if found := tuple(dict.fromkeys(index for index, other in group if is_fine(other))):
            return found
    return ()
