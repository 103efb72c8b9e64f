"""Make and remove loop devices and devices of device-mapper. Code that runs for each crash state uses system calls, not
programs."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

from bob.agent.inside.frames import ContentRefused, Denial
from bob.agent.inside.refusals import refusal

WORK = "/tmp/bob"  # the agent's only folder, with a tmpfs
TARGET = "bob-recorded"  # begins the names of a recording's device-mapper devices; the number of the disk follows
SCRATCH = "bob-scratch"  # the name of the device for crash states, if device-mapper makes it (ram_disk.py)
PART = "bob-part"  # begins the names of several disks on that device; the number of the disk follows (assembly.py)
ARRAYS = range(0xB0B, 0xB0B + 128)
"""The minor numbers of bob's md arrays. They do not collide with mdadm's, which counts from 127 down, or with the
kernel's, which count from 512 up."""
CACHE_SETS = "/sys/fs/bcache"
CACHE_SET = "b0b0b0b0-0000-4000-8000-0000000bcac4"  # the UUID of bob's only cache set (bcache.py)
STACK = "bob-stack"  # begins the names of layers made by device-mapper (layer_commands.py)
LOG_WRITER = "log-write"  # the kernel's thread that writes the log (log_writes_ctr in drivers/md/dm-log-writes.c)
IDLE = "S"  # the state of a thread that waits for work (proc_pid_stat(5))
LOGGED_SECONDS = 120  # the target may take so long to log all writes
EPOCH = 1_700_000_000  # the guest's wall clock (s) at the start of every recording, so that time stamps repeat
BASE_EPOCH = EPOCH - 12 * 3600
"""The guest's wall clock (s) when a base image is made. It is before the epoch, so a time stamp shows whether base
image or recording set it. If it were a whole day before, reads would set new time stamps (relatime_need_update in
fs/inode.c)."""

SECTORS_READ, SECTORS_WRITTEN, IN_FLIGHT = 2, 6, 8  # the fields of /sys/block/NAME/stat (Documentation/block/stat.rst)

SECTOR = 512
READ_AT_ONCE = 64 * 1024  # bytes
LOOP_CTL_GET_FREE = 0x4C82
LOOP_CONFIGURE = 0x4C0A
LOOP_CLR_FD = 0x4C01
BTRFS_IOC_FORGET_DEV = 0x50009405

STOP_ARRAY = 0x0932  # include/uapi/linux/raid/md_u.h
ARRAY_SECONDS, ARRAY_PAUSE = 10.0, 0.0005  # the kernel may take so long to make or remove an array

# Device-mapper by ioctl (include/uapi/linux/dm-ioctl.h): under emulation, dmsetup's start takes longer than the ioctls.
CONTROL = "/dev/mapper/control"
HEADER = struct.Struct("=3I2IIiIIIQ128s129s7s")
"""struct dm_ioctl: version, data_size, data_start, target_count, open_count, flags, event_nr, padding, dev, name, uuid
and seven unused bytes."""
TARGET_SPEC = struct.Struct("=QQiI16s")  # struct dm_target_spec: sector_start, length, status, next, target_type
VERSION = (4, 0, 0)
COMMAND = 0xC138FD00  # _IOWR(DM_IOCTL, 0, struct dm_ioctl); add the number of a command
DEV_CREATE, DEV_REMOVE, DEV_SUSPEND, TABLE_LOAD, TARGET_MESSAGE = 3, 4, 6, 9, 14


@contextmanager
def opened(path: str, flags: int = os.O_RDWR, mode: int = 0o600) -> Iterator[int]:
    fd = os.open(path, flags, mode)
    try:
        yield fd
    finally:
        os.close(fd)


def comes_true(is_so: Callable[[], object], seconds: float, pause: float = 0.001) -> bool:
    """Call ``is_so`` every ``pause`` seconds until it returns a true value; return True then. Return False if
    ``seconds`` are over first."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


class Loop:
    """A loop device over a part of the file ``path``. The part begins at byte ``start``, and ``length`` is its length
    in bytes (0: up to the end of the file). If ``volatile`` is true, the device reports a write cache, so the kernel
    sends flushes to it."""

    attached: ClassVar[list[Loop]] = []  # all loop devices of this agent, to be removed after a failure

    def __init__(self, path: str, *, volatile: bool = True, start: int = 0, length: int = 0) -> None:
        with opened("/dev/loop-control") as control:
            self.name = f"loop{fcntl.ioctl(control, LOOP_CTL_GET_FREE)}"
        self.path = f"/dev/{self.name}"
        self.fd = os.open(self.path, os.O_RDWR)
        self.attached.append(self)
        with opened(path) as backing:
            info = struct.pack("24xQQ", start, length)  # lo_offset and lo_sizelimit of struct loop_info64
            fcntl.ioctl(self.fd, LOOP_CONFIGURE, struct.pack("II232s64s", backing, SECTOR, info, b""))
        self.device = os.fstat(self.fd).st_rdev
        queue = f"/sys/block/{self.name}/queue"
        write_text(f"{queue}/scheduler", "none")
        write_text(f"{queue}/discard_max_bytes", "0")
        write_text(f"{queue}/write_cache", "write back" if volatile else "write through")
        forget_file_systems()

    def release_holder(self) -> None:
        """Close the descriptor that bob itself holds on the device. From now on only mounts hold the device open, so
        the kernel closes it when the last of them ends."""
        os.close(self.fd)
        self.fd = -1

    def close(self) -> None:
        self.attached.remove(self)
        if self.fd < 0:
            self.fd = os.open(self.path, os.O_RDWR)
        forget_history(self.name)
        try:
            fcntl.ioctl(self.fd, LOOP_CLR_FD)
        finally:
            os.close(self.fd)


def in_sysfs(path: str) -> str:
    """Return the folder in sysfs of the block device at ``path``."""
    device = os.stat(path).st_rdev
    return f"/sys/dev/block/{os.major(device)}:{os.minor(device)}"


def sectors_of(path: str) -> int:
    return int(read_text(f"{in_sysfs(path)}/size"))


def forget_history(name: str) -> None:
    """Take back from a loop device the share of the write-back cache that
    :func:`bob.agent.inside.recorded_disks.give_history` gave it. Otherwise the device would keep the share when its
    file is detached. The kernel would then refuse shares to other devices, because all shares together must be less
    than 100 % (bdi_set_min_ratio in mm/page-writeback.c)."""
    with suppress(OSError):
        write_text(f"/sys/block/{name}/bdi/min_ratio", "0")


def forget_file_systems() -> None:
    """Make the kernel's btrfs driver forget all devices. Otherwise the driver would refuse to mount an older state of a
    file system, after it has seen a newer state on another device."""
    with suppress(OSError), opened("/dev/btrfs-control") as control:  # without btrfs, nothing to forget
        fcntl.ioctl(control, BTRFS_IOC_FORGET_DEV, bytearray(4096))


def make_mapped(name: str, sectors: int, target: str, parameters: str) -> int:
    """Make the device-mapper device ``name``, with one target over all its sectors. Return its minor number
    (/dev/dm-MINOR)."""
    return make_table(name, [(0, sectors, target, parameters)])


def make_table(name: str, targets: list[tuple[int, int, str, str]]) -> int:
    """Make the device-mapper device ``name`` from several ``targets``, each as (start, sectors, type, parameters).
    Return the minor number of the device."""
    table = b"".join(_target(*target) for target in targets)
    try:
        minor = _command(DEV_CREATE, name)
        try:
            _load(name, table, len(targets))
            _command(DEV_SUSPEND, name)  # without its flag, this command resumes the device
        except OSError:
            with suppress(OSError):
                _command(DEV_REMOVE, name)
            raise
    except OSError as error:
        kinds = " and ".join(dict.fromkeys(target[2] for target in targets))
        raise refusal(f"device-mapper cannot make a device with the target {kinds}", error) from error
    return minor


def _load(name: str, table: bytes, targets: int) -> None:
    """Load a table of device-mapper. dm-crypt lets the kernel load a cipher, and waits 60 s for its test
    (crypto_larval_wait in crypto/api.c). While the guest reads the cipher's module, its virtual clock may jump over
    these seconds. The cipher is there for the second attempt."""
    try:
        _command(TABLE_LOAD, name, table, targets=targets)
    except OSError as error:
        if error.errno != errno.ETIMEDOUT:
            raise
        _command(TABLE_LOAD, name, table, targets=targets)


def _target(start: int, sectors: int, kind: str, parameters: str) -> bytes:
    text = parameters.encode() + b"\0"
    text += bytes(-len(text) % 8)
    return TARGET_SPEC.pack(start, sectors, 0, TARGET_SPEC.size + len(text), kind.encode()) + text


def remove_mapped(name: str) -> None:
    try:
        _command(DEV_REMOVE, name)
    except OSError as error:
        raise Denial(f"device-mapper cannot remove the device {name}: {error.strerror}") from error


def send_message(path: str, sector: int, text: str) -> None:
    """Send a message to the target at ``sector`` of a device-mapper device (struct dm_target_msg). Raises Denial if the
    target refuses it."""
    name = read_text(f"{in_sysfs(path)}/dm/name").strip()
    try:
        _command(TARGET_MESSAGE, name, struct.pack("=Q", sector) + text.encode() + b"\0")
    except OSError as error:
        raise refusal(f"the device {name} does not take the message {text!r}", error) from error


def _command(number: int, name: str, data: bytes = b"", *, targets: int = 0) -> int:
    size = HEADER.size + len(data)
    header = HEADER.pack(*VERSION, size, HEADER.size, targets, 0, 0, 0, 0, 0, name.encode(), b"", b"")
    buffer = bytearray(header + data)
    with opened(CONTROL) as control:
        fcntl.ioctl(control, COMMAND + number, buffer)
    number_of_device: int = HEADER.unpack_from(buffer)[10]
    return number_of_device & 0xFF | number_of_device >> 12 & 0xFFF00  # new_decode_dev, include/linux/kdev_t.h


def array_name(number: int) -> str:
    return f"md{ARRAYS[number]}"


def is_array(name: str) -> bool:
    """Return whether the block device ``name`` is one of bob's md arrays."""
    return name.startswith("md") and name[2:].isdigit() and int(name[2:]) in ARRAYS


def stop_array(name: str) -> None:
    """Stop the md array ``name``, and wait until it is gone. Raises Denial if it stays."""
    if not comes_true(lambda: _is_stopped(name), ARRAY_SECONDS, ARRAY_PAUSE):
        raise Denial(f"the array {name} was busy for {ARRAY_SECONDS:g} s")
    # The kernel removes the array later. Until then, to open it would make it again (md_probe in drivers/md/md.c).
    if not comes_true(lambda: not os.path.exists(f"/sys/block/{name}"), ARRAY_SECONDS, ARRAY_PAUSE):
        raise Denial(f"the array {name} is still there {ARRAY_SECONDS:g} s after it was stopped")


def _is_stopped(name: str) -> bool:
    try:
        with opened(f"/dev/{name}", os.O_RDONLY) as fd:
            fcntl.ioctl(fd, STOP_ARRAY)
    except OSError as error:
        if error.errno == errno.EBUSY:  # another process has the array open
            return False
        if error.errno not in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
            raise Denial(f"md cannot stop the array {name}: {error.strerror}") from error
    return True


def stop_cached(name: str) -> None:
    """Stop a device of bcache, or bob's cache set, and wait until it is gone. ``name`` is the device's name in
    /sys/block, or the UUID of the cache set. Raises Denial if it stays."""
    folder = f"{CACHE_SETS}/{name}" if name == CACHE_SET else f"/sys/block/{name}/bcache"
    with suppress(FileNotFoundError):
        write_text(f"{folder}/stop", "1")
    if not comes_true(lambda: not os.path.exists(folder), ARRAY_SECONDS, ARRAY_PAUSE):
        raise Denial(f"bcache was busy for {ARRAY_SECONDS:g} s: {name}")


def make_log_writes(number: int, data: str, log: str, sectors: int) -> str:
    minor = make_mapped(f"{TARGET}-{number}", sectors, "log-writes", f"{data} {log}")
    forget_file_systems()
    return f"dm-{minor}"


def remove_log_writes(disks: int) -> None:
    """Remove the dm-log-writes devices of a recording, so that their logs are complete and in order. A device that is
    removed too early logs its last writes in the wrong order. It puts the writes since the last flush in front of older
    writes that still wait in its queue (list_splice_init in log_writes_dtr). So this function first waits until the
    device's kernel thread sleeps interruptibly, which means that it has logged everything (log_writes_kthread in
    drivers/md/dm-log-writes.c)."""
    writers = _kernel_threads(LOG_WRITER, disks)
    if not comes_true(lambda: all(stat_of(writer)[0] == IDLE for writer in writers), LOGGED_SECONDS):
        raise Denial(f"the log was incomplete {LOGGED_SECONDS} s after the last write")
    for number in range(disks):
        remove_mapped(f"{TARGET}-{number}")


def _kernel_threads(name: str, count: int) -> list[int]:
    found: list[int] = []
    for process in sorted((int(entry) for entry in os.listdir("/proc") if entry.isdigit()), reverse=True):
        with suppress(OSError):  # the process has ended meanwhile
            if read_text(f"/proc/{process}/comm").strip() == name:
                found.append(process)
        if len(found) == count:
            return found
    raise Denial(f"expected {count} kernel threads {name!r}, found {len(found)}")


def _made() -> dict[str, bool]:
    """Return a dictionary whose keys are the names of bob's device-mapper devices, md arrays, and devices of bcache.
    The value of a name says whether another device lies on top of that device."""
    cached = [name for name in os.listdir("/sys/block") if _is_cached(name)]
    found = {CACHE_SET: bool(cached)} if os.path.isdir(f"{CACHE_SETS}/{CACHE_SET}") else {}
    for device in os.listdir("/sys/block"):
        with suppress(FileNotFoundError):  # md removes an array some time after its stop
            is_mapped = device.startswith("dm-")
            name = read_text(f"/sys/block/{device}/dm/name").strip() if is_mapped else device
            if name.startswith((STACK, PART, TARGET, SCRATCH)) if is_mapped else is_array(name) or name in cached:
                found[name] = bool(os.listdir(f"/sys/block/{device}/holders"))
    return found


def _is_cached(name: str) -> bool:
    """Return whether the block device ``name`` is one that bcache made of bob's disks."""
    if not name.startswith("bcache"):
        return False
    below = os.listdir(f"/sys/block/{name}/slaves")
    return any(
        os.path.exists(path) and read_text(path).startswith(("bob-", WORK))
        for path in (f"/sys/block/{one}/{file}" for one in below for file in ("dm/name", "loop/backing_file"))
    )


def clear_devices() -> None:
    while made := _made():  # devices on top first
        for name in [name for name, is_held in made.items() if not is_held] or list(made):
            if is_array(name):
                stop_array(name)
            elif name == CACHE_SET or name.startswith("bcache"):
                stop_cached(name)
            else:
                run("dmsetup", "--noudevsync", "remove", "--force", "--retry", name)
    for loop in tuple(Loop.attached):
        with suppress(OSError):  # the loop device may never have got a file
            loop.close()
    for name in os.listdir("/sys/block"):  # loop devices of an earlier agent
        with suppress(FileNotFoundError):  # not a loop device, or none that is attached
            if read_text(f"/sys/block/{name}/loop/backing_file").startswith(WORK + "/"):
                forget_history(name)
                with opened(f"/dev/{name}") as fd:
                    fcntl.ioctl(fd, LOOP_CLR_FD)


def write_text(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def read_text(path: str) -> str:
    """Return the text of a file of the kernel's. (Python's open() would take twice as long.)"""
    fd, parts = os.open(path, os.O_RDONLY | os.O_CLOEXEC), []
    try:
        while part := os.read(fd, READ_AT_ONCE):
            parts.append(part)
    finally:
        os.close(fd)
    return b"".join(parts).decode(errors="backslashreplace")


def stat_of(pid: int) -> list[str]:
    """Return the fields of ``/proc/PID/stat`` (proc(5)) from the third field, the state, on. Raises OSError if the
    process is gone."""
    return read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()


def run(*command: str) -> str:
    """Run a program, and return its output. Raises Denial, with the output, if the program fails."""
    environment = {**plain_environment(), "E2FSPROGS_FAKE_TIME": str(BASE_EPOCH)}
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, check=False)
    except FileNotFoundError:
        raise Denial(f"{command[0]} is not installed in the guest") from None
    printed = (done.stdout + done.stderr).decode(errors="replace").strip()
    if done.returncode:
        kind = ContentRefused if done.returncode > 0 else Denial  # killed by a signal, it did not judge the contents
        raise kind(f"{os.path.basename(command[0])} failed ({done.returncode}): {without_usage(printed)}")
    return printed


def without_usage(printed: str) -> str:
    """Return the error message ``printed`` without the list of options that many programs print after it."""
    before = re.split(r"^\s*usage:", printed, maxsplit=1, flags=re.IGNORECASE | re.MULTILINE)[0].strip()
    return before or printed


def with_device(command: list[str], device: str) -> list[str]:
    return [device if word == "DEVICE" else word for word in command]


def run_anyhow(command: list[str], device: str, output: int | None = None) -> int:
    """Run a program on ``device``, and return its exit code (negative: the signal that ended it). A program that fails
    raises no error. This function starts a program faster than the module subprocess does. ``output`` is a descriptor
    for the program's output (None: the output is dropped)."""
    words = with_device(command, device)
    files: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)]
    if output is not None:
        files[1:] = [(os.POSIX_SPAWN_DUP2, output, fd) for fd in (1, 2)]
    _pid, status = os.waitpid(os.posix_spawnp(words[0], words, plain_environment(), file_actions=files), 0)
    return os.waitstatus_to_exitcode(status)


def plain_environment() -> dict[str, str]:
    """Return the environment of this process, changed to the C locale. With another locale, a program takes longer:
    loading the locale takes as long as a tenth of a run of e2fsck."""
    return {**os.environ, "LC_ALL": "C"}
