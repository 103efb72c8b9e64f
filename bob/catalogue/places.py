"""The place of a property in a grid. Some tables have a property for each pair of two things, such as two kinds of
changes (:mod:`bob.catalogue.finer_rows`). bob shows the results of such a table as grids. The place of a property is
its row and its column in one of the grids."""

from dataclasses import dataclass
from enum import StrEnum

from bob.claim.property.vocabulary import Call, Unit, What
from bob.workload.kinds import ChangeKind, Relation


@dataclass(frozen=True, slots=True)
class Layout:
    """A grid of properties: the names of its rows (``down``) and columns (``across``) in order. ``asks`` is the
    question that each cell answers."""

    name: str
    asks: str
    down: tuple[str, ...]
    across: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GridPlace:
    layout: Layout
    down: str
    across: str


def _layout(name: str, asks: str, down: type[StrEnum], across: type[StrEnum]) -> Layout:
    return Layout(name, asks, tuple(map(str, down)), tuple(map(str, across)))


_PAIRS = {
    relation: _layout(
        f"ordering, {words}",
        "is the kind of change on the left persisted before a later one of the kind above?",
        ChangeKind,
        ChangeKind,
    )
    for relation, words in {
        Relation.SAME_FILE: "on the same file",
        Relation.SAME_DIRECTORY: "in the same directory",
        Relation.OTHER_DIRECTORY: "in another directory",
    }.items()
}
_DURABILITY = _layout(
    "durability", "is the kind of change above durable when the call on the left has returned?", Call, What
)
_UNITS = _layout("units", "is the kind of change on the left whole, up to the unit above?", ChangeKind, Unit)


def place_of(name: str) -> GridPlace | None:
    one, _dot, other = name.partition(".")
    first, _then, later = one.partition("-then-")
    if other in _PAIRS:
        layout, down, across = _PAIRS[Relation(other)], first, later
    else:
        layout, down, across = (_DURABILITY if one in _DURABILITY.down else _UNITS), one, other
    return GridPlace(layout, down, across) if down in layout.down and across in layout.across else None
