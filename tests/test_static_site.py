"""The site: all links lead somewhere, nothing comes from another host, and it says what was measured."""

from __future__ import annotations

import io
import json
import lzma
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import bob
from bob.answer.document import to_json
from bob.apm.clauses import Durable
from bob.apm.export.claims import groups
from bob.apm.model import ClauseStatus
from bob.apm.model import load as load_model
from bob.catalogue.request import DEFAULT_MODEL
from bob.catalogue.sets import RowSet
from bob.claim.property.vocabulary import Call, What
from bob.claim.verdict import Verdict
from bob.crash.device import DeviceModel, DeviceModelDocument
from bob.errors import Exit, MalformedError, StoreError
from bob.schema import encode
from bob.site.build import MARKER, build
from bob.site.links import faults
from bob.site.rely import Grade, answered
from bob.site.results import Reference, Results, short
from bob.site.sources import coloured, for_mkdocs, slug, tone_of
from report import samples
from report.html_pages import NASTY, Page, parse

Document = dict[str, Any]

ROOT = Path(__file__).parents[1]
REFERENCES = sorted(path.parent for path in ROOT.glob("reports/reference/*/result.json*"))
MODELS = sorted(ROOT.glob("reports/models/osdi14-linux-6.1/*.json"))
IDIOMS = {idiom.id: idiom for group in groups() for idiom in group.idiom if idiom.id}
MARKS = {"fails": "×", "holds": "·", "unknown": "?", "skipped": "–"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's site."""
    pytest.importorskip("material")
    target = tmp_path_factory.mktemp("site") / "pages"
    built = build(ROOT, target)
    assert [str(fault) for fault in built.faults] == []
    assert built.pages == len(list(target.rglob("*.html"))) > 500
    assert (target / MARKER).exists() and not (target / "404.html").exists()
    return target


@pytest.fixture(scope="module")
def table(site: Path) -> Page:
    """The part of the page of the table that has the table."""
    text = (site / "table.html").read_text()
    return parse(text[text.index('<table id="living"') : text.index("</table>", text.index('id="living"')) + 8])


def results() -> Iterator[tuple[str, Document]]:
    """The result documents of the references, each with its name."""
    for folder in REFERENCES:
        [file] = folder.glob("result.json*")
        yield folder.name, json.loads(lzma.decompress(file.read_bytes()) if file.suffix == ".xz" else file.read_bytes())


def of_table_1() -> Iterator[tuple[str, Document]]:
    """Those with the rows of Table 1."""
    for name, document in results():
        if any(cell["claim"]["name"] == "append-any" for cell in document["subjects"][0]["answers"]):
            yield name, document


def test_pages_are_named_in_the_order_of_the_first_page_s_table(site: Path) -> None:
    named = re.findall(r"^\| \[docs/([\w-]+)\.md\]", (ROOT / "README.md").read_text(), re.MULTILINE)
    menu = re.findall(r'<a href="docs/([\w-]+)\.html" class="md-nav__link"', (site / "index.html").read_text())
    assert menu[0] == "tutorial"
    assert menu == named


def test_the_navigation_has_few_groups(site: Path) -> None:
    for page in ("index.html", "table.html", "docs/try.html", "reports/kernels.html"):
        tabs = re.findall(r'class="md-tabs__link">\s*([^<]*?)\s*</a>', (site / page).read_text())
        assert tabs[:3] == ["Home", "Results", "Guides"] and len(tabs) == 4


def test_pages_of_results_have_titles_of_their_own_and_lead_to_the_search(site: Path) -> None:
    pages = [*site.glob("results/*/index.html"), *site.glob("reports/models/*/*.html")]
    text = {page: page.read_text() for page in pages if page.name != "index.html" or page.parts[-3] == "results"}
    titles = [re.findall("<title>(.*?)</title>", one)[0] for one in text.values()]
    assert len(set(titles)) == len(titles) == len(REFERENCES) + len(MODELS)
    for page, one in text.items():
        [search] = re.findall(r'<form role="search" action="([^"]+)">', one)
        assert (page.parent / search).resolve() == site / "index.html"


def test_the_page_of_a_reference_leads_to_its_table(site: Path) -> None:
    for folder in REFERENCES:
        page = (site / f"reports/reference/{folder.name}/index.html").read_text()
        assert f'href="../../../results/{folder.name}/index.html"' in page


def test_models_are_told_in_prose_before_their_json(site: Path) -> None:
    page = (site / "reports/models/osdi14-linux-6.1/index.html").read_text()
    assert not re.findall(r'href="[^"]+\.json"', page)
    for path in MODELS:
        assert page.count(f'href="{path.stem}.html"') == 2
        prose = (site / f"reports/models/osdi14-linux-6.1/{path.stem}.html").read_text()
        assert prose.index("You can rely on this") < prose.index(f'href="{path.name}" download')
        assert (site / f"reports/models/osdi14-linux-6.1/{path.name}").read_bytes() == path.read_bytes()
        assert f'href="reports/models/osdi14-linux-6.1/{path.stem}.html"' in (site / "rely.html").read_text()


def test_the_table_of_programs_is_coloured(site: Path) -> None:
    text = (site / "reports/reference/apps-linux-6.1/index.html").read_text()
    tones = {said: tone for tone, said in re.findall(r'<td class="(\w+)">([^<]+)</td>', text)}
    assert tones["safe"] == "holds" and tones["× corruption"] == "fails"
    assert re.search(r'<td class="unknown"><em>not promised</em>: × lost acknowledged data \(', text)
    for page in site.glob("results/apps-linux-6.1/*/index.html"):
        assert f'href="../../../{page.relative_to(site)}"' in text
    assert "{ ." not in text and "{ ." not in (site / "reports/kernels.html").read_text()


# The table


def test_each_cell_of_the_table_is_that_of_its_reference(site: Path, table: Page) -> None:
    """Held against the documents themselves: as many rows, and in each what the document says."""
    expected = {
        (name, column["name"], cell["claim"]["name"]): cell["verdict"]
        for name, document in of_table_1()
        for column in document["subjects"]
        for cell in column["answers"]
    }
    assert len(expected) > 500
    found = {}
    for cell in (one for one in table.elements if one.tag == "td" and "class" in one.attributes):
        row = cell.up("tr").attributes
        head = next(one for one in table.all("th", scope="row") if one.up("tr") is cell.up("tr"))
        heading = next(one for one in table.all("a") if one.parent is head)
        anchor = str(heading.attributes["href"]).partition("#")[2]
        [link] = [one for one in table.all("a") if one.parent is cell]
        verdict = str(cell.attributes["class"])
        assert link.text == MARKS[verdict]
        place = str(link.attributes["href"])
        assert place.startswith(f"results/{row['data-reference']}/")
        if "/witnesses/" in place:
            assert place.endswith(f"/witnesses/{anchor}/{cell.attributes['data-property']}.html")
        else:
            assert place.endswith(f"#{anchor}--{cell.attributes['data-property']}")
        found[str(row["data-reference"]), anchor, str(cell.attributes["data-property"])] = verdict
    assert found == expected


def test_each_cross_leads_to_the_page_of_its_witness(site: Path, table: Page) -> None:
    crosses = [str(one.attributes["href"]) for one in table.all("a") if one.parent and one.text == "×"]
    assert len(crosses) > 300
    for place in crosses:
        page = (site / place).read_text()
        heading = re.sub(r"<[^>]+>", "", re.findall(r"<h1>.*?</h1>", page)[0])
        assert f"{Path(place).stem} is violated on {Path(place).parent.name}" in heading
        assert "<svg" in page and 'href="../../../../index.html"' in page


def test_the_table_can_be_filtered_by_all_that_it_has(site: Path, table: Page) -> None:
    text = (site / "table.html").read_text()
    for name, attribute in (("kernel", "data-kernel"), ("fs", "data-fs"), ("reference", "data-reference")):
        choices = set(re.findall(rf'name="{name}" value="([^"]+)"', text))
        assert choices == {str(one.attributes[attribute]) for one in table.all("tr") if attribute in one.attributes}
    asked = {
        cell["claim"]["name"] for _name, one in of_table_1() for column in one["subjects"] for cell in column["answers"]
    }
    assert set(re.findall(r'name="property" value="([^"]+)"', text)) == asked


def test_what_changed_between_kernels_is_told(site: Path) -> None:
    """As the documents say of the configurations that have the same name there: those of mkfs and mount themselves."""
    verdicts = {
        short(str(one["environment"]["kernel"])): {
            (column["name"], cell["claim"]["name"]): cell["verdict"]
            for column in one["subjects"]
            for cell in column["answers"]
        }
        for name, one in results()
        if name.startswith("defaults-")
    }
    text = (site / "table.html").read_text()
    told = text[text.index('id="what-changed-between-kernels"') : text.index('id="the-properties"')]
    rows = re.findall(r'<tr><th scope="row">([\w-]+)</th><td>(\w+), default options</td>', told)
    differ = [
        (name, fs)
        for before, after in (("5.10", "6.1"), ("6.1", "6.12"))
        for (fs, name), verdict in verdicts[before].items()
        if verdicts[after][fs, name] != verdict
    ]
    assert sorted(rows) == sorted(differ)
    lists = re.findall(r'<a href="([^"]+)">([^<]*)</a>: (\d+) cells, (\d+) with another', told)
    assert sum(int(count) for _place, name, _cells, count in lists if name.startswith("defaults-")) == len(differ)
    assert {name: place for place, name, _cells, _count in lists} == {
        "defaults-linux-5.10 → defaults-linux-6.1": "reports/kernels.html#from-510-to-61",
        "defaults-linux-6.1 → defaults-linux-6.12": "reports/kernels.html#from-61-to-612",
        "osdi14 → osdi14-linux-6.1": "reports/reference/osdi14-linux-6.1/index.html",
    }
    assert not (site / "results/compared").exists(), "one page for one comparison"


def test_downloads_are_the_results(site: Path) -> None:
    documents = json.loads((site / "downloads/all.json").read_text())
    assert len(documents) == len(REFERENCES)
    rows = 0
    for folder in REFERENCES:
        assert bob.load(site / f"downloads/{folder.name}.json").result == bob.load(folder).result
        kept = re.sub(r"Made by bob \d\S+ ", f"Made by bob {bob.__version__}. ", (folder / "table.tex").read_text())
        assert (site / f"downloads/{folder.name}.tex").read_text() == kept
        rows += len(bob.load(folder).cells())
    assert len(pd.read_csv(io.StringIO((site / "downloads/all.csv").read_text()), dtype=str)) == rows


# Can I rely on ...?


def answers(site: Path, question: str) -> dict[str, str]:
    """What the page says of each file system, in words."""
    [said] = re.findall(
        rf'<h3 id="{question}">.*?<p class="bob-answer">(.*?)</p>', (site / "rely.html").read_text(), re.S
    )
    return dict(re.findall(r"<strong>([\w-]+)</strong> ([^<]+)</a>", said)) or {"": re.sub("<[^>]+>", "", said).strip()}


@pytest.mark.parametrize(
    ("question", "clauses"),
    [
        ("fsync-entry", ["durable fsync-file entry"]),
        ("fsync-data", ["durable fsync-file data", "durable fsync-file size"]),
        ("fsync-others", ["durable fsync-file other-overwrites", "durable fsync-file other-appends"]),
        ("fsync-other-names", ["durable fsync-file other-names"]),
        ("append-stale", ["never append stale"]),
        ("replace-whole", ["ordered append rename-over same-file", "whole rename-over whole"]),
    ],
)
def test_what_models_answer_is_what_their_files_say(site: Path, question: str, clauses: list[str]) -> None:
    yes: dict[str, list[bool]] = {}
    for path in MODELS:
        document = json.loads(path.read_text())
        promised = {clause["clause"]: clause["promised"] for clause in document["clauses"]}
        yes.setdefault(document["source"]["configuration"]["fs"], []).append(all(promised[one] for one in clauses))
    rows = [clause.replace("durable ", "").replace(" ", ".") for clause in clauses]
    for name, document in results():
        for column in document["subjects"] if name.startswith("durability") else ():
            cells = {cell["claim"]["name"]: cell["verdict"] == "holds" for cell in column["answers"]}
            if cells.keys() >= set(rows):
                yes.setdefault(column["fs"], []).append(all(cells[row] for row in rows))
    said = answers(site, question)
    assert said.keys() == yes.keys()
    for fs, every in yes.items():
        # The shipped models are of a disk that is done with each write at once.
        sure = "yes, less sure" if clauses[0].startswith("durable") else "yes"
        wanted = (
            sure if all(every) else f"yes in {sum(every)} of {len(every)}" if any(every) else ("no", "not promised")
        )
        assert said[fs] == wanted or said[fs] in wanted


@pytest.mark.parametrize("name", ["directory-op", "append-append-same-file", "collateral"])
def test_what_the_table_answers_is_what_it_says(site: Path, name: str) -> None:
    holds: dict[str, list[bool]] = {}
    for _name, document in of_table_1():
        for column in document["subjects"]:
            [cell] = [cell for cell in column["answers"] if cell["claim"]["name"] == name]
            holds.setdefault(column["fs"], []).append(cell["verdict"] == "holds")
    ids = {"directory-op": "directory-whole", "append-append-same-file": "append-append", "collateral": "collateral"}
    for fs, said in answers(site, ids[name]).items():
        every = holds.pop(fs)
        assert said == ("yes" if all(every) else f"yes in {sum(every)} of {len(every)}" if any(every) else "no")
    assert not holds


def test_what_was_not_asked_is_not_measured(site: Path) -> None:
    asked = {clause["clause"] for path in MODELS for clause in json.loads(path.read_text())["clauses"]}
    assert Durable(Call.FSYNC_FILE, What.DATA).name in asked
    assert Durable(Call.MSYNC, What.DATA).name not in asked
    [document] = [document for name, document in results() if name.startswith("durability")]
    measured = {
        column["fs"]: {"holds": "yes", "fails": "no", "unknown": "not known"}[cell["verdict"]]
        for column in document["subjects"]
        for cell in column["answers"]
        if cell["claim"]["name"] == "msync.data"
    }
    assert answers(site, "msync-data") == measured
    assert "Not measured: exfat, ext4-nojournal, f2fs" in (site / "rely.html").read_text()
    for question in IDIOMS.values():
        assert answered(question, Results((), (), ())).sentence == "Not measured on any of them."


def test_every_word_has_its_evidence(site: Path) -> None:
    """Each answer leads to a place on the page that says of each configuration how it is known."""
    text = (site / "rely.html").read_text()
    links = re.findall(r'<a class="(\w+)" href="#([\w-]+--[\w-]+)">', text)
    assert len(links) > 100
    for _tone, anchor in links:
        [part] = re.findall(rf'<div id="{anchor}">(.*?)</div>', text, flags=re.S)
        items = re.findall(r"<li>(.*?)</li>", part, flags=re.S)
        assert items
        for item in items:
            assert re.search(r"<span>[^<]{10,}</span>", item), item
    assert {word.word for word in Grade if word is not Grade.SOME} >= set(re.findall(r"</a>: ([a-z ]+)\. <span>", text))


# A site that does not hold together

GOOD = (
    '<p id="here"><a href="b.html#there">b</a> <a href="https://example.org/">away</a> '
    '<img src="data:image/png;base64,"></p>'
)


@pytest.mark.parametrize(
    ("planted", "said"),
    [
        ('<a href="nowhere.html">x</a>', "nowhere.html leads to nothing"),
        ('<a href="b.html#nowhere">x</a>', "b.html#nowhere leads to a missing anchor"),
        ("<a href='#nowhere'>x</a>", "#nowhere leads to a missing anchor"),
        ('<a href="../../x.html">x</a>', "../../x.html leads out of the site"),
        ('<a href="/b.html">x</a>', "/b.html leads out of the site"),
        ('<img src="gone.png">', "gone.png leads to nothing"),
        (
            '<script src="https://cdn.example.org/x.js"></script>',
            "loads https://cdn.example.org/x.js from another host",
        ),
        ('<img alt="a > b" srcset="//cdn.example.org/x.png 2x">', "loads //cdn.example.org/x.png from another host"),
        (
            '<link rel="preconnect" href="https://fonts.example.org">',
            "loads https://fonts.example.org from another host",
        ),
        ('<form action="https://example.org/"></form>', "loads https://example.org/ from another host"),
        ('<p style="background:url(http://example.org/x)">', "loads http://example.org/x from another host"),
        ("<style>@import 'https://example.org/x.css'</style>", "loads https://example.org/x.css from another host"),
    ],
)
def test_a_planted_fault_is_found(planted: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(GOOD)
    (tmp_path / "b.html").write_text('<h2 id="there">b</h2><!-- <a href="commented.html">x</a> -->')
    assert list(faults(tmp_path)) == []
    (tmp_path / "a.html").write_text(GOOD + planted)
    assert [str(fault) for fault in faults(tmp_path)] == [f"a.html: {said}"]


def test_a_style_sheet_that_loads_a_font_from_elsewhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("@font-face { src: url(https://fonts.example.org/a.woff2) }")
    assert [fault.page for fault in faults(tmp_path)] == ["a.css"]


# A small project


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A project of three pages and one result, whose texts look like HTML."""
    pytest.importorskip("material")
    root = tmp_path / "project"
    (root / "docs").mkdir(parents=True)
    (root / "code").mkdir()
    (root / "code/made.py").write_text("pass\n")
    (root / "README.md").write_text("# Small\n\n[Formats](docs/formats.md), [apps](docs/apps.md), [code](code)\n")
    (root / "CHANGELOG.md").write_text("# Changes\n")
    for page in ("apps", "limits", "findings"):
        (root / f"docs/{page}.md").write_text(f"# {page}\n")
    (root / "docs/extend.md").write_text("# Extend\n\n## Finer tables\n")
    (root / "docs/results.md").write_text("# Reports\n\n## Documents\n\n## From Python\n")
    (root / "docs/formats.md").write_text("# Formats\n\n## `result.json`: `bob.result/2`\n\n- a\n  - b\n")
    (root / "reports/models/osdi14-linux-6.1").mkdir(parents=True)
    (root / "reports/models/osdi14-linux-6.1/README.md").write_text("# Models\n")
    made = root / "reports/reference/made-linux-6.1"
    made.mkdir(parents=True)
    (made / "result.json").write_text(json.dumps(to_json(samples.result("ext4", NASTY))))
    return root


def test_a_run_of_ones_own_is_in_the_table(small: Path, tmp_path: Path) -> None:
    run = tmp_path / "my run"
    run.mkdir()
    (run / "result.json").write_text(json.dumps(to_json(samples.result("xfs-mine"))))
    (tmp_path / "finer.json").write_text(json.dumps(to_json(samples.finer(RowSet.DURABILITY, "ext4"))))
    built = build(small, tmp_path / "pages", [run, tmp_path / "finer.json"])
    assert built.faults == ()
    text = (tmp_path / "pages/table.html").read_text()
    rows = re.findall(r'<tr [^>]*data-reference="([^"]+)"', text)
    assert sorted(rows) == ["made-linux-6.1", "made-linux-6.1", "my-run"]
    assert 'href="results/finer/index.html"' in text, "hundreds of rows have a page of their own"
    assert 'href="results/finer/index.html#ext4--' in (tmp_path / "pages/rely.html").read_text()
    assert "<img src=x" not in text and 'alert("1")' not in text
    assert (tmp_path / "pages/code/index.html").exists() and (tmp_path / "pages/code/made.py.txt").exists()


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("fsync-data", ["fsync-file.data", "fsync-file.size"]),
        ("fsync-directory", ["fsync-directory.new-entries", "fsync-directory.moved-entries"]),
        ("fdatasync-data", ["fdatasync-file.data", "fdatasync-file.size"]),
        ("msync-data", ["msync.data"]),
        ("syncfs-all", ["syncfs.data", "syncfs.size", "syncfs.entry", "syncfs.names"]),
    ],
)
def test_a_table_of_durability_answers(question: str, rows: list[str], tmp_path: Path) -> None:
    result = samples.finer(RowSet.DURABILITY, "ext4")
    verdicts = {cell.name: cell.verdict for cell in result.subjects[0].answers}
    (tmp_path / "result.json").write_text(json.dumps(to_json(result)))
    reference = Reference("finer", bob.load(tmp_path))
    one = answered(IDIOMS[question], Results((reference,), (), ()))
    wanted = {verdicts[row] for row in rows}
    word = "no" if Verdict.FAILS in wanted else "not known" if Verdict.UNKNOWN in wanted else "yes"
    assert one.sentence == f"ext4 {word}."
    [(_fs, [answer])] = one.answers
    assert [said.partition(":")[0] for said in answer.evidence] == rows
    assert answer.link.startswith("results/finer/index.html#ext4--")


def test_a_link_to_nothing_in_a_page_is_an_error_and_the_old_site_stays(small: Path, tmp_path: Path) -> None:
    target = tmp_path / "pages"
    build(small, target)
    before = (target / "index.html").read_text()
    (small / "README.md").write_text("# Small\n\n[gone](docs/GONE.md)\n")
    with pytest.raises(MalformedError, match=r"GONE\.md"):
        build(small, target)
    (small / "README.md").write_text('# Small\n\n<a href="docs/GONE.html">gone</a>\n')
    assert [str(fault) for fault in build(small, target).faults] == ["index.html: docs/GONE.html leads to nothing"]
    assert (target / "index.html").read_text() == before


def test_a_folder_that_is_no_site_is_left_alone(small: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/letter.txt").write_text("dear")
    with pytest.raises(StoreError, match="bob did not build it"):
        build(small, tmp_path / "mine")
    with pytest.raises(StoreError, match="lacks docs"):
        build(tmp_path, tmp_path / "pages")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]


def test_without_mkdocs_the_command_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from bob.cli.main import run

    monkeypatch.setitem(sys.modules, "material", None)
    assert run(["site", str(tmp_path / "pages")]) == Exit.MISSING_PROGRAM
    assert "'.[site]'" in capsys.readouterr().err
    assert not (tmp_path / "pages").exists()


# Pages for a forge, as MkDocs wants them


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("- a\n  - b\n    c\n- d", "- a\n    - b\n        c\n- d"),
        ("1. a\n   b\n\n   ```sh\n   c\n     d\n   ```\n\ne", "1. a\n    b\n\n    ```sh\n    c\n      d\n    ```\n\ne"),
        ("- a\nlazy\n- b", "- a\nlazy\n- b"),
        ("```\n- a\n  - b\n```\n  x", "```\n- a\n  - b\n```\n  x"),
        ("a\n\n    code\n", "a\n\n    code\n"),
    ],
)
def test_lists_are_indented_as_mkdocs_wants_them(text: str, wanted: str) -> None:
    assert for_mkdocs(text) == wanted


@pytest.mark.parametrize(
    ("cell", "tone"),
    [
        *((" × ", "fails"), (" **+×** ", "fails .changed"), (" **-×** ", "holds .changed"), (" \\~× ", "fails")),
        *((" · ", "holds"), (" safe (slow) ", "holds"), (" ? ", "unknown"), (" – ", "skipped")),
        (" *not promised*: × lost acknowledged data (undisturbed); safe (slow) ", "unknown"),
        (" *not promised*: safe (undisturbed); × corruption (slow, busy) ", "unknown"),
        (" safe (undisturbed); × corruption (busy) ", "fails"),
        *((" holds where ", ""), (" not × ", ""), ("---", ""), (" `×` ", ""), ("", "")),
    ],
)
def test_verdicts_in_tables_get_their_colour(cell: str, tone: str) -> None:
    assert tone_of(cell) == tone
    wanted = f"| a |{cell}{{ .{tone} }} |" if tone else f"| a |{cell}|"
    assert coloured(f"```\n| a |{cell}|\n```\n| a |{cell}|\na | × |") == f"```\n| a |{cell}|\n```\n{wanted}\na | × |"


def test_anchors_are_those_of_a_forge() -> None:
    assert slug("`result.json`: `bob.result/1`", "-") == "resultjson-bobresult1"
    assert slug("What f2fs -- and _who_ does", "-") == "what-f2fs----and-_who_-does"


# In a browser

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")


def seen(url: str, folder: Path) -> str:
    """The page as a browser has it when its scripts have run."""
    words = [str(BROWSER), "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}"]
    words += ["--virtual-time-budget=30000", "--dump-dom", url]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
def test_the_filter_and_the_search_work_from_a_file_system(site: Path, tmp_path: Path) -> None:
    page = seen(f"{(site / 'table.html').as_uri()}#fs=xfs&kernel=6.12&property=append-any", tmp_path)
    rows = re.findall(r'<tr data-kernel="([\d.]+)" data-fs="(\w[\w-]*)" data-reference="[^"]+"( hidden="")?>', page)
    assert len(rows) > 40
    assert [(kernel, fs) for kernel, fs, hidden in rows if not hidden] == [("6.12", "xfs")]
    assert f"1 of {len(rows)} configurations are shown." in page
    counts = dict(re.findall(r'data-counts="(\w+)">(\d+)<', page))
    assert counts == {"fails": "1", "holds": "0", "unknown": "0", "skipped": "0"}
    found = seen(f"{(site / 'index.html').as_uri()}?q=recovery+forgets", tmp_path)
    assert re.search(r'<a href="[^"]*how-it-works\.html\?h=[^"]*#what-recovery-forgets" class="md-search', found)
    found = seen(f"{(site / 'index.html').as_uri()}?q=--expect", tmp_path)
    assert re.search(r'<a href="[^"]*\.html\?h=expect[^"]*" class="md-search', found)


@pytest.mark.parametrize(
    ("source", "question", "word"),
    [
        ({}, "sync-all", Grade.WEAKER),
        ({"device_model": encode(DeviceModelDocument.of(DeviceModel()))}, "sync-all", Grade.WEAKER),
        ({"device_model": encode(DeviceModelDocument.of(DEFAULT_MODEL))}, "sync-all", Grade.YES),
        ({}, "append-stale", Grade.YES),
    ],
)
def test_a_model_of_a_disk_that_is_done_at_once_is_less_sure_of_a_sync(
    source: dict[str, object], question: str, word: Grade
) -> None:
    model = load_model(next(path for path in MODELS if path.stem == "ext2-sync"))
    known = {key: value for key, value in model.source.items() if key != "device_model"}
    told = replace(model, source={**known, **source})
    asked = IDIOMS[question]
    holding = {"refutation": None, "status": ClauseStatus.EXHAUSTIVE, "promised": True}
    held = replace(told, findings=tuple(replace(one, **holding) for one in told.findings))
    [(_fs, [answer])] = answered(asked, Results((), (), (held,))).answers
    assert answer.word is word
