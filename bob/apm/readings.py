"""Turn an observation into constraints on micro-operations. A *micro-operation* persists as a whole or not at all. A
*cell* (a name, a size, a piece of contents, an attribute) shows the last micro-operation on it that persisted, or its
initial value. A *reading* is one explanation of the value that a cell shows, and at least one reading of each cell is
true. A reading may break a *clause*, a promise of a model (for example, because it says that zeros are in place of
data). A *thing* is a file, directory or link of the workload's history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice, pairwise

from bob.apm.clauses import DATA_KINDS, Clause, Fill, Intact, Never, TreePart, saying_more
from bob.apm.holes import Hole, hole, stale_at
from bob.apm.micro import AttributeCell, DataCell, NameCell, SizeCell, TreeCell, Value, Workings, block_of
from bob.claim.property.contents import FileStory
from bob.claim.property.sightings import ROOT, NamePlace, Sightings, join
from bob.observe.observation import Node, Observation
from bob.trace.model import SECTOR_BYTES
from bob.workload.history import MODE, OWNER, TIME, FileKind
from bob.workload.kinds import ChangeKind

MOST_WAYS = 100  # most readings of names that may lead to several things; bob does not combine names that have more


@dataclass(frozen=True, slots=True)
class CellReading:
    """One explanation of the value that a cell shows. ``there`` is the set of micro-operations that persisted by this
    explanation. The micro-operations in ``missing`` and in ``lost`` did not persist. (These are two sets only to save
    memory: often, many readings share one of the two sets.) ``breaks`` has the clauses that are broken if the
    explanation is true."""

    there: frozenset[int] = frozenset()
    missing: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()
    breaks: frozenset[Clause] = frozenset()

    def together(self, *others: CellReading) -> CellReading:
        """Return the reading that is true if this reading and all ``others`` are."""
        every = (self, *others)
        return CellReading(
            frozenset[int]().union(*(one.there for one in every)),
            frozenset[int]().union(*(one.missing for one in every)),
            frozenset[int]().union(*(one.lost for one in every)),
            frozenset[Clause]().union(*(one.breaks for one in every)),
        )


@dataclass(frozen=True, slots=True)
class Constraint:
    """All readings of one cell. At least one of them is true. ``about`` names the cell in messages to people."""

    about: str
    readings: tuple[CellReading, ...]


class ObservationReader:
    """A reader that turns observations of one workload into constraints. ``inodes`` has the known inode numbers of
    files and directories. If a directory that the workload made is missing, the names in it cannot be seen. They then
    count as missing if ``hidden`` is True, and otherwise as unknown. ``taken`` is the workload, taken apart into
    micro-operations."""

    def __init__(
        self, taken: Workings, inodes: Mapping[int, int], *, attributes: bool = True, hidden: bool = True
    ) -> None:
        self._taken = taken
        self._inodes, self._reads_attributes, self._reads_hidden = inodes, attributes, hidden
        history = taken.history
        self._stories = {thing.identity: FileStory(history, thing.identity) for thing in history.things}

    def read(self, observation: Observation) -> tuple[Constraint, ...]:
        seen = Sightings(self._taken.places, self._taken.history, self._stories, self._inodes, observation)
        return tuple(self._constraints(seen))

    def _constraints(self, seen: Sightings) -> Iterator[Constraint]:
        for stray in seen.strays:
            yield Constraint(f"the name {stray}", (_BROKEN[TreePart.NAMES],))
        for place in self._taken.places.bearers:
            if seen.fault(place):
                yield Constraint(self._about(place), (_BROKEN[TreePart.NAMES],))
            elif not self._reads_hidden and not seen.may_be_there(place[0]):
                continue
            elif (found := seen.at(place)) is not None:
                yield self._name(place, found)
        for thing in self._taken.history.things:
            node = seen.node(thing.identity) if thing.kind is FileKind.FILE else None
            if node is not None:
                yield from self._file(thing.identity, min(thing.names), node)
        names = _Names(self._taken, seen)
        yield from self._of_several(names)
        yield from self._of_inodes(names)

    def _about(self, place: NamePlace) -> str:
        return f"the name {place[1]} in {min(self._taken.history.things[place[0]].names)}"

    def _name(self, place: NamePlace, found: Set[int | None]) -> Constraint:
        """Return the readings of a name that leads to one of the things ``found``. None in ``found`` means that the
        name may also be absent."""
        bearers = [*self._taken.places.bearers[place], None]
        readings = [
            reading for value in bearers if value in found for reading in _name_shows(self._taken, place, value)
        ]
        return Constraint(self._about(place), tuple(readings) or (_BROKEN[TreePart.NAMES],))

    def _of_several(self, names: _Names) -> Iterator[Constraint]:
        """Yield the constraints from names that may lead to several things. They say: if such a name leads to one of
        the things, then what the observation shows at the name must fit that thing."""
        for path, things in names.who.items():
            if len(things) < 2 or names.nodes[path].fault or names.ways(path) > MOST_WAYS:
                continue
            joined: list[CellReading] = []
            for thing in sorted(things):
                said = self._said_of(names, path, thing)
                certain = [one.readings[0] for one in said if len(one.readings) == 1]
                here = ways = [way.together(*certain) for way in names.leading(path, {thing})]
                elsewhere = names.leading(path, things - {thing})
                for one in (one for one in said if len(one.readings) != 1):
                    if len(things) * len(ways) * len(one.readings) <= MOST_WAYS:
                        ways = [way.together(reading) for way in ways for reading in one.readings]
                    elif len(elsewhere) + len(here) * len(one.readings) <= MOST_WAYS:
                        readings = (way.together(reading) for way in here for reading in one.readings)
                        yield Constraint(one.about, (*elsewhere, *readings))
                joined += ways
            yield Constraint(f"the name {path}", tuple(joined) or (_BROKEN[TreePart.NAMES],))

    def _said_of(self, names: _Names, path: str, thing: int) -> list[Constraint]:
        """Return constraints on ``thing`` for the case that ``path`` leads to it. They come from the observation at
        ``path``."""
        if names.nodes[path].kind == FileKind.FILE:
            return list(self._file(thing, min(self._taken.history.things[thing].names), names.nodes[path]))
        return list(self._inside(names, path, thing))

    def _inside(self, names: _Names, path: str, directory: int) -> Iterator[Constraint]:
        """Yield constraints for the case that ``path`` leads to ``directory``. They come from the observed names below
        ``path``."""
        bearers = self._taken.places.bearers
        known = {join(path, place[1]): place for place in bearers if place[0] == directory}
        for inside in sorted({*known, *names.inside(path)}):
            if inside not in known:
                yield Constraint(f"the name {inside}", (_BROKEN[TreePart.NAMES],))
            elif inside not in names.nodes or not names.nodes[inside].fault:
                yield self._name(known[inside], names.who.get(inside, frozenset({None})))

    def _of_inodes(self, names: _Names) -> Iterator[Constraint]:
        """Yield the constraints from inode numbers. Two names with the same inode number lead to the same thing, and
        two names with different numbers lead to different things."""
        for one, other in names.pairs():
            is_same = names.nodes[one].inode == names.nodes[other].inode
            at_one, at_other = names.who[one], names.who[other]
            if names.ways(one) * names.ways(other) > MOST_WAYS:
                continue
            readings = [
                way.together(beside)
                for thing in sorted(at_one)
                for way in names.leading(one, {thing})
                for beside in names.leading(other, at_other & {thing} if is_same else at_other - {thing})
            ]
            yield Constraint(f"the names {one} and {other}", tuple(readings) or (_BROKEN[TreePart.NAMES],))

    def _file(self, thing: int, name: str, node: Node) -> Iterator[Constraint]:
        if node.fault:
            yield Constraint(f"the file {name}", (self._garbage(thing),))
            return
        first = self._taken.history.steps[0].inodes.get(thing)
        initial = b"" if first is None else first.content
        sizes = tuple(_shows(self._taken, SizeCell(thing), node.size, len(initial)))
        yield Constraint(f"the size of {name}", sizes or (_BROKEN[TreePart.SIZES],))
        visible = node.content[: node.size]
        for cell in self._taken.pieces.get(thing, (DataCell(thing, 0, max(len(initial), node.size)),)):
            if found := visible[cell.start : cell.stop]:
                about = f"bytes {cell.start:,} to {cell.stop:,} of {name}"
                before = initial[cell.start : cell.start + len(found)]
                yield Constraint(about, tuple(self._contents(cell, found, before)))
        if self._reads_attributes:
            yield from self._attributes(thing, name, node)

    def _attributes(self, thing: int, name: str, node: Node) -> Iterator[Constraint]:
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
            values = tuple(_shows(self._taken, cell_of, shown, was))
            about = f"the attribute {attribute} of {name}"
            yield Constraint(about, values or (_BROKEN[TreePart.ATTRIBUTES],))

    def _contents(self, cell: DataCell, found: bytes, before: bytes) -> Iterator[CellReading]:
        """Yield the readings of a piece of a file. The piece shows the bytes ``found``, and had the bytes ``before``
        initially."""
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
        """Yield the readings of a piece of a file for the case that a truncation cut the piece off, and the file later
        grew over it again. The piece then is in a new block, which may show old contents of the disk, or of a file."""
        writers = self._taken.writers.get(cell, ())
        for at, writer in enumerate(writers):
            if not self._taken.is_cut(writer):
                continue
            missing = hole(self._taken, cell, since=writer)
            if missing.kind is not None and (fills := _fills(found, cell.start, self._of_freed)):
                yield from _filled(missing, fills, frozenset(writers[at + 1 :]), frozenset({writer}))

    def _is_beside_an_overwrite(self, cell: DataCell, found: bytes, before: bytes) -> bool:
        """Return whether a piece that had zeros now shows stale data, but only in blocks where an overwrite changed
        other bytes. This happens because file systems allocate whole blocks when an overwrite fills a part of a
        hole."""
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
        """All sectors that files had before they were removed, replaced or cut. Any file may later get the blocks with
        these sectors."""
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


class _Names:
    """The names in an observation. ``nodes`` has the observed file or directory for each path. ``who`` has, for each
    path, the things of the workload (files, directories, links) that it may lead to. ``taken`` has the micro-operations
    of the workload, and ``seen`` the names in the observation."""

    def __init__(self, taken: Workings, seen: Sightings) -> None:
        self._taken = taken
        self.nodes, self.who = {"/": Node("directory")}, {"/": frozenset({ROOT})}
        for path, node, things in seen.sighted():
            self.nodes[path], self.who[path] = node, things

    def inside(self, folder: str) -> Iterator[str]:
        return (path for path in self.nodes if path != "/" and (path.rpartition("/")[0] or "/") == folder)

    def leading(self, path: str, things: Set[int]) -> list[CellReading]:
        return [reading for thing in sorted(things) for reading in self._leading(path, thing)]

    def ways(self, path: str) -> int:
        """Count the explanations (readings) that fit the observation at ``path``. Each reading says that this name
        leads to a certain thing. If there are more readings than :data:`MOST_WAYS`, return ``MOST_WAYS + 1``."""
        every = (reading for thing in self.who[path] for reading in self._leading(path, thing))
        return sum(1 for _reading in islice(every, MOST_WAYS + 1))

    def _leading(self, path: str, thing: int) -> Iterator[CellReading]:
        if self.who[path] == {thing}:
            yield CellReading()  # another constraint says that the name leads there
            return
        folder, name = path.rsplit("/", 1)
        for directory in sorted(self.who[folder or "/"]):
            if thing in self._taken.places.bearers.get((directory, name), ()):
                for above in self._leading(folder or "/", directory):
                    for reading in _name_shows(self._taken, (directory, name), thing):
                        yield above.together(reading)

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield pairs of names whose inode numbers tell more than the names alone. In one case, the two names might
        lead to different things, but their inode numbers are the same, so they lead to one thing. In the other case,
        they might lead to the same thing, but their inode numbers differ, so they lead to different things."""
        of_number: dict[int, list[str]] = {}
        of_thing: dict[int, dict[int, str]] = {}
        for path, things in self.who.items():
            number = self.nodes[path].inode  # 0 if unknown
            if number and self.nodes[path].kind in _LINKED:
                of_number.setdefault(number, []).append(path)
                for thing in things:
                    of_thing.setdefault(thing, {}).setdefault(number, path)
        for paths in of_number.values():
            yield from (pair for pair in pairwise(paths) if len(self.who[pair[0]] | self.who[pair[1]]) > 1)
        yield from dict.fromkeys(pair for paths in of_thing.values() for pair in combinations(paths.values(), 2))


def _name_shows(taken: Workings, place: NamePlace, value: int | None) -> Iterator[CellReading]:
    return _shows(taken, NameCell(place), value, taken.places.initially(place))


def _shows(taken: Workings, cell: TreeCell, found: Value, initially: Value) -> Iterator[CellReading]:
    """Yield the readings of a cell that shows the value ``found``. Before the workload, the cell had the value
    ``initially``."""
    writers = taken.writers.get(cell, ())
    if found == initially:
        yield CellReading(missing=frozenset(writers))
    for at, writer in enumerate(writers):
        if taken.operations[writer].value == found:
            yield CellReading(frozenset({writer}), frozenset(writers[at + 1 :]))


def _filled(
    missing: Hole, fills: Set[Fill], absent: frozenset[int], there: frozenset[int] = frozenset()
) -> Iterator[CellReading]:
    """Yield the readings of the hole ``missing`` (a piece of a file without its data). The hole shows ``fills``, such
    as zeros. ``absent`` has the micro-operations that write the data; they did not persist in any of the readings. The
    micro-operations in the set ``there`` did persist."""
    for way in missing.ways:
        breaks = frozenset[Clause]().union(*(way.breaks[fill] for fill in fills))
        yield CellReading(there, absent, way.lost, breaks)


def _fills(found: bytes, start: int, of_freed: Set[bytes]) -> frozenset[Fill]:
    """Return the fills (zeros, stale data) that together explain all of ``found``, the bytes of a file from byte
    ``start`` on. ``of_freed`` has sectors of files that lost blocks. If a sector of ``found`` is in ``of_freed``, it
    counts as stale data. Return the empty set if a part of ``found`` is neither zeros nor stale data."""
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
    """Return whether one of ``sectors`` has ``piece`` at the same offset within the sector, or at its beginning. (The
    beginning counts because reiserfs stores the last bytes of a file apart from its blocks, at any offset.)"""
    skip = start % SECTOR_BYTES
    return any(one.startswith(piece, skip) or one.startswith(piece) for one in sectors)


_LINKED = ("file", "directory")  # in a history, two names of one symbolic link are two links
_FREEING = (ChangeKind.TRUNCATE_DOWN, ChangeKind.UNLINK, ChangeKind.RENAME_OVER)
_BROKEN = {part: CellReading(breaks=frozenset({Intact(part), *saying_more(Intact(part))})) for part in TreePart}
