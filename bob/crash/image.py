"""The content of the medium in a crash state, computed in time proportional to the sectors that may change.

The *base* is the medium before the recording. The *floor* is the set of writes that are durable in every state, and the
*ground* is the base with the floor on top. The *payload* has the data of all writes.

Only some sectors differ between states: those that a write outside of the floor covers. A state is computed as a vector
with one number for each of these sectors. The number 0 means that the sector has the same content as in the ground. The
number n + 1 means that it has the content of sector n of the payload.

An *entry* is one sector of one write outside of the floor. A *run* is a series of sectors that follow each other on the
medium, and whose contents follow each other in the payload: (first sector, first sector in the payload, number of
sectors)."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bob.crash.device import DeviceModel
from bob.crash.legal import GrowthPoint
from bob.crash.state import CrashState, effective
from bob.trace.model import SECTOR_BYTES, Trace

DIGEST_BYTES = 16  # bytes in a sector's digest and in a state's key
FEW_RANGES = 12  # up to so many ranges of a torn write, a loop in Python is faster than numpy

ByteRun = tuple[int, int, int]
"""``(sector, payload sector, count)``: the content of ``count`` sectors of the image from ``sector`` on is in the
payload, from ``payload sector`` on."""


def digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()


class Payload:
    """The sectors of all writes, numbered from 0. bob appends sectors, and never removes one. The sectors of one write
    follow each other.

    Two arrays describe the sectors; in both, row 0 stands for "as in the ground", and row n + 1 is about sector n.
    ``digests`` has shape (at least sectors + 1, 2): row 0 is all zeros, and row n + 1 is the digest of sector n.
    ``contents`` says which sectors have equal contents. Let m be the first sector with the content of sector n. Then
    row n + 1 of ``contents`` is m + 1."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._all = b""
        self._placed: dict[bytes, int] = {}
        self.digests: NDArray[np.uint64] = np.zeros((1024, 2), dtype=np.uint64)
        self.contents: NDArray[np.int32] = np.zeros(1024, dtype=np.int32)

    @property
    def sectors(self) -> int:
        return len(self._data) // SECTOR_BYTES

    def place(self, data: bytes) -> int:
        """Append ``data`` to the payload, unless the payload has it already. Return the number of the payload sector
        where ``data`` begins. The length of ``data`` is a multiple of the sector size."""
        if data in self._placed:
            return self._placed[data]
        at = self._placed[data] = self.sectors
        self._data += data
        while len(self.digests) <= self.sectors:
            self.digests = np.concatenate([self.digests, np.zeros_like(self.digests)])
            self.contents = np.concatenate([self.contents, np.zeros_like(self.contents)])
        contents = [data[start : start + SECTOR_BYTES] for start in range(0, len(data), SECTOR_BYTES)]
        rows = slice(at + 1, self.sectors + 1)
        self.contents[rows] = [
            self._placed.setdefault(content, number) + 1 for number, content in enumerate(contents, at)
        ]
        digests = b"".join(map(digest, contents))
        self.digests[rows] = np.frombuffer(digests, dtype=np.uint64).reshape(-1, 2)
        return at

    def sector(self, number: int) -> bytes:
        return bytes(self._data[number * SECTOR_BYTES : (number + 1) * SECTOR_BYTES])

    def since(self, sector: int) -> bytes:
        if len(self._all) != len(self._data):
            self._all = bytes(self._data)
        return self._all[sector * SECTOR_BYTES :]


class LandedSector(NamedTuple):
    """A sector of a write on the medium: the index of the write, the number of the sector in the write, and a number
    for the sector's content. Equal contents have the same number (:meth:`Composer.contents`)."""

    write: int
    sector: int
    content: int


@dataclass(frozen=True, slots=True, eq=False)
class _DurableImage:
    """The crash state, at a certain growth point, that has only the durable writes. A growth point is a time when the
    set of possible states changes. ``vector`` is the vector of this state, and ``entries`` are the entries of the
    pending writes. ``visible`` marks those entries that no later durable write hides (None: all entries)."""

    vector: NDArray[np.int32]
    entries: slice
    visible: NDArray[np.bool_] | None


class Composer:
    """A calculator of the contents of the crash states of one trace. The states must be legal
    (``bob.crash.state.check_state``). ``base_sector(n)`` returns the 512 bytes of sector ``n`` of the base; sectors are
    counted over all devices end to end. ``sectors`` lists, ascending, the sectors that the writes outside of the floor
    cover."""

    def __init__(
        self,
        trace: Trace,
        points: Sequence[GrowthPoint],
        model: DeviceModel,
        base_sector: Callable[[int], bytes],
    ) -> None:
        self.model = model
        self._trace = trace
        self._points = points
        self._base_sector = base_sector
        self._payload = Payload()
        self._durable: dict[int, _DurableImage] = {}
        self._address = [trace.address(write) for write in trace.writes]
        self._floor: dict[int, int] = {}  # from the sector to the payload sector
        self._lay_floor()
        self._lay_entries()
        self._composed: tuple[CrashState | None, NDArray[np.int32]] = (None, np.zeros(0, dtype=np.int32))

    def key(self, state: CrashState) -> bytes:
        """Return a digest (16 bytes) of ``state`` that can be compared with other states of this trace only. Two such
        states have the same digest if and only if all their sectors are equal."""
        vector = self._compose(state)  # first, since it may add to the payload
        rows = self._payload.digests.take(vector, axis=0)
        return hashlib.sha256(rows.data).digest()[:DIGEST_BYTES]

    def disk(self, state: CrashState) -> bytes:
        """Return a digest (16 bytes) of ``state`` that can also be compared with states of other traces, if these have
        the same base. Two states have the same digest if and only if their disks are equal."""
        vector = self._compose(state)  # first, since it may add to the payload
        below, base, apart, beside = self._floor_and_base
        rows = self._payload.digests.take(np.where(vector == 0, below, vector), axis=0)
        changed = (rows != base).any(axis=1)
        sectors, rows = np.concatenate([self.sectors[changed], apart]), np.concatenate([rows[changed], beside])
        order = np.argsort(sectors)
        digested = hashlib.sha256(sectors[order].tobytes())
        digested.update(rows[order].tobytes())
        return digested.digest()[:DIGEST_BYTES]

    @cached_property
    def _floor_and_base(
        self,
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint64]]:
        """Return four arrays. The first two have one row for each of ``sectors``. The first array says what the floor
        writes to the sector (0: nothing, n + 1: payload sector n). If the floor writes to the sector, the second array
        has the digest of the sector in the base, and otherwise zeros. The last two arrays are about other sectors: only
        writes of the floor cover them, and these writes give them another content than the base. The third array has
        the numbers of these sectors. The fourth has the digests of the contents that the floor writes to them."""
        below = np.array([self._floor.get(sector, -1) + 1 for sector in self.sectors.tolist()], dtype=np.int64)
        base = np.zeros((len(below), 2), dtype=np.uint64)
        for place in np.flatnonzero(below).tolist():
            base[place] = np.frombuffer(digest(self._base_sector(int(self.sectors[place]))), dtype=np.uint64)
        others = sorted(self._floor.keys() - set(self.sectors.tolist()))
        apart = [n for n in others if self._payload.sector(self._floor[n]) != self._base_sector(n)]
        beside = self._payload.digests[[self._floor[n] + 1 for n in apart]]
        return below, base, np.array(apart, dtype=np.int64), beside

    def contents(self, state: CrashState) -> NDArray[np.int32]:
        """Return, for each of ``sectors``, a number that stands for its content in ``state``. Two states have the same
        number for a sector if and only if they have the same content in it."""
        vector = self._compose(state)  # first, since it may add to the payload
        return self._payload.contents.take(vector)

    def content(self, place: int, number: int) -> bytes:
        """Return the 512 bytes that the sector ``sectors[place]`` has in each state where :meth:`contents` gives
        ``number`` at index ``place``."""
        return self._payload.sector(number - 1) if number else self._ground(int(self.sectors[place]))

    @cached_property
    def layers(self) -> list[tuple[LandedSector, ...]]:
        """For each of ``sectors``, the writes that cover this sector, in submission order. In a crash state, the sector
        has the content of the last of these writes that is on the medium. The list of a sector begins with the first
        write that gives it another content than in the ground."""
        layers: list[tuple[LandedSector, ...]] = [()] * len(self.sectors)
        offsets = np.arange(len(self._writer)) - self._first_entry[self._writer]
        contents = self._payload.contents.take(self._source)
        for place, *layer in zip(
            self._place.tolist(), self._writer.tolist(), offsets.tolist(), contents.tolist(), strict=True
        ):
            if layer[-1] or layers[place]:  # the ground matters only where it hides another content
                layers[place] += (LandedSector(*layer),)
        return layers

    def delta(self, state: CrashState) -> tuple[ByteRun, ...]:
        """Return the runs of sectors that turn the ground into ``state``. Their sectors ascend, and none occurs
        twice."""
        vector = self._compose(state)
        changed = np.flatnonzero(vector)
        return _runs(self.sectors[changed], vector[changed] - 1)

    def floor_delta(self) -> tuple[ByteRun, ...]:
        """Return the runs of sectors that turn the base into the ground."""
        sectors = sorted(self._floor)
        return _runs(np.array(sectors, dtype=np.int64), np.array([self._floor[s] for s in sectors], dtype=np.int64))

    def payload_since(self, sector: int) -> bytes:
        return self._payload.since(sector)

    def _lay_floor(self) -> None:
        for index in self._points[0].durable:
            write, at = self._trace.writes[index], self._address[index]
            placed = self._payload.place(write.data)
            self._floor.update(zip(range(at, at + write.sectors), count(placed)))

    def _lay_entries(self) -> None:
        floor = self._points[0].durable
        floor_writer = {
            sector: index
            for index in floor
            for sector in range(self._address[index], self._address[index] + self._trace.writes[index].sectors)
        }
        lengths = np.zeros(len(self._trace.writes) + 1, dtype=np.int64)
        sectors, sources, writers = [], [], []
        for index in sorted({*self._points[-1].durable, *self._points[-1].pending}.difference(floor)):
            write, at = self._trace.writes[index], self._address[index]
            placed = self._payload.place(write.data)
            lengths[index + 1] = write.sectors
            for offset in range(write.sectors):
                as_ground = self._payload.sector(placed + offset) == self._ground(at + offset)
                below_floor = floor_writer.get(at + offset, -1) > index
                sectors.append(at + offset)
                sources.append(0 if as_ground or below_floor else placed + offset + 1)
                writers.append(index)
        self._first_entry = np.cumsum(lengths)
        self.sectors: NDArray[np.int64]
        self.sectors, self._place = np.unique(np.array(sectors, dtype=np.int64), return_inverse=True)
        self._source = np.array(sources, dtype=np.int32)
        self._writer = np.array(writers, dtype=np.int64)

    def _ground(self, sector: int) -> bytes:
        return self._payload.sector(self._floor[sector]) if sector in self._floor else self._base_sector(sector)

    def _compose(self, state: CrashState) -> NDArray[np.int32]:
        """Return the vector of ``state``. The last vector is remembered, because a caller asks first for a state's key,
        and then for its delta."""
        if state == self._composed[0]:
            return self._composed[1]
        durable = self._durable_at(state.point)
        kept = np.zeros(len(self._trace.writes), dtype=np.bool_)
        kept[list(state.kept)] = True
        chosen = kept[self._writer[durable.entries]]
        torn_inside = self._tear(state, chosen, durable.entries.start) if state.torn else set()
        if durable.visible is not None:
            chosen &= durable.visible
        landing = np.flatnonzero(chosen) + durable.entries.start
        vector = durable.vector.copy()
        # Entries are in submission order. For a repeated index numpy keeps the last value, so the later write wins.
        vector[self._place[landing]] = self._source[landing]
        if torn_inside:
            self._mix(state, vector, torn_inside)
        self._composed = state, vector
        return vector

    def _tear(self, state: CrashState, chosen: NDArray[np.bool_], start: int) -> set[int]:
        """Set ``chosen`` to True for each sector that a torn write has on the medium as a whole. ``chosen`` has a value
        for each entry, beginning with entry number ``start``. Return the places (indexes in ``sectors``) of the sectors
        that a torn write has on the medium only in part. :meth:`_mix` computes the contents of these sectors."""
        inside: set[int] = set()
        for index, ranges in state.torn:
            first, write = int(self._first_entry[index]), self._trace.writes[index]
            if len(ranges) <= FEW_RANGES:
                for units in ranges:
                    begin, end = self.model.byte_range(write, *units)
                    chosen[first - start + begin // SECTOR_BYTES : first - start + end // SECTOR_BYTES] = True
                    inside.update(
                        int(self._place[first + at // SECTOR_BYTES]) for at in (begin, end) if at % SECTOR_BYTES
                    )
                continue
            edges = self.model.byte_edges(write, np.array(ranges, dtype=np.int64))
            # Count one up where a range begins, and one down where it ends: the sums of these counts are above zero
            # within the ranges.
            steps = np.zeros(write.sectors + 1, dtype=np.int64)
            np.add.at(steps, edges[:, 0] // SECTOR_BYTES, 1)
            np.add.at(steps, edges[:, 1] // SECTOR_BYTES, -1)
            chosen[first - start : first - start + write.sectors] |= np.cumsum(steps[:-1]) > 0
            split = edges[edges % SECTOR_BYTES > 0] // SECTOR_BYTES
            inside.update(self._place[first + split].tolist())
        return inside

    def _mix(self, state: CrashState, vector: NDArray[np.int32], places: set[int]) -> None:
        contents = {sector: bytearray(self._base_sector(sector)) for sector in self.sectors[list(places)].tolist()}
        for piece in effective(self._trace, self.model, self._points, state):
            at = self._address[piece.write.index]
            for sector, content in contents.items():
                offset = (sector - at) * SECTOR_BYTES
                start, stop = max(piece.start, offset), min(piece.stop, offset + SECTOR_BYTES)
                if start < stop:
                    content[start - offset : stop - offset] = piece.write.data[start:stop]
        for place, (sector, content) in zip(places, contents.items(), strict=True):
            vector[place] = 0 if content == self._ground(sector) else self._payload.place(bytes(content)) + 1

    def _durable_at(self, number: int) -> _DurableImage:
        if number not in self._durable:
            self._durable[number] = self._prepare(self._points[number])
        return self._durable[number]

    def _prepare(self, point: GrowthPoint) -> _DurableImage:
        durable = np.zeros(len(self._trace.writes), dtype=np.bool_)
        durable[list(point.durable)] = True
        landed = np.flatnonzero(durable[self._writer])
        vector = np.zeros(len(self.sectors), dtype=np.int32)
        vector[self._place[landed]] = self._source[landed]
        last_writer = np.full(len(self.sectors), -1, dtype=np.int64)
        last_writer[self._place[landed]] = self._writer[landed]
        entries = slice(0, 0)
        if point.pending:
            entries = slice(int(self._first_entry[point.pending[0]]), int(self._first_entry[point.pending[-1] + 1]))
        visible = last_writer[self._place[entries]] <= self._writer[entries]
        return _DurableImage(vector, entries, None if visible.all() else visible)


def _runs(sectors: NDArray[np.int64], payload: NDArray[np.integer[Any]]) -> tuple[ByteRun, ...]:
    """Group sectors into runs. ``sectors`` ascend, and ``payload[i]`` is the payload sector with the content of
    ``sectors[i]``. Within a run, both numbers go up by one."""
    if not len(sectors):
        return ()
    broken = (sectors[1:] - sectors[:-1] != 1) | (payload[1:] - payload[:-1] != 1)
    edges = np.concatenate([[0], np.flatnonzero(broken) + 1, [len(sectors)]])
    first, count = edges[:-1], edges[1:] - edges[:-1]
    return tuple(zip(sectors[first].tolist(), payload[first].tolist(), count.tolist(), strict=True))
