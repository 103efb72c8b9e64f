"""A write cache that keeps the order: a crash loses the last of the writes that completed since the last flush.

After a crash at time T, the medium has all writes that completed by some earlier time T' <= T, and perhaps a part of
the next write. A flush that completed by T was submitted by T'; a FUA write that completed by T had completed by T'.
The window is the time when crashes may come. If T' is in the window, a disk without a cache has the same states. Each
write between an earlier T' and the window adds one state, and the ways to tear that write.
"""

from bob.crash.caches.rule import WriteCache, at_completion
from bob.trace.model import Trace


def looks_back(trace: Trace) -> int:
    """Return the time of the latest flush or FUA write that completed by the window's start: for a flush its
    submission, for a FUA write its completion. Without any, return a time before all writes."""
    start = trace.start.time
    flushed = [flush.submitted.time for flush in trace.flushes if flush.completed.time <= start]
    forced = [write.completed.time for write in trace.writes if write.fua and write.completed.time <= start]
    first = min((write.submitted.time for write in trace.writes), default=start) - 1
    return min(start, max([first, *flushed, *forced]))


CACHE = WriteCache(
    name="ordered",
    words="write cache that keeps the order",
    promise="a crash loses the last writes that no flush followed, in order of completion",
    why_durable="It completed, and this crash lost no write that completed before it",
    where_pending="perhaps still in its cache",
    why_legal="the disk loses the last writes that completed, and none that a flush followed",
    durable_since=at_completion,
    looks_back=looks_back,
    one_disk_only=True,
)
