"""Names (short descriptions) for writes of btrfs on one device: superblocks, tree blocks with their changes, and
data."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bob.blocks import btrfs_format as form
from bob.blocks.btrfs_tree import Trees, leaf_items
from bob.blocks.data import data_part, rest_part, writers_of
from bob.blocks.ext_directories import printable
from bob.blocks.items import ItemKey, Items
from bob.blocks.medium import OverlayMedium
from bob.blocks.owners import MOST_BLOCKS, Owners
from bob.blocks.parts import UNKNOWN, BlockKind, WritePart, unknown
from bob.blocks.summary import listed
from bob.trace.model import SECTOR_BYTES

_FILES = ("fs", "log")  # trees that come first in a list of names

_LONGEST_LIST = 26  # characters for the names of trees


@dataclass(frozen=True, slots=True)
class TreeBlock:
    """One tree block in a write, and what the write changes in it. btrfs may store a tree block in several places.
    ``copy`` is False for the block in the first of these places, and True for its copies in other places."""

    header: Any = field(repr=False)
    copy: bool
    inodes: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def tree(self) -> str:
        owner = self.header.owner
        if form.FIRST_FREE_OBJECT <= owner <= form.LAST_FREE_OBJECT:
            return f"subvolume {owner}"
        return form.TREES.get(owner, f"{owner}")


class Btrfs:
    def __init__(self, medium: OverlayMedium) -> None:
        superblock = _superblock(medium.read(form.SUPERBLOCKS_AT[0], form.SUPERBLOCK_BYTES))
        if superblock is None:
            raise ValueError("not a superblock of btrfs")
        self.owners = Owners()
        self._medium = medium
        self._trees = Trees(medium, superblock)
        self._chunk_root = superblock.chunk_root
        self._files = Items()
        self._told: dict[bytes, tuple[tuple[int, ...], tuple[str, ...]]] = {}
        self._leaves: list[bytes] = []
        root = self._trees.fs_tree(superblock)
        for _owner, items in self._trees.leaves(root) if root is not None else ():
            self._learn(-1, items)

    def parts(self, index: int, at: int, data: bytes) -> Sequence[WritePart]:
        self._leaves = []
        found: list[WritePart] = []
        blocks: list[TreeBlock] = []
        for piece in self._pieces(index, at, data):
            if isinstance(piece, TreeBlock):
                blocks.append(piece)
                continue
            found += _tree_part(blocks)
            blocks = []
            found.append(piece)
        return found + _tree_part(blocks)

    def landed(self, index: int, at: int, data: bytes) -> None:
        """Learn from a write that is now on the device. The leaves in the write show the blocks of files. If the
        write is the primary superblock and has a new root of the chunk tree, bob reads the chunks again."""
        for leaf in self._leaves:
            if int.from_bytes(leaf[88:96], "little") == form.FS_TREE:
                self._learn(index, leaf_items(leaf))
            else:
                self._claim(index, leaf_items(leaf), {})
        self._leaves = []
        if at == form.SUPERBLOCKS_AT[0]:
            superblock = _superblock(data)
            if superblock is not None and superblock.chunk_root != self._chunk_root:
                self._chunk_root = superblock.chunk_root
                self._trees.follow(superblock)

    def _pieces(self, index: int, at: int, data: bytes) -> Iterator[WritePart | TreeBlock]:
        position = 0
        trees = self._trees
        while position < len(data):
            here = data[position : position + trees.node_bytes]
            physical = at + position
            if physical in form.SUPERBLOCKS_AT and _superblock(here) is not None:
                yield _superblock_part(form.SUPERBLOCKS_AT.index(physical), _superblock(here))
                position += form.SUPERBLOCK_BYTES
                continue
            place = trees.place(physical)
            if trees.is_block(here):
                yield self._tree_block(here, place is not None and place.copy > 0)
                position += trees.node_bytes
                continue
            here = here[: trees.sector_bytes]
            block = None if place is None else place.logical // trees.sector_bytes
            yield data_part(here, position // SECTOR_BYTES, block) or self._rest(index, here, physical, block)
            position += trees.sector_bytes

    def _rest(self, index: int, here: bytes, physical: int, block: int | None) -> WritePart:
        if block is None:
            return UNKNOWN
        owned = self.owners.owner(index, block) is not None
        start = physical - block * self._trees.sector_bytes % self._trees.node_bytes
        if not owned and self._trees.is_block(self._medium.read(start, 512)):
            return WritePart(BlockKind.METADATA, "rest of a tree block")
        return rest_part(here, block) if owned else unknown(block)

    def _tree_block(self, data: bytes, copy: bool) -> TreeBlock:
        header = form.HEADER.parse(data)
        is_leaf = not header.level and len(data) >= self._trees.node_bytes
        if not is_leaf or header.owner not in (form.FS_TREE, form.LOG_TREE):
            return TreeBlock(header, copy)
        # All copies of a block make the same changes, whichever copy comes first.
        if header.csum not in self._told:
            items = leaf_items(data)
            changed, gone = self._files.differences(items)
            if header.owner == form.LOG_TREE:
                gone = {}
            inodes = {key[0] for key in (*changed, *gone) if form.FIRST_FREE_OBJECT <= key[0] <= form.LAST_FREE_OBJECT}
            self._told[header.csum] = (tuple(sorted(inodes)), _notes(changed, gone))
            self._leaves.append(data)
        return TreeBlock(header, copy, *self._told[header.csum])

    def _learn(self, index: int, items: Mapping[ItemKey, bytes]) -> None:
        _changed, gone = self._files.differences(items)
        self._files.update(items)
        self._claim(index, items, gone)

    def _claim(self, index: int, items: Mapping[ItemKey, bytes], gone: Mapping[ItemKey, bytes]) -> None:
        inodes = {key[0] for key in (*items, *gone) if key[1] == form.EXTENT_DATA_KEY}
        for inode in inodes:
            known = self._files.of((inode, form.EXTENT_DATA_KEY, 0), (inode, form.EXTENT_DATA_KEY, 1 << 64))
            own = {key: body for key, body in items.items() if key[:2] == (inode, form.EXTENT_DATA_KEY)}
            blocks: dict[int, str] = {}
            for body in {**known, **own}.values():
                if len(blocks) < MOST_BLOCKS:
                    blocks.update(dict.fromkeys(_extent(body, self._trees.sector_bytes), "data"))
            self.owners.remap(index, inode, blocks)


def _superblock(data: bytes) -> Any:
    if len(data) < form.SUPERBLOCK_BYTES or data[64:72] != form.MAGIC:
        return None
    superblock = form.SUPERBLOCK.parse(data)
    sizes = (superblock.nodesize, superblock.sectorsize)
    return superblock if all(512 <= size <= 65536 and size & (size - 1) == 0 for size in sizes) else None


def _superblock_part(mirror: int, superblock: Any) -> WritePart:
    what = f"superblock, mirror {mirror}" if mirror else "superblock"
    log = ", with a log tree" if superblock.log_root else ""
    return WritePart(BlockKind.SUPERBLOCK, f"{what}, generation {superblock.generation}{log}")


def _tree_part(blocks: Sequence[TreeBlock]) -> list[WritePart]:
    if not blocks:
        return []
    header = blocks[0].header
    log = all(block.header.owner == form.LOG_TREE for block in blocks)
    if len(blocks) == 1:
        items = f"{header.nritems} item{'s' * (header.nritems != 1)}"
        height = f"node, level {header.level}" if header.level else "leaf"
        what = f"{blocks[0].tree} tree {height}, generation {header.generation}, {items}"
    else:
        names = sorted(dict.fromkeys(block.tree for block in blocks), key=lambda name: name not in _FILES)
        generation = max(block.header.generation for block in blocks)
        told = listed(names, _LONGEST_LIST) if len(names) > 3 else " and ".join((", ".join(names[:-1]), names[-1]))
        trees = f"{told.removeprefix(' and ')} tree{'s' * (len(names) > 1)}"
        what = f"{len(blocks)} tree blocks of {trees}, generation {generation}"
    if blocks[0].copy:
        what += ", copy"
    inodes = tuple(sorted({inode for block in blocks for inode in block.inodes}))
    notes = tuple(note for block in blocks for note in block.notes)
    kind = BlockKind.JOURNAL if log else BlockKind.METADATA
    return [WritePart(kind, what, inodes=inodes, notes=notes, blocks=len(blocks))]


def _extent(body: bytes, sector_bytes: int) -> range:
    if len(body) < form.INLINE_AT + form.FILE_EXTENT_PLACE.sizeof():
        return range(0)
    if form.FILE_EXTENT.parse(body).type == form.FILE_EXTENT_INLINE:
        return range(0)
    place = form.FILE_EXTENT_PLACE.parse(body[form.INLINE_AT :])
    if not place.disk_bytenr:
        return range(0)
    first = place.disk_bytenr // sector_bytes
    return range(first, first + min(place.disk_num_bytes, 1 << 30) // sector_bytes)


def _notes(changed: Mapping[ItemKey, bytes], gone: Mapping[ItemKey, bytes]) -> tuple[str, ...]:
    notes = []
    for verb, items in (("adds", changed), ("removes", gone)):
        names = [_entry(body) for key, body in items.items() if key[1] == form.DIRECTORY_INDEX_KEY]
        notes += [f"{verb} {', '.join(name for name in names if name)}"] if any(names) else []
    inline = b"".join(
        body[form.INLINE_AT :]
        for key, body in changed.items()
        if key[1] == form.EXTENT_DATA_KEY and body[form.INLINE_AT - 1 : form.INLINE_AT] == b"\0"
    )
    told = writers_of(inline)
    return (f"data of {told}", *notes) if told else tuple(notes)


def _entry(body: bytes) -> str:
    size = form.DIRECTORY_ITEM.sizeof()
    if len(body) < size:
        return ""
    return printable(body[size : size + form.DIRECTORY_ITEM.parse(body).name_len])
