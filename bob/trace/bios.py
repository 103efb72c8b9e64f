"""From the events of a timeline to whole bios: who was submitted when, sent down when, completed when.

A tracepoint names a bio by device, sector and length only, so events have to be paired. Three facts about dm core
(drivers/md/dm.c) make that exact, or, where two bios look alike, safe:

- Every write is *queued* on the dm device, *sent* (``block_bio_remap``, right after the target copied its data) and
  *completed*, each exactly once. A bio with REQ_PREFLUSH and data sends an empty flush first and its data only when
  that flush has completed (dm_io_complete clears REQ_PREFLUSH and queues the bio again; the block layer does not trace
  that second queueing). So the moment its data is sent *is* the completion of its flush, as far as anyone can know.
- A flush is sent by the task that queued it, in the same call: the pid pairs the two.
- Flushes complete in the order they are sent: the disk has one queue, which runs one flush at a time and completes its
  waiters in order (block/blk-flush.c). A disk that crossed two of them anyway would have made more durable, sooner,
  than is said here.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from bob.errors import RecordingError
from bob.trace.model import Flush, Moment
from bob.trace.rwbs import Op
from bob.trace.timeline import BioCompleted, BioEvent, BioQueued, BioSent, Device, Timeline


class Key(NamedTuple):
    """What tells writes apart, in the timeline and in the log; sectors are of 512 bytes, ``meta`` is REQ_META."""

    sector: int
    sectors: int
    fua: bool
    meta: bool


@dataclass(frozen=True, slots=True)
class WriteBio:
    """One write with data: ``submitted`` is already the moment its own flush, if it had one, was over."""

    key: Key
    submitted: Moment
    completed: Moment
    task: str


@dataclass(frozen=True, slots=True)
class Bios:
    """All that was asked of one device: ``writes`` and ``flushes`` in order of completion.

    ``discards`` counts discard bios. They have no part in crash states: dm-log-writes offers discards that nobody
    carries out where the disk has none, and not discarding is something every disk may do.
    """

    writes: tuple[WriteBio, ...]
    flushes: tuple[Flush, ...]
    discards: int


@dataclass(slots=True)
class _Open:
    """A bio that is not completed yet. ``sent`` is when its data went down."""

    queued: BioQueued
    sent: Moment | None = None

    @property
    def submitted(self) -> Moment | None:
        return self.sent if self.queued.rwbs.flushes else self.queued.at


def pair_bios(timeline: Timeline, device: Device) -> Bios:
    """The bios of ``device`` (the log-writes target), from start to end of the timeline.

    Raises RecordingError for a bio that was not seen whole (tracing began too late or ended too early), failed, or
    changes the device in a way that the log does not have (write zeroes, zone operations).
    """
    pairing = _Pairing()
    for event in timeline.events:
        match event:
            case BioQueued() if event.device == device:
                pairing.queued(event)
            case BioSent() if event.origin == device:
                pairing.sent(event)
            case BioCompleted() if event.device == device:
                pairing.completed(event)
    return pairing.result()


class _Pairing:
    """What is under way at one point of the timeline, and what is over."""

    def __init__(self) -> None:
        self._writes: dict[Key, list[_Open]] = {}
        self._flushes_to_send: list[BioQueued] = []
        self._flushes_sent: deque[BioQueued] = deque()
        self._done: list[WriteBio] = []
        self._flushed: list[Flush] = []
        self._discards = 0

    def queued(self, event: BioQueued) -> None:
        if event.rwbs.op is Op.READ:
            return
        if event.rwbs.op is Op.DISCARD:
            self._discards += 1
            return
        if event.sectors and event.rwbs.op is not Op.WRITE:
            # blk_fill_rwbs has no letter for REQ_OP_WRITE_ZEROES. The target does not offer it (num_write_zeroes_bios
            # is 0), so submit_bio_noacct turns it away before it is traced; if one is here, the log lacks its zeroes.
            raise RecordingError(f"{_name(event)} is neither read, write, flush nor discard: the log cannot have it")
        if event.rwbs.flushes:
            self._flushes_to_send.append(event)
        if event.sectors:
            self._writes.setdefault(_key(event, event.sector), []).append(_Open(event))

    def sent(self, event: BioSent) -> None:
        if event.rwbs.op in (Op.READ, Op.DISCARD):
            return
        if event.sectors:
            self._data_sent(event)
        elif event.rwbs.flushes:
            self._flush_sent(event)

    def completed(self, event: BioCompleted) -> None:
        if event.rwbs.op in (Op.READ, Op.DISCARD):
            return
        if event.error:
            raise RecordingError(f"{_name(event)} failed with error {event.error}", hint="is a disk or the log full?")
        if event.sectors:
            self._write_completed(event)
        elif event.rwbs.flushes:
            if not self._flushes_sent:
                raise _unseen(event, "sent down")
            flush = self._flushes_sent.popleft()
            self._flushed.append(Flush(flush.at, event.at, flush.task))

    def result(self) -> Bios:
        waiting = [bio.queued for bios in self._writes.values() for bio in bios]
        waiting += [*self._flushes_to_send, *self._flushes_sent]
        if waiting:
            first = min(waiting, key=lambda event: event.at.time)
            raise RecordingError(
                f"{_name(first)} never completed, nor did {len(waiting) - 1} more",
                hint="the recorder must wait until the device is quiet, then read the trace buffer",
            )
        return Bios(tuple(self._done), tuple(self._flushed), self._discards)

    def _flush_sent(self, event: BioSent) -> None:
        """The empty clone of a flush, or of a bio with PREFLUSH and data, goes down."""
        waiting = self._flushes_to_send
        if not waiting:
            raise _unseen(event, "queued")
        # A suspended device's bios are sent by dm's own worker, hence the second choice.
        flush = next((flush for flush in waiting if flush.pid == event.pid), waiting[0])
        waiting.remove(flush)
        if not flush.sectors:
            self._flushes_sent.append(flush)

    def _data_sent(self, event: BioSent) -> None:
        waiting = [bio for bio in self._writes.get(_key(event, event.origin_sector), ()) if bio.sent is None]
        if not waiting:
            raise _unseen(event, "queued")
        # Among bios that look alike, one with PREFLUSH comes last: to say that its flush is over before it is would
        # let its data onto the disk too early, and that would be a false violation.
        bio = min(waiting, key=lambda bio: bio.queued.rwbs.flushes)
        bio.sent = event.at
        if bio.queued.rwbs.flushes:
            self._flushed.append(Flush(bio.queued.at, event.at, bio.queued.task))

    def _write_completed(self, event: BioCompleted) -> None:
        key = _key(event, event.sector)
        under_way = self._writes.get(key, [])
        bio = next((bio for bio in under_way if bio.sent is not None), None)
        if bio is None:
            raise _unseen(event, "queued and sent down")
        # Of several that look alike the oldest is taken, but any of them may be the one; the log has the data in order
        # of completion, so what completed here may be what was submitted last. To claim the latest submission can only
        # leave crash states out, never add one that could not be. (Which one landed last was never determined, for
        # they were in flight together; the recorder's replay of the whole log against the device tells.)
        submitted = max((other.submitted for other in under_way if other.submitted), key=lambda moment: moment.time)
        self._done.append(WriteBio(key, submitted, event.at, bio.queued.task))
        under_way.remove(bio)
        if not under_way:
            del self._writes[key]


def _key(event: BioEvent, sector: int) -> Key:
    """PREFLUSH is no part of it: dm takes the flag off once the flush is done."""
    return Key(sector, event.sectors, event.rwbs.fua, event.rwbs.meta)


def _name(event: BioEvent) -> str:
    """The bio for an error message."""
    return f"timeline line {event.at.time}: bio {event.rwbs.text} {event.sector} + {event.sectors} of {event.task}"


def _unseen(event: BioEvent, what: str) -> RecordingError:
    return RecordingError(
        f"{_name(event)} was never seen {what}",
        hint="trace queue, remap and complete events from before the log-writes device exists until it is removed",
    )
