"""reports/draw-workloads makes probe files: legal ones, the same of the same seed, with all that a model speaks of."""

import subprocess
import sys
from pathlib import Path

import pytest

from bob.catalogue.probe_files import parsed
from bob.workload import operations as ops
from bob.workload.kinds import ChangeKind, changes
from bob.workload.simulation import simulate

ROOT = Path(__file__).resolve().parents[2]


def drawn(*words: str) -> subprocess.CompletedProcess[str]:
    """What came of it."""
    command = [sys.executable, "reports/draw-workloads", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def of_seed_7() -> str:
    return drawn("7", "200").stdout


def test_a_seed_draws_the_same_each_time_and_another_one_something_else(of_seed_7: str) -> None:
    assert drawn("7", "200").stdout == of_seed_7
    begun = drawn("7", "20").stdout
    assert of_seed_7.startswith(begun.rstrip("\n"))
    assert set(drawn("8", "20").stdout.splitlines()).isdisjoint(
        line for line in begun.splitlines() if line.startswith("operations")
    )


def test_what_is_drawn_is_a_probe_file_with_every_kind_of_change_that_a_model_speaks_of(of_seed_7: str) -> None:
    workloads = parsed("drawn.toml", of_seed_7).workloads
    assert len(workloads) == 400
    kinds = {change.kind for workload in workloads for change in changes(simulate(workload)[0])}
    assert kinds == set(ChangeKind) - {ChangeKind.SHIFT}
    syncs = [[isinstance(one, ops.Fsync) for one in workload.operations] for workload in workloads]
    assert any(True in each[:-1] for each in syncs)


@pytest.mark.parametrize("words", [(), ("x",), ("1", "2", "3"), ("-1",)])
def test_without_a_seed_it_says_how_it_is_called(words: tuple[str, ...]) -> None:
    done = drawn(*words)
    assert done.returncode == 2
    assert "SEED [COUNT]" in done.stdout
