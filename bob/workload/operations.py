"""The logical operations of a workload, as plain data.

Paths are absolute within the probed file system ("/d/a"). Offsets, lengths and sizes are in bytes, times in seconds
of the guest's clock. Each operation opens what it needs, performs its system call and closes again, as a program
would; :mod:`bob.agent.inside` is the only place that performs them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from bob.workload.pattern import PATTERN


class How(StrEnum):
    """By which way data is written."""

    PLAIN = "plain"
    DIRECT = "direct"
    SYNC = "sync"
    DSYNC = "dsync"
    MMAP = "mmap"
    TRUNC = "trunc"
    """The file is opened with O_TRUNC first: its old contents go, the write starts at offset 0."""


@dataclass(frozen=True, slots=True)
class Create:
    path: str


@dataclass(frozen=True, slots=True)
class Write:
    """write(2) at ``offset``; with ``offset`` None, at the end of the file (O_APPEND)."""

    path: str
    offset: int | None
    length: int
    how: How = How.PLAIN


@dataclass(frozen=True, slots=True)
class Truncate:
    path: str
    size: int


class Allocation(StrEnum):
    """What fallocate(2) does to a range: its modes."""

    GROW = "grow"
    """Allocate it, and grow the file where it ends beyond: mode 0."""
    KEEP = "keep"
    """Allocate it, also beyond the end of the file, and leave the size: FALLOC_FL_KEEP_SIZE."""
    PUNCH = "punch"
    """Make it a hole: FALLOC_FL_PUNCH_HOLE, which goes with FALLOC_FL_KEEP_SIZE only."""
    ZERO = "zero"
    """Make it zeros, and grow the file where it ends beyond: FALLOC_FL_ZERO_RANGE."""
    ZERO_KEEP = "zero-keep"
    """Make it zeros, and leave the size: FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE."""

    @property
    def zeroes(self) -> bool:
        """Whether what was there reads as zeros afterwards."""
        return self in (Allocation.PUNCH, Allocation.ZERO, Allocation.ZERO_KEEP)

    @property
    def grows(self) -> bool:
        """Whether the file ends where the range does, if it ended before."""
        return self in (Allocation.GROW, Allocation.ZERO)


@dataclass(frozen=True, slots=True)
class Fallocate:
    path: str
    offset: int
    length: int
    mode: Allocation = Allocation.GROW


class Replacing(StrEnum):
    """What rename does with the new name where it is there: the flags of renameat2(2)."""

    REPLACE = "replace"
    """What has it loses it: no flag, as rename(2)."""
    REFUSE = "noreplace"
    """EEXIST: RENAME_NOREPLACE."""
    EXCHANGE = "exchange"
    """It gets the old name: RENAME_EXCHANGE. The new name must be there."""


@dataclass(frozen=True, slots=True)
class Rename:
    old: str
    new: str
    replacing: Replacing = Replacing.REPLACE


@dataclass(frozen=True, slots=True)
class Link:
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Symlink:
    target: str
    path: str


@dataclass(frozen=True, slots=True)
class Unlink:
    path: str


@dataclass(frozen=True, slots=True)
class Mkdir:
    path: str


@dataclass(frozen=True, slots=True)
class Rmdir:
    path: str


@dataclass(frozen=True, slots=True)
class Setxattr:
    path: str
    name: str
    length: int


@dataclass(frozen=True, slots=True)
class Removexattr:
    path: str
    name: str


@dataclass(frozen=True, slots=True)
class Chmod:
    """``mode`` are the permission bits (at most 0o777)."""

    path: str
    mode: int


@dataclass(frozen=True, slots=True)
class Chown:
    path: str
    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Fsync:
    """fsync(2) of a file or directory; ``data_only`` makes it fdatasync(2)."""

    path: str
    data_only: bool = False


@dataclass(frozen=True, slots=True)
class SyncFileRange:
    path: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Msync:
    """msync(2) with MS_SYNC of a shared mapping of the whole file, which is not empty."""

    path: str


@dataclass(frozen=True, slots=True)
class Sync:
    """sync(2); ``this_only`` makes it syncfs(2) of the probed file system."""

    this_only: bool = False


@dataclass(frozen=True, slots=True)
class Sleep:
    """Let ``seconds`` of the guest's clock pass (free where that clock is virtual)."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """A mark in the recording: a program tells its user that all so far is done."""

    text: str


Operation = (
    Create
    | Write
    | Truncate
    | Fallocate
    | Rename
    | Link
    | Symlink
    | Unlink
    | Mkdir
    | Rmdir
    | Setxattr
    | Removexattr
    | Chmod
    | Chown
    | Fsync
    | SyncFileRange
    | Msync
    | Sync
    | Sleep
    | Acknowledge
)

DIRECTORY_OPERATIONS = (Create, Rename, Link, Symlink, Unlink, Mkdir, Rmdir)
SYNC_OPERATIONS = (Fsync, SyncFileRange, Msync, Sync)


class At(StrEnum):
    """When the crash comes: after the last operation has returned (``END``), or anywhere after the first was called."""

    END = "end"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Finish:
    """How a recording ends after its last operation.

    ``natural``: nothing is asked; the recording goes on until nothing is dirty and the block layer has been quiet.
    ``phase`` is how many seconds before the first operation a transaction was opened by an unrelated small write, so
    that the kernel's periodic work falls at another moment (facts: natural writeback has phases). Otherwise
    ``operations`` (fsync of a later operation's file, fsync of a directory, sync) are performed and it ends there.
    """

    name: str
    operations: tuple[Operation, ...] = ()
    natural: bool = False
    phase: float = 0.0


@dataclass(frozen=True, slots=True)
class Workload:
    """Initial tree (made durable before recording), operations, how it finishes, and when the crash may come.

    ``pattern`` is that by which its data is written (:mod:`bob.workload.pattern`).
    """

    name: str
    setup: tuple[Operation, ...]
    operations: tuple[Operation, ...]
    finish: Finish = field(default_factory=lambda: Finish("natural", natural=True))
    at: At = At.ANY
    pattern: int = PATTERN

    @property
    def title(self) -> str:
        """Its name and its finish, for people."""
        return f"{self.name} ({self.finish.name})"
