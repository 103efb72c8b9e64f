"""Heads of columns that do not fit: letters in their place, and a key to them."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase

from rich.table import Table
from rich.text import Text


def letters(place: int) -> str:
    """a ... z, then aa, ab ..."""
    more, letter = divmod(place, len(ascii_lowercase))
    return (letters(more - 1) if more else "") + ascii_lowercase[letter]


def key(heads: Sequence[str], names: Sequence[str]) -> Table:
    """Which letter is which configuration, in two columns read downwards."""
    table = Table.grid(padding=(0, 2, 0, 0))
    half = (len(names) + 1) // 2
    pairs = [(Text(head, "bob.heading"), Text(name)) for head, name in zip(heads, names, strict=True)]
    for row in range(half):
        left, right = pairs[row], pairs[row + half] if row + half < len(pairs) else (Text(), Text())
        table.add_row(*left, *right)
    return table
