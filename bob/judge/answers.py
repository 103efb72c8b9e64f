"""From observations to answers: in how many legal crash states an expectation holds, and how it breaks. Pure.

Crash states that show the same of what an expectation speaks of are told together, as one *way* in which it breaks,
however else they differ. A question is asked of several recordings of the same operations, which end in different ways
(:mod:`bob.workload.finishes`); what they show alike is one way, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bob.claim.expectation.evaluate import evidence, holds
from bob.claim.expectation.syntax import Expectation
from bob.claim.property.judged_case import JudgedCase
from bob.claim.verdict import Verdict
from bob.crash.coverage import States
from bob.crash.state import CrashState
from bob.observe.easiest import Easiest
from bob.observe.observations import Observations
from bob.workload.operations import Sync, Workload


@dataclass(frozen=True, slots=True)
class Way:
    """One way to break an expectation: what is there, in how many of the explored crash ``states``, and of these the
    one that is ``easiest`` to explain (None where only a document tells of it).

    Of an answer over several recordings, ``place`` says which of them the easiest state is of.
    """

    evidence: str
    states: int
    easiest: CrashState | None
    place: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of an expectation: FAILS with the ``ways`` in which it breaks, the easiest to explain first; HOLDS;
    or UNKNOWN, with a ``reason``.

    ``needs_no_crash`` says that the state with every write breaks it, too, of a recording that ended with everything
    written. ``each`` has the answers of the recordings where there are several.
    """

    expectation: Expectation
    verdict: Verdict
    ways: tuple[Way, ...] = ()
    reason: str | None = None
    needs_no_crash: bool = False
    each: tuple[Answer, ...] = ()

    @property
    def states(self) -> int:
        """In how many of the explored crash states it breaks."""
        return sum(way.states for way in self.ways)

    def counts(self, way: Way) -> tuple[int, ...]:
        """In how many of the explored crash states of each recording it breaks in this ``way``."""
        found = [[other.states for other in one.ways if other.evidence == way.evidence] for one in self.each]
        return tuple(map(sum, found))


def answers(
    expectations: Sequence[Expectation], bench: JudgedCase, observed: Observations, complete: CrashState
) -> tuple[Answer, ...]:
    """The answer to each of ``expectations`` by one recording.

    ``complete`` is the state with every write. A crash state that the kernel does not mount is held against an
    expectation only as far as that asks whether it ``mounts``.
    """
    broken: list[dict[int, str]] = [{} for _ in expectations]
    mounted: set[int] = set()
    # An observation is put together as it is asked for, and may be large: each once.
    for outcome, observation in enumerate(observed.findings.observations()):
        if observation.mounted:
            mounted.add(outcome)
        for wrong, expectation in zip(broken, expectations, strict=True):
            if holds(expectation.test, observation, bench.history) is False:
                wrong[outcome] = evidence(expectation.test, observation, bench.history)
    if bench.distrust is not None:
        # What bob makes of a tree is not to be believed; that the kernel refused to mount is no reading of bob's.
        broken = [{outcome: told for outcome, told in one.items() if outcome not in mounted} for one in broken]
    doubt = _doubt(bench, observed.coverage, observed.lost, len(mounted))
    settled = complete if _is_settled(bench.workload) else None
    return tuple(
        _answer(expectation, wrong, observed, settled, doubt)
        for expectation, wrong in zip(expectations, broken, strict=True)
    )


def together(finishes: Sequence[str], each: Sequence[Answer]) -> Answer:
    """The answer over recordings that end in different ways: an expectation fails where it breaks in one of them, and
    holds only where it holds in all."""
    [first, *others] = each
    if not others:
        return first
    ways: dict[str, Easiest[tuple[int, CrashState]]] = {}
    for place, answer in enumerate(each):
        for way in answer.ways:
            assert way.easiest is not None
            ways.setdefault(way.evidence, Easiest()).add(way.easiest, (place, way.easiest), way.states)
    found = _easiest_first(ways)
    unknown = [f"finish {name}: {one.reason}" for name, one in zip(finishes, each, strict=True) if one.reason]
    verdict = Verdict.FAILS if found else Verdict.UNKNOWN if unknown else Verdict.HOLDS
    reason = unknown[0] if verdict is Verdict.UNKNOWN else None
    needs_no_crash = any(one.needs_no_crash for one in each)
    return Answer(first.expectation, verdict, found, reason, needs_no_crash, tuple(each))


def _easiest_first(ways: Mapping[str, Easiest[tuple[int, CrashState]]]) -> tuple[Way, ...]:
    """Return ``ways``, by their evidence; each has its recording's number with its easiest state."""
    ordered = sorted(ways.items(), key=lambda way: way[1].rank)
    return tuple(Way(evidence, way.states, way.shown[1], way.shown[0]) for evidence, way in ordered)


def _is_settled(workload: Workload) -> bool:
    """Whether everything is written when a recording of ``workload`` ends."""
    finish = workload.finish
    return finish.natural or any(isinstance(operation, Sync) for operation in finish.operations)


def _doubt(bench: JudgedCase, coverage: States, lost: str | None, mounted: int) -> str | None:
    """Why it cannot be said that an expectation holds, if it cannot."""
    if bench.distrust is not None or lost is not None:
        return bench.distrust or lost
    if coverage.explored == 0:
        return "no crash state was explored"
    return bench.unseen if mounted else "no crash state that was explored could be mounted"


def _answer(
    expectation: Expectation,
    broken: dict[int, str],
    observed: Observations,
    settled: CrashState | None,
    doubt: str | None,
) -> Answer:
    """The answer by the outcomes that are ``broken``; ``settled`` is the state in which nothing is lost, if any is."""
    ways: dict[str, Easiest[tuple[int, CrashState]]] = {}
    needs_no_crash = False
    for seen in observed.states:
        if seen.outcome not in broken:
            continue
        ways.setdefault(broken[seen.outcome], Easiest()).add(seen.state, (0, seen.state), seen.states)
        needs_no_crash = needs_no_crash or seen.state == settled
    if ways:
        return Answer(expectation, Verdict.FAILS, _easiest_first(ways), needs_no_crash=needs_no_crash)
    if doubt is not None:
        return Answer(expectation, Verdict.UNKNOWN, reason=doubt)
    return Answer(expectation, Verdict.HOLDS)
