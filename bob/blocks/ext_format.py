"""The on-disk structures of ext2, ext3 and ext4 that bob needs to name blocks, little-endian; lengths are bytes. The
source is Linux ``fs/ext4/ext4.h``, ``fs/ext4/ext4_extents.h`` and ``fs/ext4/xattr.h``."""

from construct import Array, Bytes, Int8ul, Int16ul, Int32ul, Padding, Struct

SUPERBLOCK_AT = 1024
SUPERBLOCK_BYTES = 1024
MAGIC = b"\x53\xef"

COMPAT_SPARSE_SUPER2 = 0x200
INCOMPAT_RECOVER = 0x4
INCOMPAT_META_BG = 0x10
INCOMPAT_64BIT = 0x80
RO_COMPAT_SPARSE_SUPER = 0x1
RO_COMPAT_GDT_CSUM = 0x10
RO_COMPAT_METADATA_CSUM = 0x400
STATE_VALID = 0x1

SUPERBLOCK = Struct(
    "inodes_count" / Int32ul,
    "blocks_count_lo" / Int32ul,
    Padding(12),
    "first_data_block" / Int32ul,
    "log_block_size" / Int32ul,
    Padding(4),
    "blocks_per_group" / Int32ul,
    Padding(4),
    "inodes_per_group" / Int32ul,
    Padding(12),
    "magic" / Bytes(2),
    "state" / Int16ul,
    Padding(16),
    "rev_level" / Int32ul,
    Padding(8),
    "inode_size" / Int16ul,
    Padding(2),
    "feature_compat" / Int32ul,
    "feature_incompat" / Int32ul,
    "feature_ro_compat" / Int32ul,
    Padding(102),
    "reserved_gdt_blocks" / Int16ul,
    Padding(16),
    "journal_inum" / Int32ul,
    Padding(4),
    "last_orphan" / Int32ul,
    Padding(18),
    "desc_size" / Int16ul,
    Padding(4),
    "first_meta_bg" / Int32ul,
    Padding(72),
    "blocks_count_hi" / Int32ul,
    Padding(248),
    "backup_bgs" / Array(2, Int32ul),
)  # struct ext4_super_block; ``state`` at byte 58, ``desc_size`` at 254, ``backup_bgs`` at 588

GROUP_BYTES = 32
GROUP_64_BYTES = 64
GROUP_INODE_UNINIT = 0x1

GROUP = Struct(
    "block_bitmap_lo" / Int32ul,
    "inode_bitmap_lo" / Int32ul,
    "inode_table_lo" / Int32ul,
    Padding(6),
    "flags" / Int16ul,
    Padding(12),
)  # struct ext4_group_desc, its first 32 bytes

GROUP_HIGH = Struct("block_bitmap_hi" / Int32ul, "inode_bitmap_hi" / Int32ul, "inode_table_hi" / Int32ul)
"""Bytes 32 to 43 of a struct ext4_group_desc of 64 bytes."""

OLD_INODE_BYTES = 128
INODE_EXTENTS = 0x80000
INODE_INLINE_DATA = 0x10000000
FAST_SYMLINK_BYTES = 60

INODE = Struct(
    "mode" / Int16ul,
    Padding(2),
    "size_lo" / Int32ul,
    Padding(18),
    "links" / Int16ul,
    Padding(4),
    "flags" / Int32ul,
    Padding(4),
    "block" / Bytes(60),
    Padding(4),
    "file_acl_lo" / Int32ul,
    "size_high" / Int32ul,
    Padding(6),
    "file_acl_high" / Int16ul,
)  # struct ext4_inode, its first 120 bytes

# Pointers of ``block`` that lead to data; the other three lead to one, two and three levels of pointers.
DIRECT_BLOCKS = 12

DIRENT = Struct("inode" / Int32ul, "rec_len" / Int16ul, "name_len" / Int8ul, "file_type" / Int8ul)
"""struct ext4_dir_entry_2, which the name follows."""

DX_ROOT_AT = 24
DX_ROOT_INFO = Struct("reserved" / Int32ul, "hash_version" / Int8ul, "info_length" / Int8ul, "levels" / Int8ul)
"""struct dx_root_info, which follows the entries "." and ".."."""

DX_NODE_AT = 8
DX_COUNT_LIMIT = Struct("limit" / Int16ul, "count" / Int16ul)

EXTENT_MAGIC = b"\x0a\xf3"
EXTENT_HEADER = Struct("magic" / Bytes(2), "entries" / Int16ul, "max" / Int16ul, "depth" / Int16ul, Padding(4))
EXTENT_HEADER_BYTES = 12
EXTENT_BYTES = 12
EXTENT = Struct("block" / Int32ul, "len" / Int16ul, "start_hi" / Int16ul, "start_lo" / Int32ul)
EXTENT_INDEX = Struct("block" / Int32ul, "leaf_lo" / Int32ul, "leaf_hi" / Int16ul, Padding(2))
LONGEST_WRITTEN_EXTENT = 32768  # EXT_INIT_MAX_LEN: an extent without data has a ``len`` above this

XATTR_MAGIC = b"\x00\x00\x02\xea"  # EXT4_XATTR_MAGIC: the first four bytes of a block of extended attributes
