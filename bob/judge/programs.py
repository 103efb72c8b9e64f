"""The answer to the question whether a program survives crashes. It comes from the program's crash states, and from the
checker's answer for each state.

A *window* is the time between one output of the program and its next output. A *way* to break the program is a
consequence (such as corruption), together with the checker's words for it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from bob.answer.answer import Answer, ClaimWords, ReliedOn, Way
from bob.answer.result import Checks, SubjectResult
from bob.claim.checking import CheckerClaim, evidence
from bob.claim.verdict import Verdict, judged_states
from bob.crash.coverage import States, total
from bob.crash.state import CrashState
from bob.judge.cluster_kinds import cluster_kind
from bob.judge.looked import NOTHING_TOLD, Looked, places_in_rank
from bob.judge.reliance import Reliances
from bob.observe.easiest import Easiest
from bob.observe.observations import TroubleKind, without_numbers
from bob.program.answer import Consequence
from bob.protocol.contrast import Explanation, Reliance
from bob.story.decisive import in_words
from bob.story.timeline import CrashTimeline, Fate
from bob.text import plural

CHECKER = ClaimWords(CheckerClaim.kind, CheckerClaim.kind)  # the claim that the checker accepts the disk after a crash
MOMENTS = ClaimWords(CheckerClaim.kind, "moments")  # the claim that the files are as at a moment without a crash
_BY_MOMENTS = (
    "no checker was given: bob compared names, kinds, contents and links with those at the start, at each output, at "
    "each sync and at the end of a run without a crash"
)
SAFETY = {Verdict.HOLDS: "safe", Verdict.FAILS: "vulnerable", Verdict.UNKNOWN: "unknown"}


@dataclass(frozen=True, slots=True)
class EasiestCrash:
    """The crash that best explains a way to break the program. ``place`` is the index of the crash's window.
    A mount of ``state`` showed tree number ``outcome`` of this window. Before this crash, the program has
    written the output ``told``. In a cluster, the nodes ``behind`` have an old tree (None: not a cluster), and the node
    ``late`` started late in the check (-1: none)."""

    place: int
    state: CrashState
    outcome: int
    told: bytes
    behind: tuple[int, ...] | None = None
    late: int = -1


@dataclass(slots=True)
class _Harm:
    """The crash states that the checker refuses in one way. ``trees`` has a pair (window, outcome) for each different
    tree of these states. ``easiest`` has the crash that is easiest to explain, and the checker's words about it."""

    trees: dict[tuple[int, int], None] = field(default_factory=dict)
    states: set[tuple[int, CrashState]] = field(default_factory=set)
    easiest: Easiest[tuple[EasiestCrash, str]] = field(default_factory=Easiest)

    def way(self, consequence: Consequence, reliances: Reliances | None) -> Way:
        crash, said = self.easiest.shown
        return Way(
            said,
            # A state that bob saw only as a neighbour has the weight 0, but counts as one state.
            max(self.easiest.states, len(self.states)),
            consequence=consequence,
            told=crash.told.decode("latin-1"),
            trees=len(self.trees),
            behind=crash.behind,
            kind=None if crash.behind is None else cluster_kind(consequence, said, crash.told, crash.behind),
            relied_on=reliances.relied_on(self.trees) if reliances and consequence is not Consequence.HANG else (),
        )


def judge(
    subject: SubjectResult,
    looked: Sequence[Looked],
    notes: Sequence[str],
    reliances: Reliances | None = None,
    doubts: Sequence[str] = (),
) -> tuple[SubjectResult, tuple[EasiestCrash, ...]]:
    """Return ``subject``, completed by the answer about the program. Also return, for each way to break the program,
    the crash that is easiest to explain.

    ``looked`` has the crash states and the checker's answers of each window. ``doubts`` has reasons why the recording
    perhaps does not show all crash states. bob does not trust a checker that gives two answers on the same tree."""
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
        mounting = {one for one in outcomes if window.observed.findings.mounted(one)}
        parts.append(judged_states(window.observed.coverage, window.observed.states, mounting))
        if not outcomes & mounting:
            reasons.append("bob did not explore any crash state")
        if mounting - window.answers.keys():
            reasons.append("the checker did not run on every outcome")
        for seen in window.observed.states:
            answer = None if seen.outcome is None else window.answers.get(seen.outcome)
            if seen.outcome is None or answer is None or answer.consequence is None:
                continue
            harm = found.setdefault((answer.consequence, without_numbers(answer.evidence)), _Harm())
            harm.trees[place, seen.outcome] = None
            harm.states.add((place, seen.state))
            behind = window.behind.get(seen.outcome)
            late = window.late.get(seen.outcome, -1)
            crash = EasiestCrash(place, seen.state, seen.outcome, window.told, behind, late)
            before, after = places_in_rank(behind, place)
            harm.easiest.add(seen.state, (crash, evidence(answer)), seen.states, before=before, after=after)
    ways = sorted(
        ((harm.way(consequence, reliances), harm.easiest.shown[0]) for (consequence, _said), harm in found.items()),
        key=lambda one: (-one[0].states, one[0].evidence),
    )
    if TroubleKind.READ_ONLY in troubles:
        reasons.append("some crash states mount read-only, and the checker did not run on all of them")
    answer_ways = tuple(way for way, _easiest in ways)
    verdict, reasons = verdict_of(answer_ways, reasons, is_believed=not contradictions, where="on some crash states")
    states = total(parts)
    if reasons:  # some observed states lack an answer, and might be breaches
        states = replace(states, exhaustive=None)
    if not any(window.told for window in looked):
        notes = (*notes, NOTHING_TOLD)
    notes = (*notes, *(f"a crash state {kind.said}: {words}" for kind, words in troubles.items()))
    if states.unmountable:
        notes = (*notes, "some crash states do not mount, so the checker could not run on them")
    reason = reasons[0] if verdict is Verdict.UNKNOWN else None
    made = replace(
        subject,
        answers=(Answer(CHECKER, verdict, states, answer_ways, reason=reason),),
        checks=Checks(len(looked), trees, sum(window.checks for window in looked)),
        notes=(*notes, *dict.fromkeys(reasons)) if verdict is Verdict.FAILS else tuple(notes),
    )
    return made, tuple(easiest for _way, easiest in ways)


def as_question(subject: SubjectResult) -> SubjectResult:
    """Return the answer for a program without a checker of its own. If bob's own checker refuses a state, this is a
    question to the user, so the verdict is UNKNOWN instead of FAILS."""
    answer = replace(subject.answer, claim=MOMENTS)
    if answer.verdict is Verdict.FAILS:
        asked = f"{plural(len(answer.ways), 'question')}: may a crash leave this? --check COMMAND answers"
        answer = replace(answer, verdict=Verdict.UNKNOWN, reason=asked)
    return replace(subject, answers=(answer,), notes=(*subject.notes, _BY_MOMENTS))


def verdict_of(
    ways: Iterable[Way], reasons: Sequence[str], *, is_believed: bool, where: str
) -> tuple[Verdict, list[str]]:
    """Return the verdict on a program that breaks in ``ways``, and the reasons for doubt. With such a reason, the
    verdict is UNKNOWN instead of HOLDS, but FAILS remains FAILS. The returned reasons are ``reasons``, and a further
    reason if the checker hung on states, but refused none. ``where`` ends the text of this further reason, such as "on
    some states".

    A hang alone never makes the verdict FAILS. A checker that bob does not trust never makes it FAILS either."""
    consequences = {way.consequence for way in ways}
    every = list(reasons)
    if consequences == {Consequence.HANG}:
        every.append(f"{Consequence.HANG.words} {where}")
    if is_believed and consequences - {Consequence.HANG}:
        return Verdict.FAILS, every
    return Verdict.UNKNOWN if every else Verdict.HOLDS, every


def with_its_write(found: Way, line: CrashTimeline) -> Way:
    """Return ``found``, a way to break the program. If system calls alone do not explain this way, add an explanation
    from ``line``, the events of a crash that shows the way. The explanation names the disk write whose loss makes the
    checker refuse, or says that the missing data had not been sent to the disk."""
    of_calls = (one.explanation for one in found.relied_on if one.explanation.reliance is not Reliance.UNCLEAR)
    is_told = any(not explanation.beside for explanation in of_calls)
    is_unsent = all(write.fate is Fate.DURABLE for write in line.writes)
    if is_told or not (line.causes or is_unsent) or found.consequence is Consequence.HANG:
        return found
    explanation = Explanation(Reliance.UNCLEAR)
    first, *others = found.relied_on or (ReliedOn(explanation, explanation.sentence({}), (), found.trees),)
    what = "in the witness {}: what is missing had not been sent" if is_unsent else "the witness hangs on a write: {}"
    sentence = f"{first.sentence}; {what.format(in_words(line))}"
    return replace(found, relied_on=(replace(first, sentence=sentence), *others))
