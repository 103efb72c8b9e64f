"""Names (short descriptions) for writes of ext2, ext3 and ext4, in place and in the journal."""

from collections.abc import Iterator

import numpy as np

from bob.blocks import ext_format as form
from bob.blocks.ext_blocks import block_part, changed_inodes
from bob.blocks.ext_geometry import INODE_TABLE, ExtGeometry
from bob.blocks.ext_maps import MapReader
from bob.blocks.jbd2 import Jbd2Journal
from bob.blocks.journaled import Journaled
from bob.blocks.medium import OverlayMedium
from bob.blocks.parts import BlockPiece, WritePart

_INODE_HEAD_BYTES = 120


class Ext(Journaled):
    def __init__(self, medium: OverlayMedium) -> None:
        geometry = ExtGeometry(medium)
        super().__init__(medium, geometry.block_bytes, geometry.blocks)
        self._geometry = geometry
        self._maps = MapReader(self._block, geometry.blocks)
        for inode in self._used_inodes():
            self._learn_inode(-1, inode)

    def _home_part(self, index: int, piece: BlockPiece, *, is_home: bool) -> WritePart:
        return block_part(self._geometry, piece, self.owners.owner(index, piece.block))

    def _used_inodes(self) -> Iterator[int]:
        for number, group in enumerate(self._geometry.groups):
            if group.unused:
                continue
            bits = np.unpackbits(np.frombuffer(self._block(group.inode_bitmap), dtype=np.uint8), bitorder="little")
            for found in np.flatnonzero(bits[: self._geometry.inodes_per_group]).tolist():
                yield number * self._geometry.inodes_per_group + found + 1

    def _learn(self, index: int, piece: BlockPiece, *, is_home: bool) -> None:
        fixed = self._geometry.fixed(piece.block)
        if fixed is not None:
            if fixed.what == INODE_TABLE:
                for inode in changed_inodes(self._geometry, piece, fixed.group):
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
