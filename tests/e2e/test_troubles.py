"""What is wrong with crash states that mount: its witness shows it again, on the kernel that said so."""

from __future__ import annotations

from pathlib import Path

import pytest

from bob.catalogue.probe_files import load
from bob.claim.soundness import Sound
from bob.errors import Exit
from bob.progress import Silent
from bob.request import ProbeRequest
from bob.result import TroubleKind
from bob.run.prober import probe
from bob.run.replay import replay
from bob.subject import configuration
from bob.witness.document import read

pytestmark = pytest.mark.vm

MOVED = """
name = "moved"
family = "atomicity"
meaning = "a file that is moved is whole"

[judge]
rule = "atomic"
subject = "directory"

[[workloads]]
name = "a file moved to another directory"
setup = ["mkdir /d", "mkdir /e", "write /d/a 0 8192"]
operations = ["rename /d/a /e/moved", "mkdir /e/new", "create /e/new/file"]
finish = ["sync"]
"""


def test_what_vfat_is_warned_of_shows_again_from_its_witness(tmp_path: Path) -> None:
    """fsck.vfat leaves directories of which the kernel says that they are corrupted."""
    file = tmp_path / "moved.toml"
    file.write_text(MOVED)
    request = ProbeRequest(configuration("vfat"), probes=(load(file),), budget=40)
    result, path = probe(request, tmp_path / "run", Silent())
    [column] = result.configurations
    assert column.troubles
    assert {trouble.kind for trouble in column.troubles} <= set(TroubleKind)
    witnesses = [path / trouble.witness for trouble in column.troubles]
    assert [read(one).claim for one in witnesses] == [Sound(trouble.kind) for trouble in column.troubles]
    again = list(replay(witnesses, image=None, connect=None, times=2, progress=Silent()))
    assert [one.confirmed for one in again] == [2] * len(witnesses)

    from bob.cli.main import run

    assert run(["replay", "--quiet", "--times", "1", str(witnesses[0])]) == Exit.DONE


REMOVED_LATE = Path(__file__).parents[2] / "reports/reference/modern-linux-6.1/jfs/witnesses/removal-9.json"


def test_what_goes_wrong_some_time_after_the_removal_is_seen_each_time() -> None:
    """A thread of jfs meets the damage: before the removal is over, after a sync, or when it is unmounted."""
    [found] = replay([REMOVED_LATE], image=None, connect=None, times=40, progress=Silent())
    assert (found.confirmed, found.times) == (40, 40)
