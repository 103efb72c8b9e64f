"""The two sides of a comparison: a run or the published table, brought to one shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from bob.answer.answer import Answer
from bob.answer.result import Result, SubjectResult
from bob.claim.verdict import Verdict
from bob.errors import BobError, MalformedError, StoreError, UsageError, meant
from bob.report.published import OSDI14, Published, osdi14
from bob.report.rows import FAMILIES
from bob.report.saved import load_table
from bob.witness import document as witness
from bob.witness.traits import Traits, traits_of

T = TypeVar("T", SubjectResult, Answer)


class Said(StrEnum):
    """What a side says of a cell: a verdict, or that the published table is blank there."""

    FAILS = "fails"
    HOLDS = "holds"
    NOT_FOUND = "not found"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"

    @property
    def known(self) -> bool:
        """Whether it says anything about the file system."""
        return self not in (Said.UNKNOWN, Said.SKIPPED)


@dataclass(frozen=True, slots=True)
class SideAnswer:
    """One side's cell. ``cell`` has what a run tells besides; the published table tells nothing."""

    said: Said
    family: str
    cell: Answer | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """One side: its answers, by configuration and then by property.

    ``name`` is what the user called it. ``result`` is the run, None for the published table, ``source`` where that was
    published; ``folder`` is where the run's witnesses are. ``called`` says what the run calls a column that has another
    name here.
    """

    name: str
    columns: Mapping[str, Mapping[str, SideAnswer]]
    result: Result | None = None
    folder: Path = Path()
    source: str = ""
    called: Mapping[str, str] = field(default_factory=dict)

    @property
    def published(self) -> bool:
        """Whether it is the published table."""
        return self.result is None

    def shown(self, answer: SideAnswer) -> Traits | None:
        """What the witness of ``answer`` shows; None where there is none to read."""
        if answer.cell is None or answer.cell.witness is None:
            return None
        try:
            return traits_of(witness.read(self.folder / answer.cell.witness))
        except BobError:
            return None  # a comparison needs no witness, and a reason that cannot be checked is not told

    def unlike(self, name: str, answer: SideAnswer) -> frozenset[str]:
        """The configurations of which it says otherwise in the row ``name`` than ``answer``."""
        others = ((other, cells[name]) for other, cells in self.columns.items() if name in cells)
        return frozenset(other for other, said in others if said.said.known and said.said is not answer.said)


def named_side(name: str) -> Side:
    """The side that a user names: the published table, a run directory, or a result that --json wrote.

    Raises StoreError or MalformedError where there is no such, or it cannot be read.
    """
    if name == OSDI14:
        return published_side(osdi14())
    path = Path(name)
    if not path.exists():
        hint = f"a run directory, a result that --json wrote, or {OSDI14}"
        raise StoreError(f"there is no {name}", hint=hint)
    saved = load_table(path)
    return run_side(name, saved.result, saved.folder)


def run_side(name: str, result: Result, folder: Path) -> Side:
    """A run as a side; raises MalformedError where a configuration or a cell is there twice."""
    columns = {
        column.name: {cell: answer_of(found) for cell, found in _once(column.answers, f"{name}: {column.name}").items()}
        for column in _once(result.subjects, f"{name}: the result").values()
    }
    return Side(name, columns, result, folder)


def published_side(table: Published) -> Side:
    """The published table as a side: all its configurations, all thirteen rows."""
    columns = {
        configuration: {
            name: SideAnswer(Said.FAILS if configuration in table.fails[name] else Said.NOT_FOUND, family)
            for family, names in FAMILIES.items()
            for name in names
        }
        for configuration in table.configurations
    }
    return Side(OSDI14, columns, source=table.source)


def paired(a: Side, b: Side, pairs: Sequence[tuple[str, str]]) -> tuple[Side, Side]:
    """The two sides with these columns alone, each pair, A's and B's, under one name.

    Raises UsageError where a side has no such column.
    """
    for side, names in ((a, [old for old, _new in pairs]), (b, [new for _old, new in pairs])):
        for name in names:
            if name not in side.columns:
                raise UsageError(f"{side.name} has no {name!r}", hint=meant(name, side.columns, "it has"))
    named = [(old if old == new else f"{old} → {new}", old, new) for old, new in dict.fromkeys(pairs)]
    return (
        replace(a, columns={name: a.columns[old] for name, old, _new in named}, called={x: y for x, y, _ in named}),
        replace(b, columns={name: b.columns[new] for name, _old, new in named}, called={x: y for x, _, y in named}),
    )


def answer_of(cell: Answer) -> SideAnswer:
    """What a run says of a cell."""
    saids = {
        Verdict.FAILS: Said.FAILS,
        Verdict.HOLDS: Said.HOLDS,
        Verdict.UNKNOWN: Said.UNKNOWN,
        Verdict.SKIPPED: Said.SKIPPED,
    }
    return SideAnswer(saids[cell.verdict], cell.family, cell)


def _once(parts: Iterable[T], where: str) -> dict[str, T]:
    """``parts`` by name. One that hides another of the same name would make the comparison silently wrong."""
    found: dict[str, T] = {}
    for part in parts:
        if part.name in found:
            raise MalformedError(f"{where} has {part.name!r} twice", hint="which of them is to be compared?")
        found[part.name] = part
    return found
