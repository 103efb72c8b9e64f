"""End to end on real guests: a file system on layers over two disks gives the answers that it gives on one disk, with
witnesses that show again, and whose disks others assemble."""

from __future__ import annotations

from pathlib import Path

import pytest

from bob.answer.answer import Answer
from bob.catalogue.request import ProbeRequest
from bob.claim.verdict import Verdict
from bob.progress import Silent
from bob.run.prober import probe
from bob.run.replay import replay
from bob.subject import configuration
from bob.witness.document import files_in, read
from bob.witness.keep import keep
from claims import own

pytestmark = pytest.mark.vm
ASKED = ("single-sector-overwrite", "single-block-overwrite")


def answers(out: Path, stack: str) -> dict[str, Answer]:
    """What ext4 on ``stack`` (empty: on one disk) answers."""
    made = configuration("ext4", mount_options="data=ordered", on=stack)
    result, _path = probe(ProbeRequest(made, budget=20, probes=own(*ASKED)), out, Silent())
    return {cell.name.removeprefix("my-"): cell for cell in result.subjects[0].answers}


@pytest.mark.parametrize(
    "stack", [*(pytest.param(stack, marks=pytest.mark.long) for stack in ("linear", "striped")), "raid1"]
)
def test_two_disks_answer_as_one_does(tmp_path: Path, stack: str) -> None:
    """A sector is written whole on each disk, and a block is not; a stripe or a mirror changes nothing about that."""
    run = tmp_path / "run"
    found = answers(run, stack)
    verdicts = {name: cell.verdict for name, cell in found.items()}
    assert verdicts == {"single-sector-overwrite": Verdict.HOLDS, "single-block-overwrite": Verdict.FAILS}
    assert all(cell.states.explored > cell.states.mounted for cell in found.values()), found
    witnesses = files_in([run])
    assert witnesses
    again = list(replay([run], image=None, connect=None, times=3, progress=Silent()))
    assert {replayed.confirmed for replayed in again} == {3}
    *images, script = keep(read(witnesses[0]), tmp_path / "kept")
    assert [image.stat().st_size for image in images] == list(configuration("ext4", on=stack).disks)
    assert script.name == "look.sh"


def test_a_degraded_array_starts_silently_with_wrong_contents(tmp_path: Path) -> None:
    """md marks an array clean on each disk after a flush of only that disk (md_super_write in drivers/md/md.c). Without
    disk 0, the event count rises with that. So after a crash in between, the disk that is marked clean decides, and
    another one lacks its last writes: what they and parity give for disk 0 is wrong, without a word from md."""
    made = configuration("ext4", mount_options="data=ordered", on="raid5", missing=(0,))
    run = tmp_path / "run"
    result, _path = probe(ProbeRequest(made, ("untouched",), budget=60), run, Silent())
    [cell] = result.subjects[0].answers
    assert cell.verdict is Verdict.FAILS
    assert cell.witness is not None and "kept" in cell.ways[0].evidence
    [again] = replay([run / cell.witness], image=None, connect=None, times=3, progress=Silent())
    assert again.confirmed == 3
    *images, script = keep(read(run / cell.witness), tmp_path / "kept")
    assert len(images) == 3
    assert "mdadm --assemble --run /dev/md/bob-0-array $device1 $device2" in script.read_text()
