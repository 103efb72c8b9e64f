"""The disks of a recording. The kernel's dm-log-writes lies over each disk, and logs the disk's writes. One trace of
the kernel, the *timeline*, has the bios of all disks. This module also waits until the disks are quiet (no page is
dirty, and no write comes)."""

from __future__ import annotations

import os
import re
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

from bob.agent.inside import devices
from bob.agent.inside.assembly import Assembly, spans
from bob.agent.inside.devices import SECTOR, WORK, Loop, opened, read_text, write_text
from bob.agent.inside.documents import LayerDocument
from bob.agent.inside.frames import Denial
from bob.agent.inside.images import Runs
from bob.agent.inside.late_disk import LateDisk, late_disks
from bob.agent.inside.tracing import Instance, kernel_device

LOG = f"{WORK}/log"
QUIET_POLLS = 3  # times that bob reads the counts while the disks must be quiet; each costs, even if waiting is free
LITTLE_KIB = 256  # if more is dirty, more than periodic commits goes on: data may still go to a slow disk
PROMPT, YOUNGEST_FIRST = "prompt", "youngest-first"  # values of Completion (bob/trace/recording.py)
SUPER = struct.Struct("<QQQI")
ENTRY = struct.Struct("<QQQQ")
MAGIC = 0x6A736677736872
DISCARD = 4
MARK = 8
LAST_MARK = b"dm-log-writes-end"  # the last entry, written on removal (log_writes_dtr in drivers/md/dm-log-writes.c)


class LoggedDisk:
    """Disk number ``number`` of a recording. dm-log-writes lies over the device ``data``, and writes its log to another
    loop device."""

    def __init__(self, number: int, data: Loop | LateDisk, length: int, log_bytes: int) -> None:
        self._log_path = f"{LOG}-{number}"
        with suppress(FileNotFoundError):
            os.unlink(self._log_path)
        with opened(self._log_path, os.O_RDWR | os.O_CREAT) as fd:
            os.ftruncate(fd, log_bytes)
        self._data = data
        self._log = Loop(self._log_path)
        self._counted = self._count()
        self.name = devices.make_log_writes(number, data.path, self._log.path, length // SECTOR)
        self.path = f"/dev/{self.name}"
        self.device = os.stat(self.path).st_rdev
        cache = read_text(f"/sys/block/{self.name}/queue/write_cache").strip()
        if cache != "write back":
            raise Denial(f"the recorded device lacks a volatile write cache ({cache})")

    def written(self) -> str:
        """Return the device's counts of writes as one text. The text changes when a write begins and when it
        completes."""
        fields = read_text(f"/sys/block/{self.name}/stat").split()
        return " ".join([*fields[4:9], *fields[15:17]])

    def end(self) -> tuple[bytes, Runs | None]:
        """End the log. Return the log, and the runs of sectors that were written. In place of the runs, return None if
        the device below the log counted another number of written sectors than the log has."""
        written = self._count() - self._counted
        self._log.close()
        if isinstance(self._data, Loop):  # the next recording may use a late disk again
            self._data.close()
        log = read_log(self._log_path)
        os.unlink(self._log_path)
        logged = list(writes(log))
        return log, logged if sum(sectors for _sector, sectors in logged) == written else None

    def _count(self) -> int:
        return int(read_text(f"/sys/block/{self._data.name}/stat").split()[devices.SECTORS_WRITTEN])


def give_history(device: int, devices: int = 1) -> None:
    """Make the kernel treat a device as one that was already written to. Otherwise the device's background threshold is
    zero, and the flusher would write dirty data after 5 s rather than 30 s. That would hide ordering violations. This
    function gives the device a minimum share of the dirty pages (``min_ratio``). ``devices`` devices get equal shares,
    and the kernel refuses shares that are 100 % together."""
    write_text(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/min_ratio", str(100 // (devices + 1)))


class RecordedDisks:
    """The recorded disks. They lie one after the other in the file ``work``, and have the given ``lengths`` (bytes).
    ``layers``, such as RAID, lie over the disks, but do not get the disks with numbers in ``lost``. If ``crashed`` is
    true, a layer may fail to start, as after a crash (:class:`Assembly`). If ``completion`` is ``prompt``, a disk
    completes a write at once; otherwise it completes the write as late as it can (late_disk.py)."""

    def __init__(
        self,
        work: str,
        lengths: Sequence[int],
        log_bytes: int,
        completion: str,
        layers: Sequence[LayerDocument],
        lost: Sequence[int] = (),
        *,
        crashed: bool = False,
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
        self.assembly = Assembly(layers, [disk.path for disk in self.disks], lost=lost, crashed=crashed)
        self._has_layers = bool(layers)
        if not layers:
            for disk in self.disks:
                give_history(disk.device, len(self.disks))

    @property
    def devices(self) -> list[tuple[int, int]]:
        return [(os.major(disk.device), os.minor(disk.device)) for disk in self.disks]

    def timeline(self, kib: int, more: dict[str, str] | None = None) -> Instance:
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
        """Make the device at ``assembly.path`` from the disks. With layers (such as RAID), the kernel counts dirty
        pages for that device and not for the disks, so this method calls :func:`give_history` for that device."""
        self.assembly.assemble()
        if self._has_layers:
            give_history(os.stat(self.assembly.path).st_rdev)

    def written(self) -> list[str]:
        return [disk.written() for disk in self.disks]

    def wait_until_quiet(self, quiet: float, enough: float, deadline: float) -> None:
        """Wait until, for ``quiet`` seconds, no page was dirty and no write came. Some file systems commit all the
        time. So if ``enough`` is not 0, the wait also ends after ``enough`` seconds as soon as only a few pages are
        dirty. Raises Denial after ``deadline`` seconds."""
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
        """Remove the disks. Return the log of each disk, and the runs of sectors that were written (None: unknown). For
        the runs, sectors are counted over all disks end to end."""
        self.assembly.release()
        devices.remove_log_writes(len(self.disks))
        ended = [disk.end() for disk in self.disks]
        written: Runs | None = []
        for start, (_log, runs) in zip(self._starts, ended):
            written = None if written is None or runs is None else [*written, *((start + at, n) for at, n in runs)]
        return [log for log, _runs in ended], written


def dirty_kib() -> int:
    # Each processor counts up to a dozen pages for itself, and an idle guest does not wake up to add these counts to
    # the total (vmstat_shepherd in mm/vmstat.c). A read of this file adds them.
    read_text("/proc/sys/vm/stat_refresh")
    return sum(int(n) for n in re.findall(r"^(?:Dirty|Writeback): +(\d+) kB", read_text("/proc/meminfo"), re.M))


def read_log(path: str) -> bytes:
    """Return the log in the file ``path``, up to its last entry. Raises Denial if the last entry is not the mark that
    dm-log-writes writes on removal. A target that runs out of room, or whose write fails, stops logging, and reports
    that only to the kernel's log."""
    with opened(path, os.O_RDONLY) as fd:
        magic, _version, entries, sectorsize = SUPER.unpack(os.pread(fd, SUPER.size, 0))
        if magic != MAGIC:
            raise Denial("the log device does not contain a log of dm-log-writes")
        end, last = sectorsize, b""
        for _ in range(entries):
            header = os.pread(fd, sectorsize, end)
            _sector, sectors, flags, length = ENTRY.unpack_from(header)
            end += sectorsize * (1 if flags & DISCARD else 1 + sectors)
            last = header[ENTRY.size : ENTRY.size + length] if flags & MARK else b""
        if last != LAST_MARK:
            raise Denial("the log device is full: writes are missing from the log")
        pieces, position = [], 0
        while position < end and (piece := os.pread(fd, end - position, position)):
            pieces.append(piece)
            position += len(piece)
        return b"".join(pieces)


def writes(log: bytes) -> Iterator[tuple[int, int]]:
    """Yield each write in ``log``, in order, as its first sector and number of sectors."""
    _magic, _version, entries, sectorsize = SUPER.unpack_from(log)
    factor, end = sectorsize // SECTOR, sectorsize
    for _ in range(entries):
        sector, sectors, flags, _length = ENTRY.unpack_from(log, end)
        end += sectorsize
        if not flags & DISCARD:
            if sectors:
                yield sector * factor, sectors * factor
            end += sectorsize * sectors
