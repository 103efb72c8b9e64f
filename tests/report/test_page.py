"""The HTML page, parsed: links and their targets, ids, tables, and text of others that looks like HTML."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.answer.answer import ByRecording
from bob.answer.result import Result
from bob.catalogue.probe_files import shipped_probes
from bob.catalogue.sets import RowSet
from bob.claim.verdict import Verdict
from bob.crash.coverage import NOTHING, States
from bob.report.columns import columns_of
from bob.report.page import pages, shown_apart, to_html
from bob.report.rows import MARKS, TITLES
from bob.report.templating import raised
from wording import line_with, sentence_with, text_with

from .html_pages import NASTY, Element, Page, parse
from .samples import (
    EVIDENCE,
    KERNEL_SAYS,
    MOSTLY_UNKNOWN,
    SIXTEEN,
    cell,
    finer,
    mostly_unknown,
    named,
    result,
    sixteen,
    unmountable,
)

RUN = Path("bob-runs/20261121T230021-1f2e3d")


def parsed(*results: Result, run: Path = RUN) -> Page:
    """The page about ``results``."""
    return parse(to_html(columns_of((one, run) for one in results)))


ONE, MANY = result(), sixteen()


@cache
def many() -> Page:
    """The page about all of Table 1."""
    return parsed(MANY)


TWICE = (replace(ONE, run=replace(ONE.run, id="a")), replace(ONE, run=replace(ONE.run, id="b")))
ALL = pytest.mark.parametrize("results", [(ONE,), (MANY,), TWICE, (ONE, ONE), (replace(ONE, subjects=()),)])


@ALL
def test_every_link_has_its_target_and_every_id_is_unique(results: tuple[Result, ...]) -> None:
    found = parsed(*results)
    ids = [one.attributes["id"] for one in found.elements if "id" in one.attributes]
    assert len(ids) == len(set(ids))
    links = [one.attributes["href"] for one in found.all("a")]
    assert links and {str(link).removeprefix("#") for link in links} <= set(ids)
    for name in ("aria-labelledby", "headers"):
        assert {one.attributes[name] for one in found.elements if name in one.attributes} <= set(ids)


@ALL
def test_nothing_comes_from_elsewhere(results: tuple[Result, ...]) -> None:
    text = to_html(columns_of((one, RUN) for one in results))
    assert not re.search(r"https?:|src=|@import|url\(|<script|<link", text)


def test_each_cell_leads_to_its_evidence() -> None:
    found = many()
    [grid] = found.with_class("table", "grid")
    marks = [one for one in found.all("a") if one.parent and one.parent.tag == "td"]
    assert all(mark.up("table") is grid for mark in marks)
    cells = [(column.name, one) for column in MANY.subjects for one in column.answers]
    assert len(marks) == len(cells) == 13 * 16
    by_label = {str(mark.attributes["aria-label"]).partition(":")[0]: mark for mark in marks}
    for configuration, one in cells:
        mark = by_label[f"{one.name} on {configuration}"]
        assert mark.text == {"holds": "·"}.get(MARKS[one.verdict], MARKS[one.verdict])
        evidence = found.by_id(str(mark.attributes["href"])[1:])
        assert evidence.tag == "article"
        assert f"{one.name} {one.verdict}" in " ".join(evidence.text.split())
        assert evidence.up("section").attributes["id"] == configuration
        for said in (one.evidence, one.reason):
            assert not said or said in evidence.text
        assert (f"bob replay {RUN}/{one.witness}" in evidence.text) == (one.witness is not None)


def test_the_heads_of_the_table() -> None:
    found = many()
    fs = {one.text: one.attributes["colspan"] for one in found.all("th", scope="colgroup")}
    assert fs == {"ext2": "2", "ext3": "3", "ext4": "4", "btrfs": "1", "xfs": "2", "reiserfs": "4"}
    heads = found.with_class("th", "variant")
    assert [one.text for one in heads][:3] == ["default", "sync", "writeback"]
    assert [one.attributes["aria-label"] for one in found.all("a") if one.parent in heads] == list(SIXTEEN)
    [grid] = found.with_class("table", "grid")
    rows = [one.text for one in found.all("th", scope="row") if one.up("table") is grid]
    assert (len(rows), rows[0], rows[-1]) == (13, "single-sector-overwrite", "directory-op-any")


def test_a_property_has_one_name_and_the_paper_s_stands_only_with_its_meaning() -> None:
    found = many()
    reading = found.by_id("reading").text
    said = found.by_id("top").text
    for name, words in TITLES.items():
        assert said.count(words) == reading.count(words) > 0 and f"(in the paper: {words})" in reading, name


def test_the_variants_that_were_run_and_failed() -> None:
    found = many()
    article = found.by_id("btrfs--append-any")
    assert line_with(article.text, 4, 12) == snapshot("4 of 12 workloads failed")
    assert line_with(article.text, 28) == snapshot(
        "explored: 700 of 4,096 whole states, < 0.1 % of the torn ones · 28 states violate it"
    )
    rows = [one for one in found.all("tr") if one.parent and one.parent.tag == "tbody" and article is _article(one)]
    texts = [row.text for row in rows]
    assert texts[:4] == [
        "workload 0",
        "natural× fails7700 of 4,096< 0.1 %",
        "natural 2.5· holds0700 of 4,096< 0.1 %",
        "fsync /d/a· holds0700 of 4,096< 0.1 %",
    ]
    assert len(texts) == 4 + 12
    assert line_with(found.by_id("btrfs--directory-op").text, 12) == snapshot("none of 12 workloads failed")


def _article(one: Element | None) -> Element | None:
    while one is not None and one.tag != "article":
        one = one.parent
    return one


def test_a_workload_that_is_unknown_says_why() -> None:
    asked = ByRecording("lost", "natural", Verdict.UNKNOWN, NOTHING, reason="the guest hung")
    shown = replace(ONE.subjects[0], answers=(replace(cell("append-any", Verdict.FAILS, States(2, 4, 8), 3)),))
    shown = replace(shown, answers=(replace(shown.answers[0], recordings=(*shown.answers[0].recordings, asked)),))
    text = parsed(replace(ONE, subjects=(shown,))).by_id("ext4-ordered--append-any").text
    assert line_with(text, 1, 4) == snapshot("1 of 4 workloads failed, 1 unknown")
    assert line_with(text, "unknownthe") == snapshot("natural? unknownthe guest hung")


def test_what_it_was_measured_on() -> None:
    text = " ".join(many().by_id("measured").text.split())
    for said in (
        "6.1.0-31-amd64",
        "e2fsprogs 1.47.0-2+b2",
        "seed 1",
        "budget 200",
        "volatile write cache",
        "512 bytes",
    ):
        assert said in text
    column = " ".join(many().by_id("xfs").text.split())
    assert "mountedrw,relatime,data=ordered, requested data=ordered" in column
    assert " ".join(KERNEL_SAYS.split()) in column
    assert sentence_with(column, 3, "mounted") == snapshot("3 crash states could not be mounted EXT4-fs (loop0):")
    assert f"bob replay {RUN}/witnesses/unmountable.json" in column


def test_holds_is_no_proof() -> None:
    text = " ".join(many().by_id("reading").text.split())
    assert sentence_with(text, "violates") == snapshot("""\
How to read it × failsA crash state that the device model allows violates the property.
· holdsNo explored crash state of these workloads violates it.\
""")
    assert sentence_with(text, "proof") == snapshot("This is not a proof.")


def nasty(text: str) -> Result:
    """A run in which everything that others say is ``text``."""
    (column,) = ONE.subjects
    one = cell("append-any", Verdict.FAILS, States(2, 4, 8), evidence=text, witness=text)
    asked = tuple(replace(asked, name=text, finish=text, reason=text) for asked in one.recordings)
    one = replace(one, recordings=asked)
    lost = named(replace(one, verdict=Verdict.UNKNOWN, reason=text), f"{text} of mine", family=f"{text} family")
    shown = replace(
        column, name=text, fs=text, mkfs_options=text, mount_options=text, effective_mount_options=text, notes=(text,)
    )
    shown = replace(shown, answers=(one, lost), beside=(unmountable(3, text, text),))
    on = ONE.environment
    on = replace(on, kernel=text, image=text, accelerator=text, clock=text, qemu=text, libvirt=text, mkfs_version=text)
    run = replace(ONE.run, id=text, started=text, finished=text, bob_version=text)
    return replace(ONE, run=run, environment=on, subjects=(shown,))


def test_text_of_others_is_text() -> None:
    found = parsed(nasty(NASTY), ONE)
    assert not [one for one in found.elements if one.tag in ("script", "img")]
    [title] = found.all("title")
    assert NASTY in title.text
    said = [one.text for one in found.with_class("p", "evidence")]
    assert said.count(NASTY) >= 3
    assert EVIDENCE in said


TAGS = {one.tag for one in parsed(nasty("a"), nasty("b")).elements}


@settings(max_examples=25, deadline=None)
@given(st.text(max_size=30))
def test_any_text_of_others(text: str) -> None:
    found = parsed(nasty(text), nasty(text + "!"))
    assert {one.tag for one in found.elements} <= TAGS
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", found.elements[0].text)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("ext4",), "ext4"),
        (("ext4", "xfs", "btrfs"), "ext4, xfs, btrfs"),
        (SIXTEEN, "16 configurations of ext2, ext3, ext4, btrfs, xfs, reiserfs"),
        ((*SIXTEEN, "f2fs"), "17 configurations of 7 file systems"),
    ],
)
def test_the_title_says_what_is_on_the_page(names: tuple[str, ...], said: str) -> None:
    one = result(*names)
    about = [replace(subject, fs=subject.name.partition("-")[0]) for subject in one.subjects]
    found = parsed(replace(one, subjects=tuple(about)))
    wanted = f"{said} on Linux {one.environment.kernel}: persistence properties"
    assert [title.text for title in (*found.all("title"), *found.all("h1"))] == [wanted, wanted]


def test_the_title_of_a_finer_table_says_what_is_asked() -> None:
    titles = {rows: parsed(finer(rows, "ext4")).all("title")[0].text for rows in (RowSet.DURABILITY, RowSet.PAIRS)}
    assert [title.partition(": ")[2] for title in titles.values()] == ["durability", "ordering"]


def test_a_page_of_a_site_leads_into_it_and_searches_it() -> None:
    [*_, (_place, text)] = pages(shown_apart(columns_of([(ONE, RUN)])), "../../")
    found = parse(text)
    [site] = found.with_class("nav", "site")
    assert [one.attributes["href"] for one in found.all("a") if one.parent is site] == [
        *("../../index.html", "../../table.html", "../../rely.html")
    ]
    [form] = found.all("form")
    assert form.attributes["action"] == "../../index.html" and found.all("input", name="q")
    assert not parsed(ONE).all("form")


def test_names_that_give_the_same_id() -> None:
    found = parsed(result("ext4 a", "ext4-a", "EXT4_a", "...", "table"))
    assert [one.attributes["id"] for one in found.with_class("section", "configuration")] == [
        *("ext4-a", "ext4-a-2", "ext4-a-3", "x", "table-2")
    ]


def test_a_property_that_was_not_asked_in_every_column() -> None:
    (column,) = ONE.subjects
    few = replace(column, name="few", answers=column.answers[:1])
    found = parsed(ONE, replace(ONE, subjects=(few,)))
    assert len(found.with_class("td", "none")) == 12


def test_what_the_properties_say() -> None:
    meanings = {probe.property.name: probe.property.meaning for probe in shipped_probes()[:13]}  # of Table 1
    said = parsed(ONE).by_id("reading").text
    assert meanings and all(name + meaning in re.sub(r"\n", "", said) for name, meaning in meanings.items())


def test_what_a_property_of_the_users_own_says() -> None:
    (column,) = ONE.subjects
    mine = named(column.answers[0], "mine", family="ordering", meaning="what I ask for")
    found = parsed(replace(ONE, subjects=(replace(column, answers=(*column.answers, mine)),)))
    assert "minewhat I ask for" in re.sub(r"\n", "", found.by_id("reading").text)


def test_probes_that_cannot_be_read_take_only_their_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.toml").write_text("name = ")
    (tmp_path / "mine.toml").write_text('name = "append-any"\nmeaning = "what I say"')
    monkeypatch.setattr("bob.report.rows.shipped", lambda folder: tmp_path)
    said = parsed(ONE).by_id("reading").text
    assert "append-anywhat I say" in said
    assert "directory-op" not in said


def luminance(colour: str) -> float:
    """The relative luminance of #rrggbb (WCAG 2.1)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_text_has_contrast_in_light_and_dark() -> None:
    """4.5 to 1 everywhere, the mark on its cell included."""
    palettes = re.findall(r":root \{(.*?)\}", to_html(columns_of([(ONE, RUN)])), flags=re.S)
    assert len(palettes) == 2
    for palette in palettes:
        colours = dict(re.findall(r"--([\w-]+): (#\w{6});", palette))
        grounds = ("paper", "card")
        pairs = [(ink, on) for ink in ("ink", "soft", "link", *map(str, Verdict), "unmountable") for on in grounds]
        pairs += [(name, f"{name}-fill") for name in ("fails", "unknown", "skipped", "unmountable")]
        for ink, ground in pairs:
            dark, light = sorted((luminance(colours[ink]), luminance(colours[ground])))
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, ground)


def test_exponents_are_raised_where_a_power_of_two_is_meant() -> None:
    assert text_with(raised("in 2^107 crash states, 99 % of 2^31"), "2¹⁰⁷", 99, "2³¹") == snapshot(
        "in 2¹⁰⁷ crash states, 99 % of 2³¹"
    )
    assert raised("12^3 a2^3 0.2^3 2^x 2^") == "12^3 a2^3 0.2^3 2^x 2^"


def test_few_explored_torn_states_are_noted() -> None:
    page = to_html(columns_of([(replace(result(), subjects=(mostly_unknown(),)), Path("run"))]))
    assert MOSTLY_UNKNOWN.replace("'", "&#39;") in page
