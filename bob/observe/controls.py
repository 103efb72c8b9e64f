"""The controls of predictions. A control is a crash state with a predicted outcome that bob mounts all the same, before
it trusts any prediction. The easiest state of each outcome is a control, since bob shows this state to the user if the
outcome breaks a claim. The other controls are a sample, at the requested rate."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from random import Random
from typing import Generic, TypeVar

from bob.observe.courses import Course
from bob.observe.effort import Effort

T = TypeVar("T")

LEAST = 3  # bob checks at least this many predictions of each kind, or all if there are fewer
# bob checks at most this many states without pending writes. It predicts few of these, since recovery reads flushed
# blocks.
MOST_BARE = 16


@dataclass(frozen=True, slots=True)
class Prediction(Generic[T]):
    """A predicted ``outcome`` of ``item``, a state or a course (the states that recovery reads alike). bob predicts it
    from a mounted state, the one with the number ``leaf``. ``item`` differs from that state in ``distance`` sectors."""

    item: T
    leaf: int
    outcome: int
    distance: int = 0


class Reservoir(Generic[T]):
    """A random choice of up to ``most`` items of each outcome, from a stream of items that memory cannot hold."""

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


class Controls:
    """A choice of the predicted states to check, at the rate of the ``effort``. ``chosen`` has the numbers of the
    chosen states. The counters count the checks of each leaf (``leaves``) and of each outcome.

    A *course* of recovery is what recovery reads, in order (:mod:`bob.observe.courses`). A *leaf* is the end of a
    course that bob mounted once, in one state. The outcome of a leaf is wrong for another state of the course if
    recovery depends on a sector whose read bob did not see. To check that, bob mounts the state that differs in the
    most sectors.

    bob first chooses leaves without a check, since a draw from all states would never reach a leaf with few states. An
    error may also occur in only one combination of sectors. So each leaf needs a second check, of any state."""

    def __init__(self, effort: Effort) -> None:
        self.chosen: set[int] = set()
        self.random = Random(f"{effort.seed} controls")
        # A generator of its own, so that the recalled states do not change the other draws.
        self._random_recalled = Random(f"{effort.seed} recalled")
        self._random_recovered = Random(f"{effort.seed} recovered")
        self._audit = effort.audit
        self.leaves: Counter[int] = Counter()
        self._outcomes: Counter[int] = Counter()

    def wanted(self, count: int, outcomes: int = 0, done: int = 0) -> int:
        """Return how many of ``count`` predictions to check: the requested share, but at least ``LEAST``. The number
        ``done``, of checks already chosen, counts towards ``LEAST``. If the predictions have new ``outcomes``, the
        number is at least the number of these, up to twice ``LEAST``, so that each new outcome can have one check."""
        return min(count, max(LEAST - done, min(outcomes, 2 * LEAST), ceil(self._audit * count)))

    def take(self, applied: Iterable[Prediction[T]], most: int) -> list[Prediction[T]]:
        """Return up to ``most`` of the predictions ``applied``. Prefer predictions by the least checked leaves, then
        those of the least checked outcomes, then those of the states that differ most from the mounted state."""
        left = list(applied)
        self.random.shuffle(left)  # chance decides between equals
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

    def of_states(self, predicted: Sequence[Prediction[int]]) -> None:
        self.chosen.update(one.item for one in self.take(predicted, self.wanted(len(predicted))))

    def of_bare(self, predicted: Sequence[int]) -> None:
        self.chosen.update(self.random.sample(predicted, min(MOST_BARE, len(predicted))))

    def of_whole(
        self, applied: Sequence[Prediction[Course]], count: int, done: int
    ) -> Iterator[tuple[Prediction[Course], bool]]:
        """Yield some of the courses ``applied``, whose states have only whole writes, out of ``count`` courses in all.
        With each comes True if its leaf was checked before. ``done`` is the number of single states that were chosen
        before."""
        checked = set(self.leaves)
        outcomes = {one.outcome for one in applied} - self._outcomes.keys()
        for one in self.take(applied, self.wanted(count, len(outcomes), done)):
            yield one, one.leaf in checked
            checked.add(one.leaf)

    def of_very_many(self, courses: Iterator[Course]) -> tuple[list[Course], int]:
        """Choose some of the ``courses``, which have torn states, for a check. Return these, and the number of all
        courses that have several states. ``courses`` is a stream, since memory cannot hold them all."""
        drawn, kept = list[Course](), Reservoir[Course](LEAST, self.random)
        count = 0
        for course in courses:
            if course.states == 1:
                continue
            count += 1
            if self.random.random() < self._audit:
                drawn.append(course)
            else:
                kept.offer(course.outcome, course)
        return [*drawn, *kept.kept], count

    def of_recalled(self, recalled: Sequence[int]) -> list[int]:
        return self._random_recalled.sample(recalled, self.wanted(len(recalled)))

    def of_recovered(self, on_host: Sequence[int]) -> list[int]:
        """Return some of the states ``on_host``, which the host has recovered. The guest must recover these, too, so
        that bob can compare the outcomes."""
        return self._random_recovered.sample(on_host, self.wanted(len(on_host)))

    def _rank(self, one: Prediction[T]) -> tuple[int, int, int]:
        return self.leaves[one.leaf], self._outcomes[one.outcome], -one.distance

    def _remember(self, taken: Iterable[Prediction[T]]) -> None:
        for one in taken:
            self.leaves[one.leaf] += 1
            self._outcomes[one.outcome] += 1
