"""A stopped run of a program goes on where it was, also after SIGKILL, and ends as if nobody had stopped it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from bob import documents
from bob.answer.result import Result
from bob.catalogue.request import ProbeRequest
from bob.claim.verdict import Verdict
from bob.errors import StoreError
from bob.program.answer import Consequence
from bob.program.program import Pace, Program, ProgramFile
from bob.progress import Silent
from bob.run import program_windows, programs
from bob.run.programs import resume, try_program
from bob.store.run_directory import RunDirectory
from bob.subject import configuration

pytestmark = [pytest.mark.vm, pytest.mark.long, pytest.mark.usefixtures("warm_guests")]
TEXTS = {
    "setup": "echo old > f",
    "workload": "echo new > t; sync t; mv t f; echo moved; sync .; echo one > g; echo two",
    "check": 'cd "$1"; grep -q old f || grep -q new f || exit 11; grep -q two "$2" || exit 0; grep -q one g || exit 10',
}
REQUESTS = [
    replace(ProbeRequest(configuration("ext4"), budget=12), pace=pace) for pace in (Pace.UNDISTURBED, Pace.BUSY)
]


def program() -> Program:
    files = tuple(ProgramFile(name, f"#!/bin/sh\n{text}\n".encode(), True) for name, text in TEXTS.items())
    return Program("mine", "", files)


def found(result: Result) -> list[Any]:
    """The answers, without how many mounts they took: what one window has mounted, another need not."""
    return [replace(one.answer, states=replace(one.answer.states, mounted=0)) for one in result.subjects]


def windows(run: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(run.glob("workloads/*/windows/*.json"))}


def test_what_is_kept_is_not_done_again_and_the_rest_gives_the_same_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, _path = try_program(program(), REQUESTS, tmp_path / "whole", Silent())
    assert [one.answer.verdict for one in whole.subjects] == [Verdict.FAILS, Verdict.FAILS]
    stopped = tmp_path / "stopped"
    copytree(tmp_path / "whole", stopped)
    every = list(windows(stopped))
    assert len(every) == 6, "three windows at each pace"
    for path in (every[1], *every[4:], stopped / "result.json"):
        path.unlink()
    about = {name: value for name, value in RunDirectory(stopped).about().items() if name != "finished"}
    (stopped / "run.json").write_bytes(documents.sealed(documents.text(about)))
    explored: list[int] = []
    explore = program_windows.explore

    def counted(*given: Any) -> Any:
        explored.append(1)
        return explore(*given)

    monkeypatch.setattr(program_windows, "explore", counted)
    monkeypatch.setattr(programs, "record_program_run", lambda *_given, **_more: pytest.fail("recorded again"))
    monkeypatch.setattr(programs, "frames_of", lambda *_given: pytest.fail("traced again"))
    again, _path = resume(stopped, REQUESTS[0].host, Silent())
    assert len(explored) == 3
    assert found(again) == found(whole)
    assert again.run.finished
    assert resume(stopped, REQUESTS[0].host, Silent())[0] == again, "a finished run is only read"
    with pytest.raises(StoreError, match="not of bob cluster"):
        resume(stopped, REQUESTS[0].host, Silent(), of_cluster=True)


def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    run = tmp_path / "run"
    scripts = [part for name in TEXTS for part in (f"--{name}", str(tmp_path / name))]
    asked = ["--fs", "ext4", "--pace", "undisturbed", "--budget", "12", "--jobs", "1", "--out", str(run), *scripts]
    bob = subprocess.Popen([sys.executable, "-m", "bob", "app", "run", *asked, "--quiet"], start_new_session=True)
    until = time.monotonic() + 500
    while not windows(run) and bob.poll() is None and time.monotonic() < until:
        time.sleep(0.1)
    with suppress(ProcessLookupError):
        os.kill(bob.pid, signal.SIGKILL)
    assert bob.wait() == -signal.SIGKILL, "it was not done yet"
    kept = windows(run)
    assert 1 <= len(kept) < 3
    went_on = [sys.executable, "-m", "bob", "app", "--resume", str(run), "--jobs", "1", "--quiet"]
    assert subprocess.run(went_on, check=False).returncode == 1
    assert windows(run).items() > kept.items(), "what was kept is as it was"
    [subject] = RunDirectory(run).result().subjects
    assert {way.consequence for way in subject.answer.ways} == {Consequence.LOST}
