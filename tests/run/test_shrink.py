"""After witnesses were shrunk, a run's results say what they say; and what cannot be shrunk is refused in a line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bob.catalogue.probe_files import Probe, shipped_probes
from bob.errors import UsageError
from bob.progress import Silent
from bob.report.saved import read_result
from bob.result import to_json
from bob.run.shrink import shrink, tell_results
from bob.witness.attempts import needed, smallest
from bob.workload.language import parse
from bob.workload.operations import Finish, Workload
from bob.workload.simulation import simulate
from cli.stand_in import result
from report.witnesses import documents, put


def test_results_are_told_anew(tmp_path: Path) -> None:
    made = result()
    (column,) = made.configurations
    cells = [
        replace(cell, witness=f"witnesses/{cell.name}.json") if cell.evidence else cell for cell in column.properties
    ]
    made = replace(made, configurations=(replace(column, properties=tuple(cells)),))
    put(tmp_path, made)
    (tmp_path / "result.json").write_text(json.dumps(to_json(made)))
    told = {cell.name for cell in cells if cell.witness}
    assert told
    for name in told:
        path = tmp_path / "witnesses" / f"{name}.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "evidence": f"smaller {name}"}))
    tell_results(tmp_path)
    (column,) = read_result(tmp_path).configurations
    assert {cell.name: cell.evidence for cell in column.properties if cell.witness} == {
        name: f"smaller {name}" for name in told
    }


def test_results_of_programs_are_told_anew(tmp_path: Path) -> None:
    path = tmp_path / "witnesses" / "00-1-lost.json"
    path.parent.mkdir()
    path.write_text(json.dumps({**documents()["overwrite-any"], "evidence": "lost acknowledged data: smaller"}))
    vulnerabilities = [{"evidence": "larger", "witness": f"witnesses/{path.name}"}, {"evidence": "by hand"}]
    document = {"schema": "bob.app/1", "configurations": [{"name": "ext4", "vulnerabilities": vulnerabilities}]}
    (tmp_path / "result.json").write_text(json.dumps(document))
    tell_results(tmp_path)
    [column] = json.loads((tmp_path / "result.json").read_text())["configurations"]
    assert [one["evidence"] for one in column["vulnerabilities"]] == ["lost acknowledged data: smaller", "by hand"]


def test_a_crash_during_recovery_is_not_shrunk(tmp_path: Path) -> None:
    path = tmp_path / "recovery-idempotent.json"
    of_recovery = {
        "claim": "recovery",
        "property": path.stem,
        "probe": None,
        "question": {"required": [], "later": None},
    }
    path.write_text(json.dumps({**documents()["overwrite-any"], **of_recovery}))
    with pytest.raises(UsageError, match="during recovery"):
        list(shrink([path], image=None, connect=None, budget=10, progress=Silent()))


# Smaller workloads: they ask the same, and keep what their operations need

SETUP = parse(
    "mkdir /d; mkdir /d/deep; mkdir /e; write /d/a 0 8192; sync; create /d/deep/b; link /d/a /e/linked; symlink /d/a /s"
)


def workload(operations: str, finish: str = "sync") -> Workload:
    return Workload("some", SETUP, parse(operations), Finish(finish, parse(finish)))


def test_the_tree_keeps_what_the_operations_touch() -> None:
    """The other name of a file that is unlinked too, and the directories that names are in; no more."""
    small = needed(workload("unlink /e/linked"))
    assert small.setup == parse("mkdir /d; mkdir /e; write /d/a 0 8192; link /d/a /e/linked")
    assert needed(workload("write /new 0 1")).setup == ()
    assert needed(workload("write /new 0 1", "fsync /d/deep")).setup == parse("mkdir /d; mkdir /d/deep")
    moved = needed(workload("rename /d /e/m; rename /e/m/deep /x; unlink /x/b"))
    assert moved.setup == parse("mkdir /d; mkdir /d/deep; mkdir /e; create /d/deep/b")


def test_the_smallest_comes_first() -> None:
    large = workload("create /e/x; write /d/a 0 100; create /e/y; unlink /e/x")
    attempts = list(smallest(large, (2, 4)))
    assert [len(one.operations) for one in attempts] == [2, 2, 4]
    assert attempts[0].operations == parse("write /d/a 0 100; unlink /e/x")
    assert [len(one.setup) for one in attempts] == [4, len(SETUP), 4]
    assert all(one.finish == large.finish for one in attempts)
    assert list(smallest(replace(large, setup=()), ())) == []


@pytest.mark.parametrize("probe", shipped_probes(), ids=lambda probe: probe.property.name)
def test_every_shipped_workload_can_be_done_on_what_it_needs(probe: Probe) -> None:
    for one in probe.workloads:
        small = needed(one)
        simulate(small)
        assert set(small.setup) <= set(one.setup)
