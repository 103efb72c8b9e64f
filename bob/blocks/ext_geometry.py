"""The places of metadata in ext2, ext3 and ext4, from the superblock and the group descriptors."""

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

from bob.blocks import ext_format as form
from bob.blocks.medium import OverlayMedium

_MOST_GROUPS = 1 << 14
_MOST_FIXED = 1 << 18  # fixed blocks that bob remembers, since a damaged superblock claims billions


@dataclass(frozen=True, slots=True)
class FixedBlock:
    what: str
    group: int


SUPER = "superblock"
BLOCK_BITMAP = "block bitmap"
INODE_BITMAP = "inode bitmap"
INODE_TABLE = "inode table"
DESCRIPTORS = "group descriptors"
RESERVED = "reserved group descriptors"


@dataclass(frozen=True, slots=True)
class BlockGroup:
    """The bitmaps of a block group and the first block of its inode table. ``unused`` is True if no inode of the group
    is in use."""

    block_bitmap: int
    inode_bitmap: int
    inode_table: int
    unused: bool


def read_superblock(data: bytes) -> Any:
    """Return the superblock in these 1,024 bytes; None if they have the wrong magic number."""
    if len(data) < form.SUPERBLOCK_BYTES or data[56:58] != form.MAGIC:
        return None
    return form.SUPERBLOCK.parse(data)


class ExtGeometry:
    """The places of one file system's metadata, as block numbers. Raises ValueError for a bad superblock."""

    def __init__(self, medium: OverlayMedium) -> None:
        superblock = read_superblock(medium.read(form.SUPERBLOCK_AT, form.SUPERBLOCK_BYTES))
        if (
            superblock is None
            or superblock.log_block_size > 6
            or not (superblock.inodes_per_group and superblock.blocks_per_group >= 256)
            or (superblock.rev_level and not 128 <= superblock.inode_size <= 4096)
        ):
            raise ValueError("not a superblock of ext2, ext3 or ext4")
        self.block_bytes: int = 1024 << superblock.log_block_size
        self.inode_bytes: int = superblock.inode_size if superblock.rev_level else form.OLD_INODE_BYTES
        self.inodes: int = superblock.inodes_count
        self.inodes_per_group: int = superblock.inodes_per_group
        self.blocks_per_group: int = superblock.blocks_per_group
        self.first_block: int = superblock.first_data_block
        high = superblock.feature_incompat & form.INCOMPAT_64BIT
        self.blocks: int = superblock.blocks_count_lo + (superblock.blocks_count_hi << 32 if high else 0)
        self.journal_inode: int = superblock.journal_inum
        self._descriptor_bytes: int = max(superblock.desc_size, form.GROUP_BYTES) if high else form.GROUP_BYTES
        self._checksums = superblock.feature_ro_compat & (form.RO_COMPAT_GDT_CSUM | form.RO_COMPAT_METADATA_CSUM)
        count = -(-(self.blocks - self.first_block) // self.blocks_per_group)
        self._fixed: dict[int, FixedBlock] = {}
        places = self._copies(superblock, min(count, _MOST_GROUPS))
        self.groups = [self._group(medium, place) for place in places]
        self.table_blocks = -(-self.inodes_per_group * self.inode_bytes // self.block_bytes)
        for number, group in enumerate(self.groups):
            self._fixed[group.block_bitmap] = FixedBlock(BLOCK_BITMAP, number)
            self._fixed[group.inode_bitmap] = FixedBlock(INODE_BITMAP, number)
        self._tables = sorted((group.inode_table, number) for number, group in enumerate(self.groups))

    @property
    def superblock(self) -> int:
        return form.SUPERBLOCK_AT // self.block_bytes

    def fixed(self, block: int) -> FixedBlock | None:
        if block in self._fixed:
            return self._fixed[block]
        place = bisect_right(self._tables, (block, len(self.groups))) - 1
        if place >= 0 and self._tables[place][0] <= block < self._tables[place][0] + self.table_blocks:
            return FixedBlock(INODE_TABLE, self._tables[place][1])
        return None

    def first_inode(self, block: int, group: int) -> int:
        in_table = (block - self.groups[group].inode_table) * self.block_bytes // self.inode_bytes
        return group * self.inodes_per_group + in_table + 1

    def place(self, inode: int) -> int:
        group, number = divmod(inode - 1, self.inodes_per_group)
        return self.groups[group].inode_table * self.block_bytes + number * self.inode_bytes

    def _copies(self, superblock: Any, count: int) -> list[int]:
        """Store in ``_fixed`` which blocks hold copies of the superblock and of the group descriptors. Return the byte
        offset of each group's descriptor, in the copy that is not a backup."""
        per_block = self.block_bytes // self._descriptor_bytes
        blocks = -(-count // per_block)
        meta = superblock.feature_incompat & form.INCOMPAT_META_BG
        plain = min(superblock.first_meta_bg, blocks) if meta else blocks
        places = []
        for group in range(count):
            first = self.first_block + group * self.blocks_per_group
            backup = _has_superblock(group, superblock)
            here = first
            if backup and len(self._fixed) < _MOST_FIXED:
                start = self.superblock if group == 0 else first
                self._fixed[start] = FixedBlock(SUPER, group)
                here = start + 1
            if group // per_block >= plain:
                if group % per_block in (0, 1, per_block - 1):
                    self._fixed[here] = FixedBlock(DESCRIPTORS, group)
            elif backup and len(self._fixed) < _MOST_FIXED:
                for block in range(here, here + plain):
                    self._fixed[block] = FixedBlock(DESCRIPTORS, group)
                for block in range(here + plain, here + plain + superblock.reserved_gdt_blocks):
                    self._fixed[block] = FixedBlock(RESERVED, group)
            if group // per_block < plain:
                table = self.superblock + 1 + group // per_block
            else:
                meta_first = group - group % per_block
                table = self.first_block + meta_first * self.blocks_per_group
                table += int(_has_superblock(meta_first, superblock))
            places.append(table * self.block_bytes + group % per_block * self._descriptor_bytes)
        return places

    def _group(self, medium: OverlayMedium, at: int) -> BlockGroup:
        data = medium.read(at, self._descriptor_bytes)
        low = form.GROUP.parse(data)
        block_bitmap, inode_bitmap, table = low.block_bitmap_lo, low.inode_bitmap_lo, low.inode_table_lo
        if self._descriptor_bytes >= form.GROUP_64_BYTES:
            high = form.GROUP_HIGH.parse(data[form.GROUP_BYTES :])
            block_bitmap |= high.block_bitmap_hi << 32
            inode_bitmap |= high.inode_bitmap_hi << 32
            table |= high.inode_table_hi << 32
        unused = bool(self._checksums and low.flags & form.GROUP_INODE_UNINIT)
        return BlockGroup(block_bitmap, inode_bitmap, table, unused)


def _has_superblock(group: int, superblock: Any) -> bool:
    """Return whether ``group`` begins with a copy of the superblock (ext4_bg_has_super)."""
    if group == 0:
        return True
    if superblock.feature_compat & form.COMPAT_SPARSE_SUPER2:
        return group in superblock.backup_bgs
    if group == 1 or not superblock.feature_ro_compat & form.RO_COMPAT_SPARSE_SUPER:
        return True
    return any(_is_power(group, base) for base in (3, 5, 7))


def _is_power(number: int, base: int) -> bool:
    while number % base == 0:
        number //= base
    return number == 1
