"""The search for the outcomes of many crash states by mounts of few of them. An *outcome* is what a mount of a crash
state shows. A *mixture* is a set of torn states whose trees of files bob knows from two mounted states
(:mod:`bob.observe.mixtures`).

From earlier reads, bob predicts the outcomes of single states (:mod:`bob.observe.predict`). In each of the other
states, recovery at some point reads sectors with a content that no mounted state had there. bob groups these states by
the first such read and its content, and mounts one state of each group. Then it divides all legal states by the course
of recovery (what recovery reads, in order). bob mounts some predicted states as controls (:mod:`bob.observe.controls`).
If a control has another outcome than predicted, bob trusts no prediction, only the outcomes of mounted states.

An example. Three writes are pending at the crash, to the sectors 1, 2 and 3. A sector is *new* if its write is on the
disk, otherwise *old*. Recovery reads sector 1. If sector 1 is new, recovery also reads sector 2. It never reads sector
3. So three mounts give the outcomes of all eight states:

    sector 1 is old: 4 states, outcome A
    sector 1 is new: sector 2 is old: 2 states, outcome B
                     sector 2 is new: 2 states, outcome C"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from math import ceil
from random import Random

import numpy as np

from bob.crash.cubes import Cube
from bob.crash.neighbours import Neighbours
from bob.crash.plan import Plan
from bob.crash.state import CrashState
from bob.errors import BobError
from bob.observe.controls import Controls, Prediction
from bob.observe.courses import Course, Courses
from bob.observe.effort import Effort
from bob.observe.ledger import Ledger, LedgerMounts
from bob.observe.mixtures import Mixture, Mixtures, missing_rows
from bob.observe.mount_cache import Disks
from bob.observe.observations import MixedStates
from bob.observe.predict import Contents, Contradiction, Gap, ReadTree, places_read
from bob.observe.session import MountedState, Session
from bob.observe.torn_courses import TornCourses
from bob.observe.unknown_torn import MOST, CauseCount, TornCause, causes_of_unknown
from bob.subject import Subject

BATCH = 50  # crash states per request: few round trips, but a progress display that moves
FORGETFUL_BATCH = 5  # a smaller batch where recovery forgets: there each state may well predict others of its batch
MOST_AROUND = 400  # bob predicts at most this many neighbours of other states: each takes about 0.5 ms
MOST_RANKED = 100  # bob predicts neighbours for at most this many outcomes, the easiest first
MIXED_SHARE = 6  # mixtures may take at most one sixth of the budget
LEAST_MIXED = 2  # with fewer mounts left, bob looks for no further mixture
# If bob knows this share of the torn states, it looks for no more mixtures. With just half of each workload's states, a
# table's sum might have less than half.
ENOUGH = Fraction(5, 8)
MOST_FRUITLESS = 2  # bob gives up after this many random torn states in a row that lead to no mixture
MOST_DRAWN = 50  # bob draws at most this many random states, and takes the first that is unknown
KEPT_CONTENTS = 2**24  # bob keeps the contents (4 bytes each) of about so many sectors of states that it looked at
MOST_PARTS = 20_000  # bob divides a workload's legal states into at most this many cubes: each takes about 0.1 ms


BY_HOST = "the file system's check on the host"


class Misprediction(BobError):
    """The error of a mounted state that had another outcome than predicted."""


class HostMistaken(Misprediction):
    """The error of a state whose outcome after a check on the host differs from its outcome after a check in the
    guest."""


@dataclass(frozen=True, slots=True)
class Division:
    """A division of the legal states without torn writes into ``courses``. A course is a set of states. In all of them,
    recovery reads the same contents in the same order. If ``is_complete`` is true, each legal state without torn writes
    is in one of the courses."""

    courses: Sequence[Course] = ()
    is_complete: bool = False


@dataclass(frozen=True, slots=True)
class StateCounts:
    """Counts of legal states. An *explored* state is one that bob lists in its results. It may also stand for other
    legal states with the same outcome. ``states`` maps the index of an explored state to the count of legal states that
    it stands for. ``whole`` counts only the states without torn writes among them. An explored state without an entry
    stands for itself alone. ``mixtures`` are further torn states, which ``states`` does not count."""

    states: dict[int, int] = field(default_factory=dict)
    whole: dict[int, int] = field(default_factory=dict)
    mixtures: tuple[MixedStates, ...] = ()


class Rounds:
    """The outcomes of a workload's crash states, as they become known.

    Call :meth:`observe`, :meth:`check` and :meth:`divide`, then :meth:`observe` for torn states. :meth:`mix` may
    follow. Then call :meth:`count`, :meth:`look_around` and :meth:`settle`. After that, bob trusts all outcomes, and
    ``mounts.outcomes`` has them. The caller may also call :meth:`settle` in between. From time to time, bob calls
    ``told`` with the number of states that :meth:`observe` has done since the last call."""

    def __init__(
        self, session: Session, plan: Plan, effort: Effort, told: Callable[[int], None], disks: Disks | None = None
    ) -> None:
        self.ledger = Ledger()
        self.mounts = LedgerMounts(session, plan.composer, self.ledger, disks)
        self.controls = Controls(effort)
        self.known = ReadTree(session.forgettable)
        self._session = session
        self._plan = plan
        self._effort = effort
        self._told = told
        self._batch = FORGETFUL_BATCH if session.forgets else BATCH
        self._mixtures: list[tuple[Mixture, tuple[int, ...]]] = []
        self._is_refuted = False
        self._left_out: dict[bytes, tuple[Mixture, TornCause]] = {}
        self._unjudged: list[Mixture] = []
        most = max(1, KEPT_CONTENTS // (1 + len(plan.composer.sectors)))
        self._contents = lru_cache(most)(lambda number: plan.composer.contents(self.ledger.states[number]))

    def observe(self, states: Iterable[CrashState], *, counted: bool = True) -> None:
        """Find the outcomes of more ``states``, by predictions or mounts. If ``counted`` is false, the function
        ``told`` (:class:`Rounds`) does not get the number of these states. Raises Misprediction, and the errors of
        :meth:`bob.observe.session.Session.mount`. After an error, ``mounts.outcomes`` still has the trusted
        outcomes."""
        window = self.ledger.add(states)
        contents = {number: self._plan.composer.contents(self.ledger.states[number]) for number in window}
        waiting = dict(contents)
        gaps: dict[int, Gap] = {}
        while waiting:
            before = len(waiting)
            batch = self._predict(waiting, gaps)[: self._batch]
            for number, mounted in self.mounts.mount(batch).items():
                self._learn(number, waiting.pop(number), mounted)
            self._told(before - len(waiting) if counted else 0)
        self.ledger.rank(window)
        predicted = [number for number in window if number not in self.mounts.mounted]
        applied = {number: self._applied(number, contents[number]) for number in predicted}
        self.controls.of_states([one for one in applied.values() if one is not None])
        self.controls.chosen.update(number for number, one in applied.items() if one is None)

    def check(self, states: Sequence[CrashState]) -> None:
        """Choose controls for :meth:`settle` at random among those of the observed ``states`` that bob did not mount.
        If there are few of them, choose all."""
        wanted = set(states)
        known = enumerate(self.ledger.states)
        self.controls.of_bare([n for n, state in known if state in wanted and n not in self.mounts.mounted])

    def divide(self) -> Division:
        """Find the outcomes of all legal states without torn writes. If that takes too many mounts, the division is not
        complete. Raises the errors of :meth:`observe`."""
        first = len(self.ledger.states)
        courses = Courses(self.known, self._plan.legal, self._plan.composer)
        parts, mounts, spent = MOST_PARTS, 0, 0
        while parts > 0:
            parts -= courses.advance(self._batch, parts)
            gaps = list(courses.open)[: self._batch]
            mounts = mounts or self._worth(courses)
            if not gaps:
                break
            # A partial division claims nothing. Also, its states differ only in the last reads, and say less than other
            # states.
            if spent + len(gaps) > mounts:
                courses.give_up(parts)
                break
            spent += len(gaps)
            self._told(0)  # the caller may want to stop
            batch = self.ledger.add(self._plan.legal.some(courses.open[gap][0]) for gap in gaps)
            for gap, (number, mounted) in zip(gaps, self.mounts.mount(batch).items(), strict=True):
                self._learn(number, self._plan.composer.contents(self.ledger.states[number]), mounted)
                courses.reopen(gap)
        self.ledger.rank(range(first, len(self.ledger.states)))
        self._check_whole(courses.settled)
        return Division(courses.settled, courses.is_complete)

    def mix(self) -> None:
        """Find mixtures until the outcomes of most torn states are known. A mixture (:mod:`bob.observe.mixtures`) is a
        set of torn states that differ only in sectors of file data. The search makes at most as many mounts as bob has
        already made for this workload. It also makes at most a sixth of the mounts that ``Effort.budget`` allows.
        Raises the errors of :meth:`observe`. Raises Misprediction if a control (a random state of a mixture) has a file
        with other bytes than predicted."""
        if self._effort.mixing is None or self.known.forgets or self._session.forgets:
            return
        chance = Random(f"{self._effort.seed} mixtures")
        found = Mixtures(self.known, self._plan, self._session.findings)
        left, legal = self._mixing_mounts, self._plan.nothing_explored().legal_torn
        if left < LEAST_MIXED or not found.is_possible:
            return
        known, draws, tried = self._torn_known(), MOST_FRUITLESS, set[bytes]()
        while left >= LEAST_MIXED and known < ENOUGH * legal and not self._is_refuted:
            worth = found.worth([mixture for mixture, _rows in self._mixtures])
            worth = [(mixture, more) for mixture, more in worth if mixture.key not in tried]
            wanted = [(mixture, more, self._rows(found, mixture, chance, left - 1)) for mixture, more in worth]
            self._left_out |= {
                mixture.key: (mixture, why) for mixture, _more, why in wanted if isinstance(why, TornCause)
            }
            possible = [(mixture, more, rows) for mixture, more, rows in wanted if not isinstance(rows, TornCause)]
            if possible:
                mixture, more, rows = max(possible, key=lambda one: Fraction(one[1], len(one[2]) + 1))
                tried.add(mixture.key)
                self._left_out.pop(mixture.key, None)
                left -= self._mix(found, mixture, rows, chance)
                is_taken = bool(self._mixtures) and self._mixtures[-1][0] is mixture
                known, draws = known + is_taken * more, MOST_FRUITLESS
                continue
            # Observe a random torn state that is unknown: it shows what most of these states have in common.
            draws -= 1
            if draws < 0 or (state := self._random_unknown(chance)) is None:
                break
            left -= len(self._numbers([state]))

    @property
    def _mixing_mounts(self) -> int:
        return min(len(self.mounts.here), self._effort.budget // MIXED_SHARE)

    def _torn_known(self) -> int:
        plan = self._plan
        courses = TornCourses(plan.parts, plan.composer).known(self.known)
        return sum(course.states - plan.legal.count(plan.parts.whole(course.cube)) for course in courses)

    def _rows(self, found: Mixtures, mixture: Mixture, chance: Random, most: int) -> list[CrashState] | TornCause:
        """Return the states of ``mixture`` that bob must still mount before it can predict the other states of the
        mixture. If these are more than ``most``, or if bob cannot mount some of them, return a cause instead: BUDGET or
        UNTESTABLE."""
        have = [kept for number in self._inside(mixture) if (kept := self._kept(mixture, number)) is not None]
        masks = missing_rows(len(mixture.parts), have, chance)
        if masks is None:
            return TornCause.UNTESTABLE
        states = [state for mask in masks if (state := found.row(mixture, mask)) is not None]
        if len(states) < len(masks):
            return TornCause.UNTESTABLE
        return states if len(states) <= most else TornCause.BUDGET

    def _inside(self, mixture: Mixture) -> list[int]:
        """Return the numbers of the mounted states that are members of ``mixture``, whatever bob mounted them for."""
        return [number for number in sorted(self.mounts.mounted) if self._kept(mixture, number) is not None]

    def _kept(self, mixture: Mixture, number: int) -> int | None:
        return mixture.kept(self._contents(number))

    def _random_unknown(self, chance: Random) -> CrashState | None:
        """Return a random torn state whose outcome is unknown: it is in no known course, and in no mixture that bob
        uses for predictions. Return None if such a state is hard to find."""
        for _ in range(MOST_DRAWN):
            state = self._plan.parts.legal.sample(Cube(), chance)
            if state.torn and self._is_unknown(self._plan.composer.contents(state)):
                return state
        return None

    def _is_unknown(self, contents: Contents) -> bool:
        mixed = any(mixture.kept(contents) is not None for mixture, _rows in self._mixtures)
        return not mixed and isinstance(self.known.find(contents), Gap)

    def _mix(self, found: Mixtures, mixture: Mixture, rows: Sequence[CrashState], chance: Random) -> int:
        """Mount the states ``rows`` of ``mixture``, and then random states of it. If each mounted state has the tree of
        files that the mixture predicts, add the mixture to those that bob uses for predictions. Return the number of
        mounts. In this number, all random states together count as one mount, so they hardly use up the budget for
        mixtures. The user chose the number of random states by the effort's ``audit``."""
        assert self._effort.mixing is not None
        mounted = len(rows)
        pure = [state for state in rows if self._is_pure(mixture, state)]
        self._numbers(pure)
        inside = self._inside(mixture)
        ends = [number for number in inside if self._kept(mixture, number) in (0, mixture.every)]
        first, last = (next((n for n in ends if self._kept(mixture, n) == kept), None) for kept in (0, mixture.every))
        if first is None or last is None or not self._shows(found, mixture, ends):
            return len(pure)
        one, other = (self._session.findings.observation(self.ledger.found[number]) for number in (first, last))
        if not self._effort.mixing(one, other):
            self._unjudged.append(mixture)
            return len(pure)
        self._numbers([state for state in rows if state not in pure])
        inside = self._inside(mixture)
        if not all(self._is_shown(found, mixture, number) for number in inside):
            # A sector that passes through by itself does not do so beside some other sectors. So bob trusts no mixture
            # of this workload.
            self._is_refuted = True
            self._mixtures.clear()
            return mounted
        if not self._shows(found, mixture, inside):
            return mounted
        for _ in range(max(1, ceil(self._effort.audit * len(inside)))):
            if (state := self._member(found, mixture, chance)) is not None:
                inside += self._numbers([state])
        self._check_shown(found, mixture, inside)
        if self._shows(found, mixture, inside):
            self._mixtures.append((mixture, tuple(dict.fromkeys((first, last, *inside)))))
        return mounted + 1

    def _member(self, found: Mixtures, mixture: Mixture, chance: Random) -> CrashState | None:
        """Return a random member of ``mixture`` that is in no known course. Return None if such a member is hard to
        find."""
        drawn = (found.member(mixture, chance) for _ in range(MOST_DRAWN))
        return next(
            (state for state in drawn if isinstance(self.known.find(self._plan.composer.contents(state)), Gap)), None
        )

    def _is_pure(self, mixture: Mixture, state: CrashState) -> bool:
        return mixture.kept(self._plan.composer.contents(state)) in (0, mixture.every)

    def _is_shown(self, found: Mixtures, mixture: Mixture, number: int) -> bool:
        return found.is_shown(mixture, self.ledger.states[number], self.ledger.found[number])

    def _shows(self, found: Mixtures, mixture: Mixture, numbers: Iterable[int]) -> bool:
        """Return whether the mounted states with these ``numbers``, which are in ``mixture``, agree with its
        predictions. In each state, each file must have the bytes that its sectors have on the disk. Also, recovery must
        depend on the same sectors as in the mixture's leaf, the mounted state that bob derived the mixture from."""
        return all(
            self._is_shown(found, mixture, number) and found.reads_alike(mixture, self.ledger.states[number])
            for number in numbers
        )

    def _check_shown(self, found: Mixtures, mixture: Mixture, numbers: Iterable[int]) -> None:
        for number in numbers:
            if not self._is_shown(found, mixture, number):
                self.mounts.believe_own()
                words = self._session.findings.observation(self.ledger.found[number]).summary
                raise Misprediction(
                    f"a control of the predictions failed: crash state {number} ({words}) has other data than the "
                    "sectors of its files"
                )

    def count(self, division: Division) -> StateCounts:
        """Count how many legal states each explored state stands for. The *easiest* state of an outcome has the fewest
        torn writes, then the fewest unbroken series of writes that are on the disk. It stands for all states in the
        known courses with this outcome, except those that bob explored one by one. Raises Misprediction if a mounted
        state contradicts a prediction."""
        for course in division.courses:
            state = self._plan.legal.some(course.cube)
            if self.ledger.is_easier(state, course.outcome):
                self._predicted(state, course)
        parts, composer = self._plan.parts, self._plan.composer
        spoken_for: Counter[int] = Counter()
        whole: Counter[int] = Counter()
        for course in division.courses:
            whole[course.outcome] += course.states
        whole_elsewhere: Counter[int] = Counter()

        def tallied() -> Iterator[Course]:
            for course in TornCourses(parts, composer).known(self.known):
                spoken_for[course.outcome] += course.states
                if not division.is_complete:
                    whole_elsewhere[course.outcome] += self._plan.legal.count(parts.whole(course.cube))
                yield course

        self._check_torn(*self.controls.of_very_many(tallied()))
        whole |= whole_elsewhere
        if self.known.forgets:  # then bob does not find all torn states
            spoken_for |= whole
        counts = StateCounts()
        for number, state in enumerate(self.ledger.states):
            outcome = self.known.find(composer.contents(state))
            if isinstance(outcome, Gap) or not parts.separate(state):
                continue  # the state was repaired, or the division does not count it
            counts.states[number] = self._speaks_for_itself(number, outcome)
            counts.whole[number] = 0 if state.torn else counts.states[number]
            spoken_for[outcome] -= counts.states[number]
            whole[outcome] -= counts.whole[number]
        for outcome, count in spoken_for.items():
            speaker = self.ledger.speaker(outcome)
            counts.states[speaker] = counts.states.get(speaker, 1) + count
            itself = int(not self.ledger.states[speaker].torn)
            counts.whole[speaker] = counts.whole.get(speaker, itself) + whole[outcome]
        return replace(counts, mixtures=tuple(self._mixed()))

    def look_around(self, counts: StateCounts) -> None:
        """Predict the outcomes of neighbours of the easiest states (:meth:`count`). A neighbour differs in one write
        from such a state, so it shows whether that write decides the outcome. In ``counts``, a neighbour gets the
        number 0, because another explored state already stands for it."""
        first = len(self.ledger.states)
        around = Neighbours(self._plan.points)
        groups = [
            tuple(around.groups(self.ledger.states[number])) for number in self.ledger.easiest_first()[:MOST_RANKED]
        ]
        # First come the departures of all easiest states from a clean state, then their other neighbours.
        wanted = dict.fromkeys(state for some in zip(*groups, strict=True) for group in some for _write, state in group)
        new = [state for state in wanted if self.ledger.number_of(state) is None]
        for state in islice(new, MOST_AROUND):
            outcome = self.known.find(self._plan.composer.contents(state))
            if not isinstance(outcome, Gap):
                [number] = self.ledger.add([state])
                self.ledger.found[number], counts.states[number], counts.whole[number] = outcome, 0, 0
        self.ledger.rank(range(first, len(self.ledger.states)))

    def settle(self) -> None:
        """Mount the chosen controls: some predicted states, some states whose disk bob mounted for another workload,
        and some that the host has recovered. If each has the expected outcome, trust all outcomes. Raises the errors of
        :meth:`observe`."""
        chosen = {*self.controls.chosen, *self.ledger.easiest()} - self.mounts.mounted
        again = self.controls.of_recalled(self.mounts.recalled)
        on_host = self.controls.of_recovered(sorted(self.mounts.on_host))
        anew = self.controls.chosen.union(again, on_host)
        batch = sorted(chosen.union(again, on_host))
        for number, mounted in self.mounts.mount(batch, audit=True, anew=anew, in_guest=True).items():
            if mounted.outcome != self.ledger.found[number]:
                by = "the same disk in another workload" if number in again else "the reads of recovery"
                by = BY_HOST if number in on_host else by
                raise self._mispredicted(number, self.ledger.found[number], mounted.outcome, by)
        self.controls.chosen.clear()
        self.mounts.on_host.clear()
        self.mounts.believe_all()

    def control(self, numbers: Sequence[int]) -> None:
        """Verify the states with these ``numbers``, which the host has recovered: let the guest recover them again, and
        compare the outcomes. Raises the errors of :meth:`observe`."""
        if numbers:
            for number, mounted in self.mounts.mount(numbers, audit=True, anew=numbers, in_guest=True).items():
                if mounted.outcome != self.ledger.found[number]:
                    raise self._mispredicted(number, self.ledger.found[number], mounted.outcome, BY_HOST)

    def causes(self, counts: StateCounts, subject: Subject) -> tuple[CauseCount, ...]:
        """Return the causes why the outcomes of torn states are unknown. Each cause comes with a number, which says how
        many torn states of a random sample are unknown for this cause. Return () if the outcomes of most torn states
        are known."""
        torn = sum(
            states - counts.whole.get(number, 0)
            for number, states in counts.states.items()
            if self._is_mounted(self.ledger.found[number])
        )
        if torn >= MOST * self._plan.nothing_explored().legal_torn:
            return ()
        looked = self._of_mixtures, self._is_mounted
        return causes_of_unknown(self._plan, subject, self.known, self._effort.seed, *looked, torn)

    def _is_mounted(self, outcome: int) -> bool:
        return self._session.findings.mounted(outcome)

    def _of_mixtures(self, contents: Contents) -> TornCause | None:
        taken = [mixture for mixture, _rows in self._mixtures]
        for cause, mixtures in (
            (TornCause.MIXED, taken),
            (TornCause.UNJUDGED, self._unjudged),
            *((cause, [mixture]) for mixture, cause in self._left_out.values()),
        ):
            if any(mixture.kept(contents) is not None for mixture in mixtures):
                return cause
        return None

    def _mixed(self) -> Iterator[MixedStates]:
        found = Mixtures(self.known, self._plan, self._session.findings)
        for mixture, rows in self._mixtures:
            # Later mounts are controls, too.
            inside = self._inside(mixture)
            self._check_shown(found, mixture, inside)
            more = found.more(mixture)
            if self._shows(found, mixture, inside) and more is not None and more > 0:
                yield MixedStates(more, rows)

    def _numbers(self, states: Sequence[CrashState]) -> list[int]:
        """Observe those of ``states`` that have not been observed yet. Return the numbers of all of them."""
        self.observe([state for state in dict.fromkeys(states) if self.ledger.number_of(state) is None], counted=False)
        numbers = map(self.ledger.number_of, states)
        return [number for number in numbers if number is not None]

    def _worth(self, courses: Courses) -> int:
        """Return how many mounts a full division may take. For file systems whose recovery forgets old contents of
        blocks (:mod:`bob.observe.predict`), return twice the budget. For other file systems, bob estimates how many
        mounts the division takes. Return three times the budget if the estimate is at most twice the budget, and
        otherwise 0."""
        budget = self._effort.budget
        if self._session.forgets:
            return 2 * budget
        settled = sum(course.states for course in courses.settled)
        left = self._plan.legal.count(Cube()) - settled
        expected = min(left, len(courses.settled) * left // settled) if settled else left
        return 3 * budget if expected <= 2 * budget else 0

    def _applied(self, number: int, contents: Contents) -> Prediction[int] | None:
        leaf = self.known.leaf(contents)
        if isinstance(leaf, Gap):
            return None
        assert leaf.outcome is not None
        away = self._contents(leaf.source)
        return Prediction(number, leaf.source, leaf.outcome, int(np.count_nonzero(contents != away)))

    def _check_whole(self, courses: Sequence[Course]) -> None:
        legal, applied = self._plan.legal, self._of_several(courses, torn=False)
        for one, is_checked in self.controls.of_whole(applied, len(courses), self._chosen(torn=False)):
            if is_checked:
                state = legal.sample(one.item.cube, self.controls.random)
            else:
                state = legal.farthest(one.item.cube, self._plan.medium(self.ledger.states[one.leaf]))
            self.controls.chosen.add(self._predicted(state, one.item))

    def _check_torn(self, courses: Sequence[Course], count: int) -> None:
        applied = self._of_several(courses, torn=True)
        for one in self.controls.take(applied, self.controls.wanted(count, done=self._chosen(torn=True))):
            # Draw any state of the course: the farthest state is never torn, since it has all of each write or nothing
            # of it.
            state = self._plan.parts.legal.sample(one.item.cube, self.controls.random)
            self.controls.chosen.add(self._predicted(state, one.item))

    def _of_several(self, courses: Sequence[Course], *, torn: bool) -> list[Prediction[Course]]:
        composer, legal = self._plan.composer, self._plan.parts.legal if torn else self._plan.legal
        applied: list[Prediction[Course]] = []
        for course in courses:
            if course.states > 1:
                leaf = self.known.leaf(composer.contents(legal.some(course.cube)))
                if isinstance(leaf, Gap):
                    state = legal.sample(course.cube, self.controls.random)
                    self.controls.chosen.add(self._predicted(state, course))
                else:
                    applied.append(Prediction(course, leaf.source, course.outcome))
        return applied

    def _chosen(self, *, torn: bool) -> int:
        return sum(bool(self.ledger.states[number].torn) == torn for number in self.controls.chosen)

    def _predicted(self, state: CrashState, course: Course) -> int:
        if (known := self.ledger.number_of(state)) is not None:
            return known
        [number] = self.ledger.add([state])
        self.ledger.found[number] = course.outcome
        self.ledger.rank([number])
        return number

    def _predict(self, waiting: dict[int, Contents], gaps: dict[int, Gap]) -> list[int]:
        """Predict outcomes of the states in ``waiting``, and remove the predicted states from it. In each remaining
        state, recovery reads, at some point, a content that no mounted state had there. For each first such read and
        its content, return one state. If bob makes no predictions, return all states."""
        if not self._effort.predicting:
            return list(waiting)
        kinds: dict[Gap, int] = {}
        for number, contents in tuple(waiting.items()):
            # After a merge, new knowledge may be elsewhere than the gap.
            found = self.known.find(contents, None if self.known.forgets else gaps.get(number))
            if isinstance(found, Gap):
                gaps[number] = found
                kinds.setdefault(found, number)
            else:
                self.ledger.found[number] = found
                del waiting[number]
        return list(kinds.values())

    def _learn(self, number: int, contents: Contents, mounted: MountedState) -> None:
        self.ledger.found[number] = mounted.outcome
        # Only the first state with a refusal is repaired: a state like it would be refused and not repaired.
        if not self._effort.predicting or self._session.findings.repaired(mounted.outcome):
            return
        try:
            read = places_read(self._plan.composer.sectors, mounted.accesses)
            self.known.add(contents, read, mounted.outcome, mounted.left, number)
        except Contradiction as found:
            raise self._mispredicted(number, found.one, found.other) from None

    def _speaks_for_itself(self, number: int, outcome: int) -> int:
        """Return 1 if the mounted state has another outcome than the other states of its course, which is possible only
        because bob repaired it. Return 0 if the state has the outcome of its course, and can be counted with the
        course."""
        found = self.ledger.found[number]
        if found != outcome and not self._session.findings.repaired(found):
            raise self._mispredicted(number, outcome, found)
        return int(found != outcome)

    def _mispredicted(self, number: int, predicted: int, seen: int, by: str = "the reads of recovery") -> Misprediction:
        """Distrust all outcomes that bob did not see in a mount for this workload. Return the error about state
        ``number``, which had the outcome ``seen`` instead of the outcome ``predicted``. ``by`` says in words what bob
        predicted from."""
        self.mounts.believe_own()
        one, other = (
            f"outcome {outcome} ({self._session.findings.observation(outcome).summary})"
            for outcome in (predicted, seen)
        )
        kind = HostMistaken if by == BY_HOST else Misprediction
        return kind(
            f"a control of the predictions failed: bob predicted from {by} that crash state {number} has {one}, "
            f"but when it was mounted it had {other}"
        )
