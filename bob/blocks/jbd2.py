"""The journal of ext3 and ext4, big-endian (Linux ``include/linux/jbd2.h``): its transactions, and the copies of blocks
in it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from construct import Int16ub, Int32ub, Padding, Struct

from bob.blocks.journaled import JournaledBlock
from bob.blocks.parts import WritePart, journal

MAGIC = b"\xc0\x3b\x39\x98"
DESCRIPTOR, COMMIT, SUPERBLOCK_V1, SUPERBLOCK_V2, REVOKE = 1, 2, 3, 4, 5

INCOMPAT_64BIT = 0x2
INCOMPAT_CSUM_V2 = 0x8
INCOMPAT_CSUM_V3 = 0x10

TAG_ESCAPE = 0x1  # the copy has zeros where the block has the journal's magic number (in its first four bytes)
TAG_SAME_UUID = 0x2  # the tag is not followed by a UUID
TAG_LAST = 0x8

UUID_BYTES = 16
TAIL_BYTES = 4  # struct jbd2_journal_block_tail: the checksum that ends descriptor and revoke blocks

HEADER = Struct("magic" / Int32ub, "blocktype" / Int32ub, "sequence" / Int32ub)  # struct journal_header_s
HEADER_BYTES = HEADER.sizeof()

SUPERBLOCK = Struct(
    "header" / HEADER,
    Padding(4),
    "maxlen" / Int32ub,
    "first" / Int32ub,
    "sequence" / Int32ub,
    "start" / Int32ub,
    "errno" / Int32ub,
    Padding(4),
    "feature_incompat" / Int32ub,
    Padding(4),
)  # struct journal_superblock_s; ``start`` is 0 if the journal is empty. Only version 2 has fields for features

TAG = Struct("blocknr" / Int32ub, "checksum" / Int16ub, "flags" / Int16ub)
"""struct journal_block_tag_s. ``t_blocknr_high`` follows if the journal has INCOMPAT_64BIT."""
TAG_HIGH = Int32ub
TAG3 = Struct("blocknr" / Int32ub, "flags" / Int32ub, "blocknr_high" / Int32ub, "checksum" / Int32ub)
"""struct journal_block_tag3_s."""

REVOKE_HEADER = Struct("header" / HEADER, "count" / Int32ub)
"""struct jbd2_journal_revoke_header_s. ``count`` is the number of used bytes of the block, including this header."""


class Tag(NamedTuple):
    """One entry of a descriptor block. Each entry describes one block that the journal holds a copy of: ``home`` is the
    number of that block. If the block begins with the journal's magic number, ext replaces these bytes by zeros in the
    copy, and ``escaped`` is True."""

    home: int
    escaped: bool


class Jbd2Journal:
    """The journal of one file system. ``blocks`` has the number of each block of the file system that belongs to the
    journal, in the order of the journal."""

    def __init__(self, blocks: Sequence[int], read: Callable[[int], bytes]) -> None:
        self._blocks = blocks
        self._read = read
        self._place = {block: number for number, block in enumerate(blocks)}
        self._expected: dict[int, Tag] = {}

    def has(self, block: int) -> bool:
        return block in self._place

    def read(self, block: int, data: bytes) -> WritePart | JournaledBlock:
        if data[:4] != MAGIC:
            tag = self._expected.get(self._place[block])
            if tag is None:
                return journal("journal data" if any(data) else "journal block, zeros")
            return JournaledBlock(tag.home, MAGIC + data[4:] if tag.escaped else data)
        header = HEADER.parse(data)
        transaction = f"of transaction {header.sequence}"
        if header.blocktype == DESCRIPTOR:
            count = len(list(self._tags(data)))
            return journal(f"journal descriptor block {transaction} ({count} block{'s' * (count != 1)})")
        if header.blocktype == COMMIT:
            return journal(f"journal commit block {transaction}")
        if header.blocktype == REVOKE:
            used = REVOKE_HEADER.parse(data).count - HEADER_BYTES - 4
            count = max(used, 0) // (8 if self._features() & INCOMPAT_64BIT else 4)
            return journal(f"journal revoke block {transaction} ({count} block{'s' * (count != 1)})")
        if header.blocktype in (SUPERBLOCK_V1, SUPERBLOCK_V2):
            superblock = SUPERBLOCK.parse(data)
            state = f"starts with transaction {superblock.sequence}" if superblock.start else "empty"
            return journal("journal superblock", f"error {superblock.errno}" if superblock.errno else state)
        return journal(f"journal block of an unknown type {transaction}")

    def landed(self, block: int, data: bytes) -> None:
        if data[:4] != MAGIC or HEADER.parse(data).blocktype != DESCRIPTOR:
            return
        superblock = self._superblock()
        first = superblock.first if superblock is not None else 1
        most = len(self._blocks)
        if superblock is not None and first < superblock.maxlen <= most:
            most = superblock.maxlen
        place = self._place[block]
        for tag in self._tags(data):
            place = place + 1 if place + 1 < most else first
            self._expected[place] = tag

    def _superblock(self) -> Any:
        data = self._read(self._blocks[0])
        if data[:4] != MAGIC or len(data) < SUPERBLOCK.sizeof():
            return None
        return SUPERBLOCK.parse(data)

    def _features(self) -> int:
        superblock = self._superblock()
        if superblock is None or superblock.header.blocktype == SUPERBLOCK_V1:
            return 0
        return int(superblock.feature_incompat)

    def _tags(self, data: bytes) -> Iterator[Tag]:
        """Yield the tags (entries) of a descriptor block. journal_tag_bytes() in fs/jbd2/journal.c says how long a tag
        is."""
        features = self._features()
        high = bool(features & INCOMPAT_64BIT)
        version_3 = bool(features & INCOMPAT_CSUM_V3)
        plain = TAG.sizeof() + 2 * bool(features & INCOMPAT_CSUM_V2) + 4 * high
        length = TAG3.sizeof() if version_3 else plain
        stop = len(data) - (TAIL_BYTES if features & (INCOMPAT_CSUM_V2 | INCOMPAT_CSUM_V3) else 0)
        at = HEADER_BYTES
        while at + length <= stop:
            tag = (TAG3 if version_3 else TAG).parse(data[at : at + length])
            home = tag.blocknr
            if high:
                above = tag.blocknr_high if version_3 else TAG_HIGH.parse(data[at + TAG.sizeof() :][:4])
                home |= above << 32
            yield Tag(home, bool(tag.flags & TAG_ESCAPE))
            if tag.flags & TAG_LAST:
                return
            at += length + (0 if tag.flags & TAG_SAME_UUID else UUID_BYTES)
