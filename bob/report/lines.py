"""The printing of text and tables. Long lines are wrapped at blanks and commas, and no line ends with a blank. The
caller makes the Console (of the library rich), and sets its width and the colours of the styles ``bob.*``."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from bob.report.nearby import witness_command


@dataclass(frozen=True, slots=True)
class Trimmed:
    """A renderable that shows ``inner`` without the blanks that rich adds at the ends of lines in tables."""

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


def longest_part(texts: Iterable[str], *, of_words: bool) -> int:
    """Return the width on a terminal of the longest word in ``texts``, or of the longest text."""
    return max((cell_len(part) for text in texts for part in (text.split() if of_words else [text])), default=0)


def print_indented(console: Console, what: RenderableType, indent: int, style: str = "") -> None:
    """Print ``what`` with each line indented by ``indent`` columns. If ``what`` is a str, print it in ``style``."""
    shown = Text(what, style) if isinstance(what, str) else what
    console.print(Trimmed(Padding(shown, (0, 0, 0, indent))))


def print_hanging(console: Console, mark: str, style: str, text: str, indent: int = 0, gap: int = 1) -> None:
    """Print ``text`` after its ``mark``. Further lines are aligned with the text."""
    grid = Table.grid(padding=(0, gap, 0, 0))
    grid.add_row(Text(mark, style), Text(text))
    print_indented(console, grid, indent)


def print_title(console: Console, *parts: tuple[str, str] | str) -> None:
    """Print the ``parts`` of a title in sequence. A part is a text with its style, or a text alone. A long list of
    mount options is wrapped after commas."""
    console.print(Trimmed(broken(Text.assemble(*parts), console.width)))


def print_command(console: Console, run: Path, witness: str | None, indent: int = 4) -> None:
    """Print the command that replays the witness (the file of a recorded crash) at the path ``witness`` in ``run``.
    Print nothing without ``witness``. The command stands on one line, so that a user can copy it into a shell."""
    if command := witness_command(run, witness):
        console.print(Text(" " * indent + command, "bob.command"), soft_wrap=True)


_ENDS = re.compile(r"[,\s]+|$")


def broken(text: Text, width: int) -> Text:
    """Return ``text`` in lines of at most ``width`` columns, broken at blanks or after commas if possible."""
    begins, fits, line = [], 0, 0
    for found in _ENDS.finditer(text.plain):
        if fits > line and cell_len(text.plain[line : found.end()].rstrip()) > width:
            begins.append(fits)
            line = fits
        fits = found.end()
    return Text("\n").join(text.divide(begins))


def letters(place: int) -> str:
    """Return the letters that stand for the column with the index ``place``: a for 0, z for 25, aa for 26."""
    more, letter = divmod(place, len(ascii_lowercase))
    return (letters(more - 1) if more else "") + ascii_lowercase[letter]


def narrow_table(
    heads: Iterable[str],
    style: str = "bob.heading",
    justify: JustifyMethod = "center",
    padding: int = 2,
    first: int | None = None,
) -> Table:
    """Return a table without rows. Its first column is for the names of rows, and is at least ``first`` characters
    wide. Further columns have the headings ``heads``."""
    table = Table(box=None, pad_edge=False, padding=(0, padding, 0, 0), header_style="")
    table.add_column("", min_width=first, no_wrap=True)
    for head in heads:
        table.add_column(Text(head, style), justify=justify, no_wrap=True)
    return table


MarkRows = Iterable[tuple[str, Sequence[Text]]]


def print_marks(console: Console, names: Sequence[str], families: Sequence[tuple[str, MarkRows]], legend: Text) -> None:
    """Print a table of marks with a column for each of ``names``. If the names do not fit into the width of the
    console, letters stand above the columns. Below the table, a list then gives the name for each letter."""
    rows = [(family, list(marked)) for family, marked in families]
    first = max(len(name) for _family, marked in rows for name, _marks in marked) + 2
    fits = first + sum(len(name) + 2 for name in names) <= console.width
    heads = names if fits else [letters(place) for place in range(len(names))]
    table = narrow_table(heads, padding=2 if fits else 1, first=first - 1)
    for family, marked in rows:
        table.add_row(Text(family, "bob.heading"))
        for name, marks in marked:
            table.add_row(f"  {name}", *marks)
    console.print(Trimmed(table))
    console.print()
    if not fits:
        console.print(Trimmed(key(heads, names)))
        console.print()
    console.print(Trimmed(legend))


def key(heads: Sequence[str], names: Sequence[str]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    half = (len(names) + 1) // 2
    pairs = [(Text(head, "bob.heading"), Text(name)) for head, name in zip(heads, names, strict=True)]
    for row in range(half):
        left, right = pairs[row], pairs[row + half] if row + half < len(pairs) else (Text(), Text())
        table.add_row(*left, *right)
    return table
