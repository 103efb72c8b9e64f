"""The answers of ``bob try``: whether a crash can break a user's expectation (a condition on the tree after a crash).
The *evidence* says in a line what is wrong with a crash state. States with the same evidence break the expectation in
the same *way*. bob records the operations several times, with different ends (such as a sync, or a wait). A way counts
once, even if recordings with different ends show it. The module reads and writes no files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bob.agent.loss import Loss
from bob.answer.answer import Answer, ByRecording, ClaimWords, Way
from bob.claim.expectation.evaluate import evidence, holds
from bob.claim.expectation.expected import ExpectationClaim
from bob.claim.expectation.syntax import Expectation
from bob.claim.property.judged_case import JudgedCase
from bob.claim.verdict import Verdict
from bob.crash.coverage import NOTHING, total
from bob.crash.state import CrashState
from bob.observe.easiest import Easiest
from bob.observe.observations import Observations
from bob.workload.operations import Workload


@dataclass(frozen=True, slots=True)
class SaidByRecording:
    recording: ByRecording
    ways: Mapping[str, Easiest[CrashState]] = field(default_factory=dict)


def refused(workload: Workload, reason: str, fall: Loss | None) -> SaidByRecording:
    name, finish = workload.name, workload.finish.name
    said = ByRecording(name, finish, Verdict.UNKNOWN, NOTHING, reason=reason, is_recorded=False, fall=fall)
    return SaidByRecording(said)


def said_by(
    expectations: Sequence[Expectation], bench: JudgedCase, observed: Observations, complete: CrashState
) -> list[SaidByRecording]:
    """Return the answer to each of ``expectations``, from the crash states of one recording alone. ``bench`` is the
    recorded workload, ready to be judged. ``complete`` is the state of the disks after every write of the recording."""
    broken: list[dict[int, str]] = [{} for _ in expectations]
    unmountable = {seen.outcome for seen in bench.unmountable}
    # Observations are built on demand, and may be large. So each is read only once.
    for outcome, observation in enumerate(observed.findings.observations()):
        for wrong, expectation in zip(broken, expectations, strict=True):
            if holds(expectation.test, observation, bench.history) is False:
                wrong[outcome] = evidence(expectation.test, observation, bench.history)
    if bench.distrust is not None:
        # bob does not trust its readings of trees here. But it trusts the kernel's refusal to mount.
        broken = [{outcome: told for outcome, told in one.items() if outcome in unmountable} for one in broken]
    settled = complete if bench.workload.finish.is_settled else None
    return [_said(bench, wrong, observed, settled) for wrong in broken]


def together(expectation: Expectation, each: Sequence[SaidByRecording]) -> tuple[Answer, tuple[CrashState, ...]]:
    """Return one answer to ``expectation`` from the answers ``each`` of all recordings. Also return, for each way to
    break the expectation, the crash state that is easiest to explain. The answer is FAILS if the expectation fails in
    at least one recording, and HOLDS if it holds in all of them."""
    ways: dict[str, Easiest[tuple[int, CrashState]]] = {}
    for place, said in enumerate(each):
        for told, way in said.ways.items():
            ways.setdefault(told, Easiest()).add(way.shown, (place, way.shown), way.states)
    ordered = sorted(ways.items(), key=lambda way: way[1].rank)
    recordings = [said.recording for said in each]
    several = len(each) > 1
    unknown = [f"finish {one.finish}: {one.reason}" if several else one.reason for one in recordings if one.reason]
    verdict = Verdict.FAILS if ways else Verdict.UNKNOWN if unknown else Verdict.HOLDS
    answer = Answer(
        ClaimWords(ExpectationClaim.kind, expectation.text),
        verdict,
        total([one.states for one in recordings]),
        tuple(
            Way(
                told,
                way.states,
                place=way.shown[0],
                by_recording=tuple(said.ways[told].states if told in said.ways else 0 for said in each),
            )
            for told, way in ordered
        ),
        tuple(recordings),
        unknown[0] if verdict is Verdict.UNKNOWN else None,
    )
    return answer, tuple(way.shown[1] for _told, way in ordered)


def expectation_states(
    expectations: Sequence[Expectation], bench: JudgedCase, observed: Observations, complete: CrashState
) -> set[CrashState]:
    """Return the crash states that bob would show to a user as violations of ``expectations``. There is one state for
    each way to break an expectation. The other arguments are those of :func:`said_by`."""
    said = said_by(expectations, bench, observed, complete)
    return {way.shown for one in said for way in one.ways.values()}


def _said(
    bench: JudgedCase, broken: Mapping[int, str], observed: Observations, settled: CrashState | None
) -> SaidByRecording:
    ways: dict[str, Easiest[CrashState]] = {}
    needs_no_crash = False
    for seen in observed.states:
        if seen.outcome is not None and seen.outcome in broken:
            ways.setdefault(broken[seen.outcome], Easiest()).add(seen.state, seen.state, seen.states)
            needs_no_crash = needs_no_crash or seen.state == settled
    verdict = Verdict.FAILS if ways else Verdict.HOLDS if bench.doubt is None else Verdict.UNKNOWN
    said = ByRecording(
        bench.workload.name,
        bench.workload.finish.name,
        verdict,
        bench.coverage,
        sum(way.states for way in ways.values()),
        bench.doubt if verdict is Verdict.UNKNOWN else None,
        needs_no_crash,
    )
    return SaidByRecording(said, ways)
