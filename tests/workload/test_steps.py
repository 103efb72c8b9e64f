"""The steps that a guest narrates, in words."""

from __future__ import annotations

import pytest
from inline_snapshot import snapshot

from bob.workload.language import parse
from bob.workload.operations import Finish, Workload
from bob.workload.steps import place_of

WORKLOAD = Workload(
    "w", parse("create /f; truncate /f 8"), parse("truncate /f 100; fsync /f"), Finish("fsync /", parse("fsync /"))
)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("op 1 begin", snapshot("in operation 1 (truncate /f 100)")),
        ("op 2 end", snapshot("after operation 2 (fsync /f)")),
        ("op 10001 begin", snapshot("in operation 2 of the initial tree (truncate /f 8)")),
        ("op 0 begin", snapshot("in the finish (fsync /)")),
        ("unmount", snapshot("while it unmounted the file system")),
        ("op 3 begin", "in operation 3"),
        ("op 10002 begin", snapshot("in operation 3 of the initial tree")),
        ("", ""),
        ("something else", ""),
    ],
)
def test_the_place_of_a_step(step: str, words: str) -> None:
    assert place_of(step, WORKLOAD) == words
