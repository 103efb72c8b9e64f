"""Names (short descriptions) for writes of xfs, version 5, in the allocation groups and in the log."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bob.blocks import xfs_format as form
from bob.blocks.medium import OverlayMedium
from bob.blocks.owners import Owners
from bob.blocks.parts import UNKNOWN, BlockPiece, WritePart
from bob.blocks.xfs_blocks import block_part, changed_inodes, sector_part
from bob.blocks.xfs_geometry import ForkReader, XfsGeometry
from bob.blocks.xfs_log import XfsLogReader


class Xfs:
    def __init__(self, medium: OverlayMedium) -> None:
        self.owners = Owners()
        self._medium = medium
        self._geometry = geometry = XfsGeometry(medium)
        self._log = XfsLogReader()
        self._forks = ForkReader(geometry, self._block)
        self._changed: dict[int, bytes] = {}
        for inode in geometry.inodes(medium):
            self._learn(-1, inode, medium.read(geometry.inode_place(inode), geometry.inode_bytes))

    def parts(self, index: int, at: int, data: bytes) -> Sequence[WritePart]:
        self._changed = {}
        log = self._geometry.log
        if at in log:
            return [part for part, _logged in self._log.read(index, data[: log.stop - at])]
        return [self._part(index, piece) for piece in self._pieces(at, data)]

    def landed(self, index: int, at: int, data: bytes) -> None:
        log = self._geometry.log
        if at in log:
            for _part, logged in self._log.read(index, data[: log.stop - at]):
                for inode, extents in logged.extents:
                    found: dict[int, str] = {}
                    self._forks.extents(extents, self._role(inode), found)
                    self.owners.extend(index, inode, found)
        for inode, raw in self._changed.items():
            self._learn(index, inode, raw)

    def _pieces(self, at: int, data: bytes) -> Iterator[BlockPiece]:
        """Yield the blocks of a write. Split the first block of an allocation group into its sectors, since each of
        them has a different structure."""
        geometry = self._geometry
        position = 0
        while position < len(data):
            block, skip = divmod(at + position, geometry.block_bytes)
            count = min(geometry.block_bytes - skip, len(data) - position)
            unit = geometry.sector_bytes if block % geometry.group_blocks == 0 else geometry.block_bytes
            for piece in self._medium.pieces(at + position, data[position : position + count], unit):
                yield replace(piece, block=block, sector=position // 512 + piece.sector)
            position += count

    def _part(self, index: int, piece: BlockPiece) -> WritePart:
        block, geometry = piece.block, self._geometry
        if len(piece.after) < geometry.block_bytes or block % geometry.group_blocks == 0:
            return sector_part(geometry, piece, block // geometry.group_blocks) or UNKNOWN
        part = block_part(geometry, piece, self.owners.owner(index, block))
        if part.inodes:
            self._changed.update(changed_inodes(geometry, piece))
        return part

    def _block(self, block: int) -> bytes:
        return self._medium.read(block * self._geometry.block_bytes, self._geometry.block_bytes)

    def _role(self, inode: int) -> str:
        return next((role for role in self.owners.blocks(inode).values() if role in ("data", "directory")), "data")

    def _learn(self, index: int, inode: int, raw: bytes) -> None:
        if len(raw) < form.INODE_CORE_BYTES or raw[:2] != form.INODE_MAGIC:
            return
        self.owners.remap(index, inode, self._forks.blocks_of(form.INODE.parse(raw), raw))
