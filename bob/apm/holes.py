"""Holes: pieces of a file that can be seen (the file is long enough) though the data that belongs there is missing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from bob.apm.micro import DataCell, SizeCell, Value, Workings
from bob.workload.kinds import ChangeKind
from bob.workload.pattern import CELL_BYTES, stale

_WITH_HOLES = (ChangeKind.OVERWRITE, ChangeKind.APPEND, ChangeKind.TRUNCATE_UP, ChangeKind.FALLOCATE)


def kind_of_hole(taken: Workings, cell: DataCell) -> ChangeKind | None:
    """By which kind of change a piece can be seen without its data: the first to write it, or to reach over it; None
    if by none."""
    kinds = (_kind(taken, at) for at in chain(taken.writers.get(cell, ()), _reaching(taken, cell)))
    return next((kind for kind in kinds if kind in _WITH_HOLES), None)


def sizes_over(taken: Workings, cell: DataCell) -> frozenset[int]:
    """The sizes (micro-operations) that the appends to a piece gave its file, and that show it without its data."""
    appends = {
        taken.operations[writer].change
        for writer in taken.writers.get(cell, ())
        if _kind(taken, writer) is ChangeKind.APPEND
    }
    return frozenset(at for at in _reaching(taken, cell) if taken.operations[at].change in appends)


def stale_at(start: int, length: int) -> bytes:
    """What was on the disk before mkfs, where it shows in a file from offset ``start`` (bytes)."""
    skip = start % CELL_BYTES
    return stale(skip + length)[skip:]


def _reaching(taken: Workings, cell: DataCell) -> Iterator[int]:
    """The sizes with which a piece, or its beginning, can be seen."""
    sizes = taken.writers.get(SizeCell(cell.thing), ())
    return (at for at in sizes if _reaches(taken.operations[at].value, cell.start))


def _kind(taken: Workings, at: int) -> ChangeKind:
    return taken.changes[taken.operations[at].change].kind


def _reaches(size: Value, offset: int) -> bool:
    return isinstance(size, int) and size > offset
