"""A run of a cluster that SIGKILL has stopped goes on from its recording, and finds what its cluster does wrong. Twelve
minutes on two processors with a load of 20."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from bob.claim.verdict import Verdict
from bob.program.answer import Consequence
from bob.store.run_directory import RunDirectory

pytestmark = [pytest.mark.vm, pytest.mark.long]
BUDGET = 6  # checks
SCRIPTS = {
    "node": "exec sleep 1000",
    "workload": 'echo it > "$1/n0/told"; echo told; sync; sleep 1',
    "check": '[ ! -s "$2" ] || [ -e "$1/n0/told" ] || { echo it is gone; exit 10; }',
}


def asked(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "bob", "cluster", *map(str, arguments), "--jobs", "1", "--quiet"]


def recordings(run: Path) -> dict[Path, bytes]:
    kept = (path for name in ("log*", "timeline", "recorded.json") for path in run.glob(f"workloads/*/{name}"))
    return {path.relative_to(run): path.read_bytes() for path in sorted(kept)}


def test_a_killed_run_of_a_cluster_goes_on(tmp_path: Path) -> None:
    folder, run = tmp_path / "mine", tmp_path / "run"
    folder.mkdir()
    (folder / "cluster.toml").write_text('about = "three nodes without a service"\nnodes = 3\nready_seconds = 5\n')
    for name, text in SCRIPTS.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    began = asked("power-cut", folder, "--fs", "ext4", "--budget", BUDGET, "--out", run)
    bob = subprocess.Popen(began, start_new_session=True)
    until = time.monotonic() + 500
    while not list(run.glob("workloads/*/told.json")) and bob.poll() is None and time.monotonic() < until:
        time.sleep(0.1)
    with suppress(ProcessLookupError):
        os.kill(bob.pid, signal.SIGKILL)
    assert bob.wait() == -signal.SIGKILL, "it was not done yet"
    kept = recordings(run)
    assert kept and not (run / "result.json").exists()

    assert subprocess.run(asked("--resume", run), check=False).returncode == 1
    assert recordings(run) == kept, "what was recorded is as it was"
    [subject] = RunDirectory(run).result().subjects
    assert subject.answer.verdict is Verdict.FAILS
    assert [way.consequence for way in subject.answer.ways] == [Consequence.LOST]
    assert subject.answer.ways[0].evidence.endswith("it is gone")
    assert RunDirectory(run).about()["finished"]
