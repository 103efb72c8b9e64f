"""The rows of the table: their order, their titles and meanings, and the marks in their cells. A row is a property, and
a cell has one configuration's answer for it. The properties are grouped into *families*."""

import tomllib
from collections.abc import Iterable, Sequence
from contextlib import suppress

from bob.answer.answer import Answer
from bob.answer.result import SubjectResult
from bob.claim.idempotence import IDEMPOTENT
from bob.claim.verdict import Verdict
from bob.report.columns import ShownColumn
from bob.resources import shipped

FAMILIES = {
    "atomicity": {
        "single-sector-overwrite": "Single sector overwrite",
        "single-sector-append": "Single sector append",
        "single-block-overwrite": "Single block overwrite",
        "single-block-append": "Single block append",
        "multi-block-append": "Multi-block append/writes",
        "multi-block-prefix-append": "Multi-block prefix append",
        "directory-op": "Directory op",
    },
    "ordering": {
        "overwrite-any": "Overwrite → Any op",
        "append-rename-any": "[Append, rename] → Any op",
        "trunc-append-any": "O_TRUNC Append → Any op",
        "append-append-same-file": "Append → Append (same file)",
        "append-any": "Append → Any op",
        "directory-op-any": "Dir op → Any op",
    },
}  # for each family its rows, in the order of Table 1 (docs/design.md, section 4), with the paper's titles
TITLES = {name: title for titles in FAMILIES.values() for name, title in titles.items()}

MARKS = {Verdict.FAILS: "×", Verdict.HOLDS: "holds", Verdict.UNKNOWN: "?", Verdict.SKIPPED: "–"}
# Grids have sixteen columns, too many for a word in each cell; a legend explains the mark.
MARKS_IN_GRID = {**MARKS, Verdict.HOLDS: "·"}

_ORDER = {name: row for row, name in enumerate(TITLES)}


def in_order(names: Iterable[str]) -> list[str]:
    """Return ``names`` without repetition. The properties of Table 1 of OSDI'14 come first, in the order of that table.
    Other properties follow in the order of ``names``."""
    return sorted(dict.fromkeys(names), key=lambda name: _ORDER.get(name, len(_ORDER)))


def by_family(columns: Iterable[SubjectResult]) -> dict[str, list[str]]:
    """Return the properties that occur in ``columns``, by family, in the order of the table."""
    found: dict[str, list[str]] = {family: [] for family in FAMILIES}
    for column in columns:
        for cell in column.answers:
            found.setdefault(cell.family, []).append(cell.name)
    return {family: in_order(names) for family, names in found.items() if names}


def families_of(columns: Sequence[ShownColumn]) -> list[tuple[str, list[tuple[str, list[Answer | None]]]]]:
    """Return the families of properties. Each comes with its properties, and each property with its cells, one for each
    of ``columns``. None stands for a cell whose property was not probed."""
    configurations = [column.configuration for column in columns]
    known = [{cell.name: cell for cell in one.answers} for one in configurations]
    return [
        (family, [(name, [cells.get(name) for cells in known]) for name in names])
        for family, names in by_family(configurations).items()
    ]


def style(verdict: Verdict) -> str:
    """Return the name of the style of a verdict. Only bob.cli knows the colour of a style."""
    return f"bob.{verdict.value}"


def cells(column: SubjectResult) -> dict[str, Answer]:
    """Return the cells of a column in the order of the rows. A cell is the answer for one property; its key is the name
    of the property."""
    known = {cell.name: cell for cell in column.answers}
    return {name: known[name] for names in by_family([column]).values() for name in names}


def title(name: str) -> str:
    """Return the title of the property ``name`` in the ALICE paper (OSDI'14). Return ``name`` itself if the paper does
    not have the property."""
    return TITLES.get(name, name)


def meanings(columns: Iterable[SubjectResult] = ()) -> dict[str, str]:
    """Return the meaning of each property in words, by the name of the property. The properties are those of
    ``columns``, and all properties of the probe files that bob ships (TOML files that describe properties).
    Leave out a property whose file cannot be read."""
    found = {IDEMPOTENT.name: IDEMPOTENT.meaning}
    for path in sorted(shipped("probes").glob("*.toml")):
        with suppress(OSError, ValueError):
            probe = tomllib.loads(path.read_text())
            found[str(probe.get("name"))] = str(probe.get("meaning", ""))
    found |= {cell.name: cell.meaning for column in columns for cell in column.answers if cell.meaning}
    return {name: meaning for name, meaning in found.items() if meaning}
