"""``reports/make-apps``: restored answers make the same reference again, and those of a stopped run are in none."""

from __future__ import annotations

import lzma
import shutil
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

from bob import documents
from bob.report.saved import load_every

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture
def make_apps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, with copies of the references in place of them."""
    spec = spec_from_loader("make_apps", SourceFileLoader("make_apps", str(CHECKOUT / "reports" / "make-apps")))
    assert spec is not None and spec.loader is not None
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    for name in ("TARGET", "MODELS_TARGET"):
        kept: Path = getattr(script, name)
        copy = tmp_path / kept.relative_to(CHECKOUT)
        shutil.copytree(kept, copy)
        monkeypatch.setattr(script, name, copy)
    monkeypatch.setattr(script, "ROOT", tmp_path)
    return script


def contents(folder: Path) -> dict[str, object]:
    """What is in the files of a reference; results are the same whatever version of a document they are in."""
    return {path.name: _inside(path) for path in folder.iterdir()}


def _inside(path: Path) -> object:
    if path.name in ("apps.json.xz", "results.json.xz"):
        return [saved.result for saved in load_every(path)]
    return documents.opened(lzma.decompress(path.read_bytes())) if path.suffix == ".xz" else path.read_bytes()


def test_restored_answers_make_the_same_reference(make_apps: ModuleType, tmp_path: Path) -> None:
    before = contents(make_apps.TARGET)
    make_apps.restore(tmp_path / "runs", "2026")
    make_apps.write(tmp_path / "runs")
    assert contents(make_apps.TARGET) == before


def test_restored_answers_of_models_make_the_same_reference(make_apps: ModuleType, tmp_path: Path) -> None:
    before = contents(make_apps.MODELS_TARGET)
    make_apps.restore_models(tmp_path / "runs", "2026")
    make_apps.write_models(tmp_path / "runs")
    assert contents(make_apps.MODELS_TARGET) == before


def test_a_run_that_was_stopped_is_in_no_reference(make_apps: ModuleType, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    make_apps.restore(runs, "2026")
    for program in sorted(path for path in runs.iterdir() if path.name not in ("gdbm", "lmdb")):
        shutil.rmtree(program)
    (runs / "gdbm" / "xfs" / "run.json").write_text("{}")
    make_apps.write(runs)
    row = next(
        line for line in (make_apps.TARGET / "README.md").read_text().splitlines() if line.startswith("| [gdbm]")
    )
    assert [cell.strip() for cell in row.split("|")][5] == "–"


def test_answers_of_before_are_not_restored(make_apps: ModuleType, tmp_path: Path) -> None:
    make_apps.restore(tmp_path / "runs", "2027")
    make_apps.restore_models(tmp_path / "models", "2027")
    assert not (tmp_path / "runs").exists() and not (tmp_path / "models").exists()


def test_two_that_measure_in_one_folder_share_the_work(
    make_apps: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(make_apps, "ask", lambda program, label, *_more: asked.append((program, label)))
    with make_apps.claim(tmp_path / "gdbm" / "xfs") as is_ours:
        assert is_ours
        make_apps.measure(tmp_path, ["gdbm"])
        make_apps.measure_models(tmp_path, ["gdbm"])
    assert asked
    assert ("gdbm", "xfs") not in asked
    make_apps.measure(tmp_path, ["gdbm"])
    assert ("gdbm", "xfs") in asked
