"""A quick question judged from what its run directory has kept: several recordings, one answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from inline_snapshot import snapshot

import samples_of_runs as samples
from bob.agent.loss import GuestLost, Loss, LossCause
from bob.answer.document import from_json, to_json
from bob.answer.result import Environment, Result, Run
from bob.catalogue.request import ProbeRequest
from bob.claim.expectation.language import parse as expectation
from bob.claim.verdict import Verdict
from bob.crash import case
from bob.crash.state import CrashState
from bob.errors import RecordingError, StoreError, UsageError
from bob.judge.question import Trial, judge_question
from bob.judge.recoveries import Recovered
from bob.observe.observation import OutcomeTable
from bob.observe.observations import ExploredState, Observations
from bob.program.folder import named
from bob.progress import Silent
from bob.report.answer_pages import to_html
from bob.report.points import Outcome, suites_of
from bob.run import pool, prober, programs, recoveries
from bob.run.recoveries import crash_recoveries
from bob.schema import encode
from bob.store.new_folder import check_new_folder
from bob.store.run_directory import RunDirectory
from bob.store.run_documents import RefusedWorkload
from bob.subject.subject import ConfigurationDocument
from bob.workload.operations import At, Finish, Fsync, Workload
from bob.workload.plain import workload_to_json
from wording import text_with

LOST, SCATTERED = CrashState(1, (3,)), CrashState(0, (0, 2))
FOUND = [samples.NOTHING, samples.ALL, samples.OUT_OF_ORDER, samples.UNMOUNTABLE]
NATURAL, ROOT = Finish("natural", natural=True), Finish("fsync /", (Fsync("/"),))


def observed(*states: tuple[CrashState, int | None]) -> Observations:
    return samples.observed((samples.FIRST, 0), (samples.LAST, 1), *states, found=FOUND)


def judged(
    folder: Path, monkeypatch: pytest.MonkeyPatch, kept: Sequence[Observations | str | Loss], *expected: str
) -> tuple[Result, Path]:
    """The answers of a run that observed this with one finish each, or could not record it for that reason."""
    monkeypatch.setattr(case, "checked", lambda _recording, _base: samples.TRACE)
    workloads = tuple(replace(samples.WORKLOAD, finish=finish, at=At.ANY) for finish in (NATURAL, ROOT))[: len(kept)]
    trial = Trial(ProbeRequest(samples.CONFIGURATION), workloads, tuple(map(expectation, expected)), 2)
    run = RunDirectory.create(folder, about(trial.workloads))
    run.save_base(samples.BASE)
    for number, (workload, what) in enumerate(zip(workloads, kept, strict=True)):
        place = run.folder(number, workload)
        if isinstance(what, str | Loss):
            run.save_refusal(
                place,
                RefusedWorkload.of(workload, what)
                if isinstance(what, str)
                else RefusedWorkload.by_kernel(workload, what),
            )
            continue
        run.save_recording(place, workload, samples.BASE, samples.RECORDING)
        run.save_observed(place, what)
    measured = Run("id", "2026-11-21T23:00:21Z", "2026-11-21T23:04:33Z", "0.1.0", 1, 100)
    tried = judge_question(trial, run, measured, Environment(**samples.ENVIRONMENT))
    return tried, folder


def about(workloads: Sequence[Workload]) -> dict[str, Any]:
    made = encode(ConfigurationDocument.of(samples.CONFIGURATION))
    return {"configuration": made, "workloads": [workload_to_json(workload) for workload in workloads]}


def finish_of(path: Path) -> str:
    name: str = json.loads(path.read_text())["workload"]["finish"]["name"]
    return name


def test_the_witness_is_of_the_recording_that_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = observed(), observed((LOST, 2), (SCATTERED, 3))
    tried, folder = judged(
        tmp_path / "run", monkeypatch, kept, "exists /n implies content /a = new", "mounts", "exists /a"
    )

    assert [answer.verdict for answer in tried.answers] == [Verdict.FAILS, Verdict.FAILS, Verdict.HOLDS]
    assert [[one.verdict for one in answer.recordings] for answer in tried.answers] == [
        [Verdict.HOLDS, Verdict.FAILS],
        [Verdict.HOLDS, Verdict.FAILS],
        [Verdict.HOLDS, Verdict.HOLDS],
    ]
    paths = [way.witness for answer in tried.answers for way in answer.ways]
    assert paths == ["witnesses/expectation-1-1.json", "witnesses/expectation-2-1.json"]
    assert {finish_of(folder / str(path)) for path in paths} == {"fsync /"}
    states = tried.answers[0].states
    assert (states.explored, states.unmountable, states.legal_sectors) == (11, 1, 2**71)
    [refused] = tried.subjects[0].beside
    assert [(way.place, way.states, way.witness) for way in refused.ways] == [(1, 1, "witnesses/unmountable.json")]
    assert finish_of(folder / "witnesses/unmountable.json") == "fsync /"


def test_each_recording_has_a_witness_of_what_it_could_not_mount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried, folder = judged(tmp_path / "run", monkeypatch, [observed((LOST, 3)), observed((SCATTERED, 3))], "mounts")
    [refused] = tried.subjects[0].beside
    assert refused.violations == 2
    assert [finish_of(folder / str(way.witness)) for way in refused.ways] == ["natural", "fsync /"]


def test_what_could_not_be_recorded_leaves_open_what_does_not_break(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = observed((LOST, 2)), "the guest refused it: fsync /: Invalid argument"
    tried, _folder = judged(tmp_path / "run", monkeypatch, kept, "exists /a", "exists /n implies content /a = new")
    [open_, broken] = tried.answers
    assert (open_.verdict, open_.reason) == (
        Verdict.UNKNOWN,
        snapshot("finish fsync /: the guest refused it: fsync /: Invalid argument"),
    )
    assert broken.verdict is Verdict.FAILS
    assert broken.states.exhaustive is None
    assert [part.is_recorded for part in broken.recordings] == [True, False]


def test_a_kernel_that_falls_is_told_also_where_nothing_was_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fall = Loss(
        LossCause.PANICKED, "[ 3.0] kernel BUG at fs/ext4/inline.c:235!\nRIP: 0010:ext4_write_inline_data", "mount"
    )
    for number, kept in enumerate(([fall, fall], [fall, observed()])):
        tried, folder = judged(tmp_path / str(number), monkeypatch, kept, "mounts")
        [subject] = tried.subjects
        assert [part.fall for part in subject.answers[0].recordings] == [
            fall if isinstance(one, Loss) else None for one in kept
        ]
        assert [answer.verdict for answer in tried.answers] == [Verdict.UNKNOWN]
        assert from_json(json.loads(json.dumps(to_json(tried)))) == tried
        [suite] = suites_of(tried, folder)
        told = [point.details for point in suite.points if point.outcome is Outcome.FAILED]
        assert told == [fall.lines] * len(subject.falls)
        assert fall.lines[1] in to_html(tried, folder)


def test_nothing_recorded_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RecordingError) as refused:
        judged(tmp_path / "run", monkeypatch, ["the guest refused it: mmap", "the guest refused it: mmap"], "exists /a")
    assert str(refused.value) == snapshot("the guest refused it: mmap")


def asked_to_try(path: Path) -> None:
    workload = replace(samples.WORKLOAD, finish=NATURAL)
    prober.try_out(
        Trial(ProbeRequest(samples.CONFIGURATION), (workload,), (expectation("exists /a"),), 2), path, Silent()
    )


def asked_to_run(path: Path) -> None:
    programs.try_program(named("replace-mv"), [ProbeRequest(samples.CONFIGURATION)], path, Silent(), [])


@pytest.mark.parametrize(
    ("ask", "work"), [(asked_to_try, "workloads/000-try"), (asked_to_run, "result.json")], ids=["try", "app"]
)
@pytest.mark.parametrize("was_there", [True, False])
@pytest.mark.parametrize("done", [True, False])
def test_what_is_refused_is_not_in_the_way_of_the_corrected_command(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ask: Callable[[Path], None],
    work: str,
    was_there: bool,
    done: bool,
) -> None:
    """A typing error in a mount option shows when a guest tries it, and there is a run directory by then."""
    path = tmp_path / "run"

    def refusing(*_asked: object, **_memory: object) -> Any:
        assert (path / "run.json").is_file()
        if done:
            (path / work).touch()
        raise UsageError("mount refused (EINVAL)", hint="")

    monkeypatch.setattr(prober, "asked_image", lambda *_asked: SimpleNamespace(name="debian-bookworm"))
    monkeypatch.setattr(prober, "check_subject", lambda *_asked: None)
    monkeypatch.setattr(programs, "_image", lambda *_asked: SimpleNamespace(name="debian-bookworm"))
    monkeypatch.setattr(prober, "check_kernel", lambda _image: None)
    monkeypatch.setattr(prober, "guests_of", refusing)
    monkeypatch.setattr(programs.Hypervisor, "open", refusing)
    if was_there:
        path.mkdir()
    with pytest.raises(UsageError) as refused:
        ask(path)
    assert str(refused.value) == snapshot("mount refused (EINVAL)")
    assert path.is_dir() == (was_there or done)
    assert (path / "run.json").exists() == done
    if was_there and not done:
        check_new_folder(path, "--out")


@pytest.mark.parametrize("kept", [[observed((LOST, 2))], [observed((LOST, 2)), observed((LOST, 3), (SCATTERED, 2))]])
def test_the_document_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: Sequence[Observations]
) -> None:
    tried, _folder = judged(tmp_path / "run", monkeypatch, kept, "exists /n implies content /a = new", "mounts")
    assert from_json(json.loads(json.dumps(to_json(tried)))) == tried
    [first, *_others] = tried.answers
    assert [way.states for way in first.ways] == [sum(way.by_recording) for way in first.ways]


# Crashed recoveries whose guests are lost, or at which bob breaks: tried again, unknown, and the others go on

LOSS = GuestLost(Loss(LossCause.HUNG, ""), "no answer")
OBSERVED = Observations(
    (ExploredState(samples.FIRST, 0),), OutcomeTable([samples.NOTHING], [samples.INITIAL]), samples.COVERAGE
)
PLACES = 3


@dataclass
class Guests:
    """Made-up guests; ``recording`` and ``observing`` are told how many were before, and may raise."""

    recording: Callable[[int], None] = lambda _time: None
    observing: Callable[[int], Observations] = lambda _time: OBSERVED
    started: int = 0
    recorded: int = 0
    observed: int = 0
    steps: list[str] = field(default_factory=list)

    @contextmanager
    def agent_in(self, *_: object) -> Iterator[object]:
        self.started += 1
        yield SimpleNamespace(is_sound=True)

    def record_recovery(self, *_: object, **__: object) -> object:
        self.recorded += 1
        self.recording(self.recorded - 1)
        return samples.RECORDING

    def explore(self, *_: object, **__: object) -> Observations:
        self.observed += 1
        return self.observing(self.observed - 1)


@pytest.fixture
def guests(monkeypatch: pytest.MonkeyPatch) -> Guests:
    made = Guests()
    for name in ("record_recovery", "explore"):
        monkeypatch.setattr(recoveries, name, getattr(made, name))
    monkeypatch.setattr(pool, "agent_in", made.agent_in)
    monkeypatch.setattr(recoveries, "put_base", lambda _agent, _base: None)
    monkeypatch.setattr(recoveries, "drop_base", lambda _agent, _base: None)
    monkeypatch.setattr(case, "checked", lambda _recording, _base: samples.TRACE)
    monkeypatch.setattr(RunDirectory, "case", lambda *_: samples.case())
    return made


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    made = RunDirectory.create(tmp_path / "run", {})
    made.note(recoveries=encode([Recovered(0, samples.LAST, outcome) for outcome in range(PLACES)]))
    return made


def crash(run: RunDirectory) -> list[bool]:
    """Which recoveries are done afterwards."""
    request = ProbeRequest(samples.CONFIGURATION, recovery_crashes=PLACES)
    crash_recoveries(object(), object(), run, request, [samples.WORKLOAD], Silent())  # type: ignore[arg-type]
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
    assert run.observed(run.recovery_folder(0)).lost == snapshot("the guest was lost")
    assert crash(run) == [True, True, True]


def test_where_bob_breaks_the_others_go_on(guests: Guests, run: RunDirectory) -> None:
    guests.recording = at({1}, ValueError("zip() argument 2 is shorter"))
    assert crash(run) == [True, False, True]
    folder = run.recovery_folder(1)
    reason = run.unobserved(folder)
    assert reason is not None
    assert text_with(reason.reason, 2) == snapshot(
        "bob itself failed while it crashed this workload: ValueError: zip() argument 2 is shorter"
    )
    assert "Traceback (most recent" in (folder / "traceback.txt").read_text()
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
