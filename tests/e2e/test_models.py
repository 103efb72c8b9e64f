"""A model from a real run: what was seen refutes clauses, with a witness that a guest confirms; a lie is found out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bob.apm.clauses import clause_of
from bob.apm.model import Status, load, save
from bob.cli.main import run as bob
from bob.progress import Silent
from bob.request import ProbeRequest
from bob.run.prober import probe
from bob.run.replay import replay
from bob.subject import configuration
from claims import own

pytestmark = pytest.mark.vm


def test_a_model_is_derived_confirmed_and_held_against_its_run(tmp_path: Path) -> None:
    run, out = tmp_path / "run", tmp_path / "apm"
    asked = configuration("ext4", "", "data=ordered")
    probe(ProbeRequest(asked, budget=60, probes=own("single-block-overwrite")), run, Silent())

    assert bob(["apm", "derive", "--witnesses", "--out", str(out), "--quiet", str(run)]) == 0
    model = load(out / "ext4-ordered.json")
    torn, kept = model.finding(clause_of("whole overwrite block")), model.finding(clause_of("intact contents"))
    assert (torn.status, kept.status) == (Status.REFUTED, Status.EXHAUSTIVE)
    assert torn.refutation is not None
    assert torn.refutation.witness is not None
    [shown] = list(replay([out / torn.refutation.witness], image=None, connect=None, times=2, progress=Silent()))
    assert shown.confirmed == 2

    assert bob(["apm", "check", "--quiet", str(out / "ext4-ordered.json"), str(run)]) == 0
    findings = [replace(one, promised=True) if one.clause == torn.clause else one for one in model.findings]
    save(replace(model, findings=tuple(findings)), tmp_path / "lie.json")
    assert bob(["apm", "check", "--quiet", str(tmp_path / "lie.json"), str(run)]) == 1
