"""The table of all results, and the changes between kernels. The table has one row for each configuration of each
reference (measured table)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from bob.claim.verdict import Verdict
from bob.report.rows import by_family, meanings
from bob.site.results import ResultRow, short, version

FIRST = ("ext4", "xfs", "btrfs")  # the most common file systems


@dataclass(frozen=True, slots=True)
class CellChange:
    """A property (``name``) whose verdict differs between two rows of the table. The rows have the same configuration,
    either on two kernels, or in two measurements on one kernel. ``before`` and ``after`` are the rows."""

    name: str
    before: ResultRow
    after: ResultRow


@dataclass(frozen=True, slots=True)
class ResultsTable:
    """The table of all results. The columns are properties, grouped into ``families``; ``meanings`` explains each
    property.

    ``steps`` has a tuple for each pair of successive kernels: the two kernels, the number of compared cells, and the
    cells that changed. ``doubts`` are cells that differ between measurements on the same kernel."""

    rows: list[ResultRow]
    families: dict[str, list[str]]
    meanings: dict[str, str]
    steps: list[tuple[str, str, int, list[CellChange]]]
    doubts: list[CellChange]

    @property
    def kernels(self) -> list[str]:
        """The versions of the kernels, oldest first."""
        every = sorted({row.reference.kernel for row in self.rows}, key=version)
        return list(dict.fromkeys(map(short, every)))

    @property
    def file_systems(self) -> list[str]:
        return list(dict.fromkeys(row.fs for row in self.rows))

    @property
    def references(self) -> list[str]:
        return sorted({row.reference.name for row in self.rows})

    @property
    def properties(self) -> list[str]:
        return [name for names in self.families.values() for name in names]

    def count(self, verdict: Verdict) -> int:
        return sum(shown.cell.verdict is verdict for row in self.rows for shown in row.cells.values())


def results_table(every: Iterable[ResultRow]) -> ResultsTable:
    """Return the table of the rows ``every``. Leave out the rows of finer tables: they have hundreds of properties, and
    each property would need a column."""
    rows = [row for row in every if not row.is_finer]
    families = by_family(row.configuration for row in rows)
    asked = meanings(row.configuration for row in rows)
    named = {name: asked.get(name, "") for names in families.values() for name in names}
    return ResultsTable(sorted(rows, key=_order), families, named, *_compared(rows))


def order_of(fs: str) -> tuple[int, str]:
    """Return a key that sorts file systems: the common ones first."""
    return (FIRST.index(fs) if fs in FIRST else len(FIRST), fs)


def _order(row: ResultRow) -> tuple[object, ...]:
    name = row.reference.name
    return (*order_of(row.fs), row.variant != "default", row.variant, version(row.reference.kernel), name)


def _compared(rows: Iterable[ResultRow]) -> tuple[list[tuple[str, str, int, list[CellChange]]], list[CellChange]]:
    """Compare rows with the same file system and options. Return the changes between successive kernels, then the
    differences between measurements on one kernel. If a kernel has several measurements, the first one is compared with
    other kernels."""
    same: dict[tuple[str, str, str], dict[str, list[ResultRow]]] = {}
    for row in rows:
        made = row.configuration
        by_kernel = same.setdefault((made.fs, made.mkfs_options, made.mount_options), {})
        by_kernel.setdefault(row.reference.kernel, []).append(row)
    pairs: dict[tuple[str, str], list[tuple[ResultRow, ResultRow]]] = {}
    doubts: list[CellChange] = []
    for by_kernel in same.values():
        for older, newer in pairwise(sorted(by_kernel, key=version)):
            pairs.setdefault((older, newer), []).append((by_kernel[older][0], by_kernel[newer][0]))
        for first, *others in by_kernel.values():
            doubts += [change for other in others for change in _changes(first, other)]
    steps = []
    for older, newer in sorted(pairs, key=lambda pair: tuple(map(version, pair))):
        found = pairs[older, newer]
        compared = sum(len(before.cells.keys() & after.cells.keys()) for before, after in found)
        steps.append((older, newer, compared, [change for pair in found for change in _changes(*pair)]))
    return steps, doubts


def _changes(before: ResultRow, after: ResultRow) -> Iterator[CellChange]:
    for name, shown in before.cells.items():
        if name in after.cells and shown.cell.verdict is not after.cells[name].cell.verdict:
            yield CellChange(name, before, after)
