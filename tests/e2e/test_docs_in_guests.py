"""What the documentation tells people to type, typed: the tutorial from its first command to its last, and minix."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bob.subject.file_system
from bob.progress import Silent
from bob.request import ProbeRequest
from bob.result import Verdict
from bob.run.prober import probe
from bob.store.run_directory import read_document
from bob.subject import configuration, file_systems

pytestmark = pytest.mark.vm

DOCS = Path(__file__).parents[2] / "docs"
TUTORIAL = {
    "./run doctor": "a probe can run",
    "./run probe": "overwrite-any  ×",
    "./run replay": "the violation shows in 3 of 3 mounts",
    "./run witness": "«create /d/new» was committed",
    "./run trace": "[op01:000001:00]",
    "grep": "bob: op 1 begin",
}
"""How each command of the tutorial begins, and what it prints, whatever the kernel and the machine."""


def test_the_tutorial(tmp_path: Path) -> None:
    (tmp_path / "run").write_text(f'#!/bin/sh\nexec {Path(sys.executable).with_name("bob")} "$@"\n')
    (tmp_path / "run").chmod(0o755)
    commands = re.findall(r"^```sh\n(.*?)^```$", (DOCS / "tutorial.md").read_text(), flags=re.S | re.M)
    assert len(commands) == len(TUTORIAL)
    for command, (begins, prints) in zip(commands, TUTORIAL.items(), strict=True):
        assert command.startswith(begins)
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, command + done.stderr
        assert prints in re.sub(r"\s+", " ", done.stdout) or prints in done.stdout, command


def test_a_file_system_is_added_by_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [minix] = re.findall(r"<!-- minix -->\n```toml\n(.*?)```", (DOCS / "add-a-file-system.md").read_text(), flags=re.S)
    folder = tmp_path / "file-systems"
    shutil.copytree(DOCS.parent / "bob" / "subject" / "file-systems", folder)
    (folder / "minix.toml").write_text(minix)
    monkeypatch.setattr(bob.subject.file_system, "_FOLDER", folder)
    file_systems.cache_clear()
    try:
        asked = ProbeRequest(configuration("minix"), properties=("directory-op",), budget=5)
        result, _run = probe(asked, tmp_path / "run", Silent())
    finally:
        file_systems.cache_clear()
    [column] = result.configurations
    cells = {cell.name: cell for cell in column.properties}
    assert column.fs == "minix" and set(cells) == {"directory-op"}
    assert all(cell.verdict is Verdict.FAILS and cell.witness for cell in cells.values())
    refused = [read_document(path)["reason"] for path in tmp_path.glob("run/workloads/*/refused.json")]
    assert any("of the initial tree" in words and words.endswith("File name too long") for words in refused)
