"""Recordings from outside: the log that QEMU's driver ``blklogwrites`` writes of a drive, whatever runs in the guest.

The log has the format of dm-log-writes, but no times. The source of the following rules is ``blk_log_writes_co_log`` in
QEMU's block/blklogwrites.c. The driver first carries out a request, then takes the next place in the log, and answers
the guest when the entry is written. So

- the entries are in the order of completion, and the guest has seen no completion before its entry is there;
- an entry does not say when its request was submitted;
- no entry has the flag FUA. QEMU's block layer carries out such a write as a write and a flush (``bdrv_driver_pwritev``
  in block/io.c), since the driver does not declare that flag.

A crash state must never count as legal if it is not. So where the log leaves open what happened, bob assumes what makes
the fewest states legal. A write is submitted just before its entry, and until then it is absent, though the disk may
have got it earlier. A flush makes all writes with earlier entries durable, though a write that completed while the
flush was under way may still be lost. So each legal state of the log is legal for the drive, but the drive has more."""

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import SEEK_END
from pathlib import Path
from typing import BinaryIO

from bob.errors import MalformedError, RecordingError, UsageError
from bob.trace import differences
from bob.trace.base import PIECE, Base
from bob.trace.log import LogEntry, LogReader
from bob.trace.log_format import EntryFlags
from bob.trace.log_writer import NewEntry, write_log
from bob.trace.model import SECTOR_BYTES
from bob.trace.recording import RecordedDisk, Recording

MIB = 1024 * 1024
DEVICE, BELOW = (253, 0), (7, 0)  # any numbers do: the timeline has one device, and the disk below it
_OF_QEMU = EntryFlags.FLUSH | EntryFlags.DISCARD
_QCOW2 = b"QFI\xfb"


@dataclass(frozen=True, slots=True)
class Extent:
    """The part of the drive that has the file system, in sectors: a partition, or the whole drive."""

    first: int
    sectors: int

    @property
    def padded(self) -> int:
        """The length in bytes of the disk that bob makes of this part: whole MiB. bob adds zeros at the end."""
        return -(-self.sectors * SECTOR_BYTES // MIB) * MIB


@dataclass(frozen=True, slots=True)
class Outside:
    """A recording from outside, as bob keeps it. ``entries`` counts the entries of the log, and ``writes``,
    ``flushes`` and ``discards`` those that are about the file system. ``is_checked`` says whether bob has compared the
    replayed log with the drive after the session."""

    base: Base
    recording: Recording
    entries: int
    writes: int
    flushes: int
    discards: int
    is_checked: bool


def extent_in(image: Path, offset: int, length: int | None) -> Extent:
    """Return the part of the drive ``image`` that begins at byte ``offset`` and has ``length`` bytes (None: all of the
    rest). Raise UsageError if the image is not raw, or if it does not have this part."""
    with _opened(image) as file:
        magic, size = file.read(len(_QCOW2)), file.seek(0, SEEK_END)
    if magic == _QCOW2:
        raise UsageError(
            f"{image} is a qcow2 image; expected a raw one", hint=f"qemu-img convert -O raw {image} base.img"
        )
    if size % SECTOR_BYTES or not size:
        raise UsageError(f"{image} has {size:,} bytes, which is not whole sectors of {SECTOR_BYTES} bytes")
    length = size - offset if length is None else length
    if offset % SECTOR_BYTES or length % SECTOR_BYTES:
        raise UsageError(f"offset {offset:,} and size {length:,} are not whole sectors of {SECTOR_BYTES} bytes")
    if not 0 < length <= size - offset:
        raise UsageError(
            f"{image} has {size:,} bytes, and no {length:,} bytes at byte {offset:,}",
            hint="sfdisk --json IMAGE shows its partitions, in sectors",
        )
    return Extent(offset // SECTOR_BYTES, length // SECTOR_BYTES)


def imported(
    log: LogReader,
    image: Path,
    part: Extent,
    *,
    first: int = 0,
    stop: int | None = None,
    final: Path | None = None,
    needs_flush: bool = True,
) -> Outside:
    """Return the recording in ``log`` of the drive that had the content ``image`` before. Crashes may come from just
    before entry number ``first`` to just before entry number ``stop`` (None: to the end of the log). ``final`` is the
    drive after the session. If it is None, nothing checks that the log is complete and in the right order.

    Raise MalformedError for a log that QEMU's driver does not write, and UsageError if the entries are not in the log.
    Raise RecordingError if ``needs_flush``, but the log has writes and no flush: which writes are durable is then
    unknown."""
    entries = list(_own(log, part))
    count = log.super.nr_entries
    stop = count if stop is None else stop
    if not 0 <= first <= stop <= count:
        raise UsageError(f"there are no entries {first:,} to {stop:,}", hint=f"the log has {count:,}, from 0")
    writes = sum(1 for _number, entry in entries if entry.data)
    flushes = sum(1 for _number, entry in entries if EntryFlags.FLUSH in entry.flags)
    if needs_flush and writes and not flushes:
        raise RecordingError(
            f"the log has {writes:,} writes, but no flush, so bob cannot know which of them are durable",
            hint="QEMU drops flushes with cache.no-flush=on; --write-cache none is for a drive without a cache",
        )
    packed = differences.packed(_runs(image, part), blanks=True)
    base = Base(differences.digest(packed)[:16], part.padded, packed, "", "")
    file = io.BytesIO()
    write_log(file, (entry for _number, entry in entries))
    recording = Recording(
        disks=(RecordedDisk(file.getvalue(), DEVICE),),
        timeline="".join(f"{line}\n" for line in _timeline(entries, first, stop)),
        final=differences.packed(_final(base, part, entries, image, final)),
        effective_options="",
        inodes_before={},
        inodes_after={},
    )
    discards = sum(1 for _number, entry in entries if EntryFlags.DISCARD in entry.flags)
    return Outside(base, recording, count, writes, flushes, discards, final is not None)


def _own(log: LogReader, part: Extent) -> Iterator[tuple[int, NewEntry]]:
    """Yield the entries that are about ``part`` of the drive, with their numbers in the log. Sectors are counted from
    the beginning of the part."""
    for entry in log:
        name = f"log entry {entry.index} at byte {entry.offset}"
        if entry.flags & ~_OF_QEMU:
            flags = "|".join(str(flag.name) for flag in EntryFlags if flag in entry.flags & ~_OF_QEMU)
            raise MalformedError(
                f"{name} has the flag {flags}, which QEMU's blklogwrites never writes",
                hint="the order of a log of the kernel's dm-log-writes is another; bob imports those of QEMU",
            )
        if EntryFlags.FLUSH in entry.flags:
            yield entry.index, NewEntry(EntryFlags.FLUSH)
        elif entry.nr_sectors:
            yield from _within(entry, part)
        elif not entry.sector:
            raise MalformedError(f"{name} is empty", hint="a QEMU that was killed leaves such a log; let it quit")


def _within(entry: LogEntry, part: Extent) -> Iterator[tuple[int, NewEntry]]:
    start = max(entry.first, part.first)
    stop = min(entry.first + entry.sectors, part.first + part.sectors)
    if start >= stop:
        return
    if EntryFlags.DISCARD in entry.flags:
        yield entry.index, NewEntry(EntryFlags.DISCARD, start - part.first, nr_sectors=stop - start)
    else:
        data = entry.data()[(start - entry.first) * SECTOR_BYTES : (stop - entry.first) * SECTOR_BYTES]
        yield entry.index, NewEntry(sector=start - part.first, data=data)


def _timeline(entries: Iterable[tuple[int, NewEntry]], first: int, stop: int) -> Iterator[str]:
    """Yield the lines of a timeline with the requests of ``entries``, in order. Each request is complete before the
    next one begins. The microsecond of a line is the number of its entry."""
    marks = [(first, "start"), (stop, "end")]

    def line(number: int, event: str) -> str:
        return f"            qemu-1       [000] ..... {number // 10**6}.{number % 10**6:06}: {event}"

    for number, entry in entries:
        while marks and marks[0][0] <= number:
            at, text = marks.pop(0)
            yield line(at, f"tracing_mark_write: bob: {text}")
        kind = "FW" if entry.flags & EntryFlags.FLUSH else "D" if entry.flags & EntryFlags.DISCARD else "W"
        sectors = entry.nr_sectors or len(entry.data) // SECTOR_BYTES
        bio, place = f"{DEVICE[0]},{DEVICE[1]} {kind}", f"{entry.sector} + {sectors}"
        yield line(number, f"block_bio_queue: {bio} {place} [qemu]")
        yield line(number, f"block_bio_remap: {BELOW[0]},{BELOW[1]} {kind} {place} <- (253,0) {entry.sector}")
        yield line(number, f"block_bio_complete: {bio} {place} [0]")
    for at, text in marks:
        yield line(at, f"tracing_mark_write: bob: {text}")


def _final(
    base: Base, part: Extent, entries: Iterable[tuple[int, NewEntry]], image: Path, final: Path | None
) -> Iterator[tuple[int, bytes]]:
    """Yield the sectors where the drive after the session differs from the base image. Without ``final``, these are
    the sectors that the log changes. A discard leaves undefined contents, and bob's disks ignore discards.
    So the log also decides on the sectors that were discarded last."""
    replayed: dict[int, bytes] = {}
    discarded = set[int]()
    for _number, entry in entries:
        sectors = range(entry.sector, entry.sector + (entry.nr_sectors or len(entry.data) // SECTOR_BYTES))
        if EntryFlags.DISCARD in entry.flags:
            discarded.update(sectors)
            continue
        discarded.difference_update(sectors)
        for place, sector in enumerate(sectors):
            replayed[sector] = entry.data[place * SECTOR_BYTES : (place + 1) * SECTOR_BYTES]
    if final is None:
        found = replayed
    else:
        found = dict(_changed(image, final, part))
        for sector in discarded:
            found.pop(sector, None)
        found.update((sector, replayed[sector]) for sector in discarded & replayed.keys())
    for sector, data in sorted(found.items()):
        if data != base.sector(sector):
            yield sector, data


def _changed(image: Path, final: Path, part: Extent) -> Iterator[tuple[int, bytes]]:
    """Yield the sectors of ``part`` that differ between the drives ``image`` and ``final``, with those of ``final``."""
    with _opened(image) as before, _opened(final) as after:
        sizes = [file.seek(0, SEEK_END) for file in (before, after)]
        if sizes[0] != sizes[1]:
            raise UsageError(f"{final} has {sizes[1]:,} bytes, and {image} has {sizes[0]:,}", hint="are both raw?")
        for (sector, old), (_same, new) in zip(_pieces(before, part), _pieces(after, part), strict=True):
            if old != new:
                for at in range(0, len(old), SECTOR_BYTES):
                    if old[at : at + SECTOR_BYTES] != new[at : at + SECTOR_BYTES]:
                        yield sector + at // SECTOR_BYTES, new[at : at + SECTOR_BYTES]


def _runs(image: Path, part: Extent) -> Iterator[tuple[int, bytes]]:
    with _opened(image) as file:
        yield from _pieces(file, part)
    if padding := part.padded // SECTOR_BYTES - part.sectors:
        yield part.sectors, bytes(padding * SECTOR_BYTES)


def _pieces(file: BinaryIO, part: Extent) -> Iterator[tuple[int, bytes]]:
    file.seek(part.first * SECTOR_BYTES)
    left, sector = part.sectors * SECTOR_BYTES, 0
    while left:
        data = file.read(min(PIECE, left))
        if not data or len(data) % SECTOR_BYTES:
            raise UsageError(f"{file.name} became shorter while bob read it")
        yield sector, data
        sector, left = sector + len(data) // SECTOR_BYTES, left - len(data)


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
