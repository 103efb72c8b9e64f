"""Names (short descriptions) for writes of f2fs. bob names a block by its area of the disk. In the main area, it
recognises node blocks by their footer, and data by the pattern that a workload's operations write into files.
Directories and other blocks stay unknown. The structures are from Linux ``include/linux/f2fs_fs.h``, little-endian."""

from bisect import bisect_right
from collections.abc import Sequence

from construct import Int16ul, Int32ul, Int64ul, Padding, Struct

from bob.blocks.data import data_part
from bob.blocks.medium import OverlayMedium
from bob.blocks.owners import Owners
from bob.blocks.parts import BlockKind, BlockPiece, WritePart, unknown

BLOCK_BYTES = 4096
SUPERBLOCK_AT = 1024
MAGIC = 0xF2F52010
SUPERBLOCK = Struct(
    "magic" / Int32ul,
    "major" / Int16ul,
    "minor" / Int16ul,
    Padding(8),
    "log_block_bytes" / Int32ul,
    Padding(16),
    "blocks" / Int64ul,
    Padding(32),
    "checkpoint" / Int32ul,
    "segments" / Int32ul,
    "nodes" / Int32ul,
    "summaries" / Int32ul,
    "main" / Int32ul,
)  # struct f2fs_super_block, up to the main area; the last five fields are the first blocks of the areas
FOOTER = Struct("node" / Int32ul, "inode" / Int32ul, "flags" / Int32ul, "version" / Int64ul, "next" / Int32ul)
"""struct node_footer: the end of a node block. In an inode's own block, ``node`` and ``inode`` are equal."""
FOOTER_BYTES = 24
FSYNC_MARK = 2

_AREAS = ("superblock", "checkpoint", "segment information table", "node address table", "segment summary")


class F2fs:
    def __init__(self, medium: OverlayMedium) -> None:
        self.owners = Owners()
        self._medium = medium
        found = SUPERBLOCK.parse(medium.read(SUPERBLOCK_AT, SUPERBLOCK.sizeof()))
        # First blocks of the areas before the main area.
        self._starts = (0, found.checkpoint, found.segments, found.nodes, found.summaries)
        self._main, self._blocks = found.main, found.blocks
        is_in_order = list(self._starts) == sorted(set(self._starts)) and self._starts[-1] < found.main < found.blocks
        if found.magic != MAGIC or 1 << found.log_block_bytes != BLOCK_BYTES or not is_in_order:
            raise ValueError("not a superblock of f2fs")

    def parts(self, index: int, at: int, data: bytes) -> Sequence[WritePart]:
        return [self._part(piece) for piece in self._medium.pieces(at, data, BLOCK_BYTES)]

    def landed(self, index: int, at: int, data: bytes) -> None:
        """Do nothing. bob need not learn from earlier writes what inode a node block belongs to, since each node block
        contains the number of its inode."""

    def _part(self, piece: BlockPiece) -> WritePart:
        if piece.block < self._main:
            area = bisect_right(self._starts, piece.block) - 1
            return WritePart(BlockKind.METADATA if area else BlockKind.SUPERBLOCK, _AREAS[area])
        footer = FOOTER.parse(piece.after[-FOOTER_BYTES:])
        if footer.node and footer.inode and self._main <= footer.next < self._blocks:
            notes = ("marked by fsync",) if footer.flags & FSYNC_MARK else ()
            return WritePart(BlockKind.METADATA, "node block", of=footer.inode, notes=notes)
        return data_part(piece.written, piece.sector, piece.block) or unknown(piece.block)
