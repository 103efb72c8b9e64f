"""Results with hundreds of rows: every cell stands in its grid, in a terminal and on the page, and says how."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from bob.catalogue.places import place_of
from bob.catalogue.sets import Rows, probes_of
from bob.cli.output import THEME
from bob.crash.coverage import States
from bob.report.columns import columns_of
from bob.report.grids import finishes, grids, listed
from bob.report.page import to_html
from bob.report.table import print_result
from bob.result import PropertyResult, Result, Verdict, WorkloadResult

from .samples import MORE, finer, result

FINER = [rows for rows in Rows if rows is not Rows.TABLE1]
SIZES = {Rows.PAIRS: [(11, 10), (14, 14), (14, 14)], Rows.DURABILITY: [(9, 12)], Rows.UNITS: [(14, 3)]}


def printed(found: Result, width: int) -> str:
    file = io.StringIO()
    console = Console(file=file, width=width, theme=THEME, highlight=False, color_system=None)
    print_result(console, found, Path("run"))
    return file.getvalue()


@pytest.mark.parametrize("rows", FINER)
def test_every_row_stands_somewhere_and_no_two_in_one_place(rows: Rows) -> None:
    names = [probe.property.name for probe in probes_of(rows)]
    places = [place_of(name) for name in names]
    assert None not in places
    assert len(set(places)) == len(set(names)) == len(names)


@pytest.mark.parametrize(
    "name", [*(probe.property.name for probe in probes_of(Rows.TABLE1)), "mine", "a.b", "data.fsync-file", "sync.sync"]
)
def test_other_rows_stand_in_no_grid(name: str) -> None:
    assert place_of(name) is None


@pytest.mark.parametrize("rows", FINER)
def test_the_grids_have_all_cells(rows: Rows) -> None:
    [column] = finer(rows).configurations
    found = grids(column)
    assert [(len(grid.down), len(grid.across)) for grid in found] == SIZES[rows]
    assert {cell.name for grid in found for _down, cells in grid.rows() for cell in cells if cell} == {
        cell.name for cell in column.properties
    }
    assert not listed(column).properties


def test_the_rows_of_table_1_are_in_no_grid() -> None:
    [column] = result().configurations
    assert not grids(column)
    assert listed(column) == column


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("rows", FINER)
def test_a_terminal_shows_each_mark_and_each_failing_finish(rows: Rows, width: int) -> None:
    found = finer(rows)
    text = printed(found, width)
    assert max(map(len, text.splitlines())) <= width
    [column] = found.configurations
    for cell in column.properties:
        assert (cell.name in re.split(r"[\s:]+", text)) == (cell.verdict is not Verdict.HOLDS)
    assert "? " + column.properties[0].name + ": the guest was lost" in text
    for grid in grids(column):
        place = next(number for number, line in enumerate(text.splitlines()) if line.startswith(f"{grid.layout.name}:"))
        body = text.splitlines()[place : place + len(grid.down) + 4]
        for down, cells in grid.rows():
            [line] = [line for line in body if re.match(rf"  (\w  )?{down} ", line)]
            marks = line.partition(f"  {down} ")[2].split()
            assert marks == [{"holds": "·", "fails": "×", "unknown": "?"}[cell.verdict.value] for cell in cells if cell]


def test_several_configurations_have_their_grids_one_below_the_other() -> None:
    text = printed(finer(Rows.DURABILITY, "ext4-ordered", "xfs"), 120)
    assert text.count("durability: when the call") == 2
    assert text.index("ext4-ordered") < text.index("xfs")


def test_the_page_has_a_mark_for_each_cell_that_leads_to_its_evidence() -> None:
    found = finer(Rows.PAIRS, "ext4-ordered", "xfs")
    page = to_html(columns_of([(found, Path("run"))]))
    assert page.count('<table class="grid finer">') == 6
    assert '<table class="grid single">' not in page
    for column in found.configurations:
        for cell in column.properties:
            anchor = f"{column.name}--{cell.name.replace('.', '-')}"
            assert page.count(f'href="#{anchor}"') == 2  # in the grid, and in its own heading
            assert page.count(f'id="{anchor}"') == 1
    assert "fails; with natural" in page
    assert "It fails with natural." in page


@pytest.mark.parametrize(
    ("verdicts", "said"), [("fh", "with natural"), ("ff", "with every finish"), ("hh", ""), ("hu", "")]
)
def test_which_finishes_fail(verdicts: str, said: str) -> None:
    words = {"f": Verdict.FAILS, "h": Verdict.HOLDS, "u": Verdict.UNKNOWN}
    asked = [
        WorkloadResult("w", finish, words[letter], States())
        for finish, letter in zip(("natural", "sync"), verdicts, strict=True)
    ]
    assert finishes(PropertyResult("x", "ordering", Verdict.FAILS, States(), tuple(asked))) == said


def test_a_row_of_a_grid_that_only_a_search_broke_is_told_as_such() -> None:
    shown = finer(Rows.DURABILITY)
    [column] = shown.configurations
    first = next(cell for cell in column.properties if cell.verdict is Verdict.HOLDS)
    broken = replace(first, verdict=Verdict.FAILS, searched=replace(MORE, failing=2), evidence="gone")
    cells = tuple(broken if cell is first else cell for cell in column.properties)
    shown = replace(shown, configurations=(replace(column, properties=cells),))
    text = " ".join(printed(shown, 100).split())
    assert f"× found by bob search {first.name} " in text
    assert f"searched: {first.name}: 12,000 more workloads, 2 fail; whole states: all 2^31" in text
    assert "Found by bob search, not by the 2 workloads of the probe; 12,000 more workloads, 2 fail" in to_html(
        columns_of([(shown, Path("run"))])
    )
