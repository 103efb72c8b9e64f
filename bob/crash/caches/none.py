"""No write cache: a write is durable when it completes."""

from __future__ import annotations

from bob.crash.caches.rule import WriteCache, at_completion

CACHE = WriteCache(
    name="none",
    words="no write cache",
    promise="a write is durable when it completes",
    why_durable="It was done before the crash, on a disk without a cache",
    where_pending="and not done yet",
    why_legal="what was done is on the disk, and of what was not done yet any part may be",
    durable_since=at_completion,
)
