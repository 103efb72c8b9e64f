"""A drawing of the update protocol of a program (OSDI'14, Figure 4) as SVG or DOT. The protocol is the sequence of
steps that change files. Each step has a row. A *module* is a frame around adjacent rows. One process makes the steps in
these rows, and they are about one file. On the right, a line joins a sync to the steps that it makes durable.

On the left are the *needs* of the program. A need is something that the program relies on, although nothing ensures it.
An arrow means that the program needs two steps to persist in this order. A bracket means that it needs steps to persist
together. Lines differ in shape, not only in colour."""

from collections.abc import Iterable, Sequence
from textwrap import wrap
from xml.etree import ElementTree as Xml

from bob.answer.answer import Way
from bob.answer.result import Result
from bob.errors import UsageError
from bob.protocol.contrast import Reliance
from bob.protocol.diagram import Diagram, DiagramRow, Need, Protocol, StepKind, diagram, need_of
from bob.report.drawing import COLOURS, LETTER, put_rule, put_text
from bob.report.escape import clean
from bob.story.timeline import Fate
from bob.text import plural

NEEDED, GIVEN, TOLD = COLOURS[Fate.LOST], COLOURS[Fate.KEPT], COLOURS[Fate.DURABLE]
# Heights in pixels: of a row, of a module's name, of the space between modules, and of a line of text.
ROW, HEAD, GAP, LINE = 22, 24, 12, 16
BOX, LANE, MARGIN = 520, 16, 12  # widths in pixels: of a module, of a line beside the modules, and of the margin
STYLE = """
.bob-protocol { color-scheme: light dark; color: var(--ink, CanvasText); }
.bob-protocol text { font: 12px ui-monospace, "DejaVu Sans Mono", Menlo, monospace; fill: currentColor; }
.bob-protocol .quiet { opacity: .7; }
.bob-protocol .strong { font-weight: 700; }
.bob-protocol .line, .bob-protocol .frame { stroke: currentColor; stroke-opacity: .35; fill: none; }
.bob-protocol .head { fill: currentColor; fill-opacity: .08; }
.bob-protocol .number { fill: #fff; font-weight: 700; }
"""


def drawn(protocol: Protocol, ways: Iterable[Way]) -> Diagram:
    """Return the diagram of the steps of ``protocol``, with the program's needs. Each of ``ways`` to break the program
    shows some needs. The diagram begins with the simplest needs: for each way and each kind of need (``Reliance``), the
    need that names the fewest calls. All other needs follow."""
    shortest, others = list[Need | None](), list[Need | None]()
    for one in ways:
        seen: set[Reliance] = set()
        for relied in sorted(one.relied_on, key=lambda relied: len(relied.calls)):
            need = need_of(relied.explanation, relied.sentence, one.output, protocol.steps)
            (others if relied.explanation.reliance in seen else shortest).append(need)
            seen.add(relied.explanation.reliance)
    return diagram(protocol.steps, (need for need in (*shortest, *others) if need is not None))


def picture(result: Result, *, is_dot: bool = False) -> str:
    """Return the update protocol of a run as SVG or DOT. The steps are those of the run's first recording. The needs
    come from several answers of the run: the answer for the configuration that was recorded first, and the answers for
    all models of file systems. Raise UsageError if the run lacks a protocol."""
    if not result.protocols:
        hint = "older runs lack it, and so do runs in which bob could not follow the program's calls"
        raise UsageError(f"this run of {result.program_name} lacks an update protocol", hint=hint)
    first = result.protocols[0]
    asked = [one for one in result.subjects if one.model is not None or one.name == first.configuration]
    ways = [way for subject in asked for way in subject.answer.ways]
    title = f"The update protocol of {result.program_name}, recorded on {first.configuration}"
    return (dot if is_dot else svg)(drawn(first, ways), title)


def svg(made: Diagram, title: str) -> str:
    ends = [(*need.first, *need.then) for need in made.needs]
    needs = _lanes([(min(places), max(places)) for places in ends])
    orders = _lanes([(first, sync) for first, _last, sync in made.orders])
    left = MARGIN + LANE * (2 + max(needs, default=-1)) + (10 if needs else 0)
    right = left + BOX
    width = right + LANE * (2 + max(orders, default=0)) + MARGIN
    root = Xml.Element(
        "svg",
        {"xmlns": "http://www.w3.org/2000/svg", "class": "bob-protocol", "role": "img", "font-family": "monospace",
         "aria-label": clean(title)},
    )  # fmt: skip
    Xml.SubElement(root, "title").text = clean(title)
    Xml.SubElement(root, "desc").text = clean(told(made))
    Xml.SubElement(root, "style").text = STYLE
    y, height = _put_rows(root, made, left)
    for lane, (first, last, sync) in zip(orders, made.orders, strict=True):
        _put_order(root, right, right + LANE * (lane + 1), (y[first], y[last], y[sync]))
    for number, (lane, need) in enumerate(zip(needs, made.needs, strict=True), start=1):
        _put_need(root, number, need, left, left - 10 - LANE * (lane + 1), y)
    height = _put_words(root, made, height + 8, width)
    root.attrib |= {"viewBox": f"0 0 {width} {height}", "width": str(width), "height": str(height)}
    return Xml.tostring(root, encoding="unicode")


def dot(made: Diagram, title: str) -> str:
    """Return the diagram for Graphviz. Each module is a cluster (a framed subgraph). Solid lines are orders that syncs
    ensure, and dashed lines are orders that the program needs. ``made`` is the diagram."""
    lines = [f"digraph protocol {{\n  label={_quote(title)};\n  node [shape=box, fontname=monospace];"]
    inside = {place for first, end in made.modules for place in range(first, end)}
    for number, (first, end) in enumerate(made.modules):
        lines.append(f"  subgraph cluster_{number} {{\n    label={_quote(_heading(made.rows[first:end]))};")
        lines += [f"    s{place} [label={_quote(_said(made.rows[place]))}];" for place in range(first, end)]
        lines.append("  }")
    for place, row in enumerate(made.rows):
        if place not in inside:
            shape = "plaintext" if row.is_gap else "doubleoctagon"
            lines.append(f"  s{place} [label={_quote(_said(row))}, shape={shape}];")
    lines += [f"  s{place} -> s{place + 1} [color=gray, arrowhead=none];" for place in range(len(made.rows) - 1)]
    for first, last, sync in made.orders:
        for place in dict.fromkeys((first, last)):
            lines.append(f"  s{place} -> s{sync} [color={_quote(GIVEN)}, constraint=false];")
    for number, need in enumerate(made.needs, start=1):
        style = f"color={_quote(NEEDED)}, fontcolor={_quote(NEEDED)}, style=dashed, constraint=false"
        ends = [(one, other, "normal") for one in need.first for other in need.then]
        if not need.then:
            ends = [(one, other, "none") for one, other in zip(need.first, need.first[1:] or need.first, strict=False)]
        for one, other, head in ends:
            tip = _quote(need.sentence)
            lines.append(
                f"  s{one} -> s{other} [label={_quote(str(number))}, {style}, arrowhead={head}, tooltip={tip}];"
            )
    return "\n".join([*lines, "}"]) + "\n"


def told(made: Diagram) -> str:
    steps = sum(len(row.steps) for row in made.rows)
    said = [f"{plural(steps, 'step')} in {plural(len(made.modules), 'module')}"]
    said += [f"{number}. {need.sentence}" for number, need in enumerate(made.needs, start=1)]
    return ". ".join(said)


def _put_rows(root: Xml.Element, made: Diagram, left: int) -> tuple[list[int], int]:
    """Draw the rows. Return the y coordinate of the middle of each row, and the y coordinate below all rows."""
    begins = dict(made.modules)
    y: list[int] = []
    at = MARGIN
    for place, row in enumerate(made.rows):
        if place in begins:
            end = begins[place]
            at += GAP if end - place > 1 else GAP // 2
            _put_module(root, made.rows[place:end], left, at)
            at += HEAD if end - place > 1 else 0
        elif row.first.kind is StepKind.TOLD or row.is_gap:
            at += GAP
        y.append(at + ROW // 2)
        _put_row(root, row, left, y[-1], is_alone=begins.get(place) == place + 1)
        at += ROW
    _put_loops(root, made.rows, y, left + BOX - 8)
    return y, at + GAP


def _put_module(root: Xml.Element, rows: Sequence[DiagramRow], left: int, y: int) -> None:
    """Draw the frame of a module. If the module has several rows, a head line says which file or directory they are
    about."""
    head = HEAD if len(rows) > 1 else 0
    corner = {"x": str(left), "y": str(y), "width": str(BOX), "rx": "4"}
    if head:
        Xml.SubElement(root, "rect", {**corner, "height": str(head - 4), "class": "head"})
        _put_cut(root, left + 8, y + 14, _heading(rows), BOX - 16, "strong")
    Xml.SubElement(root, "rect", {**corner, "height": str(head + ROW * len(rows)), "class": "frame"})


def _put_row(root: Xml.Element, row: DiagramRow, left: int, y: int, *, is_alone: bool) -> None:
    """Draw a row. If ``is_alone``, the row is the only one in its module. The module then lacks a head line, so the row
    itself names the file and the process."""
    first = row.first
    if row.is_gap:
        put_text(root, left + 8, y + 4, _said(row), "quiet")
        return
    if first.kind is StepKind.TOLD:
        put_rule(root, left, y - 9, left + BOX, y - 9, colour=TOLD, width=2)
        put_rule(root, left, y + 9, left + BOX, y + 9, colour=TOLD, width=2)
    elif first.kind is StepKind.SYNC:
        put_rule(root, left + 4, y, left + 14, y, colour=GIVEN, width=4)
        put_rule(root, left + BOX - 24, y, left + BOX, y, colour=GIVEN, width=4)
    style = "" if first.kind is StepKind.CHANGE else "strong"
    said = f"{_said(row, _about((row,)))} · {_who(row)}" if is_alone else _said(row)
    _put_cut(root, left + 20, y + 4, said, BOX - 50, style)


def _put_cut(root: Xml.Element, x: int, y: int, said: str, width: int, style: str) -> None:
    """Draw a line of text, cut to ``width``. If the text is cut, the whole text appears as a tooltip."""
    most = int(width / LETTER)
    is_long = len(said) > most
    put_text(root, x, y, f"{said[: most - 1]}…" if is_long else said, style, whole=said if is_long else "")


def _put_loops(root: Xml.Element, rows: Sequence[DiagramRow], y: Sequence[int], x: int) -> None:
    spans: dict[int, list[int]] = {}
    for place, row in enumerate(rows):
        if row.loop is not None and not row.is_gap:
            spans.setdefault(row.loop, []).append(place)
    for places in spans.values():
        top, bottom = y[places[0]] - 8, y[places[-1]] + 8
        _path(root, f"M{x - 8} {top} H{x} V{bottom} H{x - 8}", "currentColor", 1.5)
        put_text(root, x - 10, (top + bottom) // 2 + 4, f"× {len(rows[places[0]].steps):,}", "strong", anchor="end")


def _put_order(root: Xml.Element, box: int, x: int, y: tuple[int, int, int]) -> None:
    """Draw the line that joins a sync to the steps that it makes durable. The line runs beside the rows, from the first
    of these steps to the sync, where it ends in an arrow."""
    first, last, sync = y
    _path(root, f"M{box} {first} H{x} V{sync} H{box + 7}", GIVEN, 1.8)
    if last != first:
        _path(root, f"M{box} {last} H{x}", GIVEN, 1.8)
    Xml.SubElement(root, "path", {"d": f"M{box} {sync} l8 -4 v8 Z", "fill": GIVEN})


def _put_need(root: Xml.Element, number: int, need: Need, box: int, x: int, y: Sequence[int]) -> None:
    """Draw the need with this ``number``. It is an arrow from the steps that must be on the disk first to the later
    steps, or a bracket around steps that must persist together."""
    ends = [y[place] for place in (*need.first, *need.then)]
    for place in need.first:
        _path(root, f"M{box} {y[place]} H{x}", NEEDED, 2, "" if not need.then else "6 3")
    _path(root, f"M{x} {min(ends)} V{max(ends)}", NEEDED, 2, "" if not need.then else "6 3")
    for place in need.then:
        _path(root, f"M{x} {y[place]} H{box - 7}", NEEDED, 2, "6 3")
        Xml.SubElement(root, "path", {"d": f"M{box} {y[place]} l-8 -4 v8 Z", "fill": NEEDED})
    middle = (min(ends) + max(ends)) // 2 if max(ends) > min(ends) else ends[0]
    shape = {"cx": str(x), "cy": str(middle), "r": "8", "fill": NEEDED}
    badge = Xml.SubElement(root, "circle", shape)
    Xml.SubElement(badge, "title").text = clean(need.sentence)
    put_text(root, x, middle + 4, str(number), "number", anchor="middle")


def _put_words(root: Xml.Element, made: Diagram, y: int, width: int) -> int:
    """Draw a legend and sentences about the needs. The first line is at the y coordinate ``y``. Return the y coordinate
    below the last line."""
    keys = []
    if any(row.first.kind is StepKind.SYNC for row in made.rows):
        keys.append(("a sync, and the steps that it makes durable", GIVEN, ""))
    if any(row.first.kind is StepKind.TOLD for row in made.rows):
        keys.append(("output of the program: from here on a user relies on it", TOLD, ""))
    if made.needs:
        keys.append(("needed, but not ensured: → this order; [ all or nothing", NEEDED, "6 3"))
    for said, colour, dash in keys:
        put_rule(root, MARGIN, y, MARGIN + 26, y, colour=colour, width=3, dash=dash)
        y += _put_wrapped(root, MARGIN + 34, y + 4, said, width, "quiet")
    for number, need in enumerate(made.needs, start=1):
        y += _put_wrapped(root, MARGIN, y + 4, f"{number}  {need.sentence}", width, "")
    if made.left_out:
        y += _put_wrapped(root, MARGIN, y + 4, f"and {made.left_out} more, which are not drawn", width, "quiet")
    return y + MARGIN


def _put_wrapped(root: Xml.Element, x: int, y: int, said: str, width: int, style: str) -> int:
    lines = wrap(said, int((width - x - MARGIN) / LETTER), break_on_hyphens=False) or [""]
    for number, line in enumerate(lines):
        put_text(root, x, y + LINE * number, line, style)
    return LINE * len(lines) + 4


def _heading(rows: Sequence[DiagramRow]) -> str:
    return f"{_about(rows)} · {_who(rows[0])}"


def _about(rows: Sequence[DiagramRow]) -> str:
    """Return the file that a module is about; if it is about several files, return their directory."""
    paths = {step.path for row in rows for step in row.steps}
    first = rows[0].first.path or "/"
    return first if len(paths) == 1 else f"{first.rsplit('/', 1)[0]}/… ({plural(len(paths), 'file')})"


def _who(row: DiagramRow) -> str:
    program, number = row.first.program, row.first.process
    return f"{program}, process {number}" if program and number > 1 else program or f"process {number}"


def _said(row: DiagramRow, path: str = "") -> str:
    first, count = row.first, len(row.steps)
    if row.is_gap:
        return f"… {plural(count, 'step')}"
    named = " ".join(word for word in (first.verb, path) if word)
    if first.kind is StepKind.TOLD:
        return first.words
    is_alike = len({step.words for step in row.steps}) == 1
    said = " ".join(word for word in (named, first.more) if word) if is_alike else named
    return said if row.loop is not None or count == 1 else f"{said} × {count:,}"


def _lanes(spans: Sequence[tuple[int, int]]) -> list[int]:
    """Return the lane of each vertical line. ``spans`` has the first and the last row of each line. A lane is a column
    beside the modules; lane 0 is next to them. Lines in one lane do not overlap. Each line, the shortest first, gets
    the free lane with the lowest number."""
    lanes: dict[int, int] = {}
    taken: list[list[tuple[int, int]]] = []
    for number in sorted(range(len(spans)), key=lambda one: (spans[one][1] - spans[one][0], spans[one])):
        top, bottom = spans[number]
        free = (at for at, others in enumerate(taken) if all(bottom < low or high < top for low, high in others))
        lanes[number] = next(free, len(taken))
        if lanes[number] == len(taken):
            taken.append([])
        taken[lanes[number]].append((top, bottom))
    return [lanes[number] for number in range(len(spans))]


def _path(root: Xml.Element, data: str, colour: str, width: float, dash: str = "") -> None:
    attributes = {"d": data, "fill": "none", "stroke": colour, "stroke-width": str(width)}
    Xml.SubElement(root, "path", {**attributes, "stroke-dasharray": dash} if dash else attributes)


def _quote(text: str) -> str:
    plain = clean(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{plain}"'
