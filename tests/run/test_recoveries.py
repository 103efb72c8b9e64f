"""Crashed recoveries whose guests are lost, or at which bob breaks: tried again, unknown, and the others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

import samples_of_runs as samples
from bob.agent.loss import Cause, GuestLost, Loss
from bob.catalogue.probe_files import Probe
from bob.catalogue.sets import Rows, probes_of
from bob.claim.property.rules import Property, questions
from bob.crash import case
from bob.errors import RecordingError, StoreError
from bob.judge.recovered import Recovered
from bob.observe.observation import Findings
from bob.observe.observed import Observed, Seen
from bob.progress import Silent
from bob.request import ProbeRequest
from bob.run import recoveries
from bob.run.prober import asked_workloads, distinct, recorded_as
from bob.run.recoveries import Recoveries
from bob.store.run_directory import RunDirectory
from bob.subject import configuration
from bob.subject.file_system import file_systems
from bob.workload.language import parse
from bob.workload.operations import At, Finish, Workload
from bob.workload.simulation import simulate

LOSS = GuestLost(Loss(Cause.HUNG, ""), "no answer")
OBSERVED = Observed((Seen(samples.FIRST, 0),), Findings([samples.NOTHING], [samples.INITIAL]), samples.COVERAGE)
PLACES = 3


@dataclass
class Guests:
    """Made-up guests; ``recording`` and ``observing`` are told how many were before, and may raise."""

    recording: Callable[[int], None] = lambda _time: None
    observing: Callable[[int], Observed] = lambda _time: OBSERVED
    started: int = 0
    recorded: int = 0
    observed: int = 0
    steps: list[str] = field(default_factory=list)

    @contextmanager
    def agent_in(self, *_: object) -> Iterator[object]:
        self.started += 1
        yield object()

    def record_recovery(self, *_: object, **__: object) -> object:
        self.recorded += 1
        self.recording(self.recorded - 1)
        return samples.RECORDING

    def explore(self, *_: object, **__: object) -> Observed:
        self.observed += 1
        return self.observing(self.observed - 1)


@pytest.fixture
def guests(monkeypatch: pytest.MonkeyPatch) -> Guests:
    made = Guests()
    for name in ("agent_in", "record_recovery", "explore"):
        monkeypatch.setattr(recoveries, name, getattr(made, name))
    monkeypatch.setattr(recoveries, "put_base", lambda _agent, _base: None)
    monkeypatch.setattr(recoveries, "drop_base", lambda _agent, _base: None)
    monkeypatch.setattr(case, "checked", lambda _recording, _base: samples.TRACE)
    monkeypatch.setattr(RunDirectory, "case", lambda *_: samples.case())
    return made


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    made = RunDirectory.create(tmp_path / "run", {})
    made.note(recoveries=[Recovered(0, samples.LAST, outcome).to_json() for outcome in range(PLACES)])
    return made


def crash(run: RunDirectory) -> list[bool]:
    """Which recoveries are done afterwards."""
    request = ProbeRequest(samples.CONFIGURATION, recovery_crashes=PLACES)
    Recoveries(object(), object(), run, request, Silent()).crash([samples.WORKLOAD])  # type: ignore[arg-type]
    return [run.is_done(run.recovery_folder(place)) for place in range(PLACES)]


def at(times: set[int], error: Exception) -> Callable[[int], None]:
    def recording(time: int) -> None:
        if time in times:
            raise error

    return recording


def test_a_recovery_whose_guest_was_lost_is_recorded_once_more(guests: Guests, run: RunDirectory) -> None:
    guests.recording = at({1}, LOSS)
    assert crash(run) == [True, True, True]
    assert guests.started == 2


def test_one_that_is_lost_twice_is_tried_again_when_the_run_is_gone_on_with(guests: Guests, run: RunDirectory) -> None:
    guests.recording = at({1, 2}, LOSS)
    assert crash(run) == [True, False, True]
    assert run.losses() == 1
    assert run.refusal(run.recovery_folder(1)) is None
    guests.recording = at(set(), LOSS)
    assert crash(run) == [True, True, True]
    assert run.losses() == 0


def test_an_observation_that_is_lost_twice_is_tried_again_too(guests: Guests, run: RunDirectory) -> None:
    lost = replace(OBSERVED, lost="the guest was lost", died=True)
    guests.observing = lambda time: lost if time in (0, 1) else OBSERVED
    assert crash(run) == [False, True, True]
    assert guests.started == 3
    assert run.observed(run.recovery_folder(0)).lost == "the guest was lost"
    assert crash(run) == [True, True, True]


def test_where_bob_breaks_the_others_go_on(guests: Guests, run: RunDirectory) -> None:
    guests.recording = at({1}, ValueError("zip() argument 2 is shorter"))
    assert crash(run) == [True, False, True]
    folder = run.recovery_folder(1)
    reason = run.unobserved(folder)
    assert reason is not None
    assert reason[1] == "bob broke while it crashed this workload: ValueError: zip() argument 2 is shorter"
    assert "Traceback (most recent call last)" in (folder / "traceback.txt").read_text()
    assert crash(run) == [True, True, True]
    assert not (folder / "traceback.txt").exists()


def test_what_is_refused_stays_so(guests: Guests, run: RunDirectory) -> None:
    guests.recording = at({1}, RecordingError("two sectors differ"))
    assert crash(run) == [True, True, True]
    assert guests.started == 1
    assert run.refusal(run.recovery_folder(1)) is not None


def test_a_full_disk_ends_it(guests: Guests, run: RunDirectory) -> None:
    guests.recording = at({1}, StoreError("cannot write"))
    with pytest.raises(StoreError):
        crash(run)


# One answer to one question: a property that is asked alone is judged on what the whole table judges it on


def judged_on(prop: Property, workloads: list[Workload]) -> list[Workload]:
    """The workloads on which a property is judged where these are recorded, whatever they are called."""
    return [replace(workload, name="") for workload in workloads if questions(prop, simulate(workload)[0])]


@pytest.mark.parametrize("fs", sorted({"ext4", *(name for name, fs in file_systems().items() if fs.lacks)}))
@pytest.mark.parametrize("rows", [Rows.TABLE1, Rows.UNITS])
def test_a_property_is_judged_alone_on_what_it_is_judged_on_in_the_table(fs: str, rows: Rows) -> None:
    made = configuration(fs)
    every = asked_workloads(ProbeRequest(made, rows=rows))
    for probe in probes_of(rows):
        alone = asked_workloads(ProbeRequest(made, (probe.property.name,), rows=rows))
        assert set(judged_on(probe.property, alone)) == set(judged_on(probe.property, every))
        assert len(alone) == len(judged_on(probe.property, alone)), "and nothing is recorded that nobody asks for"


def test_directory_operations_are_asked_for_by_other_probes_too() -> None:
    """What was wrong: a dozen workloads of its own said holds where the table had ×."""
    [probe] = [probe for probe in probes_of(Rows.TABLE1) if probe.property.name == "directory-op"]
    alone = asked_workloads(ProbeRequest(configuration("btrfs"), ("directory-op",)))
    assert len(alone) > 2 * len(probe.workloads)


def test_the_whole_table_has_all_workloads_in_the_order_of_its_probes() -> None:
    every = asked_workloads(ProbeRequest(configuration("ext4")))
    assert every == distinct(workload for probe in probes_of(Rows.TABLE1) for workload in probe.workloads)
    alone = asked_workloads(ProbeRequest(configuration("ext4"), ("append-any",)))
    assert len(alone) == len(set(alone))
    assert set(alone) <= set(every)


def test_the_workloads_of_a_propertys_own_probe_come_first() -> None:
    [probe] = [probe for probe in probes_of(Rows.TABLE1) if probe.property.name == "overwrite-any"]
    alone = asked_workloads(ProbeRequest(configuration("ext4"), ("overwrite-any",)))
    assert [recorded_as(one) for one in alone[: len(probe.workloads)]] == [recorded_as(one) for one in probe.workloads]
    assert len(alone) > len(probe.workloads)


def test_a_probe_of_ones_own_brings_its_workloads_and_no_others() -> None:
    [shipped] = [probe for probe in probes_of(Rows.TABLE1) if probe.property.name == "append-append-same-file"]
    mine = Workload("mine", parse("create /a"), parse("write /a 0 4K; append /a 4K"), Finish("natural", natural=True))
    assert mine.at is At.ANY
    own = Probe(99, replace(shipped.property, name="my-appends"), (mine,))
    request = ProbeRequest(configuration("ext4"), probes=(own,))
    assert asked_workloads(request) == [mine]
    beside = asked_workloads(replace(request, properties=(shipped.property.name,)))
    assert beside[-1] == mine
    assert beside[:-1] == asked_workloads(ProbeRequest(configuration("ext4"), (shipped.property.name,)))
