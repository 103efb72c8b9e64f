"""ext2, ext3 and ext4: the writes of a trace, with what the journal says of the blocks it holds copies of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from bob.blocks import ext_format as form
from bob.blocks.ext_blocks import block_part, changed_inodes
from bob.blocks.ext_geometry import INODE_TABLE, ExtGeometry
from bob.blocks.ext_maps import MapReader
from bob.blocks.jbd2 import Jbd2Journal
from bob.blocks.medium import OverlayMedium
from bob.blocks.owners import Owners
from bob.blocks.parts import BlockKind, BlockPiece, WritePart

_INODE_HEAD_BYTES = 120
"""As much of an inode as is looked at."""


class Ext:
    """One file system of the family. ``medium`` is the device as it is, ``_latest`` as it will be: a copy in the
    journal is there at its home at once, so that what it brings in is told when the journal gets it."""

    def __init__(self, medium: OverlayMedium, geometry: ExtGeometry) -> None:
        self.owners = Owners()
        self._medium = medium
        self._geometry = geometry
        self._latest = medium.unwritten()
        self._maps = MapReader(self._block, geometry.blocks)
        self._journal: Jbd2Journal | None = None
        for inode in self._used_inodes():
            self._learn_inode(-1, inode)

    @classmethod
    def of(cls, medium: OverlayMedium) -> Ext | None:
        """The file system on ``medium``; None if there is none."""
        geometry = ExtGeometry.of(medium)
        return None if geometry is None else cls(medium, geometry)

    def parts(self, index: int, at: int, data: bytes) -> Sequence[WritePart]:
        """What write ``index`` consists of, block by block."""
        return [self._part(index, piece) for piece in self._medium.pieces(at, data, self._geometry.block_bytes)]

    def landed(self, index: int, at: int, data: bytes) -> None:
        """Follow what the blocks say of other blocks, at home or in the journal."""
        block_bytes = self._geometry.block_bytes
        for piece in list(self._latest.pieces(at, data, block_bytes)):
            self._latest.write(piece.block * block_bytes + piece.skip, piece.written)
            if self._journal is None or not self._journal.has(piece.block):
                self._learn(index, piece)
                continue
            self._journal.landed(piece.block, piece.after)
            copy = self._journal.copy(piece.block, piece.after)
            if copy is not None and copy.home < self._geometry.blocks:
                home = self._home(copy.home, copy.data, piece)
                self._latest.write(copy.home * block_bytes, copy.data)
                self._learn(index, home)

    def _part(self, index: int, piece: BlockPiece) -> WritePart:
        journal = self._journal
        if journal is None or not journal.has(piece.block):
            return block_part(self._geometry, piece, self.owners.owner(index, piece.block))
        own = journal.part(piece.block, piece.after)
        if own is not None:
            return own
        copy = journal.copy(piece.block, piece.after)
        if copy is None:
            return WritePart(BlockKind.JOURNAL, "journal data" if any(piece.after) else "journal block, zeros")
        home = self._home(copy.home, copy.data, piece)
        part = block_part(self._geometry, home, self.owners.owner(index, copy.home))
        if part.kind is BlockKind.UNKNOWN:
            return WritePart(BlockKind.JOURNAL, f"journal copy of block {copy.home}")
        return part.copied()

    def _home(self, block: int, data: bytes, piece: BlockPiece) -> BlockPiece:
        """The copy ``data`` in the journal as a write to its home."""
        before = self._block(block).ljust(len(data), b"\0")
        return replace(piece, block=block, before=before, after=data, skip=0, length=len(data))

    def _block(self, block: int) -> bytes:
        return self._latest.read(block * self._geometry.block_bytes, self._geometry.block_bytes)

    def _used_inodes(self) -> Iterator[int]:
        """The inodes that the bitmaps of the base image have in use."""
        for number, group in enumerate(self._geometry.groups):
            if group.unused:
                continue
            bits = np.unpackbits(np.frombuffer(self._block(group.inode_bitmap), dtype=np.uint8), bitorder="little")
            for found in np.flatnonzero(bits[: self._geometry.inodes_per_group]).tolist():
                yield number * self._geometry.inodes_per_group + found + 1

    def _learn(self, index: int, piece: BlockPiece) -> None:
        """What a block, now at its home, says of where others belong."""
        fixed = self._geometry.fixed(piece.block)
        if fixed is not None:
            if fixed.what == INODE_TABLE:
                changed = changed_inodes(self._geometry, piece.block, fixed.group, piece.before, piece.after)
                for inode in changed:
                    self._learn_inode(index, inode)
            return
        owner = self.owners.owner(index, piece.block)
        if owner is not None and owner.role == "map":
            self._learn_inode(index, owner.inode)

    def _learn_inode(self, index: int, inode: int) -> None:
        data = self._latest.read(self._geometry.place(inode), _INODE_HEAD_BYTES)
        if len(data) < _INODE_HEAD_BYTES:
            return
        blocks = self._maps.blocks_of(form.INODE.parse(data))
        if inode == self._geometry.journal_inode:
            if self._journal is None:
                own = [block for block, role in blocks.items() if role == "data"]
                self._journal = Jbd2Journal(own, self._block) if own else None
            return
        self.owners.remap(index, inode, blocks)
