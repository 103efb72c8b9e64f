"""The trace is read to its end, and not before: here from a pipe that stands in for the kernel's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bob.agent.inside import scratch
from bob.agent.inside.ring_buffer import PAGE_BYTES, Pipe, drained
from bob.agent.inside.scratch import MOST_EMPTY_READS, Counts, counts

END = None
"""What stands for EAGAIN: the kernel has nothing more to give."""


def page(text: bytes) -> bytes:
    """A page of the buffer that has ``text``, whose length is a multiple of 4, for events."""
    return (bytes(8) + len(text).to_bytes(8, "little") + text).ljust(PAGE_BYTES, b"\0")


def pipe(*answers: bytes | None) -> Pipe:
    """A pipe that gives these answers, one for each read, and the last one for ever."""
    left = list(answers)

    def read() -> bytes:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if answer is END:
            raise BlockingIOError
        return answer

    return read


def texts(pages: bytes) -> bytes:
    """The texts of pages that travel, without their headers of 16 bytes."""
    found, position = b"", 0
    while position < len(pages):
        length = int.from_bytes(pages[position + 8 : position + 16], "little")
        found += pages[position + 16 : position + 16 + length]
        position += 16 + length
    return found


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch.time, "sleep", lambda _seconds: None)


@given(st.lists(st.sampled_from([b"", b"abcd", b"efghijkl"])))
def test_an_empty_read_is_no_end(answers: list[bytes]) -> None:
    """``tracing_buffers_read`` gives 0 bytes when an event came between its look for a page and that for an end."""
    read = pipe(*(page(answer) if answer else b"" for answer in answers), END)
    assert texts(drained(scratch.patient(read, lambda: True))) == b"".join(answers)


def test_what_is_empty_for_ever_is_an_error_where_there_are_events() -> None:
    with pytest.raises(RuntimeError, match="the kernel's trace cannot be read to its end"):
        drained(scratch.patient(pipe(page(b"abcd"), b""), lambda: True))
    answers = [b""] * (MOST_EMPTY_READS - 1)
    assert texts(drained(scratch.patient(pipe(*answers, page(b"abcd"), *answers, END), lambda: True))) == b"abcd"


def test_what_is_empty_for_ever_is_the_end_where_all_is_read() -> None:
    """What was thrown away, as it does not pass a filter, may be left in the buffer as room that nothing is in."""
    assert texts(drained(scratch.patient(pipe(page(b"abcd"), b""), lambda: False))) == b"abcd"


def test_a_count_waits_for_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = iter(["9 0 80 0 5 0 40 0 2 0 0", "9 0 88 0 5 0 40 0 1 0 0", "9 0 88 0 6 0 48 0 0 0 0 0 0 0 0 0 0"])
    assert counts(lambda: next(fields).encode()) == Counts(88, 48)
    monkeypatch.setattr(scratch, "UNDER_WAY_SECONDS", 0.01)
    with pytest.raises(RuntimeError, match="2 requests of the scratch device are still under way"):
        counts(lambda: b"9 0 80 0 5 0 40 0 2 0 0")
