"""bob search on real guests: a promise that a kernel breaks is found, and none is broken where none is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bob.progress import Silent
from bob.request import ProbeRequest
from bob.result import PropertyResult, Verdict
from bob.run.prober import probe
from bob.run.replay import replay
from bob.search.bounds import read
from bob.search.space import probes
from bob.search.within import Promising
from bob.subject import configuration

pytestmark = pytest.mark.vm
BOUNDS: dict[str, Any] = {
    "about": "an append, and two calls",
    "setup": ["write /f 0 8192"],
    "files": ["/f", "/n"],
    "operations": ["append FILE 4096", "create FILE"],
    "calls": ["fsync FILE", "sync"],
    "promises": ["fsync-file.size", "fsync-file.entry", "sync.size", "sync.entry"],
}


def search(out: Path, fs: str, options: str = "") -> dict[str, PropertyResult]:
    request = ProbeRequest(
        configuration(fs, "", options), budget=60, probes=probes(Promising(read("small", BOUNDS)), 1)
    )
    result, _run = probe(request, out, Silent())
    [column] = result.configurations
    return {cell.name: cell for cell in column.properties}


def test_the_first_fsync_after_a_mount_of_f2fs_waits_for_nothing(tmp_path: Path) -> None:
    """docs/findings.md; a kernel in which this is mended turns the test red, and the page untrue."""
    cells = search(tmp_path, "f2fs")
    verdicts = {name: cell.verdict for name, cell in cells.items()}
    fails = {name for name, verdict in verdicts.items() if verdict is Verdict.FAILS}
    assert fails == {"fsync-file.size", "fsync-file.entry"}
    assert verdicts["sync.size"] is verdicts["sync.entry"] is verdicts["collateral"] is Verdict.HOLDS
    witnesses = [tmp_path / str(cells[name].witness) for name in sorted(fails)]
    for shown in replay(witnesses, image=None, connect=None, times=2, progress=Silent()):
        assert (shown.confirmed, shown.times) == (2, 2)


def test_where_nothing_is_flushed_every_promise_is_broken(tmp_path: Path) -> None:
    """A planted fault that no kernel will mend: ext4 without barriers."""
    cells = search(tmp_path, "ext4", "barrier=0")
    beside = cells.pop("collateral")
    assert {cell.verdict for cell in cells.values()} == {Verdict.FAILS}
    assert beside.verdict is Verdict.HOLDS


def test_no_promise_is_broken_where_all_is_in_the_journal(tmp_path: Path) -> None:
    cells = search(tmp_path, "ext4", "data=journal")
    assert {cell.verdict for cell in cells.values()} == {Verdict.HOLDS}
    assert {len(cell.workloads) for cell in cells.values()} == {1, 4}
