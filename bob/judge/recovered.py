"""Which crash states of a run have their recovery crashed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from bob.crash.state import CrashState, departure
from bob.observe.observed import Observed


@dataclass(frozen=True, slots=True)
class Recovered:
    """Crash state ``state`` of workload ``number`` of the run, which had that ``outcome``."""

    number: int
    state: CrashState
    outcome: int

    def to_json(self) -> dict[str, Any]:
        """As run.json keeps it."""
        return {"workload": self.number, "state": self.state.to_json(), "outcome": self.outcome}

    @staticmethod
    def from_json(document: Any) -> Recovered:
        """What :meth:`to_json` made."""
        return Recovered(document["workload"], CrashState.from_json(document["state"]), document["outcome"])


def chosen(runs: Iterable[tuple[int, Observed]], count: int, seed: int) -> list[Recovered]:
    """Up to ``count`` crash states of the workloads in ``runs``, by their numbers, drawn from the seed: no two of one
    workload with the same outcome, and all of them mounted at once, by a guest that was not lost."""
    every: list[Recovered] = []
    for number, observed in runs:
        if observed.lost is not None:
            continue
        easiest: dict[int, CrashState] = {}
        for seen in sorted(observed.states, key=lambda seen: departure(seen.state)):
            if seen.outcome is not None and seen.state.point:  # at point 0 nothing had happened yet
                easiest.setdefault(seen.outcome, seen.state)
        every += [
            Recovered(number, state, outcome)
            for outcome, state in easiest.items()
            if observed.findings.observation(outcome).mounted
        ]
    drawn = Random(f"{seed} recoveries").sample(range(len(every)), min(count, len(every)))
    return [every[place] for place in sorted(drawn)]
