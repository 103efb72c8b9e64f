"""Crashes during recoveries. bob mounts some crash states of a run, and lets a second crash interrupt the recovery.
This module chooses these states, and judges the results. It needs no guest."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from bob.catalogue.request import ProbeRequest
from bob.claim.idempotence import IDEMPOTENT
from bob.crash.state import CrashState
from bob.judge.column import Column
from bob.observe.easiest import Easiest
from bob.observe.observations import Observations
from bob.schema import decode
from bob.store.files import reading
from bob.store.run_directory import RunDirectory
from bob.workload.operations import Finish, Workload


@dataclass(frozen=True, slots=True)
class Recovered:
    """A crash state whose recovery bob interrupts by a second crash. The state belongs to the run's workload number
    ``workload``. If no second crash comes, the recovery leads to outcome number ``outcome`` of that workload."""

    workload: int
    state: CrashState
    outcome: int


def chosen(runs: Iterable[tuple[int, Observations]], count: int, seed: int) -> list[Recovered]:
    """Choose up to ``count`` crash states at random, with the random seed ``seed``. For each outcome of each workload,
    one state takes part in the draw. Outcomes that do not mount take no part, and neither do workloads with a lost
    guest."""
    every: list[Recovered] = []
    for number, observed in runs:
        if observed.lost is not None:
            continue
        easiest: dict[int, Easiest[CrashState]] = {}
        for place, seen in enumerate(observed.states):
            if seen.outcome is not None and seen.state.point:  # at growth point 0 nothing had happened yet
                easiest.setdefault(seen.outcome, Easiest()).add(seen.state, seen.state, after=(place,))
        every += [
            Recovered(number, found.shown, outcome)
            for outcome, found in sorted(easiest.items(), key=lambda one: one[1].rank)
            if observed.findings.observation(outcome).mounted
        ]
    drawn = Random(f"{seed} recoveries").sample(range(len(every)), min(count, len(every)))
    return [every[place] for place in sorted(drawn)]


def planned(run: RunDirectory) -> list[Recovered] | None:
    """Return the crash states of ``run`` whose recovery a second crash is to interrupt, as the run directory lists
    them. Return None if it has no such list yet."""
    about = run.about()
    with reading(run.path / "run.json"):
        return decode(list[Recovered], about["recoveries"]) if "recoveries" in about else None


def recovery_of(workload: Workload, state: CrashState) -> Workload:
    return Workload(f"recovery of {workload.title}, at growth point {state.point}", (), (), Finish("mounted"))


def add_recoveries(column: Column, run: RunDirectory, workloads: Sequence[Workload], request: ProbeRequest) -> None:
    """Add the verdicts on all second crashes in ``run`` to ``column``. If the run chose no crash state for a second
    crash, the verdict is UNKNOWN."""
    plan = planned(run)
    if not plan:
        column.refuse_property(IDEMPOTENT, "bob did not find any crash state whose recovery it could crash")
        return
    for place, recovered in enumerate(plan):
        folder = run.recovery_folder(place)
        if refused := run.unobserved(folder):
            column.refuse_property(IDEMPOTENT, refused.reason)
            continue
        if not run.is_observed(folder):
            column.refuse_property(IDEMPOTENT, "the run was stopped before bob had crashed all recoveries")
            continue
        origin = run.folder(recovered.workload, workloads[recovered.workload])
        expected = run.observed(origin).findings.observation(recovered.outcome)
        case = run.case(folder, request.configuration, request.model)
        column.add_recovery(case, run.observed(folder), expected)
