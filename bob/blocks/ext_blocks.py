"""A name for one block of ext2, ext3 or ext4, and for the changes that a write makes in it."""

import numpy as np

from bob.blocks import ext_format as form
from bob.blocks.data import data_part, owned_part
from bob.blocks.ext_directories import changes, entries, is_index
from bob.blocks.ext_geometry import INODE_BITMAP, INODE_TABLE, SUPER, ExtGeometry, FixedBlock, read_superblock
from bob.blocks.owners import BlockOwner
from bob.blocks.parts import BlockKind, BlockPiece, WritePart, metadata
from bob.blocks.summary import bitmap_changes, inode_changes
from bob.workload.pattern import STALE_CELL


def block_part(geometry: ExtGeometry, piece: BlockPiece, owner: BlockOwner | None) -> WritePart:
    """Return the name of a block. Some blocks, such as inode tables, have places that mkfs has fixed, and get their
    names from the place. Any other block gets its name from its content. If bob does not recognise the content, the
    name comes from ``owner``, the file that the block belongs to."""
    fixed = geometry.fixed(piece.block)
    if fixed is not None:
        return _fixed_part(geometry, piece, fixed)
    data = data_part(piece.written, piece.sector, piece.block)
    if found := data or _recognised(geometry, piece, owner):
        return found
    if owner is None and piece.block < geometry.first_block:
        return metadata("boot block")
    return owned_part(piece, owner)


def changed_inodes(geometry: ExtGeometry, piece: BlockPiece, group: int) -> list[int]:
    """Return the numbers of the inodes that a write changes in a block of the inode table of ``group``. Inodes whose
    bytes are all zero after the write are left out."""
    count = len(piece.after) // geometry.inode_bytes
    if not count:
        return []
    old, new = (
        np.frombuffer(data[: count * geometry.inode_bytes], dtype=np.uint8).reshape(count, -1)
        for data in (piece.before, piece.after)
    )
    first = geometry.first_inode(piece.block, group)
    return [first + int(number) for number in np.flatnonzero((old != new).any(axis=1) & new.any(axis=1))]


def _fixed_part(geometry: ExtGeometry, piece: BlockPiece, fixed: FixedBlock) -> WritePart:
    if fixed.what == SUPER:
        return _superblock(geometry, piece, fixed.group)
    if fixed.what == INODE_TABLE:
        return _inode_table(geometry, piece, fixed.group)
    if fixed.what.endswith(" bitmap"):
        return _bitmap(geometry, piece, fixed)
    return metadata(fixed.what if fixed.group == 0 else f"{fixed.what} of group {fixed.group}")


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
    changed = changed_inodes(geometry, piece, group)
    if not changed:
        return metadata("inode table", "nothing changed" if piece.before == piece.after else "inodes cleared")
    notes: tuple[str, ...] = ()
    if len(changed) == 1:
        at = (changed[0] - geometry.first_inode(piece.block, group)) * geometry.inode_bytes
        old, new = (form.INODE.parse(data[at : at + geometry.inode_bytes]) for data in (piece.before, piece.after))
        sizes = (old.size_lo | old.size_high << 32, new.size_lo | new.size_high << 32)
        notes = inode_changes((old.links, new.links), sizes, is_new=bool(new.links and not old.mode))
    return WritePart(BlockKind.METADATA, "inode table", inodes=tuple(changed), notes=notes)


def _bitmap(geometry: ExtGeometry, piece: BlockPiece, fixed: FixedBlock) -> WritePart:
    what = f"{fixed.what} of group {fixed.group}"
    if piece.before.startswith(STALE_CELL):
        return metadata(what, "first written")
    if fixed.what == INODE_BITMAP:
        most, first, word = geometry.inodes_per_group, 1, "inode"
    else:
        most, first, word = geometry.blocks_per_group, geometry.first_block, "block"
    return metadata(what, *bitmap_changes(piece, fixed.group * most + first, most, word))


def _recognised(geometry: ExtGeometry, piece: BlockPiece, owner: BlockOwner | None) -> WritePart | None:
    block = piece.block
    if piece.after[:4] == form.XATTR_MAGIC:
        return metadata("extended attributes", place=block, role="attributes")
    role = None if owner is None else owner.role
    if piece.after[:2] == form.EXTENT_MAGIC and role in (None, "map"):
        header = form.EXTENT_HEADER.parse(piece.after)
        if header.entries <= header.max <= geometry.block_bytes // form.EXTENT_BYTES and header.depth <= 5:
            return metadata("extent tree block", place=block, role="map")
    names = entries(piece.after, geometry.inodes)
    if names is None or (role not in (None, "directory") and not names):
        return None
    if is_index(piece.after):
        return metadata("directory index", place=block, role="directory")
    notes = changes(entries(piece.before, geometry.inodes), names)
    return metadata("directory block", *notes, place=block, role="directory")
