"""Builds crash states on a scratch image, recovers them as a boot would, and looks at what is there.

The scratch image is the medium's working copy under one block device. A state is written into it, mounted, looked at,
unmounted, and every sector that the state or its recovery wrote is put back: the cost is that of the changed sectors,
not of the image. What recovery wrote is known from the kernel's own trace, and three things watch over that: the
device's own count of written sectors must be the trace's, for each state; nothing may be written between two states;
and the image is compared with the base whenever the host asks for this audit: the whole of it, or, where that takes as
long as many mounts, mostly what was written. If one fails, nothing since the last good audit counts.

Where the host wants to know what recovery read (``reads``), the trace has the reads too, in one order with the writes.
It goes to the host as the kernel has it, with what the device has counted: emulation makes text and Python dear, so the
host decodes.
"""

from __future__ import annotations

import json
import os
import re
import struct
import time
import zlib
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any, Optional

from bob.guest.agent import medium
from bob.guest.agent.devices import Descriptor, Loop, forget_file_systems, run_anyhow
from bob.guest.agent.frames import Refused, Reply
from bob.guest.agent.images import SECTOR, Runs, differing, pack
from bob.guest.agent.look import Look, Tree, describe
from bob.guest.agent.mounts import ROOT, KernelLog, Mount, unmount
from bob.guest.agent.ram_disk import RamDisk
from bob.guest.agent.ring_buffer import PAGE_BYTES, kind_at, places, used
from bob.guest.agent.tracing import Instance, kernel_device, make_probes

TRACE_KIB = 4096
U32, U64 = struct.Struct("<I"), struct.Struct("<Q")
QUEUE = "block_bio_queue"
READ = ord("R")
"""So begins what a bio does if it reads (blk_fill_rwbs in kernel/trace/blktrace.c); all else writes: write zeroes, for
one, has no letter of its own."""
DEVICE_NAME = re.compile(r"\b(?:loop|dm-)\d+")
SECTORS_READ, SECTORS_WRITTEN = 2, 6
"""The fields of /sys/block/NAME/stat (Documentation/block/stat.rst)."""
AHEAD = "bob/ahead"
LOOKUP = "bob/lookup"
JREAD, JREAD_END = "bob/jread", "bob/jread_end"
JBD2_PROBES = (f"p:{JREAD} jbd2:jread", f"r:{JREAD_END} jbd2:jread")
PROBES = (
    f"p:{AHEAD} __bh_read_batch n=$arg1:u32 wait=$arg4:u8 size=+32(+0($arg2)):u32 "
    + " ".join(f"b{number}=+24(+{8 * number}($arg2)):u64" for number in range(8)),
    f"p:{LOOKUP} __find_get_block b=$arg2:u64",
)
"""What tells use from readahead, see bob/observe/accesses.py. Offsets are those of b_blocknr and b_size in
struct buffer_head (include/linux/buffer_head.h), the same since 2.6.12."""
NO_FILTER = "0"
ANOTHER_LOOKUP = ("p:bob/other_lookup __find_get_block_nonatomic",)
"""Where the kernel has this second function that looks buffers up (fs/buffer.c from 6.15 on, and what was made of 6.12
since), the compiler may have put it into those that call it, so that not all lookups would be seen. (Up to 6.0 there
is no __bh_read_batch.) Then all that is read counts as used."""
SMALL = 64 * 1024 * 1024
"""Of an image up to this size (bytes) each audit compares all, in 1.4 ms for each MiB."""
WHOLE_EVERY = 10
"""Of a larger one every so many audits; the others compare what was written since the last one."""
GAP = 32
"""Sectors are put back together with those between them, up to this many: one long copy costs less than two."""

Outcome = tuple[Optional[str], bool, Optional[Tree]]
"""The error with which it did not mount, whether it was repaired, what was found."""


class Scratch:
    """The block device over the working copy of a medium, and what watches it: the kernel's trace, the device's own
    counts, the kernel's log. To make all of that takes as long as some mounts, so it outlives sessions."""

    def __init__(self, over: medium.Medium, reads: bool) -> None:
        self.medium, self.reads = over, reads
        self.looking_out: list[int] = []
        self.audits = 0
        self.put_back: Runs = []
        with ExitStack() as stack:
            self.disk: Loop | RamDisk
            if over.address is None:
                self.disk = loop = stack.enter_context(Loop(over.work_path, volatile=False))
                loop.release_holder()
            else:
                self.disk = stack.enter_context(RamDisk(over.length // SECTOR))
            condition = f"dev == {kernel_device(self.disk.device)} && nr_sector > 0"
            if not reads:
                condition += ' && !(rwbs ~ "R*")'
            events = {f"block/{QUEUE}": condition}
            if reads and not make_probes(ANOTHER_LOOKUP) and make_probes(PROBES):
                events |= {AHEAD: NO_FILTER, LOOKUP: NO_FILTER}
                if make_probes(JBD2_PROBES):
                    events |= {JREAD: NO_FILTER, JREAD_END: NO_FILTER}
            self.trace = stack.enter_context(Instance("bob-observe", events, TRACE_KIB))
            raw = f"{self.trace.path}/per_cpu/cpu0/trace_pipe_raw"
            self.pipe = stack.enter_context(Descriptor(raw, os.O_RDONLY | os.O_NONBLOCK)).fd
            self.layouts = self.trace.layouts()
            self.stat = stack.enter_context(Descriptor(f"/sys/block/{self.disk.name}/stat", os.O_RDONLY)).fd
            self.kernel = KernelLog()
            stack.callback(self.kernel.close)
            self.resources = stack.pop_all()
        self.counted = self.count()

    def close(self) -> None:
        """Take the device away."""
        self.resources.close()

    def look_out(self, blocks: list[int]) -> None:
        """Have the trace tell of lookups of the blocks from the first to the last of ``blocks`` only, of none if these
        are the wrong way round; of all lookups, if there are no ``blocks``.

        Not twice of the same: for each change the kernel waits until nobody uses the old filter.
        """
        if blocks != self.looking_out and LOOKUP in self.trace.events:
            condition = f"b >= {blocks[0]} && b <= {blocks[1]}" if blocks else NO_FILTER
            self.trace.write(f"events/{LOOKUP}/filter", condition)
            self.looking_out = blocks

    def accessed(self) -> tuple[bytes, int, Runs]:
        """What was done to the device since the last call: the trace's pages, how many sectors were read by the
        device's own count, and what was written: as many sectors as the device has counted."""
        pages: list[bytes] = []
        try:
            while True:
                pages.append(used(os.read(self.pipe, PAGE_BYTES)))
        except BlockingIOError:  # that was all: the last unmount has waited for what was under way
            pass
        trace = b"".join(pages)
        read, written = self.counted
        self.counted = self.count()
        runs = self.written(trace)
        if sum([count for _sector, count in runs]) != self.counted[1] - written:
            raise RuntimeError("the trace of what recovery wrote is not complete")
        return trace, self.counted[0] - read, runs

    def written(self, trace: bytes) -> Runs:
        """The sectors that were written."""
        number, fields = self.layouts[QUEUE]["id"], self.layouts[QUEUE]["fields"]
        sector, sectors, kind = (fields[name][0] for name in ("sector", "nr_sector", "rwbs"))
        return [
            (U64.unpack_from(trace, place + sector)[0], U32.unpack_from(trace, place + sectors)[0])
            for place in places(trace)
            if kind_at(trace, place) == number and trace[place + kind] != READ
        ]

    def came_back(self) -> bool:
        """Whether the image is its base again, byte for byte, and no event was lost."""
        work, pristine = self.medium.work, self.medium.pristine
        self.audits += 1
        written, self.put_back = merged(self.put_back), []
        if work.length <= SMALL or self.audits % WHOLE_EVERY == 1:
            written = [(0, work.length // SECTOR)]
        return not self.trace.lost() and all(work.is_same(pristine, *run) for run in written)

    def count(self) -> tuple[int, int]:
        """How many sectors were read and written, as the device itself has counted."""
        fields = os.pread(self.stat, 4096, 0).split()
        return int(fields[SECTORS_READ]), int(fields[SECTORS_WRITTEN])


class Session:
    """The crash states of one workload: base with floor, payload, and what the host was told of outcomes so far.

    Where the scratch device has the reads, ``traces`` has the pages of what each state read and wrote, and
    ``sectors_read`` how many sectors the device says it read for it; where there are ``stretches`` (first sector,
    sectors), ``left`` says how each state left them: all of the states that the host was not told of yet.
    """

    def __init__(
        self, scratch: Scratch, recovery: dict[str, Any], payload: bytes, floor: list[int], stretches: list[int]
    ) -> None:
        self.scratch, self.medium = scratch, scratch.medium
        self.payload = memoryview(payload)
        self.check: list[str] = recovery["check"]
        self.repair: list[str] = recovery["repair"]
        self.repaired: set[str] = set()
        """The refusals after which a repair was tried."""
        self.said: dict[str, str] = {}
        """What the kernel said of the first state with each refusal, in words. Words make no outcome: how much the
        kernel says depends on how fast it is asked (btrfs_printk in fs/btrfs/messages.c: 100 lines in 5 s)."""
        self.outcomes: dict[Outcome, int] = {}
        self.new_outcomes: list[str] = []
        self.looker = Look(ROOT, lasting_inodes=recovery["lasting_inodes"])
        self.traces: list[bytes] = []
        self.sectors_read: list[int] = []
        self.stretches = list(zip(stretches[::2], stretches[1::2]))
        self.left: list[list[tuple[int, int]]] = []
        self.before_floor = [
            (sector, self.medium.pristine.get(sector, count)) for sector, _source, count in triples(floor)
        ]
        self.write(floor)
        self.medium.pristine.copy(self.medium.work, targets(floor))
        self.left_contents: list[list[bytes]] = [[] for _ in self.stretches]
        scratch.look_out([])
        forget_file_systems()
        # Looking must not write: without noatime each state's unmount would have time stamps to write back.
        self.mount = Mount(scratch.disk.path, recovery["fs"], recovery["options"], ("noatime", "nodiratime"))
        scratch.accessed()

    def close(self) -> None:
        """Give the medium back as the base without the floor."""
        for sector, data in self.before_floor:
            self.medium.pristine.put(sector, data)
            self.medium.work.put(sector, data)

    def write(self, runs: list[int]) -> None:
        """Write a state, or the floor, into the scratch image."""
        put, payload = self.medium.work.put, self.payload
        for target, source, count in triples(runs):
            data = payload[source * SECTOR : (source + count) * SECTOR]
            if len(data) != count * SECTOR:
                raise ValueError(f"the payload ends before sector {source + count}")
            put(target, data)

    def outcome(self, runs: list[int]) -> int:
        """Build, recover and observe one state; the number of its outcome."""
        if self.scratch.count()[1] != self.scratch.counted[1]:
            raise RuntimeError("something wrote to the scratch device after it was unmounted")
        self.write(runs)
        found = self.recover_and_look()
        trace, sectors_read, written = self.scratch.accessed()
        changed = merged([*targets(runs), *written])
        if self.stretches:
            self.left.append(self.left_behind())
        self.medium.put_back(changed)
        self.scratch.put_back += changed
        if self.scratch.reads:
            self.traces.append(trace)
            self.sectors_read.append(sectors_read)
        number = self.outcomes.get(found)
        if number is None:
            number = self.outcomes[found] = len(self.outcomes)
            self.new_outcomes.append(encode(found, self.said))
        return number

    def left_behind(self) -> list[tuple[int, int]]:
        """The stretches that are not as in the base, by number, each with the number of its content.

        There are few contents, and to compare them takes less than to hash one.
        """
        work, pristine, left = self.medium.work, self.medium.pristine, []
        for number, run in enumerate(self.stretches):
            if not work.is_same(pristine, *run):
                content, before = work.get(*run), self.left_contents[number]
                if content not in before:
                    before.append(content)
                left.append((number, before.index(content)))
        return left

    def recover_and_look(self) -> Outcome:
        """What a boot would do, and what it finds."""
        if self.check:
            run_anyhow(self.check, self.scratch.disk.path)
        self.scratch.kernel.skip()
        error, repaired = None, False
        if number := self.mount():
            error = os.strerror(number)
            if reason := DEVICE_NAME.sub("loop", self.scratch.kernel.reason()):
                self.said.setdefault(error, reason)
            # A repair takes as long as many mounts, and says little new the second time: one for each kind of refusal.
            if not self.repair or error in self.repaired:
                return error, False, None
            self.repaired.add(error)
            run_anyhow(self.repair, self.scratch.disk.path)
            repaired = True
            if self.mount():
                return error, True, None
        tree = self.looker.tree()
        unmount()
        return error, repaired, tree

    def audit(self) -> None:
        """See that the scratch image is the base again, and that no event was lost."""
        if not self.scratch.came_back():
            raise RuntimeError("the scratch image did not come back to its base")


def triples(runs: list[int]) -> Iterable[tuple[int, int, int]]:
    """(sector, payload sector, sectors) of a flat list."""
    return zip(runs[::3], runs[1::3], runs[2::3])


def targets(runs: list[int]) -> Iterable[tuple[int, int]]:
    """(sector, sectors) of a flat list."""
    return zip(runs[::3], runs[2::3])


def merged(runs: Runs) -> Runs:
    """Runs that cover ``runs``, in order, none of them near another."""
    covering: Runs = []
    first, end = 0, -1
    for sector, count in sorted(runs):
        if sector > end + GAP or end < 0:
            if end >= 0:
                covering.append((first, end - first))
            first, end = sector, sector + count
        elif sector + count > end:
            end = sector + count
    if end >= 0:
        covering.append((first, end - first))
    return covering


def encode(outcome: Outcome, said: dict[str, str]) -> str:
    """An outcome as it travels, its refusal with what was ``said`` of it."""
    error, repaired, tree = outcome
    if error in said:
        error = f"{error}: {said[error]}"
    document = {"error": error, "repaired": repaired, "tree": None if tree is None else describe(tree)}
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


session: Session | None = None
scratch: Scratch | None = None


def end_session() -> None:
    """Leave the medium to another session."""
    global session
    ended, session = session, None
    if ended is not None:
        ended.close()


def end_scratch() -> None:
    """Leave the medium to others."""
    global scratch
    end_session()
    ended, scratch = scratch, None
    if ended is not None:
        ended.close()


def observe_prepare(
    base: str,
    recovery: dict[str, Any],
    floor: list[int],
    reads: bool,
    stretches: list[int],
    payload: int,
    blob: bytes,
) -> Reply:
    """Make the scratch device for a workload: its base, the sectors its states are made of, what all of them share.

    ``blob`` is ``payload`` bytes of zlib-compressed sectors. ``reads`` says that the host wants to know what is read,
    ``stretches`` (a flat list) of which sectors each by itself how they were left.
    """
    global session, scratch
    end_session()
    over = medium.medium_with(base, in_memory=True)
    if scratch is not None and (scratch.medium, scratch.reads) != (over, reads):
        end_scratch()
    scratch = scratch or Scratch(over, reads)
    session = Session(scratch, recovery, zlib.decompress(blob[:payload]), floor, stretches)
    return {"events": scratch.layouts, "device": scratch.disk.name}, b""


def observe(states: list[list[int]], audit: bool, lookups: list[int], blob: bytes) -> Reply:
    """Outcomes of ``states``, each a flat list of (sector, payload sector, sectors); ``blob`` extends the payload.

    Replies with the outcome number of each state and with the outcomes and contents that are new: the JSON of each,
    and the lengths of the chunks in the reply's zlib-compressed blob. After the chunks the blob has the trace of each
    state, if the host wants to know what is read; of those the reply has the lengths too, and how many sectors the
    device has counted as read. Where there are stretches, ``left`` has the numbers of those that each
    state changed, with numbers of their contents. Without
    ``audit`` all of this is to be believed after the next good audit only. Lookups are traced of the blocks
    ``lookups`` (first and last; none if that is before the first), of all if there are none.
    """
    under_way = _extended(blob)
    under_way.scratch.look_out(lookups)
    under_way.looker.new_chunks, under_way.new_outcomes = [], []
    under_way.traces, under_way.sectors_read, under_way.left = [], [], []
    started = time.monotonic()
    numbers = [under_way.outcome(runs) for runs in states]
    if audit:
        under_way.audit()
    header = {
        "outcomes": numbers,
        "new_outcomes": under_way.new_outcomes,
        "chunks": [len(chunk) for chunk in under_way.looker.new_chunks],
        "traces": [len(trace) for trace in under_way.traces],
        "sectors_read": under_way.sectors_read,
        "left": under_way.left,
        "seconds": time.monotonic() - started,
    }
    return header, zlib.compress(b"".join([*under_way.looker.new_chunks, *under_way.traces]), 1)


def state_image(runs: list[int], blob: bytes) -> Reply:
    """The image of one state as it is mounted: as blob, its differences from a device that nobody has written."""
    under_way = _extended(blob)
    under_way.write(runs)
    work = under_way.medium.work
    packed = pack(work, differing(work, under_way.medium.stale.address))
    under_way.medium.put_back(targets(runs))
    under_way.scratch.put_back += targets(runs)
    under_way.audit()
    return {}, packed


def tamper(sector: int, blob: bytes) -> Reply:
    """For the tests: change a sector of the scratch image behind the observer's back, as a forgotten undo would."""
    image = _extended(blob).medium.work
    image.put(sector, bytes(byte ^ 0xFF for byte in image.get(sector, 1)))
    return {}, b""


def _extended(blob: bytes) -> Session:
    """The session, its payload extended by ``blob``."""
    if session is None:
        raise Refused("nothing was prepared to be observed")
    if blob:
        session.payload = memoryview(bytes(session.payload) + zlib.decompress(blob))
    return session
