"""The legal crash states (docs/design.md, section 3). To know all of them, bob needs to compute only those of a few
points in time, the growth points. Atomic units are the smallest parts of writes that reach the medium as a whole.

At time T a write is *durable*, *pending* (submitted, not durable: any part of it may be on the medium) or *absent*.
Until a write becomes durable (:mod:`bob.crash.caches`), the set of pending writes only grows.

bob lets crashes happen in the *window*. A *growth point* is a time just before a write becomes durable, or the window's
end. A state is legal in the window if it is legal at a growth point."""

from collections.abc import Sequence
from dataclasses import dataclass

from bob.crash.device import DeviceModel
from bob.errors import MalformedError, UsageError
from bob.trace.model import SECTOR_BYTES, Trace


@dataclass(frozen=True, slots=True)
class GrowthPoint:
    """A growth point: the last ``time`` with exactly this set of ``durable`` writes. A crash at this time leaves all
    ``durable`` writes, and any subset of the writes ``pending``. Writes are given by their indexes in submission order.
    ``becomes_durable`` has the pending writes that are durable from ``time + 1`` on. It is empty only at the end of the
    window. If each disk crashes at another moment (in a cluster), ``moments`` has the moment of each disk, and ``time``
    is the last of them. ``pending_units`` and ``becoming_units`` are the numbers of atomic units in the writes
    ``pending`` and ``becomes_durable``."""

    time: int
    durable: tuple[int, ...]
    pending: tuple[int, ...]
    becomes_durable: tuple[int, ...]
    pending_units: int
    becoming_units: int
    moments: tuple[int, ...] = ()

    def moment(self, device: int) -> int:
        """Return the time of the crash of disk number ``device``."""
        return self.moments[device] if self.moments else self.time


def growth_points(trace: Trace, model: DeviceModel) -> tuple[GrowthPoint, ...]:
    """Return the growth points of the window from ``trace.start`` to ``trace.end``, in order of time. There is at least
    one growth point.

    A cache that keeps an order may lose writes that completed before the window. Each such write has a growth point of
    its own, where only this write is pending. These growth points come first. Raises UsageError if the cache's rule is
    for one disk and there are several disks. Raises MalformedError if the trace contradicts itself
    (:func:`check_trace`)."""
    check_trace(trace)
    cache, disks = model.write_cache, len(trace.device_sectors)
    if cache.one_disk_only and disks > 1:
        raise UsageError(f"the write cache {cache.name!r} is for one disk, and this recording has {disks}")
    since = cache.durable_since(trace)
    units = [model.units(write) for write in trace.writes]
    start, end = trace.start.time, trace.end.time

    def point(time: int, durable: Sequence[int], pending: Sequence[int], becoming: Sequence[int]) -> GrowthPoint:
        sizes, new = (sum(units[index] for index in some) for some in (pending, becoming))
        return GrowthPoint(time, tuple(durable), tuple(pending), tuple(becoming), sizes, new)

    def changes(after: int, until: int) -> list[int]:
        return sorted({time for time in since if time is not None and after < time <= until})

    points = []
    for change in changes(cache.looks_back(trace), start):
        durable = [index for index, time in enumerate(since) if _by(time, change - 1)]
        next_ = [index for index, time in enumerate(since) if time == change]
        points.append(point(start, durable, next_, next_))
    for time in [*(change - 1 for change in changes(start, end)), end]:
        submitted = [write.index for write in trace.writes if write.submitted.time <= time]
        pending = [index for index in submitted if not _by(since[index], time)]
        becoming = [index for index in pending if time < end and _by(since[index], time + 1)]
        points.append(point(time, [index for index in submitted if _by(since[index], time)], pending, becoming))
    return tuple(points)


def count_writes(points: Sequence[GrowthPoint]) -> int:
    """Return the exact number of legal states without torn writes. Two states count as one if they have the same writes
    on the medium."""
    return sum(new_states(len(point.pending), len(point.becomes_durable)) for point in points)


def count_sectors(points: Sequence[GrowthPoint]) -> int:
    """Return the exact number of legal states with or without torn writes. Two states count as one if they have the
    same atomic units on the medium."""
    return sum(new_states(point.pending_units, point.becoming_units) for point in points)


def check_trace(trace: Trace) -> None:
    """Raise :class:`MalformedError` if ``trace`` contradicts itself. For example, writes must be in the order of their
    submission, a write must not go beyond its device, and its completion must be later than its submission."""
    if trace.start.time > trace.end.time:
        raise MalformedError(f"the window of the trace ends ({trace.end.time}) before it starts ({trace.start.time})")
    before = None
    for position, write in enumerate(trace.writes):
        name = f"write {write.index} of the trace"
        if write.index != position or (before is not None and write.submitted.time < before):
            raise MalformedError(f"{name} is out of submission order")
        if not write.submitted.time < write.completed.time:
            raise MalformedError(f"{name} was not completed after it was submitted")
        if not write.data or len(write.data) % SECTOR_BYTES:
            raise MalformedError(f"{name} has {len(write.data)} bytes, which is not whole sectors")
        if not 0 <= write.device < len(trace.device_sectors):
            raise MalformedError(f"{name} goes to device {write.device}, which the trace does not have")
        if not 0 <= write.sector <= trace.device_sectors[write.device] - write.sectors:
            raise MalformedError(f"{name} goes beyond the end of its device")
        before = write.submitted.time
    for flush in trace.flushes:
        if flush.submitted.time > flush.completed.time:
            raise MalformedError(f"a flush was completed at {flush.completed.time}, before it was submitted")


def _by(since: int | None, time: int) -> bool:
    return since is not None and since <= time


def new_states(pending: int, becoming: int) -> int:
    """Return how many states of one growth point are not states of the next point. ``pending`` is the number of pending
    writes (or units) at the first point. ``becoming`` is how many of them become durable before the next point. The
    counted states are the subsets of the pending writes that lack some write which becomes durable. At the last point,
    no write becomes durable, and all subsets of the pending writes count."""
    every: int = 1 << pending
    return every - (1 << (pending - becoming)) if becoming else every
