"""The flags that somebody may give to a file or a directory (chattr(1))."""

from __future__ import annotations

_LETTERS = {
    0x1: "s", 0x2: "u", 0x4: "c", 0x8: "S", 0x10: "i", 0x20: "a", 0x40: "d", 0x80: "A", 0x400: "m", 0x4000: "j",
    0x8000: "t", 0x10000: "D", 0x20000: "T", 0x800000: "C", 0x2000000: "x", 0x20000000: "P", 0x40000000: "F",
}  # fmt: skip
"""FS_*_FL in include/uapi/linux/fs.h. What a file system sets by itself, as of how it keeps a file, is none of them."""


def letters(flags: int) -> str:
    """The letters that lsattr(1) has for those of ``flags`` that can be set."""
    return "".join(letter for bit, letter in _LETTERS.items() if flags & bit)
