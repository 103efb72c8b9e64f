"""A set of crash states with something in common: their number, and the one that is easiest to explain."""

from collections.abc import Iterable
from typing import Generic, TypeVar

from bob.crash.state import CrashState, departure
from bob.observe.observations import ExploredState

T = TypeVar("T")


class Easiest(Generic[T]):
    """The number of crash states, and ``shown``, the caller's data of the easiest of them: that with the least
    ``rank``.

    A rank is a tuple: ``before``, :func:`bob.crash.state.departure`, ``after``. The first of equals wins."""

    __slots__ = ("_best", "states")

    def __init__(self) -> None:
        self.states = 0
        self._best: tuple[tuple[int, ...], T] | None = None

    def __bool__(self) -> bool:
        return self._best is not None

    def add(
        self, state: CrashState, shown: T, states: int = 1, *, before: tuple[int, ...] = (), after: tuple[int, ...] = ()
    ) -> bool:
        """Count ``state`` as ``states`` states. If it is the easiest so far, keep ``shown`` and return True."""
        self.states += states
        rank = (*before, *departure(state), *after)
        if self._best is not None and rank >= self._best[0]:
            return False
        self._best = rank, shown
        return True

    @property
    def rank(self) -> tuple[int, ...]:
        """Raise LookupError if no state was counted."""
        return self._known()[0]

    @property
    def shown(self) -> T:
        """Raise LookupError if no state was counted."""
        return self._known()[1]

    def explain(self, shown: T) -> None:
        self._best = self.rank, shown

    def _known(self) -> tuple[tuple[int, ...], T]:
        if self._best is None:
            raise LookupError("no crash state was counted")
        return self._best


def easiest(seen: Iterable[ExploredState]) -> Easiest[ExploredState]:
    found = Easiest[ExploredState]()
    for one in seen:
        found.add(one.state, one, one.states)
    return found
