"""A comparison as a page that stands alone: the grid in colour, and behind each changed cell what both sides say."""

from __future__ import annotations

from dataclasses import dataclass

from bob.report.comparison.compare import Cell, Comparison, Group, Kind
from bob.report.comparison.page import facts, headings, title
from bob.report.comparison.sides import Side, SideAnswer
from bob.report.comparison.words import NOT_EXPLAINED, command, counts, evidence, legend, mark, names, says
from bob.report.templating import html
from bob.version import __version__

_TONES = {
    Kind.NEWLY_FAILS: "fails",
    Kind.NO_LONGER_FAILS: "holds",
    Kind.UNDECIDED: "unknown",
    Kind.EXPLORED: "skipped",
}
"""The classes of page.css in which cells of a kind are shown; the others have no colour."""


@dataclass(frozen=True, slots=True)
class ShownMark:
    """A cell in the grid: its mark, and where it differs the ``anchor`` of what is told of it."""

    mark: str
    tone: str
    words: str
    anchor: str


@dataclass(frozen=True, slots=True)
class ShownSaying:
    """What one side says of a cell."""

    side: str
    says: str
    evidence: str | None
    command: str | None


@dataclass(frozen=True, slots=True)
class ShownDifference:
    """A cell that differs, with what is told of it."""

    cell: Cell
    mark: ShownMark
    sayings: tuple[ShownSaying, ...]


@dataclass(frozen=True, slots=True)
class ShownGroup:
    """Differences of one kind with one reason."""

    title: str
    because: str
    differences: tuple[ShownDifference, ...]


def html_page(comparison: Comparison, home: str = "") -> str:
    """The page. Its commands are to be run in the directory that it was written from. It links to ``home``, if any."""
    cells = {(cell.configuration, cell.name): cell for cell in comparison.cells}
    anchors = {key: f"cell-{number}" for number, key in enumerate(cells, start=1)}
    marks = {key: _mark(cell, anchors[key]) for key, cell in cells.items()}
    families: dict[str, dict[str, None]] = {}
    for cell in comparison.cells:
        families.setdefault(cell.family, {})[cell.name] = None
    words = headings(comparison)
    kinds: dict[str, list[ShownGroup]] = {}
    for group in comparison.groups():
        kinds.setdefault(words[group.kind], []).append(_group(comparison, group, marks))
    alone = [(side.name, names(only)) for side, only in _sides(comparison) if only]
    return (
        html()
        .get_template("comparison.html.j2")
        .render(
            bob=__version__,
            home=home,
            title=title(comparison),
            comparison=comparison,
            counts=counts(comparison),
            families={family: tuple(found) for family, found in families.items()},
            marks=marks,
            legend=tuple(legend(comparison)),
            kinds=kinds,
            facts=[(side.name, facts(side) or {"published": side.source}) for side in (comparison.a, comparison.b)],
            alone=alone,
        )
    )


def _sides(comparison: Comparison) -> tuple[tuple[Side, tuple[str, ...]], ...]:
    return (comparison.a, comparison.only_a), (comparison.b, comparison.only_b)


def _mark(cell: Cell, anchor: str) -> ShownMark:
    words = f"{cell.name} on {cell.configuration}: {cell.kind.value}"
    return ShownMark(mark(cell), _TONES.get(cell.kind, ""), words, anchor if cell.kind in _TONES else "")


def _group(comparison: Comparison, group: Group, marks: dict[tuple[str, str], ShownMark]) -> ShownGroup:
    differences = tuple(
        ShownDifference(cell, marks[cell.configuration, cell.name], _sayings(comparison, cell)) for cell in group.cells
    )
    if group.reason is not None:
        return ShownGroup(group.reason.title, group.reason.sentences, differences)
    is_open = comparison.with_published and group.kind in (Kind.NEWLY_FAILS, Kind.NO_LONGER_FAILS)
    return ShownGroup(NOT_EXPLAINED.rstrip(".") if is_open else "", "", differences)


def _sayings(comparison: Comparison, cell: Cell) -> tuple[ShownSaying, ...]:
    both = (("A", comparison.a, cell.a), ("B", comparison.b, cell.b))
    return tuple(_saying(label, side, answer) for label, side, answer in both if answer is not None)


def _saying(label: str, side: Side, answer: SideAnswer) -> ShownSaying:
    return ShownSaying(f"{label}, {side.name}", says(answer), evidence(answer), command(side, answer))
