"""From observations to answers: in how many legal crash states an expectation holds, and how it breaks. Pure.

Crash states that show the same of what an expectation speaks of are told together, as one *way* in which it breaks,
however else they differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bob.crash.state import CrashState, departure
from bob.expect.evaluate import evidence, holds
from bob.expect.syntax import Expectation
from bob.judge.verdicts import Bench
from bob.result import States, Verdict
from bob.store import Observed


@dataclass(frozen=True, slots=True)
class Way:
    """One way to break an expectation: what is there, in how many of the explored crash ``states``, and of these the
    one that is easiest to explain."""

    evidence: str
    states: int
    easiest: CrashState


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of an expectation: FAILS with the ``ways`` in which it breaks, the easiest to explain first; HOLDS;
    or UNKNOWN, with a ``reason``.

    ``needs_no_crash`` says that it does not hold even where everything was written.
    """

    expectation: Expectation
    verdict: Verdict
    ways: tuple[Way, ...] = ()
    reason: str | None = None
    needs_no_crash: bool = False

    @property
    def states(self) -> int:
        """In how many of the explored crash states it breaks."""
        return sum(way.states for way in self.ways)


def answers(
    expectations: Sequence[Expectation], bench: Bench, observed: Observed, complete: CrashState
) -> tuple[Answer, ...]:
    """The answer to each of ``expectations``.

    ``complete`` is the state with every write. A crash state that the kernel does not mount is not held against an
    expectation: ``bench`` has these.
    """
    broken: list[dict[int, str]] = [{} for _ in expectations]
    mounted = 0
    # An observation is put together as it is asked for, and may be large: each once.
    for outcome, observation in enumerate(observed.findings.observations()):
        mounted += observation.mounted
        for wrong, expectation in zip(broken, expectations, strict=True):
            if observation.mounted and not holds(expectation.test, observation, bench.history):
                wrong[outcome] = evidence(expectation.test, observation, bench.history)
    doubt = _doubt(bench, observed.coverage, observed.lost, mounted)
    return tuple(
        _answer(expectation, wrong, bench, observed, complete, doubt)
        for expectation, wrong in zip(expectations, broken, strict=True)
    )


def _doubt(bench: Bench, coverage: States, lost: str | None, mounted: int) -> str | None:
    """Why it cannot be said that an expectation holds, if it cannot."""
    if bench.distrust is not None or lost is not None:
        return bench.distrust or lost
    if coverage.explored == 0:
        return "no crash state was explored"
    return bench.unseen if mounted else "no crash state that was explored could be mounted"


def _answer(
    expectation: Expectation,
    broken: dict[int, str],
    bench: Bench,
    observed: Observed,
    complete: CrashState,
    doubt: str | None,
) -> Answer:
    ways: dict[str, Way] = {}
    needs_no_crash = False
    for seen in observed.states:
        if seen.outcome not in broken:
            continue
        told = broken[seen.outcome]
        way = ways.get(told, Way(told, 0, seen.state))
        easiest = min(way.easiest, seen.state, key=departure)
        ways[told] = Way(told, way.states + seen.states, easiest)
        needs_no_crash = needs_no_crash or seen.state == complete
    if ways and bench.distrust is None:
        found = tuple(sorted(ways.values(), key=lambda way: departure(way.easiest)))
        return Answer(expectation, Verdict.FAILS, found, needs_no_crash=needs_no_crash)
    if doubt is not None:
        return Answer(expectation, Verdict.UNKNOWN, reason=doubt)
    return Answer(expectation, Verdict.HOLDS)
