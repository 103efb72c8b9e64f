"""Join the trace events that belong to the same bio, so that each bio has the times of its submission and completion.

A tracepoint shows only the device, sector and length of a bio, so bob pairs events by the rules of dm core
(drivers/md/dm.c). Each write is *queued* on the dm device, *sent* to the disk (``block_bio_remap``) and *completed*.
Each of these events occurs once. A bio with REQ_PREFLUSH and data first sends an empty flush, and sends its data when
that flush has completed. So bob uses the time when the data is sent as the time when the flush completed. The kernel
traces a chained bio as completed when the whole chain has completed (bio_endio in block/bio.c).

A task queues a bio and sends it in the same call, so bob pairs the events *queued* and *sent* by their pid. Data with
PREFLUSH is the exception: a worker of dm sends it. bob pairs the events of flushes in order, since flushes complete in
the order of submission (block/blk-flush.c). If flushes completed in another order, some pairs would be wrong, but bob
would still not take any lost write for a durable one. The reason is that a later flush makes at least the same writes
durable as an earlier flush."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from bob.errors import RecordingError
from bob.trace.model import Flush, Moment
from bob.trace.timeline import BioCompleted, BioEvent, BioQueued, BioSent, Device, Op, Timeline


class WriteKey(NamedTuple):
    """The data that identifies a write both in the timeline and in the log. Sectors have 512 bytes; ``meta`` is
    REQ_META."""

    sector: int
    sectors: int
    fua: bool
    meta: bool


@dataclass(frozen=True, slots=True)
class WriteBio:
    """A completed write with data. If the bio also had PREFLUSH, ``submitted`` is the moment when the flush was
    complete and the data was sent."""

    key: WriteKey
    submitted: Moment
    completed: Moment
    task: str


@dataclass(frozen=True, slots=True)
class OpenBio:
    """A write with data, neither FUA nor PREFLUSH, whose completion the kernel did not trace."""

    key: WriteKey
    submitted: Moment
    sent: Moment
    task: str


@dataclass(frozen=True, slots=True)
class Bios:
    """The bios of one device: ``writes`` and ``flushes`` in the order of completion, and ``open``, the writes whose
    completion was not traced. bob accepts writes without a completion only on a kernel that does not trace all
    completions, and only if no other write has the same key. ``flushes_sent`` has the time when each flush was
    *queued*, but these times are in the order of the events *sent*. The log has the flushes in the same order.
    ``discards`` is only a count, because no disk has to carry out a discard."""

    writes: tuple[WriteBio, ...]
    flushes: tuple[Flush, ...]
    discards: int
    open: tuple[OpenBio, ...] = ()
    flushes_sent: tuple[Moment, ...] = ()


@dataclass(slots=True)
class _OpenWrite:
    """A write that is not completed yet. ``sent`` is the moment when its data was sent to the disk. ``alone`` is True
    while no other incomplete write has the same key."""

    queued: BioQueued
    sent: Moment | None = None
    alone: bool = True


def pair_bios(timeline: Timeline, device: Device, *, untraced: bool = False) -> Bios:
    """Return all bios in the timeline that were submitted to ``device`` (the dm-log-writes target).

    If ``untraced``, the kernel is so old that it does not trace the completion of a chained bio. In Linux 5.10,
    bio_endio in block/bio.c goes on to the parent of a chained bio, and leaves out the trace event of the chained bio.
    Linux 6.1 traces the chained bio too. Raises RecordingError for a bio that failed, that was not traced from start to
    end, or that the log cannot show (write zeroes, zone operations)."""
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
            # blk_fill_rwbs lacks a letter for REQ_OP_WRITE_ZEROES. The target does not offer it (num_write_zeroes_bios
            # is 0), so submit_bio_noacct rejects it before the trace; the log would lack its zeroes.
            raise RecordingError(f"the log cannot record {_name(event)}: not a read, write, flush or discard")
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
                f"{_name(first)} never completed; neither did {len(waiting) - 1} more",
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
        waiting = self._flushes_to_send
        if not waiting:
            raise _unseen(event, "queued")
        # If the device was suspended, a worker of dm sends the bio, and no pid matches: take the first that waits.
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
        # Several incomplete writes may have the same key, and any of them may be the completed one. The log has their
        # data in order of completion, so this data may have been submitted last. Taking the latest moment of submission
        # may leave crash states out, but never adds a wrong one. (The writes were in flight together, so any may have
        # landed last. The replay of the log shows which.)
        moment, bio = min(sent, key=lambda pair: pair[0].time)
        if not bio.alone:
            moment = max((moment for moment, _ in sent), key=lambda moment: moment.time)
        elif not bio.queued.rwbs.flushes:
            moment = bio.queued.at
        self._done.append(WriteBio(key, moment, event.at, bio.queued.task))
        alike.remove(bio)


def _rank(queued: BioQueued, pid: int) -> int:
    if queued.rwbs.flushes:
        return 1
    return 0 if queued.pid == pid else 2


def _key(event: BioEvent, sector: int) -> WriteKey:
    """Return the key of a bio. PREFLUSH is not part of it, because dm clears that flag after the flush."""
    return WriteKey(sector, event.sectors, event.rwbs.fua, event.rwbs.meta)


def _name(event: BioEvent) -> str:
    return f"timeline line {event.at.time}: bio {event.rwbs.text} {event.sector} + {event.sectors} of {event.task}"


def _unseen(event: BioEvent, what: str) -> RecordingError:
    return RecordingError(
        f"{_name(event)} was never seen {what}",
        hint="trace queue, remap and complete events from before the log-writes device exists until it is removed",
    )
