"""File systems and configurations of them: the declarations that everything else asks.

A file system is one small declaration; a configuration is a file system with mkfs and mount options. Sizes are in
bytes, times in seconds of the guest's clock.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from bob.errors import UsageError

MIB = 1024 * 1024
DEFAULT_BUDGET = 100
"""Crash states per workload: with it a column takes a few minutes on two processors without KVM."""
DEVICE = "DEVICE"
"""Stands for the device's path in the commands below."""


@dataclass(frozen=True, slots=True)
class FileSystem:
    """How a file system is made, mounted, recovered and waited for.

    ``mkfs`` is the command with everything that would differ from run to run taken out of it (UUID, hash seed), no
    discards (they would erase the stale pattern) and nothing left to background initialisation. ``repair`` is what is
    run when a crash state does not mount. ``quiet`` is how long the device must have been silent before the file
    system counts as done: longer than any timer of its own. ``package`` is where mkfs comes from, ``device``
    the default size of the probed device.
    """

    name: str
    driver: str
    mkfs: tuple[str, ...]
    repair: tuple[str, ...]
    device: int
    quiet: float
    package: str
    check: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    note: str = ""


_UUID = "b0b0b0b0-0000-4000-8000-000000000b0b"
_MKE2FS = (
    "-q", "-F", "-b", "4096", "-U", _UUID,
    "-E", f"hash_seed={_UUID},nodiscard,lazy_itable_init=0,lazy_journal_init=0",
)  # fmt: skip

FILE_SYSTEMS: dict[str, FileSystem] = {
    fs.name: fs
    for fs in (
        FileSystem(
            name="ext4",
            driver="ext4",
            mkfs=("mkfs.ext4", *_MKE2FS, DEVICE),
            repair=("e2fsck", "-fy", DEVICE),
            device=32 * MIB,
            quiet=36.0,
            package="e2fsprogs",
            modules=("ext4",),
            note="4,096-byte blocks, as mkfs.ext4 makes them on a disk of ordinary size",
        ),
    )
}

_NAMES = {
    ("ext4", "data=writeback"): "ext4-writeback",
    ("ext4", "data=ordered"): "ext4-ordered",
    ("ext4", "nodelalloc"): "ext4-nodelalloc",
    ("ext4", "data=journal"): "ext4-datajournal",
}


@dataclass(frozen=True, slots=True)
class Configuration:
    """A file system as it is probed: with which mkfs and mount options, on a device of how many bytes."""

    fs: FileSystem
    mkfs_options: str = ""
    mount_options: str = ""
    device: int = 0

    @property
    def name(self) -> str:
        """Its name in tables and files: the published one where it has one ("ext4-ordered")."""
        if not self.mkfs_options and (name := _NAMES.get((self.fs.name, self.mount_options))):
            return name
        return " ".join(part for part in (self.fs.name, self.mkfs_options, self.mount_options) if part)

    @property
    def device_bytes(self) -> int:
        """The size of the probed device."""
        return self.device or self.fs.device

    @property
    def mkfs(self) -> tuple[str, ...]:
        """The whole mkfs command; the user's options come last, so that they win."""
        return (*self.fs.mkfs[:-1], *shlex.split(self.mkfs_options), self.fs.mkfs[-1])


def configuration(fs: str, mkfs_options: str = "", mount_options: str = "", device: int = 0) -> Configuration:
    """The configuration of file system ``fs``; raises UsageError when bob does not know it."""
    known = FILE_SYSTEMS.get(fs)
    if known is None:
        raise UsageError(f"unknown file system {fs!r}", hint=f"bob knows: {', '.join(FILE_SYSTEMS)}")
    if device and device % MIB:
        raise UsageError(f"a device of {device} bytes is not a whole number of MiB", hint="for example --device 64M")
    return Configuration(known, mkfs_options, mount_options, device)
