"""The declaration of a kind of write cache."""

from collections.abc import Callable
from dataclasses import dataclass

from bob.trace.model import Trace


def at_completion(trace: Trace) -> tuple[int | None, ...]:
    return tuple(write.completed.time for write in trace.writes)


@dataclass(frozen=True, slots=True)
class WriteCache:
    """A kind of write cache. Documents use its ``name``, reports its ``words``, and help texts the clause ``promise``.

    ``why_durable`` and ``where_pending`` explain a write in a crash state, ``why_legal`` a whole state.
    ``durable_since`` returns when each write of a trace becomes durable; None if never.

    ``looks_back`` returns a time at or before the start of the window, the time when crashes may come. A crash may undo
    the writes that became durable since the returned time, in the order from the last write back. The time differs
    between disks. So with ``one_disk_only``, several disks are an error.
    """

    name: str
    words: str
    promise: str
    why_durable: str
    where_pending: str
    why_legal: str
    durable_since: Callable[[Trace], tuple[int | None, ...]]
    looks_back: Callable[[Trace], int] = lambda trace: trace.start.time
    one_disk_only: bool = False
