"""Results with hundreds of properties as grids. The name of such a property contains the name of its row and the name
of its column in a grid (:mod:`bob.catalogue.places`)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from bob.answer.answer import Answer
from bob.answer.result import SubjectResult
from bob.catalogue.places import Layout, place_of
from bob.claim.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid with answers for one configuration. ``layout`` is the whole grid with the names of all its rows and
    columns. ``down`` has the names of the rows with answers, and ``across`` has the names of the columns with answers.
    Both are in the order of the layout."""

    layout: Layout
    down: tuple[str, ...]
    across: tuple[str, ...]
    cells: Mapping[tuple[str, str], Answer]

    def rows(self) -> Iterator[tuple[str, list[Answer | None]]]:
        """Yield each row of the grid: the name of the row, and its cells. None stands for a cell whose property was not
        probed."""
        for down in self.down:
            yield down, [self.cells.get((down, across)) for across in self.across]


def grids(column: SubjectResult) -> list[Grid]:
    """Return the grids of a configuration. The grids are in the order of their first answers in ``column``."""
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
    """Return ``column`` without the answers that belong to grids, for a plain list of the other answers."""
    return replace(column, answers=tuple(cell for cell in column.answers if place_of(cell.name) is None))


def finishes(cell: Answer) -> str:
    """Return in words which finishes break the property of ``cell``. A finish is how a workload ends, such as with an
    fsync."""
    asked = {workload.finish for workload in cell.recordings}
    failing = dict.fromkeys(workload.finish for workload in cell.recordings if workload.verdict is Verdict.FAILS)
    if len(asked) > 1 and failing.keys() == asked:
        return "with every finish"
    return f"with {' | '.join(failing)}" if failing else ""
