"""Properties against configurations, as data and as a picture; and the numbers in the cells."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from bob.catalogue.places import place_of
from bob.catalogue.probe_files import probe_names
from bob.catalogue.sets import Rows, probes_of
from bob.cli.output import THEME
from bob.crash.coverage import States
from bob.report.columns import columns_of
from bob.report.counts import compact, explored, plural, share, size, torn_states, whole_states
from bob.report.grids import finishes, grids, listed
from bob.report.matrix import matrix
from bob.report.overview import print_overview
from bob.report.page import to_html
from bob.report.rows import FAMILIES
from bob.report.table import print_result
from bob.result import PropertyResult, Result, Verdict, WorkloadResult

from .samples import MORE, SIXTEEN, finer, result


def overview(*results: Result, width: int = 80) -> list[str]:
    """The lines of the overview."""
    file = io.StringIO()
    print_overview(Console(file=file, width=width, highlight=False), results)
    return file.getvalue().splitlines()


def test_the_rows_are_those_of_the_probes() -> None:
    assert tuple(name for names in FAMILIES.values() for name in names) == probe_names()[:13]


def test_matrix() -> None:
    marks = matrix([result("ext4-ordered", "btrfs"), result("xfs")])

    assert list(marks.columns) == ["ext4-ordered", "btrfs", "xfs"]
    assert list(marks.index) == [(family, name) for family, names in FAMILIES.items() for name in names]
    assert marks.loc[("ordering", "append-any")].tolist() == ["×", "×", "×"]
    assert marks["xfs"].value_counts().to_dict() == {"holds": 9, "×": 2, "?": 1, "–": 1}


def test_what_was_not_probed_is_empty() -> None:
    (column,) = result().configurations
    few = replace(column, name="few", properties=column.properties[:1])
    marks = matrix([result(), replace(result(), configurations=(few,))])

    assert marks["few"].tolist() == [""] * 12 + ["holds"]


def test_columns_of_one_name_are_told_apart() -> None:
    old = result()
    new = replace(old, environment=replace(old.environment, kernel="6.12.1"))
    again = replace(old, run=replace(old.run, id="again"))

    assert list(matrix([old, new]).columns) == ["ext4-ordered, 6.1.0-31-amd64", "ext4-ordered, 6.12.1"]
    assert list(matrix([old, again]).columns) == ["ext4-ordered, 20261121T230021-1f2e3d", "ext4-ordered, again"]
    assert matrix([old, old]).shape == (13, 2)


def test_few_configurations_have_their_names() -> None:
    lines = overview(result("ext4-ordered", "btrfs"))

    assert lines[0].split() == ["ext4-ordered", "btrfs"]
    assert lines[2].split() == ["single-sector-overwrite", "·", "·"]
    assert lines[4].split() == ["single-block-overwrite", "×", "×"]
    assert lines[-1] == "× fails   · holds in what was explored (no proof)   ? unknown   – skipped"


def test_sixteen_configurations_fit_eighty_columns() -> None:
    lines = overview(result(*SIXTEEN))

    assert max(map(len, lines)) <= 80
    assert lines[0].split() == list("abcdefghijklmnop")
    assert "a  ext2              i  ext4-datajournal" in lines
    assert "h  ext4-nodelalloc   p  reiserfs-datajournal" in lines


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0"), (4096, "4,096"), (999_999, "999,999"), (2**20, "2^20"), (3 * 2**5000, "2^5002")]
)
def test_compact(count: int, text: str) -> None:
    assert compact(count) == text


HUGE = 2**12321


@pytest.mark.parametrize(
    ("states", "whole", "torn", "phrase"),
    [
        (
            States(812, 4096, 2**88, None, 0, 700),
            *("700 of 4,096", "< 0.1 %", "700 of 4,096 whole states, < 0.1 % of the torn ones"),
        ),
        (
            States(64, 16, 64, "sectors", 0, 16),
            *("all 16", "all", "all 16 whole states, all of the torn ones"),
        ),
        (
            States(16, 16, 16, "sectors", 0, 16),
            *("all 16", "", "all 16 states"),
        ),
        (
            States(212, 212, 2**61, "writes", 0, 212),
            *("all 212", "none", "all 212 whole states, none of the torn ones"),
        ),
        (
            States(2**58 + 212, 212, 2**61, "writes", 0, 212),
            *("all 212", "12 %", "all 212 whole states, 12 % of the torn ones"),
        ),
        (
            States(HUGE - 2**40, 2**40, HUGE, None, 0, 2**39),
            *("50 % of 2^40", "> 99 %", "50 % of 2^40 whole states, > 99 % of the torn ones"),
        ),
        (
            States(HUGE // 1000, HUGE // 10**6, HUGE, None, 0, 2**30),
            *("2^30 of 2^12301", "0.1 %", "2^30 of 2^12301 whole states, 0.1 % of the torn ones"),
        ),
        (
            States(4090, 4096, 2**88, None, 0, 4090, 6, 6),
            *("all 4,090 that mount; 6 do not", "none"),
            "all 4,090 whole states that mount, none of the torn ones; 6 do not mount",
        ),
        (
            States(4090, 4097, 2**88, None, 0, 4090, 6, 6),
            *("4,090 of 4,097; 6 do not mount", "none"),
            "4,090 of 4,097 whole states, none of the torn ones; 6 do not mount",
        ),
        (
            States(4096, 4096, 2**88, "writes", 0, 4096, 9, 0),
            *("all 4,096", "none", "all 4,096 whole states, none of the torn ones; 9 do not mount"),
        ),
        (
            States(0, 16, 64, None, 0, 0),
            *("0 of 16", "none", "0 of 16 whole states, none of the torn ones"),
        ),
        (States(), "", "", ""),
        # Results that are older than the count.
        (States(812, 4096, 2**88), "some of 4,096", "", "some of 4,096 whole states"),
        (
            States(2**60 + 212, 212, 2**61 + 212, "writes"),
            *("all 212", "50 %", "all 212 whole states, 50 % of the torn ones"),
        ),
    ],
)
def test_how_much_was_explored(states: States, whole: str, torn: str, phrase: str) -> None:
    assert (whole_states(states), torn_states(states), explored(states)) == (whole, torn, phrase)


@given(st.integers(0, 3000), st.integers(1, 3000))
def test_a_share_says_all_and_none_only_where_it_is(part: int, every: int) -> None:
    part = min(part, every)
    told = share(part, every)
    assert (told == "all") == (part == every)
    assert (told == "none") == (part == 0)
    if told[0].isdigit():
        number = float(told.removesuffix(" %"))
        assert number <= 100 * part / every < number + (0.1 if number < 1 else 1) + 1e-9
    assert share(part << 9000, every << 9000) == told


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (2**25, "32 MiB"), (2**31, "2 GiB")]
)
def test_size(count: int, text: str) -> None:
    assert size(count) == text


def test_plural() -> None:
    assert [plural(count, "state") for count in (0, 1, 1200)] == ["0 states", "1 state", "1,200 states"]


# Results with hundreds of rows: every cell stands in its grid, in a terminal and on the page, and says how

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
