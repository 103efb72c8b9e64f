"""A volatile write cache (SATA, SCSI, NVMe) may lose any write that no flush has followed (docs/design.md, section
3)."""

from bisect import bisect_left
from collections import defaultdict
from itertools import accumulate

from bob.crash.caches.rule import WriteCache
from bob.trace.model import DeviceWrite, Flush, Trace


def durable_since(trace: Trace) -> tuple[int | None, ...]:
    """Return when each write becomes durable, or None if never. An FUA write becomes durable when it completes. For any
    other write, take the first flush that its device got after the write had completed. The write becomes durable when
    this flush completes."""
    flushes: defaultdict[int, list[Flush]] = defaultdict(list)
    for flush in sorted(trace.flushes, key=lambda flush: flush.submitted.time):
        flushes[flush.device].append(flush)
    submitted = {device: [flush.submitted.time for flush in some] for device, some in flushes.items()}
    # earliest[k] is the first completion among the flushes k, k+1, ...: if several are in flight, a later one may
    # complete first.
    earliest = {
        device: list(accumulate((flush.completed.time for flush in reversed(some)), min))[::-1]
        for device, some in flushes.items()
    }

    def since(write: DeviceWrite) -> int | None:
        completed = write.completed.time
        if write.fua:
            return completed
        at = bisect_left(submitted.get(write.device, ()), completed)
        after = earliest.get(write.device, [])
        return after[at] if at < len(after) else None

    return tuple(since(write) for write in trace.writes)


CACHE = WriteCache(
    name="volatile",
    words="volatile write cache",
    promise="a write is durable after a later flush",
    why_durable="It was flushed, or sent with FUA, and that completed before the crash",
    where_pending="perhaps still in its cache",
    why_legal="flushed writes are on the disk, and any part of the writes in its cache may be",
    durable_since=durable_since,
)
