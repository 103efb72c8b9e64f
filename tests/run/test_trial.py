"""A quick question judged from what its run directory has kept: several recordings, one answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import bob.run.trial
import samples_of_runs as samples
from bob.claim.expectation.language import parse as expectation
from bob.crash import case
from bob.crash.state import CrashState
from bob.errors import RecordingError
from bob.judge.tried import Trial, Tried, from_json, to_json
from bob.observe.observed import Observed
from bob.request import ProbeRequest, configuration_to_json
from bob.result import Environment, Run, Verdict
from bob.store.run_directory import RunDirectory, workload_to_json
from bob.workload.operations import At, Finish, Fsync, Workload

LOST, SCATTERED = CrashState(1, (3,)), CrashState(0, (0, 2))
FOUND = [samples.NOTHING, samples.ALL, samples.OUT_OF_ORDER, samples.UNMOUNTABLE]
NATURAL, ROOT = Finish("natural", natural=True), Finish("fsync /", (Fsync("/"),))


def observed(*states: tuple[CrashState, int | None]) -> Observed:
    return samples.observed((samples.FIRST, 0), (samples.LAST, 1), *states, found=FOUND)


def judged(
    folder: Path, monkeypatch: pytest.MonkeyPatch, kept: Sequence[Observed | str], *expected: str
) -> tuple[Tried, Path]:
    """The answers of a run that observed this with one finish each, or could not record it for that reason."""
    monkeypatch.setattr(case, "checked", lambda _recording, _base: samples.TRACE)
    workloads = tuple(replace(samples.WORKLOAD, finish=finish, at=At.ANY) for finish in (NATURAL, ROOT))[: len(kept)]
    trial = Trial(ProbeRequest(samples.CONFIGURATION), workloads, tuple(map(expectation, expected)), 2)
    run = RunDirectory.create(folder, about(trial.workloads))
    run.save_base(samples.BASE)
    for number, (workload, what) in enumerate(zip(workloads, kept, strict=True)):
        place = run.folder(number, workload)
        if isinstance(what, str):
            run.save_refusal(place, workload, what)
            continue
        run.save_recording(place, workload, samples.BASE, samples.RECORDING)
        run.save_observed(place, what)
    measured = Run("id", "2026-11-21T23:00:21Z", "2026-11-21T23:04:33Z", "0.1.0", 1, 100)
    tried = bob.run.trial.judge(trial, run, measured, Environment(**samples.ENVIRONMENT))
    return tried, folder


def about(workloads: Sequence[Workload]) -> dict[str, Any]:
    made = configuration_to_json(samples.CONFIGURATION)
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
    assert [[one.verdict for one in answer.each] for answer in tried.answers] == [
        [Verdict.HOLDS, Verdict.FAILS],
        [Verdict.HOLDS, Verdict.FAILS],
        [Verdict.HOLDS, Verdict.HOLDS],
    ]
    paths = [path for witnesses in tried.witnesses for path in witnesses]
    assert paths == ["witnesses/expectation-1-1.json", "witnesses/expectation-2-1.json"]
    assert {finish_of(folder / path) for path in paths} == {"fsync /"}
    assert (tried.states.explored, tried.states.unmountable, tried.states.legal_sectors) == (11, 1, 2**71)
    assert [part.unmountable.states for part in tried.finishes] == [0, 1]
    assert (tried.unmountable.states, tried.unmountable.witness) == (1, "witnesses/unmountable.json")
    assert finish_of(folder / "witnesses/unmountable.json") == "fsync /"


def test_each_recording_has_a_witness_of_what_it_could_not_mount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried, folder = judged(tmp_path / "run", monkeypatch, [observed((LOST, 3)), observed((SCATTERED, 3))], "mounts")
    assert tried.unmountable.states == 2
    names = [part.unmountable.witness or "" for part in tried.finishes]
    assert [finish_of(folder / name) for name in names] == ["natural", "fsync /"]


def test_what_could_not_be_recorded_leaves_open_what_does_not_break(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = observed((LOST, 2)), "the guest refused it: fsync /: Invalid argument"
    tried, _folder = judged(tmp_path / "run", monkeypatch, kept, "exists /a", "exists /n implies content /a = new")
    [open_, broken] = tried.answers
    assert (open_.verdict, open_.reason) == (
        Verdict.UNKNOWN,
        "finish fsync /: the guest refused it: fsync /: Invalid argument",
    )
    assert broken.verdict is Verdict.FAILS
    assert tried.states.exhaustive is None
    assert [part.refused is None for part in tried.finishes] == [True, False]


def test_nothing_recorded_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RecordingError, match="the guest refused it: mmap"):
        judged(tmp_path / "run", monkeypatch, ["the guest refused it: mmap", "the guest refused it: mmap"], "exists /a")


@pytest.mark.parametrize("kept", [[observed((LOST, 2))], [observed((LOST, 2)), observed((LOST, 3), (SCATTERED, 2))]])
def test_the_document_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: Sequence[Observed]) -> None:
    tried, _folder = judged(tmp_path / "run", monkeypatch, kept, "exists /n implies content /a = new", "mounts")
    document = to_json(tried)
    again = from_json(json.loads(json.dumps(document)))
    assert to_json(again) == document
    assert [answer.states for answer in again.answers] == [answer.states for answer in tried.answers]
    [first, *_others] = document["expectations"]
    assert [way["violations"] for way in first["ways"]] == [sum(way["by_finish"]) for way in first["ways"]]
