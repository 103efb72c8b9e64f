"""From what was seen of a program's crash states, and what its checker said of them, to an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bob.claim.checking import Checked, evidence
from bob.claim.counting import judged
from bob.counts import written
from bob.crash.coverage import States, total
from bob.crash.state import CrashState, departure
from bob.judge.looked import Looked
from bob.judge.reliance import Reliances, ReliedOn
from bob.observe.observed import without_numbers
from bob.program.answer import Consequence
from bob.program.program import Program
from bob.result import TroubleKind

SCHEMA = "bob.app/1"


class Safety(StrEnum):
    """Whether a program survives a crash on a configuration, as far as it was explored."""

    SAFE = "safe"
    VULNERABLE = "vulnerable"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Vulnerability:
    """A way in which crashes harm the program: what the checker says, in how many legal crash states (``states``) and
    how many different trees (``trees``). ``place`` is the number of the window with the easiest crash ``state``, after
    which ``told`` had been told. The program relies on what is ``relied_on``, the one with most trees first."""

    consequence: Consequence
    evidence: str
    states: int
    trees: int
    place: int
    state: CrashState
    told: bytes
    relied_on: tuple[ReliedOn, ...] = ()
    witness: str | None = None


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """The answer of one configuration.

    ``trees`` is how many different outcomes there are, each with what was told before, and ``checks`` how often the
    checker was run. ``reason`` says why it is unknown, ``notes`` what else is to be known.
    """

    configuration: str
    mount: str
    safety: Safety
    states: States
    windows: int
    trees: int
    checks: int
    vulnerabilities: tuple[Vulnerability, ...] = ()
    reason: str | None = None
    notes: tuple[str, ...] = ()


def judge(
    configuration: str,
    mount: str,
    looked: Sequence[Looked],
    notes: Sequence[str],
    reliances: Reliances | None = None,
) -> ProgramResult:
    """The answer by what was ``looked`` at, a window each; ``reliances`` explain what is refused.

    A checker that answers differently on the same tree is not believed, whatever it says of others. One that does not
    end is a finding, and no violation by itself.
    """
    found: dict[tuple[Consequence, str], list[tuple[int, int, CrashState, bytes, int, str]]] = {}
    trees = 0
    contradictions = [window.disagreed for window in looked if window.disagreed]
    reasons = list(contradictions)
    parts: list[States] = []
    troubles: dict[TroubleKind, str] = {}
    for place, window in enumerate(looked):
        reasons += [window.observed.lost] if window.observed.lost else []
        for trouble in window.observed.troubles:
            troubles.setdefault(TroubleKind(trouble.kind), trouble.words)
        outcomes = {seen.outcome for seen in window.observed.states if seen.outcome is not None}
        trees += len(outcomes)
        mounting = {one for one in outcomes if window.observed.findings.observation(one).mounted}
        parts.append(judged(window.observed.coverage, window.observed.states, mounting))
        if not outcomes & mounting:
            reasons.append("nothing was explored")
        if mounting - window.answers.keys():
            reasons.append("the checker was not run on all that can be seen")
        for seen in window.observed.states:
            answer = None if seen.outcome is None else window.answers.get(seen.outcome)
            if seen.outcome is None or answer is None or answer.consequence is None:
                continue
            key = answer.consequence, without_numbers(answer.evidence)
            one = place, seen.outcome, seen.state, window.told, seen.states, evidence(answer)
            found.setdefault(key, []).append(one)
    vulnerabilities = tuple(_vulnerability(key[0], shown, reliances) for key, shown in found.items())
    states = total(parts)
    if TroubleKind.READ_ONLY in troubles:
        reasons.append("some crash states mount read-only: the checker was not asked of each of them")
    harm = any(one.consequence is not Consequence.HANG for one in vulnerabilities)
    if vulnerabilities and not harm:
        reasons.append(f"{Consequence.HANG.words} on some crash states")
    safety = Safety.UNKNOWN if reasons else Safety.SAFE
    if harm and not contradictions:
        safety = Safety.VULNERABLE
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


def _vulnerability(
    consequence: Consequence,
    shown: Sequence[tuple[int, int, CrashState, bytes, int, str]],
    reliances: Reliances | None,
) -> Vulnerability:
    place, _outcome, state, told, _states, said = min(shown, key=lambda one: (*departure(one[2]), -one[0]))
    return Vulnerability(
        consequence,
        said,
        sum(one[4] for one in shown),
        len({one[:2] for one in shown}),
        place,
        state,
        told,
        reliances.relied_on(one[:2] for one in shown) if reliances and consequence is not Consequence.HANG else (),
    )


def claim_of(program: Program, vulnerability: Vulnerability) -> Checked:
    """What the witness of a vulnerability breaks."""
    return Checked(program, vulnerability.told)


def to_json(program: Program, results: Sequence[ProgramResult], about: Mapping[str, Any]) -> dict[str, Any]:
    """The result document (docs/formats.md)."""
    return {
        "schema": SCHEMA,
        **about,
        "program": {"name": program.name, "about": program.about, "digest": program.digest},
        "refuses": list(program.must_fail),
        "configurations": [_result_to_json(result) for result in results],
    }


def _result_to_json(result: ProgramResult) -> dict[str, Any]:
    states = result.states
    return {
        "name": result.configuration,
        "mounted": result.mount,
        "safety": result.safety.value,
        "reason": result.reason,
        "explored": written(states.explored),
        "legal_writes": written(states.legal_writes),
        "legal_sectors": written(states.legal_sectors),
        "exhaustive": states.exhaustive,
        "unmountable": written(states.unmountable),
        "mounted_states": states.mounted,
        "windows": result.windows,
        "trees": result.trees,
        "checks": result.checks,
        "vulnerabilities": [
            {
                "consequence": one.consequence.value,
                "evidence": one.evidence,
                "states": written(one.states),
                "trees": one.trees,
                "told": one.told.decode("latin-1"),
                "relied_on": [_relied_on_to_json(relied) for relied in one.relied_on],
                "witness": one.witness,
            }
            for one in result.vulnerabilities
        ],
        "notes": list(result.notes),
    }


def _relied_on_to_json(relied: ReliedOn) -> dict[str, Any]:
    explanation = relied.explanation
    return {
        "reliance": explanation.reliance.value,
        "sentence": relied.sentence,
        "missing": list(explanation.missing),
        "there": list(explanation.there),
        "calls": [{"number": one.number, "words": one.words, "stack": list(one.stack)} for one in relied.calls],
        "trees": relied.trees,
    }
