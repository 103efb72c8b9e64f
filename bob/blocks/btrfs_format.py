"""The on-disk structures of btrfs that bob needs to name blocks, little-endian. The source is Linux
``include/uapi/linux/btrfs_tree.h`` and ``fs/btrfs/ctree.h``."""

from construct import Bytes, Int8ul, Int16ul, Int32ul, Int64ul, Padding, Struct

SUPERBLOCKS_AT = (64 << 10, 64 << 20, 256 << 30)  # byte offsets of the superblock and its mirrors
SUPERBLOCK_BYTES = 4096
MAGIC = b"_BHRfS_M"
INCOMPAT_METADATA_UUID = 0x400

SUPERBLOCK = Struct(
    Padding(32),
    "fsid" / Bytes(16),
    Padding(24),
    "generation" / Int64ul,
    "root" / Int64ul,
    "chunk_root" / Int64ul,
    "log_root" / Int64ul,
    Padding(40),
    "sectorsize" / Int32ul,
    "nodesize" / Int32ul,
    Padding(8),
    "sys_chunk_array_size" / Int32ul,
    Padding(24),
    "incompat_flags" / Int64ul,
    Padding(375),
    "metadata_uuid" / Bytes(16),
    Padding(224),
    "sys_chunk_array" / Bytes(2048),
)  # struct btrfs_super_block; ``metadata_uuid`` at byte 571, ``sys_chunk_array`` at 811

HEADER = Struct(
    "csum" / Bytes(32),
    Padding(48),
    "generation" / Int64ul,
    "owner" / Int64ul,
    "nritems" / Int32ul,
    "level" / Int8ul,
)  # struct btrfs_header, at the beginning of every tree block

KEY = Struct("objectid" / Int64ul, "type" / Int8ul, "offset" / Int64ul)
# Btrfs_item; ``offset`` counts from the end of the header.
ITEM = Struct("key" / KEY, "offset" / Int32ul, "size" / Int32ul)
POINTER = Struct("key" / KEY, "blockptr" / Int64ul, "generation" / Int64ul)  # struct btrfs_key_ptr

CHUNK = Struct(
    "length" / Int64ul,
    Padding(16),
    "type" / Int64ul,
    Padding(12),
    "num_stripes" / Int16ul,
    Padding(2),
)
STRIPE = Struct("devid" / Int64ul, "offset" / Int64ul, Padding(16))
# Profiles (RAID0, RAID10, RAID5, RAID6) that do not keep a chunk's bytes in order.
CHUNK_STRIPED = 0x8 | 0x40 | 0x80 | 0x100

ROOT_ITEM = Struct(Padding(176), "bytenr" / Int64ul)
FILE_EXTENT = Struct(Padding(20), "type" / Int8ul)
FILE_EXTENT_INLINE = 0
FILE_EXTENT_PLACE = Struct("disk_bytenr" / Int64ul, "disk_num_bytes" / Int64ul)
"""The part of struct btrfs_file_extent_item that follows if the extent is not inline. An address of 0 is a hole."""
INLINE_AT = 21
DIRECTORY_ITEM = Struct("location" / KEY, Padding(8), "data_len" / Int16ul, "name_len" / Int16ul, Padding(1))

INODE_ITEM_KEY, DIRECTORY_INDEX_KEY, EXTENT_DATA_KEY, ROOT_ITEM_KEY, CHUNK_ITEM_KEY = 1, 96, 108, 132, 228

FS_TREE = 5
LOG_TREE = (1 << 64) - 6
FIRST_FREE_OBJECT = 256
LAST_FREE_OBJECT = (1 << 64) - 256

TREES = {
    1: "root",
    2: "extent",
    3: "chunk",
    4: "device",
    FS_TREE: "fs",
    7: "csum",
    8: "quota",
    9: "uuid",
    10: "free space",
    11: "block group",
    12: "raid stripe",
    LOG_TREE: "log",
    (1 << 64) - 7: "log fixup",
    (1 << 64) - 8: "relocation",
    (1 << 64) - 9: "data relocation",
}  # owners of tree blocks (BTRFS_*_TREE_OBJECTID)
