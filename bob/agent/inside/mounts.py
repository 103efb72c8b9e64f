"""mount(2) and umount(2), and the kernel's reasons for a refusal."""

from __future__ import annotations

import ctypes
import errno
import os
import time
from contextlib import closing, suppress

from bob.agent.inside.devices import WORK, read_text
from bob.agent.inside.frames import Denial
from bob.agent.inside.refusals import refusal

ROOT = f"{WORK}/mnt-of-so-long-a-name-that-ext4-does-not-write-it-into-its-superblock"
"""The mount point of the probed file system. ext4 writes the path of a mount point shorter than 64 bytes into its
superblock at the first open, and commits (ext4_sample_last_mounted). That would take a tenth of a crash state's time,
and would add a write to recordings that no operation asked for."""

LAYER_FILES = f"{WORK}/layer"  # begins the mount points of layers (layer_commands.py)

MOUNT_FLAGS = {
    "rw": 0, "ro": 1, "suid": 0, "nosuid": 2, "dev": 0, "nodev": 4, "exec": 0, "noexec": 8, "async": 0, "sync": 16,
    "dirsync": 128, "atime": 0, "noatime": 1024, "diratime": 0, "nodiratime": 2048, "relatime": 1 << 21,
    "strictatime": 1 << 24, "lazytime": 1 << 25, "defaults": 0,
}  # fmt: skip
MNT_DETACH = 2
MS_RDONLY, MS_BIND, MS_REC, MS_PRIVATE, MS_SHARED = 1, 1 << 12, 1 << 14, 1 << 18, 1 << 20
WARNING = 4  # a level of the kernel's log; lower levels are worse

libc = ctypes.CDLL(None, use_errno=True)


class KernelLog:
    def __init__(self) -> None:
        self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        self.skip()

    def skip(self) -> None:
        os.lseek(self.fd, 0, os.SEEK_END)

    def warnings(self) -> list[str]:
        lines: list[str] = []
        while True:
            try:
                record = os.read(self.fd, 8192)
            except BrokenPipeError:  # the kernel has overwritten the next line: go on with the oldest line
                continue
            except BlockingIOError:
                return lines
            # "priority,number,time,flags;text" (Documentation/ABI/testing/dev-kmsg)
            head, _, text = record.partition(b";")
            if int(head.partition(b",")[0]) & 7 <= WARNING:
                lines.append(text.partition(b"\n")[0].decode(errors="replace"))

    def close(self) -> None:
        os.close(self.fd)


def node_place(number: int) -> str:
    """Return the mount point of a node's file system. A node is one member of a cluster, and nodes count from 0."""
    return f"{ROOT}/n{number}"


class Mount:
    """A repeatable mount(2) at the path ``at``. ``options`` has mount options, separated by commas. ``more``
    has further flags of mount(2) by name, such as noatime."""

    def __init__(self, source: str, fs: str, options: str, more: tuple[str, ...] = (), at: str = ROOT) -> None:
        words = [word for word in options.split(",") if word]
        self._source, self._fs, self._at = source.encode(), fs.encode(), at.encode()
        flags = 0
        for word in (*words, *more):
            flags |= MOUNT_FLAGS.get(word, 0)
        self._flags = ctypes.c_ulong(flags)
        self._data = ",".join(word for word in words if word not in MOUNT_FLAGS).encode() or None
        # Load the file system's driver now, so that the kernel's messages about that do not look like a refusal later.
        if libc.mount(b"none", ROOT.encode(), self._fs, 0, None) == 0:
            libc.umount2(ROOT.encode(), 0)

    def __call__(self) -> int:
        """Mount the device; return 0 or the errno."""
        if libc.mount(self._source, self._at, self._fs, self._flags, self._data) == 0:
            return 0
        return ctypes.get_errno()


def mount_or_refuse(source: str, fs: str, options: str, at: str = ROOT) -> None:
    """Mount ``source`` at the path ``at``. Raises Denial with the kernel's message if the kernel refuses."""
    mount = Mount(source, fs, options, at=at)
    with closing(KernelLog()) as log:
        number = mount()
        reason = "; ".join(log.warnings()[-2:])
    if number == errno.ENODEV:
        reason = f"the kernel {os.uname().release} does not know the file system {fs!r}, or the image lacks a module"
    if number:
        raise Denial(f"mount refused ({errno.errorcode.get(number, number)}): {reason or os.strerror(number)}")


def mount_at(source: str, target: str, fs: str, flags: int = 0, data: str = "") -> None:
    """Mount ``source`` at ``target`` by mount(2). Raises Denial if the kernel refuses."""
    if libc.mount(source.encode(), target.encode(), fs.encode() or None, ctypes.c_ulong(flags), data.encode() or None):
        number = ctypes.get_errno()
        raise refusal(f"cannot mount {target}", OSError(number, os.strerror(number)))


def unmount(place: str = ROOT) -> None:
    """Unmount what is mounted at ``place``; at ``ROOT``, also the file systems of a cluster's nodes, which are mounted
    below it. While the file system is busy, try again for up to 10 s. Raises OSError if that fails."""
    for _ in range(200):
        if libc.umount2(place.encode(), 0) == 0:
            return
        if ctypes.get_errno() != errno.EBUSY:
            break
        if place != ROOT or not _unmount_nodes():
            time.sleep(0.05)
    raise OSError(ctypes.get_errno(), f"umount {place}")


def _unmount_nodes() -> bool:
    """Try to unmount the file systems of a cluster's nodes. Return whether one of them is now unmounted."""
    places = [line.split()[1] for line in read_text("/proc/mounts").splitlines()]
    unmounted = [place for place in places if place.startswith(f"{ROOT}/n") and libc.umount2(place.encode(), 0) == 0]
    return bool(unmounted)


def clear_mounts() -> None:
    places = [line.split()[1] for line in read_text("/proc/mounts").splitlines()]
    for place in [ROOT, *(one for one in reversed(places) if one.startswith(LAYER_FILES))]:
        with suppress(OSError):
            unmount(place)
        while libc.umount2(place.encode(), MNT_DETACH) == 0:
            pass


def effective_options(at: str = ROOT) -> str:
    for line in reversed(read_text("/proc/mounts").splitlines()):
        _source, target, _fs, options, *_ = line.split()
        if target == at:
            return options
    raise Denial("the probed file system is not in /proc/mounts")
