"""The kind without a write cache: a write is durable when it completes."""

from bob.crash.caches.rule import WriteCache, at_completion

CACHE = WriteCache(
    name="none",
    words="no write cache",
    promise="a write is durable when it completes",
    why_durable="It completed before the crash, on a disk without a cache",
    where_pending="and not complete yet",
    why_legal="every write that had completed is on the disk, and any part of the others may be",
    durable_since=at_completion,
    needs_flush=False,
)
