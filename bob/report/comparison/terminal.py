"""The printing of a comparison: a grid with a mark for each cell, then each cell that differs, under the reason for the
difference. A cell is the verdict on one property of one configuration."""

from collections.abc import Mapping
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bob.report.comparison import words
from bob.report.comparison.compare import CHANGES, Cell, Comparison, Group, Kind
from bob.report.lines import Trimmed, print_hanging, print_indented, print_marks

_STYLES = {Kind.NEWLY_FAILS: "bob.fails", Kind.NO_LONGER_FAILS: "bob.holds", Kind.UNDECIDED: "bob.unknown"}


def print_comparison(console: Console, comparison: Comparison) -> None:
    _print_sides(console, comparison)
    console.print()
    _print_grid(console, comparison)
    for what, configurations in (("A", comparison.only_a), ("B", comparison.only_b)):
        if configurations:
            console.print()
            print_indented(console, f"not compared, only in {what}: {', '.join(configurations)}", 0, "bob.dim")
    _print_groups(console, comparison, words.HEADINGS)
    console.print()
    print_indented(console, words.counts(comparison), 0)
    if comparison.with_published:
        print_indented(console, words.BLANK_MEANS, 0, "bob.dim")


def print_unexpected(console: Console, comparison: Comparison) -> None:
    """Print the cells of side B whose verdicts differ from the expected ones. Side A has the expected verdicts. Then
    print in one line how many cells are as expected, and how many are not."""
    _print_sides(console, comparison)
    _print_groups(console, comparison, words.UNEXPECTED)
    console.print()
    print_indented(console, words.as_expected(comparison), 0)


def _print_groups(console: Console, comparison: Comparison, headings: Mapping[Kind, str]) -> None:
    for kind, groups in groupby(comparison.groups(), key=lambda group: group.kind):
        if kind in headings:
            console.print()
            print_indented(console, headings[kind], 0, "bob.title")
            for group in groups:
                _print_group(console, comparison, group)


def _print_sides(console: Console, comparison: Comparison) -> None:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for label, side in (("A", comparison.a), ("B", comparison.b)):
        about = words.measured(side.result) if side.result is not None else side.source
        grid.add_row(Text(label, "bob.heading"), Text(side.name), Text(about, "bob.dim"))
    console.print(Trimmed(grid))
    for what, old, new in words.settings(comparison):
        print_indented(console, f"{what}: {old} in A, {new} in B", 3)


def _print_grid(console: Console, comparison: Comparison) -> None:
    columns, cells = comparison.configurations, comparison.by_place
    families = [
        (family, [(name, [_mark(cells.get((column, name))) for column in columns]) for name in names])
        for family, names in comparison.families.items()
    ]
    legend = Text("   ").join(
        Text.assemble((marks, "bob.heading"), f" {what}") for marks, what in words.legend(comparison)
    )
    print_marks(console, columns, families, legend)


def _mark(cell: Cell | None) -> Text:
    return Text(words.mark(cell), _style(cell)) if cell else Text()


def _style(cell: Cell) -> str:
    return "bob.unknown" if cell.unknown else _STYLES.get(cell.kind, "bob.dim")


def _print_group(console: Console, comparison: Comparison, group: Group) -> None:
    if comparison.with_published and group.kind in CHANGES:
        console.print()
        if group.reason is None:
            print_indented(console, words.NOT_EXPLAINED, 2)
        else:
            print_indented(console, group.reason.title, 2, "bob.heading")
            print_indented(console, group.reason.sentences.replace("`", ""), 2)
    for cell in group.cells:
        _print_cell(console, comparison, cell)


def _print_cell(console: Console, comparison: Comparison, cell: Cell) -> None:
    head = Text.assemble((f"{words.mark(cell)} {cell.name}", _style(cell)), f", {cell.configuration}")
    print_indented(console, head, 2)
    for label, side, answer in comparison.answers(cell):
        print_hanging(console, label, "bob.heading", words.says(answer), indent=6, gap=2)
        if cell.kind is Kind.EXPLORED:
            continue
        if found := words.evidence(answer):
            print_indented(console, found, 9)
        if again := words.command(side, answer):
            console.print(Text(" " * 9 + again, "bob.command"), soft_wrap=True)
    for note in cell.notes:
        print_indented(console, note, 6)
