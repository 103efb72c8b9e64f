"""Controls of bob's predictions. An *outcome* is what a mount of a crash state shows. bob predicts the outcomes of most
crash states without a mount. A control is a predicted state that bob mounts all the same, to compare the real outcome
with the prediction. bob trusts no prediction before this comparison. A *claim* is what each crash state should satisfy.
For each outcome, the state that is easiest to explain is a control, since bob shows this state to the user if the
outcome breaks a claim. The other controls are a random sample of the predicted states. The user says how large this
sample is."""

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
    """A predicted ``outcome`` of ``item``. The item is a crash state, or a course (a set of states where recovery reads
    the same contents). bob predicts the outcome from the mounted state number ``leaf``. ``item`` differs from that
    state in ``distance`` sectors."""

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
    """The choice of the predicted states that bob mounts as controls. ``effort`` says how many of the predicted states
    bob mounts. ``chosen`` has the numbers of the chosen states.

    A *course* of recovery is what recovery reads, in order (:mod:`bob.observe.courses`). For each course, bob has
    mounted one state, and predicts that the other states of the course have the same outcome. A *leaf* is such a
    mounted state, and ``leaves`` counts the controls of each leaf. The prediction is wrong if recovery depends on a
    sector whose read bob did not see. To find such a mistake, bob mounts the state that differs from the leaf in the
    most sectors.

    bob prefers leaves without a control. If it drew at random from all predicted states, a leaf with few states would
    hardly ever get a control. A mistake may also show in only one combination of sectors. So if the leaf already has a
    control, bob mounts a random state of the course."""

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
        """Return how many of ``count`` predictions bob should test by a mount. This is the share that the effort sets,
        or more if there would be fewer than ``LEAST`` controls in all. ``done`` is the number of controls that were
        chosen before. ``outcomes`` is the number of outcomes without a control so far. The result is also at least
        ``outcomes`` (or twice ``LEAST``, if that is less), so that new outcomes get controls."""
        return min(count, max(LEAST - done, min(outcomes, 2 * LEAST), ceil(self._audit * count)))

    def take(self, applied: Iterable[Prediction[T]], most: int) -> list[Prediction[T]]:
        """Choose up to ``most`` controls, and return them. bob wants to use the predictions ``applied``, and the
        controls are some of these predictions. bob prefers predictions from the leaf with the fewest controls. Among
        these, it prefers the outcome with the fewest controls, and then the state that differs most from the mounted
        state."""
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
        """Choose controls among ``applied``, predictions for courses whose states have only whole writes. ``count`` is
        the number of all such courses. Before the division into courses, bob predicted single states one by one, and
        chose ``done`` controls among them. Yield each chosen prediction, with True if its leaf had a control before."""
        checked = set(self.leaves)
        outcomes = {one.outcome for one in applied} - self._outcomes.keys()
        for one in self.take(applied, self.wanted(count, len(outcomes), done)):
            yield one, one.leaf in checked
            checked.add(one.leaf)

    def of_very_many(self, courses: Iterator[Course]) -> tuple[list[Course], int]:
        """Choose controls among ``courses``, whose states have torn writes. Return the chosen courses, and the number
        of courses that they were chosen from. A course with a single state needs no control, so it does not count.
        ``courses`` is a stream, since memory cannot hold all of them."""
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
        """Choose some of the states ``on_host``, whose file systems a program on the host has recovered. The guest must
        recover the chosen states again, so that bob can compare the outcomes."""
        return self._random_recovered.sample(on_host, self.wanted(len(on_host)))

    def _rank(self, one: Prediction[T]) -> tuple[int, int, int]:
        return self.leaves[one.leaf], self._outcomes[one.outcome], -one.distance

    def _remember(self, taken: Iterable[Prediction[T]]) -> None:
        for one in taken:
            self.leaves[one.leaf] += 1
            self._outcomes[one.outcome] += 1
