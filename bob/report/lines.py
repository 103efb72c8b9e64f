"""What a terminal has room for.

Lines are broken where people would break them: a list of mount options is one long word, which is broken behind its
commas. Lines have no blanks at their ends, with which rich fills up tables. Heads of columns that do not fit have
letters in their place, and a key to them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text


@dataclass(frozen=True, slots=True)
class Trimmed:
    """What ``inner`` prints, without blanks at the ends of lines."""

    inner: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in console.render_lines(self.inner, options, pad=False):
            while line and not line[-1].text.strip():
                line.pop()
            if line:
                text, style, control = line.pop()
                line.append(Segment(text.rstrip(), style, control))
            yield from line
            yield Segment.line()


def print_indented(console: Console, text: Text, indent: int) -> None:
    """Print ``text`` so many columns from the left, also where it takes several lines."""
    console.print(Trimmed(Padding(text, (0, 0, 0, indent))))


_ENDS = re.compile(r"[,\s]+|$")


def broken(text: Text, width: int) -> Text:
    """``text`` in lines of at most ``width`` columns, each of which ends at a blank or behind a comma where it can."""
    begins, fits, line = [], 0, 0
    for found in _ENDS.finditer(text.plain):
        if fits > line and cell_len(text.plain[line : found.end()].rstrip()) > width:
            begins.append(fits)
            line = fits
        fits = found.end()
    return Text("\n").join(text.divide(begins))


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
