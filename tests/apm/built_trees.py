"""The trees that a set of micro-operations leaves, each built from nothing: the reference for :class:`Shapes`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from enum import Enum

from bob.apm.clauses import Clause, Fill
from bob.apm.holes import Hole, hole, stale_at
from bob.apm.micro import DataCell, SizeCell, TreeCell, Workings
from bob.apm.trees import ModelEntry, ModelTree, Remnant, first_names
from bob.workload.history import FileKind


class HoleFill(Enum):
    ZEROS = "zeros"
    STALE = "what was on the disk before mkfs"
    OWN = "what the file had there before it was cut, and elsewhere what was on the disk before mkfs"


def trees(taken: Workings, promised: Set[Clause], there: Set[int]) -> Iterator[ModelTree]:
    """The trees that a set of micro-operations leaves: up to three, by what holes may show."""
    shown = {taken.operations[at].cell: at for at in sorted(there)}
    leaving = BuiltTree(taken, promised, there, shown, HoleFill.ZEROS)
    found = {leaving.tree(): None}
    if leaving.has_stale:
        others = (BuiltTree(taken, promised, there, shown, filling) for filling in (HoleFill.STALE, HoleFill.OWN))
        found.update((other.tree(), None) for other in others)
    yield from found


class BuiltTree(Remnant):
    """What ``there`` leaves; ``shown`` has the micro-operation that each cell shows. ``filling`` is what holes show."""

    def __init__(
        self, taken: Workings, promised: Set[Clause], there: Set[int], shown: Mapping[TreeCell, int], filling: HoleFill
    ) -> None:
        super().__init__(taken, shown)
        self._promised, self._there, self._filling = promised, there, filling
        self.has_stale = False

    def tree(self) -> ModelTree:
        """All of it."""
        found = self.listing()
        first = first_names(found)
        return tuple((path, self._entry(thing, first[thing])) for path, thing in found.items())

    def _entry(self, identity: int, first: str) -> ModelEntry:
        entry = self.without_content(identity)
        if entry.kind != FileKind.FILE:
            return entry
        inode = self._taken.history.steps[0].inodes.get(identity)
        initial = b"" if inode is None else inode.content
        size = self._value(SizeCell(identity), len(initial))
        assert isinstance(size, int)
        content = bytearray(initial.ljust(size, b"\0"))
        for cell in self._taken.pieces.get(identity, ()):
            if cell.start < size:
                content[cell.start : cell.stop] = self._piece(cell, initial)
        return replace(entry, content=bytes(content[:size]), same=first)

    def _piece(self, cell: DataCell, initial: bytes) -> bytes:
        shown = self._shown.get(cell, -1)
        is_cut = shown >= 0 and self._taken.is_cut(shown)
        if shown >= 0 and not is_cut:
            value = self._taken.operations[shown].value
            assert isinstance(value, bytes)
            return value
        if shown < 0 and cell.start < len(initial):
            return initial[cell.start : cell.stop]
        length, missing = cell.stop - cell.start, hole(self._taken, cell, since=shown)
        may_be = self._may_be(missing, self._there)
        if not any(may_be.values()):  # an earlier size cannot be seen, and need not be there
            may_be = self._may_be(missing, frozenset(sorted(missing.own & self._there)[-1:]))
        may_be_zeros = is_cut or may_be[Fill.ZEROS]
        if missing.kind is None or not may_be[Fill.STALE]:
            return bytes(length)
        self.has_stale = True
        if may_be_zeros and self._filling is HoleFill.ZEROS:
            return bytes(length)
        own = self._before_cut(cell, initial) if is_cut and self._filling is HoleFill.OWN else None
        return stale_at(cell.start, length) if own is None else own

    def _before_cut(self, cell: DataCell, initial: bytes) -> bytes | None:
        """What a piece that is cut off had before; None if nothing."""
        there = [at for at in self._taken.writers[cell] if at in self._there and not self._taken.is_cut(at)]
        if there:
            value = self._taken.operations[there[-1]].value
            assert isinstance(value, bytes)
            return value
        known = initial[cell.start : cell.stop]
        return known.ljust(cell.stop - cell.start, b"\0") if known else None

    def _may_be(self, missing: Hole, there: Set[int]) -> dict[Fill, bool]:
        return {fill: missing.breaks(fill, there).isdisjoint(self._promised) for fill in Fill}
