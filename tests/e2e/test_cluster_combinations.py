"""All combinations of the toy cluster's trees on a real guest. Some six minutes on two busy processors."""

from __future__ import annotations

from pathlib import Path

import pytest

from bob.catalogue.request import ProbeRequest
from bob.claim.verdict import Verdict
from bob.program.folder import CLUSTER
from bob.progress import Silent
from bob.run.programs import try_program
from bob.subject import cluster_of, configuration

pytestmark = [pytest.mark.vm, pytest.mark.long, pytest.mark.usefixtures("warm_guests")]
ENOUGH = 300  # checks; some 50 combinations are possible


def test_a_right_cluster_is_safe_in_all_combinations(tmp_path: Path) -> None:
    toy = CLUSTER.named("toy")
    asked = ProbeRequest(cluster_of([configuration("ext4")] * toy.nodes), budget=ENOUGH)
    answers, _path = try_program(toy, [asked], tmp_path / "run", Silent())
    [subject] = answers.file_systems
    assert (subject.answer.verdict, subject.answer.states.exhaustive) == (Verdict.HOLDS, "writes")
    tuples = subject.tuples
    assert tuples is not None and tuples.are_all_trees and not tuples.unmountable
    assert tuples.cut == "any" and tuples.messages > 100
    assert tuples.checked == tuples.possible == tuples.decided > len(tuples.trees)
    assert (tuples.rules, tuples.set_aside, tuples.split) == ((), 0, 0)
    assert 0 < tuples.classes <= tuples.possible
