"""The self-check of a recording: it is a Trace only if log, timeline and device tell one story."""

from __future__ import annotations

import io

from bob.crash.state import replay_all
from bob.errors import RecordingError
from bob.trace import differences
from bob.trace.base import Base
from bob.trace.join import join
from bob.trace.log import LogReader
from bob.trace.model import SECTOR_BYTES, Trace
from bob.trace.recording import Recording
from bob.trace.timeline import parse_timeline


def checked(recording: Recording, base: Base) -> Trace:
    """The trace of ``recording``.

    Raises RecordingError unless every logged write is joined to one submit and one complete time, and the replay of the
    full log on ``base`` equals the device byte for byte.
    """
    timeline = parse_timeline(recording.timeline)
    with LogReader(io.BytesIO(recording.log)) as log:
        trace = join(log, timeline, recording.device, base.length // SECTOR_BYTES)
    replayed, device = bytearray(base.image()), bytearray(base.image())
    replay_all(trace, replayed)
    differences.apply(recording.final, device)
    if replayed != device:
        sectors = range(0, base.length, SECTOR_BYTES)
        wrong = [
            at // SECTOR_BYTES for at in sectors if replayed[at : at + SECTOR_BYTES] != device[at : at + SECTOR_BYTES]
        ]
        raise RecordingError(
            f"the replayed log is not what the device holds: {len(wrong)} sectors differ, the first is {wrong[0]}",
            hint="record again; the recorded disk must have one queue (facts: two flushes in flight misorder the log)",
        )
    return trace
