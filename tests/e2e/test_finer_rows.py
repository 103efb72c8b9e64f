"""Finer rows, a model, and a probe of the user's own, on a real guest: judged again, replayed, and held against it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bob.answer.answer import Answer
from bob.apm.clauses import clause_of
from bob.apm.model import ClauseStatus, save
from bob.apm.model import load as load_model
from bob.catalogue.probe_files import load
from bob.catalogue.request import ANYWHERE, ProbeRequest
from bob.catalogue.sets import RowSet
from bob.claim.mounting import Sound
from bob.claim.property.of_property import OfProperty
from bob.claim.verdict import Verdict
from bob.cli.main import run as bob
from bob.errors import Exit
from bob.judge.again import judge_again
from bob.observe.observations import TroubleKind
from bob.progress import Silent
from bob.report.grids import grids
from bob.run.prober import probe, resume, start
from bob.run.replay import replay
from bob.run.shrink import shrink
from bob.subject import configuration
from bob.witness.document import read
from claims import own

pytestmark = [pytest.mark.vm, pytest.mark.usefixtures("warm_guests")]


def ask(out: Path, rows: RowSet, *properties: str) -> list[Answer]:
    """The cells of ext4 for these properties, judged twice."""
    request = ProbeRequest(configuration("ext4", "", "data=ordered"), properties, budget=30, rows=rows)
    result, _path = probe(request, out, Silent())
    [column] = result.subjects
    assert judge_again(out).subjects == result.subjects
    assert sum(len(grid.cells) for grid in grids(column)) == len(properties)
    return list(column.answers)


def test_an_fsync_makes_durable_what_a_write_that_returned_is_not(tmp_path: Path) -> None:
    synced, returned = ask(tmp_path / "run", RowSet.DURABILITY, "fsync-file.data", "returned.data")
    assert (synced.verdict, returned.verdict) == (Verdict.HOLDS, Verdict.FAILS)
    assert synced.states.explored > len(synced.recordings)
    assert "operation 1 (write /d/a 0 4096) had returned, but nothing of it is there" in (returned.evidence or "")
    assert returned.witness is not None
    witness = tmp_path / "run" / returned.witness
    [again] = replay([witness], image=None, connect=None, times=1, progress=Silent())
    assert again.confirmed == 1
    found = read(witness)
    assert isinstance(found.claim, OfProperty) and found.claim.question.returned == 1
    [shrunk] = shrink([witness], image=None, connect=None, budget=20, progress=Silent())
    assert shrunk.document is not None
    assert (shrunk.after.operations, shrunk.after.setup) == (1, 2)
    assert shrunk.document["workload"]["at"] == "end"


def test_an_append_is_not_persisted_before_a_later_rename_of_its_file(tmp_path: Path) -> None:
    [cell] = ask(tmp_path / "run", RowSet.PAIRS, "append-then-rename.same-file")
    assert cell.verdict is Verdict.FAILS
    assert {workload.finish for workload in cell.recordings} == {"natural", "natural 2.5"}
    assert "survived; nothing of operation 1 (append /d/f 4096), issued earlier, is there" in (cell.evidence or "")


# A probe of the user's own, on a real guest: run, judged again and replayed when its file is gone


def test_a_new_probe_finds_what_ext4_reorders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert bob(["probe", "new", "mine"]) == Exit.DONE
    file = tmp_path / "mine.toml"
    request = ProbeRequest(configuration("ext4", "", "data=ordered"), probes=(load(file),), budget=10)
    folder = start(request, tmp_path / "run", "made-up").path
    file.unlink()

    result, _path = resume(folder, ANYWHERE, Silent())
    [cell] = result.subjects[0].answers
    assert (cell.name, cell.verdict, cell.witness) == ("mine", Verdict.FAILS, "witnesses/mine.json")
    assert "rename /d/config.new /d/config" in (cell.evidence or "")
    assert judge_again(folder).subjects == result.subjects

    elsewhere = (folder / "witnesses" / "mine.json").rename(tmp_path / "sent.json")
    [again] = replay([elsewhere], image=None, connect=None, times=1, progress=Silent())
    assert again.confirmed == 1


# A model from a real run: what was seen refutes clauses, a guest confirms it, and a lie is found out


def test_a_model_is_derived_confirmed_and_held_against_its_run(tmp_path: Path) -> None:
    run, out = tmp_path / "run", tmp_path / "apm"
    asked = configuration("ext4", "", "data=ordered")
    probe(ProbeRequest(asked, budget=60, probes=own("single-block-overwrite")), run, Silent())

    assert bob(["apm", "derive", "--witnesses", "--out", str(out), "--quiet", str(run)]) == 0
    model = load_model(out / "ext4-ordered.json")
    torn, kept = model.finding(clause_of("whole overwrite block")), model.finding(clause_of("intact contents"))
    assert (torn.status, kept.status) == (ClauseStatus.REFUTED, ClauseStatus.EXHAUSTIVE)
    assert torn.refutation is not None
    assert torn.refutation.witness is not None
    [shown] = list(replay([out / torn.refutation.witness], image=None, connect=None, times=2, progress=Silent()))
    assert shown.confirmed == 2

    refuting = ["--refuting", str(run), "--out", str(tmp_path / "beside"), "--quiet", str(run)]
    assert bob(["apm", "derive", *refuting]) == 0
    assert load_model(tmp_path / "beside" / "ext4-ordered.json").source["refuting"] == model.source["workloads"]

    assert bob(["apm", "check", "--quiet", str(out / "ext4-ordered.json"), str(run)]) == 0
    findings = [replace(one, promised=True) if one.clause == torn.clause else one for one in model.findings]
    save(replace(model, findings=tuple(findings)), tmp_path / "lie.json")
    assert bob(["apm", "check", "--quiet", str(tmp_path / "lie.json"), str(run)]) == 1


# What is wrong with crash states that mount: its witness shows it again, on the kernel that said so

MOVED = """
name = "moved"
family = "atomicity"
meaning = "a file that is moved is whole"

[judge]
rule = "atomic"
subject = "directory"

[[workloads]]
name = "a file moved to another directory"
setup = ["mkdir /d", "mkdir /e", "write /d/a 0 8192"]
operations = ["rename /d/a /e/moved", "mkdir /e/new", "create /e/new/file"]
finish = ["sync"]
"""


def test_what_vfat_is_warned_of_shows_again_from_its_witness(tmp_path: Path) -> None:
    """fsck.vfat leaves directories of which the kernel says that they are corrupted."""
    file = tmp_path / "moved.toml"
    file.write_text(MOVED)
    request = ProbeRequest(configuration("vfat"), probes=(load(file),), budget=40)
    result, path = probe(request, tmp_path / "run", Silent())
    [column] = result.subjects
    troubles = list(column.troubles())
    assert troubles
    assert {kind for kind, _way in troubles} <= set(TroubleKind)
    witnesses = [path / str(way.witness) for _kind, way in troubles]
    assert [read(one).claim for one in witnesses] == [Sound(kind) for kind, _way in troubles]
    again = list(replay(witnesses, image=None, connect=None, times=2, progress=Silent()))
    assert [one.confirmed for one in again] == [2] * len(witnesses)

    from bob.cli.main import run

    assert run(["replay", "--quiet", "--times", "1", str(witnesses[0])]) == Exit.DONE


REMOVED_LATE = Path(__file__).parents[2] / "reports/reference/modern-linux-6.1/jfs/witnesses/removal-9.json"


def test_what_goes_wrong_some_time_after_the_removal_is_seen_each_time() -> None:
    """A thread of jfs meets the damage: before the removal is over, after a sync, or when it is unmounted."""
    [found] = replay([REMOVED_LATE], image=None, connect=None, times=40, progress=Silent())
    assert (found.confirmed, found.times) == (40, 40)
