"""The description of one block of xfs, and of the changes that a write makes in it."""

from typing import Any

from bob.blocks import xfs_format as form
from bob.blocks.data import data_part, owned_part
from bob.blocks.ext_directories import changes
from bob.blocks.owners import BlockOwner
from bob.blocks.parts import BlockKind, BlockPiece, WritePart, metadata
from bob.blocks.summary import inode_changes
from bob.blocks.xfs_geometry import XfsGeometry

_GROUP_HEADERS = {b"XAGF": "agf", b"XAGI": "agi", b"XAFL": "agfl"}

_GROUP_BTREES = {
    b"AB3B": "free space btree by block",
    b"AB3C": "free space btree by size",
    b"ABTB": "free space btree by block",
    b"ABTC": "free space btree by size",
    b"IAB3": "inode btree",
    b"IABT": "inode btree",
    b"FIB3": "free inode btree",
    b"R3FC": "reference count btree",
    b"RMB3": "reverse mapping btree",
}

_OF_INODES = {
    b"BMA3": ("extent map btree", form.LONG_OWNER_AT),
    b"XDB3": ("directory block", form.DIRECTORY_OWNER_AT),
    b"XDD3": ("directory data block", form.DIRECTORY_OWNER_AT),
    b"XDF3": ("directory free index", form.DIRECTORY_OWNER_AT),
    b"XSLM": ("symlink target", form.REMOTE_OWNER_AT),
    b"XARM": ("remote attribute", form.REMOTE_OWNER_AT),
}  # magic numbers of blocks that contain the number of their inode, and the byte of that number

_DA = {
    b"\x3d\xf1": "directory leaf block",
    b"\x3d\xff": "directory leaf block",
    b"\x3e\xbe": "directory or attribute node",
    b"\x3b\xee": "attribute leaf block",
}  # magic numbers at byte 8 (struct xfs_da3_blkinfo)

_DIRECTORIES = (b"XDB3", b"XDD3")


def sector_part(geometry: XfsGeometry, piece: BlockPiece, group: int) -> WritePart | None:
    """Return the description of one of the first sectors of allocation group ``group``, or None for an unknown
    sector."""
    magic = piece.after[:4]
    if magic == form.SUPERBLOCK_MAGIC:
        return WritePart(BlockKind.SUPERBLOCK, f"superblock, copy in group {group}" if group else "superblock")
    if magic in _GROUP_HEADERS:
        return metadata(f"{_GROUP_HEADERS[magic]} of group {group}")
    return None


def block_part(geometry: XfsGeometry, piece: BlockPiece, owner: BlockOwner | None) -> WritePart:
    """Return the description of a block. If bob recognises the block's content, the description comes from the content.
    Otherwise it comes from ``owner``, the file that the block belongs to."""
    return (
        data_part(piece.written, piece.sector, piece.block) or _recognised(geometry, piece) or owned_part(piece, owner)
    )


def changed_inodes(geometry: XfsGeometry, piece: BlockPiece) -> dict[int, bytes]:
    """Return the new bytes of each changed inode, by the inode's number. Leave out inodes that are unused both before
    and after the write."""
    size, found = geometry.inode_bytes, {}
    if piece.after[:2] == form.INODE_MAGIC:
        for at in range(0, len(piece.after) - size + 1, size):
            old, raw = piece.before[at : at + size], piece.after[at : at + size]
            used_before = old[:2] == form.INODE_MAGIC and any(old[2:4])
            if raw[:2] == form.INODE_MAGIC and raw != old and (used_before or any(raw[2:4])):
                found[geometry.inode_at(piece.block, at // size)] = raw
    return found


def _recognised(geometry: XfsGeometry, piece: BlockPiece) -> WritePart | None:
    data, magic = piece.after, piece.after[:4]
    if magic[:2] == form.INODE_MAGIC:
        changed = changed_inodes(geometry, piece)
        notes = _inode_changes(piece, changed)
        return WritePart(BlockKind.METADATA, "inode cluster", inodes=tuple(changed), notes=notes)
    if magic in _GROUP_BTREES:
        level = form.BTREE.parse(data).level
        what = f"{_GROUP_BTREES[magic]} of group {piece.block // geometry.group_blocks}"
        return metadata(f"{what}, level {level}" if level else what)
    if magic in _OF_INODES:
        what, at = _OF_INODES[magic]
        notes = ()
        if magic in _DIRECTORIES:
            old = directory_entries(piece.before, geometry) if piece.before[:4] == magic else {}
            notes = changes(old, directory_entries(data, geometry))
        return _of_inode(what, data, at, notes)
    if (da_magic := data[form.DA_MAGIC_AT : form.DA_MAGIC_AT + 2]) in _DA:
        return _of_inode(_DA[da_magic], data, form.DA_OWNER_AT)
    if magic[:2] == b"DQ":
        return metadata("quota block")
    return None


def _of_inode(what: str, block: bytes, owner_at: int, notes: tuple[str, ...] = ()) -> WritePart:
    return WritePart(BlockKind.METADATA, what, of=int.from_bytes(block[owner_at : owner_at + 8], "big"), notes=notes)


def _inode_changes(piece: BlockPiece, changed: dict[int, bytes]) -> tuple[str, ...]:
    if len(changed) != 1:
        return ()
    raw = next(iter(changed.values()))
    at = piece.after.find(raw)
    old, new = form.INODE.parse(piece.before[at : at + len(raw)]), form.INODE.parse(raw)
    links, sizes = (old.nlink, new.nlink), (old.size, new.size)
    return inode_changes(links, sizes, is_new=old.magic != form.INODE_MAGIC)


def directory_entries(block: bytes, geometry: XfsGeometry) -> dict[bytes, int]:
    """Return the names that bob can read in the first data block of a directory, with their inode numbers."""
    found: dict[bytes, int] = {}
    stop = len(block)
    if block[:4] == b"XDB3" and geometry.directory_bytes == len(block):
        count = form.DIRECTORY_TAIL.parse(block[-form.DIRECTORY_TAIL.sizeof() :]).count
        stop -= form.DIRECTORY_TAIL.sizeof() + count * 8
    at = form.DIRECTORY_HEADER_BYTES
    while at + 16 <= stop:
        unused: Any = form.DIRECTORY_UNUSED.parse(block[at : at + 4])
        if unused.freetag == form.DIRECTORY_FREE_TAG:
            if unused.length < 8:
                break
            at += unused.length
            continue
        entry = form.DIRECTORY_ENTRY.parse(block[at : at + 9])
        found[block[at + 9 : at + 9 + entry.namelen]] = entry.inumber
        at += -(-(9 + entry.namelen + 3) // 8) * 8
    return found
