"""Which crash states of a run have their recovery crashed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from bob.crash.state import CrashState
from bob.observe.easiest import Easiest
from bob.observe.observations import Observations
from bob.schema import decode, encode


@dataclass(frozen=True, slots=True)
class Recovered:
    """Crash state ``state`` of workload ``number`` of the run, which had that ``outcome``."""

    number: int
    state: CrashState
    outcome: int

    def to_json(self) -> dict[str, Any]:
        """As run.json keeps it."""
        return {"workload": self.number, "state": encode(self.state), "outcome": self.outcome}

    @staticmethod
    def from_json(document: Any) -> Recovered:
        """What :meth:`to_json` made."""
        return Recovered(document["workload"], decode(CrashState, document["state"]), document["outcome"])


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
