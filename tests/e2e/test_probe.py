"""End to end on real guests: known violations show, planted faults turn cells red, lost guests turn nothing green."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from bob.answer.answer import Answer
from bob.answer.result import Result
from bob.catalogue.request import ProbeRequest
from bob.claim.verdict import Verdict
from bob.errors import UsageError
from bob.guest.hypervisor import Hypervisor
from bob.guest.machine import Guest
from bob.guest.spec import Clock, GuestSpec
from bob.judge.again import judge_again
from bob.progress import Silent
from bob.run.prober import probe
from bob.run.replay import replay
from bob.story.timeline import Fate
from bob.subject import configuration
from bob.witness.document import read
from claims import own

pytestmark = pytest.mark.vm


@dataclass
class Watch(Silent):
    """Counts states; calls ``each``, up to ``times`` times, when some of the workload that came first were observed."""

    each: Callable[[], None] | None = None
    times: int = 1
    workload: str = ""
    states: int = 0
    cells: list[str] = field(default_factory=list)

    def observed(self, workload: str, states: int) -> None:
        self.states += states
        self.workload = self.workload or workload
        if self.each is not None and self.times and workload == self.workload and states > 0:
            self.times -= 1
            self.each()

    def judged(self, cell: Answer) -> None:
        self.cells.append(cell.name)


def ask(
    out: Path,
    *properties: str,
    mkfs: str = "",
    options: str = "data=ordered",
    budget: int = 60,
    watch: Watch | None = None,
    workload: str = "",
) -> Result:
    """Probe ext4 for ``properties``, each by the workloads of its own file; or by those of them whose names begin with
    ``workload``."""
    probes = tuple(
        replace(probe, workloads=tuple(one for one in probe.workloads if one.name.startswith(workload)))
        for probe in own(*properties)
    )
    request = ProbeRequest(configuration("ext4", mkfs, options), budget=budget, probes=probes)
    result, path = probe(request, out, watch or Watch())
    assert path == out
    return result


def cells(result: Result) -> dict[str, Answer]:
    """The cells by the shipped property's name."""
    return {cell.name.removeprefix("my-"): cell for cell in result.subjects[0].answers}


def test_ordered_mode_tears_block_overwrites_and_keeps_sector_overwrites_whole(tmp_path: Path) -> None:
    watch = Watch()
    result = ask(tmp_path / "run", "single-sector-overwrite", "single-block-overwrite", watch=watch)
    found = cells(result)
    assert found["single-sector-overwrite"].verdict is Verdict.HOLDS
    assert found["single-block-overwrite"].verdict is Verdict.FAILS
    assert watch.cells == ["my-single-sector-overwrite", "my-single-block-overwrite"]
    assert found["single-sector-overwrite"].states.explored > 0

    witness = found["single-block-overwrite"].witness
    assert witness is not None
    again = list(replay([tmp_path / "run"], image=None, connect=None, times=5, progress=Silent()))
    assert str(tmp_path / "run" / witness) in [replayed.witness for replayed in again]
    assert {replayed.confirmed for replayed in again} == {5}

    assert cells(judge_again(tmp_path / "run")) == found


WITHOUT_CHECKSUMS = "-O ^metadata_csum,^64bit"
"""jbd2 then replays whatever blocks lie between descriptor and commit: only flushes keep it honest."""


@pytest.mark.long
def test_a_device_that_flushes_leaves_the_cell_green(tmp_path: Path) -> None:
    """Of the next test the other half."""
    honest = ask(tmp_path / "honest", "directory-op", mkfs=WITHOUT_CHECKSUMS, budget=30)
    assert cells(honest)["directory-op"].verdict is Verdict.HOLDS


def test_a_device_that_drops_flushes_turns_a_green_cell_red(tmp_path: Path) -> None:
    """Only renames: without flushes, a crash may leave a directory of several blocks that the kernel reads for ever."""
    mkfs, options = WITHOUT_CHECKSUMS, "data=ordered,barrier=0"
    planted = ask(tmp_path / "planted", "directory-op", mkfs=mkfs, options=options, budget=30, workload="renames")
    found = cells(planted)["directory-op"]
    assert found.verdict is Verdict.FAILS
    assert found.witness is not None
    line = read(tmp_path / "planted" / found.witness).timeline
    assert line.causes, "of so few states each neighbour is known"
    assert not any(one.fate is Fate.DURABLE for one in line.writes if one.decides)


@pytest.fixture
def observers(monkeypatch: pytest.MonkeyPatch) -> list[Guest]:
    """The guests that observe, as they come."""
    observers: list[Guest] = []
    guest_of = Hypervisor.guest

    @contextmanager
    def noted(hypervisor: Hypervisor, spec: GuestSpec) -> Iterator[Guest]:
        with guest_of(hypervisor, spec) as guest:
            if spec.clock is Clock.REAL:
                observers.append(guest)
            yield guest

    monkeypatch.setattr(Hypervisor, "guest", noted)
    return observers


def test_a_guest_that_is_killed_gives_its_states_back(tmp_path: Path, observers: list[Guest]) -> None:
    result = ask(tmp_path / "run", "single-sector-overwrite", watch=Watch(each=lambda: observers[0].kill()))
    assert len(observers) > 1
    assert cells(result)["single-sector-overwrite"].verdict is Verdict.HOLDS
    [note] = [note for note in result.subjects[0].notes if "another guest started it again" in note]
    assert "the guest vanished" in note


def test_a_workload_that_no_guest_survives_leaves_the_cell_unknown(tmp_path: Path, observers: list[Guest]) -> None:
    watch = Watch(each=lambda: [guest.kill() for guest in observers if guest.running], times=2)
    result = ask(tmp_path / "run", "single-sector-overwrite", budget=150, watch=watch)
    cell = cells(result)["single-sector-overwrite"]
    assert cell.verdict is Verdict.UNKNOWN
    assert cell.reason is not None
    assert "guest was lost" in cell.reason
    assert {workload.verdict for workload in cell.recordings} == {Verdict.UNKNOWN, Verdict.HOLDS}, "others go on"


def test_the_kernels_own_refusal_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no-such-option"):
        ask(tmp_path / "run", "single-sector-overwrite", options="no-such-option")


def test_a_device_too_small_for_mkfs_is_refused_in_its_words(tmp_path: Path) -> None:
    request = ProbeRequest(configuration("ext4", "-J size=64", "", 8 * 1024 * 1024), ("single-sector-overwrite",))
    with pytest.raises(UsageError, match=r"mkfs.ext4"):
        probe(request, tmp_path / "run", Silent())
