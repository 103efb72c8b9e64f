"""The journal of ext3 and ext4, declared. The source is Linux ``include/linux/jbd2.h``; all integers are big-endian."""

from __future__ import annotations

from construct import Int16ub, Int32ub, Struct

MAGIC = 0xC03B3998
DESCRIPTOR, COMMIT, SUPERBLOCK_V1, SUPERBLOCK_V2, REVOKE = 1, 2, 3, 4, 5

INCOMPAT_64BIT = 0x2
INCOMPAT_CSUM_V2 = 0x8
INCOMPAT_CSUM_V3 = 0x10

TAG_ESCAPE = 0x1
"""The copy has zeros where the block has the journal's magic number (its first four bytes)."""
TAG_SAME_UUID = 0x2
"""No UUID of 16 bytes follows the tag."""
TAG_LAST = 0x8

UUID_BYTES = 16
TAIL_BYTES = 4
"""struct jbd2_journal_block_tail: the checksum that ends descriptor and revoke blocks."""

HEADER = Struct("magic" / Int32ub, "blocktype" / Int32ub, "sequence" / Int32ub)
"""struct journal_header_s."""
HEADER_BYTES = 12

SUPERBLOCK = Struct(
    "header" / HEADER,
    "blocksize" / Int32ub,
    "maxlen" / Int32ub,
    "first" / Int32ub,
    "sequence" / Int32ub,
    "start" / Int32ub,
    "errno" / Int32ub,
    "feature_compat" / Int32ub,
    "feature_incompat" / Int32ub,
    "feature_ro_compat" / Int32ub,
)
"""struct journal_superblock_s; ``start`` is 0 if the journal is empty. Those of version 1 have no features."""

TAG = Struct("blocknr" / Int32ub, "checksum" / Int16ub, "flags" / Int16ub)
"""struct journal_block_tag_s without ``t_blocknr_high``, which follows where the journal has INCOMPAT_64BIT."""
TAG_HIGH = Int32ub
TAG3 = Struct("blocknr" / Int32ub, "flags" / Int32ub, "blocknr_high" / Int32ub, "checksum" / Int32ub)
"""struct journal_block_tag3_s."""

REVOKE_HEADER = Struct("header" / HEADER, "count" / Int32ub)
"""struct jbd2_journal_revoke_header_s; ``count`` is the bytes used in the block, this header included."""
