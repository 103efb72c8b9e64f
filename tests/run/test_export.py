"""Where the crash of a witness is in the log of its workload, recorded again."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

import samples_of_runs as samples
from bob.claim.checking import Checked
from bob.crash.device import DeviceModel
from bob.crash.state import CrashState
from bob.errors import UsageError
from bob.program.program import Program, ProgramFile
from bob.progress import Silent
from bob.run.export import Exported, export, exported
from bob.trace.log_writer import write_log
from bob.trace.model import SECTOR_BYTES, Trace
from bob.witness import document as witness
from claims import of_property
from strict_replay import replay
from witness.test_witness import stored


def made(tmp_path: Path, state: CrashState) -> witness.Witness:
    showing = witness.Showing(samples.case(), state, of_property("overwrite-any", 1, later=2), "as it was found")
    document = witness.write(
        showing,
        environment=samples.ENVIRONMENT,
        configuration=samples.CONFIGURATION,
        model=DeviceModel(),
    )
    return witness.read(stored(tmp_path, document))


def image_of(found: witness.Witness) -> bytearray:
    image = bytearray(found.base.image())
    for sector, data in found.runs:
        image[sector * SECTOR_BYTES : sector * SECTOR_BYTES + len(data)] = data
    return image


def replayed(done: Exported, limit: int) -> bytearray:
    file = io.BytesIO()
    write_log(file, (step.entry for step in done.steps))
    device = bytearray(done.witness.base.image())
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
        assert replayed(done, prefix) == image_of(found)


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
    claim = Checked(program, b"saved")
    showing = witness.Showing(samples.case(), CrashState(0), claim, "lost acknowledged data: all")
    document = witness.write(
        showing, environment=samples.ENVIRONMENT, configuration=samples.CONFIGURATION, model=DeviceModel()
    )
    with pytest.raises(UsageError, match="of a program, and only what operations wrote can be exported"):
        export(stored(tmp_path, document), image=None, any_kernel=False, connect=None, progress=Silent())
