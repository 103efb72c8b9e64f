"""How a comparison is told: terminal-80.txt and the pages are what a user sees.

After a change that is meant, write them anew: ``BOB_REWRITE=1 python -m pytest tests/report``.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from inline_snapshot import snapshot
from rich.console import Console

from bob.answer.answer import Answer, Way
from bob.answer.result import SubjectResult
from bob.claim.verdict import Verdict
from bob.crash.coverage import NOTHING, States
from bob.report.comparison.compare import Comparison, Kind, compare
from bob.report.comparison.document import to_document
from bob.report.comparison.page import html_page, page
from bob.report.comparison.sides import Side, published_side, run_side
from bob.report.comparison.terminal import print_comparison
from bob.report.comparison.words import LEGEND, mark, says
from bob.report.escape import markdown
from bob.report.published import osdi14, osdi14_reasons
from bob.report.saved import load
from bob.witness.traits import Trait
from wording import line_with

from ..html_pages import NASTY, parse
from .worlds import ROWS, cell, run_of, side, sides, table, workload

HERE = Path(__file__).parent
FINISHES = ("natural", "natural 2.5", "natural 4.5", "sync", "fsync /d/a", "fsync /e", "fsync /e/new", "fsync /d/s")


@pytest.fixture(autouse=True)
def witnesses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs here are made up: each of their witnesses shows that the size was committed before the data."""
    [reason] = [one for one in osdi14_reasons() if one.title == "The new size is committed before the data"]
    shown = {trait: frozenset(reason.shows.get(trait, ())) for trait in Trait}
    monkeypatch.setattr(Side, "shown", lambda self, answer: shown)


def picture(name: str, text: str) -> None:
    path = HERE / name
    if os.environ.get("BOB_REWRITE"):
        path.write_text(text)
    assert text == path.read_text()


def printed(comparison: Comparison, width: int = 80) -> str:
    file = io.StringIO()
    print_comparison(Console(file=file, width=width, highlight=False, markup=False, emoji=False), comparison)
    return file.getvalue()


def column(name: str, **verdicts: Verdict) -> SubjectResult:
    """All thirteen rows; those that are not in ``verdicts`` hold."""
    cells = [cell(row, verdicts.get(row.replace("-", "_"), Verdict.HOLDS)) for row in ROWS]
    return SubjectResult(name, "ext4", "", f"options of {name}", "", tuple(cells))


def today() -> Side:
    """A run with every kind of difference from the published table."""
    fails, unknown, skipped = Verdict.FAILS, Verdict.UNKNOWN, Verdict.SKIPPED
    ordered = column("ext4-ordered", single_block_append=fails, directory_op=fails, append_any=unknown)
    ext3 = column("ext3-ordered", multi_block_append=fails, overwrite_any=skipped)
    return run_side("bob-runs/today", run_of(ordered, ext3, column("f2fs")), Path("bob-runs/today"))


def before_and_after() -> Comparison:
    """Two runs with every kind of difference."""
    fails = Verdict.FAILS
    many = tuple(workload(f"w{place}", finish) for place, finish in enumerate(FINISHES))
    before = side(
        cell("append-any", fails),
        cell("overwrite-any"),
        cell("directory-op", workloads=many),
        cell("multi-block-append", states=States(100, 200, 300, None)),
        cell("single-sector-append", fails),
        cell("single-block-append"),
        name="before",
    )
    after = side(
        cell("append-any", workloads=many),
        cell("overwrite-any", fails),
        cell("directory-op", Verdict.UNKNOWN),
        cell("multi-block-append", states=States(300, 200, 300, "sectors")),
        cell("single-sector-append", fails),
        cell("trunc-append-any"),
        name="after",
    )
    assert after.result is not None
    newer = replace(after.result, environment=replace(after.result.environment, kernel="6.12.3"))
    return compare(before, replace(after, result=newer))


def with_published() -> Comparison:
    return compare(published_side(osdi14()), today(), osdi14_reasons())


def test_two_runs_as_they_look() -> None:
    picture("runs-80.txt", printed(before_and_after()))


def test_the_published_table_as_it_looks() -> None:
    picture("published-80.txt", printed(with_published()))


def test_two_runs_as_a_page() -> None:
    picture("runs.md", page(before_and_after()))


def test_the_published_table_as_a_page() -> None:
    picture("published.md", page(with_published()))


# The terminal


@pytest.mark.parametrize("width", [40, 80, 120])
def test_nothing_is_wider_than_the_terminal_but_commands(width: int) -> None:
    for comparison in (before_and_after(), with_published()):
        lines = printed(comparison, width).splitlines()
        assert all(line.startswith("         bob replay ") for line in lines if len(line) > width)
        assert [line for line in lines if line != line.rstrip()] == []


def test_sixteen_columns_fit_eighty_letters() -> None:
    everything = run_side("run", run_of(*map(column, osdi14().configurations)), Path("run"))
    lines = printed(compare(published_side(osdi14()), everything)).splitlines()
    (row,) = [line for line in lines if line.startswith("  multi-block-append")]
    assert row.split()[1:] == ["-×"] * 16


@settings(max_examples=25, deadline=None)
@given(sides(), sides())
def test_whatever_differs_is_told(one: Side, other: Side) -> None:
    comparison = compare(one, other)
    if not comparison.compared:
        return
    text, written = printed(comparison, 1000), page(comparison)
    for found in comparison.of(Kind.NEWLY_FAILS, Kind.NO_LONGER_FAILS, Kind.UNDECIDED, Kind.EXPLORED):
        assert f"{mark(found)} {found.name}, {found.configuration}\n" in text
        assert f"**{found.name}** on {found.configuration}" in written
        for answer in (found.a, found.b):
            assert answer is not None
            if answer.cell is not None:
                assert markdown(says(answer)) in written
                assert says(answer) in text


# Marks


@pytest.mark.parametrize("as_page", [False, True])
def test_a_side_that_was_stopped_is_named(as_page: bool) -> None:
    show = page if as_page else printed
    whole = today()
    assert whole.result is not None
    stopped = replace(whole.result, run=replace(whole.result.run, finished=""))
    for result, often in ((whole.result, 0), (stopped, 1)):
        said = show(compare(whole, replace(whole, result=result)))
        assert " ".join(said.split()).count("it was stopped before its end") == often


def test_every_mark_has_its_own_meaning() -> None:
    marks = [one for marks, _meaning in LEGEND for one in marks.split()]
    assert len(marks) == len(set(marks))
    assert {mark(found) for found in (*before_and_after().cells, *with_published().cells)} <= set(marks)


def test_no_mark_becomes_another_one_in_ascii() -> None:
    import bob.cli.output  # noqa: F401  (knows how)

    marks = [one for marks, _meaning in LEGEND for one in marks.split()]
    plain = [one.encode("ascii", errors="bob.ascii") for one in marks]
    assert len(plain) == len(set(plain))


# Words


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (cell(verdict=Verdict.FAILS), snapshot("fails in 7 crash states, in 1 of 1 workload")),
        (cell(verdict=Verdict.FAILS, workloads=()), "fails"),
        (
            cell(),
            snapshot("holds: nothing found in 1 workload ending with natural; explored: some of 4,096 whole states"),
        ),
        (cell(states=NOTHING), snapshot("holds: nothing found in 1 workload ending with natural")),
        (cell(workloads=()), "holds"),
        (cell(verdict=Verdict.UNKNOWN), snapshot("unknown: the guest was lost")),
        (cell(verdict=Verdict.SKIPPED), "skipped"),
    ],
)
def test_what_a_run_says(told: Answer, words: str) -> None:
    (answer,) = side(told).columns["ext4-ordered"].values()
    assert says(answer) == words


def test_what_the_published_table_says() -> None:
    answers = table(append_any="btrfs").columns["btrfs"]
    assert says(answers["append-any"]) == snapshot("×: a reproducible case was found")
    assert says(answers["overwrite-any"]) == snapshot("blank: no case was found")


# The page


def test_every_command_of_a_page_can_be_pasted(tmp_path: Path) -> None:
    folder = Path("it's `a` run")
    found = run_side("x", run_of(column("btrfs", append_any=Verdict.FAILS)), folder)
    text = page(compare(table(), found))
    (command,) = re.findall(r"``(bob replay .*)``$", text, flags=re.M)
    said = subprocess.run(
        ["sh", "-c", f"printf %s {command.removeprefix('bob replay ')}"], capture_output=True, text=True, check=True
    ).stdout
    assert said.endswith("it's `a` run/witnesses/append-any.json")


def test_a_page_has_no_loose_ends() -> None:
    for comparison in (before_and_after(), with_published()):
        text = page(comparison)
        assert not re.search(r"[ \t]+$", text, flags=re.M)
        assert "\n\n\n" not in text and text.endswith("\n") and not text.endswith("\n\n")
        assert "None" not in text and "not told" not in text
        for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.M):
            assert len({line.replace(r"\|", "").count("|") for line in block.splitlines()}) == 1, block


def test_a_page_tells_each_reason_once() -> None:
    text = page(with_published())
    told = [one.reason for one in with_published().cells if one.reason]
    assert told
    for reason in told:
        assert text.count(reason.because) == 1
        assert text.count(f"### {markdown(reason.title)}\n") == 1
    assert [line for line in text.splitlines() if line.startswith("### ")][-1] == snapshot("### Not yet explained")


def test_how_much_was_found_again() -> None:
    fails = {"append_any": "ext4-ordered btrfs"}
    found = run_side("r", run_of(column("ext4-ordered"), column("btrfs", append_any=Verdict.FAILS)), Path("r"))
    words = "bob found 1 of 2 violations that the paper reports for these configurations."
    assert words in page(compare(table(**fails), found))
    assert words in page(compare(found, table(**fails)))
    assert line_with(page(compare(found, table())), "violation") == snapshot(
        """\
6.1.0. The paper does not report a violation in these cells.
| · | no violation in both |
A blank cell of the published table means that no violation was found, not that the property holds. The same goes for a cell of bob's without a ×: no *explored* crash state violates the property.\
"""
    )


def test_background_is_no_explanation() -> None:
    found = run_side(
        "r", run_of(column("ext3-ordered"), column("ext4-ordered", single_block_append=Verdict.FAILS)), Path()
    )
    text = page(compare(published_side(osdi14()), found, osdi14_reasons()))
    assert line_with(text, 1, 8) == snapshot(
        "26 cells compared: 1 newly fails, 7 no longer fail, 18 the same. The reason is known for 1 of 8 differences."
    )
    assert "The reason" not in page(compare(found, found))


def test_a_page_is_not_wider_than_seven_columns() -> None:
    everything = run_side("run", run_of(*map(column, osdi14().configurations)), Path("run"))
    text = page(compare(published_side(osdi14()), everything))
    heads = [line for line in text.splitlines() if line.startswith("|  | ")]
    assert [len(line.split("|")) - 3 for line in heads] == [5, 7, 4]
    assert re.findall(r"\| ([\w<>]+) (?=\|)", "".join(heads)) == [
        name.replace("-", "<br>", 1) for name in osdi14().configurations
    ]
    ten = [f"ext4 -O {place}" for place in range(10)]
    found = run_side("run", run_of(*map(column, ten)), Path("run"))
    text = page(compare(found, found))
    assert [line.count("ext4") for line in text.splitlines() if line.startswith("|  | ext4")] == [7, 3]


# The document


def test_a_document() -> None:
    comparison = before_and_after()
    document = json.loads(json.dumps(to_document(comparison)))
    assert (document["schema"], document["differs"], document["undecided"]) == ("bob.comparison/1", True, True)
    assert document["counts"] == {
        "newly fails": 1,
        "no longer fails": 1,
        "undecided": 1,
        "differently explored": 1,
        "only in a": 1,
        "only in b": 1,
        "same": 1,
    }
    assert document["settings"] == [{"setting": "kernel", "a": "6.1.0", "b": "6.12.3"}]
    (newly,) = [one for one in document["cells"] if one["kind"] == "newly fails"]
    assert newly["b"]["replay"] == "bob replay after/witnesses/overwrite-any.json"
    assert newly["b"]["states"]["legal_sectors"] == str(2**88)
    assert (newly["a"]["failing"], newly["b"]["failing"], newly["b"]["violations"]) == (0, 1, 7)
    (gone,) = [one for one in document["cells"] if one["kind"] == "only in a"]
    assert (gone["property"], gone["b"]) == ("single-block-append", None)


def test_the_document_of_a_published_table() -> None:
    document = to_document(with_published())
    assert document["a"] == {
        "name": "osdi14",
        "published": osdi14().source,
        "run": None,
        "environment": None,
        "device_model": None,
    }
    cells = {(one["configuration"], one["property"]): one for one in document["cells"]}
    appended = cells["ext4-ordered", "single-block-append"]
    assert appended["a"] == {"verdict": "not found"}
    assert appended["because"]["measured"] == ["6.1"]
    assert cells["ext3-ordered", "single-block-overwrite"]["because"]["background"] is True
    assert cells["ext4-ordered", "directory-op"]["because"] is None
    assert document["only_b"] == ["f2fs"]


@settings(max_examples=25, deadline=None)
@given(sides(), sides())
def test_every_comparison_is_a_document(one: Side, other: Side) -> None:
    document = to_document(compare(one, other))
    assert json.loads(json.dumps(document)) == document
    assert sum(document["counts"].values()) == len(document["cells"])


@given(sides(), sides())
@settings(max_examples=60)
def test_the_page_in_html_has_every_cell_and_each_coloured_mark_leads_to_what_is_told(one: Side, other: Side) -> None:
    comparison = compare(one, other)
    shown = parse(html_page(comparison))
    told = {article.attributes["id"] for article in shown.all("article")}
    links = [link for link in shown.all("a") if (link.attributes.get("href") or "").startswith("#cell-")]
    assert {link.attributes["href"] for link in links} == {f"#{anchor}" for anchor in told}
    assert len(told) == len(comparison.of(*DIFFERENT))
    marks = [element.text for element in shown.elements if element.parent and element.parent.tag == "td"]
    assert sorted(marks) == sorted(map(mark, comparison.cells))


DIFFERENT = (Kind.NEWLY_FAILS, Kind.NO_LONGER_FAILS, Kind.UNDECIDED, Kind.EXPLORED)


def test_the_page_in_html_has_both_sides_and_the_reason_and_nothing_that_looks_like_html() -> None:
    nasty = replace(cell("directory-op", Verdict.FAILS), ways=(Way(NASTY, 1, "w.json"),))
    column = SubjectResult("ext4-ordered", "ext4", "", "", "rw", (nasty,))
    shown = parse(html_page(compare(table(), run_side(NASTY, run_of(column), Path("a b")))))
    [article] = shown.all("article")
    assert line_with(article.text, "blank") == snapshot("A, osdi14: blank: no case was found") and NASTY in article.text
    assert line_with(article.text, "a b/w.json") == snapshot("bob replay 'a b/w.json'")
    assert not shown.all("script") and not shown.all("img") and not shown.all("link")


REFERENCE = Path(__file__).parents[3] / "reports/reference/osdi14-linux-6.1"


def test_the_published_table_and_the_reference_as_a_page() -> None:
    new = run_side("new", load(REFERENCE).result, REFERENCE)
    shown = parse(html_page(compare(published_side(osdi14()), new, osdi14_reasons())))
    assert [one.text for one in shown.all("h1")] == snapshot(["Table 1 of 2014 and Linux 6.1.0-56-amd64, compared"])
    assert len(shown.all("article")) == len(shown.with_class("td", "fails")) + len(shown.with_class("td", "holds")) > 40
    assert "`" not in shown.by_id("kind-1").text
