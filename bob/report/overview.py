"""Several configurations side by side, as in Table 1, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bob.answer.result import Result
from bob.claim.verdict import Verdict
from bob.report.lines import Trimmed, key, letters
from bob.report.matrix import matrix
from bob.report.rows import MARKS, style

_HOLDS = "·"
_STYLES = {mark: style(verdict) for verdict, mark in MARKS.items()}
_LEGEND = (
    (MARKS[Verdict.FAILS], "fails"),
    (_HOLDS, "holds in what was explored (no proof)"),
    (MARKS[Verdict.UNKNOWN], "unknown"),
    (MARKS[Verdict.SKIPPED], "skipped"),
)


def print_overview(console: Console, results: Sequence[Result]) -> None:
    """Print the verdicts of all configurations in ``results``, one column each; letters where names do not fit."""
    marks = matrix(results)
    names = [str(name) for name in marks.columns]
    first = max(len(str(name)) for _family, name in marks.index) + 2
    fits = first + sum(len(name) + 2 for name in names) <= console.width
    heads = names if fits else [letters(place) for place in range(len(names))]
    table = Table(box=None, pad_edge=False, padding=(0, 2 if fits else 1, 0, 0), header_style="")
    table.add_column("", min_width=first - 1, no_wrap=True)
    for head in heads:
        table.add_column(Text(head, "bob.heading"), justify="center", no_wrap=True)
    for family, rows in marks.groupby(level=0, sort=False):
        table.add_row(Text(str(family), "bob.heading"))
        for (_family, name), values in zip(rows.index, rows.to_numpy().tolist(), strict=True):
            table.add_row(f"  {name}", *map(mark, values))
    console.print(Trimmed(table))
    console.print()
    if not fits:
        console.print(Trimmed(key(heads, names)))
        console.print()
    console.print(Trimmed(LEGEND))


def mark(value: str) -> Text:
    """A mark of :data:`bob.report.rows.MARKS` as it stands in a narrow column."""
    shown = _HOLDS if value == MARKS[Verdict.HOLDS] else value
    return Text(shown, _style(shown))


def _style(shown: str) -> str:
    return _STYLES.get(MARKS[Verdict.HOLDS] if shown == _HOLDS else shown, "")


LEGEND = Text("   ").join(Text.assemble((shown, _style(shown)), f" {what}") for shown, what in _LEGEND)
"""What the marks mean, in one line."""
