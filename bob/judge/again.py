"""Judging a run again from what it kept: no guest is needed."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from bob.config import configuration
from bob.crash.device import DeviceModel, WriteCache
from bob.crash.plan import Plan
from bob.errors import StoreError
from bob.judge.column import Column
from bob.probe_files import shipped_probes
from bob.record.check import checked
from bob.result import Environment, Result, Run, to_json
from bob.store import RunDirectory, workload_from_json


def judge_again(path: Path) -> Result:
    """The result of the run in ``path``, judged anew from its recordings and observations; it replaces result.json.

    Raises StoreError where something that the run should have kept is not there.
    """
    run = RunDirectory(path)
    about = run.about()
    if not {"request", "bob", "workloads"} <= set(about):
        raise StoreError(f"{path} was made by another version of bob", hint="probe again")
    if "environment" not in about:
        raise StoreError(f"{path} was never run", hint="it stopped before its guests were there; probe again")
    asked = about["request"]
    environment = Environment(**about["environment"])
    made = configuration(asked["fs"], asked["mkfs_options"], asked["mount_options"], asked["device"])
    model = DeviceModel(WriteCache(asked["write_cache"]), asked["atomic_write_bytes"])
    properties = [probe.property for probe in shipped_probes(asked["properties"])]
    column = Column(made, model, properties, asdict(environment), run.save_witness)
    for number, planned in enumerate(map(workload_from_json, about["workloads"])):
        folder = run.folder(number, planned)
        if refusal := run.refusal(folder):
            column.refuse(*refusal)
        elif not run.is_observed(folder):
            column.refuse(planned, "the run was stopped before this workload was observed")
        else:
            workload, base_name, recording = run.recording(folder)
            base = run.base(base_name)
            plan = Plan(checked(recording, base), base, model)
            column.add(workload, base, recording, plan, run.observed(folder))
    result = Result(
        run=Run(about["id"], about["started"], about.get("finished", ""), about["bob"], asked["seed"], asked["budget"]),
        environment=environment,
        write_cache=asked["write_cache"],
        atomic_write_bytes=asked["atomic_write_bytes"],
        configurations=(column.result(column.cells()),),
    )
    run.save_result(to_json(result))
    return result
