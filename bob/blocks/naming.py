"""A name (short description) for every write of a trace. The name comes from the content of the write's blocks, such as
magic numbers or a workload's data. It also comes from the places of the blocks in the file system."""

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from construct import ConstructError

from bob.blocks.btrfs import Btrfs
from bob.blocks.ext import Ext
from bob.blocks.f2fs import F2fs
from bob.blocks.medium import OverlayMedium
from bob.blocks.other import Other
from bob.blocks.parts import UNKNOWN, BlockKind, Family, WritePart
from bob.blocks.reiserfs import Reiserfs
from bob.blocks.summary import BlockName, summary
from bob.blocks.xfs import Xfs
from bob.trace.base import Base
from bob.trace.model import SECTOR_BYTES, Trace

__all__ = ["BlockKind", "BlockName", "names"]

_FAMILIES: Mapping[str, Callable[[OverlayMedium], Family]] = {
    "ext2": Ext,
    "ext3": Ext,
    "ext4": Ext,
    "xfs": Xfs,
    "btrfs": Btrfs,
    "reiserfs": Reiserfs,
    "f2fs": F2fs,
}

# Errors that parsers raise for a damaged block.
_DAMAGED = (ConstructError, struct.error, ValueError, LookupError, ArithmeticError)


def names(fs: str, base: Base, trace: Trace, inodes: Mapping[int, str]) -> tuple[BlockName, ...]:
    """Return one name for each write of the trace, in order. Damaged blocks do not raise an error. ``fs`` is the name
    of the kernel's file system driver. For an unknown driver, bob recognises only data and superblocks. ``inodes`` has
    the path of each inode number."""
    medium = OverlayMedium(base.length, base.sector)
    # A volume on several disks has places of its own, which are not places on a disk.
    family = _family(fs, medium) if len(base.disks) == 1 else Other(medium)
    found: list[Sequence[WritePart]] = []
    for write in trace.writes:
        at = trace.address(write) * SECTOR_BYTES
        try:
            parts: Sequence[WritePart] = family.parts(write.index, at, write.data)
        except _DAMAGED:
            parts = (UNKNOWN,)
        found.append(parts)
        medium.write(at, write.data)
        try:
            family.landed(write.index, at, write.data)
        except _DAMAGED:
            continue
    return tuple(
        summary(parts, partial(family.owners.owner, write.index), inodes)
        for write, parts in zip(trace.writes, found, strict=True)
    )


def _family(fs: str, medium: OverlayMedium) -> Family:
    try:
        return _FAMILIES.get(fs, Other)(medium)
    except _DAMAGED:
        return Other(medium)
