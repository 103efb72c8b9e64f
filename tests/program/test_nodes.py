"""The shell that starts a cluster's nodes beside a client, here without networks: what starts when, and what its end
says."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from bob.agent.inside import isolation, nodes
from bob.agent.inside.nodes import UNAVAILABLE, NodesDocument, with_nodes

SKIPPING = 'while case "$1" in -*) true ;; *) false ;; esac; do shift; done; exec "$@"'


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cluster's folder. Each node notes its number and its process in the file `started`, and runs on. Programs that
    need rights are replaced by ones that only run the rest of their words."""
    home, programs = tmp_path / "program", tmp_path / "bin"
    home.mkdir()
    programs.mkdir()
    for name, text in {
        "nsenter": SKIPPING,
        "unshare": SKIPPING,
        "hostname": "true",
        "mount": "true",
        "umount": "true",
    }.items():
        script(programs / name, text)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    for module, names in {
        nodes: ("HOME", "ROOT", "LOGS", "LAUNCHER", "READY"),
        isolation: ("SCRIPT", "MOUNTS"),
    }.items():
        for name in names:
            monkeypatch.setattr(module, name, str(tmp_path / ("program" if name == "HOME" else name)))
    monkeypatch.setattr(nodes, "PAUSE_SECONDS", 0.05)
    isolation.prepare_isolation(3, uses_world=False)
    script(home / "node", f'echo "$1 $$" >>{tmp_path}/started; echo "node $1 of $3"; exec sleep 30')
    yield home
    for line in (tmp_path / "started").read_text().splitlines():
        with suppress(ProcessLookupError):
            os.kill(int(line.split()[1]), 9)


def run(
    *client: str, late: int = -1, starts: int = 2, again: int = 0, seconds: float = 2.0
) -> subprocess.CompletedProcess[str]:
    words = with_nodes(NodesDocument(3, seconds, late), list(client), lambda words: words, starts, again)
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


def started(home: Path) -> list[int]:
    """The numbers of the nodes, in the order of their starts."""
    return [int(line.split()[0]) for line in (home.parent / "started").read_text().splitlines()]


def test_the_client_runs_when_the_cluster_is_ready(home: Path) -> None:
    script(home / "ready", f"test $(wc -l <{home.parent}/started) = 3")
    ended = run("sh", "-c", "echo it is asked; exit 7")
    assert (ended.returncode, ended.stdout) == (7, "it is asked\n")
    assert sorted(started(home)) == [0, 1, 2]


def test_a_late_node_starts_when_the_others_are_ready(home: Path) -> None:
    script(home / "ready", f"test $(wc -l <{home.parent}/started) -ge 2")
    ended = run("sh", "-c", f"until [ $(wc -l <{home.parent}/started) = 3 ]; do sleep 0.05; done", late=0)
    assert ended.returncode == 0
    assert (sorted(started(home)[:2]), started(home)[2:]) == ([1, 2], [0])


def test_a_late_node_helps_others_that_do_not_get_ready(home: Path) -> None:
    script(home / "ready", f"test $(wc -l <{home.parent}/started) = 3")
    assert run("true", late=1).returncode == 0
    assert started(home)[2:] == [1]


def test_a_cluster_that_does_not_answer_is_repaired_and_started_again(home: Path) -> None:
    script(home / "ready", f"test -e {home.parent}/repaired && test $(wc -l <{home.parent}/started) = 6")
    script(home / "repair", f"touch {home.parent}/repaired")
    assert run("true").returncode == 0
    assert sorted(started(home)) == [0, 0, 1, 1, 2, 2]


def test_a_cluster_that_never_answers_is_unavailable(home: Path) -> None:
    script(home / "ready", "echo no leader; exit 1")
    ended = run("true", seconds=1.0)
    assert ended.returncode == UNAVAILABLE
    assert ended.stderr.startswith("the cluster is not ready within 1 s; n0 says: node 0 of 3; ")
    assert ended.stderr.endswith("says: no leader\n")
    assert len(started(home)) == 6


def test_a_client_that_gets_no_answer_asks_a_second_time(home: Path) -> None:
    script(home / "ready", f"test $(wc -l <{home.parent}/started) -ge 3")
    ended = run("sh", "-c", f"test -e {home.parent}/asked && exit 10; touch {home.parent}/asked; exit {UNAVAILABLE}")
    assert ended.returncode == 10
    assert run("sh", "-c", f"exit {UNAVAILABLE}").returncode == UNAVAILABLE


def test_nodes_that_are_stopped_while_they_start_do_not_run_on(home: Path) -> None:
    late = "import os, sys, time\ntime.sleep(0.5)\nos.execv('/usr/bin/setsid', sys.argv)\n"
    (home.parent / "bin" / "setsid").write_text(f"#!{sys.executable}\n{late}")
    (home.parent / "bin" / "setsid").chmod(0o755)
    began = time.monotonic()
    assert run("sh", "-c", f"exit {UNAVAILABLE}").returncode == UNAVAILABLE
    assert time.monotonic() - began < 15, "nobody waited until the nodes of the first start ended by themselves"
    while not (home.parent / "started").exists() or len(started(home)) < 3:
        time.sleep(0.05)
    assert sorted(started(home)) == [0, 1, 2], "those of the second start"


def test_a_client_that_is_refused_asks_again_after_a_while_and_says_so_if_the_cluster_has_healed(home: Path) -> None:
    asked = f"echo it is old; test -e {home.parent}/asked && exit 0; touch {home.parent}/asked; exit 10"
    ended = run("sh", "-c", asked, again=1)
    assert (ended.returncode, ended.stdout) == (10, "it is old\nit is old (a window: after 1 s all is well)\n")
    ended = run("sh", "-c", "echo it is lost; exit 10", again=1)
    assert (ended.returncode, ended.stdout) == (10, "it is lost\n")
    assert run("sh", "-c", "echo fine", again=1).stdout == "fine\n"


def test_a_node_that_ends_before_any_crash_is_a_mistake(home: Path) -> None:
    script(home / "ready", "exit 1")
    script(home / "node", f'echo "$1 $$" >>{home.parent}/started; [ $1 = 1 ] && echo no port && exit 3; exec sleep 30')
    ended = run("true", starts=1)
    assert (ended.returncode, ended.stderr) == (UNAVAILABLE, "node n1 ended with the exit code 3: no port\n")


def test_a_node_that_ends_while_the_client_runs_is_a_mistake(home: Path) -> None:
    script(home / "node", f'echo "$1 $$" >>{home.parent}/started; [ $1 = 2 ] && sleep 0.3 && exit 4; exec sleep 30')
    ended = run("sleep", "1", starts=1)
    assert (ended.returncode, ended.stderr) == (UNAVAILABLE, "node n2 ended with the exit code 4: \n")


def test_nobody_waits_for_a_cluster_whose_nodes_have_all_ended(home: Path) -> None:
    script(home / "ready", f"date >>{home.parent}/asked; exit 1")
    script(home / "node", f'echo "$1 $$" >>{home.parent}/started; echo "bad disk"; exit 1')
    assert run("true", seconds=600.0).stderr.count("bad disk") == 3
    assert len((home.parent / "asked").read_text().splitlines()) < 10
