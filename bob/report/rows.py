"""The rows of the table, and the marks in its cells."""

from __future__ import annotations

from collections.abc import Iterable

from bob.answer.answer import Answer
from bob.answer.result import SubjectResult
from bob.claim.verdict import Verdict

FAMILIES = {
    "atomicity": (
        "single-sector-overwrite",
        "single-sector-append",
        "single-block-overwrite",
        "single-block-append",
        "multi-block-append",
        "multi-block-prefix-append",
        "directory-op",
    ),
    "ordering": (
        "overwrite-any",
        "append-rename-any",
        "trunc-append-any",
        "append-append-same-file",
        "append-any",
        "directory-op-any",
    ),
}
"""The two families of persistence properties, and their rows in the order of Table 1 (docs/design.md, section 4)."""

TITLES = {
    "single-sector-overwrite": "Single sector overwrite",
    "single-sector-append": "Single sector append",
    "single-block-overwrite": "Single block overwrite",
    "single-block-append": "Single block append",
    "multi-block-append": "Multi-block append/writes",
    "multi-block-prefix-append": "Multi-block prefix append",
    "directory-op": "Directory op",
    "overwrite-any": "Overwrite → Any op",
    "append-rename-any": "[Append, rename] → Any op",
    "trunc-append-any": "O_TRUNC Append → Any op",
    "append-append-same-file": "Append → Append (same file)",
    "append-any": "Append → Any op",
    "directory-op-any": "Dir op → Any op",
}
"""The rows as the paper words them; X → Y says that X is persisted before Y."""

MARKS = {Verdict.FAILS: "×", Verdict.HOLDS: "holds", Verdict.UNKNOWN: "?", Verdict.SKIPPED: "–"}
"""What stands in a cell."""

_ORDER = {name: row for row, name in enumerate(name for names in FAMILIES.values() for name in names)}


def by_family(columns: Iterable[SubjectResult]) -> dict[str, list[str]]:
    """The properties in ``columns``, family by family: those of Table 1 in its order, then others as they come."""
    found: dict[str, dict[str, None]] = {family: {} for family in FAMILIES}
    for column in columns:
        for cell in column.answers:
            found.setdefault(cell.family, {})[cell.name] = None
    last = len(_ORDER)
    rows = {family: sorted(names, key=lambda name: _ORDER.get(name, last)) for family, names in found.items()}
    return {family: names for family, names in rows.items() if names}


def style(verdict: Verdict) -> str:
    """The name of a verdict's style; which colour that is, only bob.cli knows."""
    return f"bob.{verdict.value}"


def cells(column: SubjectResult) -> dict[str, Answer]:
    """The cells of a column by the property's name, in the order of the rows."""
    known = {cell.name: cell for cell in column.answers}
    return {name: known[name] for names in by_family([column]).values() for name in names}


def title(name: str) -> str:
    """A property in the paper's words; one that is not the paper's goes by its own name."""
    return TITLES.get(name, name)
