"""Judging a run again from what it kept: no guest is needed."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from bob.columns import MatrixDirectory
from bob.crash.device import DeviceModel
from bob.crash.plan import Plan
from bob.errors import StoreError, UsageError
from bob.judge.column import Column
from bob.record.check import checked
from bob.recovery.kept import add_recoveries
from bob.request import request_from_json
from bob.result import Environment, Result, Run, from_json, to_json
from bob.store import RunDirectory, no_probe, workload_from_json
from bob.workload.operations import Workload


def judge_again(path: Path) -> Result:
    """The result of the run in ``path``, judged anew from its recordings and observations; it replaces result.json.

    Of a matrix, every column. Raises StoreError where something that the run should have kept is not
    there.
    """
    if not MatrixDirectory.is_one(path):
        return _judge_again(path)
    directory = MatrixDirectory(path)
    return directory.save_result([(folder, _judge_again(folder)) for folder in directory.folders])


def _judge_again(path: Path) -> Result:
    run = RunDirectory(path)
    about = run.about()
    if not {"request", "bob", "workloads"} <= set(about):
        raise no_probe(path, about)
    if "environment" not in about:
        raise StoreError(
            f"{path} was never run", hint="it stopped before its guests were there; --resume goes on with it"
        )
    try:
        request = request_from_json(about["request"])
    except (KeyError, TypeError, UsageError):
        raise no_probe(path, about) from None
    environment = Environment(**about["environment"])
    if "skipped" in about:  # there is nothing to judge
        return from_json(run.result())
    properties = [probe.property for probe in request.asked]
    column = Column(request.configuration, request.model, properties, asdict(environment), run.save_witness)
    for number, planned in enumerate(map(workload_from_json, about["workloads"])):
        if run.is_done(run.folder(number, planned)):
            add_kept(column, run, number, planned, request.model)
        else:
            column.refuse(planned, "the run was stopped before this workload was observed")
    if request.recovery_crashes:
        add_recoveries(column, run, [workload_from_json(one) for one in about["workloads"]], request.model)
    result = Result(
        run=Run(about["id"], about["started"], about.get("finished", ""), about["bob"], request.seed, request.budget),
        environment=environment,
        write_cache=request.write_cache,
        atomic_write_bytes=request.atomic_write_bytes,
        completion=request.completion.value,
        configurations=(column.result(column.cells()),),
    )
    run.save_result(to_json(result))
    return result


def add_kept(column: Column, run: RunDirectory, number: int, planned: Workload, model: DeviceModel) -> None:
    """Judge workload ``number`` of ``run``, which is done, from what was kept of it."""
    folder = run.folder(number, planned)
    if refusal := run.refusal(folder):
        column.refuse(*refusal)
        return
    workload, base_name, recording = run.recording(folder)
    base = run.base(base_name)
    column.add(workload, base, recording, Plan(checked(recording, base), base, model), run.observed(folder))
