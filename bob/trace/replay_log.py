"""Write a trace as a log of dm-log-writes, for programs that replay a log from front to back, as xfstests'
``replay-log`` does.

In the kernel's own log, FUA writes and marks overtake unflushed writes (docs/facts.md, dm-log-writes, pitfalls 2 to 4).
In the log that this module makes, a write stands at the time of its submission, and a flush at the time of its
completion. So a replay up to any entry gives a legal crash state."""

from collections.abc import Iterator
from dataclasses import dataclass

from bob.trace.log_format import EntryFlags
from bob.trace.log_writer import NewEntry
from bob.trace.model import DeviceWrite, Trace

CRASH = "crash"  # the mark at the moment of a crash


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """An ``entry`` of the log. If it is a write, ``write`` is the index of that write in the trace; else None."""

    entry: NewEntry
    write: int | None = None


def steps(trace: Trace, crash: int | None = None) -> tuple[ReplayStep, ...]:
    """Return the log of ``trace``, which must have one device. If ``crash`` (a time in the trace) is given, the log has
    the mark ``crash`` at that time.

    The log also has marks at the beginning and at the end of each operation. The first mark of the log is ``start``,
    and its last is ``end``. The first operation has the marks ``op-1-begin`` and ``op-1-end``. The first sync after the
    operations has ``finish-1-begin`` and ``finish-1-end``. Each name occurs once. The log includes the writes of the
    mount and the unmount, but not discards."""
    # At the same time, a flush comes before the data that waited for it, and a crash comes after everything else.
    found: list[tuple[int, int, ReplayStep]] = []
    found += [(flush.completed.time, 0, ReplayStep(NewEntry(EntryFlags.FLUSH))) for flush in trace.flushes]
    found += [(write.submitted.time, 1, ReplayStep(_entry(write), write.index)) for write in trace.writes]
    found += [(at, 2, ReplayStep(NewEntry(EntryFlags.MARK, mark=text))) for at, text in _marks(trace)]
    if crash is not None:
        found.append((crash, 3, ReplayStep(NewEntry(EntryFlags.MARK, mark=CRASH))))
    found.sort(key=lambda step: step[:2])  # stable: writes of the same time stay in order
    return tuple(step for _at, _rank, step in found)


def _entry(write: DeviceWrite) -> NewEntry:
    flags = EntryFlags.FUA if write.fua else EntryFlags(0)
    return NewEntry(flags | EntryFlags.METADATA if write.meta else flags, write.sector, write.data)


def _marks(trace: Trace) -> Iterator[tuple[int, str]]:
    finishes = 0  # all operations of the finish have the number 0, but replay-log goes to the first mark with a name
    for mark in trace.marks:
        finishes += mark.text == "op 0 begin"
        yield mark.at.time, mark.text.replace("op 0 ", f"finish {finishes} ").replace(" ", "-")
