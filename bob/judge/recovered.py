"""Which crash states of a run have their recovery crashed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from bob.crash.state import CrashState
from bob.observe.easiest import Easiest
from bob.observe.observations import Observations


@dataclass(frozen=True, slots=True)
class Recovered:
    """Crash state ``state`` of the ``workload`` with this number in the run, which had that ``outcome``."""

    workload: int
    state: CrashState
    outcome: int


def chosen(runs: Iterable[tuple[int, Observations]], count: int, seed: int) -> list[Recovered]:
    """Up to ``count`` crash states of the workloads in ``runs``, by their numbers, drawn from the seed: no two of one
    workload with the same outcome, and all of them mounted at once, by a guest that was not lost."""
    every: list[Recovered] = []
    for number, observed in runs:
        if observed.lost is not None:
            continue
        easiest: dict[int, Easiest[CrashState]] = {}
        for place, seen in enumerate(observed.states):
            if seen.outcome is not None and seen.state.point:  # at point 0 nothing had happened yet
                easiest.setdefault(seen.outcome, Easiest()).add(seen.state, seen.state, after=(place,))
        every += [
            Recovered(number, found.shown, outcome)
            for outcome, found in sorted(easiest.items(), key=lambda one: one[1].rank)
            if observed.findings.observation(outcome).mounted
        ]
    drawn = Random(f"{seed} recoveries").sample(range(len(every)), min(count, len(every)))
    return [every[place] for place in sorted(drawn)]
