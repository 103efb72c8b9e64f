"""The blocks of a jbd2 journal (ext3, ext4): which transaction they are of, and what they are copies of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from bob.blocks import jbd2_format as form
from bob.blocks.parts import BlockKind, WritePart

_MAGIC = form.MAGIC.to_bytes(4, "big")


class Tag(NamedTuple):
    """One entry of a descriptor block: the home of the copy, and whether its first four bytes are put back."""

    home: int
    escaped: bool


class JournaledBlock(NamedTuple):
    """The content ``data`` that a block of the journal holds for block ``home`` of the file system."""

    home: int
    data: bytes


class Jbd2Journal:
    """A journal in ``blocks`` (its own order) of a file system; it is shown its blocks as they are written."""

    def __init__(self, blocks: Sequence[int], read: Callable[[int], bytes]) -> None:
        self._blocks = blocks
        self._read = read
        self._place = {block: number for number, block in enumerate(blocks)}
        self._expected: dict[int, Tag] = {}

    def has(self, block: int) -> bool:
        """Whether ``block`` of the file system is one of the journal."""
        return block in self._place

    def part(self, block: int, data: bytes) -> WritePart | None:
        """What a block with a magic number is; None for all others: those are copies."""
        if data[:4] != _MAGIC:
            return None
        header = form.HEADER.parse(data)
        transaction = f"of transaction {header.sequence}"
        if header.blocktype == form.DESCRIPTOR:
            count = len(list(self._tags(data)))
            return _part(f"journal descriptor block {transaction} ({count} block{'s' * (count != 1)})")
        if header.blocktype == form.COMMIT:
            return _part(f"journal commit block {transaction}")
        if header.blocktype == form.REVOKE:
            used = form.REVOKE_HEADER.parse(data).count - form.HEADER_BYTES - 4
            count = max(used, 0) // (8 if self._features() & form.INCOMPAT_64BIT else 4)
            return _part(f"journal revoke block {transaction} ({count} block{'s' * (count != 1)})")
        if header.blocktype in (form.SUPERBLOCK_V1, form.SUPERBLOCK_V2):
            superblock = form.SUPERBLOCK.parse(data)
            state = f"starts with transaction {superblock.sequence}" if superblock.start else "empty"
            return _part("journal superblock", f"error {superblock.errno}" if superblock.errno else state)
        return _part(f"journal block of an unknown type {transaction}")

    def copy(self, block: int, data: bytes) -> JournaledBlock | None:
        """What the copy in ``block`` says of which home; None if no descriptor block announced it."""
        tag = self._expected.get(self._place[block])
        if tag is None or data[:4] == _MAGIC:
            return None
        return JournaledBlock(tag.home, _MAGIC + data[4:] if tag.escaped else data)

    def landed(self, block: int, data: bytes) -> None:
        """A block was written: a descriptor block says what the blocks after it will be."""
        if data[:4] != _MAGIC or form.HEADER.parse(data).blocktype != form.DESCRIPTOR:
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
        """The journal's superblock as it is now, None if it is damaged."""
        data = self._read(self._blocks[0])
        if data[:4] != _MAGIC or len(data) < form.SUPERBLOCK.sizeof():
            return None
        return form.SUPERBLOCK.parse(data)

    def _features(self) -> int:
        superblock = self._superblock()
        if superblock is None or superblock.header.blocktype == form.SUPERBLOCK_V1:
            return 0
        return int(superblock.feature_incompat)

    def _tags(self, data: bytes) -> Iterator[Tag]:
        """The tags of a descriptor block (journal_tag_bytes() of fs/jbd2/journal.c has their lengths)."""
        features = self._features()
        high = bool(features & form.INCOMPAT_64BIT)
        version_3 = bool(features & form.INCOMPAT_CSUM_V3)
        if version_3:
            length = form.TAG3.sizeof()
        else:
            length = form.TAG.sizeof() + 2 * bool(features & form.INCOMPAT_CSUM_V2) + 4 * high
        stop = len(data) - (form.TAIL_BYTES if features & (form.INCOMPAT_CSUM_V2 | form.INCOMPAT_CSUM_V3) else 0)
        at = form.HEADER_BYTES
        while at + length <= stop:
            tag = (form.TAG3 if version_3 else form.TAG).parse(data[at : at + length])
            home = tag.blocknr
            if high:
                above = tag.blocknr_high if version_3 else form.TAG_HIGH.parse(data[at + form.TAG.sizeof() :][:4])
                home |= above << 32
            yield Tag(home, bool(tag.flags & form.TAG_ESCAPE))
            if tag.flags & form.TAG_LAST:
                return
            at += length + (0 if tag.flags & form.TAG_SAME_UUID else form.UUID_BYTES)


def _part(what: str, *notes: str) -> WritePart:
    return WritePart(BlockKind.JOURNAL, what, notes=notes)
