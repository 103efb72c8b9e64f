"""Loop devices and device-mapper, by system call where one is needed for every crash state."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import time
from contextlib import suppress
from typing import ClassVar

from bob.agent.inside import mapper
from bob.agent.inside.frames import Denial

WORK = "/tmp/bob"
"""Where the agent keeps everything: a tmpfs of its own."""
TARGET = "bob-recorded"
"""The device-mapper devices of a recording have this name, with the number of the disk behind it."""
SCRATCH = "bob-scratch"
"""The name of that of crash states, where they are on one (ram_disk.py)."""
PART = "bob-part"
"""Those of several disks on it have this name, with the number of the disk behind it (assembly.py)."""
STACK = "bob-stack"
"""What layers make by device-mapper has a name that begins so, or else nothing clears it away after a failure."""
LOG_WRITER = "log-write"
"""The kernel's thread that writes the log of that device (log_writes_ctr in drivers/md/dm-log-writes.c)."""
IDLE = "S"
"""The state of a thread that waits for something to do (proc_pid_stat(5))."""
LOGGED_SECONDS = 120
"""How long the target may take to log what was written."""
EPOCH = 1_700_000_000
"""What the guest's wall clock says when a recording starts (seconds), so that time stamps are the same in each."""
BASE_EPOCH = EPOCH - 12 * 3600
"""And what it says when a base image is made: long before, so that each time stamp tells which of the two set it, but
less than the day after which a read sets a new one (relatime_need_update in fs/inode.c)."""

SECTORS_READ, SECTORS_WRITTEN, IN_FLIGHT = 2, 6, 8
"""The fields of /sys/block/NAME/stat (Documentation/block/stat.rst)."""

SECTOR = 512
LOOP_CTL_GET_FREE = 0x4C82
LOOP_CONFIGURE = 0x4C0A
LOOP_CLR_FD = 0x4C01
BTRFS_IOC_FORGET_DEV = 0x50009405


class Descriptor:
    """A file descriptor that ``with`` closes."""

    def __init__(self, path: str, flags: int) -> None:
        self.fd = os.open(path, flags)

    def __enter__(self) -> Descriptor:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)


class Loop:
    """A loop device over ``path``, or over ``length`` bytes of it from byte ``start`` on; ``with`` detaches it.

    ``volatile`` says whether it has a write cache, that is, whether file systems send it flushes.
    """

    attached: ClassVar[list[Loop]] = []
    """All there are, for who clears away after a failure."""

    def __init__(self, path: str, *, volatile: bool = True, start: int = 0, length: int = 0) -> None:
        self.name = f"loop{_free_loop()}"
        self.path = f"/dev/{self.name}"
        self.fd = os.open(self.path, os.O_RDWR)
        self.attached.append(self)
        backing = os.open(path, os.O_RDWR)
        try:
            info = struct.pack("24xQQ", start, length)  # lo_offset and lo_sizelimit of struct loop_info64
            fcntl.ioctl(self.fd, LOOP_CONFIGURE, struct.pack("II232s64s", backing, SECTOR, info, b""))
        finally:
            os.close(backing)
        self.device = os.fstat(self.fd).st_rdev
        queue = f"/sys/block/{self.name}/queue"
        write_text(f"{queue}/scheduler", "none")
        write_text(f"{queue}/discard_max_bytes", "0")
        write_text(f"{queue}/write_cache", "write back" if volatile else "write through")
        forget_file_systems()

    def release_holder(self) -> None:
        """Close bob's own descriptor, so that the last close of the device is the last unmount."""
        os.close(self.fd)
        self.fd = -1

    def close(self) -> None:
        self.attached.remove(self)
        if self.fd < 0:
            self.fd = os.open(self.path, os.O_RDWR)
        try:
            fcntl.ioctl(self.fd, LOOP_CLR_FD)
        finally:
            os.close(self.fd)

    def __enter__(self) -> Loop:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _free_loop() -> int:
    control = os.open("/dev/loop-control", os.O_RDWR)
    try:
        return fcntl.ioctl(control, LOOP_CTL_GET_FREE)
    finally:
        os.close(control)


def forget_file_systems() -> None:
    """Have btrfs forget devices it has seen: it refuses an older state of a file system that it knows elsewhere."""
    with suppress(OSError):  # no btrfs, or not loaded yet: nothing to forget
        control = os.open("/dev/btrfs-control", os.O_RDWR)
        try:
            fcntl.ioctl(control, BTRFS_IOC_FORGET_DEV, bytearray(4096))
        finally:
            os.close(control)


def make_log_writes(number: int, data: str, log: str, sectors: int) -> str:
    """Make a dm-log-writes device, of disk ``number``, over the devices ``data`` and ``log``; its name in /dev and
    /sys/block."""
    minor = mapper.create(f"{TARGET}-{number}", sectors, "log-writes", f"{data} {log}")
    forget_file_systems()
    return f"dm-{minor}"


def remove_log_writes(disks: int) -> None:
    """Take the devices of a recording, of so many ``disks``, away: their logs are complete then, and in order.

    What was never flushed the target puts, as it is removed, before what is still to be logged, not behind it
    (list_splice_init in log_writes_dtr). So first all of that is logged: the target's thread sleeps, interruptibly,
    only while there is nothing to be logged (log_writes_kthread in drivers/md/dm-log-writes.c).
    """
    deadline = time.monotonic() + LOGGED_SECONDS
    for process in _kernel_threads(LOG_WRITER, disks):
        while read_text(f"/proc/{process}/stat").rpartition(")")[2].split()[0] != IDLE:
            if time.monotonic() > deadline:
                raise Denial(f"the log was not written {LOGGED_SECONDS} s after the last write")
            time.sleep(0.001)
    for number in range(disks):
        mapper.remove(f"{TARGET}-{number}")


def _kernel_threads(name: str, count: int) -> list[int]:
    """The process ids of the ``count`` youngest threads of the kernel that have this name."""
    found: list[int] = []
    for process in sorted((int(entry) for entry in os.listdir("/proc") if entry.isdigit()), reverse=True):
        with suppress(OSError):  # it has ended since
            if read_text(f"/proc/{process}/comm").strip() == name:
                found.append(process)
        if len(found) == count:
            return found
    raise Denial(f"the kernel has {len(found)} threads {name!r} where there should be {count}")


def _mapped() -> dict[str, bool]:
    """The names of the agent's device-mapper devices, and whether another one is on them."""
    found = {}
    for device in os.listdir("/sys/block"):
        if device.startswith("dm-"):
            name = read_text(f"/sys/block/{device}/dm/name").strip()
            if name.startswith((STACK, PART, TARGET, SCRATCH)):
                found[name] = bool(os.listdir(f"/sys/block/{device}/holders"))
    return found


def clear_devices() -> None:
    """Take away what layers made, the devices of a recording, those of crash states and every loop device over the
    agent's files; raises what stays."""
    while mapped := _mapped():  # those on top first
        for name in [name for name, is_held in mapped.items() if not is_held] or list(mapped):
            run("dmsetup", "--noudevsync", "remove", "--force", "--retry", name)
    for loop in tuple(Loop.attached):
        with suppress(OSError):  # perhaps it never came to have a file
            loop.close()
    for name in os.listdir("/sys/block"):  # those of an agent before this one
        with suppress(FileNotFoundError):  # not a loop device, or none that is attached
            if read_text(f"/sys/block/{name}/loop/backing_file").startswith(WORK + "/"):
                fd = os.open(f"/dev/{name}", os.O_RDWR)
                try:
                    fcntl.ioctl(fd, LOOP_CLR_FD)
                finally:
                    os.close(fd)


def write_text(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def read_text(path: str) -> str:
    with open(path, errors="backslashreplace") as file:
        return file.read()


def run(*command: str) -> str:
    """Run a program to its end; what it printed. Its failure is a refusal that quotes it."""
    environment = {**plain_environment(), "E2FSPROGS_FAKE_TIME": str(BASE_EPOCH)}
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, check=False)
    except FileNotFoundError:
        raise Denial(f"{command[0]} is not installed in the guest") from None
    printed = (done.stdout + done.stderr).decode(errors="replace").strip()
    if done.returncode:
        raise Denial(f"{os.path.basename(command[0])} failed ({done.returncode}): {without_usage(printed)}")
    return printed


def without_usage(printed: str) -> str:
    """What a program says of a mistake, without the list of all its options that many print below it."""
    before = re.split(r"^\s*usage:", printed, maxsplit=1, flags=re.IGNORECASE | re.MULTILINE)[0].strip()
    return before or printed


def run_anyhow(command: list[str], device: str) -> None:
    """Run a file system's own program on ``device``; its exit code says what it found, which the mount shows anyway.

    Not by subprocess, which takes longer for it than many a repair.
    """
    words = [device if word == "DEVICE" else word for word in command]
    silent = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)]
    os.waitpid(os.posix_spawnp(words[0], words, plain_environment(), file_actions=silent), 0)


def plain_environment() -> dict[str, str]:
    """The agent's environment, but in no language: to load one takes e2fsck a tenth of its time."""
    return {**os.environ, "LC_ALL": "C"}
