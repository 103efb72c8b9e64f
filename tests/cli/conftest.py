"""bob as a user runs it, but inside this process, and with nothing behind it that would start a guest."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bob.cli.main import run
from bob.run.replay import ReplayDocument

from .stand_in import Bob, Ended, Work


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    """The stand-in; ``asked`` stays empty for as long as nothing is started."""
    work = Work()

    replaced = {"probe": work.probe, "try_out": work.try_out, "resume": work.resume}
    _replace(monkeypatch, "bob.run.prober", **replaced, RUNS=Path("bob-runs"))
    _replace(monkeypatch, "bob.run.search", search=work.search, resume=work.resume)
    _replace(monkeypatch, "bob.run.matrix", matrix=work.matrix, resume=work.resume)
    _replace(monkeypatch, "bob.run.programs", try_program=work.try_program, preflight=work.preflight)
    monkeypatch.setattr("bob.run.model_change.try_program", work.try_program)
    _replace(monkeypatch, "bob.judge.again", judge_again=work.judge_again)
    _replace(monkeypatch, "bob.run.replay", replay=work.replay, ReplayDocument=ReplayDocument)
    _replace(monkeypatch, "bob.run.export", export=work.export)
    return work


@pytest.fixture
def bob(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], work: Work) -> Bob:
    """``bob("probe", "--fs", "ext4")`` in an empty directory, with an empty cache and 80 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("BOB_DEBUG", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def bob(*arguments: object) -> Ended:
        code = run([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return Ended(code, said.out, said.err)

    return bob


def _replace(monkeypatch: pytest.MonkeyPatch, name: str, **contents: Any) -> None:
    module = ModuleType(name)
    vars(module).update(contents)
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(name, module, raising=False)  # ``from bob.run import prober`` looks there first
