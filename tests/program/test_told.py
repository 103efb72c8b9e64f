"""What was told before a crash, against the rules spelled out: every time, every subset, what had been told by then."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bob.crash.legal import growth_points
from bob.errors import RecordingError
from bob.program.strace import SystemCall
from bob.program.told import Output, outputs, windows
from bob.trace.model import Moment
from bob.trace.timeline import CallReturned, Timeline
from crash import brute
from crash.traces import Case, at, cases

PIPE = 5


@st.composite
def telling(draw: st.DrawFn) -> tuple[Case, list[Output]]:
    """A case, and outputs at some moments of its window."""
    case = draw(cases())
    start, end = case.trace.start.time, case.trace.end.time
    times = sorted(draw(st.sets(st.integers(start + 1, end), max_size=3))) if start < end else []
    return case, [Output(at(time), bytes([97 + number])) for number, time in enumerate(times)]


@settings(max_examples=400)
@given(telling())
def test_the_windows_have_each_state_with_each_output_that_a_crash_can_leave_it_with(
    found: tuple[Case, list[Output]],
) -> None:
    case, told = found
    legal = set()
    for time in brute.window(case.trace):
        by_then = b"".join(output.data for output in told if output.at.time <= time)
        for durable, pending in brute.durable_and_pending(case.trace, case.model, time):
            legal |= {(by_then, frozenset(durable | kept)) for kept in brute.subsets(pending)}
    found_by_windows = {
        (window.told, frozenset(point.durable) | kept)
        for window in windows(case.trace, told)
        for point in growth_points(window.trace, case.model)
        for kept in brute.subsets(point.pending)
    }
    assert found_by_windows == legal


def call(pid: int, data: bytes, name: str = "write", pipe: int = PIPE, result: int | None = None) -> SystemCall:
    path = "".join(f"\\x{byte:02x}" for byte in f"pipe:[{pipe}]".encode())
    text = "".join(f"\\x{byte:02x}" for byte in data)
    return SystemCall(
        pid, 0.0, name, (f"1<{path}>", f'"{text}"', str(len(data))), len(data) if result is None else result
    )


def returned(time: int, pid: int, result: int, number: int = 1) -> CallReturned:
    return CallReturned(Moment(time, 0.0), pid, number, result)


def test_outputs_count_when_the_kernel_says_that_the_call_had_returned() -> None:
    calls = [call(1, b"aa"), call(2, b"b", pipe=9), call(1, b"c")]
    timeline = Timeline((returned(4, 2, 1), returned(6, 1, 2), returned(9, 3, 7), returned(11, 1, 1)))
    assert outputs(calls, timeline, PIPE, b"aac") == (Output(Moment(6, 0.0), b"aa"), Output(Moment(11, 0.0), b"c"))


def test_a_process_that_tells_nothing_needs_no_order() -> None:
    assert outputs([call(2, b"b", pipe=9)], Timeline(()), PIPE, b"") == ()


@pytest.mark.parametrize(
    ("calls", "events", "told"),
    [
        ([call(1, b"a")], [], b"a"),
        ([call(1, b"a")], [returned(1, 1, 2)], b"a"),
        ([call(1, b"a")], [returned(1, 1, 1, number=20)], b"a"),
        ([call(1, b"a")], [returned(1, 1, 1)], b"ab"),
        ([call(1, b"a"), call(2, b"b")], [returned(2, 1, 1), returned(1, 2, 1)], b"ab"),
    ],
)
def test_where_kernel_strace_and_pipe_do_not_agree_nothing_is_believed(
    calls: list[SystemCall], events: list[CallReturned], told: bytes
) -> None:
    with pytest.raises(RecordingError):
        outputs(calls, Timeline(tuple(events)), PIPE, told)
