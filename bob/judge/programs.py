"""From what was seen of a program's crash states, and what its checker said of them, to an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bob.claim.checking import CheckerClaim, evidence
from bob.claim.verdict import judged_states
from bob.crash.coverage import States, total
from bob.crash.state import CrashState
from bob.judge.looked import NOTHING_TOLD, Looked
from bob.judge.program_result import EasiestState, ProgramResult, Safety, Vulnerability
from bob.judge.reliance import Reliances
from bob.observe.easiest import Easiest
from bob.observe.observations import ExploredState, TroubleKind, without_numbers
from bob.program.answer import Consequence
from bob.program.program import Program


def judge(
    configuration: str,
    mount: str,
    looked: Sequence[Looked],
    notes: Sequence[str],
    reliances: Reliances | None = None,
    doubts: Sequence[str] = (),
) -> ProgramResult:
    """The answer by what was ``looked`` at, a window each; ``reliances`` explain what is refused. ``doubts`` are
    reasons why the recording lacks states that it should have.

    A checker that answers differently on the same tree is not believed, whatever it says of others. One that does not
    end is a finding, and no violation by itself.
    """
    found: dict[tuple[Consequence, str], _Harm] = {}
    trees = 0
    contradictions = [window.disagreed for window in looked if window.disagreed]
    reasons = [*contradictions, *doubts]
    parts: list[States] = []
    troubles: dict[TroubleKind, str] = {}
    for place, window in enumerate(looked):
        reasons += [window.observed.lost] if window.observed.lost else []
        for trouble in window.observed.troubles:
            troubles.setdefault(TroubleKind(trouble.kind), trouble.words)
        outcomes = {seen.outcome for seen in window.observed.states if seen.outcome is not None}
        trees += len(outcomes)
        mounting = {one for one in outcomes if window.observed.findings.observation(one).mounted}
        parts.append(judged_states(window.observed.coverage, window.observed.states, mounting))
        if not outcomes & mounting:
            reasons.append("nothing was explored")
        if mounting - window.answers.keys():
            reasons.append("the checker was not run on all that can be seen")
        for seen in window.observed.states:
            answer = None if seen.outcome is None else window.answers.get(seen.outcome)
            if seen.outcome is None or answer is None or answer.consequence is None:
                continue
            key = answer.consequence, without_numbers(answer.evidence)
            found.setdefault(key, _Harm()).add(place, seen, seen.outcome, window.told, evidence(answer))
    vulnerabilities = tuple(_vulnerability(key[0], harm, reliances) for key, harm in found.items())
    states = total(parts)
    if TroubleKind.READ_ONLY in troubles:
        reasons.append("some crash states mount read-only: the checker was not asked of each of them")
    harm = any(one.consequence is not Consequence.HANG for one in vulnerabilities)
    if vulnerabilities and not harm:
        reasons.append(f"{Consequence.HANG.words} on some crash states")
    if reasons:  # not all that was seen has an answer, so what no answer shows may be there all the same
        states = replace(states, exhaustive=None)
    safety = Safety.UNKNOWN if reasons else Safety.SAFE
    if harm and not contradictions:
        safety = Safety.VULNERABLE
    if not any(window.told for window in looked):
        notes = (*notes, NOTHING_TOLD)
    notes = (*notes, *(f"a crash state {kind.said}: {words}" for kind, words in troubles.items()))
    if states.unmountable:
        notes = (*notes, "some crash states do not mount: nothing was checked there")
    return ProgramResult(
        configuration=configuration,
        mount=mount,
        safety=safety,
        states=states,
        windows=len(looked),
        trees=trees,
        checks=sum(window.checks for window in looked),
        vulnerabilities=tuple(sorted(vulnerabilities, key=lambda one: (-one.states, one.evidence))),
        reason=reasons[0] if safety is Safety.UNKNOWN else None,
        notes=(*notes, *dict.fromkeys(reasons)) if safety is Safety.VULNERABLE else tuple(notes),
    )


class _Harm:
    """The crash states that are refused in one way: the windows and outcomes (``trees``) of them, and what was told
    before the easiest, and is said of it."""

    def __init__(self) -> None:
        self.trees: dict[tuple[int, int], None] = {}
        self.states: set[tuple[int, CrashState]] = set()
        self.easiest = Easiest[tuple[EasiestState, bytes, str]]()

    def add(self, place: int, seen: ExploredState, outcome: int, told: bytes, said: str) -> None:
        """Take in a state of the window ``place``, of which the checker ``said`` so; of equals the latest window's is
        the easiest."""
        self.trees[place, outcome] = None
        self.states.add((place, seen.state))
        shown = EasiestState(place, seen.state, outcome), told, said
        self.easiest.add(seen.state, shown, seen.states, after=(-place,))


def _vulnerability(consequence: Consequence, harm: _Harm, reliances: Reliances | None) -> Vulnerability:
    state, told, said = harm.easiest.shown
    return Vulnerability(
        consequence,
        said,
        # A state that was looked at as a neighbour speaks for none, and is one all the same.
        max(harm.easiest.states, len(harm.states)),
        len(harm.trees),
        told,
        reliances.relied_on(harm.trees) if reliances and consequence is not Consequence.HANG else (),
        easiest=state,
    )


def claim_of(program: Program, vulnerability: Vulnerability) -> CheckerClaim:
    """What the witness of a vulnerability breaks."""
    return CheckerClaim(program, vulnerability.told)
