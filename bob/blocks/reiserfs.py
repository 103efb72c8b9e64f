"""reiserfs: the writes of a trace, at home and in the journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bob.blocks import reiserfs_format as form
from bob.blocks.data import data_part, rest_part
from bob.blocks.items import Items
from bob.blocks.medium import OverlayMedium
from bob.blocks.owners import Owners
from bob.blocks.parts import BlockKind, BlockPiece, WritePart, unknown
from bob.blocks.reiserfs_journal import ReiserfsJournal
from bob.blocks.reiserfs_tree import blocks_of, inodes_of, leaf_items, leaves, level_of, notes
from bob.blocks.summary import numbers


class Reiserfs:
    """One file system of reiserfs. ``_latest`` is the device as if each copy in the journal were at its home."""

    def __init__(self, medium: OverlayMedium, superblock: Any, superblock_at: int) -> None:
        self.owners = Owners()
        self._medium = medium
        self._block_bytes: int = superblock.blocksize
        self._blocks: int = superblock.block_count
        self._super_block = superblock_at // self._block_bytes
        self._latest = medium.unwritten()
        self._journal: ReiserfsJournal | None = None
        if not superblock.journal_dev and 0 < superblock.journal_size < self._blocks:
            self._journal = ReiserfsJournal(superblock.journal_1st_block, superblock.journal_size, self._block)
        self._items, self._latest_items = Items(), Items()
        for items in leaves(self._block, superblock.root_block):
            self._items.update(items)
            self._learn(-1, items)

    @classmethod
    def of(cls, medium: OverlayMedium) -> Reiserfs | None:
        """The file system on ``medium``; None if there is none."""
        for at in (form.SUPERBLOCK_AT, form.OLD_SUPERBLOCK_AT):
            superblock = _superblock(medium.read(at, form.SUPERBLOCK_BYTES))
            if superblock is not None:
                return cls(medium, superblock, at)
        return None

    def parts(self, index: int, at: int, data: bytes) -> Sequence[WritePart]:
        """What write ``index`` consists of, block by block."""
        return [self._part(index, piece) for piece in self._medium.pieces(at, data, self._block_bytes)]

    def landed(self, index: int, at: int, data: bytes) -> None:
        """Follow what the blocks say of other blocks, at home or in the journal."""
        for piece in list(self._latest.pieces(at, data, self._block_bytes)):
            self._latest.write(piece.block * self._block_bytes + piece.skip, piece.written)
            journal = self._journal
            if journal is None or not journal.has(piece.block):
                if level_of(piece.after) == form.LEAF_LEVEL:
                    items = leaf_items(piece.after)
                    self._items.update(items)
                    self._learn(index, items)
                continue
            home = journal.home(piece.block)
            if home is not None and home < self._blocks and journal.part(piece.block, piece.after) is None:
                self._latest.write(home * self._block_bytes, piece.after)
                if level_of(piece.after) == form.LEAF_LEVEL:
                    self._learn(index, leaf_items(piece.after))
            journal.landed(piece.block, piece.after)

    def _part(self, index: int, piece: BlockPiece) -> WritePart:
        journal = self._journal
        if journal is None or not journal.has(piece.block):
            return self._home_part(index, piece, self._items)
        own = journal.part(piece.block, piece.after)
        if own is not None:
            return own
        home = journal.home(piece.block) or 0
        before = self._block(home).ljust(len(piece.after), b"\0")
        copy = replace(piece, block=home, before=before, skip=0, length=len(piece.after))
        part = self._home_part(index, copy, self._latest_items)
        if part.kind is BlockKind.UNKNOWN:
            return WritePart(BlockKind.JOURNAL, f"journal copy of block {home}")
        return part.copied()

    def _home_part(self, index: int, piece: BlockPiece, known: Items) -> WritePart:
        """What a block at its home is, where the leaves so far have the items ``known``."""
        if piece.block == self._super_block:
            return _superblock_part(piece)
        if self._is_bitmap(piece.block):
            return self._bitmap(piece)
        data = data_part(piece.written, piece.sector, piece.block)
        level = level_of(piece.after)
        if level == form.LEAF_LEVEL:
            return _leaf_part(piece.after, known)
        if level:
            return WritePart(BlockKind.METADATA, f"tree node, level {level}")
        if data is not None:
            return data
        if piece.block < self._super_block:
            return WritePart(BlockKind.METADATA, "boot block")
        owned = self.owners.owner(index, piece.block) is not None
        return rest_part(piece.written, piece.block) if owned else unknown(piece.block)

    def _is_bitmap(self, block: int) -> bool:
        """The first bitmap follows the superblock, the others begin what they are of (3.5 had them in a row)."""
        return block == self._super_block + 1 or (block > 0 and block % (self._block_bytes * 8) == 0)

    def _bitmap(self, piece: BlockPiece) -> WritePart:
        number = piece.block // (self._block_bytes * 8)
        first = number * self._block_bytes * 8
        old, new = (
            np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little").astype(bool)
            for data in (piece.before, piece.after)
        )
        found = []
        for verb, changed in (("allocates", new & ~old), ("frees", old & ~new)):
            blocks = (np.flatnonzero(changed) + first).tolist()
            told = numbers(blocks)
            found += [f"{verb} {len(blocks)}" if len(told) > 24 else f"{verb} block {told}"] if blocks else []
        return WritePart(BlockKind.METADATA, f"block bitmap {number}", notes=tuple(found))

    def _block(self, block: int) -> bytes:
        return self._latest.read(block * self._block_bytes, self._block_bytes)

    def _learn(self, index: int, items: dict[tuple[Any, ...], bytes]) -> None:
        """A leaf is now this, in the journal or at home."""
        _changed, gone = self._latest_items.differences(items)
        self._latest_items.update(items)
        for inode in {key[1] for key in (*items, *gone) if key[3] == form.INDIRECT}:
            first = min(key for key in (*items, *gone) if key[1] == inode)
            own = self._latest_items.of((first[0], inode, 0, 0), (first[0], inode, 1 << 64, 15))
            blocks = blocks_of(own).get(inode, [])
            self.owners.remap(index, inode, dict.fromkeys((n for n in blocks if n < self._blocks), "data"))


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
    return WritePart(
        BlockKind.METADATA,
        "tree leaf",
        inodes=inodes_of({**changed, **gone}),
        notes=notes(before, changed, gone),
    )
