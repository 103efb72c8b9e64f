"""The crash states that show one thing: their number, and the easiest of them to explain."""

from collections.abc import Iterable
from typing import Generic, TypeVar

from bob.crash.state import CrashState, departure
from bob.observe.observations import ExploredState

T = TypeVar("T")


class Easiest(Generic[T]):
    """The number of crash states (``states``), and what the easiest of them, with the least ``rank``, shows
    (``shown``).

    A rank is the caller's ``before``, :func:`bob.crash.state.departure`, the caller's ``after``. The first of equals
    wins.
    """

    __slots__ = ("_best", "states")

    def __init__(self) -> None:
        self.states = 0
        self._best: tuple[tuple[int, ...], T] | None = None

    def __bool__(self) -> bool:
        return self._best is not None

    def add(
        self, state: CrashState, shown: T, states: int = 1, *, before: tuple[int, ...] = (), after: tuple[int, ...] = ()
    ) -> bool:
        """Count ``state``, which speaks for ``states``. Keep ``shown`` and return True if it is the easiest so far."""
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
