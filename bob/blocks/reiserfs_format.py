"""The on-disk structures of reiserfs (3.5 and 3.6), little-endian, from Linux ``fs/reiserfs/reiserfs.h``."""

from construct import Bytes, Int16ul, Int32ul, Int64ul, Padding, Struct

SUPERBLOCK_AT = 64 << 10
OLD_SUPERBLOCK_AT = 8 << 10
SUPERBLOCK_BYTES = 204
MAGICS = (b"ReIsErFs", b"ReIsEr2Fs", b"ReIsEr3Fs")

SUPERBLOCK = Struct(
    "block_count" / Int32ul,
    "free_blocks" / Int32ul,
    "root_block" / Int32ul,
    "journal_1st_block" / Int32ul,
    "journal_dev" / Int32ul,
    "journal_size" / Int32ul,
    Padding(20),
    "blocksize" / Int16ul,
    Padding(4),
    "umount_state" / Int16ul,
    "magic" / Bytes(10),
    Padding(12),
)  # struct reiserfs_super_block; the journal's header comes after the ``journal_size`` blocks of the journal
UMOUNT_VALID = 1

JOURNAL_MAGIC = b"ReIsErLB"  # in the last 12 bytes of a descriptor block
JOURNAL_MAGIC_BYTES = 12
JOURNAL_DESCRIPTOR = Struct("trans_id" / Int32ul, "len" / Int32ul, "mount_id" / Int32ul)
"""struct reiserfs_journal_desc, which the homes of the first (blocksize - 24) / 4 blocks follow."""
JOURNAL_HEADER = Struct("last_flush_trans_id" / Int32ul, "first_unflushed_offset" / Int32ul, "mount_id" / Int32ul)

BLOCK_HEAD = Struct("level" / Int16ul, "nr_item" / Int16ul, "free_space" / Int16ul, Padding(18))
BLOCK_HEAD_BYTES = 24
LEAF_LEVEL = 1
HIGHEST_LEVEL = 7

KEY_BYTES = 16
# Disk_child; they follow a node's keys, and are one more than the keys.
CHILD = Struct("block" / Int32ul, "size" / Int16ul, Padding(2))

ITEM_HEAD = Struct(
    "dir_id" / Int32ul,
    "objectid" / Int32ul,
    "offset" / Int64ul,
    "count" / Int16ul,
    "length" / Int16ul,
    "location" / Int16ul,
    "version" / Int16ul,
)  # struct item_head; the type is in the upper 4 bits of ``offset`` if ``version`` is 1, otherwise in its upper 32 bits

STAT_DATA, INDIRECT, DIRECT, DIRECTORY = 0, 1, 2, 3
OLD_TYPES = {0: STAT_DATA, 0xFFFFFFFE: INDIRECT, 0xFFFFFFFF: DIRECT, 500: DIRECTORY}
"""The types of items with old keys (enum of V1_*_UNIQUENESS)."""

ENTRY_VISIBLE = 1 << 2
