"""Finds the outcomes of many crash states by mounting few of them.

Single states are dealt with in rounds: those whose outcome is known from what recovery read in others are predicted
(:mod:`bob.observe.predict`); of the rest, one of each kind that may well predict the others is mounted, all of these in
one request. So no mount is wasted, and requests are few. All legal states of whole writes are divided by the courses
that recovery takes in them (:mod:`bob.observe.courses`), with a mount for each course that is not known. In the end all
legal states, torn ones too, of which the course is known by then are counted (:mod:`bob.observe.torn_courses`).

Two kinds of states that were predicted are mounted after all, before any prediction is believed:

- for each outcome, the state that is easiest to explain: that is the one which a witness is made of, so every witness
  was really mounted, or its disk was in another workload;
- a sample, at the rate that was asked for, and at least three: of the single states, of the courses of whole writes and
  of those of torn ones, of all outcomes and courses in turn and far from what was mounted (:mod:`bob.observe.samples`);
  and, drawn from the seed, of the states that were recalled, as their disk was mounted in another workload.

If one of these has another outcome than was predicted, nothing of the workload is believed but what was mounted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from itertools import islice
from random import Random

import numpy as np

from bob.crash.cubes import Cube
from bob.crash.neighbours import Neighbours
from bob.crash.plan import Plan
from bob.crash.state import CrashState, departure
from bob.errors import BobError
from bob.observe.courses import Course, Courses
from bob.observe.predict import Contents, Contradiction, Gap, Known, Node, places_read
from bob.observe.samples import LEAST, Applied, Reservoir, Samples
from bob.observe.session import Complaint, Mounted, Session
from bob.observe.sights import Disks
from bob.observe.torn_courses import TornCourses

BATCH = 50
"""Crash states per request: few round trips, but a progress display that moves."""
FORGETFUL_BATCH = 5
"""As many where recovery forgets: then each state may well predict others of its batch."""
AUDIT_EVERY = 100
"""Mounts between two comparisons of the scratch image with its base, which take as long as some mounts."""
MOST_AROUND = 400
"""Of so many states next to others it is asked at most whether their outcome is known: each takes about 0.5 ms."""
MOST_RANKED = 100
"""Of so many outcomes, those that are easiest to explain."""
MOST_BARE = 16
"""So many of the states without anything pending are checked. Few are predicted: recovery looks for what is flushed."""
MOST_PARTS = 20_000
"""So often are the legal states of a workload divided, at most: each time takes about 0.1 ms."""


class Mispredicted(BobError):
    """A state that was predicted was mounted, and had another outcome."""


class Rounds:
    """The outcomes of a workload's ``states``, by their indexes, as they become known.

    ``outcomes`` has those that are to be believed: of states that were mounted here after the next good audit, of
    others when they were settled; until then ``counts`` and ``is_complete`` are not to be believed either. ``mounted``
    are the indexes of the states that were mounted. ``counts`` says for how many legal states each one speaks, where
    that is not one, ``whole_counts`` how many of these have no torn write, and ``is_complete`` whether the legal states
    of whole writes are all spoken for. ``told`` is called with how many more single states have been dealt with.
    ``audit`` is the share of what was predicted or recalled that is mounted all the same (0 to 1). Where not
    ``predicting``, all are mounted.

    Where there are ``disks``, states of which the disk was mounted in another workload are among ``mounted``, too, as
    chance decides which workload comes first. The samples are mounted whatever is in ``disks``. Those that were mounted
    here are ``new_disks``: for others to recall when all is settled, and not before. ``complaints`` has what the kernel
    said of states that were mounted here.
    """

    def __init__(
        self,
        session: Session,
        plan: Plan,
        seed: int,
        told: Callable[[int], None],
        *,
        audit: float,
        predicting: bool = True,
        disks: Disks | None = None,
    ) -> None:
        self.states: list[CrashState] = []
        self.outcomes: dict[int, int] = {}
        self.mounted: set[int] = set()
        self.counts: dict[int, int] = {}
        self.whole_counts: dict[int, int] = {}
        self.is_complete = False
        self.new_disks: Disks = {}
        self.complaints: dict[int, Complaint] = {}
        self._session = session
        self._plan = plan
        self._random = Random(f"{seed} controls")
        self._samples = Samples(audit, self._random)
        # Apart: what else is drawn does not depend on what happened to be recalled.
        self._random_recalled = Random(f"{seed} recalled")
        self._told = told
        self._audit = audit
        self._predicting = predicting
        self._known = Known(session.forgettable)
        self._batch = FORGETFUL_BATCH if session.forgets else BATCH
        self._found: dict[int, int] = {}
        self._easiest: dict[int, tuple[tuple[int, int], int]] = {}
        self._checks: set[int] = set()
        self._mounted_here: set[int] = set()
        self._unaudited = 0
        self._settled: list[Course] = []
        self._disks = disks

    def observe(self, states: Sequence[CrashState], *, counted: bool = True) -> None:
        """Find the outcomes of more states; of those that are not ``counted`` nobody is told.

        Raises Mispredicted, and whatever the session raises; ``outcomes`` then has what is to be believed all the same.
        """
        window = self._add(states)
        contents = {number: self._plan.composer.contents(self.states[number]) for number in window}
        waiting = dict(contents)
        gaps: dict[int, Gap] = {}
        while waiting:
            before = len(waiting)
            batch = self._predict(waiting, gaps)[: self._batch]
            for number, mounted in self._mount(batch).items():
                self._learn(number, waiting.pop(number), mounted)
            self._told(before - len(waiting) if counted else 0)
        self._rank(window)
        predicted = [self._applied(number, contents[number]) for number in window if number not in self.mounted]
        self._checks.update(one.item for one in self._samples.take(predicted, self._samples.wanted(len(predicted))))

    def check(self, states: Sequence[CrashState]) -> None:
        """Have some of ``states``, which were observed, mounted where they were predicted: all of them, where these are
        not many."""
        wanted = set(states)
        predicted = [n for n, state in enumerate(self.states) if state in wanted and n not in self.mounted]
        self._checks.update(self._random.sample(predicted, min(MOST_BARE, len(predicted))))

    def divide(self, budget: int) -> None:
        """Find the outcomes of all legal states of whole writes, if that takes not much more than ``budget`` mounts.

        Raises as :meth:`observe` does.
        """
        first = len(self.states)
        courses = Courses(self._known, self._plan.legal, self._plan.composer)
        parts, mounts, spent = MOST_PARTS, 0, 0
        while parts > 0:
            parts -= courses.advance(self._batch, parts)
            gaps = list(courses.open)[: self._batch]
            mounts = mounts or self._worth(courses, budget)
            if not gaps:
                break
            # Where not all can be done, nothing is claimed; and these states, which differ in what is read last, say
            # less than as many others.
            if spent + len(gaps) > mounts:
                courses.give_up(parts)
                break
            spent += len(gaps)
            self._told(0)  # who is told may want to stop
            batch = self._add(self._plan.legal.some(courses.open[gap][0]) for gap in gaps)
            for gap, (number, mounted) in zip(gaps, self._mount(batch).items(), strict=True):
                self._learn(number, self._plan.composer.contents(self.states[number]), mounted)
                courses.reopen(gap)
        self._rank(range(first, len(self.states)))
        self._settled = courses.settled
        self.is_complete = courses.is_complete
        self._check(courses.settled, len(courses.settled), torn=False)

    def _worth(self, courses: Courses, budget: int) -> int:
        """How many mounts may be spent to divide all, from what is known at the beginning.

        None, where it is to be expected that all will take more than two budgets, if what is left of the states has as
        many courses as the rest; else one more than these, since that is a guess. What will be forgotten on the way
        nobody can tell: then two.
        """
        if self._session.forgets:
            return 2 * budget
        settled = sum(course.states for course in courses.settled)
        left = self._plan.legal.count(Cube()) - settled
        expected = min(left, len(courses.settled) * left // settled) if settled else left
        return 3 * budget if expected <= 2 * budget else 0

    def count(self) -> None:
        """Count for how many legal states each state speaks: for each outcome the easiest to explain speaks for all of
        which the course is known and ends so, but those that speak for themselves.

        Raises Mispredicted.
        """
        for course in self._settled:
            state = self._plan.legal.some(course.cube)
            if departure(state) < self._easiest[course.outcome][0]:
                self._predicted(state, course)
        parts, composer = self._plan.parts, self._plan.composer
        spoken_for: Counter[int] = Counter()
        whole: Counter[int] = Counter()
        for course in self._settled:
            whole[course.outcome] += course.states
        whole_elsewhere: Counter[int] = Counter()
        # Too many to be held: some of each outcome are, and the share that is to be checked.
        drawn, kept = list[Course](), Reservoir[Course](LEAST, self._random)
        count = 0
        for course in TornCourses(parts, composer).known(self._known):
            spoken_for[course.outcome] += course.states
            if not self.is_complete:
                whole_elsewhere[course.outcome] += self._plan.legal.count(parts.whole(course.cube))
            count += course.states > 1
            if course.states == 1:
                continue
            if self._random.random() < self._audit:
                drawn.append(course)
            else:
                kept.offer(course.outcome, course)
        self._check([*drawn, *kept.kept], count, torn=True)
        whole |= whole_elsewhere
        if self._known.forgets:  # then not all torn ones are found
            spoken_for |= whole
        for number, state in enumerate(self.states):
            outcome = self._known.find(composer.contents(state))
            if isinstance(outcome, Gap) or not parts.separate(state):
                continue  # it was repaired, or it is none of those that were counted
            self.counts[number] = self._speaks_for_itself(number, outcome)
            self.whole_counts[number] = 0 if state.torn else self.counts[number]
            spoken_for[outcome] -= self.counts[number]
            whole[outcome] -= self.whole_counts[number]
        for outcome, count in spoken_for.items():
            _rank, speaker = self._easiest[outcome]
            self.counts[speaker] = self.counts.get(speaker, 1) + count
            itself = int(not self.states[speaker].torn)
            self.whole_counts[speaker] = self.whole_counts.get(speaker, itself) + whole[outcome]

    def look_around(self) -> None:
        """Predict what is next to the states that explain their outcomes best, as far as it is known: from these it is
        seen which write makes the difference. They speak for no states; and no mount is needed."""
        taken, first = set(self.states), len(self.states)
        around = Neighbours(self._plan.points)
        groups = [
            tuple(around.groups(self.states[number])) for _rank, number in sorted(self._easiest.values())[:MOST_RANKED]
        ]
        # What departs from a clean state comes first, of all of them.
        wanted = dict.fromkeys(state for some in zip(*groups, strict=True) for group in some for _write, state in group)
        for state in islice((state for state in wanted if state not in taken), MOST_AROUND):
            outcome = self._known.find(self._plan.composer.contents(state))
            if not isinstance(outcome, Gap):
                [new] = self._add([state])
                self._found[new], self.counts[new], self.whole_counts[new] = outcome, 0, 0
        self._rank(range(first, len(self.states)))

    def settle(self) -> None:
        """Mount some of what was predicted and recalled, and compare; then all of it is to be believed.

        Raises as :meth:`observe` does.
        """
        chosen = {*self._checks, *(number for _rank, number in self._easiest.values())} - self.mounted
        recalled = sorted(self.mounted - self._mounted_here)
        again = self._random_recalled.sample(recalled, self._samples.wanted(len(recalled)))
        anew = self._checks.union(again)
        for number, mounted in self._mount(sorted(chosen.union(again)), audit=True, anew=anew).items():
            if mounted.outcome != self._found[number]:
                by = "what was seen of its disk in another workload" if number in again else "what recovery read"
                raise self._mispredicted(number, self._found[number], mounted.outcome, by)
        self._checks.clear()
        self.outcomes.update(self._found)

    def easiest(self) -> list[int]:
        """Of each outcome, the state that is easiest to explain."""
        return [number for _rank, number in self._easiest.values()]

    def _applied(self, number: int, contents: Contents) -> Applied[int]:
        """What was applied to a state that was predicted."""
        leaf = self._known.leaf(contents)
        assert isinstance(leaf, Node)
        assert leaf.outcome is not None
        away = self._plan.composer.contents(self.states[leaf.source])
        return Applied(number, leaf.source, leaf.outcome, int(np.count_nonzero(contents != away)))

    def _check(self, courses: Sequence[Course], count: int, *, torn: bool) -> None:
        """Have some of these courses checked, out of ``count``. Of whole writes, each by that of its states that is
        farthest from the one that was mounted, and where its leaf was checked before by any; of torn ones by any, which
        is torn then in most of what was not read: the farthest have all of a write or nothing."""
        composer, legal = self._plan.composer, self._plan.parts.legal if torn else self._plan.legal
        applied: list[Applied[Course]] = []
        for course in courses:
            if course.states > 1:
                leaf = self._known.leaf(composer.contents(legal.some(course.cube)))
                assert isinstance(leaf, Node)
                applied.append(Applied(course, leaf.source, course.outcome))
        # A single state that is checked is one of a course, too.
        done = sum(bool(self.states[number].torn) == torn for number in self._checks)
        wanted = self._samples.wanted(count, 0 if torn else self._samples.unchecked(applied), done)
        checked = self._samples.leaves
        for one in self._samples.take(applied, wanted):
            cube = one.item.cube
            if torn or one.leaf in checked:
                state = legal.sample(cube, self._random)
            else:
                state = legal.farthest(cube, self._plan.medium(self.states[one.leaf]))
            checked.add(one.leaf)
            self._checks.add(self._predicted(state, one.item))

    def _predicted(self, state: CrashState, course: Course) -> int:
        """Take in a state of ``course``, unless it is known; its index."""
        if state in self.states:
            return self.states.index(state)
        [number] = self._add([state])
        self._found[number] = course.outcome
        self._rank([number])
        return number

    def _add(self, states: Iterable[CrashState]) -> range:
        """Take in more states; their indexes."""
        first = len(self.states)
        self.states += states
        return range(first, len(self.states))

    def _predict(self, waiting: dict[int, Contents], gaps: dict[int, Gap]) -> list[int]:
        """Predict what can be, and take it out of ``waiting``; then one state of each kind that is left."""
        if not self._predicting:
            return list(waiting)
        kinds: dict[Gap, int] = {}
        for number, contents in tuple(waiting.items()):
            # Where something was forgotten, what was learnt may be elsewhere than the gap.
            found = self._known.find(contents, None if self._known.forgets else gaps.get(number))
            if isinstance(found, Gap):
                gaps[number] = found
                kinds.setdefault(found, number)
            else:
                self._found[number] = found
                del waiting[number]
        return list(kinds.values())

    def _mount(self, batch: Sequence[int], *, audit: bool = False, anew: Container[int] = ()) -> dict[int, Mounted]:
        """Mount these states, and compare the scratch image with its base where it is time or ``audit`` asks for it.

        What was seen of a disk elsewhere is recalled, but for the states that are to be mounted ``anew``.
        """
        composer = self._plan.composer
        keys = {} if self._disks is None else {number: composer.disk(self.states[number]) for number in batch}
        answers = {
            number: self._session.recall(sight)
            for number, disk in keys.items()
            if number not in anew and self._disks is not None and (sight := self._disks.get(disk)) is not None
        }
        fresh = [number for number in batch if number not in answers]
        self._unaudited += len(fresh)
        audit = audit or self._unaudited >= AUDIT_EVERY
        if fresh or (audit and self._unaudited):
            deltas = [composer.delta(self.states[number]) for number in fresh]
            found = self._session.mount(deltas, composer.payload_since(0), audit=audit)
            answers.update(zip(fresh, found, strict=True))
        self.mounted.update(batch)
        self._mounted_here.update(fresh)
        for number in fresh:
            if (complaint := answers[number].complaint) is not None:
                self.complaints[number] = complaint
        for number in fresh:
            if number in keys and (sight := self._session.sight(answers[number])) is not None:
                self.new_disks[keys[number]] = sight
        if audit:
            self._unaudited = 0
            self.outcomes.update((number, self._found[number]) for number in self._mounted_here & self._found.keys())
            self.outcomes.update((number, answers[number].outcome) for number in fresh)
        return {number: answers[number] for number in batch}

    def _learn(self, number: int, contents: Contents, mounted: Mounted) -> None:
        """Take note of what was seen of a state that nothing was known of."""
        self._found[number] = mounted.outcome
        # Only the first state with a refusal is repaired: a state like it would be refused and not repaired.
        if not self._predicting or self._session.findings.repaired(mounted.outcome):
            return
        try:
            read = places_read(self._plan.composer.sectors, mounted.accesses)
            self._known.add(contents, read, mounted.outcome, mounted.left, number)
        except Contradiction as found:
            raise self._mispredicted(number, found.one, found.other) from None

    def _rank(self, window: Iterable[int]) -> None:
        """Find those of these states that explain their outcomes best."""
        for number in window:
            outcome, rank = self._found[number], departure(self.states[number])
            if outcome not in self._easiest or rank < self._easiest[outcome][0]:
                self._easiest[outcome] = rank, number

    def _speaks_for_itself(self, number: int, outcome: int) -> int:
        """1 for a state that was mounted and had another outcome than its course, since it was repaired; else 0."""
        found = self._found[number]
        if found != outcome and not self._session.findings.repaired(found):
            raise self._mispredicted(number, outcome, found)
        return int(found != outcome)

    def _mispredicted(self, number: int, predicted: int, seen: int, by: str = "what recovery read") -> Mispredicted:
        """Believe no prediction any more, and nothing that was recalled; what to say of it."""
        self.outcomes = {known: outcome for known, outcome in self.outcomes.items() if known in self._mounted_here}
        one, other = (
            f"outcome {outcome} ({self._session.findings.observation(outcome).summary})"
            for outcome in (predicted, seen)
        )
        return Mispredicted(
            f"a control of the predictions failed: by {by}, crash state {number} has {one}, "
            f"but when it was mounted it had {other}"
        )
