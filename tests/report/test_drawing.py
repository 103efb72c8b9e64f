"""The picture of a time line: each event has its row, nothing needs colours, and text is escaped."""

from __future__ import annotations

import io
from xml.etree import ElementTree as Xml

from rich.console import Console

from bob.judge.rules import Question
from bob.report.drawing import COLOURS, svg
from bob.report.story import MARKS, words
from bob.story.timeline import Called, Fate, Flushed, Timeline, Written
from bob.workload.language import parse

OPERATIONS = parse("write /a 0 4096; rename /a /b")
LINE = Timeline(
    (
        Called(0.0001, 0.2, 1),
        Written(0.3, 0.4, 4, 1, 96, 8, "jbd2/<dm-0>", True, Fate.DURABLE, "journal", "journal commit block", ()),
        Flushed(0.5, None, "jbd2"),
        *(
            Written(1.0, None, 5, 3, 200, 24, "kworker", False, fate, "data", "data of operation 1", (1,))
            for fate in (Fate.KEPT, Fate.TORN, Fate.LOST)
        ),
    ),
    2.0,
    7,
)
SVG = "{http://www.w3.org/2000/svg}"


def test_every_event_is_there() -> None:
    root = Xml.fromstring(svg(LINE, OPERATIONS, Question((1,), 2), "nothing of <it>"))
    said = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert "1 write /a 0 4096" in said
    assert any("jbd2/<dm-0>" in one for one in said)
    assert any("flush, under way at the crash" in one for one in said)
    assert "(7 earlier writes, all durable)" in said
    assert "crash at 2.000 s" in said
    assert "found after it: nothing of <it>" in said


def test_marks_differ_in_shape() -> None:
    shapes = {}
    for fate in Fate:
        line = Timeline((Written(1.0, None, 0, 1, 0, 8, "", False, fate, "data", "x", ()),), 2.0)
        root = Xml.fromstring(svg(line, OPERATIONS))
        shapes[fate] = tuple(sorted((e.tag, e.get("fill", ""), e.get("stroke-dasharray", "")) for e in root.iter()))
    assert len({tuple(kind for kind, *_ in shape) + shape for shape in shapes.values()}) == len(Fate)
    assert len(set(COLOURS.values())) == len(set(MARKS.values())) == len(Fate)


def test_what_does_not_fit_is_cut_and_kept_as_a_title() -> None:
    long = Timeline((Written(1.0, None, 0, 1, 0, 8, "", False, Fate.LOST, "data", "x" * 300, ()),), 2.0)
    root = Xml.fromstring(svg(long, OPERATIONS))
    [title] = [element.text or "" for element in root.iter(f"{SVG}title")]
    assert "x" * 300 in title
    assert all(len(text.text or "") < 120 for text in root.iter(f"{SVG}text"))


def test_words() -> None:
    [*_, lost] = LINE.writes
    assert words(lost) == "data of operation 1 (3 writes), 12 KiB at sector 200 (kworker)"
    Console(file=io.StringIO()).print(words(lost))
