"""Smaller workloads: they ask the same, and keep what their operations need."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bob.catalogue.probe_files import Probe, shipped_probes
from bob.witness.attempts import needed, smallest
from bob.workload.language import parse
from bob.workload.operations import Finish, Workload
from bob.workload.simulation import simulate

SETUP = parse(
    "mkdir /d; mkdir /d/deep; mkdir /e; write /d/a 0 8192; sync; create /d/deep/b; link /d/a /e/linked; symlink /d/a /s"
)


def workload(operations: str, finish: str = "sync") -> Workload:
    return Workload("some", SETUP, parse(operations), Finish(finish, parse(finish)))


def test_the_tree_keeps_what_the_operations_touch() -> None:
    """The other name of a file that is unlinked too, and the directories that names are in; no more."""
    small = needed(workload("unlink /e/linked"))
    assert small.setup == parse("mkdir /d; mkdir /e; write /d/a 0 8192; link /d/a /e/linked")
    assert needed(workload("write /new 0 1")).setup == ()
    assert needed(workload("write /new 0 1", "fsync /d/deep")).setup == parse("mkdir /d; mkdir /d/deep")
    moved = needed(workload("rename /d /e/m; rename /e/m/deep /x; unlink /x/b"))
    assert moved.setup == parse("mkdir /d; mkdir /d/deep; mkdir /e; create /d/deep/b")


def test_the_smallest_comes_first() -> None:
    large = workload("create /e/x; write /d/a 0 100; create /e/y; unlink /e/x")
    attempts = list(smallest(large, (2, 4)))
    assert [len(one.operations) for one in attempts] == [2, 2, 4]
    assert attempts[0].operations == parse("write /d/a 0 100; unlink /e/x")
    assert [len(one.setup) for one in attempts] == [4, len(SETUP), 4]
    assert all(one.finish == large.finish for one in attempts)
    assert list(smallest(replace(large, setup=()), ())) == []


@pytest.mark.parametrize("probe", shipped_probes(), ids=lambda probe: probe.property.name)
def test_every_shipped_workload_can_be_done_on_what_it_needs(probe: Probe) -> None:
    for one in probe.workloads:
        small = needed(one)
        simulate(small)
        assert set(small.setup) <= set(one.setup)
