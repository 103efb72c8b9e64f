"""The constraints of an observation on micro-operations. A cell shows the last one that is there, or its initial value:
at least one *reading* is true. A reading may break a clause (zeros in place of data)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from bob.apm.clauses import DATA_KINDS, Clause, Fill, Intact, Never, TreePart, saying_more
from bob.apm.holes import Hole, hole, stale_at
from bob.apm.micro import AttributeCell, DataCell, NameCell, SizeCell, TreeCell, Value, Workings, block_of
from bob.claim.property.contents import FileStory
from bob.claim.property.sightings import Sightings
from bob.observe.observation import Node, Observation
from bob.trace.model import SECTOR_BYTES
from bob.workload.history import MODE, OWNER, TIME, FileKind
from bob.workload.kinds import ChangeKind


@dataclass(frozen=True, slots=True)
class CellReading:
    """An explanation of a cell: micro-operations ``there``, ``missing`` and ``lost`` (shared sets); broken clauses."""

    there: frozenset[int] = frozenset()
    missing: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()
    breaks: frozenset[Clause] = frozenset()


@dataclass(frozen=True, slots=True)
class Constraint:
    """The readings of one cell; ``about`` names it for people."""

    about: str
    readings: tuple[CellReading, ...]


class ObservationReader:
    """A reader of the observations of one workload; ``inodes`` are the known inode numbers of its things."""

    def __init__(self, taken: Workings, inodes: Mapping[int, int]) -> None:
        self._taken = taken
        self._inodes = inodes
        history = taken.history
        self._stories = {thing.identity: FileStory(history, thing.identity) for thing in history.things}

    def read(self, observation: Observation) -> tuple[Constraint, ...]:
        seen = Sightings(self._taken.places, self._taken.history, self._stories, self._inodes, observation)
        return tuple(self._constraints(seen))

    def _constraints(self, seen: Sightings) -> Iterator[Constraint]:
        for stray in seen.strays:
            yield Constraint(f"the name {stray}", (_BROKEN[TreePart.NAMES],))
        for place, bearers in self._taken.places.bearers.items():
            cell, found = NameCell(place), seen.at(place)
            about = f"the name {place[1]} in {min(self._taken.history.things[place[0]].names)}"
            if seen.fault(place):
                yield Constraint(about, (_BROKEN[TreePart.NAMES],))
            elif found is not None:
                initially = self._taken.places.initially(place)
                readings = [
                    reading
                    for value in [*bearers, None]
                    if value in found
                    for reading in self._of(cell, value, initially)
                ]
                yield Constraint(about, tuple(readings) or (_BROKEN[TreePart.NAMES],))
        for thing in self._taken.history.things:
            node = seen.node(thing.identity) if thing.kind is FileKind.FILE else None
            if node is not None:
                yield from self._file(thing.identity, min(thing.names), node)

    def _file(self, thing: int, name: str, node: Node) -> Iterator[Constraint]:
        if node.fault:
            yield Constraint(f"the file {name}", (self._garbage(thing),))
            return
        first = self._taken.history.steps[0].inodes.get(thing)
        initial = b"" if first is None else first.content
        sizes = tuple(self._of(SizeCell(thing), node.size, len(initial)))
        yield Constraint(f"the size of {name}", sizes or (_BROKEN[TreePart.SIZES],))
        visible = node.content[: node.size]
        for cell in self._taken.pieces.get(thing, (DataCell(thing, 0, max(len(initial), node.size)),)):
            if found := visible[cell.start : cell.stop]:
                about = f"bytes {cell.start:,} to {cell.stop:,} of {name}"
                before = initial[cell.start : cell.start + len(found)]
                yield Constraint(about, tuple(self._contents(cell, found, before)))
        attributes = {
            cell.name for cell in self._taken.writers if isinstance(cell, AttributeCell) and cell.thing == thing
        }
        made = max(self._taken.history.things[thing].born, 0)
        before_all = self._taken.history.steps[made].inodes[thing].attributes
        for attribute in sorted({*attributes, *before_all, *node.xattrs} - ({MODE, OWNER, TIME} - attributes)):
            if attribute in (MODE, OWNER) and attribute not in node.attributes:
                continue  # not observed
            was, cell_of = before_all.get(attribute), AttributeCell(thing, attribute)
            shown = node.attributes.get(attribute)
            if attribute == TIME:
                known = {self._taken.operations[writer].value for writer in self._taken.writers.get(cell_of, ())}
                if node.mtime is None or (shown not in known and self._stories[thing].writers):
                    continue  # not observed, or perhaps set by a change of the contents
                shown = shown if shown in known else was
            values = tuple(self._of(cell_of, shown, was))
            about = f"the attribute {attribute} of {name}"
            yield Constraint(about, values or (_BROKEN[TreePart.ATTRIBUTES],))

    def _of(self, cell: TreeCell, found: Value, initially: Value) -> Iterator[CellReading]:
        writers = self._taken.writers.get(cell, ())
        if found == initially:
            yield CellReading(missing=frozenset(writers))
        for at, writer in enumerate(writers):
            if self._taken.operations[writer].value == found:
                yield CellReading(frozenset({writer}), frozenset(writers[at + 1 :]))

    def _contents(self, cell: DataCell, found: bytes, before: bytes) -> Iterator[CellReading]:
        """Yield the readings of a piece that shows ``found``, and had ``before`` at first."""
        writers = self._taken.writers.get(cell, ())
        is_legible = False
        for at, writer in enumerate(writers):
            value = self._taken.operations[writer].value
            assert isinstance(value, bytes)
            if value[: len(found)] == found:
                yield CellReading(frozenset({writer}), frozenset(writers[at + 1 :]))
                is_legible = True
        absent, missing = frozenset(writers), hole(self._taken, cell)
        if before == found:
            yield CellReading(missing=absent)
            is_legible = True
        elif len(before) < len(found) and not any(found[len(before) :]) and found.startswith(before):
            yield from (
                CellReading(missing=absent, lost=way.lost, breaks=way.breaks[Fill.ZEROS]) for way in missing.ways
            )
            is_legible = True
        again = list(self._behind_a_cut(cell, found)) if any(found) else []
        yield from again
        if is_legible:
            return
        if missing.kind in DATA_KINDS and not any(found):
            yield CellReading(missing=absent, breaks=frozenset({Never(missing.kind, Fill.ZEROS)}))
        elif missing.kind is not None and (fills := _fills(found, cell.start, self._of_freed)):
            yield from _filled(missing, fills, absent)
        elif not writers and self._is_beside_an_overwrite(cell, found, before):
            yield CellReading(breaks=frozenset({Never(ChangeKind.OVERWRITE, Fill.STALE)}))
        elif not again:
            yield self._garbage(cell.thing)

    def _behind_a_cut(self, cell: DataCell, found: bytes) -> Iterator[CellReading]:
        """Yield the readings of a piece that a cut took off: a new block shows old contents of the disk or the file."""
        writers = self._taken.writers.get(cell, ())
        for at, writer in enumerate(writers):
            if not self._taken.is_cut(writer):
                continue
            missing = hole(self._taken, cell, since=writer)
            if missing.kind is not None and (fills := _fills(found, cell.start, self._of_freed)):
                yield from _filled(missing, fills, frozenset(writers[at + 1 :]), frozenset({writer}))

    def _is_beside_an_overwrite(self, cell: DataCell, found: bytes, before: bytes) -> bool:
        """Return whether zeros became stale in overwritten blocks: in a hole, file systems allocate whole blocks."""
        if any(before) or not _fills(found, cell.start, self._of_freed):
            return False
        changed = {block_of(cell.start + at) for at, byte in enumerate(found) if byte}
        return changed <= self._overwritten.get(cell.thing, frozenset())

    @cached_property
    def _overwritten(self) -> Mapping[int, frozenset[int]]:
        found: dict[int, set[int]] = {}
        for operation in self._taken.operations:
            is_overwrite = self._taken.changes[operation.change].kind is ChangeKind.OVERWRITE
            if is_overwrite and isinstance(operation.cell, DataCell):
                found.setdefault(operation.cell.thing, set()).add(block_of(operation.cell.start))
        return {thing: frozenset(blocks) for thing, blocks in found.items()}

    @cached_property
    def _of_freed(self) -> frozenset[bytes]:
        """All sectors that files had before they were removed, replaced or cut: any file may get their blocks."""
        history, found, last = self._taken.history, set[bytes](), dict[int, int]()
        for change in self._taken.changes:
            if change.kind in _FREEING:
                last.update(dict.fromkeys(change.things & self._taken.freed, change.number))
        for thing, number in last.items():
            for step in {0, number - 1}:
                inode = history.steps[step].inodes.get(thing)
                content = b"" if inode is None else inode.content
                found.update(content[at : at + SECTOR_BYTES] for at in range(0, len(content), SECTOR_BYTES))
        for operation in self._taken.operations:
            if isinstance(operation.cell, DataCell) and operation.number < last.get(operation.cell.thing, 0):
                start = operation.cell.start // SECTOR_BYTES * SECTOR_BYTES
                inode = history.steps[operation.number].inodes.get(operation.cell.thing)
                found.add(b"" if inode is None else inode.read(start, start + SECTOR_BYTES))
        return frozenset(found)

    def _garbage(self, thing: int) -> CellReading:
        return _BROKEN[TreePart.CONTENTS] if thing in self._taken.freed else _BROKEN[TreePart.KEPT]


def _filled(
    missing: Hole, fills: Set[Fill], absent: frozenset[int], there: frozenset[int] = frozenset()
) -> Iterator[CellReading]:
    """Yield the readings of a hole that shows ``fills``, with its data ``absent`` and other operations ``there``."""
    for way in missing.ways:
        breaks = frozenset[Clause]().union(*(way.breaks[fill] for fill in fills))
        yield CellReading(there, absent, way.lost, breaks)


def _fills(found: bytes, start: int, of_freed: Set[bytes]) -> frozenset[Fill]:
    """Return the fills that explain all of ``found`` at ``start`` (bytes), or none; ``of_freed`` sectors are stale."""
    fills: set[Fill] = set()
    at = 0
    while at < len(found):
        end = min(len(found), ((start + at) // SECTOR_BYTES + 1) * SECTOR_BYTES - start)
        sector = found[at:end]
        if sector == stale_at(start + at, len(sector)):
            fills.add(Fill.STALE)
        elif not any(sector):
            fills.add(Fill.ZEROS)
        elif sector in of_freed or (len(sector) < SECTOR_BYTES and _is_part(sector, start + at, of_freed)):
            fills.add(Fill.STALE)
        else:
            return frozenset()
        at = end
    return frozenset(fills)


def _is_part(piece: bytes, start: int, sectors: Set[bytes]) -> bool:
    """Return whether a sector has ``piece`` at its offset, or at the beginning: reiserfs packs the ends of files."""
    skip = start % SECTOR_BYTES
    return any(one.startswith(piece, skip) or one.startswith(piece) for one in sectors)


_FREEING = (ChangeKind.TRUNCATE_DOWN, ChangeKind.UNLINK, ChangeKind.RENAME_OVER)
_BROKEN = {part: CellReading(breaks=frozenset({Intact(part), *saying_more(Intact(part))})) for part in TreePart}
