"""The parser of ftrace's text."""

from __future__ import annotations

import lzma
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.errors import MalformedError, RecordingError
from bob.trace.model import Moment
from bob.trace.timeline import BioCompleted, BioQueued, BioSent, Marker, Op, Rwbs, parse_rwbs, parse_timeline
from wording import text_with

SAMPLE = """\
# tracer: nop
#
# entries-in-buffer/entries-written: 4/4   #P:1
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
             bob-123     [000] .....    12.345678: block_bio_queue: 253,0 WS 2048 + 8 [bob]
     kworker/0:1-12      [000] d.h2.    12.345679: block_bio_remap: 7,0 WS 2048 + 8 <- (253,0) 1024
     kworker/0:1-12      [000] d.h2.    12.345679: block_bio_complete: 253,0 WS 2048 + 8 [-5]
             bob-123     [000] .....    12.345700: tracing_mark_write: bob: op 3 begin
"""


def test_sample() -> None:
    rwbs = Rwbs("WS", Op.WRITE)
    assert parse_timeline(SAMPLE).events == (
        BioQueued(Moment(7, 12.345678), "bob", 123, (253, 0), rwbs, 2048, 8),
        BioSent(Moment(8, 12.345679), "kworker/0:1", 12, (7, 0), rwbs, 2048, 8, (253, 0), 1024),
        BioCompleted(Moment(9, 12.345679), "kworker/0:1", 12, (253, 0), rwbs, 2048, 8, -5),
        Marker(Moment(10, 12.345700), "op 3 begin"),
    )


def test_a_real_buffer() -> None:
    text = lzma.decompress((Path(__file__).parent / "data/ext4-linux-6.1/timeline.xz").read_bytes()).decode()
    kinds = Counter(type(event).__name__ for event in parse_timeline(text).events)
    assert kinds == {"BioQueued": 126, "BioSent": 133, "BioCompleted": 126, "Marker": 4}


@pytest.mark.parametrize(
    "task",
    [
        "jbd2/dm-0-8",
        "kworker/u2:1-ev",
        "a b",
        "<idle>",
        "<...>",
        "-",
        "x-1 [000] 5.0",
        "kworker/u4:0+fl",
        "1-2-3",
        "[0]:",
    ],
)
@pytest.mark.parametrize(
    "columns", ["[000] .....", "[000]", "[000] d.h2.", "[000] dN..1", "[000] ....", "(  99) [000] ..b.."]
)
def test_task_names_and_columns(task: str, columns: str) -> None:
    line = f"{task:>16}-{77:<7} {columns}   12.345678: block_bio_queue: 253,0 FWFSM 8 + 0 [{task}]"
    (event,) = parse_timeline(line).events
    assert isinstance(event, BioQueued)
    assert (event.task, event.pid, event.sector) == (task.strip(), 77, 8)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("WS", Rwbs("WS", Op.WRITE)),
        ("FWS", Rwbs("FWS", Op.WRITE, preflush=True)),
        ("FWFSM", Rwbs("FWFSM", Op.WRITE, preflush=True, fua=True, meta=True)),
        ("WFSM", Rwbs("WFSM", Op.WRITE, fua=True, meta=True)),
        ("WFAU", Rwbs("WFAU", Op.WRITE, fua=True)),
        ("FF", Rwbs("FF", Op.FLUSH, preflush=True)),
        ("F", Rwbs("F", Op.FLUSH)),
        ("FN", Rwbs("FN", Op.OTHER, preflush=True)),
        ("N", Rwbs("N", Op.OTHER)),
        ("RAM", Rwbs("RAM", Op.READ, meta=True)),
        ("DS", Rwbs("DS", Op.DISCARD)),
        ("DE", Rwbs("DE", Op.OTHER)),
        ("WZS", Rwbs("WZS", Op.OTHER)),
        ("ZA", Rwbs("ZA", Op.OTHER)),
    ],
)
def test_rwbs(text: str, expected: Rwbs) -> None:
    assert parse_rwbs(text) == expected


def test_what_flushes() -> None:
    assert [text for text in ("F", "FF", "FN", "FWS", "WF", "W", "R") if parse_rwbs(text).flushes] == [
        "F",
        "FF",
        "FN",
        "FWS",
    ]


LINE = "bob-1 [000] ..... 1.000000: "


@pytest.mark.parametrize("lost", ["CPU:0 [LOST 12 EVENTS]", "CPU:0 [LOST EVENTS]", "  CPU:0 [LOST 12 EVENTS]"])
def test_lost_events(lost: str) -> None:
    with pytest.raises(RecordingError, match=r"timeline line 2: .*\(CPU:0 \[LOST"):
        parse_timeline(f"{LINE}tracing_mark_write: bob: start\n{lost}\n")


def test_overwritten_events() -> None:
    with pytest.raises(RecordingError) as refused:
        parse_timeline(SAMPLE.replace("4/4", "4/5"))
    assert text_with(str(refused.value), 3, 4, 5) == snapshot(
        "timeline line 3: the trace buffer lost events (4 of 5 events are left)"
    )


def test_two_cpus() -> None:
    with pytest.raises(RecordingError) as refused:
        parse_timeline(SAMPLE.replace("[000] d.h2.", "[001] d.h2."))
    assert text_with(str(refused.value), 8) == snapshot(
        "timeline line 8: events of CPUs 000 and 001, so their order is not exact"
    )


def test_backwards() -> None:
    with pytest.raises(RecordingError) as refused:
        parse_timeline(SAMPLE.replace("12.345700", "12.345600"))
    assert text_with(str(refused.value), 10, "12.345600", "12.345679") == snapshot(
        "timeline line 10 runs backwards: 12.345600 after 12.345679"
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nonsense", snapshot("timeline line 1 is not a line of ftrace: 'nonsense'")),
        (
            "bob-1 [000] ..... 1: block_bio_queue: 1,0 W 0 + 8 [x]",
            snapshot(
                "timeline line 1 is not a line of ftrace: 'bob-1 [000] ..... 1: block_bio_queue: 1,0 W 0 + 8 [x]'"
            ),
        ),
        (
            LINE + "block_bio_queue: 1,0 W 0 8 [x]",
            snapshot("timeline line 1 has an event of unknown form: '1,0 W 0 8 [x]'"),
        ),
        (
            LINE + "block_bio_queue: 1,0 W 0 + 8",
            snapshot("timeline line 1 has an event of unknown form: '1,0 W 0 + 8'"),
        ),
        (
            LINE + "block_bio_complete: 1,0 W 0 + 8 [x]",
            snapshot("timeline line 1 has an event of unknown form: '1,0 W 0 + 8 [x]'"),
        ),
        (
            LINE + "block_bio_remap: 1,0 W 0 + 8 [0]",
            snapshot("timeline line 1 has an event of unknown form: '1,0 W 0 + 8 [0]'"),
        ),
    ],
)
def test_malformed(line: str, message: str) -> None:
    with pytest.raises(MalformedError) as refused:
        parse_timeline(line)
    assert str(refused.value) == message


def test_other_events_and_marks_are_passed_over() -> None:
    text = [
        LINE + "jbd2_start_commit: dev 253,0 transaction 4 sync 0",
        LINE + "tracing_mark_write: somebody: else",
        LINE + "block_rq_issue: 8,0 WS 4096 () 16573296 + 8 [kworker/7:0H]",
        LINE + "wbc_writepage: bdi 253:0: towrt=1024",
        "",
        "   ",
    ]
    assert parse_timeline("\n".join(text)).events == ()


def test_a_mark_whose_name_is_another_symbol() -> None:
    (event,) = parse_timeline(LINE + "0: bob: end \n").events
    assert isinstance(event, Marker) and event.text == "end"


def test_a_mark_that_looks_like_an_event() -> None:
    (event,) = parse_timeline(LINE + "tracing_mark_write: bob: x-1 [000] 2.0: block_bio_queue: 1,0 W 0 + 8 [x]").events
    assert event == Marker(Moment(1, 1.0), "x-1 [000] 2.0: block_bio_queue: 1,0 W 0 + 8 [x]")


@settings(deadline=None)
@given(st.text() | st.text(alphabet="bob-1 [0].:,+<()\n WFblock_iqueu", max_size=200))
def test_fuzz(text: str) -> None:
    try:
        parse_timeline(text)
    except (MalformedError, RecordingError) as error:
        assert "timeline line" in error.message


@settings(deadline=None)
@given(st.integers(0, len(SAMPLE) - 1), st.characters())
def test_fuzz_mutations(at: int, character: str) -> None:
    try:
        parse_timeline(SAMPLE[:at] + character + SAMPLE[at + 1 :])
    except (MalformedError, RecordingError) as error:
        assert "timeline line" in error.message
