"""What a write consists of, before it is put into words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum, auto
from typing import NamedTuple, Protocol

from bob.blocks.owners import BlockOwner, Owners


class BlockKind(StrEnum):
    """What sort of thing a block is. Whatever lies in a journal or log is JOURNAL, a copy of file data too."""

    DATA = auto()
    JOURNAL = auto()
    METADATA = auto()
    SUPERBLOCK = auto()
    UNKNOWN = auto()


class DataRun(NamedTuple):
    """Sectors ``first`` to ``last`` of the write (the latter included) have data of ``operation``.

    The operations that made the initial tree count as one, ``FIRST_SETUP_NUMBER``.
    """

    operation: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class WritePart:
    """One block of a write, or several of one sort.

    ``what`` it is; the file whose block it is, told by ``place`` (a key of the family's :class:`Owners`) once all of
    the trace is known (only one that has it in the role ``role``, where the content says so), or by ``of``, an inode,
    where the block itself says so; the ``inodes`` in it that this write changes; ``notes`` on what it changes beside
    them. ``runs`` are there for a workload's data only. ``blocks`` is how many blocks it stands for.
    """

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
    """Return an unknown block, at a place that a file may turn out to own."""
    return replace(UNKNOWN, place=place)


def journal(what: str, *notes: str) -> WritePart:
    """Return a block of a journal or log."""
    return WritePart(BlockKind.JOURNAL, what, notes=notes)


def metadata(what: str, *notes: str, role: str | None = None, place: int | None = None) -> WritePart:
    """Return a block of metadata."""
    return WritePart(BlockKind.METADATA, what, place=place, notes=notes, role=role)


_BY_ROLE = {
    "data": (BlockKind.DATA, "data block"),
    "directory": (BlockKind.METADATA, "damaged directory block"),
    "symlink": (BlockKind.METADATA, "symlink target"),
    "map": (BlockKind.METADATA, "block map"),
    "attributes": (BlockKind.METADATA, "extended attributes"),
}


def owned(part: WritePart, owner: BlockOwner | None) -> WritePart:
    """``part``, and where it is unknown what it must be as it belongs to ``owner``."""
    if part.kind is not BlockKind.UNKNOWN or owner is None:
        return part
    kind, what = _BY_ROLE[owner.role]
    return replace(part, kind=kind, what=what)


@dataclass(frozen=True, slots=True)
class BlockPiece:
    """The part of a write that lies in one block: ``block`` is its number, ``sector`` where it begins in the write.

    ``before`` and ``after`` are the whole block without and with this write.
    """

    block: int
    sector: int
    before: bytes = field(repr=False)
    after: bytes = field(repr=False)
    skip: int = 0
    length: int = 0

    @property
    def written(self) -> bytes:
        """The bytes that this write brings."""
        return self.after[self.skip : self.skip + self.length]


class Family(Protocol):
    """A family of file systems: it is shown the writes of a trace one after the other.

    ``parts`` is asked before a write is on the medium, ``landed`` told when it is. Offsets are bytes of the image.
    """

    owners: Owners

    def parts(self, index: int, at: int, data: bytes) -> Sequence[WritePart]:
        """Return what write ``index`` consists of."""

    def landed(self, index: int, at: int, data: bytes) -> None:
        """Learn from write ``index`` where blocks belong."""
