"""From what was seen of a program's crash states, and what its checker said of them, to an answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bob.answer.answer import Answer, ClaimWords, Way
from bob.answer.result import Checks, SubjectResult
from bob.claim.checking import CheckerClaim, evidence
from bob.claim.verdict import Verdict, judged_states
from bob.crash.coverage import States, total
from bob.crash.state import CrashState
from bob.judge.looked import NOTHING_TOLD, Looked
from bob.judge.reliance import Reliances
from bob.observe.easiest import Easiest
from bob.observe.observations import ExploredState, TroubleKind, without_numbers
from bob.program.answer import Consequence

CHECKER = ClaimWords(CheckerClaim.kind, CheckerClaim.kind)
"""The claim that a program's checker accepts what a crash leaves."""
SAFETY = {Verdict.HOLDS: "safe", Verdict.FAILS: "vulnerable", Verdict.UNKNOWN: "unknown"}
"""Whether a program survives a crash, by the verdict of that claim."""


@dataclass(frozen=True, slots=True)
class EasiestCrash:
    """The crash ``state`` that is the easiest to explain of a way, with the number of its ``outcome``, in the window
    with the number ``place``; before it the program had ``told`` this."""

    place: int
    state: CrashState
    outcome: int
    told: bytes


def judge(
    subject: SubjectResult,
    looked: Sequence[Looked],
    notes: Sequence[str],
    reliances: Reliances | None = None,
    doubts: Sequence[str] = (),
) -> tuple[SubjectResult, tuple[EasiestCrash, ...]]:
    """Return ``subject`` with the answer by what was ``looked`` at, a window each, and the easiest crash of each of its
    ways. ``reliances`` explain what is refused. ``doubts`` are reasons why the recording lacks states that it should
    have.

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
            crash = EasiestCrash(place, seen.state, seen.outcome, window.told)
            found.setdefault(key, _Harm()).add(seen, crash, evidence(answer))
    ways = sorted(
        ((_way(key[0], harm, reliances), harm.easiest.shown[0]) for key, harm in found.items()),
        key=lambda one: (-one[0].states, one[0].evidence),
    )
    if TroubleKind.READ_ONLY in troubles:
        reasons.append("some crash states mount read-only: the checker was not asked of each of them")
    verdict, reasons = verdict_of(
        [way for way, _easiest in ways], reasons, is_believed=not contradictions, where="on some crash states"
    )
    states = total(parts)
    if reasons:  # not all that was seen has an answer, so what no answer shows may be there all the same
        states = replace(states, exhaustive=None)
    if not any(window.told for window in looked):
        notes = (*notes, NOTHING_TOLD)
    notes = (*notes, *(f"a crash state {kind.said}: {words}" for kind, words in troubles.items()))
    if states.unmountable:
        notes = (*notes, "some crash states do not mount: nothing was checked there")
    reason = reasons[0] if verdict is Verdict.UNKNOWN else None
    made = replace(
        subject,
        answers=(Answer(CHECKER, verdict, states, tuple(way for way, _easiest in ways), reason=reason),),
        checks=Checks(len(looked), trees, sum(window.checks for window in looked)),
        notes=(*notes, *dict.fromkeys(reasons)) if verdict is Verdict.FAILS else tuple(notes),
    )
    return made, tuple(easiest for _way, easiest in ways)


def verdict_of(
    ways: Iterable[Way], reasons: Sequence[str], *, is_believed: bool, where: str
) -> tuple[Verdict, list[str]]:
    """Return what the checker says by ``ways``, and all ``reasons`` why it is not known.

    A checker that does not end, which is told with ``where`` it did not, breaks nothing by itself; one that is not
    believed breaks nothing at all.
    """
    consequences = {way.consequence for way in ways}
    every = list(reasons)
    if consequences == {Consequence.HANG}:
        every.append(f"{Consequence.HANG.words} {where}")
    if is_believed and consequences - {Consequence.HANG}:
        return Verdict.FAILS, every
    return Verdict.UNKNOWN if every else Verdict.HOLDS, every


class _Harm:
    """The crash states that are refused in one way: the windows and outcomes (``trees``) of them, and what is said of
    the easiest."""

    def __init__(self) -> None:
        self.trees: dict[tuple[int, int], None] = {}
        self.states: set[tuple[int, CrashState]] = set()
        self.easiest = Easiest[tuple[EasiestCrash, str]]()

    def add(self, seen: ExploredState, crash: EasiestCrash, said: str) -> None:
        """Take in a state, of which the checker ``said`` so; of equals the latest window's is the easiest."""
        self.trees[crash.place, crash.outcome] = None
        self.states.add((crash.place, seen.state))
        self.easiest.add(seen.state, (crash, said), seen.states, after=(-crash.place,))


def _way(consequence: Consequence, harm: _Harm, reliances: Reliances | None) -> Way:
    crash, said = harm.easiest.shown
    return Way(
        said,
        # A state that was looked at as a neighbour speaks for none, and is one all the same.
        max(harm.easiest.states, len(harm.states)),
        consequence=consequence,
        told=crash.told.decode("latin-1"),
        trees=len(harm.trees),
        relied_on=reliances.relied_on(harm.trees) if reliances and consequence is not Consequence.HANG else (),
    )
