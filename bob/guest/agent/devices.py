"""Loop devices, programs and mounts, by system call where one is needed for every crash state."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
import subprocess
import time

from bob.guest.agent.frames import Refused

EPOCH = 1_700_000_000
"""What the guest's wall clock says when a recording starts (seconds), so that time stamps are the same in each."""

LOOP_CTL_GET_FREE = 0x4C82
LOOP_CONFIGURE = 0x4C0A
LOOP_CLR_FD = 0x4C01
MOUNT_FLAGS = {
    "ro": 1, "nosuid": 2, "nodev": 4, "noexec": 8, "sync": 16, "dirsync": 128, "noatime": 1024, "nodiratime": 2048,
    "relatime": 1 << 21, "strictatime": 1 << 24, "lazytime": 1 << 25, "rw": 0, "defaults": 0,
}  # fmt: skip

libc = ctypes.CDLL(None, use_errno=True)


class Loop:
    """A loop device over ``path``; ``with`` detaches it."""

    def __init__(self, path: str, block_size: int = 512) -> None:
        control = os.open("/dev/loop-control", os.O_RDWR)
        try:
            self.number = fcntl.ioctl(control, LOOP_CTL_GET_FREE)
        finally:
            os.close(control)
        self.path = f"/dev/loop{self.number}"
        self.fd = os.open(self.path, os.O_RDWR)
        backing = os.open(path, os.O_RDWR)
        try:
            fcntl.ioctl(self.fd, LOOP_CONFIGURE, struct.pack("II232s64s", backing, block_size, b"", b""))
        finally:
            os.close(backing)
        self.device = os.fstat(self.fd).st_rdev
        queue = f"/sys/block/loop{self.number}/queue"
        write_text(f"{queue}/scheduler", "none")
        write_text(f"{queue}/discard_max_bytes", "0")

    def release_holder(self) -> None:
        """Close bob's own descriptor, so that the last close of the device is the last unmount."""
        os.close(self.fd)
        self.fd = -1

    def close(self) -> None:
        if self.fd < 0:
            self.fd = os.open(self.path, os.O_RDWR)
        fcntl.ioctl(self.fd, LOOP_CLR_FD)
        os.close(self.fd)

    def __enter__(self) -> Loop:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def write_text(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def read_text(path: str) -> str:
    with open(path, errors="backslashreplace") as file:
        return file.read()


def run(*command: str) -> str:
    """Run a program to its end; what it printed. Its failure is a refusal that quotes it."""
    environment = {**os.environ, "E2FSPROGS_FAKE_TIME": str(EPOCH), "LC_ALL": "C"}
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, check=False)
    except FileNotFoundError:
        raise Refused(f"{command[0]} is not installed in the guest") from None
    printed = (done.stdout + done.stderr).decode(errors="replace").strip()
    if done.returncode:
        raise Refused(f"{os.path.basename(command[0])} failed ({done.returncode}): {printed}")
    return printed


class KernelLog:
    """What the kernel says from now on, without reading what it said before."""

    def __init__(self) -> None:
        self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self.fd, 0, os.SEEK_END)

    def reason(self) -> str:
        """The last two lines that came since the last call; empty if there were none."""
        lines: list[str] = []
        while True:
            try:
                record = os.read(self.fd, 8192).decode(errors="replace")
            except BrokenPipeError:  # the ring buffer overtook us: go on with the oldest line that is left
                continue
            except BlockingIOError:
                return "; ".join(lines[-2:])
            lines.append(record.partition(";")[2].splitlines()[0])

    def close(self) -> None:
        os.close(self.fd)


def mount(source: str, target: str, fs: str, options: str) -> int:
    """mount(2); 0 or the errno."""
    flags, data = 0, []
    for option in options.split(","):
        if option in MOUNT_FLAGS:
            flags |= MOUNT_FLAGS[option]
        elif option:
            data.append(option)
    if libc.mount(source.encode(), target.encode(), fs.encode(), flags, ",".join(data).encode() or None) == 0:
        return 0
    return ctypes.get_errno()


def mount_or_refuse(source: str, target: str, fs: str, options: str) -> None:
    log = KernelLog()
    number = mount(source, target, fs, options)
    reason = log.reason()
    log.close()
    if number:
        if number == errno.ENODEV:
            reason = f"the kernel {os.uname().release} has no file system {fs!r}"
        raise Refused(f"mount refused ({errno.errorcode.get(number, number)}): {reason or os.strerror(number)}")


def unmount(target: str) -> None:
    for _ in range(200):
        if libc.umount2(target.encode(), 0) == 0:
            return
        if ctypes.get_errno() != errno.EBUSY:
            break
        time.sleep(0.05)
    raise OSError(ctypes.get_errno(), f"umount {target}")
