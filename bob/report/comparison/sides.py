"""The two sides of a comparison. A side is a run of bob or a published table. A *cell* is the answer for one property
of one configuration. Both kinds of side have the same form here."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from bob.answer.answer import Answer
from bob.answer.result import Result, SubjectResult
from bob.errors import BobError, MalformedError, StoreError, UsageError, meant
from bob.report.published import PUBLISHED, Published, Reason, published, reasons_of
from bob.report.saved import load_answered
from bob.witness import document as witness
from bob.witness.traits import Traits, traits_of

T = TypeVar("T", SubjectResult, Answer)


class Said(StrEnum):
    """The answer of a side for a cell: a verdict, or ``NOT_FOUND`` for a blank in a published table."""

    FAILS = "fails"
    HOLDS = "holds"
    NOT_FOUND = "not found"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"

    @property
    def known(self) -> bool:
        return self not in (Said.UNKNOWN, Said.SKIPPED)


@dataclass(frozen=True, slots=True)
class SideAnswer:
    """The answer of one side for a cell (one property of one configuration). ``cell`` is the full answer if the side is
    a run, or None if the side is a published table. ``said`` is the answer in one word."""

    said: Said
    family: str
    cell: Answer | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: its answers, by configuration and then by property. ``name`` is the name that the user
    gave. A published table lacks a ``result``; its ``source`` is the paper, and its ``title`` names the table. If the
    side is a run, ``folder`` has its witnesses (recorded crashes that break a property). If a comparison renames
    configurations, ``called`` maps their new names to their names in the run."""

    name: str
    columns: Mapping[str, Mapping[str, SideAnswer]]
    result: Result | None = None
    folder: Path = Path()
    source: str = ""
    title: str = ""
    called: Mapping[str, str] = field(default_factory=dict)

    @property
    def published(self) -> bool:
        return self.result is None

    @property
    def is_of_program(self) -> bool:
        return self.result is not None and self.result.program is not None

    def shown(self, answer: SideAnswer) -> Traits | None:
        """Return the traits (words that say how the property is broken) of the violation that the witness of ``answer``
        shows. Return None if ``answer`` lacks a witness, if bob cannot read the witness, or if it does not show a
        violation."""
        if answer.cell is None or answer.cell.witness is None:
            return None
        try:
            return traits_of(witness.read(self.folder / answer.cell.witness))
        except BobError:
            # A comparison does not need the witness, and bob does not show a reason that it could not check.
            return None

    def unlike(self, name: str, answer: SideAnswer) -> frozenset[str]:
        """Return the configurations of this side whose verdict for the property ``name`` is known, and differs from
        that of ``answer``."""
        others = ((other, cells[name]) for other, cells in self.columns.items() if name in cells)
        return frozenset(other for other, said in others if said.said.known and said.said is not answer.said)


def named_side(name: str) -> Side:
    """Return the side that a user names: a published table, a run directory, or a result that --json wrote. Raise
    StoreError or MalformedError if bob cannot read it."""
    if name in PUBLISHED:
        return published_side(published(name))
    path = Path(name)
    if not path.exists():
        hint = f"name a run directory, a result that --json wrote, {' or '.join(PUBLISHED)}"
        raise StoreError(f"{name} does not exist", hint=hint)
    saved = load_answered(path)
    return run_side(name, saved.result, saved.folder)


def run_side(name: str, result: Result, folder: Path) -> Side:
    """Return a run as a side of a comparison. Raise MalformedError if it has a configuration or a cell twice."""
    columns = {
        title: {cell: answer_of(found) for cell, found in _once(column.answers, f"{name}: {title}").items()}
        for title, column in _once(result.subjects, f"{name}: the result").items()
    }
    return Side(name, columns, result, folder)


def published_side(table: Published) -> Side:
    """Return a published table as a side of a comparison, with all its configurations and properties."""
    columns = {
        configuration: {
            name: SideAnswer(Said.FAILS if configuration in table.fails[name] else Said.NOT_FOUND, family)
            for family, names in table.families.items()
            for name in names
            if table.asks(configuration, name)
        }
        for configuration in table.configurations
    }
    return Side(table.name, columns, source=table.source, title=table.title)


def known_reasons(*sides: Side) -> tuple[Reason, ...]:
    """Return the known reasons why a run differs from the first published table among ``sides``. Return an empty tuple
    if no side is a published table."""
    return next((reasons_of(side.name) for side in sides if side.published), ())


def paired(a: Side, b: Side, pairs: Sequence[tuple[str, str]]) -> tuple[Side, Side]:
    """Return both sides with only the configurations in ``pairs``. A pair has the name of a configuration of ``a`` and
    the name of one of ``b``. In the returned sides, both configurations have the same new name. Raise UsageError if
    ``a`` or ``b`` does not have a configuration that a pair names."""
    for side, names in ((a, [old for old, _new in pairs]), (b, [new for _old, new in pairs])):
        for name in names:
            if name not in side.columns:
                raise UsageError(f"{side.name} lacks {name!r}", hint=meant(name, side.columns, "it has"))
    named = [(old if old == new else f"{old} → {new}", old, new) for old, new in dict.fromkeys(pairs)]
    return (
        replace(a, columns={name: a.columns[old] for name, old, _new in named}, called={x: y for x, y, _ in named}),
        replace(b, columns={name: b.columns[new] for name, _old, new in named}, called={x: y for x, _, y in named}),
    )


def answer_of(cell: Answer) -> SideAnswer:
    return SideAnswer(Said(cell.verdict.value), cell.family, cell)


def _once(parts: Iterable[T], where: str) -> dict[str, T]:
    """Return ``parts`` by their titles. Raise MalformedError if two parts have the same title, since one would hide the
    other."""
    found: dict[str, T] = {}
    for part in parts:
        if part.title in found:
            raise MalformedError(f"{where} has {part.title!r} twice", hint="keep only one of them")
        found[part.title] = part
    return found
