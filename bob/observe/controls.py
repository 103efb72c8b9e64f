"""Which crash states are mounted though their outcomes are known, to hold what is known against the kernel.

Two kinds, before any prediction is believed:

- for each outcome, the state that is easiest to explain: a witness is made of that one, so every witness was really
  mounted, or its disk was in another workload;
- a sample, at the rate that was asked for, and at least three: of the single states, of the courses of whole writes and
  of those of torn ones, of all outcomes and courses in turn and far from what was mounted (:mod:`bob.observe.samples`);
  and, drawn from the seed, of the states that were recalled, as their disk was mounted in another workload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

from bob.crash.state import CrashState
from bob.observe.courses import Course
from bob.observe.effort import Effort
from bob.observe.samples import LEAST, Prediction, Reservoir, Samples

MOST_BARE = 16
"""So many of the states without anything pending are checked. Few are predicted: recovery looks for what is flushed."""


class Controls:
    """Draws the samples. ``chosen`` are the numbers of the states that are to be mounted."""

    def __init__(self, effort: Effort) -> None:
        self.chosen: set[int] = set()
        self.random = Random(f"{effort.seed} controls")
        # Apart: what else is drawn does not depend on what happened to be recalled.
        self._random_recalled = Random(f"{effort.seed} recalled")
        self._samples = Samples(effort.audit, self.random)
        self._audit = effort.audit

    def of_states(self, predicted: Sequence[Prediction[int]]) -> None:
        """Choose some of the single states that were predicted."""
        taken = self._samples.take(predicted, self._samples.wanted(len(predicted)))
        self.chosen.update(one.item for one in taken)

    def of_bare(self, predicted: Sequence[int]) -> None:
        """Choose some of these, all of them where they are not many."""
        self.chosen.update(self.random.sample(predicted, min(MOST_BARE, len(predicted))))

    def of_whole(
        self,
        applied: Sequence[Prediction[Course]],
        count: int,
        done: int,
        farthest: Callable[[Prediction[Course]], CrashState],
        any_of: Callable[[Course], CrashState],
    ) -> Iterator[tuple[CrashState, Course]]:
        """States of some of ``count`` courses of whole writes, of which ``applied`` are those of several states; of
        single states ``done`` were chosen before. Of each course it is the state that is ``farthest`` from the one that
        was mounted, and where its leaf was checked before, any."""
        checked = self._samples.leaves
        wanted = self._samples.wanted(count, self._samples.unchecked(applied), done)
        for one in self._samples.take(applied, wanted):
            yield (any_of(one.item) if one.leaf in checked else farthest(one)), one.item
            checked.add(one.leaf)

    def of_torn(
        self, applied: Sequence[Prediction[Course]], count: int, done: int, any_of: Callable[[Course], CrashState]
    ) -> Iterator[tuple[CrashState, Course]]:
        """The same of torn courses: any state of each, which is torn in most of what was not read, while the farthest
        has all of a write or nothing."""
        for one in self._samples.take(applied, self._samples.wanted(count, done=done)):
            yield any_of(one.item), one.item

    def of_very_many(self, courses: Iterator[Course]) -> tuple[list[Course], int]:
        """Some of so many torn courses that they cannot be held, those of one state left out: the share that is to be
        checked, and some of each outcome; and of how many."""
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
        """Some of the states that were recalled."""
        return self._random_recalled.sample(recalled, self._samples.wanted(len(recalled)))
