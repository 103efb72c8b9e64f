"""What a run directory keeps of crashed recoveries, read again and judged. No guest is needed."""

from __future__ import annotations

from collections.abc import Sequence

from bob.catalogue.request import ProbeRequest
from bob.claim.idempotence import IDEMPOTENT
from bob.crash.state import CrashState
from bob.judge.column import Column
from bob.judge.recovered import Recovered
from bob.schema import decode
from bob.store.files import reading
from bob.store.run_directory import RunDirectory
from bob.workload.operations import Finish, Workload


def planned(run: RunDirectory) -> list[Recovered] | None:
    """Whose recoveries are crashed in ``run``; None where that was not decided yet."""
    about = run.about()
    with reading(run.path / "run.json"):
        return decode(list[Recovered], about["recoveries"]) if "recoveries" in about else None


def recovery_of(workload: Workload, state: CrashState) -> Workload:
    """The recovery from a crash state of ``workload``, as a workload without operations."""
    return Workload(f"recovery of {workload.title}, at growth point {state.point}", (), (), Finish("mounted"))


def add_recoveries(column: Column, run: RunDirectory, workloads: Sequence[Workload], request: ProbeRequest) -> None:
    """Have ``column`` judge all recoveries of ``run`` that were to be crashed; without any, it is unknown."""
    plan = planned(run)
    if not plan:
        column.refuse_property(IDEMPOTENT, "there was no crash state whose recovery could be crashed")
        return
    for place, recovered in enumerate(plan):
        folder = run.recovery_folder(place)
        if refused := run.unobserved(folder):
            column.refuse_property(IDEMPOTENT, refused.reason)
            continue
        if not run.is_observed(folder):
            column.refuse_property(IDEMPOTENT, "the run was stopped before all recoveries were crashed")
            continue
        origin = run.folder(recovered.workload, workloads[recovered.workload])
        expected = run.observed(origin).findings.observation(recovered.outcome)
        case = run.case(folder, request.configuration, request.model)
        column.add_recovery(case, run.observed(folder), expected)
