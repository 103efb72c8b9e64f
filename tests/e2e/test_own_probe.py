"""A probe of the user's own, on a real guest: run, judged again and replayed when its file is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from bob.catalogue.probe_files import load
from bob.errors import Exit
from bob.judge.again import judge_again
from bob.progress import Silent
from bob.request import ANYWHERE, ProbeRequest
from bob.result import Verdict
from bob.run.prober import resume, start
from bob.run.replay import replay
from bob.subject import configuration

pytestmark = pytest.mark.vm


def test_a_new_probe_finds_what_ext4_reorders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bob.cli.main import run

    monkeypatch.chdir(tmp_path)
    assert run(["probe", "new", "mine"]) == Exit.DONE
    file = tmp_path / "mine.toml"
    request = ProbeRequest(configuration("ext4", "", "data=ordered"), probes=(load(file),), budget=10)
    folder = start(request, tmp_path / "run", "made-up").path
    file.unlink()

    result, _path = resume(folder, ANYWHERE, Silent())
    [cell] = result.configurations[0].properties
    assert (cell.name, cell.verdict, cell.witness) == ("mine", Verdict.FAILS, "witnesses/mine.json")
    assert "rename /d/config.new /d/config" in (cell.evidence or "")
    assert judge_again(folder).configurations == result.configurations

    elsewhere = (folder / "witnesses" / "mine.json").rename(tmp_path / "sent.json")
    [again] = replay([elsewhere], image=None, connect=None, times=1, progress=Silent())
    assert again.confirmed == 1
