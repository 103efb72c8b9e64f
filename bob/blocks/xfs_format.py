"""The on-disk structures of xfs that bob needs to name blocks. They are big-endian, but log items are in the byte order
of the machine (here little-endian). The source is Linux ``fs/xfs/libxfs/xfs_format.h``, ``xfs_da_format.h`` and
``xfs_log_format.h``."""

from construct import Array, Bytes, Int8ub, Int16ub, Int16ul, Int32ub, Int32ul, Int64ub, Int64ul, Padding, Struct

SUPERBLOCK_MAGIC = b"XFSB"

SUPERBLOCK = Struct(
    "magicnum" / Bytes(4),
    "blocksize" / Int32ub,
    "dblocks" / Int64ub,
    Padding(32),
    "logstart" / Int64ub,
    Padding(28),
    "agblocks" / Int32ub,
    "agcount" / Int32ub,
    Padding(4),
    "logblocks" / Int32ub,
    Padding(2),
    "sectsize" / Int16ub,
    "inodesize" / Int16ub,
    Padding(17),
    "inopblog" / Int8ub,
    "agblklog" / Int8ub,
    Padding(67),
    "dirblklog" / Int8ub,
)  # struct xfs_dsb; ``logstart`` is a block by its group and its number in the group; 0 if the log is on another device

AGI = Struct("magicnum" / Bytes(4), Padding(16), "root" / Int32ub, "level" / Int32ub)  # struct xfs_agi

SHORT_BTREE_BYTES = 56
LONG_BTREE_BYTES = 72
BTREE = Struct("magic" / Bytes(4), "level" / Int16ub, "numrecs" / Int16ub)
LONG_OWNER_AT = 56

INODE_RECORD = Struct("startino" / Int32ub, "holemask" / Int16ub, Padding(2), "free" / Int64ub)
"""struct xfs_inobt_rec. ``free`` has one bit for each of 64 inodes."""
INODES_PER_RECORD = 64

INODE_MAGIC = b"IN"
INODE_CORE_BYTES = 176
FORMAT_LOCAL, FORMAT_EXTENTS, FORMAT_BTREE = 1, 2, 3
FLAGS2_MANY_EXTENTS = 1 << 4

INODE = Struct(
    "magic" / Bytes(2),
    "mode" / Int16ub,
    "version" / Int8ub,
    "format" / Int8ub,
    Padding(10),
    "nlink" / Int32ub,
    Padding(4),
    "big_nextents" / Int64ub,
    Padding(24),
    "size" / Int64ub,
    Padding(12),
    "nextents" / Int32ub,
    "anextents" / Int16ub,
    "forkoff" / Int8ub,
    "aformat" / Int8ub,
    Padding(36),
    "flags2" / Int64ub,
    Padding(48),
)  # struct xfs_dinode of version 3; the data fork follows, and ``forkoff`` * 8 bytes after its start the attribute fork

EXTENT_BYTES = 16  # struct xfs_bmbt_rec: one flag bit, 54 bits of file offset, 52 of block, 21 of length

DIRECTORY_HEADER_BYTES = 64
DIRECTORY_OWNER_AT = 40
DIRECTORY_FREE_TAG = 0xFFFF
DIRECTORY_ENTRY = Struct("inumber" / Int64ub, "namelen" / Int8ub)
"""struct xfs_dir2_data_entry. The name follows, then a byte of file type, and a two-byte tag that ends at a multiple of
8."""
DIRECTORY_UNUSED = Struct("freetag" / Int16ub, "length" / Int16ub)
DIRECTORY_TAIL = Struct("count" / Int32ub, "stale" / Int32ub)

DA_MAGIC_AT = 8
DA_OWNER_AT = 48
REMOTE_OWNER_AT = 32

LOG_MAGIC = b"\xfe\xed\xba\xbe"
LOG_CYCLES = 64
LOG_RECORD = Struct(
    "magicno" / Bytes(4),
    Padding(4),
    "version" / Int32ub,
    "len" / Int32ub,
    "lsn" / Int64ub,
    Padding(16),
    "num_logops" / Int32ub,
    "cycle_data" / Array(LOG_CYCLES, Bytes(4)),
    Padding(20),
    "size" / Int32ub,
)
"""struct xlog_rec_header. An lsn is cycle << 32 | 512-byte block of the log. In each 512-byte block of the ``len``
bytes, the cycle stands in place of the first four bytes. ``cycle_data`` has the original bytes."""
LOG_BYTES_PER_HEADER = 32 * 1024
LOG_MORE_CYCLES = Struct("cycle" / Int32ub, "cycle_data" / Array(LOG_CYCLES, Bytes(4)))  # struct xlog_rec_ext_header

LOG_OPERATION_BYTES = 12
LOG_OPERATION = Struct("tid" / Int32ub, "len" / Int32ub, "clientid" / Int8ub, "flags" / Int8ub, Padding(2))
"""struct xlog_op_header, which ``len`` bytes follow."""
OPERATION_CONTINUES = 0x04
OPERATION_WAS_CONTINUED = 0x08
OPERATION_UNMOUNT = 0x20

LOG_TRANSACTION_MAGIC = b"NART"
ITEM = Struct("type" / Int16ul, "size" / Int16ul)
"""The beginning of every log item. ``size`` is the number of the item's regions. Each region is one operation."""
ITEM_INODE, ITEM_BUFFER = 0x123B, 0x123C

INODE_ITEM = Struct(
    "type" / Int16ul,
    "size" / Int16ul,
    "fields" / Int32ul,
    "asize" / Int16ul,
    "dsize" / Int16ul,
    Padding(4),
    "ino" / Int64ul,
    Padding(32),
)  # struct xfs_inode_log_format; the inode's core follows, then the forks that ``fields`` names
FIELD_EXTENTS = 0x04

BUFFER_ITEM = Struct("type" / Int16ul, "size" / Int16ul, "flags" / Int16ul, "len" / Int16ul, Padding(8))
"""struct xfs_buf_log_format. The type of the buffer is in the five upper bits of ``flags``."""
BUFFER_TYPE_SHIFT = 11
BUFFER_CANCEL = 1 << 1
