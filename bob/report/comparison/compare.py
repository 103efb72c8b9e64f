"""The comparison of each cell of two tables (docs/formats.md). A table is the result of a run, or a published one (such
as Table 1 of the OSDI'14 paper on ALICE). In a comparison, the two tables are called sides. Side A is the older table,
or the user's standard. Side B is the newer table. A *cell* is the verdict (such as "holds" or "fails") on one property
of one configuration. A run's *witness* is a file about one crash state that breaks a property."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from bob.report.comparison.exploration import differences
from bob.report.comparison.sides import Said, Side, SideAnswer
from bob.report.comparison.vulnerabilities import apart
from bob.report.published import Difference, Direction, Reason, reason_for
from bob.report.rows import in_order


class Kind(StrEnum):
    """The kind of difference in a cell."""

    NEWLY_FAILS = "newly fails"  # B has a violation; A looked for one and saw none
    NO_LONGER_FAILS = "no longer fails"  # A has a violation; B looked for one and saw none
    UNDECIDED = "undecided"  # only one side has a verdict, and the other is unknown or skipped
    EXPLORED = "differently explored"  # both have the same verdict, see :mod:`bob.report.comparison.exploration`
    ONLY_A = "only in a"
    ONLY_B = "only in b"
    SAME = "same"


CHANGES = (Kind.NEWLY_FAILS, Kind.NO_LONGER_FAILS)  # both sides have a verdict, and the verdicts differ


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of the tables A and B: the answers ``a`` and ``b`` for one property of one configuration. None stands for
    the answer of a table that lacks the cell. ``family`` is the group of properties that ``name`` belongs to. ``notes``
    are phrases that say how the two runs differed in the crash states that they explored. If one table is the published
    table, ``reason`` says why the other table differs from it."""

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
        return any(answer is not None and answer.said is Said.UNKNOWN for answer in (self.a, self.b))


@dataclass(frozen=True, slots=True)
class Group:
    kind: Kind
    reason: Reason | None
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of the sides ``a`` and ``b``. ``configurations`` has the names of the configurations that both
    sides have, in the order of side A. ``cells`` has the cells of these configurations. For each configuration, the
    properties are in the order of OSDI'14's Table 1. ``only_a`` and ``only_b`` have the configurations that only one
    side has."""

    a: Side
    b: Side
    configurations: tuple[str, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    cells: tuple[Cell, ...]

    @property
    def with_published(self) -> bool:
        """Return whether exactly one side is the published table. In that case, bob looks for a known reason for each
        difference."""
        return self.a.published != self.b.published

    @property
    def by_place(self) -> dict[tuple[str, str], Cell]:
        """All cells. The key of a cell is a pair: the name of its configuration, and the name of its property."""
        return {(cell.configuration, cell.name): cell for cell in self.cells}

    @property
    def families(self) -> dict[str, list[str]]:
        """For each family (a group of properties), the names of its properties, in the order of ``cells``."""
        found: dict[str, dict[str, None]] = {}
        for cell in self.cells:
            found.setdefault(cell.family, {})[cell.name] = None
        return {family: list(names) for family, names in found.items()}

    def of(self, *kinds: Kind) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.cells if cell.kind in kinds)

    def answers(self, cell: Cell) -> Iterator[tuple[str, Side, SideAnswer]]:
        """Yield the answers of both sides to ``cell``, each with the letter of its side (A or B) and with the side
        itself. Leave out a side that lacks the cell."""
        for letter, side, answer in (("A", self.a, cell.a), ("B", self.b, cell.b)):
            if answer is not None:
                yield letter, side, answer

    @property
    def compared(self) -> int:
        return len(self.cells) - len(self.of(Kind.ONLY_A, Kind.ONLY_B))

    def differs(self, *, strict: bool = False) -> bool:
        """Return whether the sides have different verdicts for some cell. If ``strict`` is true, also return True for
        two further differences. The first is a cell that only one side has. The second is a cell that the sides
        explored differently (:mod:`bob.report.comparison.exploration`), although their verdicts are the same."""
        return bool(self.of(*CHANGES, *((Kind.EXPLORED, Kind.ONLY_A, Kind.ONLY_B) if strict else ())))

    @property
    def is_undecided(self) -> bool:
        """Return whether, for some cell that both sides have, one side lacks a verdict or has the verdict "unknown"."""
        compared = (cell for cell in self.cells if cell.kind not in (Kind.ONLY_A, Kind.ONLY_B))
        return any(cell.kind is Kind.UNDECIDED or cell.unknown for cell in compared)

    def groups(self) -> Iterator[Group]:
        """Yield the differing cells, grouped by kind of difference and reason. In each kind, cells with a reason that
        explains the difference come first. Then come cells with a *background* reason. Such a reason only says that the
        configuration's code has been replaced since the published table. It does not say which change makes the
        difference. Cells without a reason come last."""
        for kind in (*CHANGES, Kind.UNDECIDED, Kind.EXPLORED):
            reasons: dict[Reason | None, list[Cell]] = {}
            for cell in self.of(kind):
                reasons.setdefault(cell.reason, []).append(cell)
            for reason in sorted(reasons, key=lambda reason: 2 if reason is None else int(reason.background)):
                yield Group(kind, reason, tuple(reasons[reason]))


def compare(a: Side, b: Side, reasons: Sequence[Reason] = ()) -> Comparison:
    """Return the comparison of ``a``, the old side, with ``b``, the new side. If exactly one side is the published
    table, bob looks in ``reasons`` for the reason of each difference. Some reasons say why the run breaks a property.
    Such a reason counts only if it fits the violation that the run's witness shows. If both sides are runs of a
    program, compare its vulnerabilities one by one."""
    a, b = apart(a, b)
    shared = tuple(name for name in a.columns if name in b.columns)
    cells = (
        _cell(configuration, name, a.columns[configuration].get(name), b.columns[configuration].get(name))
        for configuration in shared
        for name in in_order([*a.columns[configuration], *b.columns[configuration]])
    )
    if a.published != b.published:
        run = b if a.published else a
        cells = (replace(cell, reason=_reason(reasons, run, cell)) if cell.kind in CHANGES else cell for cell in cells)
    return Comparison(
        a,
        b,
        shared,
        only_a=tuple(name for name in a.columns if name not in b.columns),
        only_b=tuple(name for name in b.columns if name not in a.columns),
        cells=tuple(cells),
    )


def kind_of(a: SideAnswer | None, b: SideAnswer | None) -> Kind:
    """Return the kind of difference between two answers. At most one of the answers may be None."""
    if a is None:
        return Kind.ONLY_B
    if b is None:
        return Kind.ONLY_A
    if not (a.said.known and b.said.known):
        return Kind.SAME if a.said is b.said else Kind.UNDECIDED
    if (a.said is Said.FAILS) != (b.said is Said.FAILS):
        return Kind.NEWLY_FAILS if b.said is Said.FAILS else Kind.NO_LONGER_FAILS
    return Kind.EXPLORED if _notes(a, b) else Kind.SAME


def _cell(configuration: str, name: str, a: SideAnswer | None, b: SideAnswer | None) -> Cell:
    answer = b or a
    assert answer is not None
    kind = kind_of(a, b)
    notes = _notes(a, b) if a is not None and b is not None and kind is Kind.EXPLORED else ()
    return Cell(configuration, name, answer.family, kind, a, b, notes)


def _reason(known: Sequence[Reason], run: Side, cell: Cell) -> Reason | None:
    """Return the known reason why ``cell`` of ``run`` differs from the published table."""
    answer = run.columns[cell.configuration][cell.name]
    if answer.said is Said.FAILS:
        found = Difference(cell.configuration, cell.name, Direction.FOUND, run.shown(answer))
    else:
        unlike = run.unlike(cell.name, answer)
        found = Difference(cell.configuration, cell.name, Direction.NOT_FOUND, unlike=unlike)
    return reason_for(known, found)


def _notes(a: SideAnswer, b: SideAnswer) -> tuple[str, ...]:
    return tuple(differences(a.cell, b.cell)) if a.cell is not None and b.cell is not None else ()
