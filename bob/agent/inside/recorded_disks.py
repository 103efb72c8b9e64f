"""The disks of a recording: dm-log-writes over each, the bio timeline of all, and how to see that they are quiet."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress

from bob.agent.inside.assembly import Assembly, spans
from bob.agent.inside.block_log import read_log, writes
from bob.agent.inside.devices import (
    SECTORS_WRITTEN,
    WORK,
    Loop,
    make_log_writes,
    read_text,
    remove_log_writes,
    write_text,
)
from bob.agent.inside.documents import LayerDocument
from bob.agent.inside.frames import Denial
from bob.agent.inside.images import SECTOR, Runs
from bob.agent.inside.late_disk import LateDisk, late_disks
from bob.agent.inside.tracing import Instance, kernel_device

LOG = f"{WORK}/log"
QUIET_POLLS = 3
"""How often the device is looked at while it must be quiet. Each look costs, even where waiting is free."""
LITTLE_KIB = 256
"""So much is dirty at most where only commits go on. A disk that takes its time may still be sent data then."""
PROMPT, YOUNGEST_FIRST = "prompt", "youngest-first"
"""Values of Completion (bob/trace/recording.py)."""


class LoggedDisk:
    """One recorded disk: dm-log-writes, disk ``number`` of the recording, over the block device ``data``, with the log
    beside it."""

    def __init__(self, number: int, data: Loop | LateDisk, length: int, log_bytes: int) -> None:
        self._log_path = f"{LOG}-{number}"
        with suppress(FileNotFoundError):
            os.unlink(self._log_path)
        fd = os.open(self._log_path, os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(fd, log_bytes)
        os.close(fd)
        self._data = data
        self._log = Loop(self._log_path)
        self._counted = self._count()
        self.name = make_log_writes(number, data.path, self._log.path, length // SECTOR)
        self.path = f"/dev/{self.name}"
        self.device = os.stat(self.path).st_rdev
        cache = read_text(f"/sys/block/{self.name}/queue/write_cache").strip()
        if cache != "write back":
            raise Denial(f"the recorded device has no volatile write cache ({cache})")

    def written(self) -> str:
        """Changes with every write that the device completes or has in flight."""
        fields = read_text(f"/sys/block/{self.name}/stat").split()
        return " ".join([*fields[4:9], *fields[15:17]])

    def end(self) -> tuple[bytes, Runs | None]:
        """The log, once the target is gone, and where the device was written, or None where the log does not say that:
        the device below has counted other than as many sectors."""
        written = self._count() - self._counted
        self._log.close()
        if isinstance(self._data, Loop):  # the next recording may use the other one again
            self._data.close()
        log = read_log(self._log_path)
        os.unlink(self._log_path)
        logged = [(sector, sectors) for sector, sectors, _position in writes(log)]
        return log, logged if sum(sectors for _sector, sectors in logged) == written else None

    def _count(self) -> int:
        """How many sectors the device below has counted that were written."""
        return int(read_text(f"/sys/block/{self._data.name}/stat").split()[SECTORS_WRITTEN])


def give_history(device: int) -> None:
    """Have the kernel treat a device as one that was written before.

    One without write history has a background threshold of nothing, and the flusher would write dirty data after 5 s
    rather than 30 s, which hides ordering violations: give it the share of one with a history.
    """
    write_text(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/min_ratio", "50")


class RecordedDisks:
    """The recorded disks, which ``lengths`` (bytes) of the file ``work`` are, and what ``layers`` make of them.

    A disk completes a write at once where ``completion`` is ``prompt``, else as late as can be (late_disk.py).
    """

    def __init__(
        self,
        work: str,
        lengths: Sequence[int],
        log_bytes: int,
        completion: str = PROMPT,
        layers: Sequence[LayerDocument] = (),
    ) -> None:
        below: Sequence[Loop | LateDisk]
        if completion == PROMPT:
            below = [Loop(work, start=start, length=length) for start, length in spans(lengths)]
        else:
            below = late_disks(work, spans(lengths), youngest=completion == YOUNGEST_FIRST)
        self.disks = [
            LoggedDisk(number, data, length, log_bytes) for number, (data, length) in enumerate(zip(below, lengths))
        ]
        self._starts = [start // SECTOR for start, _length in spans(lengths)]
        self.assembly = Assembly(layers, [disk.path for disk in self.disks])
        self._has_layers = bool(layers)
        if not layers:
            give_history(self.disks[0].device)

    @property
    def devices(self) -> list[tuple[int, int]]:
        """Major and minor numbers of the disks."""
        return [(os.major(disk.device), os.minor(disk.device)) for disk in self.disks]

    def timeline(self, kib: int, more: dict[str, str] | None = None) -> Instance:
        """The trace of the disks' bios and of ``more`` events, ready to be entered."""
        numbers = [kernel_device(disk.device) for disk in self.disks]
        of_disks, from_disks = (
            " || ".join(f"{field} == {number}" for number in numbers) for field in ("dev", "old_dev")
        )
        events = {
            "block/block_bio_queue": of_disks,
            "block/block_bio_complete": of_disks,
            "block/block_bio_remap": from_disks,
            **(more or {}),
        }
        return Instance("bob-record", events, kib)

    def assemble(self) -> None:
        """Have what is mounted at ``assembly.path``: where there are layers, that is what has dirty pages."""
        self.assembly.assemble()
        if self._has_layers:
            give_history(os.stat(self.assembly.path).st_rdev)

    def written(self) -> list[str]:
        """Changes with every write that a disk completes or has in flight."""
        return [disk.written() for disk in self.disks]

    def wait_until_quiet(self, quiet: float, enough: float, deadline: float) -> None:
        """Return when nothing is dirty and no write was seen for ``quiet`` seconds, or when ``enough`` (if it is not 0)
        have passed and no more is dirty than a file system leaves that commits all the time; refuse after ``deadline``.
        """
        started = since = time.monotonic()
        before = self.written()
        while time.monotonic() - since < quiet:
            time.sleep(quiet / QUIET_POLLS)
            now = self.written()
            if now != before or dirty_kib():
                before, since = now, time.monotonic()
            waited = time.monotonic() - started
            if enough and waited >= enough and dirty_kib() <= LITTLE_KIB:
                return
            if waited > deadline:
                raise Denial(f"the file system was still writing after {deadline:g} s")

    def remove(self) -> tuple[list[bytes], Runs | None]:
        """End the logs and take the disks away; the log of each, and where they were written (laid end to end), or None
        where the logs do not say that."""
        self.assembly.release()
        remove_log_writes(len(self.disks))
        ended = [disk.end() for disk in self.disks]
        written: Runs | None = []
        for start, (_log, runs) in zip(self._starts, ended):
            written = None if written is None or runs is None else [*written, *((start + at, n) for at, n in runs)]
        return [log for log, _runs in ended], written


def dirty_kib() -> int:
    """How much is dirty or under writeback in the guest (KiB)."""
    # Up to a dozen pages are in counts of the processor's own, which are added up once a second, but not for that does
    # an idle guest wake (vmstat_shepherd in mm/vmstat.c). A read of this file has them added up.
    read_text("/proc/sys/vm/stat_refresh")
    return sum(int(n) for n in re.findall(r"^(?:Dirty|Writeback): +(\d+) kB", read_text("/proc/meminfo"), re.M))
