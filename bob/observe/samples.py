"""Samples of predicted states to mount all the same: few, chosen so that a wrong prediction shows.

Knowledge is applied at a *leaf*, the end of a course that was mounted once. It is wrong if recovery depends on a sector
that it was not seen reading. So

- a leaf is checked by the state that differs from the mounted one in the most sectors: other states test fewer;
- leaves with new outcomes and unchecked leaves come first: a leaf of few states is as likely to be wrong as one of
  2^100, but a draw from all states would never reach it.

A second check of a leaf takes any of its states: an error in one combination only is not in the farthest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from random import Random
from typing import Generic, TypeVar

T = TypeVar("T")

LEAST = 3
"""The fewest checks of each kind of prediction, if there are as many."""


@dataclass(frozen=True, slots=True)
class Prediction(Generic[T]):
    """Knowledge of a ``leaf`` (by any number) with this ``outcome``, applied to ``item``.

    ``item`` differs in ``distance`` sectors from the mounted state.
    """

    item: T
    leaf: int
    outcome: int
    distance: int = 0


class Samples:
    """Draws checks at the rate ``audit``, and remembers the checked leaves and outcomes."""

    def __init__(self, audit: float, random: Random) -> None:
        self._audit = audit
        self._random = random
        self._leaves: Counter[int] = Counter()
        self._outcomes: Counter[int] = Counter()

    def wanted(self, count: int, outcomes: int = 0, done: int = 0) -> int:
        """Return how many of ``count`` to check: the requested share and the least number, less ``done`` by others.

        New ``outcomes`` add one each, up to twice the least number.
        """
        return min(count, max(LEAST - done, min(outcomes, 2 * LEAST), ceil(self._audit * count)))

    def unchecked(self, applied: Iterable[Prediction[T]]) -> int:
        return len({one.outcome for one in applied} - self._outcomes.keys())

    @property
    def leaves(self) -> set[int]:
        return set(self._leaves)

    def take(self, applied: Iterable[Prediction[T]], most: int) -> list[Prediction[T]]:
        """Return up to ``most`` of these: of the least checked leaves and outcomes, the farthest."""
        left = list(applied)
        self._random.shuffle(left)  # ties are resolved by chance
        if most >= len(left):
            self._remember(left)
            return left
        taken: list[Prediction[T]] = []
        while len(taken) < most:
            best = min(left, key=self._rank)
            left.remove(best)
            taken.append(best)
            self._remember([best])
        return taken

    def _rank(self, one: Prediction[T]) -> tuple[int, int, int]:
        return self._leaves[one.leaf], self._outcomes[one.outcome], -one.distance

    def _remember(self, taken: Iterable[Prediction[T]]) -> None:
        for one in taken:
            self._leaves[one.leaf] += 1
            self._outcomes[one.outcome] += 1


class Reservoir(Generic[T]):
    """A random choice of up to ``most`` things of each outcome, out of very many that come one by one."""

    def __init__(self, most: int, random: Random) -> None:
        self._most, self._random = most, random
        self._seen: Counter[int] = Counter()
        self._kept: dict[int, list[T]] = {}

    def offer(self, outcome: int, thing: T) -> None:
        kept = self._kept.setdefault(outcome, [])
        self._seen[outcome] += 1
        if len(kept) < self._most:
            kept.append(thing)
        elif (place := self._random.randrange(self._seen[outcome])) < self._most:
            kept[place] = thing

    @property
    def kept(self) -> list[T]:
        return [thing for outcome in sorted(self._kept) for thing in self._kept[outcome]]
