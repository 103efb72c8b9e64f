"""The scratch device, which holds crash states when they are mounted, and what watches it: traces, counts and the
kernel's log."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import NamedTuple

from bob.agent.inside.assembly import Assembly, slices
from bob.agent.inside.devices import IN_FLIGHT, SECTOR, SECTORS_READ, SECTORS_WRITTEN, Loop, opened
from bob.agent.inside.documents import LayerDocument
from bob.agent.inside.images import Runs
from bob.agent.inside.medium import ScratchMedium
from bob.agent.inside.mounts import KernelLog
from bob.agent.inside.ram_disk import RamDisk
from bob.agent.inside.ring_buffer import PAGE_BYTES, Pipe, drained, places
from bob.agent.inside.tracing import Instance, kernel_device, make_probes

NAME = "bob-observe"
TRACE_KIB = 4096
QUEUE = "block_bio_queue"
AHEAD = "bob/ahead"
LOOKUP = "bob/lookup"
JREAD, JREAD_END = "bob/jread", "bob/jread_end"
JBD2_PROBES = (f"p:{JREAD} jbd2:jread", f"r:{JREAD_END} jbd2:jread")
PROBES = (
    f"p:{AHEAD} __bh_read_batch n=$arg1:u32 wait=$arg4:u8 size=+32(+0($arg2)):u32 "
    + " ".join(f"b{number}=+24(+{8 * number}($arg2)):u64" for number in range(8)),
    f"p:{LOOKUP} __find_get_block b=$arg2:u64",
)
"""Kprobes that separate blocks that are used from blocks that are only read ahead (bob/observe/accesses.py). The
offsets are those of b_blocknr and b_size in struct buffer_head (include/linux/buffer_head.h), unchanged since
2.6.12."""
NO_FILTER = "0"
ANOTHER_LOOKUP = ("p:bob/other_lookup __find_get_block_nonatomic",)
"""Another function for lookups (fs/buffer.c from 6.15 on, and later versions of 6.12). The compiler may inline it, and
lookups then go unseen. In that case all reads count as used. They also do up to 6.0, which lacks __bh_read_batch."""

MOST_EMPTY_READS = 1000  # reads of the trace in a row that may return nothing although there are events
UNDER_WAY_SECONDS = 30.0  # requests that a failed mount leaves behind may take so long
POLL_SECONDS = 0.001


class SectorCounts(NamedTuple):
    read: int
    written: int


def counts(stat: Callable[[], bytes]) -> SectorCounts:
    """Return how many sectors were read from a device, and how many were written to it. ``stat`` returns the text of
    the device's file ``stat``. The counts are taken when no request of the device is in flight. A mount that fails may
    leave requests behind: btrfs, for example, reads ahead. Raises RuntimeError if requests stay in flight."""
    deadline = time.monotonic() + UNDER_WAY_SECONDS
    while True:
        fields = stat().split()
        if fields[IN_FLIGHT] == b"0":
            return SectorCounts(int(fields[SECTORS_READ]), int(fields[SECTORS_WRITTEN]))
        if time.monotonic() > deadline:
            raise RuntimeError(f"{int(fields[IN_FLIGHT])} requests of the scratch device are still under way")
        time.sleep(POLL_SECONDS)


def patient(read: Pipe, more: Callable[[], bool]) -> Pipe:
    """Return a function that reads a trace buffer as ``read`` does. But if ``read`` returns nothing although ``more()``
    says that there are events, the function tries again. An event may come between two checks in the kernel
    (tracing_buffers_read in kernel/trace/trace.c), and a buffer with only discarded events does not count as empty
    (rb_per_cpu_empty in kernel/trace/ring_buffer.c)."""

    def read_on() -> bytes:
        for _ in range(MOST_EMPTY_READS):
            if page := read():
                return page
            if not more():
                raise BlockingIOError
            time.sleep(POLL_SECONDS)
        raise RuntimeError("cannot read the kernel's trace to its end")

    return read_on


class KernelEvents(NamedTuple):
    trace: Instance
    pipe: Pipe


@contextmanager
def kernel_events(name: str, events: dict[str, str]) -> Iterator[KernelEvents]:
    trace = Instance(name, events, TRACE_KIB)
    with trace, opened(f"{trace.path}/per_cpu/cpu0/trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK) as pipe:
        yield KernelEvents(trace, patient(lambda: os.read(pipe, PAGE_BYTES), trace.has_more))


class Scratch:
    """The scratch device, where bob builds and mounts crash states. Its content is the image ``work`` of the
    :class:`ScratchMedium` ``over``. The device is divided into disks, whose lengths in bytes are ``disks``, and
    ``layers`` (such as RAID) lie over the disks. The disks with numbers in ``lost`` are left out. Traces, counts and
    the kernel's log observe the device. Making the device takes as long as some mounts. So the crash states of several
    workloads use the same device, one workload after the other."""

    def __init__(
        self,
        over: ScratchMedium,
        reads: bool,
        disks: Sequence[int],
        layers: Sequence[LayerDocument],
        lost: Sequence[int] = (),
    ) -> None:
        self.medium, self.reads = over, reads
        self.made_of = disks, layers, lost
        self.looking_out: list[int] = []
        self.put_back: Runs = []
        with ExitStack() as resources:
            self.disk: Loop | RamDisk
            if over.address is None:
                self.disk = loop = resources.enter_context(closing(Loop(over.work_path, volatile=False)))
                loop.release_holder()
            else:
                self.disk = resources.enter_context(closing(RamDisk(over.length // SECTOR)))
            parts = resources.enter_context(slices(self.disk.path, disks))
            self.assembly = Assembly(layers, parts, lost=lost, crashed=True)
            condition = f"dev == {kernel_device(self.disk.device)} && nr_sector > 0"
            # rwbs begins with R if the bio reads (blk_fill_rwbs in kernel/trace/blktrace.c). All others write: write
            # zeroes, for one, lacks a letter of its own.
            self.of_disk = self.of_all = condition
            self.of_writes = condition + ' && !(rwbs ~ "R*")'
            self.volume, self.traces_reads = 0, True
            # Writes have a trace of their own: to find them among all reads would take as long as half a mount.
            self.written = resources.enter_context(kernel_events(f"{NAME}-writes", {f"block/{QUEUE}": self.of_writes}))
            self.everything: KernelEvents | None = None
            if reads:
                events = {f"block/{QUEUE}": self.of_all}
                if not make_probes(ANOTHER_LOOKUP) and make_probes(PROBES):
                    events |= {AHEAD: NO_FILTER, LOOKUP: NO_FILTER}
                    if make_probes(JBD2_PROBES):
                        events |= {JREAD: NO_FILTER, JREAD_END: NO_FILTER}
                self.everything = resources.enter_context(kernel_events(NAME, events))
            self.layouts = (self.everything or self.written).trace.layouts()
            fields = self.layouts[QUEUE]["fields"]
            self.first_of_run = fields["sector"][0]
            self.run = struct.Struct(f"<Q{fields['nr_sector'][0] - self.first_of_run - 8}xI")
            self.stat = resources.enter_context(opened(f"/sys/block/{self.disk.name}/stat", os.O_RDONLY))
            self.kernel = KernelLog()
            resources.callback(self.kernel.close)
            self.resources = resources.pop_all()
        self.counted = self.count()

    def close(self) -> None:
        self.resources.close()

    def look_out(self, blocks: list[int]) -> None:
        """From now on, trace lookups in the page cache only for the blocks from ``blocks[0]`` to ``blocks[1]``. Trace
        none if the first number is larger than the second, and all if the list is empty. If ``blocks`` are the same as
        before, do nothing, because a change takes time: the kernel waits until the old filter is unused."""
        if blocks != self.looking_out and self.everything is not None and LOOKUP in self.everything.trace.events:
            condition = f"b >= {blocks[0]} && b <= {blocks[1]}" if blocks else NO_FILTER
            self.everything.trace.write(f"events/{LOOKUP}/filter", condition)
            self.looking_out = blocks

    @contextmanager
    def assembled(self) -> Iterator[None]:
        """Assemble the layers during a ``with`` block. If there are layers, also trace the reads of the device that
        they make. Events about readahead name blocks of that device, and its reads show where these blocks are on the
        disks. Raises LayerFailed if a layer does not start."""
        with self.assembly:
            if self.made_of[1] and self.everything is not None:
                volume = kernel_device(os.stat(self.assembly.path).st_rdev)
                if volume != self.volume:
                    self.volume = volume
                    self.of_all = f'({self.of_disk}) || (dev == {volume} && nr_sector > 0 && rwbs ~ "R*")'
                    self.trace_reads(self.traces_reads)
            yield

    def trace_reads(self, traced: bool) -> None:
        """Turn the trace of reads on or off. It must be off while checkers run, because these read more than the trace
        buffer can hold."""
        self.traces_reads = traced
        if self.everything is not None:
            condition = self.of_all if traced else self.of_writes
            self.everything.trace.write(f"events/block/{QUEUE}/filter", condition)

    def accessed(self) -> tuple[bytes, int, Runs]:
        """Return what was done to the device since the last call. First come the pages of the trace (empty if reads are
        not traced), then the number of sectors that were read. Last come the runs of sectors that were written.
        Raises RuntimeError if the trace lacks writes."""
        read, written = self.counted
        self.counted = self.count()  # first, because it waits for requests under way
        trace = b"" if self.everything is None else drained(self.everything.pipe)
        runs = self._runs(drained(self.written.pipe))
        if sum([count for _sector, count in runs]) != self.counted[1] - written:
            raise RuntimeError("the trace of recovery's writes is incomplete")
        return trace, self.counted[0] - read, runs

    def _runs(self, writes: bytes) -> Runs:
        unpack, first = self.run.unpack_from, self.first_of_run
        return [unpack(writes, place + first) for place in places(writes)]

    def came_back(self) -> bool:
        """Return whether the image ``work`` equals the base image (the content before the recording) again
        (:meth:`ScratchMedium.changed`), and the traces have lost no event."""
        written, self.put_back = self.put_back, []
        traces = [watched.trace for watched in (self.written, self.everything) if watched is not None]
        return not any(trace.lost() for trace in traces) and not self.medium.changed(written)

    def count(self) -> SectorCounts:
        return counts(lambda: os.pread(self.stat, 4096, 0))
