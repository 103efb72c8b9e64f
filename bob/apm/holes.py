"""Holes: pieces of a file that lie within its size although the data there did not persist. A hole shows a *fill*:
zeros, or stale data (old contents of the disk's blocks). A clause (a promise of a model) may forbid a fill. A
*micro-operation* is a step that persists as a whole or not at all, such as a change of a size."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations

from bob.apm.clauses import AppendPart, Clause, Fill, Never
from bob.apm.micro import DataCell, Workings
from bob.workload.kinds import ChangeKind
from bob.workload.pattern import CELL_BYTES, stale

_WITH_HOLES = (ChangeKind.OVERWRITE, ChangeKind.APPEND, ChangeKind.TRUNCATE_UP, ChangeKind.FALLOCATE)
_PARTS = (AppendPart.LAST, AppendPart.EARLIER, AppendPart.TAIL)


@dataclass(frozen=True, slots=True)
class HoleReading:
    """One explanation of a hole in a file. Each append to the bytes of the hole also grows the file's size past the
    hole, by micro-operations of its own. By this explanation, the size changes in ``lost`` did not persist, and the
    other size changes did.
    ``breaks`` has, for each fill (zeros or stale data), the clauses that are broken if the hole shows this fill."""

    lost: frozenset[int]
    breaks: Mapping[Fill, frozenset[Clause]]


@dataclass(frozen=True)
class Hole:
    """A piece of a file without its data. ``kind`` is the kind of the first change that writes the piece, or that grows
    the file over it. An append that writes the piece also has micro-operations that set a size beyond it. ``sizes``
    groups these micro-operations by the part of the append (such as its last block) that the piece belongs to. The
    group ANYWHERE has all of them."""

    kind: ChangeKind | None
    sizes: Mapping[AppendPart, frozenset[int]]

    @property
    def own(self) -> frozenset[int]:
        return self.sizes[AppendPart.ANYWHERE]

    def breaks(self, fill: Fill, there: Set[int]) -> frozenset[Clause]:
        """Return the clauses that are broken if the hole shows ``fill``. ``there`` is the set of micro-operations that
        have persisted; the data of the hole has not."""
        found = {Never(ChangeKind.APPEND, fill, where) for where, sizes in self.sizes.items() if sizes & there}
        if fill is Fill.STALE and self.kind is not None:  # if another change made the file so long, zeros are right
            found.add(Never(self.kind, fill))
        return frozenset(found)

    @cached_property
    def ways(self) -> tuple[HoleReading, ...]:
        of_parts = [self.sizes[part] for part in _PARTS]
        parts = [sizes for sizes in (*of_parts, self.own.difference(*of_parts)) if sizes]
        found = []
        for count in range(len(parts) + 1):
            for chosen in combinations(parts, count):
                there = frozenset[int]().union(*chosen)
                found.append(HoleReading(self.own - there, {fill: self.breaks(fill, there) for fill in Fill}))
        return tuple(found)


def hole(taken: Workings, cell: DataCell, since: int = -1) -> Hole:
    """Return the hole that the piece ``cell`` of a file becomes if its data is missing. ``since`` is the
    micro-operation that cut the piece off. In this case, only the data that was written after the cut is missing. If
    ``since`` is -1, nothing cut the piece off, and all data that was ever written to it is missing. ``taken`` has all
    micro-operations of the workload."""
    sizes = taken.sizes.get(cell.thing, ())
    reaching = bisect_right(sizes, (cell.start, len(taken.operations)))
    writers = [at for at in taken.writers.get(cell, ()) if at > since]
    alike = tuple((taken.operations[at].change, taken.operations[at].block) for at in writers)
    key = (Hole, cell.thing, reaching, alike, since)
    if key not in taken.memory:
        taken.memory[key] = _hole(taken, writers, sorted(at for _value, at in sizes[reaching:] if at > since))
    found: Hole = taken.memory[key]
    return found


def stale_at(start: int, length: int) -> bytes:
    """Return the ``length`` bytes that a file shows from its byte ``start`` on if its blocks are stale. These bytes
    belong to the pattern that bob writes to the whole disk before mkfs."""
    skip = start % CELL_BYTES
    return stale(skip + length)[skip:]


def _hole(taken: Workings, writers: Sequence[int], reaching: Sequence[int]) -> Hole:
    kinds = (_kind(taken, at) for at in chain(writers, reaching))
    kind = next((kind for kind in kinds if kind in _WITH_HOLES), None)
    appends = {
        taken.operations[writer].change: taken.operations[writer].block
        for writer in writers
        if _kind(taken, writer) is ChangeKind.APPEND
    }
    sizes: dict[AppendPart, set[int]] = {part: set() for part in AppendPart}
    for at in reaching:
        size = taken.operations[at]
        if size.change in appends:
            growth, block = taken.grown[size.change], appends[size.change]
            ends = AppendPart.LAST if size.block == block else AppendPart.EARLIER
            part = ends if growth.begins(block) else AppendPart.TAIL
            sizes[AppendPart.ANYWHERE].add(at)
            if part is AppendPart.LAST or not growth.is_asked_in_part:
                sizes[part].add(at)
    return Hole(kind, {part: frozenset(of) for part, of in sizes.items()})


def _kind(taken: Workings, at: int) -> ChangeKind:
    return taken.changes[taken.operations[at].change].kind
