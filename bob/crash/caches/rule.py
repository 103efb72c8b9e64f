"""The declaration of a kind of write cache."""

from collections.abc import Callable
from dataclasses import dataclass

from bob.trace.model import Trace


def at_completion(trace: Trace) -> tuple[int | None, ...]:
    return tuple(write.completed.time for write in trace.writes)


@dataclass(frozen=True, slots=True)
class WriteCache:
    """A kind of write cache. ``name`` is its name in documents, ``words`` describes it in reports, and ``promise``
    says, in words for help texts, which writes a crash may lose.

    The next three texts are parts of explanations of a crash state. ``why_durable`` explains why a write must be on the
    medium. ``where_pending`` says where a pending write was at the crash. ``why_legal`` explains why the whole state is
    legal.

    ``durable_since`` returns when each write of a trace becomes durable (None if never). bob lets crashes happen in the
    *window*. ``looks_back`` returns a time at or before the start of the window. A crash in the window loses only
    writes whose ``durable_since`` is later than this time, or None. If ``one_disk_only`` is True, bob raises an error
    for several disks. ``needs_flush`` says that no write without FUA is durable before a flush."""

    name: str
    words: str
    promise: str
    why_durable: str
    where_pending: str
    why_legal: str
    durable_since: Callable[[Trace], tuple[int | None, ...]]
    looks_back: Callable[[Trace], int] = lambda trace: trace.start.time
    one_disk_only: bool = False
    needs_flush: bool = True
