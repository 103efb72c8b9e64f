"""Results as several pages: every link leads somewhere, and every page can be reached."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path, PurePosixPath
from posixpath import normpath

import pytest

from bob.report.columns import columns_of
from bob.report.site import INDEX, pages
from bob.result import Result, Verdict
from bob.witness.document import read

from .html_pages import NASTY, Page, parse
from .samples import result, sixteen
from .witnesses import put, witness

Site = dict[str, Page]


def site(folder: Path, *results: Result) -> Site:
    """The pages about ``results``, whose witnesses are in ``folder``, by their places."""
    for one in results:
        put(folder, one)
    found = list(pages(columns_of((one, folder) for one in results)))
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
    columns = [column for one in results for column in one.configurations]
    failing = sum(cell.verdict is Verdict.FAILS for column in columns for cell in column.properties)
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
    made = html(pages(columns_of([(ONE, tmp_path)])))
    assert set(made) == {"index.html", "witnesses/ext4-ordered/single-block-overwrite.html"}
    assert leads(made)["index.html"] == set(made)


def test_text_of_others_is_text(tmp_path: Path) -> None:
    (column,) = ONE.configurations
    cells = tuple(replace(cell, name=f"{cell.name} {NASTY}", evidence=NASTY) for cell in column.properties)
    made = site(tmp_path, replace(ONE, configurations=(replace(column, name=NASTY, properties=cells),)))
    assert len(made) == 4
    assert leads(made)["index.html"] == set(made)
    assert not [one for page in made.values() for one in page.elements if one.tag in ("script", "img")]


def test_the_file_beside_a_page_is_its_witness(tmp_path: Path) -> None:
    put(tmp_path, ONE)
    made = {str(place): text for place, text in pages(columns_of([(ONE, tmp_path)]))}
    files = [place for place in made if place.endswith(".json")]
    kept = [read(path) for path in tmp_path.rglob("*.json")]
    assert files and len(kept) == len(files)
    for place in files:
        (tmp_path / "got.json").write_text(made[place])
        assert read(tmp_path / "got.json") in kept
