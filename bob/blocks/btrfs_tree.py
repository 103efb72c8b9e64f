"""The trees of btrfs: their blocks by logical address, and the items in the blocks."""

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from bob.blocks import btrfs_format as form
from bob.blocks.items import ItemKey
from bob.blocks.medium import OverlayMedium

# A leaf has up to 650 items, and construct takes 20 us for each. So this parses items itself, with the fields of
# form.ITEM.
_ITEM = struct.Struct("<QBQII")
_HEADER_BYTES = form.HEADER.sizeof()
_KEY_BYTES = form.KEY.sizeof()
_DEEPEST = 8
_MOST_BLOCKS = 1 << 14


class Chunk(NamedTuple):
    """The ``length`` bytes from logical address ``start`` on. ``stripes`` has the byte offsets on the device where
    copies of them begin."""

    start: int
    length: int
    stripes: tuple[int, ...]


class LogicalAddress(NamedTuple):
    logical: int
    copy: int


class Trees:
    def __init__(self, medium: OverlayMedium, superblock: Any) -> None:
        self._medium = medium
        self.node_bytes: int = superblock.nodesize
        self.sector_bytes: int = superblock.sectorsize
        moved = superblock.incompat_flags & form.INCOMPAT_METADATA_UUID
        self.fsid: bytes = superblock.metadata_uuid if moved else superblock.fsid
        self._chunks: list[Chunk] = []
        self.follow(superblock)

    def follow(self, superblock: Any) -> None:
        self._chunks = list(_system_chunks(superblock))
        found = []
        for _owner, items in self.leaves(superblock.chunk_root):
            found += [_chunk(key[2], body) for key, body in items.items() if key[1] == form.CHUNK_ITEM_KEY]
        self._chunks = list(dict.fromkeys([*self._chunks, *(chunk for chunk in found if chunk is not None)]))

    def place(self, physical: int) -> LogicalAddress | None:
        """Return the logical address of device byte ``physical``; None if the byte is not in a chunk."""
        for chunk in self._chunks:
            for copy, start in enumerate(chunk.stripes):
                if start <= physical < start + chunk.length:
                    return LogicalAddress(chunk.start + physical - start, copy)
        return None

    def fs_tree(self, superblock: Any) -> int | None:
        for _owner, items in self.leaves(superblock.root):
            for key, body in items.items():
                if key[:2] == (form.FS_TREE, form.ROOT_ITEM_KEY):
                    return int(form.ROOT_ITEM.parse(body).bytenr)
        return None

    def leaves(self, logical: int) -> Iterator[tuple[int, dict[ItemKey, bytes]]]:
        """Yield the owner (the number of the tree) and the items of each undamaged leaf below the tree block at
        ``logical``, in the order of the tree."""
        yield from self._leaves(logical, _DEEPEST, [_MOST_BLOCKS])

    def is_block(self, data: bytes) -> bool:
        return len(data) >= _HEADER_BYTES and data[32:48] == self.fsid

    def _leaves(self, logical: int, deepest: int, left: list[int]) -> Iterator[tuple[int, dict[ItemKey, bytes]]]:
        data = self._read(logical)
        left[0] -= 1
        if not self.is_block(data) or left[0] < 0:
            return
        header = form.HEADER.parse(data)
        if header.level == 0:
            yield header.owner, leaf_items(data)
        elif header.level < deepest:
            size = form.POINTER.sizeof()
            for number in range(min(header.nritems, (len(data) - _HEADER_BYTES) // size)):
                pointer = form.POINTER.parse(data[_HEADER_BYTES + number * size :][:size])
                yield from self._leaves(pointer.blockptr, header.level, left)

    def _read(self, logical: int) -> bytes:
        for chunk in self._chunks:
            if chunk.start <= logical < chunk.start + chunk.length:
                return self._medium.read(chunk.stripes[0] + logical - chunk.start, self.node_bytes)
        return b""


def leaf_items(data: bytes) -> dict[ItemKey, bytes]:
    """Return the items of a leaf by key: object, type, offset."""
    count = min(int.from_bytes(data[96:100], "little"), (len(data) - _HEADER_BYTES) // _ITEM.size)
    found: dict[ItemKey, bytes] = {}
    for number in range(count):
        objectid, sort, key_offset, start, size = _ITEM.unpack_from(data, _HEADER_BYTES + number * _ITEM.size)
        found[(objectid, sort, key_offset)] = data[_HEADER_BYTES + start : _HEADER_BYTES + start + size]
    return found


def _system_chunks(superblock: Any) -> Iterator[Chunk]:
    data = superblock.sys_chunk_array[: superblock.sys_chunk_array_size]
    at = 0
    least = _KEY_BYTES + form.CHUNK.sizeof()
    while at + least <= len(data):
        key = form.KEY.parse(data[at : at + _KEY_BYTES])
        chunk = _chunk(key.offset, data[at + _KEY_BYTES :])
        if chunk is not None:
            yield chunk
        stripes = form.CHUNK.parse(data[at + _KEY_BYTES :]).num_stripes
        at += least + stripes * form.STRIPE.sizeof()


def _chunk(start: int, body: bytes) -> Chunk | None:
    if len(body) < form.CHUNK.sizeof():
        return None
    chunk = form.CHUNK.parse(body)
    size = form.STRIPE.sizeof()
    first = form.CHUNK.sizeof()
    if chunk.type & form.CHUNK_STRIPED or not 0 < chunk.num_stripes <= (len(body) - first) // size:
        return None
    stripes = (form.STRIPE.parse(body[first + number * size :][:size]) for number in range(chunk.num_stripes))
    return Chunk(start, chunk.length, tuple(stripe.offset for stripe in stripes))
