"""The parts of a write. A part is one block of the write, or several similar blocks. :mod:`bob.blocks.summary` turns
the parts into words."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum, auto
from typing import NamedTuple, Protocol

from bob.blocks.owners import BlockOwner, Owners


class BlockKind(StrEnum):
    """The kind of a block. Every block in a journal or log is of kind JOURNAL, even a copy of file data."""

    DATA = auto()
    JOURNAL = auto()
    METADATA = auto()
    SUPERBLOCK = auto()
    UNKNOWN = auto()


class DataRun(NamedTuple):
    """A range of sectors of the write, from ``first`` to ``last`` (inclusive). The sectors have data that the
    workload's operation number ``operation`` wrote. Data of the initial tree (the files before the recording) always
    has the number ``FIRST_SETUP_NUMBER``."""

    operation: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class WritePart:
    """One block of a write, or several blocks of one sort. ``blocks`` is the number of blocks, and ``what`` says what
    they are.

    ``place`` is the number of the block (in btrfs, its logical address). With this number, :class:`Owners` finds the
    file that owns the block. ``role`` is set if the content of the block shows its role, such as ``data``. ``of`` is
    the number of the inode that owns the block, if the block itself contains this number. ``inodes`` are the inodes
    that the write changes, and ``notes`` say in words what other changes it makes."""

    kind: BlockKind
    what: str
    place: int | None = None
    inodes: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    runs: tuple[DataRun, ...] = ()
    blocks: int = 1
    of: int | None = None
    role: str | None = None


UNKNOWN = WritePart(BlockKind.UNKNOWN, "unknown")


def unknown(place: int) -> WritePart:
    """Return the part for a block at ``place`` that bob does not recognise. Later writes may show which file owns the
    block."""
    return replace(UNKNOWN, place=place)


def journal(what: str, *notes: str) -> WritePart:
    return WritePart(BlockKind.JOURNAL, what, notes=notes)


def metadata(what: str, *notes: str, role: str | None = None, place: int | None = None) -> WritePart:
    return WritePart(BlockKind.METADATA, what, place=place, notes=notes, role=role)


_BY_ROLE = {
    "data": (BlockKind.DATA, "data block"),
    "directory": (BlockKind.METADATA, "damaged directory block"),
    "symlink": (BlockKind.METADATA, "symlink target"),
    "map": (BlockKind.METADATA, "block map"),
    "attributes": (BlockKind.METADATA, "extended attributes"),
}


def owned(part: WritePart, owner: BlockOwner | None) -> WritePart:
    """Return ``part`` unchanged if its kind is known. Otherwise, return a copy with the kind and the
    description that follow from the role of ``owner``."""
    if part.kind is not BlockKind.UNKNOWN or owner is None:
        return part
    kind, what = _BY_ROLE[owner.role]
    return replace(part, kind=kind, what=what)


@dataclass(frozen=True, slots=True)
class BlockPiece:
    """The bytes of a write that lie in one block. ``block`` is the number of this block. ``before`` is the content of
    the whole block before the write, and ``after`` its content after the write. The piece has ``length`` bytes. It
    begins at sector ``sector`` of the write, and at byte ``skip`` of the block."""

    block: int
    sector: int
    before: bytes = field(repr=False)
    after: bytes = field(repr=False)
    skip: int = 0
    length: int = 0

    @property
    def written(self) -> bytes:
        return self.after[self.skip : self.skip + self.length]


class Family(Protocol):
    """A family of file systems with one on-disk format. Callers pass it the writes of a trace one after the other. For
    each write, they first call ``parts``, then put the write on the device, then call ``landed``. ``index`` is the
    write's index in the trace. ``at`` is the byte of the device where its ``data`` begins."""

    owners: Owners

    def parts(self, index: int, at: int, data: bytes) -> Sequence[WritePart]:
        """Return the parts of write ``index``."""

    def landed(self, index: int, at: int, data: bytes) -> None:
        """Learn from write ``index``, which is now on the device. It may show which files own which blocks."""
