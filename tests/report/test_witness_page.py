"""The page of a witness, parsed: all of the story is there, text of others is text, and it can be printed."""

from __future__ import annotations

import io
import re
import shlex
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from inline_snapshot import snapshot
from rich.console import Console

from bob.catalogue.probe_files import shipped_probes
from bob.claim.expectation.expected import ExpectationClaim
from bob.claim.property.of_property import OfProperty
from bob.claim.property.rules import Question
from bob.crash.caches import CACHES
from bob.crash.device import DeviceModel
from bob.report.drawing import COLOURS, MOST_LINES, NARROW, WIDE, mark, svg
from bob.report.drawing import LINE as HIGH
from bob.report.rows import meanings
from bob.report.story import MARKS, words
from bob.report.witness_page import to_html
from bob.story.timeline import CallEvent, CrashTimeline, Fate, FlushEvent, WriteEvent
from bob.witness.document import Witness
from bob.workload.language import parse as operations
from bob.workload.operations import Finish, Workload
from claims import question_of
from wording import line_with, sentence_with, text_with

from .html_pages import NASTY, Page, parse
from .witnesses import witness

PATH = Path("bob-runs/20261121T230021-1f2e3d/witnesses/w.json")
NAMES = pytest.mark.parametrize("name", ["overwrite-any", "single-sector-overwrite", "unmountable"])


def text_of(page: Page) -> str:
    return " ".join(page.by_id("top").text.split())


@NAMES
def test_the_whole_story_is_there(name: str, tmp_path: Path) -> None:
    found = witness(name, tmp_path)
    page = parse(to_html(found, PATH))
    text = text_of(page)
    [title] = page.all("title")
    assert "ext4-ordered" in title.text and found.kernel in title.text
    for said in (
        found.kernel,
        "rw,data=ordered",
        "volatile write cache, writes of 512 bytes are atomic",
        found.sentence,
        found.evidence[1:],
        *("write /a 0 512", "create /n", "write PATH OFFSET LENGTH"),
        meanings().get(name, " Properties do not ask this")[1:],
        *(fate.value for fate in Fate),
        "the crash: the power fails here",
        f"bob replay {PATH}",
        f"bob witness show {PATH}",
    ):
        assert said in text, said
    assert f"bob replay --keep ext4-ordered-{name} {PATH}" in text
    assert len(page.with_class("svg", "bob-timeline")) == 2 == 1 + len(page.with_class("svg", "narrow"))
    assert len(page.with_class("svg", "bob-mark")) == len(Fate)


def test_the_page_of_what_was_expected(tmp_path: Path) -> None:
    found = replace(
        witness("unmountable", tmp_path), claim=ExpectationClaim(f"exists '/{NASTY}'"), evidence="/a is empty"
    )
    page = parse(to_html(found, PATH))
    text = text_of(page)
    told = " ".join(found.sentence.split())
    for said in ("What was expected", "/a is empty.", "What was found after the crash", told):
        assert said in text, said
    assert "does not mount" not in text and "Properties do not ask" not in text
    assert text_with(page.all("title")[0].text, "ext4-ordered") == snapshot(
        "«exists '/</p></style><script>alert(\"1\")</script> & 'quoted' <img src=x onerror=y> {{ 7 * 7 }} {% endif %}'» does not hold on ext4-ordered, Linux 6.1.0-56-amd64"
    )


def test_what_is_accused_stands_beside_its_operation(tmp_path: Path) -> None:
    page = parse(to_html(witness("overwrite-any", tmp_path), PATH))
    [listed] = page.with_class("ol", "operations")
    said = [" ".join(one.text.split()) for one in page.all("li") if one.parent is listed]
    assert said == ["write /a 0 512 must come before operation 2", "create /n is there too early"]
    page = parse(to_html(witness("unmountable", tmp_path), PATH))
    assert not page.with_class("span", "role")


def test_the_initial_tree_is_folded(tmp_path: Path) -> None:
    [folded] = parse(to_html(witness("overwrite-any", tmp_path), PATH)).all("details")
    assert "write /a 0 4096" in folded.text
    assert "open" not in folded.attributes


@NAMES
def test_links_and_ids(name: str, tmp_path: Path) -> None:
    alone = parse(to_html(witness(name, tmp_path), PATH))
    ids = [one.attributes["id"] for one in alone.elements if "id" in one.attributes]
    assert len(ids) == len(set(ids))
    links = [str(one.attributes["href"]) for one in alone.all("a")]
    assert links and {link.removeprefix("#") for link in links} <= set(ids)
    below = parse(to_html(witness(name, tmp_path), PATH, "../index.html", "the-cell"))
    more = {str(one.attributes["href"]) for one in below.all("a")} - set(links)
    assert more == {"../index.html#table", "../index.html#the-cell"}


@NAMES
def test_nothing_comes_from_elsewhere(name: str, tmp_path: Path) -> None:
    text = to_html(witness(name, tmp_path), PATH).replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?:|src=|@import|url\(|<script|<link", text)


def nasty(found: Witness, text: str) -> Witness:
    """``found``, in which everything that others say is ``text``."""
    name = shlex.quote("/" + text.replace("/", "|"))
    workload = Workload(
        text, operations(f"create {name}"), operations(f"write {name} 0 9; create /n"), Finish(text, operations("sync"))
    )
    event = WriteEvent(
        seconds=0.1,
        end=None,
        first=0,
        count=1,
        sector=0,
        sectors=8,
        task=text,
        fua=False,
        fate=Fate.TORN,
        kind=text,
        what=text,
        operations=(1,),
        kept=text,
    )
    return replace(
        found,
        claim=OfProperty(text, Question((1,), 2)),
        evidence=text,
        kernel=text,
        environment=dict.fromkeys((*found.environment, text), text),
        configuration=replace(found.configuration, name=text, mkfs_options=text, mount_options=text),
        work=workload,
        base=replace(found.base, effective_options=text),
        timeline=CrashTimeline(events=(event,), crash=2.0),
    )


def test_text_of_others_is_text(tmp_path: Path) -> None:
    found = witness("overwrite-any", tmp_path)
    plain, page = (parse(to_html(nasty(found, text), Path(text))) for text in ("a", NASTY))
    assert {one.tag for one in page.elements} == {one.tag for one in plain.elements}
    assert NASTY in page.all("title")[0].text
    assert sum("<script>" in one.text for one in page.all("code")) >= 6
    assert sum("<script>" in one.text for one in page.all("text")) >= 2
    assert "<script>" not in to_html(nasty(found, NASTY), Path(NASTY))


def test_the_commands_are_one_word_for_the_shell(tmp_path: Path) -> None:
    path = Path("it's a file; rm.json")
    commands = [
        shlex.split(one.text)
        for one in parse(to_html(nasty(witness("unmountable", tmp_path), "a b"), path)).with_class("pre", "command")
    ]
    assert commands == [
        ["bob", "replay", str(path)],
        ["bob", "replay", "--keep", "a b-a b", str(path)],
        ["bob", "witness", "show", str(path)],
    ]


def test_a_property_that_is_nobodys(tmp_path: Path) -> None:
    found = witness("overwrite-any", tmp_path)
    found = replace(found, claim=OfProperty("mine", question_of(found.claim)))
    assert "mine" not in {probe.property.name for probe in shipped_probes()}
    assert "the witness does not define it" in text_of(parse(to_html(found, PATH)))


@pytest.mark.parametrize(
    ("asked", "effective", "said"),
    [
        (
            "nolog",
            "rw,relatime",
            snapshot(
                "Linux 6.1.0-56-amd64ext4, mounted rw,relatime (requested nolog)mkfs without further optionsdisk: volatile write cache, writes of 512 bytes are atomic"
            ),
        ),
        (
            "data=ordered",
            "rw,data=ordered",
            snapshot(
                "Linux 6.1.0-56-amd64ext4, mounted rw,data=orderedmkfs without further optionsdisk: volatile write cache, writes of 512 bytes are atomic"
            ),
        ),
        (
            "",
            "rw",
            snapshot(
                "Linux 6.1.0-56-amd64ext4, mounted rwmkfs without further optionsdisk: volatile write cache, writes of 512 bytes are atomic"
            ),
        ),
        (
            "sync",
            "",
            snapshot(
                "Linux 6.1.0-56-amd64ext4, mounted with options that are not known (requested sync)mkfs without further optionsdisk: volatile write cache, writes of 512 bytes are atomic"
            ),
        ),
    ],
)
def test_how_it_was_mounted(asked: str, effective: str, said: str, tmp_path: Path) -> None:
    found = witness("overwrite-any", tmp_path)
    made, base = replace(found.configuration, mount_options=asked), replace(found.base, effective_options=effective)
    [setting] = parse(to_html(replace(found, configuration=made, base=base), PATH)).with_class("p", "setting")
    assert " ".join(setting.text.split()) == said


def test_a_disk_without_a_cache_is_told_otherwise(tmp_path: Path) -> None:
    found = witness("overwrite-any", tmp_path)
    cached = text_of(parse(to_html(found, PATH)))
    bare = text_of(parse(to_html(replace(found, model=DeviceModel(CACHES["none"], 4096)), PATH)))
    assert "still in its cache" in cached and "still in its cache" not in bare
    assert "no write cache, writes of 4,096 bytes are atomic" in bare
    assert sentence_with(bare, "4,096", "units") == snapshot(
        "tornIt was pending, and this crash left only a part of it on the disk, in units of 4,096 bytes, which are numbered from 0."
    )


def test_it_can_be_printed_and_read_in_the_dark(tmp_path: Path) -> None:
    """On paper: black on white whatever the screen's scheme, what is folded unfolded, the picture in one piece."""
    text = to_html(witness("overwrite-any", tmp_path), PATH)
    [style, *_] = parse(text).all("style")
    assert "@media (prefers-color-scheme: dark)" in style.text
    printed = style.text.rpartition("@media print {")[2]
    defined = dict(re.findall(r"--([\w-]+): (#\w+);", printed))
    dark = dict(re.findall(r"--([\w-]+): (#\w+);", style.text.partition("prefers-color-scheme: dark)")[2][:1200]))
    used = set(re.findall(r"var\(--([\w-]+)\)", style.text.partition("/* What only")[2])) - {"tone"}
    assert used <= set(defined) and {"paper", "card", "ink"} <= set(defined) <= set(dark)
    assert (defined["paper"], defined["ink"]) == ("#fff", "#000")
    assert "details::details-content" in printed
    assert re.search(r"\.picture \{[^}]*break-inside: avoid", printed)


# The picture of a time line: each event has its row, nothing needs colours, and text is escaped

OPERATIONS = operations("write /a 0 4096; rename /a /b")
LINE = CrashTimeline(
    events=(
        CallEvent(seconds=0.0001, end=0.2, number=1),
        WriteEvent(
            seconds=0.3,
            end=0.4,
            first=4,
            count=1,
            sector=96,
            sectors=8,
            task="jbd2/<dm-0>",
            fua=True,
            fate=Fate.DURABLE,
            kind="journal",
            what="journal commit block",
            operations=(),
        ),
        FlushEvent(seconds=0.5, end=None, task="jbd2"),
        *(
            WriteEvent(
                seconds=1.0,
                end=None,
                first=5,
                count=3,
                sector=200,
                sectors=24,
                task="kworker",
                fua=False,
                fate=fate,
                kind="data",
                what="data of operation 1",
                operations=(1,),
            )
            for fate in (Fate.KEPT, Fate.TORN, Fate.LOST)
        ),
    ),
    crash=2.0,
    left_out=7,
)
ORDERED = OfProperty("mine", Question((1,), 2))
SVG = "{http://www.w3.org/2000/svg}"


def no_role(_number: int) -> str:
    return ""


@pytest.mark.parametrize("line", [LINE, replace(LINE, events=LINE.events[:3], left_out=0)])
def test_the_narrow_picture_says_what_the_wide_one_does(line: CrashTimeline) -> None:
    """On a phone: what was lost, not only when, and nothing of it outside."""
    wide, narrow = (
        Xml.fromstring(svg(line, OPERATIONS, ORDERED.role, "nothing of it", legend=False, columns=columns))
        for columns in (WIDE, NARROW)
    )
    said = [" ".join(text.text or "" for text in root.iter(f"{SVG}text")).split() for root in (wide, narrow)]
    assert sorted(said[0]) == sorted(said[1])
    _x, _y, width, bottom = map(int, str(narrow.get("viewBox")).split())
    assert width <= 390 < int(str(wide.get("viewBox")).split()[2])
    rows: dict[int, list[tuple[float, float]]] = {}
    for text in narrow.iter(f"{SVG}text"):
        x, y, long = int(str(text.get("x"))), int(str(text.get("y"))), len(text.text or "") * 7.3
        left, right = (x - long, x) if text.get("text-anchor") == "end" else (x, x + long)
        assert left >= 0 and right <= width and y <= bottom, text.text
        assert all(right <= low or high <= left for low, high in rows.get(y, [])), text.text
        rows.setdefault(y, []).append((left, right))


def test_every_event_is_there() -> None:
    root = Xml.fromstring(svg(LINE, OPERATIONS, ORDERED.role, "nothing of <it>"))
    said = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert "1 write /a 0 4096" in said
    assert any("jbd2/<dm-0>" in one for one in said)
    assert any("flush, under way at the crash" in one for one in said)
    assert line_with(said, 7) == snapshot("(7 earlier writes, all durable)")
    assert {"2.000 s", "the crash: the power fails here"} <= set(said)
    assert line_with(said, "after") == snapshot("found after it: nothing of <it>")


def test_a_time_in_which_nothing_comes_is_seen() -> None:
    def write(seconds: float, *, decides: bool = False) -> WriteEvent:
        return WriteEvent(
            seconds=seconds,
            end=None,
            first=0,
            count=1,
            sector=0,
            sectors=8,
            task="",
            fua=False,
            fate=Fate.KEPT,
            kind="x",
            what=f"at {seconds}",
            operations=(),
            kept="",
            decides=decides,
        )

    line = CrashTimeline(events=(write(0.1), write(1.0), write(31.5, decides=True)), crash=32.4)
    root = Xml.fromstring(svg(line, (), no_role))
    said = [(text.text or "", text.get("class")) for text in root.iter(f"{SVG}text")]
    assert [text for text, _style in said if text.startswith("nothing for")] == snapshot(["nothing for 30.5 s"])
    bold = [text.split(",")[0] for text, style in said if style == "strong" and text.startswith("at ")]
    assert bold == ["at 31.5"], "what decides is bold, whatever became of it"


def bold(line: CrashTimeline) -> list[str]:
    """What of the disk is in bold: the places of writes, by their sectors, and the flushes."""
    texts = [
        (text.text or "", text.get("class"))
        for text in Xml.fromstring(svg(line, OPERATIONS, no_role)).iter(f"{SVG}text")
    ]
    strong = [text for text, style in texts if style == "strong" and ("sector" in text or "flush," in text)]
    return [re.sub(r".* at sector (\d+).*", r"\1", one) for one in strong]


def test_what_made_durable_what_is_there_is_as_bold_as_what_was_lost() -> None:
    """The rules of the device: done before the flush was sent, or FUA. What came before the operations is of no
    account, nor is a flush that made nothing durable."""

    def write(
        seconds: float, sector: int, end: float | None, fate: Fate = Fate.DURABLE, *, fua: bool = False
    ) -> WriteEvent:
        return WriteEvent(
            seconds=seconds,
            end=end,
            first=0,
            count=1,
            sector=sector,
            sectors=8,
            task="",
            fua=fua,
            fate=fate,
            kind="x",
            what="x",
            operations=(),
        )

    line = CrashTimeline(
        events=(
            write(0.1, 1, 0.15, fua=True),
            FlushEvent(seconds=0.2, end=0.21, task=""),
            CallEvent(seconds=1.0, end=1.1, number=1),
            FlushEvent(seconds=1.2, end=1.21, task=""),
            write(1.3, 2, 1.4),
            FlushEvent(seconds=1.35, end=1.36, task=""),
            FlushEvent(seconds=1.4, end=1.5, task=""),
            write(1.6, 3, 1.7, fua=True),
            write(1.8, 4, None, Fate.LOST),
            write(1.9, 5, 1.91, Fate.KEPT),
            FlushEvent(seconds=1.95, end=None, task=""),
        ),
        crash=2.0,
    )
    called = replace(line, events=tuple(one for one in line.events if not isinstance(one, CallEvent)))
    assert bold(line) == snapshot(["flush, done at 1.500 s", "3", "4"])
    assert bold(called)[:1] == ["1"], "without an operation, all of the recording counts"


def test_without_a_legend_there_is_none() -> None:
    parts = [Xml.fromstring(svg(LINE, OPERATIONS, no_role, legend=legend)) for legend in (True, False)]
    said = [[text.text or "" for text in part.iter(f"{SVG}text")] for part in parts]
    assert said[0][:-4] == said[1] and all(one.split(":")[0] in list(Fate) for one in said[0][-4:])
    assert height(parts[0]) > height(parts[1])


def test_marks_differ_in_shape() -> None:
    shapes = {}
    for fate in Fate:
        line = CrashTimeline(
            events=(
                WriteEvent(
                    seconds=1.0,
                    end=None,
                    first=0,
                    count=1,
                    sector=0,
                    sectors=8,
                    task="",
                    fua=False,
                    fate=fate,
                    kind="data",
                    what="x",
                    operations=(),
                ),
            ),
            crash=2.0,
        )
        root = Xml.fromstring(svg(line, OPERATIONS, no_role))
        shapes[fate] = tuple(sorted((e.tag, e.get("fill", ""), e.get("stroke-dasharray", "")) for e in root.iter()))
    assert len({tuple(kind for kind, *_ in shape) + shape for shape in shapes.values()}) == len(Fate)
    assert len(set(COLOURS.values())) == len(set(MARKS.values())) == len(Fate)


def drawn(what: str) -> Xml.Element:
    """The picture of one write of ``what``."""
    line = CrashTimeline(
        events=(
            WriteEvent(
                seconds=1.0,
                end=None,
                first=0,
                count=1,
                sector=0,
                sectors=8,
                task="",
                fua=False,
                fate=Fate.LOST,
                kind="data",
                what=what,
                operations=(),
            ),
        ),
        crash=2.0,
    )
    return Xml.fromstring(svg(line, OPERATIONS, no_role))


def test_what_is_long_takes_several_lines() -> None:
    what = "journal copy of block bitmap of group 0: allocates blocks 1811-2322, of which there are very many"
    root = drawn(what)
    said = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert f"{what}, 4 KiB at sector 0" in " ".join(said)
    assert all(len(one) < 100 for one in said)
    assert not list(root.iter(f"{SVG}title"))
    assert height(root) == height(drawn("short")) + HIGH


def height(root: Xml.Element) -> int:
    return int(root.attrib["viewBox"].split()[3])


def test_what_does_not_fit_is_cut_and_kept_as_a_title() -> None:
    root = drawn("x" * 900)
    titles = {element.text or "" for element in root.iter(f"{SVG}title")}
    assert [title for title in titles if "x" * 900 in title] == list(titles) != []
    said = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert all(len(one) < 120 for one in said)
    assert sum("x" in one for one in said) == MOST_LINES
    assert any(one.endswith("x…") for one in said)


def test_operations_say_what_the_question_asks() -> None:
    said = [text.text for text in Xml.fromstring(svg(LINE, OPERATIONS, ORDERED.role)).iter(f"{SVG}text")]
    assert line_with(said, 2, "operation") == snapshot("must come before operation 2")
    assert "is there too early" not in said  # operation 2 is not called before this crash
    said = [
        text.text
        for text in Xml.fromstring(svg(LINE, OPERATIONS, OfProperty("mine", Question((1,))).role)).iter(f"{SVG}text")
    ]
    assert line_with(said, "there") == snapshot("is there only in part")


def test_control_characters_are_no_xml() -> None:
    assert any("\ufffd" in (text.text or "") for text in drawn("a \x01 b").iter(f"{SVG}text"))


def test_each_mark_is_a_picture_of_its_own() -> None:
    assert len({Xml.tostring(Xml.fromstring(mark(fate))) for fate in Fate}) == len(Fate)


def test_words() -> None:
    [*_, lost] = LINE.writes
    assert text_with(words(lost), 1, 3, 12, 200) == snapshot(
        "data of operation 1 (3 writes), 12 KiB at sector 200 (kworker)"
    )
    Console(file=io.StringIO()).print(words(lost))
