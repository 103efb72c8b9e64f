"""A write cache that keeps the order: of the writes completed since the last flush, a crash loses a suffix.

After a crash at time T, the medium has all writes that completed by some T' <= T, and perhaps a part of the next one. A
flush that completed by T was submitted by T'; a FUA write that completed by T had completed by T'. States with T' in
the window are those of a disk without a cache; an earlier T' adds, for each write, one state and its tears.
"""

from bob.crash.caches.rule import WriteCache, at_completion
from bob.trace.model import Trace


def looks_back(trace: Trace) -> int:
    """Return the latest submission of a flush, or completion of a FUA write, that completed by the window's start. If
    there is none, return a time before all writes."""
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
