"""The block map of an inode of ext2, ext3 or ext4. The inode points to its blocks with pointers, or it has a tree of
extents."""

from collections.abc import Callable
from typing import Any

import numpy as np

from bob.blocks import ext_format as form
from bob.blocks.owners import MOST_BLOCKS, role_of

_DEEPEST = 5  # levels in a tree of extents, at most (EXT4_MAX_EXTENT_DEPTH)


class MapReader:
    def __init__(self, read: Callable[[int], bytes], blocks: int) -> None:
        self._read = read
        self._blocks = blocks

    def blocks_of(self, inode: Any) -> dict[int, str]:
        """Return all blocks of a parsed inode, in the order of the file. The keys are the numbers of the blocks. The
        values are their roles, such as ``data`` or ``map`` (see ``BlockOwner``)."""
        found: dict[int, str] = {}
        role = role_of(inode.mode)
        if role is None:
            return found
        attributes = inode.file_acl_lo | inode.file_acl_high << 32
        if 0 < attributes < self._blocks:
            found[attributes] = "attributes"
        if inode.flags & form.INODE_INLINE_DATA:
            return found
        if inode.flags & form.INODE_EXTENTS:
            self._extents(inode.block, role, found, _DEEPEST)
        elif role != "symlink" or inode.size_lo >= form.FAST_SYMLINK_BYTES:
            pointers = np.frombuffer(inode.block, dtype="<u4")
            self._pointers(pointers[: form.DIRECT_BLOCKS], 0, role, found)
            for depth, pointer in enumerate(pointers[form.DIRECT_BLOCKS :], start=1):
                self._pointers(pointer.reshape(1), depth, role, found)
        return found

    def _pointers(self, pointers: Any, depth: int, role: str, found: dict[int, str]) -> None:
        for pointer in pointers[(pointers > 0) & (pointers < self._blocks)].tolist():
            if len(found) >= MOST_BLOCKS or pointer in found:
                continue
            found[pointer] = "map" if depth else role
            if depth:
                self._pointers(np.frombuffer(self._read(pointer), dtype="<u4"), depth - 1, role, found)

    def _extents(self, node: bytes, role: str, found: dict[int, str], deepest: int) -> None:
        header = form.EXTENT_HEADER.parse(node)
        if header.magic != form.EXTENT_MAGIC or header.depth > deepest:
            return
        most = (len(node) - form.EXTENT_HEADER_BYTES) // form.EXTENT_BYTES
        for number in range(min(header.entries, most)):
            at = form.EXTENT_HEADER_BYTES + number * form.EXTENT_BYTES
            entry = node[at : at + form.EXTENT_BYTES]
            if header.depth:
                index = form.EXTENT_INDEX.parse(entry)
                below = index.leaf_lo | index.leaf_hi << 32
                if 0 < below < self._blocks and below not in found and len(found) < MOST_BLOCKS:
                    found[below] = "map"
                    self._extents(self._read(below), role, found, header.depth - 1)
                continue
            extent = form.EXTENT.parse(entry)
            first = extent.start_lo | extent.start_hi << 32
            unwritten = form.LONGEST_WRITTEN_EXTENT if extent.len > form.LONGEST_WRITTEN_EXTENT else 0
            count = min(extent.len - unwritten, MOST_BLOCKS - len(found), self._blocks - first)
            found.update(dict.fromkeys(range(first, first + count), role))
