"""A trace as a dm-log-writes log that is replayed front to back, as xfstests' ``replay-log`` does.

The kernel's own log is not made for that to the last byte: FUA writes and marks overtake writes that are not flushed
yet (docs/facts.md, dm-log-writes, pitfalls 2 to 4). So the log is written anew, by the clock of the timeline:

- a write is where it was submitted. Writes to one sector land in that order, so all of the log makes the device as it
  was recorded, byte for byte;
- a flush is where it was done, so whatever it made durable is before it;
- a mark is where it was written. What is before it is all that the disk had been sent by then.

To replay up to any entry is to say that the disk had done all that it had been sent so far and nothing else: that is
one legal crash state of that moment, the most orderly one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bob.trace.log_format import EntryFlags
from bob.trace.log_writer import NewEntry
from bob.trace.model import DeviceWrite, Trace

CRASH = "crash"
"""The mark at the moment of a crash."""


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """An ``entry`` of the log; ``write`` is the index in the trace of the write that it is, if it is one."""

    entry: NewEntry
    write: int | None = None


def steps(trace: Trace, crash: int | None = None) -> tuple[ReplayStep, ...]:
    """The log of ``trace``, which has one device; ``crash`` is the time (position in the trace) of a mark of its own.

    Sectors are of 512 bytes. Marks are bob's, without spaces: ``start``, ``op-1-begin``, ``op-1-end``, of the syncs of
    the finish ``finish-1-begin`` and so on, ``end``; no two are alike. What was sent before ``start``, by the mount,
    and after ``end``, by the unmount, is there as well. Discards are not: the disk does not carry them out.
    """
    # At one and the same time: a flush comes before the data that waited for it, and a crash after everything.
    found: list[tuple[int, int, ReplayStep]] = []
    found += [(flush.completed.time, 0, ReplayStep(NewEntry(EntryFlags.FLUSH))) for flush in trace.flushes]
    found += [(write.submitted.time, 1, ReplayStep(_entry(write), write.index)) for write in trace.writes]
    found += [(at, 2, ReplayStep(NewEntry(EntryFlags.MARK, mark=text))) for at, text in _marks(trace)]
    if crash is not None:
        found.append((crash, 3, ReplayStep(NewEntry(EntryFlags.MARK, mark=CRASH))))
    found.sort(key=lambda step: step[:2])  # stable: writes of one time stay in the order in which they land
    return tuple(step for _at, _rank, step in found)


def _entry(write: DeviceWrite) -> NewEntry:
    flags = EntryFlags.FUA if write.fua else EntryFlags(0)
    return NewEntry(flags | EntryFlags.METADATA if write.meta else flags, write.sector, write.data)


def _marks(trace: Trace) -> Iterator[tuple[int, str]]:
    finishes = 0  # the operations of the finish all have the number 0, and replay-log goes to the first of a name
    for mark in trace.marks:
        finishes += mark.text == "op 0 begin"
        yield mark.at.time, mark.text.replace("op 0 ", f"finish {finishes} ").replace(" ", "-")
