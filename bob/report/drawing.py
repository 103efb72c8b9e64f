"""A drawing of the time line of a witness as SVG, in one of two widths. A *witness* is a recorded crash that breaks a
claim, and its *time line* has the events of the crash in order. Each event has one row, and rows are not to scale,
since times differ by a factor of a million. The marks of writes have colours from Wong, Nature Methods 8, 2011. They
also differ in shape, for print and for colour-blind readers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import wrap
from xml.etree import ElementTree as Xml

from bob.report.escape import clean
from bob.report.story import at, called, of_node, words
from bob.story.decisive import sealing
from bob.story.timeline import CallEvent, CrashTimeline, Fate, FlushEvent, ProgramCallEvent, StoryEvent, WriteEvent
from bob.text import plural
from bob.workload.language import write_one
from bob.workload.operations import Operation

ROW, LINE = 26, 15  # pixels: the height of an event, and of each further line of its text
LONG = 1.0  # seconds: the drawing shows a pause of at least this length, since the places of rows do not show it
LETTER, MOST_LINES = 7.4, 3  # approximate pixels of a letter; the default for ``Columns.most_lines``


@dataclass(frozen=True, slots=True)
class Columns:
    """The width of the picture, and the places of its columns, in pixels. The column of times ends at ``time``. The
    column of calls begins at ``program``, and is ``program_width`` wide. The marks of writes are at ``disk``, and the
    texts about writes begin at ``words``. A text is cut after ``most_lines`` lines. The text about a write or flush
    begins ``below`` pixels lower than the mark of the write or flush."""

    width: int
    time: int
    program: int
    program_width: int
    disk: int
    words: int
    most_lines: int = MOST_LINES
    below: int = 0


WIDE = Columns(1120, time=84, program=96, program_width=220, disk=340, words=412)
"""The columns for a screen, where an event is one line."""
NARROW = Columns(388, time=76, program=86, program_width=294, disk=100, words=114, most_lines=6, below=LINE)
"""The columns for a phone, where the words about a write stand below its fate."""

COLOURS = {Fate.DURABLE: "#009E73", Fate.KEPT: "#0072B2", Fate.TORN: "#B07700", Fate.LOST: "#D55E00"}
STYLE = """
.bob-timeline text { font: 12px ui-monospace, "DejaVu Sans Mono", Menlo, monospace; fill: currentColor; }
.bob-timeline .quiet { opacity: .7; }
.bob-timeline .strong { font-weight: 700; }
.bob-timeline .line { stroke: currentColor; stroke-opacity: .35; }
"""


LEGEND = {
    Fate.DURABLE: "surely on the disk",
    Fate.KEPT: "pending, and on the disk",
    Fate.TORN: "pending, and on the disk in part",
    Fate.LOST: "pending, and not on the disk",
}


# A claim's words about an operation, by the operation's number; empty if the claim is not about it.
Role = Callable[[int], str]


def svg(
    line: CrashTimeline,
    operations: Sequence[Operation],
    role: Role,
    found: str = "",
    *,
    legend: bool = True,
    columns: Columns = WIDE,
) -> str:
    """Return the picture as an ``<svg>`` element. ``role`` is a function. It takes the number of an operation, and
    returns what the broken claim says about this operation. Unless that text is empty, the picture shows it, and frames
    the operation in colour. ``found`` says what was found after the crash. The text of a write is bold if the write is
    lost or torn, if it decides whether the claim breaks, or if it has data of an operation. The text of an event that
    made earlier writes durable is also bold."""
    below = columns.below
    root = Xml.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg", "class": "bob-timeline narrow" if below else "bob-timeline",
            "role": "img", "aria-label": "time line of the crash", "width": "100%", "font-family": "monospace",
        },
    )  # fmt: skip
    Xml.SubElement(root, "style").text = STYLE
    put_text(root, columns.time, 18, "time", "strong", anchor="end")
    put_text(root, columns.program, 18, "the program", "strong")
    put_text(root, columns.words if below else columns.disk - 6, 18 + below, "what the disk was sent", "strong")
    y = ROW * 2 + below
    if line.left_out:
        put_text(root, columns.words, y - 8, f"({plural(line.left_out, 'earlier write')}, all durable)", "quiet")
    begin, before, seals = y - ROW, 0.0, sealing(line)
    y += ROW // 2 if line.left_out else 0
    for place, event in enumerate(line.events):
        y += _gap(root, event.seconds - before, y, columns)
        before = event.seconds
        y += _row(root, event, operations, role, y, columns, seals=place in seals)
    y += _gap(root, line.crash - before, y, columns)
    put_rule(root, columns.disk - 18, begin, columns.disk - 18, y)
    put_rule(root, 8, y, columns.width - 8, y, colour=COLOURS[Fate.LOST], width=3, dash="10 5")
    put_text(root, columns.time, y + 20, at(line.crash), "strong", anchor="end")
    put_text(root, columns.program, y + 20, "the crash: the power fails here", "strong")
    said = wrap(f"found after it: {found}", int((columns.width - columns.program - 8) / LETTER)) if found else []
    for number, part in enumerate(said):
        put_text(root, columns.program, y + 38 + 18 * number, part)
    y += 26 + 18 * len(said)
    if legend:
        y += 18
        for number, fate in enumerate(Fate):
            x = columns.program + number * 255
            _mark(root, fate, x, y)
            put_text(root, x + 14, y + 4, f"{fate.value}: {LEGEND[fate]}")
    root.set("viewBox", f"0 0 {columns.width} {y + 20}")
    return Xml.tostring(root, encoding="unicode")


def mark(fate: Fate) -> str:
    """Return the mark of a write with this ``fate`` (such as lost) as an ``<svg>`` element with the size of a
    letter."""
    root = Xml.Element(
        "svg",
        {"xmlns": "http://www.w3.org/2000/svg", "viewBox": "0 0 16 16", "width": "16", "height": "16",
         "class": "bob-mark", "aria-hidden": "true"},
    )  # fmt: skip
    _mark(root, fate, 8, 8)
    return Xml.tostring(root, encoding="unicode")


def _row(
    root: Xml.Element,
    event: StoryEvent,
    operations: Sequence[Operation],
    role: Role,
    y: int,
    columns: Columns,
    *,
    seals: bool,
) -> int:
    """Draw ``event``, and return the height of its row. ``seals`` says whether the event makes earlier writes
    durable."""
    put_text(root, columns.time, y + 4, at(event.seconds), "quiet", anchor="end")
    disk, edge, most, below = columns.disk, columns.width - 8, columns.most_lines, columns.below
    match event:
        case CallEvent():
            return _call(root, event.number, operations, role, y, columns)
        case ProgramCallEvent():
            style = "strong" if event.there in ("missing", "partly") else ""
            said = f"{event.words}{called(event)}"
            lines = put_lines(root, columns.program + 2, y + 4, said, columns.program_width - 10, style, most)
            return ROW + LINE * (lines - 1)
        case FlushEvent():
            put_rule(root, disk - 18, y, edge, y, colour=COLOURS[Fate.DURABLE] if seals else "#777777", width=5)
            done = f"done at {at(event.end)}" if event.end is not None else "under way at the crash"
            until = f"flush{of_node(event)}, {done}"
            x, anchor = (columns.words, "start") if below else (disk - 26, "end")
            put_text(root, x, y + 4 + below, until, "strong" if seals else "quiet", anchor=anchor)
            return ROW + below
        case WriteEvent():
            put_rule(root, disk - 18, y, disk - 6, y)
            _mark(root, event.fate, disk, y)
            is_strong = seals or event.decides or event.fate in (Fate.TORN, Fate.LOST) or event.operations
            strong = "strong" if is_strong else ""
            put_text(root, disk + 14, y + 4, event.fate.value, strong or "quiet")
            wide = edge - columns.words
            lines = put_lines(root, columns.words, y + 4 + below, words(event), wide, strong, most)
            return ROW + LINE * (lines - 1) + below


def _gap(root: Xml.Element, seconds: float, y: int, columns: Columns) -> int:
    """Draw a long pause at ``y``, and return the height of its row. Draw nothing for a short pause, and return 0."""
    if seconds < LONG:
        return 0
    put_rule(root, 8, y, columns.disk - 26, y, dash="1 5")
    put_rule(root, columns.disk - 10, y, columns.width - 8, y, dash="1 5")
    put_text(root, columns.words, y + 16, f"nothing for {seconds:.1f} s", "quiet")
    return ROW


def _call(root: Xml.Element, number: int, operations: Sequence[Operation], role: Role, y: int, columns: Columns) -> int:
    """Draw a frame that contains an operation and, below it, what the broken claim says about the operation (``role``).
    Return the height of the row."""
    asked, x, width, most = role(number), columns.program, columns.program_width, columns.most_lines
    frame = {"stroke": COLOURS[Fate.LOST], "stroke-width": "2"} if asked else {"class": "line"}
    box = Xml.SubElement(root, "rect", {"x": str(x - 4), "y": str(y - 10), "rx": "3", "fill": "none", **frame})
    said = f"{number} {write_one(operations[number - 1])}"
    count = put_lines(root, x + 2, y + 4, said, width - 10, "strong", most)
    if asked:
        count += put_lines(root, x + 2, y + 4 + LINE * count, asked, width - 10, "quiet", most)
    box.attrib |= {"width": str(width), "height": str(20 + LINE * (count - 1))}
    return ROW + LINE * (count - 1)


def _mark(root: Xml.Element, fate: Fate, x: float, y: float) -> None:
    """Draw the mark of ``fate`` with its centre at (``x``, ``y``). The mark of a durable write is a filled square.
    Other writes were pending at the crash. If such a write is on the disk (kept), its mark is a filled circle. If a
    part of it is on the disk (torn), its mark is half a square. If nothing of it is on the disk (lost), its mark is a
    crossed-out outline."""
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
            put_rule(root, x - 6, y + 6, x + 6, y - 6, colour=colour, width=2)


def put_lines(root: Xml.Element, x: float, y: float, said: str, width: float, style: str, most: int) -> int:
    """Add the text ``said`` in at most ``most`` lines, and return the number of lines. If the text is cut, the whole
    text appears as a tooltip."""
    parts = wrap(said, int(width / LETTER), break_on_hyphens=False)
    few = parts[:most]
    if len(few) < len(parts):
        few[-1] = f"{few[-1][:-1]}…"
    for number, part in enumerate(few):
        put_text(root, x, y + LINE * number, part, style, whole=said if few[-1] != parts[-1] else "")
    return len(few)


def put_text(
    root: Xml.Element, x: float, y: float, said: str, style: str = "", *, anchor: str = "start", whole: str = ""
) -> None:
    """Add the line of text ``said``. It begins at (``x``, ``y``) if ``anchor`` is "start", and ends there if ``anchor``
    is "end". If ``whole`` is not empty, it is the line's tooltip."""
    element = Xml.SubElement(root, "text", {"x": str(x), "y": str(y), "class": style, "text-anchor": anchor})
    element.text = clean(said)
    if whole:
        Xml.SubElement(element, "title").text = clean(whole)


def put_rule(
    root: Xml.Element, x: float, y: float, right: float, bottom: float, *, colour: str = "", width: int = 1,
    dash: str = "",
) -> None:  # fmt: skip
    ends = {"x1": str(x), "y1": str(y), "x2": str(right), "y2": str(bottom), "stroke-width": str(width)}
    stroke = {"stroke": colour} if colour else {"class": "line"}
    Xml.SubElement(root, "line", {**ends, **stroke, **({"stroke-dasharray": dash} if dash else {})})
