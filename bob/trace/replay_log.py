"""A trace as a dm-log-writes log for programs that replay it from front to back, as xfstests' ``replay-log`` does.

In the kernel's own log, FUA writes and marks overtake unflushed writes (docs/facts.md, dm-log-writes, pitfalls 2 to 4).
In this log a write comes at the time of its submission, a flush at that of its completion. So a replay up to any entry
is a legal crash state."""

from collections.abc import Iterator
from dataclasses import dataclass

from bob.trace.log_format import EntryFlags
from bob.trace.log_writer import NewEntry
from bob.trace.model import DeviceWrite, Trace

CRASH = "crash"  # the mark at the moment of a crash


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """An ``entry`` of the log, and the index in the trace of its ``write``; None if it is no write."""

    entry: NewEntry
    write: int | None = None


def steps(trace: Trace, crash: int | None = None) -> tuple[ReplayStep, ...]:
    """Return the log of ``trace``, which has one device, with a mark at time ``crash`` (a position in the trace). The
    marks are ``start``, ``op-1-begin``, ``op-1-end``, ``finish-1-begin`` (a sync of the finish) ..., ``end``; each name
    occurs once. Writes of the mount and unmount are included, discards are not."""
    # At one and the same time: a flush comes before the data that waited for it, and a crash after everything.
    found: list[tuple[int, int, ReplayStep]] = []
    found += [(flush.completed.time, 0, ReplayStep(NewEntry(EntryFlags.FLUSH))) for flush in trace.flushes]
    found += [(write.submitted.time, 1, ReplayStep(_entry(write), write.index)) for write in trace.writes]
    found += [(at, 2, ReplayStep(NewEntry(EntryFlags.MARK, mark=text))) for at, text in _marks(trace)]
    if crash is not None:
        found.append((crash, 3, ReplayStep(NewEntry(EntryFlags.MARK, mark=CRASH))))
    found.sort(key=lambda step: step[:2])  # stable: writes of one time stay in order of landing
    return tuple(step for _at, _rank, step in found)


def _entry(write: DeviceWrite) -> NewEntry:
    flags = EntryFlags.FUA if write.fua else EntryFlags(0)
    return NewEntry(flags | EntryFlags.METADATA if write.meta else flags, write.sector, write.data)


def _marks(trace: Trace) -> Iterator[tuple[int, str]]:
    finishes = 0  # the operations of the finish all have the number 0, and replay-log goes to the first of a name
    for mark in trace.marks:
        finishes += mark.text == "op 0 begin"
        yield mark.at.time, mark.text.replace("op 0 ", f"finish {finishes} ").replace(" ", "-")
