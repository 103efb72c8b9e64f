"""Properties against configurations, as data and as a picture; and the numbers in the cells."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path, PurePosixPath
from posixpath import normpath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from rich.console import Console

from bob.answer.answer import Answer, ByRecording
from bob.answer.result import Result
from bob.catalogue.places import place_of
from bob.catalogue.probe_files import probe_names
from bob.catalogue.sets import RowSet, probes_of
from bob.claim.verdict import Verdict
from bob.cli.output import THEME
from bob.crash.coverage import NOTHING, States
from bob.report.columns import ShownColumn, columns_of
from bob.report.counts import explored, torn_states, whole_states
from bob.report.frames import matrix
from bob.report.grids import finishes, grids, listed
from bob.report.marks import print_overview
from bob.report.page import pages, shown_apart, to_html
from bob.report.rows import FAMILIES
from bob.report.shown_way import INDEX
from bob.report.table import print_result
from bob.text import compact, plural, share, size
from bob.witness.document import read
from wording import line_with

from .html_pages import NASTY, Page, parse
from .samples import SIXTEEN, finer, result, sixteen
from .witnesses import put, witness


def columns(*results: Result) -> list[ShownColumn]:
    return columns_of((one, Path()) for one in results)


def overview(*results: Result, width: int = 80) -> list[str]:
    """The lines of the overview."""
    file = io.StringIO()
    print_overview(Console(file=file, width=width, highlight=False), columns(*results))
    return file.getvalue().splitlines()


def test_the_rows_are_those_of_the_probes() -> None:
    assert tuple(name for names in FAMILIES.values() for name in names) == probe_names()[:13]


def test_matrix() -> None:
    marks = matrix(columns(result("ext4-ordered", "btrfs"), result("xfs")))

    assert list(marks.columns) == ["ext4-ordered", "btrfs", "xfs"]
    assert list(marks.index) == [(family, name) for family, names in FAMILIES.items() for name in names]
    assert marks.loc[("ordering", "append-any")].tolist() == ["×", "×", "×"]
    assert marks["xfs"].value_counts().to_dict() == {"holds": 9, "×": 2, "?": 1, "–": 1}


def test_what_was_not_probed_is_empty() -> None:
    (column,) = result().subjects
    few = replace(column, name="few", answers=column.answers[:1])
    marks = matrix(columns(result(), replace(result(), subjects=(few,))))

    assert marks["few"].tolist() == [""] * 12 + ["holds"]


def test_columns_of_one_name_are_told_apart() -> None:
    old = result()
    new = replace(old, environment=replace(old.environment, kernel="6.12.1"))
    again = replace(old, run=replace(old.run, id="again"))

    assert list(matrix(columns(old, new)).columns) == ["ext4-ordered, 6.1.0-31-amd64", "ext4-ordered, 6.12.1"]
    assert list(matrix(columns(old, again)).columns) == ["ext4-ordered, 20261121T230021-1f2e3d", "ext4-ordered, again"]
    assert matrix(columns(old, old)).shape == (13, 2)


def test_few_configurations_have_their_names() -> None:
    lines = overview(result("ext4-ordered", "btrfs"))

    assert lines[0].split() == ["ext4-ordered", "btrfs"]
    assert lines[2].split() == ["single-sector-overwrite", "·", "·"]
    assert lines[4].split() == ["single-block-overwrite", "×", "×"]
    assert lines[-1] == snapshot("× fails   · holds in what was explored (not a proof)   ? unknown   – skipped")


def test_sixteen_configurations_fit_eighty_columns() -> None:
    lines = overview(result(*SIXTEEN))

    assert max(map(len, lines)) <= 80
    assert lines[0].split() == list("abcdefghijklmnop")
    assert "a  ext2              i  ext4-datajournal" in lines
    assert line_with(lines, "ext4-nodelalloc", "reiserfs-datajournal") == snapshot(
        "h  ext4-nodelalloc   p  reiserfs-datajournal"
    )


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
        (NOTHING, "", "", ""),
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

FINER = [rows for rows in RowSet if rows is not RowSet.TABLE1]
SIZES = {RowSet.PAIRS: [(11, 10), (14, 14), (14, 14)], RowSet.DURABILITY: [(9, 12)], RowSet.UNITS: [(14, 3)]}


def printed(found: Result, width: int) -> str:
    file = io.StringIO()
    console = Console(file=file, width=width, theme=THEME, highlight=False, color_system=None)
    print_result(console, found, Path("run"))
    return file.getvalue()


@pytest.mark.parametrize("rows", FINER)
def test_every_row_stands_somewhere_and_no_two_in_one_place(rows: RowSet) -> None:
    names = [probe.property.name for probe in probes_of(rows)]
    places = [place_of(name) for name in names]
    assert None not in places
    assert len(set(places)) == len(set(names)) == len(names)


@pytest.mark.parametrize(
    "name",
    [*(probe.property.name for probe in probes_of(RowSet.TABLE1)), "mine", "a.b", "data.fsync-file", "sync.sync"],
)
def test_other_rows_stand_in_no_grid(name: str) -> None:
    assert place_of(name) is None


@pytest.mark.parametrize("rows", FINER)
def test_the_grids_have_all_cells(rows: RowSet) -> None:
    [column] = finer(rows).subjects
    found = grids(column)
    assert [(len(grid.down), len(grid.across)) for grid in found] == SIZES[rows]
    assert {cell.name for grid in found for _down, cells in grid.rows() for cell in cells if cell} == {
        cell.name for cell in column.answers
    }
    assert not listed(column).answers


def test_the_rows_of_table_1_are_in_no_grid() -> None:
    [column] = result().subjects
    assert not grids(column)
    assert listed(column) == column


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("rows", FINER)
def test_a_terminal_shows_each_mark_and_each_failing_finish(rows: RowSet, width: int) -> None:
    found = finer(rows)
    text = printed(found, width)
    assert max(map(len, text.splitlines())) <= width
    [column] = found.subjects
    for cell in column.answers:
        assert (cell.name in re.split(r"[\s:]+", text)) == (cell.verdict is not Verdict.HOLDS)
    assert "? " + column.answers[0].name + ": the guest was lost" in text
    for grid in grids(column):
        place = next(number for number, line in enumerate(text.splitlines()) if line.startswith(f"{grid.layout.name}:"))
        body = text.splitlines()[place : place + len(grid.down) + 4]
        for down, cells in grid.rows():
            [line] = [line for line in body if re.match(rf"  (\w  )?{down} ", line)]
            marks = line.partition(f"  {down} ")[2].split()
            assert marks == [{"holds": "·", "fails": "×", "unknown": "?"}[cell.verdict.value] for cell in cells if cell]


def test_several_configurations_have_their_grids_one_below_the_other() -> None:
    text = printed(finer(RowSet.DURABILITY, "ext4-ordered", "xfs"), 120)
    assert text.count("durability: is the kind of change above durable") == 2
    assert text.index("ext4-ordered") < text.index("xfs")


def test_the_page_has_a_mark_for_each_cell_that_leads_to_its_evidence() -> None:
    found = finer(RowSet.PAIRS, "ext4-ordered", "xfs")
    page = to_html(columns_of([(found, Path("run"))]))
    assert page.count('<table class="grid finer">') == 6
    assert '<table class="grid single">' not in page
    for column in found.subjects:
        for cell in column.answers:
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
        ByRecording("w", finish, words[letter], NOTHING)
        for finish, letter in zip(("natural", "sync"), verdicts, strict=True)
    ]
    assert finishes(Answer("x", "ordering", Verdict.FAILS, NOTHING, tuple(asked))) == said


# Results as several pages: every link leads somewhere, and every page can be reached

Site = dict[str, Page]


def site(folder: Path, *results: Result) -> Site:
    """The pages about ``results``, whose witnesses are in ``folder``, by their places."""
    for one in results:
        put(folder, one)
    found = list(pages(shown_apart(columns_of((one, folder) for one in results))))
    assert found[-1][0] == INDEX
    assert len({place for place, _text in found}) == len(found)
    return html(found)


def html(found: Iterable[tuple[PurePosixPath, str]]) -> Site:
    """The pages among ``found``, by their places; each offers the witness that is beside it, and nothing else does."""
    every = {str(place): text for place, text in found}
    made = {place: parse(text) for place, text in every.items() if not place.endswith(".json")}
    offered = {
        f"{PurePosixPath(place).parent}/{one.attributes['href']}": place
        for place, page in made.items()
        for one in page.all("a")
        if "download" in one.attributes
    }
    assert offered == {place: place.replace(".json", ".html") for place in every.keys() - made.keys()}
    assert offered.keys() == {place.replace(".html", ".json") for place in made if place != str(INDEX)}
    return made


def ids(page: Page) -> set[str]:
    return {str(one.attributes["id"]) for one in page.elements if "id" in one.attributes}


def leads(made: Site) -> dict[str, set[str]]:
    """For each page the pages that it leads to; each link is to an element that is there."""
    known = {place: ids(page) for place, page in made.items()}
    found: dict[str, set[str]] = {place: set() for place in made}
    for place, page in made.items():
        for link in {str(one.attributes["href"]) for one in page.all("a") if "download" not in one.attributes}:
            path, _, anchor = link.partition("#")
            target = normpath(f"{PurePosixPath(place).parent}/{path}") if path else place
            assert target in made, link
            assert not anchor or anchor in known[target], link
            found[place].add(target)
    return found


ONE = result()
SAME_NAMES = result("ext4 a", "ext4-a", "EXT4_a", "...", "table", "../../etc", "x" * 400)


@pytest.mark.parametrize(
    "results", [(ONE,), (sixteen(),), (ONE, replace(ONE, run=replace(ONE.run, id="b"))), (SAME_NAMES,)]
)
def test_every_link_resolves_and_every_page_is_linked(results: tuple[Result, ...], tmp_path: Path) -> None:
    made = site(tmp_path, *results)
    for place, targets in leads(made).items():
        assert targets == (set(made) if place == "index.html" else {place, "index.html"})
    columns = [column for one in results for column in one.subjects]
    failing = sum(cell.verdict is Verdict.FAILS for column in columns for cell in column.answers)
    assert len(made) == 1 + failing + len(columns)


def test_places_are_named_after_configuration_and_property(tmp_path: Path) -> None:
    assert set(site(tmp_path, ONE)) == {
        "index.html",
        "witnesses/ext4-ordered/append-any.html",
        "witnesses/ext4-ordered/single-block-overwrite.html",
        "witnesses/ext4-ordered/unmountable.html",
    }
    for place in site(tmp_path, SAME_NAMES):
        assert all(0 < len(part) < 120 and part != ".." for part in place.split("/"))


def test_each_cross_leads_to_its_witness_and_that_back_to_its_section(tmp_path: Path) -> None:
    made = site(tmp_path, ONE)
    marks = {one.text.split()[0]: one for one in made["index.html"].all("a") if one.parent and one.parent.tag == "td"}
    assert str(marks["·"].attributes["href"]).startswith("#")
    link = str(marks["×"].attributes["href"])
    back = [str(one.attributes["href"]) for one in made[link].all("a")]
    section = link.removeprefix("witnesses/").removesuffix(".html").replace("/", "--")
    assert {"../../index.html#table", f"../../index.html#{section}"} <= set(back)
    inside = [one.attributes["href"] for one in made["index.html"].all("a") if "more" in str(one.attributes)]
    assert link in inside and "witnesses/ext4-ordered/unmountable.html" in inside


def test_the_table_has_the_sentence_and_not_the_picture(tmp_path: Path) -> None:
    made = site(tmp_path, ONE)
    found = witness("overwrite-any", tmp_path)
    assert found.sentence in made["index.html"].by_id("ext4-ordered--append-any").text
    assert not made["index.html"].all("svg")


def test_a_witness_that_is_gone_has_no_page(tmp_path: Path) -> None:
    put(tmp_path, ONE)
    (tmp_path / "witnesses/append-any.json").unlink()
    (tmp_path / "witnesses/unmountable.json").write_text("{}")
    made = html(pages(shown_apart(columns_of([(ONE, tmp_path)]))))
    assert set(made) == {"index.html", "witnesses/ext4-ordered/single-block-overwrite.html"}
    assert leads(made)["index.html"] == set(made)


def broken(cell: Answer) -> Answer:
    """The same cell with text of others."""
    ways = tuple(replace(way, evidence=NASTY) for way in cell.ways)
    return replace(cell, claim=replace(cell.claim, name=f"{cell.name} {NASTY}"), ways=ways)


def test_text_of_others_is_text(tmp_path: Path) -> None:
    (column,) = ONE.subjects
    cells = tuple(broken(cell) for cell in column.answers)
    made = site(tmp_path, replace(ONE, subjects=(replace(column, name=NASTY, answers=cells),)))
    assert len(made) == 4
    assert leads(made)["index.html"] == set(made)
    assert not [one for page in made.values() for one in page.elements if one.tag in ("script", "img")]


def test_the_file_beside_a_page_is_its_witness(tmp_path: Path) -> None:
    put(tmp_path, ONE)
    made = {str(place): text for place, text in pages(shown_apart(columns_of([(ONE, tmp_path)])))}
    files = [place for place in made if place.endswith(".json")]
    kept = [read(path) for path in tmp_path.rglob("*.json")]
    assert files and len(kept) == len(files)
    for place in files:
        (tmp_path / "got.json").write_text(made[place])
        assert read(tmp_path / "got.json") in kept
