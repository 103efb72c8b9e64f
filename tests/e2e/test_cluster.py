"""Clusters on a real guest: all nodes lose power at once. Some minutes on two busy processors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bob.answer.result import SubjectResult
from bob.catalogue.request import ProbeRequest
from bob.claim.verdict import Verdict
from bob.errors import UsageError
from bob.program.answer import Consequence
from bob.program.folder import CLUSTER
from bob.program.program import Program, ProgramFile
from bob.progress import Silent
from bob.run.programs import try_program
from bob.run.replay import replay
from bob.subject import cluster_of, configuration
from wording import text_with

pytestmark = [pytest.mark.vm, pytest.mark.long, pytest.mark.usefixtures("warm_guests")]
FEW = 12  # checks


def toy(*faults: str) -> Program:
    """The shipped cluster, with these bugs planted."""
    made = CLUSTER.named("toy")
    words = ProgramFile("faults", "\n".join(faults).encode(), False)
    return replace(made, files=tuple(words if file.path == "faults" else file for file in made.files))


def small(node: str, workload: str, **more: Any) -> Program:
    """A cluster of three nodes without a service. Its checker wants the file `told` after any output."""
    scripts = {"node": node, "workload": workload, "check": '[ ! -s "$2" ] || [ -e "$1/n0/told" ] || exit 10'}
    files = tuple(ProgramFile(name, f"#!/bin/sh\n{text}\n".encode(), True) for name, text in scripts.items())
    return Program("small", "three nodes", files, nodes=3, ready_seconds=5, **more)


def cut_power(cluster: Program, out: Path) -> SubjectResult:
    asked = ProbeRequest(cluster_of([configuration("ext4")] * cluster.nodes), budget=FEW, only_durable=True)
    answers, _path = try_program(cluster, [asked], out, Silent())
    [subject] = answers.file_systems
    return subject


PLANTED = {
    "no-directory-fsync": (Consequence.LOST, "title"),
    "snapshot-not-synced": (Consequence.UNAVAILABLE, "JSONDecodeError"),
    "followers-no-fsync": (Consequence.LOST, "k2"),
    "ack-from-memory": (Consequence.LOST, "k0"),
    "log-cut-first": (Consequence.LOST, "k0"),
    "vote-ignores-log": (Consequence.LOST, "k2"),
    "vote-not-synced": (Consequence.UNAVAILABLE, "JSONDecodeError"),
}


def test_the_right_cluster_survives(tmp_path: Path) -> None:
    right = cut_power(toy(), tmp_path / "right")
    assert right.name == "3 x ext4"
    assert (right.answer.verdict, right.answer.reason) == (Verdict.HOLDS, None)


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_bug_is_found(fault: str, tmp_path: Path) -> None:
    consequence, words = PLANTED[fault]
    wrong = cut_power(toy(fault), tmp_path / "wrong")
    assert wrong.answer.verdict is Verdict.FAILS
    ways = [way for way in wrong.answer.ways if way.consequence is consequence]
    assert any(words in way.evidence for way in ways), wrong.answer.ways
    if consequence is Consequence.LOST:
        assert any("was acknowledged, but the cluster answers" in way.evidence for way in ways)


def test_a_crash_of_a_cluster_is_replayed(tmp_path: Path) -> None:
    wrong = cut_power(toy("no-fsync"), tmp_path / "wrong")
    lost = next(way for way in wrong.answer.ways if way.consequence is Consequence.LOST)
    assert lost.witness is not None
    [shown] = replay([tmp_path / "wrong" / lost.witness], image=None, connect=None, times=3, progress=Silent())
    assert (shown.confirmed, shown.times) == (3, 3)


LOOKS = """cd "$2"
echo "n$1" >/tmp/mine
echo it >/etc/written 2>/dev/null && echo wrote /etc >>found
echo it >"${0%/*}/written" 2>/dev/null && echo wrote the program >>found
[ $(ls /tmp/[a-z]*ine) = /tmp/mine ] || echo sees more in /tmp >>found
[ $(hostname) = "n$1" ] || echo is $(hostname) >>found
[ $(ls -d /proc/[0-9]* | wc -l) -lt 9 ] || echo sees more processes >>found
[ $(ls -d ../n*/found | wc -l) -le 1 ] || echo sees other disks >>found
echo "n$1" >seen
sync
sleep 1000"""
WAITS = """for number in 0 1 2; do
    until [ -s "$1/n$number/seen" ]; do sleep 0.1; done
done
sleep 2
if cat "$1"/n*/found; then cat "$1"/n*/found >&2; exit 1; fi
touch "$1/n0/told"
sync
echo all is well"""

OUTSIDE = """python3 -c 'import socket; socket.create_connection(("10.0.2.2", 22), 3)' 2>/dev/null"""


def test_nodes_share_neither_files_nor_processes_nor_names(tmp_path: Path) -> None:
    seen = cut_power(small(LOOKS, WAITS), tmp_path / "run")
    assert (seen.answer.verdict, seen.answer.reason) == (Verdict.HOLDS, None)


def test_mistakes_in_a_cluster_are_one_line_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as dead:
        cut_power(small('[ "$1" = 1 ] && echo "port 80 is taken" && exit 3; sleep 1000', "sleep 2"), tmp_path / "dead")
    assert text_with(dead.value.message, "workload", "n1", "3", "port 80 is taken")
    assert text_with(dead.value.hint or "", "nodes", "until", "cluster.toml")
    with pytest.raises(UsageError) as silent:
        cut_power(small("sleep 1000", "sleep 1000", seconds=5.0), tmp_path / "silent")
    assert text_with(silent.value.message, "workload", "did not end within 5 s")
    with pytest.raises(UsageError) as passed:
        cut_power(small(f"{OUTSIDE} || {{ echo no way out; exit 4; }}; sleep 1000", "sleep 9"), tmp_path / "out")
    assert text_with(passed.value.message, "no way out")
    assert not list(tmp_path.iterdir())
