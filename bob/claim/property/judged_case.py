"""From observations to the verdict of one workload. Pure; judging again needs no guest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bob.claim.property.presence import Oracle
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
from bob.observe.easiest import Easiest
from bob.observe.observation import Observation, Presence
from bob.observe.observations import ExploredState, Observations
from bob.trace.recording import Statuses
from bob.workload.history import History
from bob.workload.operations import At, Workload
from bob.workload.simulation import simulate


@dataclass(frozen=True, slots=True)
class Evidence:
    """The crash state of a workload that shows a violation best, and what it shows: one in which the later operation is
    there whole, then the one that departs least from a clean prefix."""

    state: CrashState
    outcome: int
    violation: Violation


@dataclass(frozen=True, slots=True)
class WorkloadVerdict:
    """What a workload says of a property by those of its ``states`` that can be judged; ``reason`` says why it is
    UNKNOWN. For a FAILS, in how many states it is broken (``violations``), the ``evidence``, and all states that were
    seen to break it (``showing``)."""

    verdict: Verdict
    states: States
    violations: int = 0
    reason: str | None = None
    evidence: Evidence | None = None
    showing: tuple[ExploredState, ...] = ()


class JudgedCase:
    """A workload with everything that was observed of it, ready to be judged by any number of properties.

    ``states`` has what was seen of each explored state, ``observations`` each outcome (large ones:
    they are looked at one by one). ``coverage`` is what was observed; the attribute of this name says what can be
    judged of that. ``lost`` says why some outcomes are not known, ``inodes`` are the inode numbers by name before and
    after the operations, ``statuses`` what else stat said then. ``complete`` is the state with every write of the
    recording.

    Two states are controls: in the one from before the operations none is to be seen, and in the complete one, where
    the recording ended with everything written, none may be missing. Both must mount. Otherwise nothing that bob says
    of this workload can be believed, and every verdict is UNKNOWN: ``distrust`` says why, or is None. Where a control
    was not looked at, nothing holds: ``unseen`` says which one, or is None. (A crash after the last operation never
    leaves the state from before the operations.)
    """

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
    ) -> None:
        self.workload = workload
        self.history, _setup, _performed = simulate(workload)
        self.oracle = Oracle(self.history, inodes_of_things(self.history, *inodes), statuses)
        self._states = states
        self._lost = lost
        self._observations = observations
        # A state that does not mount belongs to no row of the table: it is a finding of its own.
        self._readings = {
            number: self.oracle.read(observation)
            for number, observation in enumerate(observations)
            if observation.mounted
        }
        self.coverage = judged_states(coverage, states, self._readings)
        self._outcomes = outcomes = {seen.state: seen.outcome for seen in states}
        self.distrust: str | None = None
        self.unseen: str | None = None
        self._control(outcomes.get(CrashState(0)), "before the operations", _THERE, must=workload.at is At.ANY)
        if workload.finish.is_settled and complete is not None:
            self._control(outcomes.get(complete), "with every write there", _MISSING, must=True)

    @classmethod
    def of(cls, case: Case, observed: Observations) -> JudgedCase:
        """A case with what was seen of its crash states."""
        return cls(
            case.workload,
            case.inodes,
            observed.states,
            observed.findings.observations(),
            observed.coverage,
            observed.lost,
            case.complete,
            case.statuses,
        )

    def _control(self, outcome: int | None, when: str, wrong: tuple[Presence, ...], *, must: bool) -> None:
        """Take note why nothing is to be believed, if ``outcome`` says ``wrong`` things of an operation; or that a
        control that ``must`` be seen was not."""
        if outcome is None:
            if must and self.unseen is None:
                self.unseen = f"a control was not seen: the state {when}"
        elif self.distrust is None:
            self.distrust = self._wrong(outcome, when, wrong)

    def _wrong(self, outcome: int, when: str, wrong: tuple[Presence, ...]) -> str | None:
        """What ``outcome`` says that a control must not say."""
        reading = self._readings.get(outcome)
        if reading is None:
            return f"a control failed: {when} the file system could not be mounted"
        for number in range(1, len(self.history.operations) + 1):
            if (presence := reading.of(number)) in wrong:
                return f"a control failed: {when} {quoted(self.history, number)} is {_WORDS[presence]}"
        damage = (*reading.damage, *reading.collateral)
        return f"a control failed: {when} {damage[0].about}" if damage else None

    @property
    def unmountable(self) -> list[ExploredState]:
        """The explored states that did not mount."""
        return [seen for seen in self._states if seen.outcome is not None and seen.outcome not in self._readings]

    @staticmethod
    def asks(prop: Property, workload: Workload) -> bool:
        """Whether ``workload`` asks for ``prop``."""
        return bool(questions(prop, simulate(workload)[0]))

    def judge(self, prop: Property) -> WorkloadVerdict | None:
        """What this workload says of ``prop``; None if it does not ask for it."""
        asked = questions(prop, self.history)
        if not asked:
            return None
        broken = {number: question for number in self._readings if (question := self._clearest(prop, asked, number))}
        showing = [seen for seen in self._states if seen.outcome in broken]
        verdict, reason = Verdict.HOLDS, None
        if self.distrust is not None:
            verdict, reason, showing = Verdict.UNKNOWN, self.distrust, []
        elif showing:
            verdict = Verdict.FAILS
        elif self._lost is not None:
            verdict, reason = Verdict.UNKNOWN, self._lost
        elif self.coverage.explored == 0 and self.coverage.unmountable == 0:
            verdict, reason = Verdict.UNKNOWN, "no crash state was explored"
        elif self.coverage.explored == 0 or not self._readings:
            verdict, reason = Verdict.UNKNOWN, "no crash state that was explored could be mounted"
        elif self.unseen is not None:
            verdict, reason = Verdict.UNKNOWN, self.unseen
        breach = Easiest[ExploredState]()
        for seen in showing:
            breach.add(seen.state, seen, seen.states, before=(not self._is_clear(broken, seen),))
        evidence = self.evidence(prop, breach.shown) if breach else None
        return WorkloadVerdict(verdict, self.coverage, breach.states, reason, evidence, tuple(showing))

    def evidence(self, prop: Property, seen: ExploredState) -> Evidence:
        """What a state that was ``seen`` to break ``prop`` shows."""
        outcome = seen.outcome
        assert outcome is not None
        question = self._clearest(prop, questions(prop, self.history), outcome)
        assert question is not None
        reading, observation = self._readings[outcome], self._observations[outcome]
        found = violation(prop, question, self.history, self.oracle, reading, observation)
        assert found is not None
        return Evidence(seen.state, outcome, found)

    def blamed(self, prop: Property, seen: ExploredState) -> tuple[int, ...]:
        """The operations that are not there as they should be in a state that was ``seen`` to break ``prop``."""
        assert seen.outcome is not None
        question = self._clearest(prop, questions(prop, self.history), seen.outcome)
        assert question is not None
        return blamed(prop, question, self.history, self._readings[seen.outcome])

    @property
    def bare(self) -> CrashState:
        """The state that the earliest crash leaves where nothing of what was pending then is on the medium."""
        return CrashState(min((seen.state.point for seen in self._states), default=0))

    def satisfies(self, prop: Property | None, state: CrashState) -> bool:
        """Whether ``state`` is known to satisfy ``prop``; to mount, where that is None."""
        outcome = self._outcomes.get(state)
        if outcome is None or outcome not in self._readings:
            return False
        return prop is None or self._clearest(prop, questions(prop, self.history), outcome) is None

    def observation(self, outcome: int) -> Observation:
        """What outcome number ``outcome`` is."""
        return self._observations[outcome]

    def outcome(self, state: CrashState) -> int | None:
        """What was seen of ``state``: the number of its outcome; None where that is not known."""
        return self._outcomes.get(state)

    def _clearest(self, prop: Property, asked: Sequence[Question], number: int) -> Question | None:
        """The first question that observation ``number`` answers wrongly, of those whose later operation is there whole
        if it does so to any."""
        reading = self._readings[number]
        broken = (question for question in asked if is_broken(prop, question, self.history, reading))
        first = next(broken, None)
        if first is None or is_clear(first, reading):
            return first
        return next((question for question in broken if is_clear(question, reading)), first)

    def _is_clear(self, broken: Mapping[int, Question], seen: ExploredState) -> bool:
        assert seen.outcome is not None
        return is_clear(broken[seen.outcome], self._readings[seen.outcome])


_THERE = (Presence.FULL, Presence.PARTIAL)
_MISSING = (Presence.NONE, Presence.PARTIAL)
_WORDS = {Presence.FULL: "there", Presence.PARTIAL: "there in part", Presence.NONE: "not there"}


def inodes_of_things(history: History, *known: Mapping[str, int]) -> dict[int, int]:
    """Inode number of each thing: by the names that it has before (``known[0]``) and after (``known[1]``) all steps."""
    inodes = {}
    for step, numbers in zip((history.steps[0], history.steps[-1]), known, strict=True):
        for path, identity in step.names.items():
            if path in numbers:
                inodes[identity] = numbers[path]
    return inodes
