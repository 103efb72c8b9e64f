"""One process at a time writes a run directory; that one holds a lock which no dead process holds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select

import pytest

import samples_of_runs as samples
from bob.errors import StoreError
from bob.judge.again import judge_again
from bob.progress import Silent
from bob.request import ANYWHERE, ProbeRequest
from bob.run import prober
from bob.run.matrix import resume as resume_matrix
from bob.run.prober import start
from bob.store.lock import alone, writing
from bob.store.matrix_directory import MatrixDirectory
from bob.store.run_directory import RunDirectory
from bob.subject import ConfigurationSet, configuration

CHECKOUT = Path(__file__).parents[2]
CHOSEN = ConfigurationSet("two", "", (configuration("ext2"), configuration("xfs")))


@contextmanager
def another_writer(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that writes the run directory ``path``."""
    script = "import sys, pathlib, time; from bob.store.lock import writing\n"
    script += "with writing([pathlib.Path(sys.argv[1])]): print('locked', flush=True); time.sleep(60)"
    command = [sys.executable, "-c", script, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "locked\n"
            yield process
        finally:
            process.kill()


def test_a_second_writer_is_refused_by_name(tmp_path: Path) -> None:
    with another_writer(tmp_path) as process, pytest.raises(StoreError) as refused, writing([tmp_path]):
        pytest.fail("two may write")
    assert refused.value.message == f"another bob (process {process.pid}) is writing {tmp_path}"
    assert refused.value.hint == "wait until it is done, or end it"


def test_the_lock_of_a_dead_process_blocks_nobody(tmp_path: Path) -> None:
    with another_writer(tmp_path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        with writing([tmp_path]):
            assert (tmp_path / "lock").read_text() == str(os.getpid())
    with writing([tmp_path]):
        pass  # and one that was let go of neither


def test_where_nothing_can_be_written_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot write"), writing([tmp_path / "nowhere"]):
        pytest.fail("there is no such directory")


def made_probe(path: Path) -> RunDirectory:
    return start(ProbeRequest(samples.CONFIGURATION, ("overwrite-any",)), path, "id")


def test_a_probe_that_is_written_is_neither_gone_on_with_nor_judged(tmp_path: Path) -> None:
    run = made_probe(tmp_path / "run")
    run.note(environment=samples.ENVIRONMENT)
    with another_writer(run.path):
        with pytest.raises(StoreError, match="is writing"):
            prober.resume(run.path, ANYWHERE, Silent())
        with pytest.raises(StoreError, match="is writing"):
            judge_again(run.path)
    assert not (run.path / "result.json").exists()


@pytest.mark.parametrize("place", [".", "xfs"])
def test_a_matrix_locks_itself_and_its_columns(tmp_path: Path, place: str) -> None:
    about = {"id": "x", "started": "", "bob": "", "set": "two", "about": ""}
    directory = MatrixDirectory.create(tmp_path / "run", about, ["ext2", "xfs"])
    for folder, made in zip(directory.folders, CHOSEN.configurations, strict=True):
        start(ProbeRequest(made, ("overwrite-any",)), folder, "x")
    with another_writer(directory.path / place):
        with pytest.raises(StoreError, match="is writing"):
            resume_matrix(directory.path, ANYWHERE, Silent())
        with pytest.raises(StoreError, match="is writing"):
            judge_again(directory.path)


def test_of_two_who_share_a_file_the_second_waits(tmp_path: Path) -> None:
    script = "import sys, pathlib; from bob.store.lock import alone\n"
    script += "with alone(pathlib.Path(sys.argv[1])): print('in', flush=True); sys.stdin.readline()"
    command = [sys.executable, "-c", script, str(tmp_path)]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT) as first,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT) as second,
    ):
        both = (first, second)
        pipes = [one.stdout for one in both if one.stdout]
        inside, _write, _error = select(pipes, [], [], 30)
        assert len(inside) == 1, "one is in"
        assert select([one for one in pipes if one not in inside], [], [], 2)[0] == [], "the other waits"
        with writing([tmp_path]):
            pass  # which is another lock
        for one in sorted(both, key=lambda one: one.stdout not in inside):
            one.communicate("\n", timeout=30)
        assert [one.returncode for one in both] == [0, 0]
    with pytest.raises(StoreError, match="cannot write"), alone(tmp_path / "nowhere"):
        pytest.fail("there is no such directory")
