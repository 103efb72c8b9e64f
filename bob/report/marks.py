"""The printing of tables of marks. A mark, such as × for "fails", is the verdict for one property of one configuration.
A *witness* is a file about one crash state that breaks a property. There are two kinds of tables. One has a row for
each property and a column for each configuration, as in Table 1 of the ALICE paper (OSDI'14). The other, for hundreds
of properties, is a grid. It shows one configuration only, with a cell for each property."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from bob.answer.answer import Answer
from bob.claim.verdict import Verdict
from bob.report.columns import ShownColumn
from bob.report.grids import Grid, finishes
from bob.report.lines import Trimmed, key, letters, narrow_table, print_command, print_indented, print_marks
from bob.report.rows import MARKS, MARKS_IN_GRID, families_of, style

_MEANINGS = {
    Verdict.FAILS: "fails",
    Verdict.HOLDS: "holds in what was explored (not a proof)",
    Verdict.UNKNOWN: "unknown",
    Verdict.SKIPPED: "skipped",
}


def _mark(cell: Answer | None) -> Text:
    return Text() if cell is None else _mark_of(cell.verdict)


def _mark_of(verdict: Verdict) -> Text:
    return Text(MARKS_IN_GRID[verdict], style(verdict))


_LEGEND = Text("   ").join(Text.assemble(_mark_of(verdict), f" {what}") for verdict, what in _MEANINGS.items())


def print_overview(console: Console, columns: Sequence[ShownColumn]) -> None:
    families = [
        (family, [(name, list(map(_mark, cells))) for name, cells in rows]) for family, rows in families_of(columns)
    ]
    print_marks(console, [column.label for column in columns], families, _LEGEND)


def print_grids(console: Console, found: Sequence[Grid], run: Path) -> None:
    """Print the marks of the grids ``found``. Then print for each × which finishes break the property. A finish is how
    a workload ends, such as with an fsync. ``run`` is the folder that has the witnesses."""
    for grid in found:
        _print_grid(console, grid)
        console.print()
    console.print(Trimmed(_LEGEND))
    failing = [cell for grid in found for cell in grid.cells.values() if cell.verdict is Verdict.FAILS]
    if not failing:
        return
    console.print()
    by_finishes: dict[str, list[str]] = {}
    for cell in failing:
        by_finishes.setdefault(finishes(cell) or "fails", []).append(cell.name)
    for how, names in by_finishes.items():
        print_indented(console, f"{MARKS[Verdict.FAILS]} {how}", 0, style(Verdict.FAILS))
        print_indented(console, "  ".join(names), 4)
    witness = next((cell.witness for cell in failing if cell.witness), None)
    if witness:
        console.print()
        print_command(console, run, witness)
        said = "    shows the first of them again; the witnesses of the others are beside it."
        print_indented(console, said, 0, "bob.dim")


def _print_grid(console: Console, grid: Grid) -> None:
    layout = grid.layout
    console.print(Trimmed(Text.assemble((layout.name, "bob.heading"), (f": {layout.asks}", "bob.dim"))))
    first = max(map(len, grid.down)) + 2
    fits = first + sum(len(name) + 2 for name in grid.across) <= console.width
    is_square = layout.down == layout.across
    heads = list(grid.across) if fits else [letters(layout.across.index(name)) for name in grid.across]
    table = narrow_table(heads)
    for down, cells in grid.rows():
        letter = f"{letters(layout.down.index(down))}  " if is_square and not fits else ""
        name = Text.assemble("  ", (letter, "bob.heading"), down)
        table.add_row(name, *map(_mark, cells))
    console.print(Trimmed(table))
    if not fits and not is_square:
        console.print(Trimmed(key(heads, grid.across)))
