"""The disks of a cluster's nodes, one by one. bob records all disks on one clock. Each disk alone is an ordinary
recording of one disk, so bob explores it as any other. A crash state of the cluster then has a state for each disk, and
a moment for each disk (a *cut*, :mod:`bob.crash.cuts`)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

from bob.crash.cubes import Cube
from bob.crash.cuts import Interval
from bob.crash.device import DeviceModel
from bob.crash.legal import GrowthPoint
from bob.crash.plan import Plan
from bob.crash.state import CrashState
from bob.trace import differences
from bob.trace.base import Base
from bob.trace.model import SECTOR_BYTES, Trace


class NodeDisk:
    """The disk of node number ``number``, with the ``plan`` of its legal crash states. ``writes`` has, for each write
    of the plan's trace, the index of the same write in the trace of all disks."""

    def __init__(self, number: int, plan: Plan, writes: Sequence[int]) -> None:
        self.number, self.plan, self.writes = number, plan, tuple(writes)

    @cached_property
    def _since(self) -> tuple[int | None, ...]:
        return self.plan.model.write_cache.durable_since(self.plan.trace)

    def moments(self, state: CrashState) -> Interval:
        """Return the moments of the recording when a crash can leave ``state``. At such a moment, every write with a
        part on the medium has been sent, and the missing and the torn writes are not durable."""
        trace, whole = self.plan.trace, self.whole(state)
        there = {*whole, *(index for index, _ranges in state.torn)}
        first = max((trace.writes[index].submitted.time for index in there), default=0)
        lost = (time for index, time in enumerate(self._since) if time is not None and index not in whole)
        return Interval(max(first, trace.start.time), min(min(lost, default=trace.end.time + 1) - 1, trace.end.time))

    def moments_of(self, cube: Cube) -> Interval | None:
        """Return the moments when a crash can leave some state of ``cube``, or None if it never can. They are one
        interval: at any of these moments, the state with the durable writes and ``cube.kept`` is legal."""
        trace = self.plan.trace
        first = max((trace.writes[n].submitted.time for n in _bits(cube.kept)), default=0)
        lost = (time for n in _bits(cube.lost) if (time := self._since[n]) is not None)
        last = min(min(lost, default=trace.end.time + 1) - 1, trace.end.time)
        found = Interval(max(first, trace.start.time), last)
        return found if found.first <= found.last and not cube.kept & cube.lost else None

    def state_at(self, cube: Cube, moment: int) -> CrashState:
        """Return a state of ``cube`` that is legal at ``moment``, one of :meth:`moments_of`."""
        number = self._point(moment)
        durable = set(self.plan.points[number].durable)
        return CrashState(number, tuple(n for n in _bits(cube.kept) if n not in durable))

    def bare(self, moment: int) -> CrashState:
        """Return the state of a crash at ``moment`` that leaves only the durable writes."""
        return CrashState(self._point(moment))

    def _point(self, moment: int) -> int:
        return next(n for n, point in enumerate(self.plan.points) if moment <= point.time)

    @property
    def changes(self) -> tuple[int, ...]:
        """The last moments before further writes become durable, and the end of the recording."""
        return tuple(point.time for point in self.plan.points)

    def durable(self, moment: int) -> list[int]:
        """Return the writes that are durable at ``moment``, by their indexes in the trace of all disks."""
        return [self.writes[n] for n, time in enumerate(self._since) if time is not None and time <= moment]

    def sent(self, moment: int) -> list[int]:
        """Return the writes that have been sent to the disk by ``moment``, by their indexes in the trace of all
        disks."""
        return [self.writes[one.index] for one in self.plan.trace.writes if one.submitted.time <= moment]

    def on_medium(self, state: CrashState) -> tuple[set[int], list[tuple[int, tuple[tuple[int, int], ...]]]]:
        """Return what ``state`` has on the medium, by the writes' indexes in the trace of all disks: the whole writes,
        and the torn writes with their parts."""
        return {self.writes[n] for n in self.whole(state)}, [(self.writes[n], parts) for n, parts in state.torn]

    def whole(self, state: CrashState) -> frozenset[int]:
        """Return the writes that the medium has as a whole, by their indexes in the plan's trace."""
        return frozenset({*self.plan.points[state.point].durable, *state.kept})


def _bits(mask: int) -> list[int]:
    return [n for n in range(mask.bit_length()) if mask >> n & 1]


def node_disks(trace: Trace, base: Base, model: DeviceModel) -> tuple[NodeDisk, ...]:
    """Return the disks of a cluster's nodes. ``trace`` and ``base`` are of all disks."""
    ends = list(accumulate(base.disks))
    return tuple(
        _node_disk(number, trace, _part(base, number, end - length, end), model)
        for number, (length, end) in enumerate(zip(base.disks, ends, strict=True))
    )


def _node_disk(number: int, trace: Trace, base: Base, model: DeviceModel) -> NodeDisk:
    mine = [write for write in trace.writes if write.device == number]
    alone = replace(
        trace,
        writes=tuple(replace(write, index=place, device=0) for place, write in enumerate(mine)),
        flushes=tuple(replace(flush, device=0) for flush in trace.flushes if flush.device == number),
        device_sectors=(trace.device_sectors[number],),
    )
    return NodeDisk(number, Plan(alone, base, model), [write.index for write in mine])


def _part(base: Base, number: int, begin: int, end: int) -> Base:
    """Return the base image of one disk, which is at the bytes from ``begin`` to ``end`` in ``base``."""
    first, stop = begin // SECTOR_BYTES, end // SECTOR_BYTES
    runs = []
    for sector, data in differences.runs(base.packed):
        low, high = max(sector, first), min(sector + len(data) // SECTOR_BYTES, stop)
        if low < high:
            runs.append((low - first, data[(low - sector) * SECTOR_BYTES : (high - sector) * SECTOR_BYTES]))
    packed = differences.packed(runs)
    return Base(f"{base.name}-n{number}", end - begin, packed, base.effective_options, base.mkfs)


@dataclass(frozen=True, slots=True)
class ClusterCrash:
    """A crash of a cluster. ``moments`` has the moment of each node, and ``states`` the state of each node's disk, as a
    state of this disk alone."""

    moments: tuple[int, ...]
    states: tuple[CrashState, ...]


def together(disks: Sequence[NodeDisk], crash: ClusterCrash, number: int) -> tuple[GrowthPoint, CrashState]:
    """Return ``crash`` as one state of all disks, and the growth point that it is a state of. A growth point has the
    durable and the pending writes of one instant, but here of each disk at its own moment. Its number is to be
    ``number``."""
    durable, sent, whole, torn = [], [], set[int](), []
    for disk, moment, state in zip(disks, crash.moments, crash.states, strict=True):
        durable += disk.durable(moment)
        sent += disk.sent(moment)
        of_disk, of_torn = disk.on_medium(state)
        whole |= of_disk
        torn += of_torn
    pending = tuple(sorted({*sent}.difference(durable)))
    point = GrowthPoint(max(crash.moments), tuple(sorted(durable)), pending, (), 0, 0, crash.moments)
    return point, CrashState(number, tuple(sorted(whole.difference(durable))), tuple(sorted(torn)))
