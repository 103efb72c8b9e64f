"""The grids of a configuration for a terminal, and what is not to be seen from their marks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bob.answer.answer import Answer
from bob.claim.verdict import Verdict
from bob.report.grids import Grid, finishes
from bob.report.lines import Trimmed, key, letters
from bob.report.nearby import witness_command
from bob.report.overview import LEGEND, mark
from bob.report.rows import MARKS, style


def print_grids(console: Console, found: Sequence[Grid], run: Path) -> None:
    """Print grids, whose witnesses are in the folder ``run``: the marks, then each × with the finishes that show it."""
    for grid in found:
        _print_grid(console, grid)
        console.print()
    console.print(Trimmed(LEGEND))
    failing = [cell for grid in found for cell in grid.cells.values() if cell.verdict is Verdict.FAILS]
    if not failing:
        return
    console.print()
    for how, several in _by_finishes(failing).items():
        console.print(Trimmed(Text(f"{MARKS[Verdict.FAILS]} {how}", style(Verdict.FAILS))))
        console.print(Trimmed(Padding(Text("  ".join(several)), (0, 0, 0, 4))))
    witness = next((cell.witness for cell in failing if cell.witness), None)
    if witness:
        console.print()
        console.print(Text(f"    {witness_command(run, witness)}", "bob.command"), soft_wrap=True)
        console.print(
            Trimmed(Text("    shows the first of them again; the witnesses of the others are beside it.", "bob.dim"))
        )


def _by_finishes(failing: Iterable[Answer]) -> dict[str, list[str]]:
    """The names of cells by the finishes that they fail with."""
    names: dict[str, list[str]] = {}
    for cell in failing:
        names.setdefault(finishes(cell) or "fails", []).append(cell.name)
    return names


def _print_grid(console: Console, grid: Grid) -> None:
    layout = grid.layout
    console.print(Trimmed(Text.assemble((layout.name, "bob.heading"), (f": {layout.asks}", "bob.dim"))))
    first = max(map(len, grid.down)) + 2
    fits = first + sum(len(name) + 2 for name in grid.across) <= console.width
    is_square = layout.down == layout.across
    heads = list(grid.across) if fits else [letters(layout.across.index(name)) for name in grid.across]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    table.add_column("", no_wrap=True)
    for head in heads:
        table.add_column(Text(head, "bob.heading"), justify="center", no_wrap=True)
    for down, cells in grid.rows():
        letter = f"{letters(layout.down.index(down))}  " if is_square and not fits else ""
        table.add_row(Text.assemble(("  ", ""), (letter, "bob.heading"), down), *map(_mark, cells))
    console.print(Trimmed(table))
    if not fits and not is_square:
        console.print(Trimmed(key(heads, list(grid.across))))


def _mark(cell: Answer | None) -> Text:
    return mark(MARKS[cell.verdict]) if cell else Text()
