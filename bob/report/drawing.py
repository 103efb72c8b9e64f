"""The time line of a witness as a picture: SVG, for a page or a file of its own.

One row an event, since times differ by a factor of a million. On the left the program's operations, in the middle what
was sent to the disk, each write with a mark of what the crash made of it; flushes are bars across. Marks differ in
shape, so they can be told apart in print, and by people who do not see their colours (those are Wong's, Nature Methods
8, 2011).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap
from xml.etree import ElementTree as Xml

from bob.judge.rules import Question
from bob.report.counts import plural
from bob.report.story import at, words
from bob.story.timeline import Called, Event, Fate, Flushed, Timeline, Written
from bob.workload.language import write_one
from bob.workload.operations import Operation

WIDTH, ROW = 1120, 26
TIME, PROGRAM, DISK = 84, 96, 340
"""Where the columns begin: times end at the first."""
LETTER = 7.4
"""Width of a letter, about; what is longer than its column is cut."""

COLOURS = {Fate.DURABLE: "#009E73", Fate.KEPT: "#0072B2", Fate.TORN: "#B07700", Fate.LOST: "#D55E00"}
STYLE = """
.bob-timeline text { font: 12px ui-monospace, "DejaVu Sans Mono", Menlo, monospace; fill: currentColor; }
.bob-timeline .quiet { opacity: .7; }
.bob-timeline .strong { font-weight: 700; }
.bob-timeline .line { stroke: currentColor; stroke-opacity: .35; }
"""


def svg(line: Timeline, operations: Sequence[Operation], question: Question | None = None, found: str = "") -> str:
    """The picture as an ``<svg>`` element; operations that ``question`` is about are framed, ``found`` is what was
    found after the crash."""
    rows = list(line.events)
    said = wrap(f"found after it: {found}", int((WIDTH - PROGRAM - 8) / LETTER)) if found else []
    height = ROW * (len(rows) + 5) + 18 * len(said)
    root = Xml.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {WIDTH} {height}", "class": "bob-timeline",
            "role": "img", "aria-label": "time line of the crash", "width": "100%", "font-family": "monospace",
        },
    )  # fmt: skip
    Xml.SubElement(root, "style").text = STYLE
    _text(root, PROGRAM, 18, "the program", "strong")
    _text(root, DISK, 18, "what the disk was sent", "strong")
    _rule(root, DISK - 18, 26, DISK - 18, ROW * (len(rows) + 2))
    y = ROW * 2
    if line.left_out:
        _text(root, DISK, y - 8, f"({plural(line.left_out, 'earlier write')}, all durable)", "quiet")
    for event in rows:
        _row(root, event, operations, question, y)
        y += ROW
    _rule(root, 8, y, WIDTH - 8, y, colour=COLOURS[Fate.LOST], width=3, dash="10 5")
    _text(root, PROGRAM, y + 18, f"crash at {at(line.crash)}", "strong")
    for part in said:
        y += 18
        _text(root, PROGRAM, y + 18, part)
    for number, fate in enumerate(Fate):
        x = PROGRAM + number * 215
        _mark(root, fate, x, y + ROW + 14)
        _text(root, x + 18, y + ROW + 18, LEGEND[fate])
    return Xml.tostring(root, encoding="unicode")


LEGEND = {
    Fate.DURABLE: "durable",
    Fate.KEPT: "pending, on the disk",
    Fate.TORN: "pending, there in part",
    Fate.LOST: "pending, lost",
}


def _row(root: Xml.Element, event: Event, operations: Sequence[Operation], question: Question | None, y: float) -> None:
    _text(root, TIME, y + 4, at(event.seconds), "quiet", anchor="end")
    match event:
        case Called():
            said = f"{event.number} {write_one(operations[event.number - 1])}"
            box = {
                "x": str(PROGRAM - 4),
                "y": str(y - 10),
                "width": str(DISK - PROGRAM - 24),
                "height": "20",
                "rx": "3",
            }
            asked = question is not None and event.number in (*question.required, question.later)
            frame = {"stroke": COLOURS[Fate.LOST], "stroke-width": "2"} if asked else {"class": "line"}
            Xml.SubElement(root, "rect", {**box, "fill": "none", **frame})
            _text(root, PROGRAM + 2, y + 4, _cut(said, DISK - PROGRAM - 34), "strong", whole=said)
        case Flushed():
            _rule(root, DISK - 18, y, WIDTH - 8, y, colour="#777777", width=5)
            until = f"flush, done at {at(event.end)}" if event.end is not None else "flush, under way at the crash"
            _text(root, DISK - 26, y + 4, until, "quiet", anchor="end")
        case Written():
            _rule(root, DISK - 18, y, DISK - 6, y)
            _mark(root, event.fate, DISK, y)
            said = words(event)
            strong = "strong" if event.fate in (Fate.TORN, Fate.LOST) or event.operations else ""
            _text(root, DISK + 14, y + 4, _cut(said, WIDTH - DISK - 20), strong, whole=said)


def _mark(root: Xml.Element, fate: Fate, x: float, y: float) -> None:
    """A filled square, a filled circle, half a square, or the outline of one that is crossed out."""
    colour = COLOURS[fate]
    square = {"x": str(x - 6), "y": str(y - 6), "width": "12", "height": "12", "stroke": colour, "stroke-width": "2"}
    match fate:
        case Fate.DURABLE:
            Xml.SubElement(root, "rect", {**square, "fill": colour})
        case Fate.KEPT:
            Xml.SubElement(root, "circle", {"cx": str(x), "cy": str(y), "r": "6", "fill": colour})
        case Fate.TORN:
            Xml.SubElement(root, "rect", {**square, "fill": "none"})
            Xml.SubElement(root, "path", {"d": f"M{x - 6} {y - 6} H{x + 6} L{x - 6} {y + 6} Z", "fill": colour})
        case Fate.LOST:
            Xml.SubElement(root, "rect", {**square, "fill": "none", "stroke-dasharray": "3 2"})
            _rule(root, x - 6, y + 6, x + 6, y - 6, colour=colour, width=2)


def _text(
    root: Xml.Element, x: float, y: float, said: str, style: str = "", *, anchor: str = "start", whole: str = ""
) -> None:
    element = Xml.SubElement(root, "text", {"x": str(x), "y": str(y), "class": style, "text-anchor": anchor})
    element.text = said
    if whole and whole != said:
        Xml.SubElement(element, "title").text = whole


def _rule(
    root: Xml.Element, x: float, y: float, right: float, bottom: float, *, colour: str = "", width: int = 1,
    dash: str = "",
) -> None:  # fmt: skip
    ends = {"x1": str(x), "y1": str(y), "x2": str(right), "y2": str(bottom), "stroke-width": str(width)}
    Xml.SubElement(root, "line", {**ends, **dict(_stroke(colour, dash))})


def _stroke(colour: str, dash: str) -> Iterator[tuple[str, str]]:
    yield ("stroke", colour) if colour else ("class", "line")
    if dash:
        yield "stroke-dasharray", dash


def _cut(said: str, width: float) -> str:
    """``said``, or as much of it as there is room for."""
    letters = int(width / LETTER)
    return said if len(said) <= letters else said[: letters - 1] + "…"
