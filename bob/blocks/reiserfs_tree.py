"""The tree of reiserfs: its nodes, and the items of its leaves."""

import struct
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from bob.blocks import reiserfs_format as form
from bob.blocks.data import writers_of
from bob.blocks.ext_directories import printable
from bob.blocks.items import ItemKey

# A leaf has up to 160 items, and construct takes 20 us for each. So this parses the fields of form.ITEM_HEAD.
_ITEM_HEAD = struct.Struct("<IIQHHHH")
# Reiserfs_de_head, at the start of a directory item; its last fields are location and state.
_ENTRY_HEAD = struct.Struct("<IIIHH")
_MOST_NODES = 1 << 14


def level_of(block: bytes) -> int:
    """Return the level of a tree node (1 for a leaf), or 0 if the block is not a node. The checks are those of
    is_leaf and is_internal in the kernel (stree.c)."""
    head = form.BLOCK_HEAD.parse(block[: form.BLOCK_HEAD_BYTES].ljust(form.BLOCK_HEAD_BYTES, b"\0"))
    if not form.LEAF_LEVEL <= head.level <= form.HIGHEST_LEVEL or head.free_space > len(block):
        return 0
    if head.level > form.LEAF_LEVEL:
        used = form.BLOCK_HEAD_BYTES + head.nr_item * form.KEY_BYTES + (head.nr_item + 1) * form.CHILD.sizeof()
        return head.level if head.nr_item and used + head.free_space == len(block) else 0
    heads = head.nr_item * _ITEM_HEAD.size
    if form.BLOCK_HEAD_BYTES + heads > len(block):
        return 0
    bodies = 0
    stop = len(block)
    for _key, start, length in _heads(block):
        if start + length != stop:
            return 0
        stop = start
        bodies += length
    return form.LEAF_LEVEL if form.BLOCK_HEAD_BYTES + heads + bodies + head.free_space == len(block) else 0


def leaf_items(block: bytes) -> dict[ItemKey, bytes]:
    """Return the items of a leaf by key (directory, object, offset, type). The result has only the bodies of the items,
    not the other fields of their headers (such as a count of entries)."""
    return {key: block[start : start + length] for key, start, length in _heads(block)}


def leaves(read: Callable[[int], bytes], root: int) -> Iterator[dict[ItemKey, bytes]]:
    """Yield the items of each undamaged leaf below the tree block ``root``, in order."""
    yield from _leaves(read, root, form.HIGHEST_LEVEL + 1, [_MOST_NODES])


def blocks_of(items: Mapping[ItemKey, bytes]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for key, body in items.items():
        if key[3] == form.INDIRECT:
            pointers = np.frombuffer(body[: len(body) // 4 * 4], dtype="<u4")
            found.setdefault(key[1], []).extend(pointers[pointers > 0].tolist())
    return found


def notes(
    before: Mapping[ItemKey, bytes], changed: Mapping[ItemKey, bytes], gone: Mapping[ItemKey, bytes]
) -> tuple[str, ...]:
    """Return in words what a write of a leaf changes: names, and file data that is stored in the leaf. ``changed`` has
    the items that are new or have new contents, and ``before`` the old contents of these items. ``gone`` has the items
    that the write removes."""
    old = _names({**before, **gone})
    new = _names(changed)
    sorts = (("adds", sorted(new - old)), ("removes", sorted(old - new)))
    found = [f"{verb} {', '.join(map(printable, names))}" for verb, names in sorts if names]
    told = writers_of(b"".join(body for key, body in changed.items() if key[3] == form.DIRECT))
    return (f"tail of {told}", *found) if told else tuple(found)


def _names(items: Mapping[ItemKey, bytes]) -> set[bytes]:
    found = set()
    for key, body in items.items():
        if key[3] != form.DIRECTORY:
            continue
        stop = len(body)
        # The heads of the entries end where the first name begins: that of the last entry, which is last in the item.
        count = 0
        while (count + 1) * _ENTRY_HEAD.size <= stop:
            location, state = _ENTRY_HEAD.unpack_from(body, count * _ENTRY_HEAD.size)[3:]
            if not (count + 1) * _ENTRY_HEAD.size <= location < stop:
                break
            name = body[location:stop].split(b"\0", 1)[0]
            if state & form.ENTRY_VISIBLE and name not in (b".", b".."):
                found.add(name)
            stop = location
            count += 1
    return found


def _heads(block: bytes) -> Iterator[tuple[ItemKey, int, int]]:
    count = int.from_bytes(block[2:4], "little")
    for number in range(min(count, (len(block) - form.BLOCK_HEAD_BYTES) // _ITEM_HEAD.size)):
        at = form.BLOCK_HEAD_BYTES + number * _ITEM_HEAD.size
        directory, inode, offset, _count, length, start, version = _ITEM_HEAD.unpack_from(block, at)
        if version:
            sort, offset = offset >> 60, offset & ((1 << 60) - 1)
        else:
            sort, offset = form.OLD_TYPES.get(offset >> 32, -1), offset & 0xFFFFFFFF
        yield (directory, inode, offset, sort), start, length


def _leaves(read: Callable[[int], bytes], block: int, above: int, left: list[int]) -> Iterator[dict[ItemKey, bytes]]:
    data = read(block)
    level = level_of(data)
    left[0] -= 1
    if not 0 < level < above or left[0] < 0:
        return
    if level == form.LEAF_LEVEL:
        yield leaf_items(data)
        return
    count = int.from_bytes(data[2:4], "little")
    for number in range(count + 1):
        at = form.BLOCK_HEAD_BYTES + count * form.KEY_BYTES + number * form.CHILD.sizeof()
        yield from _leaves(read, form.CHILD.parse(data[at : at + form.CHILD.sizeof()]).block, level, left)
