"""Where the crash of a witness is in the log of its workload, recorded again."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from inline_snapshot import snapshot

import samples_of_runs as samples
from bob.answer.document import to_json
from bob.catalogue.probe_files import Probe, shipped_probes
from bob.claim.checking import CheckerClaim
from bob.crash.state import CrashState
from bob.documents import opened
from bob.errors import UsageError
from bob.program.program import Program, ProgramFile
from bob.progress import Silent
from bob.report.saved import load
from bob.run.export import ExportedLog, export, exported
from bob.run.shrink import shrink
from bob.trace.log_writer import write_log
from bob.trace.model import SECTOR_BYTES, Trace
from bob.witness import document as witness
from bob.witness.attempts import needed, smallest
from bob.witness.results import tell_results
from bob.workload.language import parse
from bob.workload.operations import Finish, Workload
from bob.workload.simulation import simulate
from claims import of_property
from cli.stand_in import result
from mediums import image_of
from report.witnesses import documents, put
from strict_replay import replay
from witness.test_witness import stored


def made(tmp_path: Path, state: CrashState) -> witness.Witness:
    showing = witness.ShownState(samples.case(), state, of_property("overwrite-any", 1, later=2), "as it was found")
    document = witness.write(
        showing,
        environment=samples.ENVIRONMENT,
    )
    return witness.read(stored(tmp_path, document))


def disk_of(found: witness.Witness) -> bytearray:
    image = bytearray(image_of(found.base))
    for sector, data in found.runs:
        image[sector * SECTOR_BYTES : sector * SECTOR_BYTES + len(data)] = data
    return image


def replayed(done: ExportedLog, limit: int) -> bytearray:
    file = io.BytesIO()
    write_log(file, (step.entry for step in done.steps))
    device = bytearray(image_of(done.witness.base))
    replay(file.getvalue(), device, limit=limit)
    return device


@pytest.mark.parametrize(
    ("state", "lost", "torn", "prefix"),
    [
        (CrashState(0, (1, 2)), (), (), 5),
        (CrashState(0, (1,)), (4,), (), 4),
        (CrashState(0), (3, 4), (), 3),
        (CrashState(0, (2,)), (3,), (), None),
        (CrashState(0, (1,), ((2, ((0, 1),)),)), (), (4,), None),
        (CrashState(0, (), ((2, ((0, 1),)),)), (3,), (4,), None),
    ],
)  # fmt: skip
def test_where_the_crash_is(
    tmp_path: Path, state: CrashState, lost: tuple[int, ...], torn: tuple[int, ...], prefix: int | None
) -> None:
    found = made(tmp_path, state)
    done = exported(found, samples.case())
    assert done.crash is not None
    assert (done.crash.lost, done.crash.torn, done.crash.prefix, done.crash.other) == (lost, torn, prefix, 0)
    assert done.steps[done.crash.entry].entry.mark == "crash"
    assert [step.entry.mark for step in done.steps if step.entry.mark] == ["start", "crash", "end"]
    if prefix is not None:
        assert replayed(done, prefix) == disk_of(found)


def changed(number: int, **more: object) -> Trace:
    writes = list(samples.TRACE.writes)
    writes[number] = replace(writes[number], **more)  # type: ignore[arg-type]
    return replace(samples.TRACE, writes=tuple(writes))


def test_other_time_stamps_are_counted(tmp_path: Path) -> None:
    found = made(tmp_path, CrashState(0, (1, 2)))
    done = exported(found, samples.case(trace=changed(2, data=b"j" * 512 + b"J" * 512)))
    assert done.crash is not None
    assert done.crash.other == 1


@pytest.mark.parametrize(
    "trace",
    [
        changed(2, sector=24),
        changed(2, fua=True),
        changed(1, data=b"x" * 512),
        replace(samples.TRACE, writes=samples.TRACE.writes[:2]),
        replace(samples.TRACE, flushes=samples.TRACE.flushes[:1]),
    ],
)  # fmt: skip
def test_a_recording_that_came_out_otherwise_has_no_crash(tmp_path: Path, trace: Trace) -> None:
    done = exported(made(tmp_path, CrashState(0, (1, 2))), samples.case(trace=trace))
    assert done.crash is None
    assert [step.entry.mark for step in done.steps if step.entry.mark] == ["start", "end"]


def test_the_witness_of_a_program_is_not_exported(tmp_path: Path) -> None:
    """A program's workload has no operations: the log would be empty."""
    program = Program("p", "", tuple(ProgramFile(name, b"#!/bin/sh\n", True) for name in ("workload", "check")))
    claim = CheckerClaim(program, b"saved")
    case = replace(samples.case(), work=program)
    showing = witness.ShownState(case, CrashState(0), claim, "lost acknowledged data: all")
    document = witness.write(showing, environment=samples.ENVIRONMENT)
    with pytest.raises(UsageError) as refused:
        export(stored(tmp_path, document), image=None, any_kernel=False, connect=None, progress=Silent())
    assert str(refused.value) == snapshot(
        "the witness witness.json is of a program; bob exports only what operations wrote"
    )


# After witnesses were shrunk, a run's results say what they say; and what cannot be shrunk is refused in a line


def test_results_are_told_anew(tmp_path: Path) -> None:
    made = result()
    (column,) = made.subjects
    cells = [
        replace(cell, ways=tuple(replace(way, witness=f"witnesses/{cell.name}.json") for way in cell.ways))
        for cell in column.answers
    ]
    made = replace(made, subjects=(replace(column, answers=tuple(cells)),))
    put(tmp_path, made)
    (tmp_path / "result.json").write_text(json.dumps(to_json(made)))
    told = {cell.name for cell in cells if cell.witness}
    assert told
    for name in told:
        path = tmp_path / "witnesses" / f"{name}.json"
        path.write_text(json.dumps({**opened(path.read_bytes()), "evidence": f"smaller {name}"}))
    tell_results(tmp_path)
    (column,) = load(tmp_path).result.subjects
    assert {cell.name: cell.evidence for cell in column.answers if cell.witness} == {
        name: f"smaller {name}" for name in told
    }


def test_results_of_programs_are_told_anew(tmp_path: Path) -> None:
    path = tmp_path / "witnesses" / "00-1-lost.json"
    path.parent.mkdir()
    path.write_text(json.dumps({**documents()["overwrite-any"], "evidence": "lost acknowledged data: smaller"}))
    vulnerabilities = [{"evidence": "larger", "witness": f"witnesses/{path.name}"}, {"evidence": "by hand"}]
    document = {"schema": "bob.app/1", "configurations": [{"name": "ext4", "vulnerabilities": vulnerabilities}]}
    (tmp_path / "result.json").write_text(json.dumps(document))
    tell_results(tmp_path)
    [column] = json.loads((tmp_path / "result.json").read_text())["configurations"]
    assert [one["evidence"] for one in column["vulnerabilities"]] == snapshot(
        ["lost acknowledged data: smaller", "by hand"]
    )


def test_a_crash_during_recovery_is_not_shrunk(tmp_path: Path) -> None:
    path = tmp_path / "recovery-idempotent.json"
    of_recovery = {
        "claim": "recovery",
        "property": path.stem,
        "probe": None,
        "question": {"required": [], "later": None},
    }
    path.write_text(json.dumps({**documents()["overwrite-any"], **of_recovery}))
    with pytest.raises(UsageError) as refused:
        list(shrink([path], image=None, connect=None, budget=10, progress=Silent()))
    assert str(refused.value) == snapshot("the witness recovery-idempotent.json is of a crash during recovery")


# Smaller workloads: they ask the same, and keep what their operations need

SETUP = parse(
    "mkdir /d; mkdir /d/deep; mkdir /e; write /d/a 0 8192; sync; create /d/deep/b; link /d/a /e/linked; symlink /d/a /s"
)


def workload(operations: str, finish: str = "sync") -> Workload:
    return Workload("some", SETUP, parse(operations), Finish(finish, parse(finish)))


def test_the_tree_keeps_what_the_operations_touch() -> None:
    """The other name of a file that is unlinked too, and the directories that names are in; no more."""
    small = needed(workload("unlink /e/linked"))
    assert small.setup == parse("mkdir /d; mkdir /e; write /d/a 0 8192; link /d/a /e/linked")
    assert needed(workload("write /new 0 1")).setup == ()
    assert needed(workload("write /new 0 1", "fsync /d/deep")).setup == parse("mkdir /d; mkdir /d/deep")
    moved = needed(workload("rename /d /e/m; rename /e/m/deep /x; unlink /x/b"))
    assert moved.setup == parse("mkdir /d; mkdir /d/deep; mkdir /e; create /d/deep/b")


def test_the_smallest_comes_first() -> None:
    large = workload("create /e/x; write /d/a 0 100; create /e/y; unlink /e/x")
    attempts = list(smallest(large, (2, 4)))
    assert [len(one.operations) for one in attempts] == [2, 2, 4]
    assert attempts[0].operations == parse("write /d/a 0 100; unlink /e/x")
    assert [len(one.setup) for one in attempts] == [4, len(SETUP), 4]
    assert all(one.finish == large.finish for one in attempts)
    assert list(smallest(replace(large, setup=()), ())) == []


@pytest.mark.parametrize("probe", shipped_probes(), ids=lambda probe: probe.property.name)
def test_every_shipped_workload_can_be_done_on_what_it_needs(probe: Probe) -> None:
    for one in probe.workloads:
        small = needed(one)
        simulate(small)
        assert set(small.setup) <= set(one.setup)
