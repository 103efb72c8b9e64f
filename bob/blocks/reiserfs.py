"""Names (short descriptions) for writes of reiserfs, in place and in the journal."""

from typing import Any

from bob.blocks import reiserfs_format as form
from bob.blocks.data import data_part, rest_part
from bob.blocks.items import ItemKey, Items
from bob.blocks.journaled import Journaled
from bob.blocks.medium import OverlayMedium
from bob.blocks.parts import BlockKind, BlockPiece, WritePart, metadata, unknown
from bob.blocks.reiserfs_journal import ReiserfsJournal
from bob.blocks.reiserfs_tree import blocks_of, leaf_items, leaves, level_of, notes
from bob.blocks.summary import bitmap_changes


class Reiserfs(Journaled):
    def __init__(self, medium: OverlayMedium) -> None:
        superblock, superblock_at = _first_superblock(medium)
        super().__init__(medium, superblock.blocksize, superblock.block_count)
        self._super_block = superblock_at // self._block_bytes
        if not superblock.journal_dev and 0 < superblock.journal_size < self._blocks:
            self._journal = ReiserfsJournal(superblock.journal_1st_block, superblock.journal_size, self._block)
        self._items, self._latest_items = Items(), Items()
        for items in leaves(self._block, superblock.root_block):
            self._items.update(items)
            self._learn_leaf(-1, items)

    def _home_part(self, index: int, piece: BlockPiece, *, is_home: bool) -> WritePart:
        if piece.block == self._super_block:
            return _superblock_part(piece)
        if self._is_bitmap(piece.block):
            return self._bitmap(piece)
        data = data_part(piece.written, piece.sector, piece.block)
        level = level_of(piece.after)
        if level == form.LEAF_LEVEL:
            return _leaf_part(piece.after, self._items if is_home else self._latest_items)
        if level:
            return metadata(f"tree node, level {level}")
        if data is not None:
            return data
        if piece.block < self._super_block:
            return metadata("boot block")
        owned = self.owners.owner(index, piece.block) is not None
        return rest_part(piece.written, piece.block) if owned else unknown(piece.block)

    def _is_bitmap(self, block: int) -> bool:
        """Return whether a block is a bitmap. The first bitmap is the block after the superblock. Each other bitmap is
        the first block of the range of blocks that it describes. (Version 3.5 has its bitmaps elsewhere.)"""
        return block == self._super_block + 1 or (block > 0 and block % (self._block_bytes * 8) == 0)

    def _bitmap(self, piece: BlockPiece) -> WritePart:
        bits = self._block_bytes * 8
        number = piece.block // bits
        return metadata(f"block bitmap {number}", *bitmap_changes(piece, number * bits, bits, "block"))

    def _learn(self, index: int, piece: BlockPiece, *, is_home: bool) -> None:
        if level_of(piece.after) == form.LEAF_LEVEL:
            items = leaf_items(piece.after)
            if is_home:
                self._items.update(items)
            self._learn_leaf(index, items)

    def _learn_leaf(self, index: int, items: dict[ItemKey, bytes]) -> None:
        _changed, gone = self._latest_items.differences(items)
        self._latest_items.update(items)
        for inode in {key[1] for key in (*items, *gone) if key[3] == form.INDIRECT}:
            first = min(key for key in (*items, *gone) if key[1] == inode)
            own = self._latest_items.of((first[0], inode, 0, 0), (first[0], inode, 1 << 64, 15))
            blocks = blocks_of(own).get(inode, [])
            self.owners.remap(index, inode, dict.fromkeys((n for n in blocks if n < self._blocks), "data"))


def _first_superblock(medium: OverlayMedium) -> tuple[Any, int]:
    for at in (form.SUPERBLOCK_AT, form.OLD_SUPERBLOCK_AT):
        if (found := _superblock(medium.read(at, form.SUPERBLOCK_BYTES))) is not None:
            return found, at
    raise ValueError("not a superblock of reiserfs")


def _superblock(data: bytes) -> Any:
    if len(data) < form.SUPERBLOCK_BYTES:
        return None
    superblock = form.SUPERBLOCK.parse(data)
    size = superblock.blocksize
    if superblock.magic.rstrip(b"\0") not in form.MAGICS or not 512 <= size <= 65536 or size & (size - 1):
        return None
    return superblock


def _superblock_part(piece: BlockPiece) -> WritePart:
    old, new = (_superblock(data[: form.SUPERBLOCK_BYTES]) for data in (piece.before, piece.after))
    if new is None:
        return WritePart(BlockKind.SUPERBLOCK, "damaged superblock")
    found = []
    if old is not None:
        if old.umount_state != new.umount_state:
            found.append("clean" if new.umount_state == form.UMOUNT_VALID else "in use")
        if old.root_block != new.root_block:
            found.append(f"tree root is block {new.root_block}")
        if old.free_blocks != new.free_blocks:
            found.append(f"free blocks {old.free_blocks} to {new.free_blocks}")
    return WritePart(BlockKind.SUPERBLOCK, "superblock", notes=tuple(found))


def _leaf_part(block: bytes, known: Items) -> WritePart:
    changed, gone = known.differences(leaf_items(block))
    before = {key: body for key in changed if (body := known.get(key)) is not None}
    inodes = tuple(sorted({key[1] for key in (*changed, *gone)}))
    return WritePart(BlockKind.METADATA, "tree leaf", inodes=inodes, notes=notes(before, changed, gone))
