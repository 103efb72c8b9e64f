"""The places of structures of xfs: its allocation groups, its log, and the blocks of each inode."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bob.blocks import xfs_format as form
from bob.blocks.medium import OverlayMedium
from bob.blocks.owners import MOST_BLOCKS, role_of
from bob.trace.base import Base
from bob.trace.model import SECTOR_BYTES

_DEEPEST = 9
_MOST_RECORDS = 1 << 14


class XfsGeometry:
    """The geometry of one file system; lengths are in bytes. A *block* number counts from the start of the device;
    xfs's own block numbers have the group in their upper bits. Raises ValueError for a bad superblock."""

    def __init__(self, medium: OverlayMedium) -> None:
        data = medium.read(0, 512)
        if data[:4] != form.SUPERBLOCK_MAGIC:
            raise ValueError("not a superblock of xfs")
        superblock = form.SUPERBLOCK.parse(data)
        sizes = (superblock.blocksize, superblock.sectsize, superblock.inodesize)
        if any(size < 256 or size > 65536 or size & (size - 1) for size in sizes) or superblock.sectsize < 512:
            raise ValueError(f"a superblock of xfs with the sizes {sizes}")
        if not superblock.agblocks or superblock.agblklog > 31 or superblock.inopblog > 8 or superblock.dirblklog > 7:
            raise ValueError("a superblock of xfs with impossible groups")
        self.block_bytes: int = superblock.blocksize
        self.sector_bytes: int = superblock.sectsize
        self.inode_bytes: int = superblock.inodesize
        self.group_blocks: int = superblock.agblocks
        self.groups: int = superblock.agcount
        self.directory_bytes = self.block_bytes << superblock.dirblklog
        self._group_bits: int = superblock.agblklog
        self._inode_bits: int = superblock.inopblog
        self.log = range(0)
        if superblock.logstart:
            start = self.block(superblock.logstart)
            self.log = range(start * self.block_bytes, (start + superblock.logblocks) * self.block_bytes)

    def block(self, number: int) -> int:
        """Return the block with xfs's own number ``number``, as a number that counts from the start of the device."""
        group, in_group = number >> self._group_bits, number & ((1 << self._group_bits) - 1)
        return group * self.group_blocks + in_group

    def inode_at(self, block: int, slot: int) -> int:
        group, in_group = divmod(block, self.group_blocks)
        return ((group << self._group_bits | in_group) << self._inode_bits) + slot

    def inode_place(self, inode: int) -> int:
        slot = inode & ((1 << self._inode_bits) - 1)
        return self.block(inode >> self._inode_bits) * self.block_bytes + slot * self.inode_bytes

    def inodes(self, medium: OverlayMedium) -> Iterator[int]:
        for group in range(min(self.groups, 1 << 12)):
            first = group * self.group_blocks
            agi = form.AGI.parse(medium.read(first * self.block_bytes + 2 * self.sector_bytes, 512).ljust(512, b"\0"))
            if agi.magicnum == b"XAGI":
                yield from self._inode_records(medium, first, agi.root, _DEEPEST)

    def _inode_records(self, medium: OverlayMedium, first: int, block: int, deepest: int) -> Iterator[int]:
        data = medium.read((first + block) * self.block_bytes, self.block_bytes)
        if data[:4] not in (b"IAB3", b"FIB3") or not deepest:
            return
        head = form.BTREE.parse(data)
        if head.level:
            pointers_at = form.SHORT_BTREE_BYTES + (self.block_bytes - form.SHORT_BTREE_BYTES) // 8 * 4
            pointers = np.frombuffer(data[pointers_at:], dtype=">u4")[: head.numrecs]
            for pointer in pointers.tolist():
                yield from self._inode_records(medium, first, pointer, min(deepest - 1, head.level))
            return
        most = (self.block_bytes - form.SHORT_BTREE_BYTES) // form.INODE_RECORD.sizeof()
        in_group_bits = self._group_bits + self._inode_bits
        for number in range(min(head.numrecs, most, _MOST_RECORDS)):
            record = form.INODE_RECORD.parse(data[form.SHORT_BTREE_BYTES + number * form.INODE_RECORD.sizeof() :])
            for bit in range(form.INODES_PER_RECORD):
                if not record.free >> bit & 1:
                    yield (first // self.group_blocks << in_group_bits) + record.startino + bit


class ForkReader:
    def __init__(self, geometry: XfsGeometry, read: Callable[[int], bytes]) -> None:
        self._geometry = geometry
        self._read = read

    def blocks_of(self, inode: Any, raw: bytes) -> dict[int, str]:
        """Return all blocks of a parsed inode, whose bytes are ``raw``. The keys are the numbers of the blocks. The
        values are their roles, such as ``data`` or ``map`` (see ``BlockOwner``)."""
        found: dict[int, str] = {}
        literal = raw[form.INODE_CORE_BYTES :]
        role = role_of(inode.mode)
        if role is None:
            return found
        size = inode.forkoff * 8 or len(literal)
        many = inode.version >= 3 and inode.flags2 & form.FLAGS2_MANY_EXTENTS
        count = inode.big_nextents if many else inode.nextents
        self._fork(literal[:size], inode.format, count, role, found)
        if inode.forkoff:
            self._fork(literal[size:], inode.aformat, inode.nextents if many else inode.anextents, "attributes", found)
        return found

    def extents(self, records: bytes, role: str, found: dict[int, str]) -> None:
        pairs = np.frombuffer(records[: len(records) // form.EXTENT_BYTES * form.EXTENT_BYTES], dtype=">u8")
        for high, low in pairs.reshape(-1, 2).tolist():
            first = self._geometry.block((high & 0x1FF) << 43 | low >> 21)
            count = min(low & 0x1FFFFF, MOST_BLOCKS - len(found))
            found.update(dict.fromkeys(range(first, first + count), role))

    def _fork(self, fork: bytes, shape: int, count: int, role: str, found: dict[int, str]) -> None:
        if shape == form.FORMAT_EXTENTS:
            self.extents(fork[: count * form.EXTENT_BYTES], role, found)
        elif shape == form.FORMAT_BTREE and len(fork) >= 4:
            level, records = int.from_bytes(fork[:2], "big"), int.from_bytes(fork[2:4], "big")
            pointers_at = 4 + (len(fork) - 4) // 16 * 8
            self._pointers(fork[pointers_at:], records, role, found, min(level, _DEEPEST))

    def _pointers(self, data: bytes, count: int, role: str, found: dict[int, str], deepest: int) -> None:
        for pointer in np.frombuffer(data[: len(data) // 8 * 8], dtype=">u8")[:count].tolist():
            block = self._geometry.block(pointer)
            if block in found or not deepest:
                continue
            node = self._read(block)
            if node[:4] != b"BMA3":
                continue
            found[block] = "map"
            head = form.BTREE.parse(node)
            body = node[form.LONG_BTREE_BYTES :]
            if head.level:
                self._pointers(body[len(body) // 16 * 8 :], head.numrecs, role, found, deepest - 1)
            else:
                self.extents(body[: head.numrecs * form.EXTENT_BYTES], role, found)


def log_area(form: str, base: Base) -> range:
    """Return the sectors of the log in the image ``base``. ``form`` is the name of the log's format. The range is empty
    if ``form`` is not "xfs", or if the superblock is invalid."""
    if form != "xfs":
        return range(0)
    try:
        geometry = XfsGeometry(OverlayMedium(base.length, base.sector))
    except ValueError:
        return range(0)
    first, stop = (min(end, base.length) // SECTOR_BYTES for end in (geometry.log.start, geometry.log.stop))
    return range(first, stop)
