"""When the crash may come: anywhere in a recording, or only after an operation has returned.

The rules ask which writes are durable and which are pending at a time. So the states that a crash after some time can
leave are those of a trace whose window begins at that time: nothing else about it changes. Its growth points are the
last ones of the whole trace, with the same durable writes. (A cache that keeps an order may look back from the later
time; less is pending then, and every state of such a point is one of the whole trace's.)
"""

from __future__ import annotations

from dataclasses import replace

from bob.errors import RecordingError
from bob.trace.model import Trace


def after_return(trace: Trace, operation: int) -> Trace:
    """``trace`` with the crashes after operation number ``operation`` has returned only, up to the same end.

    The agent marks the return when the call is over, so at no moment of the window was it still under way. Raises
    RecordingError where the mark is missing.
    """
    found = [mark.at for mark in trace.marks if mark.text == f"op {operation} end"]
    if len(found) != 1 or not trace.start.time <= found[0].time <= trace.end.time:
        raise RecordingError(f"the recording does not say when operation {operation} returned", hint="record again")
    return replace(trace, start=found[0])
