"""A crash during recovery that changes what recovery leaves: a row of its own, with a witness that can be read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import samples_of_runs as samples
from bob.claim.idempotence import IDEMPOTENT
from bob.claim.recovery import Idempotent
from bob.crash.device import DeviceModel
from bob.crash.state import CrashState
from bob.judge.column import Column
from bob.judge.recoveries import add_recoveries, recovery_of
from bob.result import Verdict
from bob.store.run_directory import RunDirectory
from bob.witness import document as witness
from claims import broken

WORKLOAD = recovery_of(samples.WORKLOAD, samples.LAST)
LOST = CrashState(1, (3,))


def column(*found: str, keep: dict[str, Any]) -> Column:
    """A column with one crashed recovery, in which the states have these outcomes."""

    def kept(name: str, document: Mapping[str, Any]) -> str:
        keep[name] = json.loads(json.dumps(document))
        return f"witnesses/{name}.json"

    made = Column(samples.CONFIGURATION, DeviceModel(), [], samples.ENVIRONMENT, kept)
    states = [(samples.FIRST, 0), (samples.LAST, 0), (LOST, 1), (CrashState(0, (2,)), 2)][: len(found) + 1]
    seen = samples.observed(*states, found=found)
    made.add_recovery(samples.case(WORKLOAD), seen, seen.findings.observation(0))
    return made


def test_a_difference_is_a_row_with_a_witness(tmp_path: Path) -> None:
    keep: dict[str, Any] = {}
    made = column(samples.ALL, samples.NOTHING, samples.UNMOUNTABLE, keep=keep)
    (cell,) = made.cells()
    assert (cell.name, cell.family, cell.verdict) == ("recovery-idempotent", "recovery", Verdict.FAILS)
    assert cell.evidence is not None
    assert cell.evidence.startswith("after a crash during recovery, /a is a file")
    assert made.result((cell,)).unmountable.states == 1
    assert set(keep) == {"recovery-idempotent", "unmountable"}

    path = tmp_path / "recovery-idempotent.json"
    path.write_text(json.dumps(keep["recovery-idempotent"]))
    read = witness.read(path)
    assert read.claim == Idempotent()
    assert "the next recovery did not come to the same" in read.sentence
    undisturbed, other = (
        samples.observed(found=[samples.ALL, samples.NOTHING]).findings.observation(number) for number in (0, 1)
    )
    assert broken(read, other, undisturbed) == cell.evidence
    assert broken(read, undisturbed, undisturbed) is None


def test_the_same_holds_and_what_was_refused_is_unknown() -> None:
    made = column(samples.ALL, keep={})
    assert [cell.verdict for cell in made.cells()] == [Verdict.HOLDS]
    made.refuse_property(IDEMPOTENT, "the guest was lost while recording")
    assert [(cell.verdict, cell.reason) for cell in made.cells()] == [
        (Verdict.UNKNOWN, "the guest was lost while recording")
    ]


def test_a_row_that_was_asked_for_is_never_silent(tmp_path: Path) -> None:
    """No crash state to recover from (each guest was lost, say): that is no reason to say nothing, or that it holds."""
    run = RunDirectory.create(tmp_path / "run", {"id": "one"})
    for recoveries in ({}, {"recoveries": []}):
        run.note(**recoveries)
        made = Column(samples.CONFIGURATION, DeviceModel(), [], samples.ENVIRONMENT, lambda name, _document: name)
        add_recoveries(made, run, [], DeviceModel())
        assert [(cell.name, cell.verdict) for cell in made.cells()] == [(IDEMPOTENT.name, Verdict.UNKNOWN)]
