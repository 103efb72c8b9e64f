"""Makes the witness of a program smaller: a crash state in which the disk did less that needs an explanation.

Nothing can be left out of a program's workload. It is recorded again, on the base of the witness, and the crashes after
the same output are looked at: first those whose state is a clean prefix, then those that depart from one by one write,
by two ... The guest mounts each state; the checker looks at each tree once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice

from bob.agent.client import Agent
from bob.agent.shared import ROOT
from bob.claim.checking import CheckerClaim, evidence
from bob.crash.departures import FARTHEST, distance, nearest
from bob.crash.neighbours import Neighbours, causes
from bob.crash.plan import Plan
from bob.crash.state import CrashState
from bob.errors import MalformedError, RecordingError, UsageError
from bob.judge.explaining import Explaining
from bob.judge.reliance import calls_with_effects, effects_of
from bob.observe.observation import Node
from bob.observe.observations import without_numbers
from bob.observe.session import CheckerRun, Session
from bob.program.answer import CheckerAnswer
from bob.program.case import ProgramCase
from bob.program.strace import SystemCall
from bob.progress import Progress
from bob.record.base import drop_base, put_base
from bob.record.recorder import put_program, record_program
from bob.run.program_recording import case_of, framed, framed_if_any, session_of, tellings
from bob.story.timeline import ProgramCallEvent
from bob.text import plural
from bob.witness.document import ShownState, Witness

BATCH = 10
"""So many states are mounted in one request."""
RECORDINGS = 3
"""So often a program is recorded anew before its violation counts as gone: when the kernel commits is not the program's
alone to say, least of all where another process syncs beside it."""


class ProgramShrinker:
    """Shrinks the witness ``found`` of a program, which breaks ``claim``.

    The agent's guest is in virtual time, and has the world that the program's packages are in. At each growth point
    about ``budget`` states of one departure are mounted at most.
    """

    def __init__(self, agent: Agent, found: Witness, claim: CheckerClaim, budget: int) -> None:
        self._agent, self._found, self._claim = agent, found, claim
        self._budget = budget

    def shrunk(self, progress: Progress) -> tuple[ShownState | None, Sequence[ProgramCallEvent]]:
        """What departs least of all that shows the same, with the program's calls up to the crash; None where nothing
        that was looked at shows it, in several recordings."""
        put_program(self._agent, self._claim.program)
        drop_base(self._agent, self._found.base)  # another run's base of the same configuration has the same name
        put_base(self._agent, self._found.base)
        for number in range(RECORDINGS):
            if number:
                progress.step(f"it does not show; recording the program again, {number + 1} of {RECORDINGS}")
            smaller, calls = self._recorded_again(progress)
            if smaller is not None:
                return smaller, calls
        return None, ()

    def _recorded_again(self, progress: Progress) -> tuple[ShownState | None, Sequence[ProgramCallEvent]]:
        """The same, of one recording."""
        found, program = self._found, self._claim.program
        try:
            completion = found.model.completion
            recorded = record_program(self._agent, found.configuration, found.base, program, completion=completion)
            again = case_of(found.configuration, program, found.base, recorded, found.model)
        except (UsageError, RecordingError, MalformedError):
            return None, ()
        window = next((window for window in again.windows if window.output == self._claim.output), None)
        if window is None:
            return None, ()
        case, ends = again.within(window), self._ends(again)
        checker = _Checker(session_of(self._agent, case, closely=True), case.plan, self._claim)
        for what, states in _candidates(case.plan, self._budget):
            progress.step(what)
            for state, answer in checker.answers(states):
                if self._is_the_same(answer):
                    showing = ShownState(case, state, self._claim, evidence(answer))
                    return self._explained(showing, checker, again, ends, progress)
        return None, ()

    def _is_the_same(self, answer: CheckerAnswer) -> bool:
        if answer.consequence is None:
            return False
        return without_numbers(evidence(answer)) == without_numbers(self._found.evidence)

    def _ends(self, again: ProgramCase) -> list[dict[str, Node] | None]:
        """The tree that the program found, and the one that it left at its clean end."""
        plan, session = again.plan, session_of(self._agent, again, closely=True)
        deltas = [plan.composer.delta(plan.controls[0]), plan.composer.delta(plan.controls[-1])]
        outcomes = session.observe(deltas, plan.composer.payload_since(0))
        trees = [session.findings.observation(outcome).tree for outcome in outcomes]
        return [None if tree is None else dict(tree) for tree in trees]

    def _explained(
        self,
        best: ShownState,
        checker: _Checker,
        again: ProgramCase,
        ends: Sequence[dict[str, Node] | None],
        progress: Progress,
    ) -> tuple[ShownState, Sequence[ProgramCallEvent]]:
        """The same with the writes that it hangs on, whose neighbours are looked at, and with the program's calls."""
        points, start = best.case.plan.points, best.case.plan.trace.start.seconds
        near = [state for group in Neighbours(points).groups(best.state) for _write, state in group]
        fine = {state for state, answer in checker.answers(iter(near)) if answer.consequence is None}
        showing = replace(best, causes=causes(points, best.state, fine.__contains__))
        tree = checker.tree(best.state)
        said = again.transcript.with_frames(framed_if_any(self._look_at_frames, progress))
        explaining = Explaining()
        effects = explaining.made(partial(effects_of, said.calls, ROOT, *ends), None)
        if said.offset is None or effects is None:
            return showing, ()
        offset = said.offset - start
        calls = explaining.made(partial(calls_with_effects, said.calls, effects, tree, offset), [])
        for note in explaining.notes:
            progress.step(note)
        return showing, (*calls, *tellings(said, start))

    def _look_at_frames(self) -> tuple[SystemCall, ...]:
        """It comes last: what the program leaves in the guest is in the way of no recording, and if the guest is lost,
        all else is known."""
        return framed(self._agent, self._found.configuration, self._found.base, self._claim.program)


class _Checker:
    """Crash states of ``plan`` as they are mounted and checked; the checker looks at each tree once."""

    def __init__(self, session: Session, plan: Plan, claim: CheckerClaim) -> None:
        self._session, self._plan, self._claim = session, plan, claim
        self._outcomes: dict[CrashState, int] = {}
        self._answers: dict[int, CheckerAnswer] = {}

    def answers(self, states: Iterator[CrashState]) -> Iterator[tuple[CrashState, CheckerAnswer]]:
        """What the checker says of each of these that mounts, in their order."""
        while some := list(islice(states, BATCH)):
            self._look_at([state for state in dict.fromkeys(some) if state not in self._outcomes])
            for state in some:
                if (answer := self._answers.get(self._outcomes[state])) is not None:
                    yield state, answer

    def tree(self, state: CrashState) -> dict[str, Node]:
        """The tree of one that was looked at."""
        return dict(self._session.findings.observation(self._outcomes[state]).tree or {})

    def _look_at(self, states: Sequence[CrashState]) -> None:
        composer, findings = self._plan.composer, self._session.findings
        payload = composer.payload_since(0)
        if not states:
            return
        outcomes = self._session.observe([composer.delta(state) for state in states], payload)
        self._outcomes.update(zip(states, outcomes, strict=True))
        new: dict[int, CrashState] = {}
        for state, outcome in zip(states, outcomes, strict=True):
            if outcome in self._answers:
                continue
            found = findings.observation(outcome)
            if found.mounted and found.unseen is None:  # or else two of them need not be one tree
                new.setdefault(outcome, state)
        if new:
            asked = [CheckerRun(composer.delta(state), self._claim.output) for state in new.values()]
            answers = self._session.check_program(asked, payload, self._claim.program.seconds)
            self._answers.update(zip(new, answers, strict=True))


def _candidates(plan: Plan, budget: int) -> Iterator[tuple[str, Iterator[CrashState]]]:
    """The crash states to look at, in groups, and what each group is: those near a clean prefix, then as a probe tries
    them."""
    for away in range(FARTHEST + 1):
        yield f"crash states that are {plural(away, 'write')} off a clean prefix", _departing(plan, away, budget)
    yield "other crash states", (candidate.state for candidate in plan.search(budget, seed=1))


def _departing(plan: Plan, away: int, most: int) -> Iterator[CrashState]:
    """The states that depart by ``away`` writes from a clean prefix, of each growth point ``most`` at most; each disk
    once."""
    seen: set[tuple[object, ...]] = set()
    each = (islice(nearest(plan.points, number, away), most) for number in range(len(plan.points)))
    for state in chain.from_iterable(each):
        # A state may be one of an earlier growth point.
        if distance(plan.points[state.point].pending, state) > away:
            continue
        contents = tuple(map(tuple, plan.composer.delta(state)))
        if contents not in seen:
            seen.add(contents)
            yield state
