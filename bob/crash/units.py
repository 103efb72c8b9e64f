"""Legal crash states with torn writes. A torn write is on the medium only in part. Atomic units are the smallest parts
of a write that reach the medium as a whole. A *part* is an atomic unit, or a sector if atomic units are smaller. Parts
reach the medium independently of each other, as whole writes do. So this module represents a crash state by the set of
the parts that are on the medium."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np

from bob.crash.cubes import Cube, GrowthMasks, LegalStates
from bob.crash.device import DeviceModel
from bob.crash.legal import GrowthPoint
from bob.crash.sampling import ranges
from bob.crash.state import CrashState
from bob.trace.model import SECTOR_BYTES, Trace


class WriteUnits:
    """The parts of a trace's writes, numbered consecutively. A set of parts is an integer, a bit mask, whose bit n
    stands for part n."""

    def __init__(self, trace: Trace, points: Sequence[GrowthPoint], model: DeviceModel) -> None:
        self._points = points
        self._sizes = replace(model, atomic_write_bytes=max(model.atomic_write_bytes, SECTOR_BYTES))
        self._units = self._sizes.atomic_write_bytes // model.atomic_write_bytes
        self._starts = [write.sector * SECTOR_BYTES % self._sizes.atomic_write_bytes for write in trace.writes]
        self._count = [self._sizes.units(write) for write in trace.writes]
        self._first = [0, *accumulate(self._count)]
        self.legal = LegalStates(
            [
                GrowthMasks(self._mask(point.durable), self._mask(point.pending), self._mask(point.becomes_durable))
                for point in points
            ],
            self._state,
        )

    @property
    def total(self) -> int:
        return self._first[-1]

    def number(self, write: int, sector: int) -> int:
        """Return the number of the part of ``write`` that contains the write's sector ``sector`` (from 0)."""
        return self._first[write] + (self._starts[write] + sector * SECTOR_BYTES) // self._sizes.atomic_write_bytes

    def separate(self, state: CrashState) -> bool:
        """Return whether ``state`` tears writes only at the borders between two parts, and never inside a part."""
        return all(edge % self._units == 0 for _index, torn in state.torn for pair in torn for edge in pair)

    def whole(self, cube: Cube) -> Cube:
        """Return the states of ``cube`` without torn writes. A cube (:mod:`bob.crash.cubes`) is the set of all states
        that have some given parts on the medium, and lack some other given parts. The bits of the returned cube
        stand for writes instead of parts. The returned cube may be empty."""
        return Cube(self._writes(cube.kept), self._writes(cube.lost))

    def _writes(self, parts: int) -> int:
        if not parts:
            return 0
        packed = np.frombuffer(parts.to_bytes(-(-self.total // 8), "little"), dtype=np.uint8)
        bits = np.unpackbits(packed, count=self.total, bitorder="little")
        touched = np.bitwise_or.reduceat(bits, self._first[:-1])
        return int.from_bytes(np.packbits(touched, bitorder="little").tobytes(), "little")

    def _mask(self, writes: Iterable[int]) -> int:
        mask = 0
        for index in writes:
            mask |= self._whole(index) << self._first[index]
        return mask

    def _whole(self, index: int) -> int:
        return (1 << self._count[index]) - 1

    def _state(self, number: int, medium: int) -> CrashState:
        kept, torn = [], []
        for index in self._points[number].pending:
            there = medium >> self._first[index] & self._whole(index)
            if there == self._whole(index):
                kept.append(index)
            elif there:
                found = ranges(there)
                if self._units > 1:
                    found = tuple((first * self._units, stop * self._units) for first, stop in found)
                torn.append((index, found))
        return CrashState(number, tuple(kept), tuple(torn))
