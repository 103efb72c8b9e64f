"""A name for every write of a trace: by its blocks' content (magic numbers, a workload's data), then by place."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from construct import ConstructError

from bob.blocks.btrfs import Btrfs
from bob.blocks.ext import Ext
from bob.blocks.f2fs import F2fs
from bob.blocks.medium import OverlayMedium
from bob.blocks.other import Other
from bob.blocks.parts import UNKNOWN, BlockKind, Family, WritePart
from bob.blocks.reiserfs import Reiserfs
from bob.blocks.summary import sort, summary
from bob.blocks.xfs import Xfs
from bob.trace.base import Base
from bob.trace.model import SECTOR_BYTES, Trace

__all__ = ["BlockKind", "BlockName", "names"]

_FAMILIES: Mapping[str, Callable[[OverlayMedium], Family | None]] = {
    "ext2": Ext.of,
    "ext3": Ext.of,
    "ext4": Ext.of,
    "xfs": Xfs.of,
    "btrfs": Btrfs.of,
    "reiserfs": Reiserfs.of,
    "f2fs": F2fs.of,
}

_DAMAGED = (ConstructError, struct.error, ValueError, LookupError, ArithmeticError)  # raised for a damaged block


@dataclass(frozen=True, slots=True)
class BlockName:
    """A name of a write: a short ``text`` in lower case, and its ``sort``: "inode table", "data" and others."""

    kind: BlockKind
    text: str
    sort: str


def names(fs: str, base: Base, trace: Trace, inodes: Mapping[int, str]) -> tuple[BlockName, ...]:
    """Return one name per write of the trace, in order. Never raises for the content of blocks. ``fs`` is the driver's
    name: for an unknown one, bob recognises only data. ``inodes`` are the paths by inode number."""
    medium = OverlayMedium(base.length, base.sector)
    # A volume on several disks has its own places.
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
    return tuple(_name(family, write.index, parts, inodes) for write, parts in zip(trace.writes, found, strict=True))


def _family(fs: str, medium: OverlayMedium) -> Family:
    make = _FAMILIES.get(fs)
    try:
        return (make(medium) if make else None) or Other(medium)
    except _DAMAGED:
        return Other(medium)


def _name(family: Family, index: int, parts: Sequence[WritePart], inodes: Mapping[int, str]) -> BlockName:
    owner_of = partial(family.owners.owner, index)
    return BlockName(*summary(parts, owner_of, inodes), sort(parts, owner_of))
