"""A crash during recovery that changes what recovery leaves: a row of its own; and whose recoveries are crashed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import samples_of_runs as samples
from bob.claim.idempotence import IDEMPOTENT
from bob.claim.recovery import Idempotent
from bob.crash.coverage import States
from bob.crash.device import DeviceModel
from bob.crash.state import CrashState
from bob.judge.column import Column
from bob.judge.recovered import Recovered, chosen
from bob.judge.recoveries import add_recoveries, recovery_of
from bob.observe.observation import Findings
from bob.observe.observed import Observed, Seen
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


# Whose recoveries are crashed: one of each outcome, drawn from the seed, and none of a lost guest


OUTCOMES = [json.dumps({"error": error, "repaired": False, "tree": {}}) for error in (None, None, "Bad message")]


def observed(lost: str | None = None) -> Observed:
    torn = CrashState(1, (), ((3, ((0, 1),)),))
    states = (
        Seen(CrashState(0), 0),
        Seen(torn, 0),
        Seen(CrashState(1, (3,)), 0),
        Seen(CrashState(2), 1),
        Seen(CrashState(2, (4,)), 2),
        Seen(CrashState(3), None),
    )
    return Observed(states, Findings(OUTCOMES), States(), lost)


def test_the_easiest_state_of_each_outcome_that_mounts() -> None:
    every = chosen([(7, observed()), (8, observed("the guest was lost"))], 100, 1)
    assert every == [Recovered(7, CrashState(2), 1), Recovered(7, CrashState(1, (3,)), 0)]
    assert [Recovered.from_json(json.loads(json.dumps(one.to_json()))) for one in every] == every


def test_the_seed_draws_them() -> None:
    runs = [(number, observed()) for number in range(30)]
    drawn = [chosen(runs, 10, seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert [len(one) for one in drawn] == [10, 10, 10]
    assert set(drawn[2]) < set(chosen(runs, 60, 1))
