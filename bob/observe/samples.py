"""Which of the states that were predicted are mounted all the same: few, and those that a wrong prediction shows in.

Knowledge is applied to other states at a *leaf*, the end of a course that was mounted once: all that shows recovery the
same gets its outcome. It is wrong where a sector counts that was not seen being read. So

- a leaf is checked by a state that differs from the one that was mounted, in as many sectors as can be: a state that
  differs in one of them shows nothing of the others;
- leaves with other outcomes come first, and leaves that were not checked: a leaf of few states is as likely to be wrong
  as one of 2^100, and drawn from all states it would never come up.

Where a leaf is checked again, that is by any of its states: what is wrong in one combination only is not the farthest.
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
"""Of each kind of what is predicted so many are checked, if there are so many."""


@dataclass(frozen=True, slots=True)
class Prediction(Generic[T]):
    """Knowledge of a ``leaf`` (by any number of its own) with this ``outcome``, as it was applied to ``item``; this
    differs in ``distance`` sectors from what was mounted."""

    item: T
    leaf: int
    outcome: int
    distance: int = 0


class Samples:
    """Draws what is checked, at the rate ``audit``, and remembers which leaves and outcomes were."""

    def __init__(self, audit: float, random: Random) -> None:
        self._audit = audit
        self._random = random
        self._leaves: Counter[int] = Counter()
        self._outcomes: Counter[int] = Counter()

    def wanted(self, count: int, outcomes: int = 0, done: int = 0) -> int:
        """How many of so many are checked: the share that was asked for, and the least, of which ``done`` are done by
        others; and one for each of so many ``outcomes`` that were not checked before, but no more than twice the least
        for these."""
        return min(count, max(LEAST - done, min(outcomes, 2 * LEAST), ceil(self._audit * count)))

    def unchecked(self, applied: Iterable[Prediction[T]]) -> int:
        """How many outcomes of these were not checked yet."""
        return len({one.outcome for one in applied} - self._outcomes.keys())

    @property
    def leaves(self) -> set[int]:
        """The leaves that were checked."""
        return set(self._leaves)

    def take(self, applied: Iterable[Prediction[T]], most: int) -> list[Prediction[T]]:
        """Up to ``most`` of these: of leaves and outcomes that were checked least, the farthest."""
        left = list(applied)
        self._random.shuffle(left)  # what is equal in all that counts comes by chance
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
    """Of very many things, one by one, up to ``most`` of each outcome by chance, each as likely as any other."""

    def __init__(self, most: int, random: Random) -> None:
        self._most, self._random = most, random
        self._seen: Counter[int] = Counter()
        self._kept: dict[int, list[T]] = {}

    def offer(self, outcome: int, thing: T) -> None:
        """Take note of one more."""
        kept = self._kept.setdefault(outcome, [])
        self._seen[outcome] += 1
        if len(kept) < self._most:
            kept.append(thing)
        elif (place := self._random.randrange(self._seen[outcome])) < self._most:
            kept[place] = thing

    @property
    def kept(self) -> list[T]:
        """What is kept, by outcome."""
        return [thing for outcome in sorted(self._kept) for thing in self._kept[outcome]]
