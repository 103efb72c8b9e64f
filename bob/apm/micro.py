"""Micro-operations: what a workload's operations change, one place at a time.

A *cell* is a place that holds one value: a name in a directory, a file's size, a piece of its contents, an attribute. A
micro-operation puts a value into a cell. Those of a crash state take effect in program order, so of several on one cell
the last one that is there shows. (OSDI'14, section 4.2: write_block, change_file_size, create_dir_entry,
delete_dir_entry; attributes are added here.) Offsets, sizes and lengths are in bytes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any

from bob.apm import sync_scope
from bob.apm.clauses import Means, Ordered, means_of
from bob.claim.property.sightings import NamePlace, NamePlaces
from bob.claim.property.subjects import BLOCK_BYTES
from bob.errors import UsageError
from bob.trace.model import SECTOR_BYTES
from bob.workload import operations as ops
from bob.workload.history import History, attribute_set_by
from bob.workload.kinds import MODELLED_KINDS, ChangeKind, OperationChange, changes
from bob.workload.language import write_one


class MicroKind(StrEnum):
    """What a micro-operation does."""

    WRITE_BLOCK = "write_block"
    CHANGE_FILE_SIZE = "change_file_size"
    CREATE_DIR_ENTRY = "create_dir_entry"
    DELETE_DIR_ENTRY = "delete_dir_entry"
    SET_ATTRIBUTE = "set_attribute"


@dataclass(frozen=True, slots=True)
class NameCell:
    """The name ``place[1]`` in the directory ``place[0]``; its value is the thing that bears it, or None."""

    place: NamePlace


@dataclass(frozen=True, slots=True)
class SizeCell:
    """The size of a file; its value is a number of bytes."""

    thing: int


@dataclass(frozen=True, slots=True)
class DataCell:
    """The bytes of a file from ``start`` up to, not including, ``stop``: never more than a sector."""

    thing: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class AttributeCell:
    """An extended attribute, the mode or the owner; its value is bytes, or None."""

    thing: int
    name: str


TreeCell = NameCell | SizeCell | DataCell | AttributeCell
Value = int | bytes | None


@dataclass(frozen=True, slots=True)
class MicroOperation:
    """``value`` put into ``cell``, by the change number ``change`` (an index) of operation ``number`` (from 1).

    ``block`` is the file-system block (4 KiB of the file) that a piece of data, or the last byte of a size, is in; None
    for others.
    """

    kind: MicroKind
    number: int
    change: int
    cell: TreeCell
    value: Value
    block: int | None = None


@dataclass(frozen=True, slots=True)
class Growth:
    """Of an append: the size of its file before it, and the largest one that the file ever had (bytes); and whether it
    or a later call asks for a part of the file alone (sync_file_range, a write with O_SYNC, O_DSYNC or O_DIRECT), so
    that other parts of it may come later."""

    before: int
    largest: int
    is_asked_in_part: bool

    def begins(self, block: int | None) -> bool:
        """Whether nothing of this block was in the file before."""
        return block is not None and block * BLOCK_BYTES >= self.before

    def is_in_place(self, operation: MicroOperation) -> bool:
        """Whether a piece of data is put where the file had data before it was cut, in the block that stayed with it:
        the file as it was shows it."""
        cell = operation.cell
        return isinstance(cell, DataCell) and cell.start < self.largest and not self.begins(operation.block)


@dataclass(frozen=True, slots=True)
class Workings:
    """A workload taken apart: its changes and micro-operations in program order, and who writes each cell.

    ``writers`` has the indexes of micro-operations, ascending. ``pieces`` are the data cells of each file that
    operations write to or cut, in order of offset. ``grown`` tells of each append (by the index of its change),
    ``freed`` has the files that are removed, replaced or cut, ``asked`` the changes (indexes) that a call asks for
    alone, ``logged`` those that a log of such a call may take along. ``memory`` is for what is computed of all this,
    and has to be computed once.
    """

    history: History
    places: NamePlaces
    changes: tuple[OperationChange, ...]
    operations: tuple[MicroOperation, ...]
    writers: Mapping[TreeCell, tuple[int, ...]]
    pieces: Mapping[int, tuple[DataCell, ...]]
    grown: Mapping[int, Growth]
    freed: frozenset[int]
    asked: frozenset[int]
    logged: frozenset[int]
    memory: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)

    def means(self, change: int) -> Means:
        """How a change (by its index) is written."""
        return means_of(self.changes[change].kind, is_logged=change in self.logged)

    def is_cut(self, operation: int) -> bool:
        """Whether a micro-operation (its index) cuts a file off, by a change that gives the blocks behind back."""
        return self.changes[self.operations[operation].change].kind is ChangeKind.TRUNCATE_DOWN

    def is_of_a_log(self, order: Ordered, after: int) -> bool:
        """Whether a log may take the later change of an order (``after``, its index) along without the earlier one."""
        return order.is_of_a_name and after in self.logged


def workings(history: History, finish: Sequence[ops.Operation] = ()) -> Workings:
    """``history`` taken apart into micro-operations; ``finish`` is what is done behind it. Raises UsageError for
    operations that models do not speak of."""
    places, made = NamePlaces(history), changes(history)
    for change in made:
        if change.kind not in MODELLED_KINDS:
            text = write_one(history.operations[change.number - 1])
            raise UsageError(f"models do not speak of {text!r}", hint="they know no ranges that move in a file")
    of_contents: dict[int, list[OperationChange]] = {}
    for change in made:
        if change.kind in _OF_CONTENTS:
            (file,) = change.things
            of_contents.setdefault(file, []).append(change)
    pieces = {thing: tuple(_pieces(history, several, thing)) for thing, several in sorted(of_contents.items())}
    operations = tuple(
        operation
        for index, change in enumerate(made)
        for operation in _micro_operations(history, places, pieces, index, change)
    )
    writers: dict[TreeCell, list[int]] = {}
    for at, operation in enumerate(operations):
        writers.setdefault(operation.cell, []).append(at)
    grown = dict(_growths(history, made, sync_scope.in_part(history, finish, made)))
    freed = frozenset(_freed(history, made))
    asked, logged = sync_scope.alone(history, finish, made), sync_scope.logged(history, made)
    written = {cell: tuple(who) for cell, who in writers.items()}
    return Workings(history, places, made, operations, written, pieces, grown, freed, asked, logged)


def block_of(offset: int) -> int:
    """The file-system block that the byte at ``offset`` of a file is in."""
    return offset // BLOCK_BYTES


def _freed(history: History, made: Sequence[OperationChange]) -> Iterator[int]:
    """The files that lose blocks: another file may be given these."""
    for change in made:
        if change.kind is ChangeKind.TRUNCATE_DOWN:
            yield from change.things
    for before, after in pairwise(history.steps):
        if before is after:
            continue
        for thing, inode in before.inodes.items():
            if inode.links and (thing not in after.inodes or not after.inodes[thing].links):
                yield thing


def _size_before(history: History, change: OperationChange) -> int:
    """The size of the file that ``change`` writes to, before it; O_TRUNC has cut it off."""
    operation, (thing,) = history.operations[change.number - 1], change.things
    was = history.steps[change.number - 1].inodes.get(thing)
    is_cut = isinstance(operation, ops.Write) and operation.how is ops.How.TRUNC
    return 0 if was is None or is_cut else was.size


def _growths(history: History, made: Sequence[OperationChange], in_part: Set[int]) -> Iterator[tuple[int, Growth]]:
    """The growth of each append, by its index; ``in_part`` has those of which a part is asked for alone."""
    largest: dict[int, int] = {}
    for index, change in enumerate(made):
        if change.kind in _OF_CONTENTS:
            (thing,) = change.things
            was = history.steps[change.number - 1].inodes.get(thing)
            largest[thing] = max(largest.get(thing, 0), 0 if was is None else was.size)
            if change.kind is ChangeKind.APPEND:
                yield index, Growth(_size_before(history, change), largest[thing], index in in_part)


def _micro_operations(
    history: History,
    places: NamePlaces,
    pieces: Mapping[int, tuple[DataCell, ...]],
    index: int,
    change: OperationChange,
) -> Iterator[MicroOperation]:
    number = change.number
    if change.kind in _OF_CONTENTS:
        reach = _reach(history, change)
        cells = pieces[reach.thing]
        for at in range(bisect_left(cells, reach.start, key=_start), len(cells)):
            cell = cells[at]
            if cell.stop > reach.stop or reach.data is None:
                break
            value = reach.data[cell.start - reach.start : cell.stop - reach.start]
            yield MicroOperation(MicroKind.WRITE_BLOCK, number, index, cell, value, block_of(cell.start))
        for size in reach.sizes:
            yield MicroOperation(
                MicroKind.CHANGE_FILE_SIZE, number, index, SizeCell(reach.thing), size, block_of(max(size - 1, 0))
            )
    elif change.kind is ChangeKind.SETXATTR:
        done = attribute_set_by(history.operations[number - 1])
        assert done is not None
        (thing,), (_path, name) = change.things, done
        is_set = history.steps[number].inodes[thing].attributes.get(name)  # None: it is removed
        yield MicroOperation(MicroKind.SET_ATTRIBUTE, number, index, AttributeCell(thing, name), is_set)
    else:
        for place, bearer in places.changes[number].items():
            kind = MicroKind.DELETE_DIR_ENTRY if bearer is None else MicroKind.CREATE_DIR_ENTRY
            yield MicroOperation(kind, number, index, NameCell(place), bearer)


_OF_CONTENTS = (
    ChangeKind.OVERWRITE,
    ChangeKind.APPEND,
    ChangeKind.TRUNCATE_DOWN,
    ChangeKind.TRUNCATE_UP,
    ChangeKind.FALLOCATE,
    ChangeKind.ZERO,
)


@dataclass(frozen=True, slots=True)
class _Reach:
    """What a change does to contents: ``data`` at ``start`` (None: it writes none), and the sizes that it passes."""

    thing: int
    start: int
    stop: int
    data: bytes | None
    sizes: tuple[int, ...] = ()


def _reach(history: History, change: OperationChange) -> _Reach:
    operation, (thing,) = history.operations[change.number - 1], change.things
    was, now = history.steps[change.number - 1].inodes.get(thing), history.steps[change.number].inodes[thing]
    size, after = 0 if was is None else was.size, now.size
    if isinstance(operation, ops.WRITING_OPERATIONS) and change.kind is not ChangeKind.TRUNCATE_DOWN:
        if isinstance(operation, ops.Write) and operation.how is ops.How.TRUNC:
            size = 0
        _thing, start, length = history.data[change.number]
        stop = start + length
        if change.kind is ChangeKind.OVERWRITE:
            return _Reach(thing, start, min(stop, size), now.read(start, min(stop, size)))
        start = max(start, size)
        return _Reach(thing, start, stop, now.read(start, stop), _sizes(size, stop))
    if change.kind is ChangeKind.TRUNCATE_DOWN:
        after = 0 if isinstance(operation, ops.Write) else after
        return _Reach(thing, after, size, bytes(size - after), (after,))
    if change.kind is ChangeKind.ZERO:
        assert isinstance(operation, ops.Fallocate)
        return _Reach(thing, operation.offset, operation.offset + operation.length, bytes(operation.length))
    return _Reach(thing, size, after, None, _sizes(size, after) if after > size else ())


def _sizes(size: int, after: int) -> tuple[int, ...]:
    """The sizes that a file passes as it grows: each end of a block, and the last one."""
    first = (size // BLOCK_BYTES + 1) * BLOCK_BYTES
    return (*range(first, after, BLOCK_BYTES), after)


def _start(cell: DataCell) -> int:
    return cell.start


def _pieces(history: History, made: Iterable[OperationChange], thing: int) -> Iterator[DataCell]:
    """The contents of a file, cut wherever one of the changes of them begins or ends, and into sectors where one
    writes."""
    first = history.steps[0].inodes.get(thing)
    edges = {0, 0 if first is None else first.size}
    for change in made:
        reach = _reach(history, change)
        edges |= {reach.start, reach.stop, *reach.sizes[-1:]}
        if reach.data is not None:
            begin = (reach.start // SECTOR_BYTES + 1) * SECTOR_BYTES
            edges.update(range(begin, reach.stop, SECTOR_BYTES))
    yield from (DataCell(thing, start, stop) for start, stop in pairwise(sorted(edges)))
