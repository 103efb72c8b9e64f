"""Crashed recoveries whose guests are lost, or at which bob breaks: tried again, unknown, and the others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

import samples_of_runs as samples
from bob.agent.loss import Cause, GuestLost, Loss
from bob.crash import case
from bob.errors import RecordingError, StoreError
from bob.judge.recovered import Recovered
from bob.observe.observation import Findings
from bob.observe.observed import Observed, Seen
from bob.progress import Silent
from bob.request import ProbeRequest
from bob.run import recoveries
from bob.run.recoveries import Recoveries
from bob.store.run_directory import RunDirectory

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
