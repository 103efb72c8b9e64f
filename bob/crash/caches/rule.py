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
    ``durable_since`` returns when each write of a trace becomes durable; None if never. ``looks_back`` returns a time
    at or before the start of the window. A crash may undo the writes that became durable since that time, from the last
    one back. Several disks would each have such a time of their own: with ``one_disk_only``, several disks are an
    error.
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
