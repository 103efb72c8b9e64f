"""Controls: crash states with a known outcome that are mounted all the same, before bob believes any prediction.

- For each outcome, the easiest state to explain, since it becomes a witness. So every witness was really mounted, or
  its disk was in another workload.
- A sample at the requested rate, at least three: of the single states, of the courses of whole writes and of torn ones,
  from all outcomes and courses in turn and far from the mounted state (:mod:`bob.observe.samples`); and, drawn by the
  seed, of the states recalled from other workloads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

from bob.crash.state import CrashState
from bob.observe.courses import Course
from bob.observe.effort import Effort
from bob.observe.samples import LEAST, Prediction, Reservoir, Samples

MOST_BARE = 16
"""The most states without pending writes to check. Few are predicted: recovery looks for what is flushed."""


class Controls:
    """Draws the samples; ``chosen`` are the numbers of the states to mount."""

    def __init__(self, effort: Effort) -> None:
        self.chosen: set[int] = set()
        self.random = Random(f"{effort.seed} controls")
        # Apart: what else is drawn does not depend on what happened to be recalled.
        self._random_recalled = Random(f"{effort.seed} recalled")
        self._samples = Samples(effort.audit, self.random)
        self._audit = effort.audit

    def of_states(self, predicted: Sequence[Prediction[int]]) -> None:
        taken = self._samples.take(predicted, self._samples.wanted(len(predicted)))
        self.chosen.update(one.item for one in taken)

    def of_bare(self, predicted: Sequence[int]) -> None:
        """Choose some of these, or all if they are few."""
        self.chosen.update(self.random.sample(predicted, min(MOST_BARE, len(predicted))))

    def of_whole(
        self,
        applied: Sequence[Prediction[Course]],
        count: int,
        done: int,
        farthest: Callable[[Prediction[Course]], CrashState],
        any_of: Callable[[Course], CrashState],
    ) -> Iterator[tuple[CrashState, Course]]:
        """Yield states of some of ``count`` courses of whole writes.

        ``applied`` are the courses of several states; ``done`` single states were chosen before. The state of each is
        the ``farthest`` from the mounted one, or any state if its leaf was checked before.
        """
        checked = self._samples.leaves
        wanted = self._samples.wanted(count, self._samples.unchecked(applied), done)
        for one in self._samples.take(applied, wanted):
            yield (any_of(one.item) if one.leaf in checked else farthest(one)), one.item
            checked.add(one.leaf)

    def of_torn(
        self, applied: Sequence[Prediction[Course]], count: int, done: int, any_of: Callable[[Course], CrashState]
    ) -> Iterator[tuple[CrashState, Course]]:
        """Yield any state of some torn courses: it is torn in most unread sectors, while the farthest has all of a
        write or none."""
        for one in self._samples.take(applied, self._samples.wanted(count, done=done)):
            yield any_of(one.item), one.item

    def of_very_many(self, courses: Iterator[Course]) -> tuple[list[Course], int]:
        """Return some torn courses, out of so many that memory cannot hold them, and the count of those with several
        states.

        They are the share to be checked, and a few of each outcome.
        """
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
        return self._random_recalled.sample(recalled, self._samples.wanted(len(recalled)))
