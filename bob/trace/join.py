"""Join a block log, which has the data of writes, with a bio timeline, which has their times, into a :class:`Trace`.

The log alone cannot say which crash states are legal, because its order is not the order of submission (docs/facts.md,
dm-log-writes, pitfalls 1-4). The log and the timeline check each other. Every log entry with data must match one
completed write of the timeline. Every completed write of the timeline must match one log entry. The log must have as
many flushes as the timeline."""

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bob.errors import RecordingError
from bob.trace.bios import Bios, WriteBio, WriteKey, pair_bios
from bob.trace.log import LogEntry
from bob.trace.log_format import EntryFlags
from bob.trace.model import DeviceWrite, Mark, Moment, Trace
from bob.trace.timeline import Device, Marker, Timeline

KERNEL = "kernel "  # begins the agent's mark that has the kernel's release
CHAINS_TRACED = (6, 1)  # the oldest kernel (major, minor) known to trace the completion of chained bios; see pair_bios
_HINT = "record again; if it stays so, give the recorded disk one queue and the log device more room"


@dataclass(frozen=True, slots=True)
class DiskLog:
    """A recorded disk: its ``log``, the device number (major, minor) of its dm-log-writes target, and its length in
    512-byte ``sectors``."""

    log: Iterable[LogEntry]
    device: Device
    sectors: int


def join(disks: Sequence[DiskLog], timeline: Timeline) -> Trace:
    """Join the logs of ``disks`` with the ``timeline`` that the disks share, and return the trace. All data of the
    trace is in memory. Raises RecordingError if a log and the timeline disagree, a bio is incomplete or failed, or a
    mark (``start``, ``end``) is missing. Raises MalformedError for a damaged log."""
    untraced = _kernel(timeline) < CHAINS_TRACED
    every = [pair_bios(timeline, disk.device, untraced=untraced) for disk in disks]
    joined = [
        (bio, entry, number)
        for number, (disk, bios) in enumerate(zip(disks, every, strict=True))
        for bio, entry in _joined(disk.log, bios, disk.sectors)
    ]
    # If several writes were submitted at the same moment (bios.py), the one that completed first lands first.
    joined.sort(key=lambda each: (each[0].submitted.time, each[0].completed.time))
    flushes = [replace(flush, device=number) for number, bios in enumerate(every) for flush in bios.flushes]
    markers = [event for event in timeline.events if isinstance(event, Marker)]
    marks = tuple(Mark(event.at, event.text) for event in markers if not event.text.startswith(KERNEL))
    start, end = _only(marks, "start"), _only(marks, "end")
    if end.time < start.time:
        raise RecordingError(f"the mark 'end' (timeline line {end.time}) comes before 'start' (line {start.time})")
    return Trace(
        writes=tuple(_write(index, *each) for index, each in enumerate(joined)),
        flushes=tuple(sorted(flushes, key=lambda flush: flush.completed.time)),
        marks=marks,
        start=start,
        end=end,
        device_sectors=tuple(disk.sectors for disk in disks),
        discards=sum(bios.discards for bios in every),
    )


def _joined(log: Iterable[LogEntry], bios: Bios, device_sectors: int) -> list[tuple[WriteBio, LogEntry]]:
    waiting: dict[WriteKey, deque[WriteBio]] = {}
    for bio in bios.writes:
        waiting.setdefault(bio.key, deque()).append(bio)
    chained = {bio.key: bio for bio in bios.open}
    joined: list[tuple[WriteBio, LogEntry]] = []
    flushes = 0
    since: Moment | None = None  # later entries without FUA completed no earlier than this
    youngest: dict[bool, tuple[WriteBio, LogEntry]] = {}  # by FUA or not: the entry so far that was submitted last
    for entry in log:
        if not entry.data_bytes:
            if entry.flags & EntryFlags.FLUSH:
                # A flush covers the writes that were complete at its submission; it is logged at its own completion.
                if flushes < len(bios.flushes_sent):
                    began = bios.flushes_sent[flushes]
                    since = _later(since, Moment(began.time + 1, began.seconds))
                flushes += 1
            continue
        if entry.first + entry.sectors > device_sectors:
            raise RecordingError(f"{_name(entry)} is beyond the device's {device_sectors} sectors")
        # If several bios have this key, the first that completes belongs to the first entry; see below.
        key = WriteKey(entry.first, entry.sectors, EntryFlags.FUA in entry.flags, EntryFlags.METADATA in entry.flags)
        alike = waiting.get(key)
        if not alike and key in chained:
            # Any moment after the last flush that did not cover the write will do: the next flush makes it durable.
            open_ = chained.pop(key)
            completed = _later(since, open_.sent)
            alike = deque([WriteBio(key, open_.submitted, completed, open_.task)])
        if not alike:
            raise RecordingError(
                f"{_name(entry)} does not match a completed write of the timeline",
                hint="trace from before the log-writes device exists until it is removed; is this its device number?",
            )
        found = alike.popleft()
        # On completion, the target appends FUA entries to one queue, and other entries to another queue (normal_end_io
        # in drivers/md/dm-log-writes.c). So if two entries for one queue were not in flight together, the older one is
        # logged first. Two hardware queues can break that order (pitfall 9).
        if key.fua in youngest and found.completed.time < youngest[key.fua][0].submitted.time:
            raise RecordingError(
                f"{_name(entry)} completed before {_name(youngest[key.fua][1])} was submitted, but is logged after it",
                hint=_HINT,
            )
        if key.fua not in youngest or found.submitted.time > youngest[key.fua][0].submitted.time:
            youngest[key.fua] = found, entry
        joined.append((found, entry))
        if not key.fua:
            since = _later(since, found.completed)
    _nothing_left([bio for alike in waiting.values() for bio in alike])
    if chained:
        left = min(chained.values(), key=lambda bio: bio.sent.time)
        raise RecordingError(
            f"the write {left.key.sector} + {left.key.sectors} of {left.task}, sent at timeline line {left.sent.time}, "
            "never completed",
            hint=_HINT,
        )
    if flushes != len(bios.flushes):
        raise RecordingError(f"the log has {flushes} flushes, the timeline {len(bios.flushes)}", hint=_HINT)
    return joined


def _kernel(timeline: Timeline) -> tuple[int, int]:
    """Return the version (major, minor) of the traced kernel, from a mark in the timeline that bob's agent in the guest
    wrote. If there is no such mark, return the oldest version that traces all completions."""
    for event in timeline.events:
        if isinstance(event, Marker) and (found := re.match(KERNEL + r"(\d+)\.(\d+)", event.text)):
            return int(found[1]), int(found[2])
    return CHAINS_TRACED


def _later(one: Moment | None, other: Moment) -> Moment:
    return other if one is None or other.time > one.time else one


def _nothing_left(bios: Sequence[WriteBio]) -> None:
    if bios:
        first = min(bios, key=lambda bio: bio.completed.time)
        raise RecordingError(
            f"the {'FUA ' * first.key.fua}write {first.key.sector} + {first.key.sectors} of {first.task}, completed at "
            f"timeline line {first.completed.time}, is not in the log; neither are {len(bios) - 1} more",
            hint="remove the log-writes target before reading its log; a full log device stops logging silently",
        )


def _write(index: int, bio: WriteBio, entry: LogEntry, device: int) -> DeviceWrite:
    return DeviceWrite(
        index=index,
        sector=bio.key.sector,
        data=entry.data(),
        submitted=bio.submitted,
        completed=bio.completed,
        fua=bio.key.fua,
        meta=bio.key.meta,
        task=bio.task,
        log_entry=entry.index,
        device=device,
    )


def _only(marks: Sequence[Mark], text: str) -> Moment:
    found = [mark.at for mark in marks if mark.text == text]
    if len(found) != 1:
        raise RecordingError(f"the timeline has {len(found)} marks 'bob: {text}' instead of one")
    return found[0]


def _name(entry: LogEntry) -> str:
    flags = entry.flags.name or "no flags"
    return f"log entry {entry.index} at byte {entry.offset} ({entry.first} + {entry.sectors}, {flags})"
