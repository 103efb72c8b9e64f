"""A small matrix on real guests: every kind of file system, one that cannot be, and a SIGKILL in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from bob.answer.answer import Answer
from bob.answer.result import Result, SubjectResult
from bob.catalogue.request import Host, ProbeRequest
from bob.claim.verdict import Verdict
from bob.progress import Silent
from bob.run.matrix import matrix, resume
from bob.run.replay import replay
from bob.store.matrix_directory import MatrixDirectory
from bob.subject import ConfigurationSet, configuration
from claims import own

pytestmark = pytest.mark.vm

KINDS = ("ext2", "ext3", "btrfs", "xfs", "reiserfs")
DEADLINE = 300.0


def cell(column: SubjectResult) -> Answer:
    [found] = column.answers
    return found


def test_every_kind_of_file_system(tmp_path: Path) -> None:
    impossible = configuration("xfs", device=16 * 1024 * 1024, name="too small")
    chosen = ConfigurationSet("kinds", "", (*map(configuration, KINDS), impossible))
    request = ProbeRequest(chosen.configurations[0], budget=12, probes=own("single-block-append"))
    result, run = matrix(chosen, request, tmp_path / "run", Silent())
    columns = {column.name: column for column in result.subjects}
    assert tuple(columns) == (*KINDS, "too small")
    for name in KINDS:
        found = cell(columns[name])
        assert found.verdict in (Verdict.FAILS, Verdict.HOLDS), (name, found.reason)
        assert found.states.explored > 0
        assert columns[name].mkfs_version
        assert columns[name].effective_mount_options.startswith("rw,")
    # ext2 has no journal: the size can reach the disk without the data (the paper's finding, too)
    assert cell(columns["ext2"]).verdict is Verdict.FAILS
    assert cell(columns["too small"]).verdict is Verdict.SKIPPED
    assert "mkfs.xfs" in (cell(columns["too small"]).reason or "")
    witness = cell(columns["ext2"]).witness
    assert witness is not None
    [again] = replay([run / witness], image=None, connect=None, times=3, progress=Silent())
    assert again.confirmed == 3


def table(result: Result) -> list[SubjectResult]:
    """Verdicts and what was explored; legal counts may vary (docs/limits.md), and with them what is exhaustive."""
    return [
        replace(
            column,
            answers=tuple(
                replace(one, states=replace(one.states, legal_writes=0, legal_sectors=0), recordings=())
                for one in column.answers
            ),
        )
        for column in result.subjects
    ]


def test_killed_and_resumed_gives_the_same_table(tmp_path: Path) -> None:
    file = tmp_path / "two.toml"
    file.write_text('[[configurations]]\nfs = "ext4"\n[[configurations]]\nfs = "ext3"\n')
    mine = tmp_path / "mine.toml"
    shipped = (Path(__file__).parents[2] / "probes" / "single-sector-append.toml").read_text()
    mine.write_text(shipped.replace('name = "single-sector-append"', 'name = "mine"', 1))
    options = ["--set", str(file), "--probe", str(mine), "--budget", "15", "--quiet"]
    command = [sys.executable, "-m", "bob", "matrix", *options, "--out"]
    killed = subprocess.Popen([*command, str(tmp_path / "killed")], start_new_session=True)
    second = MatrixDirectoryOf(tmp_path / "killed", 1)
    end = time.monotonic() + DEADLINE
    while not second.observed() and time.monotonic() < end:
        assert killed.poll() is None
        time.sleep(0.1)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    before = second.observed()
    assert before
    resumed, _run = resume(tmp_path / "killed", Host(), Silent())
    assert [column.name for column in resumed.subjects] == ["ext4", "ext3"]
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in before.items()), "nothing finished is done again"

    subprocess.run([*command, str(tmp_path / "alone"), "--json", "alone.json"], cwd=tmp_path, check=True)
    alone, _run = resume(tmp_path / "alone", Host(), Silent())
    assert table(resumed) == table(alone)


class MatrixDirectoryOf:
    """A column of a matrix that another process is making."""

    def __init__(self, path: Path, column: int) -> None:
        self._path, self._column = path, column

    def observed(self) -> dict[Path, int]:
        """The observations that are there, and when each was written (ns)."""
        if not (self._path / "run.json").exists():
            return {}
        folder = MatrixDirectory(self._path).folders[self._column]
        return {path: path.stat().st_mtime_ns for path in folder.glob("workloads/*/observed.json")}


# Interrupts, however often repeated and at whatever moment, mark nothing finished that is not

CHECKOUT = Path(__file__).parents[2]
ASKED = ["--fs", "ext4", "--property", "append-append-same-file", "--budget", "5", "--jobs", "1", "--quiet"]


@pytest.mark.parametrize("seed", range(3))
def test_interrupts_mark_nothing(seed: int, tmp_path: Path) -> None:
    """Where two came within 0.2 s of each other, nine of twelve runs kept a refusal: "the guest vanished"."""
    random, run = Random(seed), tmp_path / "run"
    with subprocess.Popen(
        [sys.executable, "-m", "bob", "probe", *ASKED, "--out", str(run)],
        cwd=CHECKOUT,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        deadline = time.monotonic() + 300
        while process.poll() is None and not list(run.glob("bases/*.json")):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(random.uniform(0, 1))  # somewhere in the first recordings
        for number in random.choices([signal.SIGINT, signal.SIGTERM, signal.SIGHUP], k=random.choice([2, 5])):
            process.send_signal(number)
            time.sleep(random.uniform(0, 0.2))
        _out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "interrupted" in err
    assert not [file for name in ("refused", "lost") for file in run.glob(f"workloads/*/{name}.json")]
    assert all('"lost": null' in file.read_text() for file in run.glob("workloads/*/observed.json"))
