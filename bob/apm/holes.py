"""Holes: pieces of a file that can be seen (the file is long enough) though the data that belongs there is missing."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from itertools import chain, combinations

from bob.apm.clauses import Clause, Fill, Never, Where
from bob.apm.micro import DataCell, SizeCell, Value, Workings
from bob.workload.kinds import ChangeKind
from bob.workload.pattern import CELL_BYTES, stale

_WITH_HOLES = (ChangeKind.OVERWRITE, ChangeKind.APPEND, ChangeKind.TRUNCATE_UP, ChangeKind.FALLOCATE)


@dataclass(frozen=True, slots=True)
class Hole:
    """A piece without its data: by which ``kind`` of change it can be seen (the first to write it, or to reach over it;
    None if by none), and with which sizes that the appends to it gave the file (micro-operations, ``own``).

    ``last`` are those of them that end in the piece's block, where the append began that block; ``later`` those behind
    it, where the append began its block and no call asks for a part of the file; ``tail`` all of an append that began
    in the middle of the piece's block, where no call does.
    """

    kind: ChangeKind | None
    own: frozenset[int] = frozenset()
    last: frozenset[int] = frozenset()
    later: frozenset[int] = frozenset()
    tail: frozenset[int] = frozenset()

    def breaks(self, fill: Fill, there: Set[int]) -> frozenset[Clause]:
        """The clauses that ``fill`` breaks there, where these micro-operations are there and the data is not."""
        places = [
            where
            for where, sizes in (
                (Where.ANYWHERE, self.own),
                (Where.TAIL, self.tail),
                (Where.LAST, self.last),
                (Where.EARLIER, self.later),
            )
            if sizes & there
        ]
        found = {Never(ChangeKind.APPEND, fill, where) for where in places}
        if fill is Fill.STALE and self.kind is not None:  # zeros belong where something else made the file so long
            found.add(Never(self.kind, fill))
        return frozenset(found)

    def ways(self) -> Iterator[tuple[frozenset[int], frozenset[int]]]:
        """The ways to see it: which sizes are missing, and which may be there."""
        kinds = [self.last, self.later, self.tail, self.own - self.last - self.later - self.tail]
        kinds = [sizes for sizes in kinds if sizes]
        for count in range(len(kinds) + 1):
            for chosen in combinations(kinds, count):
                there = frozenset().union(*chosen)
                yield self.own - there, there


def hole(taken: Workings, cell: DataCell) -> Hole:
    """What a piece is without its data."""
    if (cell, Hole) not in taken.memory:
        taken.memory[cell, Hole] = _hole(taken, cell)
    found = taken.memory[cell, Hole]
    assert isinstance(found, Hole)
    return found


def stale_at(start: int, length: int) -> bytes:
    """What was on the disk before mkfs, where it shows in a file from offset ``start`` (bytes)."""
    skip = start % CELL_BYTES
    return stale(skip + length)[skip:]


def _hole(taken: Workings, cell: DataCell) -> Hole:
    kinds = (_kind(taken, at) for at in chain(taken.writers.get(cell, ()), _reaching(taken, cell)))
    kind = next((kind for kind in kinds if kind in _WITH_HOLES), None)
    appends = {
        taken.operations[writer].change: taken.operations[writer].block
        for writer in taken.writers.get(cell, ())
        if _kind(taken, writer) is ChangeKind.APPEND
    }
    own, last, later, tail = set(), set(), set(), set()
    for at in _reaching(taken, cell):
        size = taken.operations[at]
        if size.change not in appends:
            continue
        own.add(at)
        growth, block = taken.grown[size.change], appends[size.change]
        if growth.begins(block):
            if size.block == block:
                last.add(at)
            elif not growth.is_asked_in_part:
                later.add(at)
        elif not growth.is_asked_in_part:
            tail.add(at)
    return Hole(kind, *map(frozenset, (own, last, later, tail)))


def _reaching(taken: Workings, cell: DataCell) -> Iterator[int]:
    """The sizes with which a piece, or its beginning, can be seen."""
    sizes = taken.writers.get(SizeCell(cell.thing), ())
    return (at for at in sizes if _reaches(taken.operations[at].value, cell.start))


def _kind(taken: Workings, at: int) -> ChangeKind:
    return taken.changes[taken.operations[at].change].kind


def _reaches(size: Value, offset: int) -> bool:
    return isinstance(size, int) and size > offset
