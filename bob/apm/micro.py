"""Micro-operations: the small steps into which bob splits the operations of a workload. After a crash, each has
persisted as a whole or not at all (OSDI'14, section 4.2). A micro-operation puts a value into a *cell*: a name, a size,
a piece of contents, or an attribute. A cell shows the last value that persisted. Sizes are in bytes. A *clause* is one
promise of a model about what persists."""

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
    WRITE_BLOCK = "write_block"
    CHANGE_FILE_SIZE = "change_file_size"
    CREATE_DIR_ENTRY = "create_dir_entry"
    DELETE_DIR_ENTRY = "delete_dir_entry"
    SET_ATTRIBUTE = "set_attribute"


@dataclass(frozen=True, slots=True)
class NameCell:
    """The name ``place[1]`` in the directory ``place[0]``. Its value is the number of the file, directory or link that
    the name leads to; None if the name does not exist."""

    place: NamePlace


@dataclass(frozen=True, slots=True)
class SizeCell:
    thing: int


@dataclass(frozen=True, slots=True)
class DataCell:
    """The bytes of a file from ``start`` up to ``stop``; at most one sector."""

    thing: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class AttributeCell:
    """An extended attribute, the mode or the owner of a file. Its value is bytes, or None."""

    thing: int
    name: str


TreeCell = NameCell | SizeCell | DataCell | AttributeCell
Value = int | bytes | None


@dataclass(frozen=True, slots=True)
class MicroOperation:
    """A micro-operation: it puts ``value`` into ``cell``. It is part of the change with index ``change``. ``number``
    says which operation of the workload makes this change (1: the first one). ``block`` is the number of a 4 KiB block
    of the file. If the micro-operation writes data, the data is in this block. If it sets a size, the file then ends in
    this block. For any other micro-operation, ``block`` is None."""

    kind: MicroKind
    number: int
    change: int
    cell: TreeCell
    value: Value
    block: int | None = None


@dataclass(frozen=True, slots=True)
class Growth:
    """The growth of a file by an append. ``before`` is the size of the file before the append. ``largest`` is the
    largest size that it had until then. ``is_asked_in_part`` says that some call syncs only a range of the file: the
    append itself (for example with O_SYNC), or a later call."""

    before: int
    largest: int
    is_asked_in_part: bool

    def begins(self, block: int | None) -> bool:
        return block is not None and block * BLOCK_BYTES >= self.before

    def is_in_place(self, operation: MicroOperation) -> bool:
        """Return whether a micro-operation of the append writes data to a place that was inside the file before an
        earlier truncation. The result is False if the whole block of this place lies behind the end that the file had
        before the append."""
        cell = operation.cell
        return isinstance(cell, DataCell) and cell.start < self.largest and not self.begins(operation.block)


@dataclass(frozen=True, slots=True)
class Workings:
    """The changes and micro-operations of a workload, in program order. Most fields refer to a micro-operation by its
    index in ``operations``. ``writers`` has, for each cell, the micro-operations that write it, and ``sizes`` has, for
    each file, pairs of a size and the micro-operation that sets this size. ``pieces`` has the data cells of each file
    by offset. ``freed`` has the files that are removed, replaced or truncated.

    Three fields name changes by their index in ``changes``. ``grown`` has the appends. ``asked`` has the changes whose
    file or directory is synced by the same or a later call. (A sync of the whole file system does not count.)
    ``logged`` has changes that may persist before other changes, because btrfs writes the changes of synced files into
    a log. ``memory`` is a cache."""

    history: History
    places: NamePlaces
    changes: tuple[OperationChange, ...]
    operations: tuple[MicroOperation, ...]
    writers: Mapping[TreeCell, tuple[int, ...]]
    pieces: Mapping[int, tuple[DataCell, ...]]
    sizes: Mapping[int, Sequence[tuple[int, int]]]
    grown: Mapping[int, Growth]
    freed: frozenset[int]
    asked: frozenset[int]
    logged: frozenset[int]
    memory: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)

    def means(self, change: int) -> Means:
        return means_of(self.changes[change].kind, is_logged=change in self.logged)

    def is_cut(self, operation: int) -> bool:
        """Return whether the micro-operation with this index belongs to a truncation, which frees the blocks behind the
        new end."""
        return self.changes[self.operations[operation].change].kind is ChangeKind.TRUNCATE_DOWN

    def is_of_a_log(self, order: Ordered, after: int) -> bool:
        """Return whether the later of two changes may persist without the earlier one because of a log. btrfs writes
        changes of synced files into a log before other changes persist. ``order`` is the clause for the order of the
        two changes. ``after`` is the index of the later change."""
        return order.is_of_a_name and after in self.logged


def workings(history: History, finish: Sequence[ops.Operation] = ()) -> Workings:
    """Return the changes and micro-operations of ``history``. The operations of the ``finish`` (how the workload ends)
    come after the history. They decide which changes are synced, but the result does not have the changes that they
    make. Raises UsageError for an operation that models do not know."""
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
    sizes = {
        cell.thing: sorted((int(operations[at].value or 0), at) for at in who)
        for cell, who in written.items()
        if isinstance(cell, SizeCell)
    }
    return Workings(history, places, made, operations, written, pieces, sizes, grown, freed, asked, logged)


def block_of(offset: int) -> int:
    return offset // BLOCK_BYTES


def _freed(history: History, made: Sequence[OperationChange]) -> Iterator[int]:
    """Yield the files that lose blocks, because they are truncated, removed or replaced. Another file may get such
    blocks."""
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
    operation, (thing,) = history.operations[change.number - 1], change.things
    was = history.steps[change.number - 1].inodes.get(thing)
    is_cut = isinstance(operation, ops.Write) and operation.how is ops.How.TRUNC
    return 0 if was is None or is_cut else was.size


def _growths(history: History, made: Sequence[OperationChange], in_part: Set[int]) -> Iterator[tuple[int, Growth]]:
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
        is_set = history.steps[number].inodes[thing].attributes.get(name)  # None: the attribute is removed
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
    """The range of a file that a change affects, from ``start`` up to ``stop``. The change writes ``data`` from
    ``start`` on (None: it writes no data). ``sizes`` are the sizes that the file has one after the other while the
    change is made."""

    thing: int
    start: int
    stop: int
    data: bytes | None
    sizes: tuple[int, ...] = ()


def _reach(history: History, change: OperationChange) -> _Reach:
    operation, (thing,) = history.operations[change.number - 1], change.things
    before, now = history.steps[change.number - 1].inodes, history.steps[change.number].inodes[thing]
    if change.kind is ChangeKind.TRUNCATE_DOWN:
        size, after = before[thing].size, 0 if isinstance(operation, ops.Write) else now.size
        return _Reach(thing, after, size, bytes(size - after), (after,))
    size = _size_before(history, change)
    if isinstance(operation, ops.WRITING_OPERATIONS):
        _thing, start, length = history.data[change.number]
        stop = start + length
        if change.kind is ChangeKind.OVERWRITE:
            return _Reach(thing, start, min(stop, size), now.read(start, min(stop, size)))
        start = max(start, size)
        return _Reach(thing, start, stop, now.read(start, stop), _sizes(size, stop))
    if change.kind is ChangeKind.ZERO:
        assert isinstance(operation, ops.Fallocate)
        return _Reach(thing, operation.offset, operation.offset + operation.length, bytes(operation.length))
    return _Reach(thing, size, now.size, None, _sizes(size, now.size) if now.size > size else ())


def _sizes(size: int, after: int) -> tuple[int, ...]:
    first = (size // BLOCK_BYTES + 1) * BLOCK_BYTES
    return (*range(first, after, BLOCK_BYTES), after)


def _start(cell: DataCell) -> int:
    return cell.start


def _pieces(history: History, made: Iterable[OperationChange], thing: int) -> Iterator[DataCell]:
    """Yield all bytes of a file as cells. A cell begins or ends where any change begins or ends; within a written
    range, cells are cut at sector boundaries, too."""
    first = history.steps[0].inodes.get(thing)
    edges = {0, 0 if first is None else first.size}
    for change in made:
        reach = _reach(history, change)
        edges |= {reach.start, reach.stop, *reach.sizes[-1:]}
        if reach.data is not None:
            begin = (reach.start // SECTOR_BYTES + 1) * SECTOR_BYTES
            edges.update(range(begin, reach.stop, SECTOR_BYTES))
    yield from (DataCell(thing, start, stop) for start, stop in pairwise(sorted(edges)))
