"""What one block of an ext2, ext3 or ext4 file system is, and what a write changes in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from bob.blocks import ext_format as form
from bob.blocks.data import data_part, rest_part
from bob.blocks.ext_directories import changes, entries, is_index
from bob.blocks.ext_geometry import (
    BLOCK_BITMAP,
    INODE_BITMAP,
    INODE_TABLE,
    SUPER,
    ExtGeometry,
    FixedBlock,
    read_superblock,
)
from bob.blocks.owners import BlockOwner
from bob.blocks.parts import BlockKind, BlockPiece, WritePart, owned, unknown
from bob.blocks.summary import numbers
from bob.workload.pattern import STALE_CELL

_XATTR = form.XATTR_MAGIC.to_bytes(4, "little")
_EXTENTS = form.EXTENT_MAGIC.to_bytes(2, "little")


def block_part(geometry: ExtGeometry, piece: BlockPiece, owner: BlockOwner | None) -> WritePart:
    """What a block is that belongs to ``owner`` as far as is known: by fixed place, content, then owner."""
    fixed = geometry.fixed(piece.block)
    if fixed is not None:
        return _fixed_part(geometry, piece, fixed)
    return (
        data_part(piece.written, piece.sector, piece.block)
        or _recognised(geometry, piece, owner)
        or _owned(piece, owner)
        or _boot(geometry, piece)
        or unknown(piece.block)
    )


def changed_inodes(geometry: ExtGeometry, block: int, group: int, before: bytes, after: bytes) -> list[int]:
    """The inodes of a block of the inode table that differ; those that are only cleared do not count."""
    count = len(after) // geometry.inode_bytes
    if not count:
        return []
    old, new = (
        np.frombuffer(data[: count * geometry.inode_bytes], dtype=np.uint8).reshape(count, -1)
        for data in (before, after)
    )
    first = geometry.first_inode(block, group)
    return [first + int(number) for number in np.flatnonzero((old != new).any(axis=1) & new.any(axis=1))]


def _fixed_part(geometry: ExtGeometry, piece: BlockPiece, fixed: FixedBlock) -> WritePart:
    if fixed.what == SUPER:
        return _superblock(geometry, piece, fixed.group)
    if fixed.what == INODE_TABLE:
        return _inode_table(geometry, piece, fixed.group)
    if fixed.what in (BLOCK_BITMAP, INODE_BITMAP):
        return _bitmap(geometry, piece, fixed)
    return WritePart(BlockKind.METADATA, fixed.what if fixed.group == 0 else f"{fixed.what} of group {fixed.group}")


def _superblock(geometry: ExtGeometry, piece: BlockPiece, group: int) -> WritePart:
    skip = form.SUPERBLOCK_AT % geometry.block_bytes if group == 0 else 0
    old, new = (read_superblock(data[skip : skip + form.SUPERBLOCK_BYTES]) for data in (piece.before, piece.after))
    if new is None:
        return WritePart(BlockKind.SUPERBLOCK, "damaged superblock")
    if group:
        return WritePart(BlockKind.SUPERBLOCK, f"superblock, copy in group {group}")
    notes = []
    if old is not None:
        recover = (new.feature_incompat & form.INCOMPAT_RECOVER) - (old.feature_incompat & form.INCOMPAT_RECOVER)
        if recover:
            notes.append(f"journal recovery {'needed' if recover > 0 else 'no longer needed'}")
        if (old.state ^ new.state) & form.STATE_VALID:
            notes.append("clean" if new.state & form.STATE_VALID else "in use")
        if old.last_orphan != new.last_orphan:
            notes.append(f"first orphan is inode {new.last_orphan}" if new.last_orphan else "no orphans")
    return WritePart(BlockKind.SUPERBLOCK, "superblock", notes=tuple(notes))


def _inode_table(geometry: ExtGeometry, piece: BlockPiece, group: int) -> WritePart:
    changed = changed_inodes(geometry, piece.block, group, piece.before, piece.after)
    if not changed:
        same = piece.before == piece.after
        return WritePart(BlockKind.METADATA, "inode table", notes=("nothing changed" if same else "inodes cleared",))
    notes: tuple[str, ...] = ()
    if len(changed) == 1:
        at = (changed[0] - geometry.first_inode(piece.block, group)) * geometry.inode_bytes
        stop = at + geometry.inode_bytes
        notes = _inode_changes(form.INODE.parse(piece.before[at:stop]), form.INODE.parse(piece.after[at:stop]))
    return WritePart(BlockKind.METADATA, "inode table", inodes=tuple(changed), notes=notes)


def _inode_changes(old: Any, new: Any) -> tuple[str, ...]:
    """What happens to one inode, as far as it is easily told."""
    if new.links and (not old.links or not old.mode):
        return ("new",)
    if old.links and not new.links:
        return ("last link removed",)
    notes = []
    sizes = [inode.size_lo | inode.size_high << 32 for inode in (old, new)]
    if sizes[0] != sizes[1]:
        notes.append(f"size {sizes[0]} to {sizes[1]}")
    if old.links != new.links:
        notes.append(f"links {old.links} to {new.links}")
    return tuple(notes)


def _bitmap(geometry: ExtGeometry, piece: BlockPiece, fixed: FixedBlock) -> WritePart:
    what = f"{fixed.what} of group {fixed.group}"
    if piece.before.startswith(STALE_CELL):
        return WritePart(BlockKind.METADATA, what, notes=("first written",))
    inodes = fixed.what == INODE_BITMAP
    most = geometry.inodes_per_group if inodes else geometry.blocks_per_group
    first = fixed.group * most + (1 if inodes else geometry.first_block)
    old, new = (
        np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little")[:most].astype(bool)
        for data in (piece.before, piece.after)
    )
    notes = []
    for verb, changed in (("allocates", new & ~old), ("frees", old & ~new)):
        found = (np.flatnonzero(changed) + first).tolist()
        if found:
            told = numbers(found)
            many = len(told) > 24
            notes.append(f"{verb} {len(found)}" if many else f"{verb} {'inode' if inodes else 'block'} {told}")
    return WritePart(BlockKind.METADATA, what, notes=tuple(notes))


def _recognised(geometry: ExtGeometry, piece: BlockPiece, owner: BlockOwner | None) -> WritePart | None:
    """A block with a magic number or a chain of directory entries."""
    block = piece.block
    if piece.after[:4] == _XATTR:
        return WritePart(BlockKind.METADATA, "extended attributes", place=block, role="attributes")
    role = None if owner is None else owner.role
    if piece.after[:2] == _EXTENTS and role in (None, "map"):
        header = form.EXTENT_HEADER.parse(piece.after)
        if header.entries <= header.max <= geometry.block_bytes // form.EXTENT_BYTES and header.depth <= 5:
            return WritePart(BlockKind.METADATA, "extent tree block", place=block, role="map")
    names = entries(piece.after, geometry.inodes)
    if names is None or (role not in (None, "directory") and not names):
        return None
    if is_index(piece.after):
        return WritePart(BlockKind.METADATA, "directory index", place=block, role="directory")
    notes = changes(entries(piece.before, geometry.inodes), names)
    return WritePart(BlockKind.METADATA, "directory block", place=block, role="directory", notes=notes)


def _owned(piece: BlockPiece, owner: BlockOwner | None) -> WritePart | None:
    """A block without recognisable content, by the file that it belongs to."""
    if owner is None:
        return None
    if owner.role == "data":
        return rest_part(piece.written, piece.block)
    return owned(unknown(piece.block), owner)


def _boot(geometry: ExtGeometry, piece: BlockPiece) -> WritePart | None:
    return WritePart(BlockKind.METADATA, "boot block") if piece.block < geometry.first_block else None
