"""Which model is weaker than which, as a picture: SVG, for a page or a file of its own.

A model is weaker than another if that one promises all that it promises, and more. Stronger models are above; a line
goes up from each model to the next stronger ones. Models that promise the same share a box.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from statistics import fmean
from xml.etree import ElementTree as Xml

from bob.apm.clauses import Clause, with_weaker
from bob.apm.model import Model, told_apart
from bob.report.counts import plural
from bob.report.escape import clean

LETTER, LINE, PAD = 7.4, 17, 10
"""Width of a letter, about, height of a line, and what is left free around text; all in pixels."""
BETWEEN, ABOVE, WIDTH = 26, 64, 1120
"""How far boxes are apart, beside each other and above each other, and how wide a row is that has no order; pixels."""
ROUNDS = 8
"""How often the boxes of all layers are put in the order of what they are tied to."""

APART = "neither weaker nor stronger than another:"
STYLE = """
.bob-lattice { color-scheme: light dark; color: var(--ink, CanvasText); }
.bob-lattice text { font: 12px ui-monospace, "DejaVu Sans Mono", Menlo, monospace; fill: currentColor; }
.bob-lattice .quiet { opacity: .7; }
.bob-lattice .strong { font-weight: 700; }
.bob-lattice rect { fill: var(--paper, Canvas); stroke: currentColor; stroke-opacity: .55; }
.bob-lattice path { fill: none; stroke: #0072B2; stroke-width: 1.6; stroke-opacity: .85; }
@media (prefers-color-scheme: dark) { .bob-lattice path { stroke: #56b4e9; } }
"""


@dataclass(frozen=True, slots=True)
class Box:
    """Models that promise the same."""

    names: tuple[str, ...]
    promised: frozenset[Clause]

    @property
    def lines(self) -> tuple[str, ...]:
        """What is in it: a name a line, and how much is promised."""
        return (*self.names, plural(len(self.promised), "clause"))

    @property
    def width(self) -> float:
        """In pixels."""
        return max(map(len, self.lines)) * LETTER + 2 * PAD

    @property
    def height(self) -> float:
        """In pixels."""
        return len(self.lines) * LINE + 2 * PAD - 4


def boxes(models: Iterable[Model]) -> tuple[Box, ...]:
    """The models, those that promise the same together; the weakest first."""
    names: dict[frozenset[Clause], list[str]] = {}
    for model in told_apart(tuple(models)):
        names.setdefault(model.promised, []).append(model.name)
    found = (Box(tuple(sorted(together)), promised) for promised, together in names.items())
    return tuple(sorted(found, key=lambda box: (len(box.promised), box.names)))


def stronger(found: Sequence[Box]) -> dict[int, tuple[int, ...]]:
    """For each box (its index) those of the next stronger models: none that is stronger than another of them."""
    every = [with_weaker(box.promised) for box in found]
    above = {at: [other for other, one in enumerate(every) if promised < one] for at, promised in enumerate(every)}
    return {
        at: tuple(other for other in others if not any(other in above[one] for one in others))
        for at, others in above.items()
    }


def lattice(models: Sequence[Model]) -> str:
    """The picture as an ``<svg>`` element."""
    found = boxes(models)
    ties = stronger(found)
    drawing = _Drawing(found, ties)
    root = Xml.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg", "class": "bob-lattice", "role": "img",
            "aria-label": told(found, ties), "font-family": "monospace",
        },
    )  # fmt: skip
    Xml.SubElement(root, "style").text = STYLE
    for line in drawing.lines():
        Xml.SubElement(root, "path", {"d": line})
    for box, x, y in drawing.placed():
        _draw(root, box, x, y)
    if drawing.apart:
        _text(root, PAD, drawing.heading, APART, "quiet", "start")
    width, height = drawing.width, drawing.height
    root.attrib |= {"viewBox": f"0 0 {width:.0f} {height:.0f}", "width": f"{width:.0f}", "height": f"{height:.0f}"}
    return Xml.tostring(root, encoding="unicode")


def told(found: Sequence[Box], ties: Mapping[int, Sequence[int]]) -> str:
    """The picture in words."""
    said = [
        f"{' and '.join(found[at].names)} weaker than {', '.join('/'.join(found[other].names) for other in others)}"
        for at, others in ties.items()
        if others
    ]
    return f"models, from weaker to stronger: {'; '.join(said) or 'none is weaker than another'}"


class _Drawing:
    """Where boxes and lines are; layers from the weakest up. A line over several layers has a place in each."""

    def __init__(self, found: Sequence[Box], ties: Mapping[int, Sequence[int]]) -> None:
        self._found = found
        tied = {at for at, others in ties.items() if others} | {other for others in ties.values() for other in others}
        self.apart = [at for at in range(len(found)) if at not in tied]
        ranks = {at: rank for at, rank in _ranks(ties).items() if at in tied}
        self._chains = [_chain(at, other, ranks) for at, others in ties.items() for other in others]
        self._layers: list[list[_Node]] = [[] for _ in range(max(ranks.values(), default=-1) + 1)]
        for at, rank in ranks.items():
            self._layers[rank].append((at,))
        for chain in self._chains:
            for rank, node in enumerate(chain[1:-1], start=ranks[chain[0][0]] + 1):
                self._layers[rank].append(node)
        self._x: dict[_Node, float] = {}
        self._y: dict[_Node, float] = {}
        self._arrange()
        self._stack()

    def placed(self) -> Iterator[tuple[Box, float, float]]:
        """Each box, and the middle of its upper edge."""
        for at, box in enumerate(self._found):
            yield box, self._x[at,], self._y[at,]

    def lines(self) -> Iterator[str]:
        """Each line as an SVG path, from a weaker box up to a stronger one."""
        for chain in self._chains:
            points = [(self._x[node], self._y[node]) for node in chain]
            points[-1] = points[-1][0], points[-1][1] + self._found[chain[-1][0]].height
            said = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
            for (x, y), (to_x, to_y) in pairwise(points):
                middle = (y + to_y) / 2
                said.append(f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}")
            yield " ".join(said)

    def _arrange(self) -> None:
        """Find x: each node near what it is tied to, none over another."""
        near: dict[_Node, list[_Node]] = {}
        for chain in self._chains:
            for low, high in pairwise(chain):
                near.setdefault(low, []).append(high)
                near.setdefault(high, []).append(low)
        for layer in self._layers:
            self._row(layer, dict.fromkeys(layer, 0.0))
        for _ in range(ROUNDS):
            for layer in (*self._layers, *reversed(self._layers)):
                wanted = {node: fmean(self._x[other] for other in near[node]) for node in layer}
                layer.sort(key=lambda node, wanted=wanted: (wanted[node], node))  # type: ignore[misc]
                self._row(layer, wanted)
        left = min((self._x[node] - self._wide(node) / 2 for node in self._x), default=0.0)
        for node in self._x:
            self._x[node] += PAD - left

    def _row(self, layer: Sequence[_Node], wanted: Mapping[_Node, float]) -> None:
        right = -inf
        for node in layer:
            half = self._wide(node) / 2
            self._x[node] = max(wanted[node], right + BETWEEN + half)
            right = self._x[node] + half
        off = fmean(self._x[node] - wanted[node] for node in layer)
        for node in layer:
            self._x[node] -= off

    def _stack(self) -> None:
        """Find y, from the strongest layer down; below them what stands apart, in rows."""
        y = float(PAD)
        for layer in reversed(self._layers):
            high = max(self._found[node[0]].height for node in layer if len(node) == 1)
            for node in layer:
                own = self._found[node[0]].height if len(node) == 1 else 0
                self._y[node] = y + (high - own) / 2
            y += high + ABOVE
        self.heading = y - PAD if self._layers else PAD + LINE
        self.width = max((self._x[node] + self._wide(node) / 2 for node in self._x), default=0.0) + PAD
        self.height = y - ABOVE + PAD
        if self.apart:
            self._set_apart(max(self.width, WIDTH))

    def _set_apart(self, width: float) -> None:
        self.width = max(self.width, len(APART) * LETTER + 2 * PAD)
        x, y, high = float(PAD), self.heading + PAD, 0.0
        for at in self.apart:
            box = self._found[at]
            if x > PAD and x + box.width + PAD > width:
                x, y, high = float(PAD), y + high + BETWEEN, 0.0
            self._x[at,], self._y[at,] = x + box.width / 2, y
            self.width = max(self.width, x + box.width + PAD)
            x, high = x + box.width + BETWEEN, max(high, box.height)
        self.height = y + high + PAD

    def _wide(self, node: _Node) -> float:
        return self._found[node[0]].width if len(node) == 1 else 0.0


_Node = tuple[int, ...]
"""A box, (its index,); or a place on a line: (of the weaker box, of the stronger one, layer)."""


def _chain(at: int, other: int, ranks: Mapping[int, int]) -> list[_Node]:
    return [(at,), *((at, other, rank) for rank in range(ranks[at] + 1, ranks[other])), (other,)]


def _ranks(ties: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """The layer of each box: above all that are weaker; where none is, just below the lowest that is stronger."""
    ranks = dict.fromkeys(ties, 0)
    for at, others in ties.items():  # the weakest come first
        for other in others:
            ranks[other] = max(ranks[other], ranks[at] + 1)
    above = {other for others in ties.values() for other in others}
    for at, others in ties.items():
        if at not in above and others:
            ranks[at] = min(ranks[other] for other in others) - 1
    return ranks


def _draw(root: Xml.Element, box: Box, x: float, y: float) -> None:
    corner = {"x": f"{x - box.width / 2:.1f}", "y": f"{y:.1f}", "rx": "5"}
    Xml.SubElement(root, "rect", {**corner, "width": f"{box.width:.1f}", "height": f"{box.height:.1f}"})
    for number, line in enumerate(box.lines):
        style = "quiet" if number == len(box.names) else "strong"
        _text(root, x, y + PAD + LINE * number + 9, line, style, "middle")


def _text(root: Xml.Element, x: float, y: float, said: str, style: str, anchor: str) -> None:
    element = Xml.SubElement(root, "text", {"x": f"{x:.1f}", "y": f"{y:.1f}", "class": style, "text-anchor": anchor})
    element.text = clean(said)
