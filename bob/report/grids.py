"""Results with hundreds of properties as grids. Two parts of a property's name say its row and its column in a grid
(:mod:`bob.catalogue.places`)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from bob.answer.answer import Answer
from bob.answer.result import SubjectResult
from bob.catalogue.places import Layout, place_of
from bob.claim.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid with answers for one configuration. ``down`` and ``across`` are the names of those rows and columns of the
    ``layout`` that have a cell, in the order of the layout."""

    layout: Layout
    down: tuple[str, ...]
    across: tuple[str, ...]
    cells: Mapping[tuple[str, str], Answer]

    def rows(self) -> Iterator[tuple[str, list[Answer | None]]]:
        """Yield each row of the grid: its name, and its cells. A cell is None if that property was not probed."""
        for down in self.down:
            yield down, [self.cells.get((down, across)) for across in self.across]


def grids(column: SubjectResult) -> list[Grid]:
    """Return the grids of a configuration, in the order of their first cells."""
    found: dict[Layout, dict[tuple[str, str], Answer]] = {}
    for cell in column.answers:
        if place := place_of(cell.name):
            found.setdefault(place.layout, {})[place.down, place.across] = cell
    return [
        Grid(
            layout,
            tuple(name for name in layout.down if any(down == name for down, _across in cells)),
            tuple(name for name in layout.across if any(across == name for _down, across in cells)),
            cells,
        )
        for layout, cells in found.items()
    ]


def listed(column: SubjectResult) -> SubjectResult:
    """Return ``column`` without the cells that grids show."""
    return replace(column, answers=tuple(cell for cell in column.answers if place_of(cell.name) is None))


def finishes(cell: Answer) -> str:
    """Return in words with which finishes the property of ``cell`` fails. A finish is the way in which a workload ends,
    such as with an fsync."""
    asked = {workload.finish for workload in cell.recordings}
    failing = dict.fromkeys(workload.finish for workload in cell.recordings if workload.verdict is Verdict.FAILS)
    if len(asked) > 1 and failing.keys() == asked:
        return "with every finish"
    return f"with {' | '.join(failing)}" if failing else ""
