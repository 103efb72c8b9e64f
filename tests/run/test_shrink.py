"""After witnesses were shrunk, a run's results say what they say; and what cannot be shrunk is refused in a line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bob.errors import UsageError
from bob.progress import Silent
from bob.report.saved import read_result
from bob.result import to_json
from bob.run.shrink import shrink, tell_results
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
