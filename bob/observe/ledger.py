"""The crash states of a workload, by number, and what was found of them so far."""

from __future__ import annotations

from collections.abc import Iterable

from bob.crash.state import CrashState, departure
from bob.observe.easiest import Easiest


class Ledger:
    """``states`` has the crash states in the order in which they came; a state's number is its place there. ``found``
    has the outcomes that were seen or predicted, by number, be they to be believed or not."""

    def __init__(self) -> None:
        self.states: list[CrashState] = []
        self.found: dict[int, int] = {}
        self._numbers: dict[CrashState, int] = {}
        self._easiest: dict[int, Easiest[int]] = {}

    def add(self, states: Iterable[CrashState]) -> range:
        """Take in more states; their numbers."""
        first = len(self.states)
        self.states += states
        for number in range(first, len(self.states)):
            self._numbers.setdefault(self.states[number], number)
        return range(first, len(self.states))

    def number_of(self, state: CrashState) -> int | None:
        """The number of a state; None where it never came."""
        return self._numbers.get(state)

    def rank(self, numbers: Iterable[int]) -> None:
        """Find among these, whose outcomes were found, the states that are easiest to explain."""
        for number in numbers:
            self._easiest.setdefault(self.found[number], Easiest()).add(self.states[number], number)

    def easiest(self) -> list[int]:
        """Of each outcome, the number of the state that is easiest to explain."""
        return [one.shown for one in self._easiest.values()]

    def easiest_first(self) -> list[int]:
        """The same, those with the least departure first."""
        return [one.shown for one in sorted(self._easiest.values(), key=lambda one: (one.rank, one.shown))]

    def speaker(self, outcome: int) -> int:
        """The number of the state that is easiest to explain, of those with ``outcome``."""
        return self._easiest[outcome].shown

    def is_easier(self, state: CrashState, outcome: int) -> bool:
        """Whether ``state`` explains ``outcome`` better than any that came."""
        return departure(state) < self._easiest[outcome].rank
