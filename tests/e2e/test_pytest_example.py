"""The example of the plugin for pytest, run as docs/apps.md says: one test fails by a crash, its mended twin passes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from shutil import copytree

import pytest

from bob.cli.main import run as typed
from bob.errors import Exit

pytestmark = [pytest.mark.vm, pytest.mark.long]
ROOT = Path(__file__).parents[2]
IS_INSTALLED = any(one.value == "bob.cli.pytest_plugin" for one in entry_points(group="pytest11"))


def test_the_example_fails_where_the_note_can_be_lost_and_its_replay_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copytree(ROOT / "docs" / "pytest", example := tmp_path / "example")
    plugin = () if IS_INSTALLED else ("-p", "bob.cli.pytest_plugin")
    command = [
        sys.executable,
        "-m",
        "pytest",
        *plugin,
        "-p",
        "no:cacheprovider",
        "--crash-jobs",
        "1",
        "--crash-budget",
        "30",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    done = subprocess.run(command, cwd=example, env=environment, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "FAILED test_notes.py::test_save " in done.stdout
    said = " ".join(done.stdout.split())
    assert "the note was saved, and is the old one" in said
    assert "must be durable by then:" in said and "rename /note.new to /note" in said
    [again] = re.findall(r"bob (replay \S+)", done.stdout)
    monkeypatch.chdir(example)
    assert typed([*shlex.split(again), "--times", "1"]) == Exit.DONE
