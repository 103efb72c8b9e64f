"""What the documentation tells people to type, typed: the tutorial from its first command to its last, minix, the
notebook; and Python finds what the command line finds, and leaves no guest when it is interrupted."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

import bob
from bob.answer.document import from_json
from bob.answer.result import Result
from bob.claim.verdict import Verdict
from bob.cli.main import run as typed
from bob.errors import Exit
from bob.program.answer import Consequence
from bob.store.files import read_document

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


@pytest.mark.long
def test_a_file_system_of_ones_own_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [minix] = re.findall(r"<!-- minix -->\n```toml\n(.*?)```", (DOCS / "extend.md").read_text(), flags=re.S)
    monkeypatch.chdir(tmp_path)
    Path("minix.toml").write_text(minix)
    asked = ["--property", "directory-op", "--budget", "5", "--jobs", "1", "--quiet"]
    assert typed(["probe", "--fs", "./minix.toml", *asked, "--out", "run"]) == Exit.DONE
    Path("minix.toml").unlink()  # from here on, the run says what it was
    found = bob.load("run").result
    [column] = found.subjects
    cells = {cell.name: cell for cell in column.answers}
    assert column.fs == column.name == "minix" and set(cells) == {"directory-op"}
    assert all(cell.verdict is Verdict.FAILS and cell.witness for cell in cells.values())
    refused = [read_document(path)["reason"] for path in tmp_path.glob("run/workloads/*/refused.json")]
    assert any("of the initial tree" in words and words.endswith("File name too long") for words in refused)
    assert typed(["replay", "run/witnesses/directory-op.json"]) == Exit.DONE
    assert typed(["judge", "run", "--quiet"]) == Exit.DONE
    assert bob.load("run").result == found


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A probe file with three recordings, in the current directory; there is one guest at a time."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bob.toml").write_text("jobs = 1\nbudget = 12\n")
    assert typed(["probe", "new", "mine"]) == Exit.DONE
    return "mine.toml"


def judged(result: Result) -> list[tuple[str, str, Verdict]]:
    """What is said of each recording, by its name and finish."""
    [cell] = result.subjects[0].answers
    return [(one.name, one.finish, one.verdict) for one in cell.recordings]


def test_python_probes_as_the_command_line_does(mine: str) -> None:
    asked = ["--fs", "ext4", "--mount-opts", "data=ordered", "--probe", mine, "--quiet"]
    assert typed(["probe", *asked, "--out", "typed"]) == Exit.DONE
    called = bob.probe("ext4", mount_options="data=ordered", probes=mine, out="called")
    assert called.folder == Path("called")
    assert called.result.run.budget == 12
    assert called.matrix().to_dict() == {"ext4-ordered": {("ordering", "mine"): "×"}}
    assert judged(called.result) == judged(bob.load("typed").result)
    assert bob.load("called").result == called.result
    documents = [read_document(Path(run) / "run.json")["request"] for run in ("typed", "called")]
    assert documents[0] == documents[1]


def answered(result: Result) -> list[tuple[str, Verdict, set[str]]]:
    """The answer to each expectation."""
    return [(one.name, one.verdict, {way.evidence for way in one.ways}) for one in result.answers]


def test_python_tries_as_the_command_line_does(mine: str) -> None:
    operations, expected = "write /a 0 4096; rename /a /b", ("content /b = new", "absent /b or content /b prefix new")
    options = [word for one in expected for word in ("--expect", one)]
    asked = ["try", "--fs", "ext4", operations, *options, "--json", "typed.json", "--quiet"]
    assert typed(asked) == Exit.DIFFERENT
    called = bob.try_(operations, expected, fs="ext4")
    assert answered(called.result) == answered(from_json(json.loads(Path("typed.json").read_bytes())))
    assert [one.verdict for one in called.answers] == [Verdict.FAILS, Verdict.HOLDS]
    assert (called.folder / str(called.answers[0].witness)).is_file()


@pytest.mark.long
def test_python_asks_for_a_program_as_the_command_line_does(mine: str) -> None:
    asked = ["app", "replace-rename", "--fs", "ext4", "--pace", "undisturbed", "--json", "typed.json", "--quiet"]
    assert typed(asked) == Exit.DIFFERENT
    found = from_json(json.loads(Path("typed.json").read_bytes()))
    called = bob.app("replace-rename", fs="ext4", pace="undisturbed", out="called")
    assert called.folder == Path("called")
    for one in (found, called.result):
        [subject] = one.file_systems
        assert (subject.name, subject.answer.verdict) == ("ext4", Verdict.FAILS)
        assert {way.consequence for way in subject.answer.ways} == {Consequence.LOST}
        assert one.program == called.result.program
    assert bob.load("called").result == called.result


INTERRUPTED = """
import os, signal, sys, threading, time
import bob
from bob.guest import reap
from bob.guest.root import Root
from bob.progress import Silent

class Impatient(Silent):
    def recorded(self, workload):
        fingers.append(threading.Thread(target=self.press))
        fingers[-1].start()
    def press(self):
        while presses:
            presses.pop()
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1.05)  # a later one is another press

fingers, presses = [], [None] * int(sys.argv[1])
try:
    bob.probe("ext4", mount_options="data=ordered", probes="mine.toml", out="run", progress=Impatient())
except KeyboardInterrupt as interrupt:
    presses.clear()  # where the call ends within a second, the next press would meet what follows it
    for finger in fingers:
        finger.join()
    print(*interrupt.__notes__, sep="\\n")
print("guests left:", len(reap.qemus(f"{Root.shared().path}/")))
print("handler as before:", signal.getsignal(signal.SIGINT) is signal.default_int_handler)
print(bob.resume("run").matrix().to_string(header=False, index=False))
"""


@pytest.mark.parametrize("presses", [1, 2])
def test_python_that_is_interrupted_leaves_no_guest_and_goes_on(mine: str, presses: int) -> None:
    words = [sys.executable, "-c", INTERRUPTED, str(presses)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == snapshot(
        ["bob keeps what is finished; bob.resume('run') continues", "guests left: 0", "handler as before: True", "×"]
    ), done.stderr


SAME_EACH_TIME = (0, 1, 4, 5, 6)
"""The cells of which the output depends on no count: verdicts, evidence, the mistake."""


@pytest.mark.long
def test_the_notebook(tmp_path: Path) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    (tmp_path / "bob.toml").write_text("jobs = 1\n")
    notebook = nbformat.read(DOCS / "notebook.ipynb", as_version=4)
    kept = printed(notebook)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=900, kernel_name="python3", resources=resources).execute()
    found = printed(notebook)
    assert len(found) == len(kept)
    for number in SAME_EACH_TIME:
        assert found[number] == kept[number]


def printed(notebook: Any) -> list[str]:
    """What each cell of code printed, or shows as its value."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [
        "".join(one.get("text") or one.data["text/plain"] for one in cell.outputs if "text" in one or "data" in one)
        for cell in cells
    ]
