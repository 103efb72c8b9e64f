"""The recording of a workload or program, as it comes from a guest, before bob has checked it. It has above all the
writes to the guest's disks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class Completion(Enum):
    """When the recorded disk completes a write: at once (``PROMPT``), or as late as possible and one write at a time. A
    late disk exposes a file system that sends a flush too early, before a write that the flush should make durable has
    completed. Older saved recordings do not say when; their disks completed each write at once."""

    PROMPT = "prompt"
    YOUNGEST_FIRST = "youngest-first"
    OLDEST_FIRST = "oldest-first"


class InodeStatus(NamedTuple):
    """Some fields of the result of lstat(2). ``mtime`` is in ns since 1970. It is 0 if the inode was last modified
    during the recording or later."""

    mode: int
    uid: int
    gid: int
    mtime: int
    links: int


Statuses = Mapping[str, InodeStatus]  # by path


@dataclass(frozen=True, slots=True)
class RecordedDisk:
    """One disk of a recording: its dm-log-writes ``log``, and its ``device`` (major, minor)."""

    log: bytes
    device: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Recording:
    """The unchecked output of the guest. :func:`bob.trace.check.checked` turns it into a Trace.

    ``timeline`` is the text of the trace buffer that the ``disks`` share. ``final`` is the content of the disks after
    the recording. It is a packed difference (:mod:`bob.trace.differences`) from the base image, which is the content
    before the recording. In both, the disks are laid end to end, in the order of ``disks``. The mappings of inode
    numbers and statuses have paths as keys. Older recordings lack ``status_after``."""

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
        return sum(len(disk.log) for disk in self.disks)
