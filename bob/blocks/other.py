"""Names (short descriptions) for writes of an unknown or damaged file system: bob recognises only data and
superblocks."""

from collections.abc import Sequence

from bob.blocks.data import data_part
from bob.blocks.medium import OverlayMedium
from bob.blocks.owners import Owners
from bob.blocks.parts import UNKNOWN, BlockKind, WritePart

_SUPERBLOCKS = (
    (0, 0, b"XFSB"),
    (1024, 56, b"\x53\xef"),
    (65536, 64, b"_BHRfS_M"),
    (65536, 52, b"ReIsEr"),
    (1024, 0, b"\x10\x20\xf5\xf2"),
)  # byte of the superblock, byte of the magic number in it, and the magic number (xfs, ext, btrfs, reiserfs, f2fs)


class Other:
    def __init__(self, medium: OverlayMedium) -> None:
        self.owners = Owners()
        self._medium = medium

    def parts(self, index: int, at: int, data: bytes) -> Sequence[WritePart]:
        for start, skip, magic in _SUPERBLOCKS:
            place = start + skip - at
            if at <= start < at + len(data) and data[place : place + len(magic)] == magic:
                return (WritePart(BlockKind.SUPERBLOCK, "superblock"),)
        return (data_part(data, 0, None) or UNKNOWN,)

    def landed(self, index: int, at: int, data: bytes) -> None:
        """Do nothing."""
