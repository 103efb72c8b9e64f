"""Commands are printed as the user calls bob."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bob.cli.called import as_called
from bob.report.nearby import CALLED_AS

from .stand_in import Bob

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("    bob replay bob-runs/x/w.json", "    ../my/run replay bob-runs/x/w.json"),
        ("`bob image list` shows other images", "`../my/run image list` shows other images"),
        ("bob app new NAME; bob try", "../my/run app new NAME; ../my/run try"),
        ("bob shows this, and bob may try it", "bob shows this, and bob may try it"),
        ("bob removed all files with bob-runs", "bob removed all files with bob-runs"),
    ],
)
def test_commands_and_nothing_else(monkeypatch: pytest.MonkeyPatch, text: str, said: str) -> None:
    monkeypatch.delenv(CALLED_AS, raising=False)
    assert as_called(text) == text
    monkeypatch.setenv(CALLED_AS, "../my/run")
    assert as_called(text) == said
    monkeypatch.setenv(CALLED_AS, "a folder/run")
    assert as_called("bob doctor") == "'a folder/run' doctor"


def test_results_and_errors(bob: Bob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CALLED_AS, "./run")
    assert "hint: ./run image" in bob("image", "bild").err or "./run" in bob("show", "nowhere").err
    assert "./run app ./my --fs ext4" in bob("app", "new", "my").out


def test_run_says_how_it_was_called(tmp_path: Path) -> None:
    """Of ./run only the end, with a stand-in for bob, and with and without another bob in PATH."""
    end = (ROOT / "run").read_text().partition("\ncase ${1:-} in")[2].partition("\nesac")[0]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/bob").write_text('#!/bin/sh\necho "$BOB_CALLED_AS $*"\n')
    (tmp_path / "bin/bob").chmod(0o755)
    (tmp_path / "run").write_text(f"venv={tmp_path}\ncase ${{1:-}} in{end}\nesac\n")
    for path, said in (("/usr/bin:/bin", "./run show"), (f"{tmp_path}/bin:/usr/bin:/bin", " show")):
        ended = subprocess.run(
            ["sh", "./run", "show"], cwd=tmp_path, env={"PATH": path}, capture_output=True, text=True
        )
        assert ended.stdout == f"{said}\n", ended.stderr
