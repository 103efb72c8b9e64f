"""A small device-mapper with a log-writes target: makes the log and the timeline of a history whose truth is known.

It does what drivers/md/dm.c, drivers/md/dm-log-writes.c and block/blk-flush.c do (docs/facts.md, pitfalls 1-5): data is
queued in the log when it completes, a flush takes the queue when it is sent down and logs it when it completes, a FUA
write is logged at once, a mark jumps the queue, PREFLUSH becomes an empty flush and then the data, and what was never
flushed is logged at the end. Data completes in any order, flushes in the order they are sent.
"""

from __future__ import annotations

import io
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from bob.trace.log import LogReader
from bob.trace.log_format import EntryFlags
from bob.trace.log_writer import NewEntry, write_log
from bob.trace.timeline import Timeline, parse_timeline

DEVICE = (253, 0)
DISK = (7, 0)
TASKS = {11: "bob", 12: "jbd2/dm-0-8", 13: "kworker/u2:1", 14: "a - b: [7]"}
DM_WORKER = 99


@dataclass(eq=False)
class Bio:
    """One bio and what became of it, in lines of the timeline."""

    pid: int
    sector: int
    data: bytes
    preflush: bool
    fua: bool
    meta: bool
    queued: int
    flush_sent: bool = False
    flush_done: bool = False
    submitted: int = 0
    sent: int = 0
    taken: list[NewEntry] = field(default_factory=list)

    @property
    def sectors(self) -> int:
        return len(self.data) // 512

    @property
    def key(self) -> tuple[int, int, bool, bool]:
        return self.sector, self.sectors, self.fua, self.meta

    @property
    def started(self) -> bool:
        """Whether the task that queued it came to send it, or the flush before it."""
        return self.flush_sent or bool(self.sent)

    def rwbs(self, *, preflush: bool) -> str:
        return f"{'F' * preflush}W{'F' * self.fua}S{'M' * self.meta}"


class Simulator:
    """Random histories: ``twins`` allows writes that look alike to be in flight together. With ``chained`` the kernel
    does not trace the completion of some writes, of which none looks like another one.

    Several simulators with ``lines`` in common are several disks on one clock; see :func:`run_together`.
    """

    def __init__(
        self,
        seed: int,
        *,
        twins: bool = False,
        chained: bool = False,
        sectorsize: int = 512,
        device: tuple[int, int] = DEVICE,
        lines: list[str] | None = None,
    ) -> None:
        self.random = random.Random(seed)
        self.twins = twins
        self.chained = chained
        self.silent: set[tuple[int, int, bool, bool]] = set()
        self.sectorsize = sectorsize
        self.device = device
        self.lines = ["# tracer: nop", "#"] if lines is None else lines
        self.open: list[Bio] = []
        self.flushes_down: list[Bio] = []
        self.unflushed: list[NewEntry] = []
        self.logged: list[NewEntry] = []
        self.writes: list[tuple[int, bytes, bool, bool, int, int, str]] = []
        self.flushes: list[tuple[int, int, str]] = []
        self.flushes_logged: list[int] = []
        self.sequence = 0

    def run(self, steps: int) -> None:
        run_together([self], steps)

    def step(self) -> None:
        self.random.choice([self.submit, self.submit, self.advance, self.advance, self.advance, self.noise])()

    def settle(self) -> None:
        while self.open:
            self.advance()

    def mark(self, text: str) -> None:
        self._line(11, f"tracing_mark_write: bob: {text}")

    def timeline(self) -> Timeline:
        return parse_timeline("\n".join(self.lines) + "\n")

    def log(self) -> LogReader:
        file = io.BytesIO()
        write_log(file, self.logged, sectorsize=self.sectorsize)
        return LogReader(file)

    def submit(self) -> None:
        chance = self.random.random
        unit = self.sectorsize // 512
        length = self.random.choice([0, 1, 1, 1, 2, 3]) * unit
        idle = set(TASKS) - {bio.pid for bio in self.open if not bio.started}
        if not idle:
            return
        bio = Bio(
            pid=self.random.choice(sorted(idle)),
            sector=self.random.randrange(4 if self.twins else 40) * unit if length else 0,
            data=self._data(length),
            preflush=length == 0 or chance() < 0.3,
            fua=chance() < 0.3,
            meta=chance() < 0.3,
            queued=0,
        )
        if length and not self.twins and (bio.key in self.silent or any(bio.key == other.key for other in self.open)):
            return
        bio.queued = self._bio("queue", bio.pid, bio, bio.preflush)
        self.open.append(bio)
        if chance() < 0.8:  # else another task runs before dm maps it
            self._send(bio)

    def advance(self) -> None:
        if self.open:
            self._next(self.random.choice(self.open))

    def noise(self) -> None:
        pid = self.random.choice(list(TASKS))
        match self.random.randrange(5):
            case 0:
                self._line(pid, f"block_bio_queue: {_dev(self.device)} RA 8 + 8 [bob]")
            case 1:
                self._line(pid, "block_bio_complete: 8,16 WS 0 + 8 [-5]")
            case 2:
                self._line(pid, "jbd2_start_commit: dev 253,0 transaction 4 sync 0")
            case 3:
                self._line(pid, f"block_bio_queue: {_dev(self.device)} DS 0 + 64 [fstrim]")
                unit = self.sectorsize // 512
                self.unflushed.append(NewEntry(EntryFlags.DISCARD, nr_sectors=64 // unit))
            case 4:
                self.logged.append(NewEntry(EntryFlags.MARK, mark="a-mark"))  # jumps the queue

    def _next(self, bio: Bio) -> None:
        """One step of a bio's life, if it can be taken now."""
        if not bio.started:
            self._send(bio)
        elif bio.preflush and not bio.flush_done:
            self._complete_flush()
        elif not bio.sent:
            self._send_data(bio, DM_WORKER)
        else:
            self._complete(bio)

    def _send(self, bio: Bio) -> None:
        """What the task that queued it does in the same call: send the data, or the flush before it."""
        if not bio.preflush:
            self._send_data(bio, bio.pid)
            bio.submitted = bio.queued
            return
        bio.flush_sent = True
        bio.taken, self.unflushed = self.unflushed, []
        rwbs = bio.rwbs(preflush=True)
        self._line(
            bio.pid, f"block_bio_remap: {_dev(DISK)} {rwbs} {bio.sector} + 0 <- ({_dev(self.device)}) {bio.sector}"
        )
        self.flushes_down.append(bio)

    def _send_data(self, bio: Bio, pid: int) -> None:
        rwbs, where = bio.rwbs(preflush=False), f"{bio.sector} + {bio.sectors}"
        bio.sent = bio.submitted = self._line(
            pid, f"block_bio_remap: {_dev(DISK)} {rwbs} {where} <- ({_dev(self.device)}) {bio.sector}"
        )
        if bio.preflush:
            self.flushes.append((bio.queued, bio.sent, TASKS[bio.pid]))

    def _complete_flush(self) -> None:
        bio = self.flushes_down.pop(0)
        bio.flush_done = True
        flags = (
            EntryFlags.FLUSH
            | (EntryFlags.FUA if bio.fua else EntryFlags(0))
            | (EntryFlags.METADATA if bio.meta else EntryFlags(0))
        )
        self.flushes_logged.append(bio.queued)
        self.logged += [*bio.taken, NewEntry(flags, bio.sector * 512 // self.sectorsize)]
        if not bio.sectors:
            self.open.remove(bio)
            done = self._bio("complete", 0, bio, True)
            self.flushes.append((bio.queued, done, TASKS[bio.pid]))

    def _complete(self, bio: Bio) -> None:
        self.open.remove(bio)
        flags = (EntryFlags.FUA if bio.fua else EntryFlags(0)) | (EntryFlags.METADATA if bio.meta else EntryFlags(0))
        entry = NewEntry(flags, bio.sector * 512 // self.sectorsize, bio.data)
        (self.logged if bio.fua else self.unflushed).append(entry)
        if self.chained and not (bio.fua or bio.preflush) and self.random.random() < 0.5:
            self.silent.add(bio.key)
            done = len(self.lines)
        else:
            done = self._bio("complete", 0, bio, False)
        self.writes.append((bio.sector, bio.data, bio.fua, bio.meta, bio.submitted, done, TASKS[bio.pid]))

    def _data(self, sectors: int) -> bytes:
        """Data that no other bio has."""
        self.sequence += 1
        return self.sequence.to_bytes(8, "little") * (64 * sectors)

    def _bio(self, what: str, pid: int, bio: Bio, preflush: bool) -> int:
        tail = "[0]" if what == "complete" else f"[{TASKS[bio.pid]}]"
        rwbs = bio.rwbs(preflush=preflush)
        return self._line(pid, f"block_bio_{what}: {_dev(self.device)} {rwbs} {bio.sector} + {bio.sectors} {tail}")

    def _line(self, pid: int, event: str) -> int:
        """Writes a line; returns its number, which is its time. Many lines share a microsecond."""
        task = {0: "<idle>", DM_WORKER: "kdmflush/253:0"}.get(pid) or TASKS[pid]
        self.lines.append(f"{task:>16}-{pid:<7} [000] d.h2.    12.{len(self.lines) // 3:06}: {event}")
        return len(self.lines)


def run_together(disks: Sequence[Simulator], steps: int) -> None:
    """So many steps, each of any disk, between the marks of a recording."""
    first = disks[0]
    first.mark("start")
    for _ in range(steps):
        first.random.choice(disks).step()
    for disk in disks:
        disk.settle()
    first.mark("end")
    for disk in disks:
        disk.logged += disk.unflushed  # log_writes_dtr


def _dev(device: tuple[int, int]) -> str:
    return f"{device[0]},{device[1]}"
