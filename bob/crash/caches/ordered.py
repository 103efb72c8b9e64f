"""A write cache that keeps the order of writes. A crash loses only the most recently completed writes, and none that a
later flush made durable.

A crash at time T leaves all writes that had completed by some time T' (at most T), and perhaps a part of the next
write. T' cannot be earlier than the submission of a flush that had completed by T. Nor can it be earlier than the
completion of an FUA write that had completed by T.

bob looks only at crashes in a certain *window* of time. If T' is in the window, a disk without a cache can leave the
same state, after a crash at T'. If T' is before the window, only this cache can leave the state. Each write that
completed between the earliest possible T' and the window gives states of the second kind. In one of them, this write
and all later writes are lost. In the others, all later writes are lost, and this write is torn."""

from bob.crash.caches.rule import WriteCache, at_completion
from bob.trace.model import Trace


def looks_back(trace: Trace) -> int:
    """Return the latest time T that bob can prove this for: no crash in the window loses a write that completed by T. T
    is the submission of a flush or the completion of an FUA write, if that flush or write completed before the window.
    If there is no such flush or write, return a time before all writes."""
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
