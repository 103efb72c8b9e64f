"""Directory blocks of ext2, ext3 and ext4, which bob recognises by their chain of entries."""

import struct

from bob.blocks import ext_format as form

# A chain has up to 340 entries in 4 KiB, and construct takes 10 us for each. So this parses the fields of form.DIRENT.
_DIRENT = struct.Struct("<" + "".join(member.subcon.fmtstr[1:] for member in form.DIRENT.subcons))


def entries(block: bytes, inodes: int) -> dict[bytes, int] | None:
    """Return the names in a directory block, with the inode number of each. Return None if the block is not a directory
    block. In a directory block, the chain of entries ends where the block ends. ``inodes`` is the number of inodes of
    the file system."""
    found: dict[bytes, int] = {}
    at = 0
    while at < len(block):
        if at + _DIRENT.size > len(block):
            return None
        inode, length, name_length, file_type = _DIRENT.unpack_from(block, at)
        length = length or (65536 if len(block) == 65536 else 0)
        if length < _DIRENT.size or length % 4 or at + length > len(block) or inode > inodes:
            return None
        if inode:
            name = block[at + _DIRENT.size : at + _DIRENT.size + name_length]
            if not name_length or name_length + _DIRENT.size > length or file_type > 8 or b"\0" in name or b"/" in name:
                return None
            found[name] = inode
        at += length
    return found


def is_index(block: bytes) -> bool:
    """Return whether a block is a root or node of a hashed directory's index. :func:`entries` cannot tell such a block
    from an ordinary directory block."""
    first = _DIRENT.unpack_from(block)
    if first[0] == 0 and first[1] == len(block) and not first[2]:
        counts = form.DX_COUNT_LIMIT.parse(block[form.DX_NODE_AT :])
        return bool(0 < counts.count <= counts.limit and (len(block) - form.DX_NODE_AT) // 8 - 1 <= counts.limit)
    if block[form.DIRENT.sizeof() :][:1] != b"." or first[1] != 12:
        return False
    second = _DIRENT.unpack_from(block, 12)
    info = form.DX_ROOT_INFO.parse(block[form.DX_ROOT_AT :])
    return bool(second[1] == len(block) - 12 and info.reserved == 0 and info.info_length == 8)


def changes(before: dict[bytes, int] | None, after: dict[bytes, int]) -> tuple[str, ...]:
    """Return the names that a directory block gains and loses: ("adds a, b", "removes c", "changes d"). ``before`` and
    ``after`` have the block's names with their inode numbers, before a write and after it."""
    old = before or {}
    sorts = (
        ("adds", [name for name in after if name not in old and name not in (b".", b"..")]),
        ("removes", [name for name in old if name not in after]),
        ("changes", [name for name, inode in after.items() if old.get(name, inode) != inode]),
    )
    return tuple(f"{verb} {_told(names)}" for verb, names in sorts if names)


def _told(names: list[bytes]) -> str:
    shown = [printable(name) for name in names[:3]]
    return ", ".join(shown) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def printable(name: bytes) -> str:
    """Return a file name for people, in at most 24 characters."""
    text = "".join(char if char.isprintable() else "?" for char in name.decode("utf-8", "replace"))
    return text if len(text) <= 24 else text[:21] + "..."
