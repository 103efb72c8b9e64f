"""From the events of a timeline to whole bios: who was submitted when, sent down when, completed when.

A tracepoint names a bio by device, sector and length only, so events have to be paired. What follows makes that
exact or, where two bios look alike, safe. It is dm core's doing (drivers/md/dm.c) where no other file is named.

- Every write is *queued* on the dm device, *sent* (``block_bio_remap``, right after the target copied its data) and
  *completed*, each exactly once. A bio with REQ_PREFLUSH and data sends an empty flush first and its data only when
  that flush has completed (dm_io_complete clears REQ_PREFLUSH and queues the bio again; the block layer does not trace
  that second queueing). So the moment its data is sent *is* the completion of its flush, as far as anyone can know.
- A bio that a file system chained to others (btrfs does, for its mirrors) is traced as completed when all of them are
  (bio_endio in block/bio.c). That is later than the disk was done with it, but no file system can have known earlier.
- A flush, and the data of a write without PREFLUSH, is sent by the task that queued it, in the same call: the pid
  pairs the two. Data with PREFLUSH is sent by a worker of dm.
- Flushes complete in the order they are sent: the disk has one queue, which runs one flush at a time and completes its
  waiters in order (block/blk-flush.c). Nor can pairing in order claim too much. Let flushes be sent at s1 < s2 and
  completions come at c1 < c2: in between, what was complete at s1 counts as durable, a subset of what was at s2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from bob.errors import RecordingError
from bob.trace.model import Flush, Moment
from bob.trace.rwbs import Op
from bob.trace.timeline import BioCompleted, BioEvent, BioQueued, BioSent, Device, Timeline


class WriteKey(NamedTuple):
    """What tells writes apart, in the timeline and in the log; sectors are of 512 bytes, ``meta`` is REQ_META."""

    sector: int
    sectors: int
    fua: bool
    meta: bool


@dataclass(frozen=True, slots=True)
class WriteBio:
    """One write with data: ``submitted`` is already the moment its own flush, if it had one, was over."""

    key: WriteKey
    submitted: Moment
    completed: Moment
    task: str


@dataclass(frozen=True, slots=True)
class OpenBio:
    """One write with data, neither FUA nor PREFLUSH, that was sent to the disk and not seen to complete."""

    key: WriteKey
    submitted: Moment
    sent: Moment
    task: str


@dataclass(frozen=True, slots=True)
class Bios:
    """All that was asked of one device: ``writes`` and ``flushes`` in order of completion, and what is still ``open``.

    Open are only writes that look like no other one, and only where completions may go untraced. ``flushes_sent`` is
    when each flush was submitted, in the order in which they were sent, which is that of the log: the flush of a write
    with data is over, as far as the timeline tells, only when that data is sent, and others may be over in between.

    ``discards`` counts discard bios. They have no part in crash states: dm-log-writes offers discards that nothing
    carries out where the disk has none, and not discarding is something every disk may do.
    """

    writes: tuple[WriteBio, ...]
    flushes: tuple[Flush, ...]
    discards: int
    open: tuple[OpenBio, ...] = ()
    flushes_sent: tuple[Moment, ...] = ()


@dataclass(slots=True)
class _OpenWrite:
    """A write that is not completed yet. ``sent`` is when its data went down; ``alone`` while none looked like it."""

    queued: BioQueued
    sent: Moment | None = None
    alone: bool = True


def pair_bios(timeline: Timeline, device: Device, *, untraced: bool = False) -> Bios:
    """The bios of ``device`` (the log-writes target), from start to end of the timeline.

    ``untraced`` says that the kernel does not trace the completion of a bio that is chained to another one: bio_endio
    in block/bio.c of Linux 5.10 goes on with the other one before it traces, that of 6.1 after.

    Raises RecordingError for a bio that was not seen whole (tracing began too late or ended too early), failed, or
    changes the device in a way that the log does not have (write zeroes, zone operations).
    """
    pairing = _BioPairs()
    for event in timeline.events:
        match event:
            case BioQueued() if event.device == device:
                pairing.queued(event)
            case BioSent() if event.origin == device:
                pairing.sent(event)
            case BioCompleted() if event.device == device:
                pairing.completed(event)
    return pairing.result(untraced=untraced)


class _BioPairs:
    """What is under way at one point of the timeline, and what is over."""

    def __init__(self) -> None:
        self._writes: dict[WriteKey, list[_OpenWrite]] = {}
        self._flushes_to_send: list[BioQueued] = []
        self._flushes_sent: deque[BioQueued] = deque()
        self._done: list[WriteBio] = []
        self._flushed: list[Flush] = []
        self._every_flush_sent: list[Moment] = []
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
            alike = self._writes.setdefault(_key(event, event.sector), [])
            alike.append(_OpenWrite(event))
            if len(alike) > 1:
                for bio in alike:
                    bio.alone = False

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

    def result(self, *, untraced: bool) -> Bios:
        chained = tuple(self._take_chained()) if untraced else ()
        waiting = [bio.queued for bios in self._writes.values() for bio in bios]
        waiting += [*self._flushes_to_send, *self._flushes_sent]
        if waiting:
            first = min(waiting, key=lambda event: event.at.time)
            raise RecordingError(
                f"{_name(first)} never completed, nor did {len(waiting) - 1} more",
                hint="the recorder must wait until the device is quiet, then read the trace buffer",
            )
        return Bios(tuple(self._done), tuple(self._flushed), self._discards, chained, tuple(self._every_flush_sent))

    def _take_chained(self) -> Iterator[OpenBio]:
        for key, alike in self._writes.items():
            for bio in [bio for bio in alike if bio.alone and bio.sent and not (key.fua or bio.queued.rwbs.flushes)]:
                alike.remove(bio)
                assert bio.sent is not None
                yield OpenBio(key, bio.queued.at, bio.sent, bio.queued.task)

    def _flush_sent(self, event: BioSent) -> None:
        """The empty clone of a flush, or of a bio with PREFLUSH and data, goes down."""
        waiting = self._flushes_to_send
        if not waiting:
            raise _unseen(event, "queued")
        # A suspended device's bios are sent by dm's own worker, hence the second choice.
        flush = next((flush for flush in waiting if flush.pid == event.pid), waiting[0])
        waiting.remove(flush)
        self._every_flush_sent.append(flush.at)
        if not flush.sectors:
            self._flushes_sent.append(flush)

    def _data_sent(self, event: BioSent) -> None:
        waiting = [bio for bio in self._writes.get(_key(event, event.origin_sector), ()) if bio.sent is None]
        if not waiting:
            raise _unseen(event, "queued")
        bio = min(waiting, key=lambda bio: _rank(bio.queued, event.pid))
        bio.sent = event.at
        if bio.queued.rwbs.flushes:
            self._flushed.append(Flush(bio.queued.at, event.at, bio.queued.task))

    def _write_completed(self, event: BioCompleted) -> None:
        key = _key(event, event.sector)
        alike = self._writes.get(key, [])
        sent = [(bio.sent, bio) for bio in alike if bio.sent is not None]
        if not sent:
            raise _unseen(event, "queued and sent down")
        # Of several that look alike the first sent is taken, but any may be the one. The log has their data in order of
        # completion, so the data that goes with this completion may be what was submitted last: to claim the latest
        # moment there is can only leave crash states out, never add one that could not be. (Which one landed last was
        # never determined, for they were in flight together. Replaying the log against the device tells the recorder.)
        moment, bio = min(sent, key=lambda pair: pair[0].time)
        if not bio.alone:
            moment = max((moment for moment, _ in sent), key=lambda moment: moment.time)
        elif not bio.queued.rwbs.flushes:
            moment = bio.queued.at
        self._done.append(WriteBio(key, moment, event.at, bio.queued.task))
        alike.remove(bio)


def _rank(queued: BioQueued, pid: int) -> int:
    """How well a write fits data that task ``pid`` sends, best first: its own, that after a flush, another task's."""
    if queued.rwbs.flushes:
        return 1
    return 0 if queued.pid == pid else 2


def _key(event: BioEvent, sector: int) -> WriteKey:
    """PREFLUSH is no part of it: dm takes the flag off once the flush is done."""
    return WriteKey(sector, event.sectors, event.rwbs.fua, event.rwbs.meta)


def _name(event: BioEvent) -> str:
    """The bio for an error message."""
    return f"timeline line {event.at.time}: bio {event.rwbs.text} {event.sector} + {event.sectors} of {event.task}"


def _unseen(event: BioEvent, what: str) -> RecordingError:
    return RecordingError(
        f"{_name(event)} was never seen {what}",
        hint="trace queue, remap and complete events from before the log-writes device exists until it is removed",
    )
