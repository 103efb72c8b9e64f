"""The logical operations of a workload, as plain data.

Paths are absolute within the probed file system ("/d/a"). Offsets, lengths and sizes are in bytes, times in seconds of
the guest's clock. Each operation opens what it needs, performs its system call and closes again, as a program would.
:class:`Open` and :class:`Unnamed` keep a file open under a *handle*, a word without a slash; some paths may be handles.
:mod:`bob.agent.inside` alone performs operations.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    """The file is opened with O_TRUNC first, so the write starts at offset 0."""


@dataclass(frozen=True, slots=True)
class Create:
    path: str


class Special(StrEnum):
    """The special file that mknod(2) makes; devices have the number 7:11."""

    FIFO = "fifo"
    SOCKET = "socket"
    CHARACTER = "character"
    BLOCK = "block"


@dataclass(frozen=True, slots=True)
class Mknod:
    path: str
    special: Special


@dataclass(frozen=True, slots=True)
class Open:
    """Open a file or directory that is there, and keep it open as ``handle``."""

    path: str
    handle: str


@dataclass(frozen=True, slots=True)
class Unnamed:
    """Make a file without a name in the file system of the directory ``path`` (O_TMPFILE of open(2)), and keep it open
    as ``handle``. A link gives it a name."""

    path: str
    handle: str


@dataclass(frozen=True, slots=True)
class Close:
    handle: str


@dataclass(frozen=True, slots=True)
class Write:
    """write(2) at ``offset``; None: at the end of the file (O_APPEND). ``path`` may be a handle."""

    path: str
    offset: int | None
    length: int
    how: How = How.PLAIN


@dataclass(frozen=True, slots=True)
class CopyRange:
    """copy_file_range(2) of ``length`` bytes of ``source`` to the same place in ``path``. Both may be handles."""

    source: str
    path: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Reflink:
    """FICLONE of ioctl_ficlonerange(2): ``path`` shares all of ``source``. Both may be handles."""

    source: str
    path: str


@dataclass(frozen=True, slots=True)
class Truncate:
    """``path`` may be a handle."""

    path: str
    size: int


class Allocation(StrEnum):
    """The modes of fallocate(2)."""

    GROW = "grow"
    """Allocate the range, and grow the file if the range ends beyond: mode 0."""
    KEEP = "keep"
    """Allocate it, also beyond the end of the file, and leave the size: FALLOC_FL_KEEP_SIZE."""
    PUNCH = "punch"
    """Make it a hole: FALLOC_FL_PUNCH_HOLE, which needs FALLOC_FL_KEEP_SIZE."""
    ZERO = "zero"
    """Make it zeros, and grow the file if the range ends beyond: FALLOC_FL_ZERO_RANGE."""
    ZERO_KEEP = "zero-keep"
    """Make it zeros, and leave the size: FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE."""
    COLLAPSE = "collapse"
    """Take it out, and move the bytes behind it to its place: FALLOC_FL_COLLAPSE_RANGE."""
    INSERT = "insert"
    """Put in zeros, and move the old bytes behind them: FALLOC_FL_INSERT_RANGE."""

    @property
    def zeroes(self) -> bool:
        """Whether the range reads as zeros afterwards."""
        return self in (Allocation.PUNCH, Allocation.ZERO, Allocation.ZERO_KEEP)

    @property
    def shifts(self) -> bool:
        """Whether the bytes behind the range move."""
        return self in (Allocation.COLLAPSE, Allocation.INSERT)

    @property
    def grows(self) -> bool:
        """Whether a shorter file grows to the end of the range."""
        return self in (Allocation.GROW, Allocation.ZERO)


@dataclass(frozen=True, slots=True)
class Fallocate:
    """``path`` may be a handle."""

    path: str
    offset: int
    length: int
    mode: Allocation = Allocation.GROW


class Replacing(StrEnum):
    """What rename does with an existing new name: the flags of renameat2(2)."""

    REPLACE = "replace"
    """It loses its file: no flag, as rename(2)."""
    REFUSE = "noreplace"
    """EEXIST: RENAME_NOREPLACE."""
    EXCHANGE = "exchange"
    """It gets the old name: RENAME_EXCHANGE. The new name must exist."""


@dataclass(frozen=True, slots=True)
class Rename:
    old: str
    new: str
    replacing: Replacing = Replacing.REPLACE


@dataclass(frozen=True, slots=True)
class Link:
    """``old`` may be a handle."""

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
    """``path`` may be a handle, also in the next four."""

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
class Utimes:
    """Set the times of access and modification to ``seconds`` since 1970 (utimensat(2)). The number is even, since vfat
    keeps no other, and before any recording."""

    path: str
    seconds: int


@dataclass(frozen=True, slots=True)
class Fsync:
    """fsync(2) of a file, directory or handle; ``data_only`` makes it fdatasync(2)."""

    path: str
    data_only: bool = False


@dataclass(frozen=True, slots=True)
class SyncFileRange:
    """``path`` may be a handle."""

    path: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Msync:
    """msync(2) with MS_SYNC of a shared mapping of the whole file, which is not empty. ``path`` may be a handle."""

    path: str


@dataclass(frozen=True, slots=True)
class Sync:
    """sync(2); ``this_only`` makes it syncfs(2) of the probed file system."""

    this_only: bool = False


@dataclass(frozen=True, slots=True)
class Sleep:
    """Let ``seconds`` of the guest's clock pass (free if that clock is virtual)."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """A mark in the recording: a program assures its user that all so far is done."""

    text: str


DIRECTORY_OPERATIONS = Create | Mknod | Rename | Link | Symlink | Unlink | Mkdir | Rmdir
WRITING_OPERATIONS = Write | CopyRange | Reflink
"""These put bytes into a file, and make it if it is not there."""
SYNC_OPERATIONS = Fsync | SyncFileRange | Msync | Sync
CHANGELESS_OPERATIONS = SYNC_OPERATIONS | Open | Close | Sleep | Acknowledge
"""These change no name, byte or attribute."""
ATTRIBUTE_OPERATIONS = Setxattr | Removexattr | Chmod | Chown | Utimes
Operation = (
    DIRECTORY_OPERATIONS
    | WRITING_OPERATIONS
    | ATTRIBUTE_OPERATIONS
    | CHANGELESS_OPERATIONS
    | (Unnamed | Truncate | Fallocate)
)

NAMES = "path", "old", "new", "source"
"""The fields of operations that are paths or handles."""


def names_of(operation: Operation) -> list[str]:
    """Return the paths and handles that ``operation`` is about, without what a symbolic link leads to."""
    return [getattr(operation, name) for name in NAMES if hasattr(operation, name)]


def parent(path: str) -> str:
    """Return the directory of ``path``."""
    return path.rpartition("/")[0] or "/"


class At(StrEnum):
    """When the crash comes: after the last operation has returned (``END``), or anywhere after the first was called."""

    END = "end"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Finish:
    """How a recording ends after its last operation.

    ``natural``: the recording goes on until nothing is dirty and the block layer has been quiet. An unrelated small
    write opens a transaction ``phase`` seconds before the first operation, so the kernel's periodic work falls at
    another moment (facts: natural writeback has phases). Otherwise ``operations`` (an fsync, sync ...) end it.
    """

    name: str
    operations: tuple[Operation, ...] = ()
    natural: bool = False
    phase: float = 0.0

    @property
    def is_settled(self) -> bool:
        """Whether all is written when the recording ends."""
        return self.natural or any(isinstance(operation, Sync) for operation in self.operations)


NATURAL = Finish("natural", natural=True)


@dataclass(frozen=True, slots=True)
class Workload:
    """An initial tree (made durable before recording), operations, a finish, and when the crash may come. ``pattern``
    says how its data is written (:mod:`bob.workload.pattern`)."""

    name: str
    setup: tuple[Operation, ...]
    operations: tuple[Operation, ...]
    finish: Finish = NATURAL
    at: At = At.ANY
    pattern: int = PATTERN

    @property
    def title(self) -> str:
        """Its name and its finish, for people."""
        return f"{self.name} ({self.finish.name})"

    @property
    def slug(self) -> str:
        """Its name and its finish, for the names of folders."""
        return f"{self.name} {self.finish.name}"
