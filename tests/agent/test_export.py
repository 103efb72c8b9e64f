"""The log of a witness's workload, recorded again: replayed onto its base it makes the device as it was recorded."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from strict_replay import replay

from bob.claim.mounting import Mountable
from bob.crash.device import DeviceModel
from bob.crash.state import CrashState
from bob.run.export import ATTEMPTS, exported, record_again
from bob.trace import differences
from bob.trace.log_writer import write_log
from bob.witness import document as witness

from .conftest import Inhabited
from .workloads import FSYNC, Taken, take, workload

pytestmark = pytest.mark.vm


def kept(taken: Taken, state: CrashState, file: Path) -> witness.Witness:
    """A witness of ``state``; what is wrong with the state does not matter here."""
    showing = witness.Showing(taken.case, state, Mountable(), "made for a test")
    document = witness.write(
        showing,
        environment={"kernel": "any"},
        configuration=taken.configuration,
        model=DeviceModel(),
    )
    file.write_text(json.dumps(document))
    return witness.read(file)


def test_the_exported_log_makes_the_recorded_device(recording: Inhabited, tmp_path: Path) -> None:
    taken = take(recording.agent, workload("write /d/a 4096 4096; create /d/new; append /b 8192", FSYNC))
    number, point = max(enumerate(taken.plan.points), key=lambda pair: len(pair[1].pending))
    state = CrashState(number, point.pending[: len(point.pending) // 2])
    found = kept(taken, state, tmp_path / "witness.json")
    for _ in range(ATTEMPTS):
        again = record_again(recording.agent, found)
        done = exported(found, again)
        log = io.BytesIO()
        write_log(log, (step.entry for step in done.steps))
        with (tmp_path / "base.img").open("wb") as file:
            found.base.write(file)
        base = (tmp_path / "base.img").read_bytes()
        device, recorded = bytearray(base), bytearray(found.base.image())
        differences.apply(again.recording.final, recorded)
        marks = replay(log.getvalue(), device)
        assert device == recorded
        assert device != base
        calls = [f"op-{number}-{edge}" for number in (1, 2, 3) for edge in ("begin", "end")]
        assert [mark for mark in marks if mark != "crash"] == [
            "start", *calls, "finish-1-begin", "finish-1-end", "end"
        ]  # fmt: skip
        if done.crash is not None:
            break
    assert done.crash is not None
    assert "crash" in marks
    assert done.crash.prefix is not None  # the first half of what was pending
    assert len(done.crash.lost) == len(point.pending) - len(state.kept)
