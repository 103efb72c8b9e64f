"""The table of all results: a row for each configuration of each reference, and what changed between kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bob.claim.verdict import Verdict
from bob.report.comparison.compare import Kind, kind_of
from bob.report.comparison.sides import answer_of
from bob.report.page import PageCell, PageColumn
from bob.report.rows import by_family, meanings
from bob.report.shown_way import INDEX
from bob.site.results import RESULTS, Reference, short, version

FIRST = ("ext4", "xfs", "btrfs")  # the most common file systems


@dataclass(frozen=True, slots=True)
class ResultCell:
    """A cell: its verdict, and the address of its evidence."""

    name: str
    mark: str
    verdict: Verdict
    link: str
    summary: str


@dataclass(frozen=True, slots=True)
class ResultRow:
    """A configuration of a reference; a cell is None if the property was not probed."""

    fs: str
    variant: str
    options: str
    kernel: str
    reference: str
    link: str
    cells: tuple[ResultCell | None, ...]

    @property
    def version(self) -> str:
        return short(self.kernel)

    @property
    def label(self) -> str:
        return f"{self.fs} {self.variant}".strip()

    @property
    def remarks(self) -> str:
        """Options of mkfs, and the purpose of the measurement."""
        measured = self.reference.partition("-linux-")[0]
        return f"{self.options}, {measured}" if self.options.startswith("mkfs") else measured


@dataclass(frozen=True, slots=True)
class CellChange:
    """A cell of one configuration that differs between two kernels, or between two measurements on one."""

    name: str
    label: str
    kind: Kind
    before: ResultCell
    after: ResultCell
    kernels: tuple[str, str]
    references: tuple[str, str]


@dataclass(frozen=True, slots=True)
class ResultsTable:
    """All results. ``families`` has the properties in the order of the cells; ``steps`` are pairs of kernels with the
    number of cells compared and those that changed; ``doubts`` differ between measurements on one kernel."""

    rows: tuple[ResultRow, ...]
    families: dict[str, list[str]]
    meanings: dict[str, str]
    steps: tuple[tuple[str, str, int, tuple[CellChange, ...]], ...]
    doubts: tuple[CellChange, ...]

    @property
    def kernels(self) -> list[str]:
        """The kernels' versions, oldest first."""
        return list(dict.fromkeys(short(kernel) for kernel in sorted({row.kernel for row in self.rows}, key=version)))

    @property
    def file_systems(self) -> list[str]:
        return list(dict.fromkeys(row.fs for row in self.rows))

    @property
    def references(self) -> list[str]:
        return sorted({row.reference for row in self.rows})

    @property
    def properties(self) -> list[str]:
        return [name for names in self.families.values() for name in names]

    def count(self, verdict: Verdict) -> int:
        return sum(cell is not None and cell.verdict is verdict for row in self.rows for cell in row.cells)


def results_table(references: Sequence[Reference]) -> ResultsTable:
    """Return the table of ``references`` without finer tables, whose rows are hundreds."""
    every = [(reference, shown) for reference in references for shown in reference.shown if not is_finer(shown)]
    families = by_family(shown.configuration for _reference, shown in every)
    names = [name for family in families.values() for name in family]
    rows = sorted((_row(reference, shown, names) for reference, shown in every), key=_order)
    asked = meanings(shown.configuration for _reference, shown in every)
    steps, doubts = _compared(every)
    return ResultsTable(tuple(rows), families, {name: asked.get(name, "") for name in names}, steps, doubts)


def order_of(fs: str) -> tuple[int, str]:
    """Return the sort key of a file system: common ones first."""
    return (FIRST.index(fs) if fs in FIRST else len(FIRST), fs)


def options_of(shown: PageColumn) -> str:
    """Return the options of mkfs and mount for people."""
    found = shown.configuration
    told = [f"mkfs {found.mkfs_options}" if found.mkfs_options else "", found.mount_options]
    return ", ".join(filter(None, told)) or "default options"


def cell_of(reference: Reference, shown: PageCell) -> ResultCell:
    found = shown.cell
    return ResultCell(found.name, shown.mark, found.verdict, reference.place(shown), shown.summary)


def is_finer(shown: PageColumn) -> bool:
    """Return whether it is a column of a finer table, with hundreds of rows."""
    return any(cell.is_in_grid for cell in shown.cells.values())


def _order(row: ResultRow) -> tuple[object, ...]:
    return (*order_of(row.fs), row.variant != "default", row.variant, version(row.kernel), row.reference)


def _row(reference: Reference, shown: PageColumn, names: Sequence[str]) -> ResultRow:
    cells = (cell_of(reference, shown.cells[name]) if name in shown.cells else None for name in names)
    return ResultRow(
        fs=shown.configuration.fs,
        variant=shown.column.variant,
        options=options_of(shown),
        kernel=reference.kernel,
        reference=reference.name,
        link=f"{RESULTS}/{reference.name}/{INDEX}#{shown.anchor}",
        cells=tuple(cells),
    )


def _compared(
    every: Sequence[tuple[Reference, PageColumn]],
) -> tuple[tuple[tuple[str, str, int, tuple[CellChange, ...]], ...], tuple[CellChange, ...]]:
    """Return changes between kernels (by their first measurements), and between measurements on one, at the same
    options."""
    same: dict[tuple[str, str, str], dict[str, list[tuple[Reference, PageColumn]]]] = {}
    for reference, shown in every:
        found = shown.configuration
        by_kernel = same.setdefault((found.fs, found.mkfs_options, found.mount_options), {})
        by_kernel.setdefault(reference.kernel, []).append((reference, shown))
    steps: dict[tuple[str, str], tuple[int, list[CellChange]]] = {}
    doubts: list[CellChange] = []
    for by_kernel in same.values():
        kernels = sorted(by_kernel, key=version)
        for older, newer in pairwise(kernels):
            compared, changes = steps.get((older, newer), (0, []))
            a, b = by_kernel[older][0], by_kernel[newer][0]
            compared += len(a[1].cells.keys() & b[1].cells.keys())
            steps[older, newer] = compared, [*changes, *_changes(a, b)]
        for measured in by_kernel.values():
            doubts += [change for one in measured[1:] for change in _changes(measured[0], one)]
    ordered = sorted(steps.items(), key=lambda step: tuple(map(version, step[0])))
    return tuple((*pair, compared, tuple(changes)) for pair, (compared, changes) in ordered), tuple(doubts)


def _changes(a: tuple[Reference, PageColumn], b: tuple[Reference, PageColumn]) -> Iterator[CellChange]:
    (older, before), (newer, after) = a, b
    for name in before.cells:
        if name not in after.cells:
            continue
        kind = kind_of(answer_of(before.cells[name].cell), answer_of(after.cells[name].cell))
        if kind in (Kind.NEWLY_FAILS, Kind.NO_LONGER_FAILS, Kind.UNDECIDED):
            yield CellChange(
                name,
                f"{after.configuration.fs}, {options_of(after)}",
                kind,
                cell_of(older, before.cells[name]),
                cell_of(newer, after.cells[name]),
                (older.kernel, newer.kernel),
                (older.name, newer.name),
            )
