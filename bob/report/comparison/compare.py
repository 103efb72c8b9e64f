"""The comparison itself: each cell of two tables, and what kind of difference there is.

A is the old side or the reference, B the new one. What counts as a difference is in docs/formats.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from bob.report.comparison.exploration import differences
from bob.report.comparison.sides import Said, Side, SideAnswer
from bob.report.published import Difference, Direction, Reason, reason_for
from bob.report.rows import FAMILIES


class Kind(StrEnum):
    """What a comparison says of a cell."""

    NEWLY_FAILS = "newly fails"
    """B has a violation, A looked and has none."""
    NO_LONGER_FAILS = "no longer fails"
    """A has a violation, B looked and has none."""
    UNDECIDED = "undecided"
    """One side has a verdict and the other has none (unknown or skipped), so it is unknown whether they differ."""
    EXPLORED = "differently explored"
    """The same verdict, but reached in another way: see :mod:`bob.report.comparison.exploration`."""
    ONLY_A = "only in a"
    ONLY_B = "only in b"
    SAME = "same"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of both: ``name`` is the property. An answer is None where that side has no such cell.

    ``notes`` say how it was differently explored. ``reason`` is why it differs from the published table, where one of
    the two sides is that table and the reason is known.
    """

    configuration: str
    name: str
    family: str
    kind: Kind
    a: SideAnswer | None
    b: SideAnswer | None
    notes: tuple[str, ...] = ()
    reason: Reason | None = None

    @property
    def unknown(self) -> bool:
        """Whether the guest of either side did not say; it may do so when asked again."""
        return any(answer is not None and answer.said is Said.UNKNOWN for answer in (self.a, self.b))


@dataclass(frozen=True, slots=True)
class Group:
    """Cells of one kind that have one reason, or none."""

    kind: Kind
    reason: Reason | None
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides, cell by cell.

    ``cells`` are those of ``configurations``, which both sides have: column by column in A's order, in each the rows
    in the order of Table 1. ``only_a`` and ``only_b`` are configurations that the other side does not have.
    """

    a: Side
    b: Side
    configurations: tuple[str, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    cells: tuple[Cell, ...]

    @property
    def with_published(self) -> bool:
        """Whether one side is the published table, so that a difference asks for a reason."""
        return self.a.published != self.b.published

    def of(self, *kinds: Kind) -> tuple[Cell, ...]:
        """The cells of these kinds."""
        return tuple(cell for cell in self.cells if cell.kind in kinds)

    @property
    def compared(self) -> int:
        """How many cells both sides have."""
        return len(self.cells) - len(self.of(Kind.ONLY_A, Kind.ONLY_B))

    def differs(self, *, strict: bool = False) -> bool:
        """Whether some verdict differs; ``strict``: or was reached otherwise, or is there on one side only."""
        kinds = (Kind.NEWLY_FAILS, Kind.NO_LONGER_FAILS)
        return bool(self.of(*kinds, *((Kind.EXPLORED, Kind.ONLY_A, Kind.ONLY_B) if strict else ())))

    @property
    def is_undecided(self) -> bool:
        """Whether in some cell it cannot be said if they differ: one side has no verdict, or neither knows it."""
        compared = (cell for cell in self.cells if cell.kind not in (Kind.ONLY_A, Kind.ONLY_B))
        return any(cell.kind is Kind.UNDECIDED or cell.unknown for cell in compared)

    def groups(self) -> Iterator[Group]:
        """What differs, kind by kind; in each kind those with the same reason together, the unexplained last."""
        for kind in (Kind.NEWLY_FAILS, Kind.NO_LONGER_FAILS, Kind.UNDECIDED, Kind.EXPLORED):
            reasons: dict[Reason | None, list[Cell]] = {}
            for cell in self.of(kind):
                reasons.setdefault(cell.reason, []).append(cell)
            # Explanations of a cell, then those of a whole configuration, then none.
            for reason in sorted(reasons, key=lambda reason: 2 if reason is None else int(reason.background)):
                yield Group(kind, reason, tuple(reasons[reason]))


def compare(a: Side, b: Side, reasons: Sequence[Reason] = ()) -> Comparison:
    """Compare ``a``, the old side or the reference, with ``b``, the new one.

    ``reasons`` are looked up where exactly one of the sides is the published table. The witnesses of the other one are
    read, since a reason is told only where they fit it.
    """
    shared = tuple(name for name in a.columns if name in b.columns)
    known = _Reasons(reasons, b if a.published else a) if a.published != b.published else None
    return Comparison(
        a,
        b,
        shared,
        only_a=tuple(name for name in a.columns if name not in b.columns),
        only_b=tuple(name for name in b.columns if name not in a.columns),
        cells=tuple(
            _cell(configuration, name, a.columns[configuration].get(name), b.columns[configuration].get(name), known)
            for configuration in shared
            for name in _rows([*a.columns[configuration], *b.columns[configuration]])
        ),
    )


def kind_of(a: SideAnswer | None, b: SideAnswer | None) -> Kind:
    """What kind of difference there is between two answers, at least one of which is there."""
    if a is None:
        return Kind.ONLY_B
    if b is None:
        return Kind.ONLY_A
    if not (a.said.known and b.said.known):
        return Kind.SAME if a.said is b.said else Kind.UNDECIDED
    if (a.said is Said.FAILS) != (b.said is Said.FAILS):
        return Kind.NEWLY_FAILS if b.said is Said.FAILS else Kind.NO_LONGER_FAILS
    return Kind.EXPLORED if _notes(a, b) else Kind.SAME


@dataclass(frozen=True, slots=True)
class _Reasons:
    """Why cells of ``run`` differ from the published table, which is the other side."""

    known: Sequence[Reason]
    run: Side

    def of(self, configuration: str, name: str, answer: SideAnswer) -> Reason | None:
        """Why ``answer``, which is the run's, differs."""
        if answer.said is Said.FAILS:
            found = Difference(configuration, name, Direction.FOUND, self.run.shown(answer))
        else:
            unlike = self.run.unlike(name, answer)
            found = Difference(configuration, name, Direction.NOT_FOUND, unlike=unlike)
        return reason_for(self.known, found)


def _cell(configuration: str, name: str, a: SideAnswer | None, b: SideAnswer | None, reasons: _Reasons | None) -> Cell:
    answer = b or a
    assert answer is not None
    kind = kind_of(a, b)
    reason = None
    if reasons is not None and kind in (Kind.NEWLY_FAILS, Kind.NO_LONGER_FAILS):
        # A reason speaks of the run as seen from the published table, whichever side that is.
        own = next(side for side in (a, b) if side is not None and side.cell is not None)
        reason = reasons.of(configuration, name, own)
    notes = _notes(a, b) if a is not None and b is not None and kind is Kind.EXPLORED else ()
    return Cell(configuration, name, answer.family, kind, a, b, notes, reason)


def _notes(a: SideAnswer, b: SideAnswer) -> tuple[str, ...]:
    return differences(a.cell, b.cell) if a.cell is not None and b.cell is not None else ()


def _rows(names: Sequence[str]) -> list[str]:
    """``names`` once each: those of Table 1 in its order, then others as they come."""
    order = {name: row for row, name in enumerate(name for names in FAMILIES.values() for name in names)}
    return sorted(dict.fromkeys(names), key=lambda name: order.get(name, len(order)))
