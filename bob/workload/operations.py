"""The logical operations of a workload, as plain data. Only :mod:`bob.agent.inside` performs them.

Paths are absolute within the probed file system ("/d/a"). Offsets, lengths and sizes are in bytes, times in seconds of
the guest's clock. Each operation opens its file, performs its system call and closes the file. :class:`Open` and
:class:`Unnamed` keep a file open under a *handle*, a word without a slash. A handle can replace a path in operations on
data and attributes, in syncs, and as the ``old`` name of a link.
"""

from dataclasses import dataclass
from enum import StrEnum

from bob.workload.pattern import PATTERN


class How(StrEnum):
    PLAIN = "plain"
    DIRECT = "direct"
    SYNC = "sync"
    DSYNC = "dsync"
    MMAP = "mmap"
    TRUNC = "trunc"  # the offset after O_TRUNC, so the write starts at 0


@dataclass(frozen=True, slots=True)
class Create:
    path: str


class Special(StrEnum):
    """Special files that mknod(2) makes. The files for devices have the device number 7:11 (major and minor)."""

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
    path: str  # an existing file or directory
    handle: str


@dataclass(frozen=True, slots=True)
class Unnamed:
    """The creation of a file without a name (O_TMPFILE) in the file system of directory ``path``. The file stays open.
    Later operations use ``handle`` instead of a path for it."""

    path: str
    handle: str


@dataclass(frozen=True, slots=True)
class Close:
    handle: str


@dataclass(frozen=True, slots=True)
class Write:
    """A write(2) at ``offset`` (None: at the end of the file, with O_APPEND)."""

    path: str
    offset: int | None
    length: int
    how: How = How.PLAIN


@dataclass(frozen=True, slots=True)
class CopyRange:
    """A copy_file_range(2) of ``length`` bytes from ``offset`` on in ``source``, to the same offset in ``path``."""

    source: str
    path: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Reflink:
    """A FICLONE of ioctl_ficlonerange(2). Afterwards, ``path`` shares all data of ``source``."""

    source: str
    path: str


@dataclass(frozen=True, slots=True)
class Truncate:
    path: str
    size: int


class Allocation(StrEnum):
    GROW = "grow"  # allocate the range, and grow a shorter file to its end: mode 0
    KEEP = "keep"  # allocate, even beyond the end, and leave the size: FALLOC_FL_KEEP_SIZE
    PUNCH = "punch"  # make a hole: FALLOC_FL_PUNCH_HOLE, which needs FALLOC_FL_KEEP_SIZE
    ZERO = "zero"  # write zeros, and grow a shorter file: FALLOC_FL_ZERO_RANGE
    ZERO_KEEP = "zero-keep"  # write zeros, and leave the size: FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE
    COLLAPSE = "collapse"  # cut the range out, and move later bytes to its place: FALLOC_FL_COLLAPSE_RANGE
    INSERT = "insert"  # insert zeros, and move the old bytes behind them: FALLOC_FL_INSERT_RANGE

    @property
    def zeroes(self) -> bool:
        return self in (Allocation.PUNCH, Allocation.ZERO, Allocation.ZERO_KEEP)

    @property
    def shifts(self) -> bool:
        return self in (Allocation.COLLAPSE, Allocation.INSERT)

    @property
    def grows(self) -> bool:
        """Return whether fallocate(2) with this mode makes a file longer if the allocated range ends beyond the end of
        the file."""
        return self in (Allocation.GROW, Allocation.ZERO)


@dataclass(frozen=True, slots=True)
class Fallocate:
    path: str
    offset: int
    length: int
    mode: Allocation = Allocation.GROW


class Replacing(StrEnum):
    """The effect of a rename on a file that already has the new name: the flags of renameat2(2)."""

    REPLACE = "replace"  # the existing name loses its file; no flag, as rename(2)
    REFUSE = "noreplace"  # the rename fails with EEXIST: RENAME_NOREPLACE
    EXCHANGE = "exchange"  # the new name must exist, and its file gets the old name: RENAME_EXCHANGE


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
    path: str
    mode: int  # permission bits, at most 0o777


@dataclass(frozen=True, slots=True)
class Chown:
    path: str
    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Utimes:
    """A utimensat(2) to ``seconds`` since 1970. The time is before any recording. It is an even number, since vfat
    stores no odd seconds."""

    path: str
    seconds: int


@dataclass(frozen=True, slots=True)
class Fsync:
    """An fsync(2) of a file or directory. ``data_only`` makes it an fdatasync(2)."""

    path: str
    data_only: bool = False


@dataclass(frozen=True, slots=True)
class SyncFileRange:
    path: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Msync:
    """An msync(2) with MS_SYNC of a shared mapping of the whole file, which must not be empty."""

    path: str


@dataclass(frozen=True, slots=True)
class Sync:
    """A sync(2). ``this_only`` makes it a syncfs(2) of the probed file system."""

    this_only: bool = False


@dataclass(frozen=True, slots=True)
class Writeback:
    """The writeback of all dirty pages of a file, as the kernel may do it at any time. It promises nothing."""

    path: str


@dataclass(frozen=True, slots=True)
class MetadataWriteback:
    """The writeback of all dirty blocks that the kernel caches for the block device itself. There, file systems with
    buffer heads (such as ext2, ext4 and vfat) keep their metadata. It promises nothing."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of the journal or log, as another program's fsync makes it. bob changes and syncs a file of its own. On
    btrfs, bob asks for a commit of the transaction. It promises nothing."""


@dataclass(frozen=True, slots=True)
class Sleep:
    """A pause of ``seconds`` of the guest's clock. It takes no real time if that clock is virtual."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """A mark in the recording. It stands for the moment when a program confirms all its work so far to its user."""

    text: str


DIRECTORY_OPERATIONS = Create | Mknod | Rename | Link | Symlink | Unlink | Mkdir | Rmdir
# Operations that put bytes into a file, and create the file if it does not exist.
WRITING_OPERATIONS = Write | CopyRange | Reflink
SYNC_OPERATIONS = Fsync | SyncFileRange | Msync | Sync
# What a kernel also does by itself: it makes no promise to a program.
KERNEL_MOMENTS = Writeback | MetadataWriteback | Commit
# Operations that change no name, byte or attribute.
CHANGELESS_OPERATIONS = SYNC_OPERATIONS | KERNEL_MOMENTS | Open | Close | Sleep | Acknowledge
ATTRIBUTE_OPERATIONS = Setxattr | Removexattr | Chmod | Chown | Utimes
Operation = (
    DIRECTORY_OPERATIONS
    | WRITING_OPERATIONS
    | ATTRIBUTE_OPERATIONS
    | CHANGELESS_OPERATIONS
    | (Unnamed | Truncate | Fallocate)
)

NAMES = "path", "old", "new", "source"  # the fields of operations that contain paths or handles


def names_of(operation: Operation) -> list[str]:
    """Return the paths and handles that occur in ``operation``. The target of a symbolic link does not count as a
    path."""
    return [getattr(operation, name) for name in NAMES if hasattr(operation, name)]


def paths_of(operation: Operation) -> list[str]:
    """Return the paths of ``operation``, without handles of open files."""
    return [name for name in names_of(operation) if name.startswith("/")]


def parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


class At(StrEnum):
    """The time of the crash. ``END`` allows crashes after the last operation has returned, ``ANY`` all crashes after
    the first operation was called."""

    END = "end"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of a recording, after the workload's operations. It is ``operations`` (an fsync, sync ...), or
    ``natural`` writeback until nothing is dirty and the block layer is quiet.

    The kernel does periodic work, such as commits of a journal. This work may come before, between or after the
    operations of the workload. With ``phase``, bob chooses when it comes: bob makes an unrelated small write ``phase``
    seconds before the first operation. This opens a transaction, and the kernel commits it a fixed time later
    (docs/facts.md: natural writeback has phases)."""

    name: str
    operations: tuple[Operation, ...] = ()
    natural: bool = False
    phase: float = 0.0

    @property
    def is_settled(self) -> bool:
        """Return whether everything is written when the recording ends."""
        return self.natural or any(isinstance(operation, Sync) for operation in self.operations)


NATURAL = Finish("natural", natural=True)
IMPORTED = Finish("imported")
"""The finish of a recording that another program made. bob knows neither its operations nor its initial tree."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload. ``setup`` makes the initial tree, which is durable before the recording begins. bob records the
    ``operations``, and then the ``finish``. ``at`` says when crashes may come. ``pattern`` is the version of the
    pattern that the operations write as data."""

    name: str
    setup: tuple[Operation, ...]
    operations: tuple[Operation, ...]
    finish: Finish = NATURAL
    at: At = At.ANY
    pattern: int = PATTERN

    @property
    def is_imported(self) -> bool:
        return self.finish == IMPORTED

    @property
    def title(self) -> str:
        return f"{self.name} ({self.finish.name})"

    @property
    def slug(self) -> str:
        return f"{self.name} {self.finish.name}"
