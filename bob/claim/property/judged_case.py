"""The verdicts on one workload, from its observed crash states. A verdict says whether a property holds or fails. An
*outcome* is what a mount of a crash state showed. A *question* is a property, applied to certain operations. bob reads
all that it needs from the files of a run. So it can judge a finished run again without a virtual machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from bob.claim.property.readings import OutcomeReadings
from bob.claim.property.rules import (
    Property,
    Question,
    Violation,
    blamed,
    is_broken,
    is_clear,
    questions,
    quoted,
    violation,
)
from bob.claim.verdict import Verdict, judged_states
from bob.crash.case import Case
from bob.crash.coverage import States
from bob.crash.state import CrashState
from bob.observe.easiest import Easiest, easiest
from bob.observe.observation import Observation, Presence
from bob.observe.observations import ExploredState, MixedStates, Observations
from bob.observe.unknown_torn import MOST, CauseCount, TornCause
from bob.trace.recording import Statuses
from bob.workload.operations import At, Workload
from bob.workload.simulation import simulate


@dataclass(frozen=True, slots=True)
class Evidence:
    """The crash state that best shows a violation, with its outcome. If several states show the violation, bob takes
    one that is easy to explain: it has few torn writes, and few gaps between the writes that are on the disk. For a
    property about the order of two operations, bob prefers a state where the later operation is there as a whole."""

    state: CrashState
    outcome: int
    violation: Violation


@dataclass(frozen=True, slots=True)
class WorkloadVerdict:
    """The verdict on a property, from the crash states that bob can judge. ``states`` has their number. ``reason`` says
    why a verdict is UNKNOWN. For the verdict FAILS, ``showing`` has the explored states that break the property, and
    ``violations`` is the number of crash states that they represent. ``evidence`` has the state that shows the breach
    best. For the verdict HOLDS, ``unknown_torn`` is the main cause why bob did not explore torn states. None says that
    bob explored most of them."""

    verdict: Verdict
    states: States
    violations: int = 0
    reason: str | None = None
    evidence: Evidence | None = None
    showing: tuple[ExploredState, ...] = ()
    unknown_torn: TornCause | None = None


class JudgedCase:
    """A workload with its observations, ready to be judged by any number of properties.

    ``observations`` has the outcomes, and each of ``states`` has the index of its outcome there. The argument
    ``coverage`` counts all observed states; the attribute ``coverage`` counts only the states that bob can judge. Each
    of ``mixtures`` is a set of torn states that differ only in sectors of file data (:mod:`bob.observe.mixtures`). bob
    has mounted only some states of such a set. If a property holds, its coverage may include the others
    (:meth:`_coverage_with_mixtures`). ``unknown_torn`` has the causes why torn states are unknown. ``lost`` says why
    outcomes are missing. ``inodes`` and ``statuses`` have two mappings each, whose keys are names. The first mapping is
    from before the operations, and the second from after them. ``readings`` has what the oracle has read in some of
    ``observations`` already (None: nothing).

    Two *control states* have a known right outcome, and must mount. In the state before the operations, nothing of the
    operations may be there. In the state ``complete``, which has every write, all operations must be there. bob checks
    the state ``complete`` only if the recording ended when everything was written. If a control fails, ``distrust``
    says why each verdict is UNKNOWN. If bob did not see a control, ``unseen`` says which one, and bob gives no verdict
    HOLDS."""

    def __init__(
        self,
        workload: Workload,
        inodes: Sequence[Mapping[str, int]],
        states: Sequence[ExploredState],
        observations: Sequence[Observation],
        coverage: States,
        lost: str | None,
        complete: CrashState | None = None,
        statuses: Sequence[Statuses] = (),
        mixtures: Sequence[MixedStates] = (),
        unknown_torn: Sequence[CauseCount] = (),
        readings: OutcomeReadings | None = None,
    ) -> None:
        self.workload = workload
        readings = readings or OutcomeReadings(workload, inodes, statuses)
        self.history, self.oracle = readings.history, readings.oracle
        self._states = states
        self._mixtures = mixtures
        self._unknown_torn = unknown_torn
        self._lost = lost
        self._observations = observations
        # A state that does not mount belongs to no row of the table: it has a finding of its own.
        self._readings = readings.read(observations)
        self.coverage = judged_states(coverage, states, self._readings)
        self._outcomes = outcomes = {seen.state: seen.outcome for seen in states}
        self.distrust: str | None = None
        self.unseen: str | None = None
        self._control(outcomes.get(CrashState(0)), "before the operations", _THERE, must=workload.at is At.ANY)
        if workload.finish.is_settled and complete is not None:
            self._control(outcomes.get(complete), "with every write there", _MISSING, must=True)

    @classmethod
    def of(cls, case: Case, observed: Observations, readings: OutcomeReadings | None = None) -> JudgedCase:
        return cls(
            case.workload,
            case.inodes,
            observed.states,
            observed.findings.observations(),
            observed.coverage,
            observed.lost,
            case.complete,
            case.statuses,
            observed.mixtures,
            observed.unknown_torn,
            readings,
        )

    def _control(self, outcome: int | None, when: str, wrong: tuple[Presence, ...], *, must: bool) -> None:
        """Check a control state with this ``outcome``, or None if bob did not see the state. ``wrong`` lists presences,
        such as PARTIAL, that no operation may have in this state. If an operation has one of them, set ``distrust``. If
        bob did not see the state, and ``must`` is True, set ``unseen``."""
        if outcome is None:
            if must and self.unseen is None:
                self.unseen = f"bob did not see a control: the state {when}"
        elif self.distrust is None:
            self.distrust = self._wrong(outcome, when, wrong)

    def _wrong(self, outcome: int, when: str, wrong: tuple[Presence, ...]) -> str | None:
        reading = self._readings.get(outcome)
        if reading is None:
            return f"a control failed: {when} the file system could not be mounted"
        for number in range(1, len(self.history.operations) + 1):
            if (presence := reading.of(number)) in wrong:
                return f"a control failed: {when} {quoted(self.history, number)} is {_WORDS[presence]}"
        if self.workload.is_imported:  # bob does not know the tree that this control should have
            return None
        damage = (*reading.damage, *reading.collateral)
        return f"a control failed: {when} {damage[0].about}" if damage else None

    @property
    def unmountable(self) -> list[ExploredState]:
        return [seen for seen in self._states if seen.outcome is not None and seen.outcome not in self._readings]

    @staticmethod
    def asks(prop: Property, workload: Workload) -> bool:
        return bool(questions(prop, simulate(workload)[0]))

    def judge(self, prop: Property) -> WorkloadVerdict | None:
        """Return the verdict on ``prop``; None if the workload does not test it."""
        asked = questions(prop, self.history)
        if not asked:
            return None
        broken = {number: question for number in self._readings if (question := self._clearest(prop, asked, number))}
        showing = [seen for seen in self._states if seen.outcome in broken]
        if self.distrust is not None:
            showing = []
        reason = None if showing else self.doubt
        verdict = Verdict.FAILS if showing else Verdict.HOLDS if reason is None else Verdict.UNKNOWN
        breach = Easiest[ExploredState]()
        for seen in showing:
            breach.add(seen.state, seen, seen.states, before=(not self._is_clear(broken, seen),))
        evidence = self.evidence(prop, breach.shown) if breach else None
        is_mixed = verdict is Verdict.HOLDS and prop.call is None
        coverage = self._coverage_with_mixtures if is_mixed else self.coverage
        cause = self._main_cause(coverage, is_mixed=is_mixed) if verdict is Verdict.HOLDS else None
        return WorkloadVerdict(verdict, coverage, breach.states, reason, evidence, tuple(showing), cause)

    def _main_cause(self, coverage: States, *, is_mixed: bool) -> TornCause | None:
        """Return the most frequent cause why ``coverage`` lacks torn states. ``is_mixed`` says that ``coverage``
        includes states of mixtures. Return None if ``coverage`` has most torn states, or if bob did not look for
        causes."""
        if coverage.explored_torn is not None and coverage.explored_torn >= MOST * coverage.legal_torn:
            return None
        counts_all = is_mixed and all(map(self._is_judged_by_rows, self._mixtures))
        causes = (one.cause for one in self._unknown_torn)
        return next((cause for cause in causes if not (counts_all and cause is TornCause.MIXED)), None)

    @cached_property
    def _coverage_with_mixtures(self) -> States:
        """The coverage together with the torn states of the mixtures. A mixture is a set of torn states that differ
        only in sectors of file data. bob mounted only some of these states, the *rows* of the mixture. In the rows, any
        two sectors occur in all four combinations of old and new. So a property that holds in all rows holds in all
        states of the mixture. Properties of calls are an exception, since they may depend on all sectors of an
        operation."""
        more = sum(mixture.states for mixture in self._mixtures if self._is_judged_by_rows(mixture))
        explored = self.coverage.explored + more
        is_all = explored == self.coverage.legal_sectors
        return replace(self.coverage, explored=explored, exhaustive="sectors" if is_all else self.coverage.exhaustive)

    def _is_judged_by_rows(self, mixture: MixedStates) -> bool:
        outcomes = [self._states[row].outcome for row in mixture.rows]
        if not all(outcome in self._readings for outcome in outcomes):
            return False
        one, other = (self._observations[outcome] for outcome in outcomes[:2] if outcome is not None)
        return self.oracle.is_mixed_by_sectors(one, other)

    @property
    def doubt(self) -> str | None:
        """The reason why bob cannot know that a property holds; None if bob can know it."""
        if self.distrust is not None or self._lost is not None:
            return self.distrust or self._lost
        if self.coverage.explored == 0 and self.coverage.unmountable == 0:
            return "no crash state was explored"
        if self.coverage.explored == 0 or not self._readings:
            return "no crash state that was explored could be mounted"
        return self.unseen

    def evidence(self, prop: Property, seen: ExploredState) -> Evidence:
        question, outcome = self._broken(prop, seen)
        reading, observation = self._readings[outcome], self._observations[outcome]
        found = violation(prop, question, self.history, self.oracle, reading, observation)
        assert found is not None
        return Evidence(seen.state, outcome, found)

    def blamed(self, prop: Property, seen: ExploredState) -> tuple[int, ...]:
        question, outcome = self._broken(prop, seen)
        return blamed(prop, question, self.history, self._readings[outcome])

    def _broken(self, prop: Property, seen: ExploredState) -> tuple[Question, int]:
        assert seen.outcome is not None
        question = self._clearest(prop, questions(prop, self.history), seen.outcome)
        assert question is not None
        return question, seen.outcome

    @property
    def bare(self) -> CrashState:
        """The crash state at the earliest time of an explored crash, without any pending write (a write that a crash
        may lose)."""
        return CrashState(min((seen.state.point for seen in self._states), default=0))

    def satisfies(self, prop: Property | None, state: CrashState) -> bool:
        """Return whether bob knows that ``state`` satisfies ``prop``. Without ``prop``, return whether bob knows that
        the state mounts."""
        outcome = self._outcomes.get(state)
        if outcome is None or outcome not in self._readings:
            return False
        return prop is None or self._clearest(prop, questions(prop, self.history), outcome) is None

    def observation(self, outcome: int) -> Observation:
        return self._observations[outcome]

    def outcome(self, state: CrashState) -> int | None:
        return self._outcomes.get(state)

    def _clearest(self, prop: Property, asked: Sequence[Question], number: int) -> Question | None:
        """Return a question whose answer in observation ``number`` is a violation, or None if all answers are right.
        Each question of ``asked`` is the property ``prop``, applied to certain operations. For a property about an
        order, prefer a question whose later operation is whole in the observation."""
        reading = self._readings[number]
        broken = (question for question in asked if is_broken(prop, question, self.history, reading))
        first = next(broken, None)
        if first is None or is_clear(first, reading):
            return first
        return next((question for question in broken if is_clear(question, reading)), first)

    def _is_clear(self, broken: Mapping[int, Question], seen: ExploredState) -> bool:
        assert seen.outcome is not None
        return is_clear(broken[seen.outcome], self._readings[seen.outcome])


def failing(properties: Sequence[Property], bench: JudgedCase) -> Iterator[WorkloadVerdict]:
    """Yield the verdict FAILS on each of ``properties`` that is broken in ``bench``. Leave out a property if
    :meth:`JudgedCase.judge` raises an exception for it."""
    for prop in properties:
        with suppress(Exception):
            said = bench.judge(prop)
            if said is not None and said.verdict is Verdict.FAILS:
                yield said


def evidence_states(properties: Sequence[Property], bench: JudgedCase) -> set[CrashState]:
    """Return the crash states of ``bench`` that best show which ``properties`` are broken: one state for each broken
    property. If some crash states do not mount, the result also has the state that is easiest to explain of these."""
    shown = {said.evidence.state for said in failing(properties, bench) if said.evidence is not None}
    return shown | ({easiest(bench.unmountable).shown.state} if bench.unmountable else set())


def judge_of_mixtures(
    workload: Workload, readings: OutcomeReadings
) -> Callable[[Observation, Observation], bool] | None:
    """Return a function of two observations. The function returns whether two sectors are enough to show each breach of
    a property in a mixture of these observations. A mixture has, for each sector of file data, the bytes of one
    observation or of the other. Return None if all crashes of ``workload`` come after a call's return, since bob cannot
    judge mixtures of such a workload."""
    if workload.at is not At.ANY:
        return None
    oracle = readings.oracle
    return lambda one, other: one.mounted and other.mounted and oracle.is_mixed_by_sectors(one, other)


_THERE = (Presence.FULL, Presence.PARTIAL)
_MISSING = (Presence.NONE, Presence.PARTIAL)
_WORDS = {Presence.FULL: "there", Presence.PARTIAL: "there in part", Presence.NONE: "not there"}
