"""The case of a program: what it is cut into, that it has no operations, and what documents say of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import samples_of_runs as samples
from bob import documents
from bob.claim.checking import CheckerClaim
from bob.crash.state import CrashState
from bob.program.program import Pace
from bob.program.transcript import Output, ProgramCase, Transcript
from bob.store.run_directory import RunDirectory
from bob.witness import document as witness
from bob.witness.document import ShownState, WitnessSize
from bob.workload.operations import Workload

OUTPUTS = (Output(samples.at(15), b"a"), Output(samples.at(20), b"b"))
TRANSCRIPT = Transcript(b"ab", (), 7, OUTPUTS, None)


def case() -> ProgramCase:
    return samples.program_case(TRANSCRIPT)


def test_a_case_within_a_window_is_of_the_crashes_in_it_and_keeps_all_else() -> None:
    whole = case()
    assert [window.output for window in whole.windows] == [b"", b"a", b"ab"]
    for window in whole.windows:
        part = whole.within(window)
        assert (part.plan.trace, part.plan.model) == (window.trace, whole.plan.model)
        assert replace(part, plan=whole.plan) == whole
    ends = [(part.trace.start.time, part.trace.end.time) for part in whole.windows]
    assert ends == [(10, 14), (15, 19), (20, 30)]


def test_a_program_is_called_by_its_pace_and_has_no_operations() -> None:
    slow = replace(case(), work=replace(case().work, pace=Pace.SLOW))
    assert (case().name, slow.name) == ("ext4-ordered", "ext4-ordered-slow")
    with pytest.raises(TypeError, match="mine is not a workload"):
        _ = case().workload


def test_a_witness_has_the_program_that_did_the_work(tmp_path: Path) -> None:
    program = case().work
    showing = ShownState(case(), CrashState(0), CheckerClaim(program, b"a"), "lost acknowledged data: all")
    plain = witness.write(showing, environment=samples.ENVIRONMENT)
    # As in witnesses of before: the name stands where operations do, and there are none.
    expected = Workload("mine", (), ())
    assert (plain["workload"]["name"], plain["workload"]["finish"]["name"]) == ("mine", expected.finish.name)
    assert plain["workload"]["setup"] == plain["workload"]["operations"] == ()
    path = tmp_path / "witness.json"
    path.write_bytes(documents.sealed(json.dumps(plain)))
    again = witness.read(path)
    assert (again.work, again.operations, again.size) == (program, (), WitnessSize(0, 0, showing.size.departure))
    assert again.configuration == case().subject


def test_the_recording_of_a_program_is_kept_under_its_name(tmp_path: Path) -> None:
    run, whole = RunDirectory.create(tmp_path / "run", {"id": "one"}), case()
    folder = run.folder(3, whole.work)
    assert folder.name == "003-mine"
    run.save_base(whole.base)
    run.save_recording(folder, whole.work, whole.base, whole.recording)
    workload, base, recording = run.recording(folder)
    assert (workload, base, recording) == (Workload("mine", (), ()), whole.base.name, whole.recording)
