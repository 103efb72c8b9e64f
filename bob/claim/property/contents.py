"""Find the operations on a file that explain its size, and each of its bytes, after a crash.

A crash may leave out or tear any operation. So a byte shows one of four facts about operation k:

* AFTER: only k can have put it there.
* BEFORE: k did not put it there. The byte is from the initial file or an earlier operation, or it is a zero in a hole
  that another operation left.
* EITHER: with or without k, the byte would be the same.
* NEITHER: only a torn k explains it.

If only a torn operation explains a byte, but several operations wrote there, bob cannot say which of them is torn. In
this case all of them are *suspects*. The fact is BEFORE for the last of them, and EITHER for the rest.

The size of the file shows the same facts. fallocate(2) can shift bytes to another offset. So a byte may come from
several offsets, and bob tries each of them (:mod:`bob.claim.property.shifts`). Offsets are in bytes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bob.claim.property.shifts import Origin, Shift, origins
from bob.workload import operations as ops
from bob.workload.history import History

Sizes = frozenset[tuple[int, int]]  # ranges of sizes, both ends included


class Fact(Enum):
    BEFORE = "before"
    AFTER = "after"
    EITHER = "either"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class Stretch:
    """A fact about the bytes from ``start`` up to, not including, ``stop``."""

    start: int
    stop: int
    fact: Fact
    suspects: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class ContentChange:
    """The change that operation ``number`` makes to a file, whatever the file contains.

    First the operation sets the size to ``cut`` (None: it does not). Then it puts ``data`` at offset ``start``, and
    grows the file to ``stop`` bytes if the file is shorter. If the operation is torn, the file may get any size between
    ``bottom`` and ``stop``. ``resizes`` is True if the size changed when all operations ran in program order.
    ``keeps_size`` is True for an fallocate(2) that never changes the size, not even if it is torn. If ``shift`` is set,
    the operation inserts or removes bytes at ``start`` (fallocate(2)), which moves all bytes behind them."""

    number: int
    cut: int | None
    bottom: int
    start: int
    stop: int
    data: bytes
    resizes: bool
    keeps_size: bool = False
    shift: Shift | None = None

    def covers(self, at: int) -> bool:
        return self.start <= at < self.start + len(self.data)

    def concerns(self, origin: Origin) -> bool:
        """Return whether this change writes or shifts the byte that ``origin`` is about. The last change that does so
        decides the byte's value. ``origin`` has the byte's offset after the crash, and the shifts that survived."""
        at = origin.after(self.number)
        return at is not None and (self.covers(at) if self.shift is None else at >= self.start)

    def reaches(self, at: int) -> bool:
        """Return whether this change affects the byte at offset ``at`` in another way than by writing data there. It
        does if it grows the file over this byte, truncates the file to ``at`` bytes or fewer, or shifts the byte."""
        if self.shift is not None:
            return self.start <= at
        return self.bottom <= at < self.stop or (self.cut is not None and self.cut <= at)

    def whole(self, sizes: Sizes, stop: int | None = None) -> Sizes:
        """Return the possible sizes after the operation, given the possible ``sizes`` before it. If ``stop`` is set,
        only the part of the operation up to offset ``stop`` has happened."""
        if self.shift is not None:
            return frozenset((self.shift.moved(low), self.shift.moved(high)) for low, high in sizes)
        if self.cut is not None:
            sizes = frozenset({(self.cut, self.cut)})
        reach = self.stop if stop is None else stop
        return frozenset((max(low, reach), max(high, reach)) for low, high in sizes)

    def torn(self, sizes: Sizes) -> Sizes:
        """Return the sizes that only a torn operation can leave, given the ``sizes`` before it."""
        cut = frozenset() if self.cut is None else frozenset({(self.cut, self.cut)})
        low = min((low for low, _high in sizes | cut), default=0)
        return cut if low >= self.stop else cut | {(max(low, self.bottom) + 1, self.stop)}


class FileStory:
    """All sizes and contents that one file may have after a crash, calculated from the operations that change the
    file."""

    def __init__(self, history: History, identity: int) -> None:
        first = history.steps[0].inodes.get(identity)
        self.initial = b"" if first is None else first.content
        self.changes = tuple(_changes(history, identity))
        self._by_number = {change.number: change for change in self.changes}
        self._shifts = tuple(change.shift for change in self.changes if change.shift is not None)
        self._edges = self._all_edges()
        self._possible = self._sizes()

    @property
    def writers(self) -> frozenset[int]:
        return frozenset(self._by_number)

    @property
    def sizers(self) -> frozenset[int]:
        return frozenset(change.number for change in self.changes if not change.keeps_size)

    @property
    def is_entangled(self) -> bool:
        """True if an operation shifts a range of the file, and another operation changes the file, too."""
        return bool(self._shifts) and len(self.changes) > 1

    def size(self, number: int, size: int) -> tuple[Fact, frozenset[int]]:
        """Return what the file's ``size`` shows about operation ``number``: a fact, and suspects. There are suspects
        only if the size is possible neither without the operation nor with the whole operation. At least one of the
        suspects must be torn."""
        without, along = _within(size, self._sizes(left_out=number)), _within(size, self._sizes(whole=number))
        own = self._by_number[number]
        is_inside = own.bottom < size < own.stop
        if is_inside and without and not own.resizes:
            # The operation did not grow the file, so it cannot have left the file short.
            return Fact.EITHER, frozenset()
        if without or along:
            return fact_of(without=without, along=along), frozenset()
        resizing = frozenset(change.number for change in self.changes if change.resizes) or self.writers
        if is_inside or size == own.cut or resizing == {number}:
            return Fact.NEITHER, frozenset({number})
        return Fact.EITHER, resizing

    def is_partly(self, number: int, size: int, before: int) -> bool:
        """Return whether ``size`` shows that a part of operation ``number`` is there. ``before`` is the file's size
        before the operation. The size shows such a part in two cases. In the first case, the file has grown by less
        than the whole operation grows it. In the second case, the operation truncates the file and then grows it again,
        but the file has only been truncated."""
        own = self._by_number[number]
        bottom = own.bottom if own.cut is not None else max(own.bottom, before)
        return bottom < size < own.stop or (size == own.cut != own.stop)

    def may_have(self, size: int) -> bool:
        """Return whether a crash can leave the file with ``size``, if every operation may be torn."""
        return _within(size, self._possible) or any(change.bottom < size < change.stop for change in self.changes)

    def is_size_with(self, number: int, size: int, stop: int) -> bool:
        """Return whether the file may have ``size`` if only the part of operation ``number`` up to offset ``stop`` is
        there."""
        if stop <= self._by_number[number].start:
            return _within(size, self._sizes(left_out=number))
        return _within(size, self._sizes(whole=number, stop=stop))

    def data(self, number: int, found: bytes) -> Iterator[Stretch]:
        """Yield facts about operation ``number``, one for each range of its bytes in the contents ``found``. If a shift
        moved data, the bytes sometimes do not show whether the operation happened. In that case the fact is EITHER."""
        if not self.is_entangled:
            yield from self._stretches(number, found)
            return
        stretches = list(self._stretches(number, found))
        facts = {stretch.fact for stretch in stretches}
        is_torn = any(stretch.suspects for stretch in stretches) or Fact.NEITHER in facts
        if is_torn or {Fact.BEFORE, Fact.AFTER} <= facts:
            yield Stretch(stretches[0].start, stretches[-1].stop, Fact.EITHER, self.writers)
        else:
            yield from stretches

    def _stretches(self, number: int, found: bytes) -> Iterator[Stretch]:
        own = self._by_number[number]
        zeroing = self._zeroing(number, len(found))
        first, last = (0, len(found)) if self._shifts else (own.start, min(own.start + len(own.data), len(found)))
        for start, stop in self._pieces(first, last):
            if not any(own.concerns(origin) for origin in origins(self._shifts, start)):
                continue
            zeroed = frozenset(change.number for change in zeroing if self._is_cut(change, start))
            yield from self._compare(number, start, stop, found[start:stop], zeroed)

    def is_mixed_by_bytes(self, one: bytes, other: bytes) -> bool:
        """Return whether bob can judge each byte alone in any mixture of the two contents. A mixture takes each byte
        from ``one`` or from ``other``. bob can judge a byte alone if the fact that the byte shows about an operation
        does not depend on the other bytes.

        The conditions for this are as follows. The contents have the same length, and no operation shifts bytes of the
        file. The contents differ only where operations wrote data. In the ranges of these operations, each byte shows a
        single source: exactly one operation or the initial file has this byte at this offset. No byte there is zero
        (zeros may be a hole)."""
        if self._shifts or len(one) != len(other):
            return False
        contents = [np.frombuffer(content, dtype=np.uint8) for content in (one, other)]
        differs = contents[0] != contents[1]
        sources = [(0, self.initial), *((change.start, change.data) for change in self.changes)]
        for start, data in sources[1:]:
            span = slice(start, min(start + len(data), len(one)))
            if not differs[span].any():
                continue
            for content in contents:
                shown = sum(_shows(content, span, *source) for source in sources)
                if not ((shown == 1) & (content[span] != 0)).all():
                    return False
        for start, data in sources[1:]:
            differs[start : start + len(data)] = False
        return not differs.any()

    def may_be(self, found: bytes) -> bool:
        """Return whether a crash can leave the contents ``found``, if every operation may be torn."""
        if not _within(len(found), self._possible):
            return False
        return all(
            bool(self._concerned(start))
            or found[start:stop] == self.initial[start:stop]
            or (self._is_hole(Origin(start), self.changes) and not any(found[start:stop]))
            for start, stop in self._pieces(0, len(found))
        )

    def outside(self, found: bytes) -> Iterator[tuple[int, int, frozenset[int]]]:
        """Yield the ranges of ``found`` that have wrong bytes although no operation wrote data there. No set of
        operations explains these bytes, even if some operations are torn.

        Yield each range together with the operations that affect it in another way, such as by a truncation. If no
        operation affects a range, yield it together with all operations that change the file. Some bytes lie behind the
        initial end of the file, or behind an offset where an operation truncates it. Such a byte is not wrong if it is
        zero or has its initial value, since a crash may tear a truncation."""
        kept = min([len(self.initial), *(change.cut for change in self.changes if change.cut is not None)])
        for start, stop in self._pieces(0, len(found)):
            if self._concerned(start) or self._is_initial(Origin(start), found[start:stop]):
                continue
            if start >= kept and all(byte in (0, was) for byte, was in self._beside(found, start, stop)):
                continue
            here = frozenset(change.number for change in self.changes if change.reaches(start))
            yield start, stop, here or self.writers

    def _zeroing(self, number: int, size: int) -> list[ContentChange]:
        """Return the truncations that may be torn in a certain way: they left zeros behind the file's new end, but not
        the new size. ext4 writes such zeros (``ext4_block_truncate_page``). A truncation is in the result only if the
        file can have its ``size`` without this truncation. The change of operation ``number`` is never in the
        result."""
        cutting = [change for change in self.changes if change.cut is not None and change.number != number]
        return [change for change in cutting if _within(size, self._sizes(left_out=change.number))]

    def _compare(self, number: int, start: int, stop: int, found: bytes, zeroed: frozenset[int]) -> Iterator[Stretch]:
        """Yield facts about operation ``number`` from the bytes ``found`` between ``start`` and ``stop``. No change
        begins or ends between these offsets. The operations ``zeroed`` may have zeroed this range by a truncation."""
        without = along = False
        for origin in origins(self._shifts, start):
            is_without, is_along = self._explained(number, origin, found)
            without, along = without or is_without, along or is_along
        zeros = not any(found)
        along = along or (zeros and without and any(other > number for other in zeroed))
        if without or along:
            yield Stretch(start, stop, fact_of(without=without, along=along))
        elif zeros or stop - start == 1:
            others = self._concerned(start) - {number}
            others |= zeroed if zeros else frozenset()
            if others:
                fact = Fact.EITHER if max(others) > number else Fact.BEFORE
                yield Stretch(start, stop, fact, others | {number})
            else:
                yield Stretch(start, stop, Fact.NEITHER, frozenset({number}))
        else:
            middle = (start + stop) // 2
            yield from self._compare(number, start, middle, found[: middle - start], zeroed)
            yield from self._compare(number, middle, stop, found[middle - start :], zeroed)

    def _explained(self, number: int, origin: Origin, found: bytes) -> tuple[bool, bool]:
        """Return two answers about the bytes ``found``. The first says whether they can be there without operation
        ``number``, and the second whether they can be there with it. ``origin`` says which shifts moved these bytes."""
        own, shown = self._by_number[number], list(self._showing(origin, found))
        if own.shift is not None:
            is_explained = bool(shown) or (not any(found) and self._is_hole(origin, self.changes))
            is_there = origin.has(number)
            return is_explained and not is_there, is_explained and is_there
        is_elsewhere = not own.concerns(origin)
        without = any(other != number for other in shown)
        along = any(other >= number or is_elsewhere for other in shown)
        if not any(found):
            without = without or self._is_hole(origin, [c for c in self.changes if c.number != number])
            # Zeros that the operation wrote may also come from a torn append that set only the size.
            without = without or (not any(own.data) and self._is_grown(number, origin))
            along = along or (is_elsewhere and self._is_hole(origin, self.changes))
            along = along or self._is_hole(origin, [c for c in self.changes if c.number > number], is_there=True)
        return without, along

    def _showing(self, origin: Origin, found: bytes) -> Iterator[int]:
        """Yield the operations that may have written the bytes ``found``. ``origin`` says which shifts moved these
        bytes. The number 0 stands for the initial tree."""
        if self._is_initial(origin, found):
            yield 0
        for change in self.changes:
            at = origin.after(change.number)
            if at is not None and change.covers(at) and change.data.startswith(found, at - change.start):
                yield change.number
        if (shift := origin.put_in_by) is not None and not any(found):
            yield shift

    def _is_grown(self, number: int, origin: Origin) -> bool:
        growing = (change for change in self.changes if change.number != number and change.resizes)
        places = ((change, origin.after(change.number)) for change in growing)
        return any(at is not None and change.bottom <= at < change.stop for change, at in places)

    def _concerned(self, at: int) -> frozenset[int]:
        every = list(origins(self._shifts, at))
        return frozenset(change.number for change in self.changes if any(map(change.concerns, every)))

    def _is_cut(self, change: ContentChange, at: int) -> bool:
        places = (origin.after(change.number) for origin in origins(self._shifts, at))
        return change.cut is not None and any(place is not None and change.cut <= place for place in places)

    def _beside(self, found: bytes, start: int, stop: int) -> Iterator[tuple[int, int]]:
        return zip(found[start:stop], self.initial[start:stop].ljust(stop - start, b"\0"), strict=True)

    def _is_initial(self, origin: Origin, found: bytes) -> bool:
        start = origin.after(0)
        return start is not None and self.initial.startswith(found, start)

    def _is_hole(self, origin: Origin, changes: Iterable[ContentChange], *, is_there: bool = False) -> bool:
        """Return whether a certain byte can be zero if all of ``changes`` happened in full. ``origin`` says where the
        byte is now, and which shifts moved it. ``is_there`` says that the file had data in this byte before these
        changes."""
        first = origin.after(0)
        is_gone = not is_there and (first is None or first >= len(self.initial))
        for change in changes:
            at = origin.after(change.number)
            if at is None:
                continue
            if is_gone and change.stop > at and not change.covers(at):
                return True
            is_gone = is_gone or (change.cut is not None and change.cut <= at)
        return False

    def _pieces(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        cuts = [start, *(edge for edge in self._edges if start < edge < stop), stop]
        return ((low, high) for low, high in pairwise(cuts) if low < high)

    def _all_edges(self) -> list[int]:
        edges = {len(self.initial)}
        for change in self.changes:
            if change.shift is not None:
                edges |= {change.shift.moved(edge) for edge in edges}
                edges |= {change.start, change.start + max(0, change.shift.length)}
            else:
                edges |= {change.start, change.start + len(change.data), change.stop, change.cut or 0}
        return sorted(edges)

    def _sizes(self, *, left_out: int | None = None, whole: int | None = None, stop: int | None = None) -> Sizes:
        sizes: Sizes = frozenset({(len(self.initial), len(self.initial))})
        for change in self.changes:
            if change.number == whole:
                sizes = change.whole(sizes, stop)
            elif change.number != left_out:
                sizes |= change.whole(sizes) | change.torn(sizes)
        return sizes


def _changes(history: History, identity: int) -> Iterator[ContentChange]:
    for number, operation in enumerate(history.operations, start=1):
        was, now = history.steps[number - 1].inodes.get(identity), history.steps[number].inodes.get(identity)
        if now is None:
            continue
        size = 0 if was is None else len(was.content)
        resizes = size != len(now.content)
        match operation:
            case ops.Write(_path, _offset, length, how) if history.data[number][0] == identity:
                start = history.data[number][1]
                cut = 0 if how is ops.How.TRUNC else None
                stop = 0 if how is ops.How.MMAP else start + length  # a write through a mapping never changes the size
                data = now.content[start : start + length]
                yield ContentChange(number, cut, min(start, size), start, stop, data, resizes or cut is not None)
            case ops.CopyRange() | ops.Reflink() if history.data[number][0] == identity:
                _thing, start, length = history.data[number]
                data = now.content[start : start + length]
                yield ContentChange(number, None, min(start, size), start, start + length, data, resizes)
            case ops.Truncate(path, new) if history.steps[number].thing(path) == identity:
                yield ContentChange(number, new, new, new, new, b"", resizes)
            case ops.Fallocate(path, offset, length, mode) if history.steps[number].thing(path) == identity:
                if mode.shifts:
                    moved = -length if mode is ops.Allocation.COLLAPSE else length
                    yield ContentChange(number, None, 0, offset, 0, b"", True, shift=Shift(number, offset, moved))
                    continue
                # The operation zeroes the whole range that exists at that time, even if the file was longer than in
                # program order.
                data = bytes(length) if mode.zeroes else b""
                stop = offset + length if mode.grows else 0
                yield ContentChange(number, None, min(offset, size), offset, stop, data, resizes, not mode.grows)


def _shows(content: NDArray[np.uint8], span: slice, start: int, data: bytes) -> NDArray[np.int64]:
    """Return, for each byte of ``span`` of ``content``, 1 if it is equal to the byte of ``data`` at the same offset,
    otherwise 0. ``data`` begins at offset ``start``."""
    shows = np.zeros(span.stop - span.start, dtype=np.int64)
    low, high = max(start, span.start), min(start + len(data), span.stop)
    if low < high:
        own = np.frombuffer(data, dtype=np.uint8)[low - start : high - start]
        shows[low - span.start : high - span.start] = content[low:high] == own
    return shows


def fact_of(*, without: bool, along: bool) -> Fact:
    if without == along:
        return Fact.EITHER
    return Fact.AFTER if along else Fact.BEFORE


def _within(size: int, sizes: Iterable[tuple[int, int]]) -> bool:
    return any(low <= size <= high for low, high in sizes)
