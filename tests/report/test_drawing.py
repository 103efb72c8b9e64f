"""The picture of a time line: each event has its row, nothing needs colours, and text is escaped."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from xml.etree import ElementTree as Xml

from rich.console import Console

from bob.claim.property.of_property import OfProperty
from bob.claim.property.rules import Question
from bob.report.drawing import COLOURS, MOST_LINES, mark, svg
from bob.report.drawing import LINE as HIGH
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
ORDERED = OfProperty("mine", Question((1,), 2))
SVG = "{http://www.w3.org/2000/svg}"


def test_every_event_is_there() -> None:
    root = Xml.fromstring(svg(LINE, OPERATIONS, ORDERED.role, "nothing of <it>"))
    said = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert "1 write /a 0 4096" in said
    assert any("jbd2/<dm-0>" in one for one in said)
    assert any("flush, under way at the crash" in one for one in said)
    assert "(7 earlier writes, all durable)" in said
    assert {"2.000 s", "the crash: the power fails here"} <= set(said)
    assert "found after it: nothing of <it>" in said


def test_a_time_in_which_nothing_comes_is_seen() -> None:
    def write(seconds: float, *, decides: bool = False) -> Written:
        return Written(seconds, None, 0, 1, 0, 8, "", False, Fate.KEPT, "x", f"at {seconds}", (), "", decides)

    line = Timeline((write(0.1), write(1.0), write(31.5, decides=True)), 32.4)
    root = Xml.fromstring(svg(line, ()))
    said = [(text.text or "", text.get("class")) for text in root.iter(f"{SVG}text")]
    assert [text for text, _style in said if text.startswith("nothing for")] == ["nothing for 30.5 s"]
    bold = [text.split(",")[0] for text, style in said if style == "strong" and text.startswith("at ")]
    assert bold == ["at 31.5"], "what decides is bold, whatever became of it"


def bold(line: Timeline) -> list[str]:
    """What of the disk is in bold: the places of writes, by their sectors, and the flushes."""
    texts = [(text.text or "", text.get("class")) for text in Xml.fromstring(svg(line, OPERATIONS)).iter(f"{SVG}text")]
    strong = [text for text, style in texts if style == "strong" and ("sector" in text or "flush," in text)]
    return [re.sub(r".* at sector (\d+).*", r"\1", one) for one in strong]


def test_what_made_durable_what_is_there_is_as_bold_as_what_was_lost() -> None:
    """The rules of the device: done before the flush was sent, or FUA. What came before the operations is of no
    account, nor is a flush that made nothing durable."""

    def write(
        seconds: float, sector: int, end: float | None, fate: Fate = Fate.DURABLE, *, fua: bool = False
    ) -> Written:
        return Written(seconds, end, 0, 1, sector, 8, "", fua, fate, "x", "x", ())

    line = Timeline(
        (
            write(0.1, 1, 0.15, fua=True),
            Flushed(0.2, 0.21, ""),
            Called(1.0, 1.1, 1),
            Flushed(1.2, 1.21, ""),
            write(1.3, 2, 1.4),
            Flushed(1.35, 1.36, ""),
            Flushed(1.4, 1.5, ""),
            write(1.6, 3, 1.7, fua=True),
            write(1.8, 4, None, Fate.LOST),
            write(1.9, 5, 1.91, Fate.KEPT),
            Flushed(1.95, None, ""),
        ),
        2.0,
    )
    called = replace(line, events=tuple(one for one in line.events if not isinstance(one, Called)))
    assert bold(line) == ["flush, done at 1.500 s", "3", "4"]
    assert bold(called)[:1] == ["1"], "without an operation, all of the recording counts"


def test_without_a_legend_there_is_none() -> None:
    parts = [Xml.fromstring(svg(LINE, OPERATIONS, legend=legend)) for legend in (True, False)]
    said = [[text.text or "" for text in part.iter(f"{SVG}text")] for part in parts]
    assert said[0][:-4] == said[1] and all(one.split(":")[0] in list(Fate) for one in said[0][-4:])
    assert height(parts[0]) > height(parts[1])


def test_marks_differ_in_shape() -> None:
    shapes = {}
    for fate in Fate:
        line = Timeline((Written(1.0, None, 0, 1, 0, 8, "", False, fate, "data", "x", ()),), 2.0)
        root = Xml.fromstring(svg(line, OPERATIONS))
        shapes[fate] = tuple(sorted((e.tag, e.get("fill", ""), e.get("stroke-dasharray", "")) for e in root.iter()))
    assert len({tuple(kind for kind, *_ in shape) + shape for shape in shapes.values()}) == len(Fate)
    assert len(set(COLOURS.values())) == len(set(MARKS.values())) == len(Fate)


def drawn(what: str) -> Xml.Element:
    """The picture of one write of ``what``."""
    line = Timeline((Written(1.0, None, 0, 1, 0, 8, "", False, Fate.LOST, "data", what, ()),), 2.0)
    return Xml.fromstring(svg(line, OPERATIONS))


def test_what_is_long_takes_several_lines() -> None:
    what = "journal copy of block bitmap of group 0: allocates blocks 1811-2322, of which there are very many"
    root = drawn(what)
    said = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert f"{what}, 4 KiB at sector 0" in " ".join(said)
    assert all(len(one) < 100 for one in said)
    assert not list(root.iter(f"{SVG}title"))
    assert height(root) == height(drawn("short")) + HIGH


def height(root: Xml.Element) -> int:
    return int(root.attrib["viewBox"].split()[3])


def test_what_does_not_fit_is_cut_and_kept_as_a_title() -> None:
    root = drawn("x" * 900)
    titles = {element.text or "" for element in root.iter(f"{SVG}title")}
    assert [title for title in titles if "x" * 900 in title] == list(titles) != []
    said = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert all(len(one) < 120 for one in said)
    assert sum("x" in one for one in said) == MOST_LINES
    assert any(one.endswith("x…") for one in said)


def test_operations_say_what_the_question_asks() -> None:
    said = [text.text for text in Xml.fromstring(svg(LINE, OPERATIONS, ORDERED.role)).iter(f"{SVG}text")]
    assert "must come before operation 2" in said
    assert "is there too early" not in said  # operation 2 is not called before this crash
    said = [
        text.text
        for text in Xml.fromstring(svg(LINE, OPERATIONS, OfProperty("mine", Question((1,))).role)).iter(f"{SVG}text")
    ]
    assert "is there only in part" in said


def test_control_characters_are_no_xml() -> None:
    assert any("\ufffd" in (text.text or "") for text in drawn("a \x01 b").iter(f"{SVG}text"))


def test_each_mark_is_a_picture_of_its_own() -> None:
    assert len({Xml.tostring(Xml.fromstring(mark(fate))) for fate in Fate}) == len(Fate)


def test_words() -> None:
    [*_, lost] = LINE.writes
    assert words(lost) == "data of operation 1 (3 writes), 12 KiB at sector 200 (kworker)"
    Console(file=io.StringIO()).print(words(lost))
