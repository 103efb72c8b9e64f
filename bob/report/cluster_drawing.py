"""Pictures of the crash states of a cluster as SVG, after Figure 4 of PACE (OSDI'16). There is a grid for each two
nodes. It has a row for each tree of the one node, and a column for each tree of the other. The oldest trees come
first."""

from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from bob.answer.result import NodeGrid
from bob.report.drawing import LINE, put_text
from bob.report.escape import clean

CELL, MARGIN, GAP, LEGEND = 9, 26, 34, 200  # pixels
# Also without colours, the cells differ in size: a refused one is full, an accepted one is small.
LOOKS = {"x": ("#1a1a1a", 0), ".": ("#56B4E9", 2), "?": ("#E69F00", 3), " ": ("#c8c8c8", 4)}
WORDS = {"x": "some check refused", ".": "all checks passed", "?": "possible, not checked", " ": "impossible"}
STYLE = ".bob-grids text { font: 12px ui-monospace, monospace; fill: currentColor; }"


def svg(grids: Sequence[NodeGrid], where: str) -> str:
    """Return the picture of ``grids``. ``where`` names the configuration."""
    title = f"Which combinations of two nodes' trees the check refuses, on {where}"
    about = {"xmlns": "http://www.w3.org/2000/svg", "class": "bob-grids", "role": "img", "aria-label": clean(title)}
    root = Xml.Element("svg", about)
    Xml.SubElement(root, "title").text = clean(title)
    Xml.SubElement(root, "desc").text = told(grids)
    Xml.SubElement(root, "style").text = STYLE
    left, bottom = 0, MARGIN + LINE * len(WORDS)
    for grid in grids:
        one, other = grid.nodes
        put_text(root, left + MARGIN, 14, f"n{other} →")
        put_text(root, left, MARGIN + CELL, f"n{one}")
        for y, row in enumerate(grid.rows):
            for x, cell in enumerate(row):
                _put_cell(root, cell, left + MARGIN + x * CELL, MARGIN + y * CELL)
        left += MARGIN + GAP + CELL * max(map(len, grid.rows), default=0)
        bottom = max(bottom, MARGIN + CELL * len(grid.rows))
    for place, (cell, words) in enumerate(WORDS.items()):
        _put_cell(root, cell, left, MARGIN + LINE * place)
        put_text(root, left + 2 * CELL, MARGIN + LINE * place + CELL, words)
    width, height = left + LEGEND, bottom + 4
    root.attrib |= {"viewBox": f"0 0 {width} {height}", "width": str(width), "height": str(height)}
    return Xml.tostring(root, encoding="unicode")


def told(grids: Sequence[NodeGrid]) -> str:
    """Return the picture in words: for each grid, the number of cells of each kind."""
    parts = []
    for grid in grids:
        cells = "".join(grid.rows)
        counts = ", ".join(f"{words}: {cells.count(cell):,}" for cell, words in WORDS.items())
        parts.append(f"n{grid.nodes[0]} and n{grid.nodes[1]}: {counts}")
    return "; ".join(parts)


def _put_cell(root: Xml.Element, cell: str, x: int, y: int) -> None:
    colour, inset = LOOKS[cell]
    side = str(CELL - 1 - 2 * inset if inset < CELL // 2 else 1)
    Xml.SubElement(
        root, "rect", {"x": str(x + inset), "y": str(y + inset), "width": side, "height": side, "fill": colour}
    )
