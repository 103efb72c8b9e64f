"""The plugin for pytest: what it asks of bob, and that no test passes without an answer. Its example runs in guests in
tests/e2e/test_pytest_example.py."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from bob.answer.result import Result
from bob.claim.verdict import Verdict
from bob.cli import checks
from bob.cli.checks import Check, Health
from bob.errors import BobError, ImageError, UsageError
from bob.program.answer import Consequence
from bob.program.functions import ScriptMaker
from bob.run import programs, requests  # pytester forgets what is imported only in a run of its own
from bob.store.run_directory import RunDirectory
from samples_of_programs import file_system, of_program, way

pytest_plugins = ["pytester"]
IS_INSTALLED = any(one.value == "bob.cli.pytest_plugin" for one in entry_points(group="pytest11"))
PLUGIN = () if IS_INSTALLED else ("-p", "bob.cli.pytest_plugin")
TEST = """
import os
import helper

WORD = "saved"

def line():
    return WORD

def setup(folder):
    (folder / "f").write_text("old")

def workload(folder):
    helper.save(folder / "f")
    print(line())

def check(folder, told):
    assert os.path.exists(folder / "f")

def test_it(crash):
    crash.run(workload, check, setup)
"""


class Tried:
    """In the place of guests: notes what was asked, and answers with ``verdict``."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, Any]] = []
        self.verdict = Verdict.HOLDS
        self.raises: BobError | None = None
        self.runs: list[Path] = []

    def __call__(self, program: Any, requests: Any, out: Path, _progress: Any) -> tuple[Result, Path]:
        self.asked.append((program, requests))
        if self.raises is not None:
            raise self.raises
        RunDirectory.create(out, {"id": "one", "bob": "0"})
        self.runs.append(out)
        lost = way(Consequence.LOST, "the note is gone", 5, 2, witness="witnesses/00-1-lost.json")
        ways = (lost,) if self.verdict is Verdict.FAILS else ()
        reason = "a guest was lost" if self.verdict is Verdict.UNKNOWN else None
        return of_program("test_it", "", file_system("ext4", self.verdict, ways, reason=reason)), out


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch, pytester: pytest.Pytester) -> Iterator[Tried]:
    made = Tried()
    monkeypatch.setattr(programs, "try_program", made)
    monkeypatch.setattr(requests, "asked_images", lambda images, *_given, **_more: images)
    monkeypatch.setattr(checks, "checks", lambda: iter([Check("QEMU", Health.OK, "7.2")]))
    pytester.makepyfile(TEST, helper="def save(path):\n    path.write_text('new')\n")
    yield made


def outcome(pytester: pytest.Pytester, *given: str) -> tuple[dict[str, int], str]:
    done = pytester.runpytest_inprocess(*PLUGIN, "-p", "no:cacheprovider", *given)
    return done.parseoutcomes(), done.stdout.str()


def test_a_test_passes_where_the_program_is_safe_and_leaves_nothing(pytester: pytest.Pytester, tried: Tried) -> None:
    asked = (
        "--crash-fs",
        "xfs",
        "--crash-fs",
        "ext4",
        "--crash-budget",
        "7",
        "--crash-pace",
        "busy",
        "--crash-jobs",
        "1",
    )
    assert outcome(pytester, *asked)[0] == {"passed": 1}
    [(program, asked_for)] = tried.asked
    assert [(one.configuration.name, one.budget, one.pace.value, one.host.jobs) for one in asked_for] == [
        ("xfs", 7, "busy", 1), ("ext4", 7, "busy", 1),
    ]  # fmt: skip
    assert program.name == "test_it" and program.must_fail == ("emptied",)
    assert {file.path for file in program.files} == {"setup", "workload", "check", "helper.py"}
    assert not tried.runs[0].exists()


def test_the_scripts_run_as_the_functions_do(pytester: pytest.Pytester, tried: Tried, tmp_path: Path) -> None:
    outcome(pytester)
    (folder := tmp_path / "program").mkdir()
    (tree := tmp_path / "tree").mkdir()
    for file in tried.asked[0][0].files:
        (folder / file.path).write_bytes(file.data)
        (folder / file.path).chmod(0o755)
    run = lambda name, *more: os.popen(f"cd {tree} && {folder / name} {tree} {' '.join(more)}; echo =$?").read()  # noqa: E731
    (tmp_path / "told").write_text("")
    assert run("setup") == "=0\n" and (tree / "f").read_text() == "old"
    assert run("workload") == "saved\n=0\n" and (tree / "f").read_text() == "new"
    assert run("check", str(tmp_path / "told")) == "=0\n"
    (tree / "f").unlink()
    assert run("check", str(tmp_path / "told")) == 'assert os.path.exists(folder / "f")\n=1\n'


@pytest.mark.parametrize(("verdict", "said"), [(Verdict.FAILS, "bob replay"), (Verdict.UNKNOWN, "a guest was lost")])
def test_no_test_passes_that_is_not_safe(pytester: pytest.Pytester, tried: Tried, verdict: Verdict, said: str) -> None:
    tried.verdict = verdict
    counted, told = outcome(pytester)
    assert counted == {"failed": 1}
    assert said in told and tried.runs[0].exists()


def test_it_is_skipped_with_the_reason_where_no_guest_can_run(
    pytester: pytest.Pytester, tried: Tried, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried.raises = ImageError("mmdebstrap failed: no network")
    counted, told = outcome(pytester, "-rs")
    assert counted == {"skipped": 1} and "mmdebstrap failed: no network" in told
    assert outcome(pytester, "--crash-required")[0] == {"failed": 1}
    monkeypatch.setattr(checks, "checks", lambda: iter([Check("QEMU", Health.MISSING, "not found")]))
    tried.asked.clear()
    counted, told = outcome(pytester, "-rs")
    assert counted == {"skipped": 1} and "QEMU: not found" in told and not tried.asked
    assert outcome(pytester, "--crash-required")[0] == {"failed": 1}


def test_a_mistake_fails_with_its_hint(pytester: pytest.Pytester, tried: Tried) -> None:
    tried.raises = UsageError("the checker refuses the tree after the setup", hint="mend it")
    counted, told = outcome(pytester)
    assert counted == {"failed": 1} and "the checker refuses the tree" in told and "hint: mend it" in told
    for option, value in (("budget", "many"), ("pace", "fast")):
        counted, told = outcome(pytester, f"--crash-{option}", value)
        assert counted == {"failed": 1} and f"invalid --crash-{option} '{value}'" in told


def test_options_may_be_in_the_ini_file_and_a_script_may_be_a_command(pytester: pytest.Pytester, tried: Tried) -> None:
    pytester.makeini("[pytest]\ncrash_fs = btrfs vfat\ncrash_budget = 9\n")
    pytester.makepyfile(test_two="def test_it(crash):\n    crash.run('echo new > f', setup='touch f')\n")
    assert outcome(pytester, "test_two.py")[0] == {"passed": 1}
    [(program, asked)] = tried.asked
    assert [(one.configuration.name, one.budget) for one in asked] == [("btrfs", 9), ("vfat", 9)]
    assert {file.path: file.data for file in program.files} == {
        "setup": b"#!/bin/sh\ntouch f\n", "workload": b"#!/bin/sh\necho new > f\n",
    }  # fmt: skip
    assert program.must_fail == () and not program.has_checker


def test_the_page_shows_the_example() -> None:
    docs = Path(__file__).parents[2] / "docs"
    [shown] = re.findall(r"<!-- pytest -->\n```python\n(.*?)```", (docs / "apps.md").read_text(), flags=re.S)
    assert shown in (docs / "pytest" / "test_notes.py").read_text()


TABLE = {"of": "the module"}


def uses_a_table(folder: Path) -> None:
    folder.rename(TABLE["of"])


def takes_three(_a: object, _b: object, _c: object) -> None: ...


def uses_pytest(folder: Path) -> None:
    pytest.fail(str(folder))


def test_what_cannot_run_alone_in_a_guest_is_refused(tmp_path: Path) -> None:
    word = "around"

    def closure(folder: Path) -> None:
        folder.rename(word)

    for function, said in (
        (closure, "closure uses 'word' of the function around it"),
        (lambda _folder: None, "workload is not a function by def"),
        (uses_a_table, "uses_a_table uses 'TABLE' of its module"),
        (takes_three, "workload takes 3 arguments"),
        (uses_pytest, "the guest does not have the module pytest"),
        (pytest.mark.vm, "workload is not a function by def"),
    ):
        with pytest.raises(UsageError) as refused:
            ScriptMaker(tmp_path).script("workload", function)
        assert said in refused.value.message
    with pytest.raises(UsageError, match="does not exist"):
        ScriptMaker(tmp_path).add([tmp_path / "gone"])
