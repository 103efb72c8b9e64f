"""A comparison for a terminal: the grid of marks, then each cell that differs, under its reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bob.report.comparison.compare import Cell, Comparison, Group, Kind
from bob.report.comparison.sides import Side
from bob.report.comparison.words import (
    BLANK_MEANS,
    HEADINGS,
    NOT_EXPLAINED,
    UNEXPECTED,
    as_expected,
    command,
    counts,
    evidence,
    legend,
    mark,
    measured,
    names,
    says,
    settings,
)
from bob.report.lines import Trimmed, key, letters

_STYLES = {
    Kind.NEWLY_FAILS: "bob.fails",
    Kind.NO_LONGER_FAILS: "bob.holds",
    Kind.UNDECIDED: "bob.unknown",
    Kind.EXPLORED: "bob.dim",
    Kind.SAME: "bob.dim",
    Kind.ONLY_A: "bob.dim",
    Kind.ONLY_B: "bob.dim",
}


def print_comparison(console: Console, comparison: Comparison) -> None:
    """Print everything in ``comparison``."""
    _print_sides(console, comparison)
    console.print()
    _print_grid(console, comparison)
    for what, configurations in (("A", comparison.only_a), ("B", comparison.only_b)):
        if configurations:
            console.print()
            console.print(Trimmed(Text(f"not compared, only in {what}: {names(configurations)}", "bob.dim")))
    _print_groups(console, comparison, HEADINGS)
    console.print()
    console.print(Trimmed(Text(counts(comparison))))
    if comparison.with_published:
        console.print(Trimmed(Text(BLANK_MEANS, "bob.dim")))


def print_unexpected(console: Console, comparison: Comparison) -> None:
    """Print what of B is not as A, a table of what is expected, has it; and in one line how much is."""
    _print_sides(console, comparison)
    _print_groups(console, comparison, UNEXPECTED)
    console.print()
    console.print(Trimmed(Text(as_expected(comparison))))


def _print_groups(console: Console, comparison: Comparison, headings: Mapping[Kind, str]) -> None:
    """Print what differs in the kinds that have a heading."""
    last = None
    for group in comparison.groups():
        if group.kind not in headings:
            continue
        if group.kind is not last:
            console.print()
            console.print(Trimmed(Text(headings[group.kind], "bob.title")))
            last = group.kind
        _print_group(console, comparison, group)


def _print_sides(console: Console, comparison: Comparison) -> None:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for label, side in (("A", comparison.a), ("B", comparison.b)):
        grid.add_row(Text(label, "bob.heading"), Text(side.name), Text(_about(side), "bob.dim"))
    console.print(Trimmed(grid))
    for what, old, new in settings(comparison):
        console.print(Trimmed(Padding(Text(f"{what}: {old} in A, {new} in B"), (0, 0, 0, 3))))


def _about(side: Side) -> str:
    return measured(side.result) if side.result is not None else side.source


def _print_grid(console: Console, comparison: Comparison) -> None:
    columns = comparison.configurations
    marks = {(cell.configuration, cell.name): cell for cell in comparison.cells}
    rows = dict.fromkeys((cell.family, cell.name) for cell in comparison.cells)
    first = max(len(name) for _family, name in rows) + 2
    fits = first + sum(len(name) + 2 for name in columns) <= console.width
    heads = columns if fits else [letters(place) for place in range(len(columns))]
    table = Table(box=None, pad_edge=False, padding=(0, 2 if fits else 1, 0, 0), header_style="")
    table.add_column("", min_width=first - 1, no_wrap=True)
    for head in heads:
        table.add_column(Text(head, "bob.heading"), justify="center", no_wrap=True)
    for family in dict.fromkeys(family for family, _name in rows):
        table.add_row(Text(family, "bob.heading"))
        for name in (name for of, name in rows if of == family):
            found = [marks.get((column, name)) for column in columns]
            table.add_row(f"  {name}", *(Text(mark(cell), _style(cell)) if cell else Text() for cell in found))
    console.print(Trimmed(table))
    console.print()
    if not fits:
        console.print(Trimmed(key(heads, columns)))
        console.print()
    console.print(Trimmed(_legend(comparison)))


def _style(cell: Cell) -> str:
    return "bob.unknown" if cell.unknown else _STYLES[cell.kind]


def _legend(comparison: Comparison) -> Text:
    return Text("   ").join(Text.assemble((marks, "bob.heading"), f" {what}") for marks, what in legend(comparison))


def _print_group(console: Console, comparison: Comparison, group: Group) -> None:
    if comparison.with_published and group.kind in (Kind.NEWLY_FAILS, Kind.NO_LONGER_FAILS):
        console.print()
        if group.reason is None:
            _print_indented(console, NOT_EXPLAINED, 2)
        else:
            console.print(Trimmed(Padding(Text(group.reason.title, "bob.heading"), (0, 0, 0, 2))))
            _print_indented(console, group.reason.sentences.replace("`", ""), 2)
    for cell in group.cells:
        _print_cell(console, comparison, cell)


def _print_cell(console: Console, comparison: Comparison, cell: Cell) -> None:
    head = Text.assemble((f"{mark(cell)} {cell.name}", _style(cell)), f", {cell.configuration}")
    console.print(Trimmed(Padding(head, (0, 0, 0, 2))))
    for label, side, answer in (("A", comparison.a, cell.a), ("B", comparison.b, cell.b)):
        if answer is None:
            continue
        _print_hanging(console, label, says(answer))
        if cell.kind is Kind.EXPLORED:
            continue
        if found := evidence(answer):
            _print_indented(console, found, 9)
        if again := command(side, answer):
            console.print(Text(" " * 9 + again, "bob.command"), soft_wrap=True)
    _print_notes(console, cell.notes)


def _print_notes(console: Console, notes: Sequence[str]) -> None:
    for note in notes:
        _print_indented(console, note, 6)


def _print_hanging(console: Console, label: str, text: str) -> None:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_row(Text(label, "bob.heading"), Text(text))
    console.print(Trimmed(Padding(grid, (0, 0, 0, 6))))


def _print_indented(console: Console, text: str, blanks: int) -> None:
    console.print(Trimmed(Padding(Text(text), (0, 0, 0, blanks))))
