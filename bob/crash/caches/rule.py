"""What a kind of write cache has to tell: when a write is durable, and how far back a crash may throw the disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bob.trace.model import Trace


def at_its_start(trace: Trace) -> int:
    """The time at which the window of ``trace`` begins."""
    return trace.start.time


def at_completion(trace: Trace) -> tuple[int | None, ...]:
    """For each write, the time at which it completed."""
    return tuple(write.completed.time for write in trace.writes)


@dataclass(frozen=True, slots=True)
class WriteCache:
    """A kind of write cache.

    ``name`` is what documents and the command line call it, ``words`` what reports do, ``promise`` when a write is
    durable, in a clause for a help text; ``why_durable`` and ``where_pending`` say of a write in a crash state why it
    is durable, and where it may still be; ``why_legal``, of a whole crash state, why a disk may be left so.
    ``durable_since`` gives, for each write of a trace, the time from which it is
    durable; None if nothing in the trace makes it so. ``looks_back`` gives a time at or before the start of the window
    of a trace. It is earlier where a cache keeps an order: then a crash may undo, from the last one back, the writes
    that became durable since that time. A trace of several disks is refused (``one_disk_only``) where each disk would
    have such a time of its own.
    """

    name: str
    words: str
    promise: str
    why_durable: str
    where_pending: str
    why_legal: str
    durable_since: Callable[[Trace], tuple[int | None, ...]]
    looks_back: Callable[[Trace], int] = at_its_start
    one_disk_only: bool = False
