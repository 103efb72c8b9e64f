"""Compute digests of the trees that sets of micro-operations (bit masks) leave. A *micro-operation* persists as a whole
or not at all. A *hole* is a part of a file whose data did not persist. A crash may leave zeros or stale data (old
contents of blocks) there. The digest of a file has its size and the sum of the hashes of its sectors, modulo 2**128. To
save time, bob computes these sums from the sums that it has of a similar tree."""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TypeVar

from bob.apm.clauses import Clause, Fill, Never
from bob.apm.holes import Hole, hole, stale_at
from bob.apm.micro import AttributeCell, DataCell, NameCell, SizeCell, Workings
from bob.apm.trees import ModelEntry, ModelTree, Remnant, first_names
from bob.trace.model import SECTOR_BYTES
from bob.workload.history import FileKind
from bob.workload.kinds import ChangeKind

DIGEST_BYTES = 16
_MODULUS = 1 << 8 * DIGEST_BYTES
KEPT, KEPT_SUMS = (
    4,
    64,
)  # how many are kept in memory: contents of files; sums of files, and lists of names
FILLINGS = 3  # ways to fill holes, if allowed: zeros, old contents of the disk, contents of the file before a cut


def digest(*parts: bytes) -> bytes:
    """Return a digest of a sequence of parts. The digests of two different sequences differ."""
    made = blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        made.update(len(part).to_bytes(8, "little"))
        made.update(part)
    return made.digest()


def shape_of(output: bytes, tree: ModelTree) -> bytes:
    """Return one digest of a program's ``output`` before a crash, and of the ``tree`` after it. The digest covers the
    output, and the tree's paths, kinds, targets of symbolic links, hard links and contents. It does not cover extended
    attributes, modes and owners, which may differ between a model's tree and an observed tree."""
    return _shape(output, [(path, entry, _sum_of(entry.content)) for path, entry in tree])


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the ones in a mask, ascending."""
    for at, byte in enumerate(mask.to_bytes((mask.bit_length() + 7) // 8, "little")):
        while byte:
            lowest = byte & -byte
            yield 8 * at + lowest.bit_length() - 1
            byte ^= lowest


def _mask(places: Iterable[int]) -> int:
    return sum(1 << at for at in places)


T = TypeVar("T")


def _remembered(kept: OrderedDict[int, T], key: int, make: Callable[[], T]) -> T:
    if key not in kept:
        kept[key] = make()
        if len(kept) > KEPT_SUMS:
            kept.popitem(last=False)
    kept.move_to_end(key)
    return kept[key]


class Shapes:
    """Digests of the trees that sets of micro-operations leave, in a model with the clauses ``promised``. The clauses
    decide what holes (parts of files whose data is missing) may show. ``taken`` is the workload, taken apart into
    micro-operations."""

    def __init__(self, taken: Workings, promised: Set[Clause]) -> None:
        self._taken, self._promised = taken, promised
        self._of_names = self._of_status = 0
        of_contents: dict[int, int] = {}
        for at, operation in enumerate(taken.operations):
            match operation.cell:
                case NameCell():
                    self._of_names |= 1 << at
                case AttributeCell():
                    self._of_status |= 1 << at
                case DataCell(thing) | SizeCell(thing):
                    of_contents[thing] = of_contents.get(thing, 0) | 1 << at
        self._files = {thing: _WrittenFile(taken, promised, thing, mask) for thing, mask in of_contents.items()}
        self._unchanged: dict[int, Sequence[bytes]] = {}
        self._listings: OrderedDict[int, dict[str, int]] = OrderedDict()
        self._entries: OrderedDict[int, dict[int, ModelEntry]] = OrderedDict()

    @property
    def shows_stale(self) -> bool:
        return any(file.shows_stale for file in self._files.values())

    def of(self, output: bytes, there: int) -> list[tuple[bytes, bytes]]:
        """Return two digests for each tree that the set ``there`` of micro-operations leaves. There may be several
        trees, because holes may be filled in several ways (:data:`FILLINGS`). The first digest covers everything that a
        program can see in the tree, so it also covers attributes, modes and owners. The second is the result of
        :func:`shape_of`, which does not cover these. Each digest covers ``output``, too."""
        listing = self._listing(there)
        entries = self._status(there, listing)
        sums = {thing: self._sums(thing, there) for thing, entry in entries.items() if entry.kind == FileKind.FILE}
        found: dict[bytes, bytes] = {}
        for variant in range(FILLINGS if any(one[0] != one[1] for one in sums.values()) else 1):
            shape = _shape(
                output,
                [
                    (path, entries[of], sums[of][variant] if of in sums else _sealed(0, 0))
                    for path, of in listing.items()
                ],
            )
            found[_with_status(shape, [entries[of] for of in listing.values()])] = shape
        return list(found.items())

    def tree(self, there: int, variant: int) -> ModelTree:
        listing = self._listing(there)
        made = {
            one: replace(entry, content=self._content(one, there, variant)) if entry.kind == FileKind.FILE else entry
            for one, entry in self._status(there, listing).items()
        }
        return tuple((path, made[thing]) for path, thing in listing.items())

    def trees(self, there: int) -> list[ModelTree]:
        return [self.tree(there, variant) for variant in range(len(self.of(b"", there)))]

    def _remnant(self, there: int) -> Remnant:
        return Remnant(self._taken, {self._taken.operations[at].cell: at for at in bits(there)})

    def _listing(self, there: int) -> dict[str, int]:
        there &= self._of_names
        return _remembered(self._listings, there, lambda: self._remnant(there).listing())

    def _status(self, there: int, listing: Mapping[str, int]) -> dict[int, ModelEntry]:
        there &= self._of_status
        known = _remembered(self._entries, there, dict[int, ModelEntry])
        if missing := [thing for thing in dict.fromkeys(listing.values()) if thing not in known]:
            remnant = self._remnant(there)
            known.update((thing, remnant.without_content(thing)) for thing in missing)
        first = first_names(listing)
        return {
            thing: replace(known[thing], same=name) if known[thing].kind == FileKind.FILE else known[thing]
            for thing, name in first.items()
        }

    def _sums(self, thing: int, there: int) -> Sequence[bytes]:
        if thing in self._files:
            return self._files[thing].sums(there)
        if thing not in self._unchanged:
            self._unchanged[thing] = (_sum_of(self._initial(thing)),) * FILLINGS
        return self._unchanged[thing]

    def _content(self, thing: int, there: int, variant: int) -> bytes:
        return self._files[thing].content(there, variant) if thing in self._files else self._initial(thing)

    def _initial(self, thing: int) -> bytes:
        inode = self._taken.history.steps[0].inodes.get(thing)
        return b"" if inode is None else inode.content


@dataclass(frozen=True, slots=True)
class _FileContent:
    """The content of a file if exactly the micro-operations in the set ``there`` have persisted. ``size`` is in bytes.
    ``holes`` has the numbers of the sectors with holes, where data is missing. Holes may be filled in several ways. For
    each way, ``sums`` has the sum of the hashes of all sectors."""

    there: int
    size: int
    sums: tuple[int, ...]
    holes: frozenset[int]


class _WrittenFile:
    """A file that micro-operations write. It computes the content that the file has if the set ``there`` of
    micro-operations persisted. To save time, it begins with the content for a similar set. ``taken`` has the
    micro-operations of the workload."""

    def __init__(self, taken: Workings, promised: Set[Clause], thing: int, mask: int) -> None:
        self._taken, self._promised, self._mask = taken, promised, mask
        inode = taken.history.steps[0].inodes.get(thing)
        self._initial = b"" if inode is None else inode.content
        self._cells = taken.pieces[thing]
        self._stops = [cell.stop for cell in self._cells]
        self._writers = [_mask(taken.writers.get(cell, ())) for cell in self._cells]
        self._of_size = _mask(taken.writers.get(SizeCell(thing), ()))
        self._held: OrderedDict[int, _FileContent] = OrderedDict()
        self._made: OrderedDict[tuple[int, int], bytes] = OrderedDict()
        self._holes: dict[tuple[int, int], _HoleValues] = {}
        self.shows_stale = False

    def sums(self, there: int) -> tuple[bytes, ...]:
        held = self._hold(there & self._mask)
        return tuple(_sealed(held.size, one) for one in held.sums)

    def content(self, there: int, variant: int) -> bytes:
        there &= self._mask
        if (there, variant) in self._made:
            return self._made[there, variant]
        base: tuple[int, int] | None = min(
            (one for one in self._made if one[1] == variant), key=lambda one: (one[0] ^ there).bit_count(), default=None
        )
        size = self._size(there)
        made = bytearray() if base is None else bytearray(self._made[base])
        before = 0 if base is None else base[0]
        changed = self._between(len(made), size) if base is not None else range(-(-size // SECTOR_BYTES))
        del made[size:]
        made += bytes(size - len(made))
        holes = () if base is None else {*self._hold(before).holes, *self._hold(there).holes}
        for sector in {*changed, *holes, *self._touched(before ^ there)}:
            start = sector * SECTOR_BYTES
            if start < size:
                found = self._sector(sector, there, size)[0]
                data = found[variant]
                made[start : start + len(data)] = data
        self._made[there, variant] = bytes(made)
        if len(self._made) > KEPT:
            self._made.popitem(last=False)
        return self._made[there, variant]

    def _hold(self, there: int) -> _FileContent:
        return _remembered(self._held, there, lambda: self._derived(there))

    def _derived(self, there: int) -> _FileContent:
        base = min(self._held.values(), key=lambda one: (one.there ^ there).bit_count(), default=_NOTHING)
        size = self._size(there)
        sectors = {*self._between(base.size, size), *self._touched(base.there ^ there)}
        if (base.there ^ there) & self._of_size:  # the sizes that persisted decide what a hole shows
            sectors |= base.holes
        if base is _NOTHING:
            sectors = set(range(-(-size // SECTOR_BYTES)))
        sums, holes = list(base.sums), set(base.holes)
        for sector in sectors:
            before, _had = self._sector(sector, base.there, base.size) if base is not _NOTHING else _NO_SECTOR
            after, has = self._sector(sector, there, size)
            for variant in range(FILLINGS):
                if before[variant] != after[variant]:
                    sums[variant] += _hash(sector, after[variant]) - _hash(sector, before[variant])
            (holes.add if has else holes.discard)(sector)
        return _FileContent(there, size, tuple(one % _MODULUS for one in sums), frozenset(holes))

    def _size(self, there: int) -> int:
        last = (there & self._of_size).bit_length() - 1
        return len(self._initial) if last < 0 else int(self._taken.operations[last].value or 0)

    @staticmethod
    def _between(size: int, other: int) -> range:
        if size == other:
            return range(0)
        return range(min(size, other) // SECTOR_BYTES, -(-max(size, other) // SECTOR_BYTES))

    def _touched(self, changed: int) -> Iterator[int]:
        for at in bits(changed & ~self._of_size):
            cell = self._taken.operations[at].cell
            assert isinstance(cell, DataCell)
            yield cell.start // SECTOR_BYTES

    def _sector(self, sector: int, there: int, size: int) -> tuple[tuple[bytes, ...], bool]:
        """Return the content of a sector up to the file's end, once for each way to fill holes. Then return whether the
        sector has a hole."""
        start = sector * SECTOR_BYTES
        end = min(start + SECTOR_BYTES, size)
        if start >= end:
            return _NO_SECTOR
        made, has = [bytearray(end - start)], False  # one copy for all fillings until these differ
        place = bisect_left(self._stops, start + 1)
        while place < len(self._cells) and self._cells[place].start < end:
            cell = self._cells[place]
            first, stop = max(cell.start, start), min(cell.stop, end)
            last = (there & self._writers[place]).bit_length() - 1
            if (known := self._known(cell, last)) is not None:
                parts = [known[first - cell.start : stop - cell.start]]
            else:
                has = True
                parts = self._in_hole(place, there, last, first, stop)
                if len(made) < len(parts):
                    made = [bytearray(made[0]) for _ in parts]
            for at, one in enumerate(made):
                one[first - start : stop - start] = parts[at if len(parts) > 1 else 0]
            place += 1
        found = [bytes(one) for one in made]
        return tuple(found * FILLINGS if len(found) == 1 else found), has

    def _known(self, cell: DataCell, last: int) -> bytes | None:
        """Return the bytes of a piece of the file. ``last`` is the last micro-operation on the piece that persisted
        (-1: none did). Return None if the piece lacks data (a hole)."""
        if last < 0:
            if cell.start >= len(self._initial):
                return None
            return self._initial[cell.start : cell.stop].ljust(cell.stop - cell.start, b"\0")
        if self._taken.is_cut(last):
            return None
        value = self._taken.operations[last].value
        assert isinstance(value, bytes)
        return value

    def _in_hole(self, place: int, there: int, cut: int, first: int, stop: int) -> list[bytes]:
        """Return the bytes that a hole shows from ``first`` up to ``stop``, once for each way to fill holes. If the
        bytes are the same in all ways, return them once. ``cut`` is the micro-operation that cut the piece off, or
        -1."""
        fills = self._fills(place, there, cut)
        self.shows_stale |= any(fills)
        old, nothing = stale_at(first, stop - first), bytes(stop - first)
        if fills[0] == fills[1]:
            return [old if fills[0] else nothing]
        cell, own = self._cells[place], None
        if cut >= 0:
            before = there & self._writers[place]
            while (last := before.bit_length() - 1) >= 0 and self._taken.is_cut(last):
                before ^= 1 << last
            own = self._known(cell, last)
        return [nothing, old, old if own is None else own[first - cell.start : stop - cell.start]]

    def _fills(self, place: int, there: int, cut: int) -> tuple[bool, bool]:
        """Return whether a hole shows stale contents, for each of two ways to fill holes. If the model allows both
        zeros and stale contents in the hole, the first way takes zeros (False), and the second takes stale contents
        (True). Otherwise the two results are the same."""
        missing = self._missing(place, cut)
        if missing.not_zeros & there and missing.not_stale & there:
            # A crash state does not show an earlier size, so that size need not have persisted.
            there = 1 << (missing.own & there).bit_length() >> 1
        may_be_zeros = cut >= 0 or not missing.not_zeros & there
        may_be_stale = missing.may_be_stale and not missing.not_stale & there
        return may_be_stale and not may_be_zeros, may_be_stale

    def _missing(self, place: int, cut: int) -> _HoleValues:
        if (place, cut) not in self._holes:
            self._holes[place, cut] = _HoleValues.of(hole(self._taken, self._cells[place], cut), self._promised)
        return self._holes[place, cut]


@dataclass(frozen=True, slots=True)
class _HoleValues:
    """Conditions on the contents that a hole may show. They depend on the persisted sizes of the file. ``not_zeros``,
    ``not_stale`` and ``own`` are masks of micro-operations that set sizes. If a size in ``not_zeros`` persisted, the
    hole does not show zeros. If a size in ``not_stale`` persisted, it does not show stale contents. ``own`` has the
    sizes that were set by appends to the place of the hole. ``may_be_stale`` says whether stale contents are possible
    at all."""

    not_zeros: int
    not_stale: int
    may_be_stale: bool
    own: int

    @classmethod
    def of(cls, missing: Hole, promised: Set[Clause]) -> _HoleValues:
        forbidding = {
            fill: frozenset[int]().union(
                *(of for where, of in missing.sizes.items() if Never(ChangeKind.APPEND, fill, where) in promised)
            )
            for fill in Fill
        }
        may_be_stale = missing.kind is not None and Never(missing.kind, Fill.STALE) not in promised
        return cls(_mask(forbidding[Fill.ZEROS]), _mask(forbidding[Fill.STALE]), may_be_stale, _mask(missing.own))


_NOTHING = _FileContent(0, 0, (0,) * FILLINGS, frozenset())
_NO_SECTOR = (b"",) * FILLINGS, False


def _sum_of(content: bytes) -> bytes:
    sectors = range(0, len(content), SECTOR_BYTES)
    total = sum(_hash(at // SECTOR_BYTES, content[at : at + SECTOR_BYTES]) for at in sectors)
    return _sealed(len(content), total % _MODULUS)


def _sealed(size: int, total: int) -> bytes:
    return size.to_bytes(8, "little") + total.to_bytes(DIGEST_BYTES, "little")


def _hash(sector: int, data: bytes) -> int:
    """Return the hash of a sector. Zeros at the end of the sector do not change the hash, so a sector at the file's end
    has the same hash as one that zeros follow. (The file's size, which is hashed too, tells them apart.)"""
    data = data.rstrip(b"\0")
    if not data:
        return 0
    return int.from_bytes(blake2b(sector.to_bytes(8, "little") + data, digest_size=DIGEST_BYTES).digest(), "little")


def _shape(output: bytes, seen: Iterable[tuple[str, ModelEntry, bytes]]) -> bytes:
    made = blake2b(digest(output), digest_size=DIGEST_BYTES)
    for path, entry, content in seen:
        target = "" if entry.kind == FileKind.DIRECTORY else entry.target  # a directory's is the order of its names
        more = repr((entry.kind, target, entry.same)).encode()
        made.update(digest(path.encode(errors="surrogateescape"), more, content))
    return made.digest()


def _with_status(shape: bytes, entries: Iterable[ModelEntry]) -> bytes:
    return digest(shape, repr([(entry.xattrs, entry.mode, entry.owner) for entry in entries]).encode())
