"""A recording as it comes out of a guest, before it is checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class Completion(Enum):
    """When the recorded disk completes a write: at once (``PROMPT``), or as late as can be and one at a time, of those
    that are under way the youngest first or the oldest first.

    A file system that sends a flush without having waited for a write looks on a prompt disk as if it had. The value
    is what recordings, run directories and witnesses say; one that says nothing is older than the choice, and prompt.
    """

    PROMPT = "prompt"
    YOUNGEST_FIRST = "youngest-first"
    OLDEST_FIRST = "oldest-first"


class InodeStatus(NamedTuple):
    """What lstat(2) says of a name beside its kind, inode number and size: permission bits, owner, group, time of
    modification (ns since 1970; 0 if it was set since the base image was made), links."""

    mode: int
    uid: int
    gid: int
    mtime: int
    links: int


Statuses = Mapping[str, InodeStatus]
"""By path."""


@dataclass(frozen=True, slots=True)
class RecordedDisk:
    """One disk of a recording: its dm-log-writes ``log`` (bytes), and the numbers (major, minor) of its ``device``."""

    log: bytes
    device: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Recording:
    """What came out of the guest, as it came: :func:`bob.trace.check.checked` makes a Trace of it.

    ``disks`` are in the order of the base. ``timeline`` is the text of the trace buffer, which all disks share,
    ``final`` the differences of the disks, laid end to end, from the base after the recording. The inode numbers, and
    what else stat says, are by path, before and after the operations (of the latter nothing in recordings of older
    versions). ``completion`` is when the recorded disks told that a write was done.
    """

    disks: tuple[RecordedDisk, ...]
    timeline: str
    final: bytes
    effective_options: str
    inodes_before: dict[str, int]
    inodes_after: dict[str, int]
    status_before: Statuses = field(default_factory=dict)
    status_after: Statuses = field(default_factory=dict)
    completion: Completion = Completion.PROMPT

    @property
    def log_bytes(self) -> int:
        """How long the logs are together (bytes)."""
        return sum(len(disk.log) for disk in self.disks)
