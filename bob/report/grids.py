"""Results with hundreds of rows, as grids: what is down, and what is across (:mod:`bob.catalogue.places`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from bob.answer.answer import Answer
from bob.answer.result import SubjectResult
from bob.catalogue.places import Layout, place_of
from bob.claim.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Grid:
    """The cells of one configuration that stand in one grid, by what is down and across. ``down`` and ``across`` are
    those with a cell, in the order of the layout."""

    layout: Layout
    down: tuple[str, ...]
    across: tuple[str, ...]
    cells: Mapping[tuple[str, str], Answer]

    def rows(self) -> Iterator[tuple[str, list[Answer | None]]]:
        """What is down, each with its cells; None where nothing was asked."""
        for down in self.down:
            yield down, [self.cells.get((down, across)) for across in self.across]


def grids(column: SubjectResult) -> list[Grid]:
    """The grids of a configuration, in the order of their first cells."""
    found: dict[str, tuple[Layout, dict[tuple[str, str], Answer]]] = {}
    for cell in column.answers:
        if place := place_of(cell.name):
            _layout, cells = found.setdefault(place.layout.name, (place.layout, {}))
            cells[place.down, place.across] = cell
    return [
        Grid(
            layout,
            tuple(name for name in layout.down if any(down == name for down, _across in cells)),
            tuple(name for name in layout.across if any(across == name for _down, across in cells)),
            cells,
        )
        for layout, cells in found.values()
    ]


def listed(column: SubjectResult) -> SubjectResult:
    """``column`` with those of its cells that are in no grid."""
    return replace(column, answers=tuple(cell for cell in column.answers if place_of(cell.name) is None))


def finishes(cell: Answer) -> str:
    """With which finishes the workloads of a cell fail, in words."""
    asked = dict.fromkeys(workload.finish for workload in cell.recordings)
    failing = dict.fromkeys(workload.finish for workload in cell.recordings if workload.verdict is Verdict.FAILS)
    if len(asked) > 1 and failing.keys() == asked.keys():
        return "with every finish"
    return f"with {' | '.join(failing)}" if failing else ""
