"""Makes base images, and records workloads over a dm-log-writes target with the bio timeline beside it."""

from __future__ import annotations

import os
import re
import time
from typing import Any

from bob.guest.agent.devices import EPOCH, Loop, mount_or_refuse, read_text, run, unmount, write_text
from bob.guest.agent.frames import Refused, Reply
from bob.guest.agent.images import SECTOR, apply_differences, differences, fill, map_file
from bob.guest.agent.operations import perform_all
from bob.guest.agent.tracing import Instance, kernel_device

WORK = "/tmp/bob"
ROOT = f"{WORK}/mnt"
TARGET = "bob-recorded"
CLOCK_FILE = "/.bob-clock"
LOG_BYTES = 512 * 1024 * 1024
TIMELINE_KIB = 16 * 1024
QUIET_POLL_SECONDS = 0.5
ALIGNMENT_SECONDS = 20


def base_path(base: str) -> str:
    """Where the base image ``base`` is kept in the guest."""
    return f"{WORK}/base-{base}"


def set_clock() -> None:
    """Set the wall clock to the epoch of recordings."""
    time.clock_settime(time.CLOCK_REALTIME, EPOCH)


def make_base(
    base: str, length: int, cell: str, mkfs: list[str], fs: str, options: str, setup: list[list[Any]], blob: bytes
) -> Reply:
    """A device of ``length`` bytes full of ``cell``, mkfs, the initial tree made durable, unmounted.

    Replies with what mkfs printed, the effective mount options and, as blob, the image as its differences from a
    device full of ``cell``.
    """
    os.makedirs(ROOT, exist_ok=True)
    path = base_path(base)
    image = map_file(path, length)
    stale = cell.encode()
    fill(image, stale)
    with Loop(path) as loop:
        set_clock()
        printed = run(*[loop.path if word == "DEVICE" else word for word in mkfs])
        mount_or_refuse(loop.path, ROOT, fs, options)
        try:
            effective = effective_options()
            os.close(os.open(ROOT + CLOCK_FILE, os.O_CREAT | os.O_WRONLY, 0o600))
            perform_all(setup, blob, ROOT, lambda _text: None)
            os.sync()
        finally:
            unmount(ROOT)
    piece = stale * (1024 * 1024 // len(stale))
    packed = differences(image, lambda _offset, size: piece[:size], length)
    image.close()
    return {"mkfs": printed, "effective_options": effective}, packed


def put_base(base: str, length: int, cell: str, blob: bytes) -> Reply:
    """Take a base image that was made in another guest."""
    os.makedirs(ROOT, exist_ok=True)
    image = map_file(base_path(base), length)
    fill(image, cell.encode())
    apply_differences(blob, image)
    image.close()
    return {}, b""


def has_base(base: str, blob: bytes) -> Reply:
    """Whether the base image is in this guest."""
    return {"has": os.path.exists(base_path(base))}, b""


def drop_base(base: str, blob: bytes) -> Reply:
    """Forget a base image."""
    if os.path.exists(base_path(base)):
        os.unlink(base_path(base))
    return {}, b""


def effective_options() -> str:
    """The mount options of the probed file system as the kernel lists them."""
    for line in read_text("/proc/mounts").splitlines():
        _source, target, _fs, options, *_ = line.split()
        if target == ROOT:
            return options
    raise Refused("the probed file system is not in /proc/mounts")


class Recorded:
    """The recorded device: dm-log-writes over a copy of the base image, log beside it, timeline on."""

    def __init__(self, base: str) -> None:
        self.data_path, self.log_path = f"{WORK}/data", f"{WORK}/log"
        self.base = map_file(base_path(base))
        self.data = map_file(self.data_path, len(self.base))
        self.data[:] = self.base[:]
        map_file(self.log_path, LOG_BYTES).close()
        self.data_loop, self.log_loop = Loop(self.data_path), Loop(self.log_path)
        sectors = len(self.base) // SECTOR
        table = f"0 {sectors} log-writes {self.data_loop.path} {self.log_loop.path}"
        run("dmsetup", "--noudevsync", "create", TARGET, "--table", table)
        minor = run("dmsetup", "info", "-c", "--noheadings", "-o", "minor", TARGET)
        self.name = f"dm-{minor}"
        self.path = f"/dev/{self.name}"
        self.device = os.stat(self.path).st_rdev
        cache = read_text(f"/sys/block/{self.name}/queue/write_cache").strip()
        if cache != "write back":
            raise Refused(f"the recorded device has no volatile write cache ({cache})")
        # A device without write history has a background threshold of nothing, and the flusher would write dirty data
        # after 5 s rather than 30 s, which hides ordering violations: give it the share of one with a history.
        major = os.major(self.device)
        write_text(f"/sys/class/bdi/{major}:{minor}/min_ratio", "50")

    def timeline(self) -> Instance:
        """The trace of this device's bios, ready to be entered."""
        device = kernel_device(self.device)
        events = {
            "block/block_bio_queue": f"dev == {device}",
            "block/block_bio_complete": f"dev == {device}",
            "block/block_bio_remap": f"old_dev == {device}",
        }
        return Instance("bob-record", events, TIMELINE_KIB)

    def written(self) -> str:
        """Changes with every write that the device completes or has in flight."""
        fields = read_text(f"/sys/block/{self.name}/stat").split()
        return " ".join([*fields[4:9], *fields[15:17]])

    def wait_until_quiet(self, quiet: float, deadline: float) -> None:
        """Return when nothing is dirty and no write was seen for ``quiet`` seconds; refuse after ``deadline``."""
        started = since = time.monotonic()
        before = self.written()
        while time.monotonic() - since < quiet:
            time.sleep(QUIET_POLL_SECONDS)
            now = self.written()
            if now != before or dirty_kib():
                before, since = now, time.monotonic()
            if time.monotonic() - started > deadline:
                raise Refused(f"the file system was still writing after {deadline:g} s")

    def remove(self) -> tuple[bytes, bytes]:
        """End the log and take the device away; the log, and the differences of the device from the base."""
        run("dmsetup", "message", TARGET, "0", "mark", "bob-end")
        if "logging_disabled" in run("dmsetup", "status", TARGET):  # log_writes_status in drivers/md/dm-log-writes.c
            raise Refused("the log device is full: writes are missing from it")
        run("dmsetup", "--noudevsync", "remove", TARGET)
        self.log_loop.close()
        self.data_loop.close()
        log = read_log(self.log_path)
        packed = differences(self.data, lambda offset, size: self.base[offset : offset + size], len(self.base))
        return log, packed

    def abandon(self) -> None:
        """After a failure: take away whatever is still there."""
        run("dmsetup", "--noudevsync", "remove", "--force", TARGET)
        self.log_loop.close()
        self.data_loop.close()


def dirty_kib() -> int:
    """How much is dirty or under writeback in the guest (KiB)."""
    return sum(int(n) for n in re.findall(r"^(?:Dirty|Writeback): +(\d+) kB", read_text("/proc/meminfo"), re.M))


def read_log(path: str) -> bytes:
    """The part of the log file that holds entries: everything up to its last byte of data (the file is sparse)."""
    with open(path, "rb") as file:
        end = 0
        position = 0
        while True:
            try:
                data = os.lseek(file.fileno(), position, os.SEEK_DATA)
            except OSError:
                break
            position = end = os.lseek(file.fileno(), data, os.SEEK_HOLE)
        return file.read(end) if file.seek(0) == 0 else b""


def inodes_of(paths: list[str]) -> dict[str, int]:
    """Path -> inode number, for those that are there (lstat only: listing a directory would dirty its atime)."""
    found = {}
    for path in paths:
        try:
            found[path] = os.lstat(ROOT + path).st_ino
        except OSError:
            continue
    return found


def record(
    base: str,
    fs: str,
    options: str,
    paths: list[str],
    operations: list[list[Any]],
    finish: list[list[Any]],
    natural: bool,
    phase: float,
    quiet: float,
    deadline: float,
    virtual: bool,
    blob: bytes,
) -> Reply:
    """Record ``operations`` and the finish on a copy of ``base``; times in seconds.

    Replies with the effective mount options, the device's major and minor, the inode numbers of ``paths`` before and
    after the operations, and the lengths of the three pieces of the blob: block log, timeline text, differences of the
    device from the base.
    """
    device = Recorded(base)
    try:
        with device.timeline() as timeline:
            if virtual:  # when the request came in is not deterministic: start at a time of our own
                time.sleep(ALIGNMENT_SECONDS - time.monotonic() % ALIGNMENT_SECONDS)
            set_clock()
            mount_or_refuse(device.path, ROOT, fs, options)
            try:
                effective = effective_options()
                before = inodes_of(paths)
                os.sync()
                device.wait_until_quiet(quiet, deadline)
                if phase:
                    os.utime(ROOT + CLOCK_FILE)
                    time.sleep(phase)
                timeline.mark("start")
                perform_all(operations, blob, ROOT, timeline.mark)
                after = inodes_of(paths)
                perform_all(finish, blob, ROOT, timeline.mark)
                if natural:
                    device.wait_until_quiet(quiet, deadline)
                timeline.mark("end")
            finally:
                unmount(ROOT)
            log, packed = device.remove()
            timeline.stop()
            text = timeline.text().encode()
    except BaseException:
        device.abandon()
        raise
    pieces = [log, text, packed]
    header = {
        "effective_options": effective,
        "device": [os.major(device.device), os.minor(device.device)],
        "inodes_before": before,
        "inodes_after": after,
        "lengths": [len(piece) for piece in pieces],
    }
    return header, b"".join(pieces)
