"""A set of crash states that have something in common: their number, and the state that is easiest to explain."""

from collections.abc import Iterable
from typing import Generic, TypeVar

from bob.crash.state import CrashState, departure
from bob.observe.observations import ExploredState

T = TypeVar("T")


def rank(state: CrashState, before: tuple[int, ...] = (), after: tuple[int, ...] = ()) -> tuple[int, ...]:
    """Return how hard ``state`` is to explain: ``before``, :func:`bob.crash.state.departure`, and ``after``. The caller
    chooses ``before`` and ``after``."""
    return *before, *departure(state), *after


class Easiest(Generic[T]):
    """The number of crash states, and the state with the least ``rank``, which is the easiest to explain. ``shown`` is
    what the caller stored with that state.

    If several states have the least rank (:func:`rank`), the first of them is kept."""

    __slots__ = ("_best", "states")

    def __init__(self) -> None:
        self.states = 0
        self._best: tuple[tuple[int, ...], T] | None = None

    def __bool__(self) -> bool:
        return self._best is not None

    def add(
        self, state: CrashState, shown: T, states: int = 1, *, before: tuple[int, ...] = (), after: tuple[int, ...] = ()
    ) -> bool:
        """Count ``state`` with the weight ``states``: it represents this many states, including itself. If it is the
        easiest state so far, keep ``shown`` as its data, and return True. ``before`` and ``after`` are parts of its
        rank."""
        self.states += states
        its = rank(state, before, after)
        if self._best is not None and its >= self._best[0]:
            return False
        self._best = its, shown
        return True

    @property
    def rank(self) -> tuple[int, ...]:
        """The rank of the easiest state. Raise LookupError if no state was counted."""
        return self._known()[0]

    @property
    def shown(self) -> T:
        """The caller's data of the easiest state. Raise LookupError if no state was counted."""
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
