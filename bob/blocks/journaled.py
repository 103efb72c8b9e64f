"""File systems whose journal holds copies of blocks (ext3, ext4, reiserfs)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from bob.blocks.medium import OverlayMedium
from bob.blocks.owners import Owners
from bob.blocks.parts import BlockKind, BlockPiece, WritePart, journal


class JournaledBlock(NamedTuple):
    """A copy in a journal: the content ``data`` for block ``home`` of the file system."""

    home: int
    data: bytes


class Journal(Protocol):
    """A journal. Callers pass each written block of the journal to it, in the order of writing."""

    def has(self, block: int) -> bool:
        """Return whether ``block`` of the file system belongs to the journal."""

    def read(self, block: int, data: bytes) -> WritePart | JournaledBlock:
        """Return what a write to ``block`` of the journal contains. If it is a copy of another block, return the copy;
        otherwise return a description of the journal block."""

    def landed(self, block: int, data: bytes) -> None:
        """If ``data`` is a descriptor block, store the numbers of the blocks whose copies follow it. With them,
        ``read`` recognises these copies. The write of ``block`` is now in the journal."""


class Journaled(ABC):
    """A file system of ``blocks`` blocks of ``block_bytes``. The *home* of a copy in the journal is the block of the
    file system that it is a copy of. ``_latest`` is the content that the device would have if each copy had already
    been written to its home. A comparison with ``_latest`` shows what a new copy changes."""

    def __init__(self, medium: OverlayMedium, block_bytes: int, blocks: int) -> None:
        self.owners = Owners()
        self._medium = medium
        self._latest = medium.unwritten()
        self._block_bytes, self._blocks = block_bytes, blocks
        self._journal: Journal | None = None

    def parts(self, index: int, at: int, data: bytes) -> Sequence[WritePart]:
        return [self._part(index, piece) for piece in self._medium.pieces(at, data, self._block_bytes)]

    def landed(self, index: int, at: int, data: bytes) -> None:
        for piece in list(self._latest.pieces(at, data, self._block_bytes)):
            self._latest.write(piece.block * self._block_bytes + piece.skip, piece.written)
            if self._journal is None or not self._journal.has(piece.block):
                self._learn(index, piece, is_home=True)
                continue
            self._journal.landed(piece.block, piece.after)
            copy = self._journal.read(piece.block, piece.after)
            if isinstance(copy, JournaledBlock) and copy.home < self._blocks:
                home = self._home(copy, piece)
                self._latest.write(copy.home * self._block_bytes, copy.data)
                self._learn(index, home, is_home=False)

    @abstractmethod
    def _home_part(self, index: int, piece: BlockPiece, *, is_home: bool) -> WritePart:
        """Return a description of a block. It depends on the block's home, which is the block's own place in the file
        system. ``is_home`` is True if the write is to that place, and False if it writes a copy of the block to the
        journal."""

    @abstractmethod
    def _learn(self, index: int, piece: BlockPiece, *, is_home: bool) -> None:
        """Learn what a written block says about other blocks. The write is to the block's home if ``is_home``,
        otherwise to the journal."""

    def _part(self, index: int, piece: BlockPiece) -> WritePart:
        if self._journal is None or not self._journal.has(piece.block):
            return self._home_part(index, piece, is_home=True)
        found = self._journal.read(piece.block, piece.after)
        if isinstance(found, WritePart):
            return found
        part = self._home_part(index, self._home(found, piece), is_home=False)
        if part.kind is BlockKind.UNKNOWN:
            return journal(f"journal copy of block {found.home}")
        return replace(part, kind=BlockKind.JOURNAL, what=f"journal copy of {part.what}")

    def _home(self, copy: JournaledBlock, piece: BlockPiece) -> BlockPiece:
        before = self._block(copy.home).ljust(len(copy.data), b"\0")
        return replace(piece, block=copy.home, before=before, after=copy.data, skip=0, length=len(copy.data))

    def _block(self, block: int) -> bytes:
        return self._latest.read(block * self._block_bytes, self._block_bytes)
