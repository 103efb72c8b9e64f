"""Clusters on a real guest: all nodes lose power at once. Some minutes on two busy processors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bob.answer.result import SubjectResult
from bob.catalogue.request import ProbeRequest
from bob.claim.verdict import Verdict
from bob.program.answer import Consequence
from bob.program.folder import CLUSTER
from bob.program.program import Program, ProgramFile
from bob.progress import Silent
from bob.run.programs import try_program
from bob.run.replay import replay
from bob.subject import cluster_of, configuration

pytestmark = [pytest.mark.vm, pytest.mark.long, pytest.mark.usefixtures("warm_guests")]
FEW = 12  # checks


def toy(*faults: str) -> Program:
    """The shipped cluster, with these bugs planted."""
    made = CLUSTER.named("toy")
    words = ProgramFile("faults", "\n".join(faults).encode(), False)
    return replace(made, files=tuple(words if file.path == "faults" else file for file in made.files))


def cut_power(cluster: Program, out: Path) -> SubjectResult:
    asked = ProbeRequest(cluster_of([configuration("ext4")] * cluster.nodes), budget=FEW, only_durable=True)
    answers, _path = try_program(cluster, [asked], out, Silent())
    [subject] = answers.file_systems
    return subject


def test_a_right_cluster_survives_and_one_that_does_not_sync_loses_what_it_acknowledged(tmp_path: Path) -> None:
    right = cut_power(toy(), tmp_path / "right")
    assert right.name == "3 x ext4"
    assert (right.answer.verdict, right.answer.reason) == (Verdict.HOLDS, None)
    wrong = cut_power(toy("no-fsync"), tmp_path / "wrong")
    assert wrong.answer.verdict is Verdict.FAILS
    lost = next(way for way in wrong.answer.ways if way.consequence is Consequence.LOST)
    assert "was acknowledged, but the cluster answers" in lost.evidence
    assert lost.witness is not None
    [shown] = replay([tmp_path / "wrong" / lost.witness], image=None, connect=None, times=3, progress=Silent())
    assert (shown.confirmed, shown.times) == (3, 3)
