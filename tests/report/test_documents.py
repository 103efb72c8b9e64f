"""Markdown, LaTeX and CSV, read back by what reads them; and text of others in them."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot
from markdown_it import MarkdownIt

import bob
from bob import counts, documents
from bob.answer.document import to_json
from bob.answer.result import Result, SubjectResult
from bob.claim.verdict import Verdict
from bob.cli.formats import ENDINGS
from bob.crash.coverage import States
from bob.errors import MalformedError, StoreError
from bob.report.columns import ShownColumn, columns_of, grouped
from bob.report.documents import to_csv, to_latex, to_markdown
from bob.report.escape import REPLACEMENT, Raw, clean, markdown, markdown_code, tex
from bob.report.frames import CELL_FIELDS, WORKLOAD_FIELDS, cell_frame, matrix
from bob.report.rows import TITLES, by_family, title
from test_docs import text, words
from wording import sentence_with, text_with

from .samples import EVIDENCE, KERNEL_SAYS, SIXTEEN, cell, named, result, sixteen, unmountable

RUN = Path("bob-runs/20261121T230021-1f2e3d")
NASTY = r"a|b *c* _d_ `e` <f> & [g](h) ~~i~~ # $j$ \k {l} %m ^n ``o`` ]( http"

anything = st.text(max_size=40) | st.text("\\{}$&#%_^~<>|\"'`-[]*! \n\r\tab×→–", max_size=40)


def columns(*results: Result) -> list[ShownColumn]:
    """The columns of ``results``."""
    return columns_of((one, RUN) for one in results)


def run_named(text: str) -> Result:
    """A run in which others say ``text`` wherever they say something."""
    (column,) = result().subjects
    one = named(
        cell("append-any", Verdict.FAILS, States(2, 4, 8), evidence=text, witness=text), "append-any", family=text
    )
    shown = replace(column, name=f"x {text}", mkfs_options=text, effective_mount_options=text, notes=(text,))
    shown = replace(shown, answers=(one, named(one, text)), beside=(unmountable(3, text, text),))
    on = replace(result().environment, kernel=text, image=text, qemu=text)
    return replace(result(), environment=on, subjects=(shown, replace(shown, name="ext4-b", fs="ext4")))


# The rows


def test_every_row_of_table_1_has_a_title() -> None:
    assert list(TITLES) == [name for names in by_family(result().subjects).values() for name in names]
    assert title("a-property-of-mine") == "a-property-of-mine"


# CSV


def test_csv_comes_back_through_pandas() -> None:
    text = to_csv(columns(sixteen(), result("ext4-noatime")))
    exact = dict.fromkeys(("legal_writes", "legal_sectors"), int)
    empty = {name: [""] for name in CELL_FIELDS if name.startswith("log2_") or name == "torn_share"}
    back = pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=empty, converters=exact)

    made = cell_frame(columns(sixteen(), result("ext4-noatime")))
    assert tuple(back.columns) == CELL_FIELDS
    pd.testing.assert_frame_equal(back, made, check_dtype=False)


def test_a_plain_reader_has_the_counts_as_floats() -> None:
    huge = States(2**12320, 2**4129, 2**12321, None, 9, 2**4127)
    column = replace(result().subjects[0], answers=(cell("append-any", Verdict.HOLDS, huge),))
    [row] = pd.read_csv(io.StringIO(to_csv(columns(replace(result(), subjects=(column,)))))).to_dict("records")
    told = [row[f"log2_{name}"] for name in ("explored", "explored_writes", "legal_writes", "legal_sectors")]
    assert told == [12320.0, 4127.0, 4129.0, 12321.0]
    assert row["torn_share"] == pytest.approx(0.5)
    assert pd.isna(row["log2_violations"])


def test_csv_keeps_any_text() -> None:
    text = 'a,b\n"c"; d\r\n×'
    [first, _second, *_] = pd.read_csv(io.StringIO(to_csv(columns(run_named(text)))), keep_default_na=False)["evidence"]
    assert first.replace("\r\n", "\n") == text.replace("\r\n", "\n")


def test_csv_of_huge_numbers_is_exact() -> None:
    (column,) = result().subjects
    column = replace(column, answers=(cell("append-any", Verdict.HOLDS, States(2, 3**400, 7**500)),))
    text = to_csv(columns(replace(result(), subjects=(column,))))
    assert f",{3**400},{7**500}," in text


# Markdown


class Said(HTMLParser):
    """What a reader of rendered Markdown sees: rows of tables, list items, and which tags there are."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: set[str] = set()
        self.text = ""
        self.inside = False
        self.feed(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text))

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.inside = True

    def handle_endtag(self, tag: str) -> None:
        self.inside &= tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.inside:
            self.rows[-1][-1] += data


def test_the_markdown_table_is_the_matrix() -> None:
    text = to_markdown(columns(sixteen()))
    marks = matrix(columns_of([(sixteen(), Path())])).replace("holds", "·")

    rows = [row for row in Said(text).rows if len(row) == 17]
    assert rows[0] == ["property", *SIXTEEN]
    by_name = {row[0]: row[1:] for row in rows}
    for (_family, name), values in zip(marks.index, marks.to_numpy().tolist(), strict=True):
        assert by_name[name] == values
    assert [row[0] for row in rows[1:] if not any(row[1:])] == ["atomicity", "ordering"]


@pytest.mark.parametrize("results", [(result(),), (sixteen(),), (result(), result()), (run_named(NASTY),)])
def test_the_columns_of_markdown_tables_agree(results: tuple[Result, ...]) -> None:
    lines = to_markdown(columns(*results)).splitlines()
    tables = [re.findall(r"(?<!\\)\|", line) for line in lines if line.startswith("|")]
    count = sum(len(one.subjects) for one in results) + 2
    assert {len(bars) for bars in tables} == {count, 3, 6}
    assert [line for line in lines if line != line.rstrip()] == []


def test_markdown_has_the_evidence() -> None:
    text = " ".join(Said(to_markdown(columns(result()))).text.split())
    assert f"× single-block-overwrite {EVIDENCE}" in text
    assert "directory-op holds 700 of 4,096 < 0.1 % 12" in text
    assert "single-sector-append holds all 212 12 % 12" in text
    assert f"bob replay {RUN}/witnesses/append-any.json" in text
    assert "multi-block-append ? 700 of 4,096 < 0.1 % 4 of 12 unknown" in text
    assert f"! 3 crash states could not be mounted {' '.join(KERNEL_SAYS.split())}" in text
    assert sentence_with(text, "proof") == snapshot("This is not a proof.") and "whole states: how many" in text


@settings(deadline=None)
@given(anything)
def test_markdown_says_what_the_text_says(text: str) -> None:
    for written in (f"a {markdown(text)} z", f"| |\n|---|\n| a {markdown(text)} z |"):
        said = Said(written)
        assert " ".join(said.text.split()) == " ".join(f"a {clean(text)} z".split())
        assert said.tags <= {"p", "table", "thead", "tbody", "tr", "td", "th"}


@settings(deadline=None)
@given(anything.filter(lambda text: text.split()))
def test_markdown_code_says_what_the_text_says(text: str) -> None:
    said = Said(f"a {markdown_code(text)} z")
    assert said.text.strip() == f"a {' '.join(clean(text).split())} z"
    assert said.tags == {"p", "code"}


def test_markdown_of_any_text() -> None:
    assert Said(to_markdown(columns(run_named(NASTY)))).tags == Said(to_markdown(columns(run_named("n")))).tags


# LaTeX


def untex(text: str) -> str:
    """What LaTeX typesets for an escaped ``text``; AssertionError where it would do anything else."""
    says = {f"\\{letter}": letter for letter in "{}$&#%_"}
    says |= {r"\textbackslash{}": "\\", r"\textasciicircum{}": "^", r"\textasciitilde{}": "~", r"\textless{}": "<"}
    says |= {r"\textgreater{}": ">", r"\textbar{}": "|", r"\symbol{34}": '"', r"\`{}": "`", r"$\times$": "×"}
    says |= {r"$\cdot$": "·", r"$\rightarrow$": "→", r"\textendash{}": "–", r"\textemdash{}": "—", r"\ldots{}": "…"}
    says["-{}"] = "-"
    said, place = "", 0
    while place < len(text):
        for length in range(20, 0, -1):
            if (part := text[place : place + length]) in says:
                said, place = said + says[part], place + len(part)
                break
        else:
            assert text[place] not in '\\{}$&#%_^~<>|"`', text[place:]
            assert text[place : place + 2] != "--"
            said, place = said + text[place], place + 1
    return said


@settings(deadline=None)
@given(anything)
def test_latex_says_what_the_text_says(text: str) -> None:
    escaped = tex(text)
    assert escaped.isascii() and "\n" not in escaped
    said = untex(escaped)
    if re.fullmatch(r"[ -~×·→–—…]*", text):
        assert said == " ".join(text.split())


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("ext4 -O ^has_journal", r"ext4 -O \textasciicircum{}has\_journal"),
        ("50 % & $5 #1 {x}", r"50 \% \& \$5 \#1 \{x\}"),
        ("--mkfs-opts", r"-{}-mkfs-opts"),
        ("Überblick, café", "Uberblick, cafe"),
        ("文\x00", "??"),
        (Raw(r"\LaTeX"), r"\LaTeX"),
    ],
)
def test_latex_escapes(text: str, written: str) -> None:
    assert tex(text) == written


def latex_rows(text: str) -> dict[str, list[str]]:
    """The cells of each row of the table by its first."""
    rows = [
        line.strip().removesuffix(r"\\").split("&") for line in text.splitlines() if line.strip().startswith(r"\quad")
    ]
    return {first.strip().removeprefix(r"\quad "): [cell.strip() for cell in rest] for first, *rest in rows}


def test_the_latex_table_is_the_matrix() -> None:
    text = to_latex(columns(sixteen()))
    written = {"holds": "", "×": r"$\times$", "?": "?", "–": r"\textendash{}"}

    rows = latex_rows(text)
    marks = matrix(columns_of([(sixteen(), Path())]))
    assert list(rows) == [str(tex(title(name))) for _family, name in marks.index]
    for (_family, name), values in zip(marks.index, marks.to_numpy().tolist(), strict=True):
        assert rows[str(tex(title(name)))] == [written[value] for value in values]


def test_the_heads_of_the_latex_table() -> None:
    text = to_latex(columns(sixteen()))
    assert re.findall(r"\\multicolumn\{(\d+)\}\{c\}\{(\w+)\}", text) == [
        *(("2", "ext2"), ("3", "ext3"), ("4", "ext4"), ("2", "xfs"), ("4", "reiserfs"))
    ]
    assert re.findall(r"\\cmidrule\(lr\)\{(\d+-\d+)\}", text) == ["2-3", "4-6", "7-10", "12-13", "14-17"]
    heads = re.findall(r"\\rotatebox\{90\}\{(.*?)\}", text)
    assert heads[:3] + heads[9:11] == ["default", "sync", "writeback", "btrfs", "default"]
    [spec] = re.findall(r"\\begin\{tabular\}\{(.*)\}$", text, flags=re.M)
    assert len(re.sub(r"@\{(?:\\hspace\{8pt\})?\}", "", spec)) == 17
    assert "booktabs" in text.partition(r"\begin")[0] and "graphicx" in text.partition(r"\begin")[0]


def test_the_caption_says_what_is_in_the_table() -> None:
    captions = {
        name: " ".join(to_latex(columns(one)).partition(r"\caption")[2].split())
        for name, one in (("one", result("ext4-ordered")), ("many", sixteen()))
    }
    assert "Linux 6.1.0-31-amd64" in captions["one"]
    assert "Explored by 0 mounts of 16 configurations; volatile write cache" in captions["many"]
    assert "?: unknown." in captions["many"] and r"\textendash{}: skipped" in captions["many"]
    (column,) = result().subjects
    held = replace(column, answers=(cell("append-any", Verdict.HOLDS, States(2, 4, 8)),))
    other = replace(column, name="ext4-b", answers=(cell("directory-op", Verdict.FAILS, States(2, 4, 8)),))
    text = to_latex(columns(replace(result(), subjects=(held, other))))
    assert "unknown" not in text and "skipped" not in text
    assert latex_rows(text) == {
        "Directory op": [r"$\cdot$", r"$\times$"],
        r"Append $\rightarrow$ Any op": ["", r"$\cdot$"],
    }
    assert r"$\cdot$: not probed" in text


@settings(deadline=None)
@given(anything)
def test_latex_of_any_text_has_one_shape(text: str) -> None:
    """Braces are balanced, every environment is closed, and each row has all its cells."""
    written = to_latex(columns(run_named(text)))
    body = re.sub(r"(?m)^%.*$", "", written)
    depth = 0
    for brace in re.findall(r"\\.|[{}]", body, flags=re.S):
        depth += {"{": 1, "}": -1}.get(brace, 0)
        assert depth >= 0
    assert depth == 0
    assert re.findall(r"\\(begin|end)\{(\w+)\}", body) == [
        *(("begin", "table"), ("begin", "tabular"), ("end", "tabular"), ("end", "table"))
    ]
    for line in body.splitlines():
        if line.strip().startswith(r"\quad"):
            assert len(re.findall(r"(?<!\\)&", line)) == 2


def test_clean() -> None:
    assert clean("a\x00b\ud800c\td") == f"a{REPLACEMENT}b{REPLACEMENT}c\td"


# Documents on few lines say what they said, and counts in them are exact

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=300),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=20), inner),
    max_leaves=40,
)


@given(PLAIN)
def test_it_reads_back(document: Any) -> None:
    written = documents.text(document)
    assert json.loads(written) == document
    assert written.endswith("\n")


@given(PLAIN)
def test_a_line_ends_where_the_next_part_is_too_long_for_it(document: Any) -> None:
    for line in documents.text(document).splitlines():
        [*_, last] = line.removesuffix(",").strip().split(": ", 1)
        assert len(last) <= documents.LONGEST_LINE or last.startswith('"')


def test_small_parts_are_lines_and_large_ones_are_blocks() -> None:
    rows = [{"name": f"workload {number}", "states": {"explored": number}} for number in range(20)]
    assert documents.text({"schema": "x/1", "rows": rows}).splitlines()[:4] == [
        "{",
        ' "schema": "x/1",',
        ' "rows": [',
        '  {"name":"workload 0","states":{"explored":0}},',
    ]
    assert documents.text({"schema": "x/1"}) == '{"schema":"x/1"}\n'


# Counts in documents are exact, and what is none is refused


FEW = st.lists(st.tuples(st.sampled_from([1, -1]), st.integers(0, 40_000)), min_size=1, max_size=6)


def total(powers: list[tuple[int, int]]) -> int:
    return sum(sign * 2**exponent for sign, exponent in powers)


@given(st.integers() | st.integers(-(2**400), 2**400) | FEW.map(total))
def test_counts_read_back_the_same(count: int) -> None:
    text = counts.written(count)
    assert counts.read(text) == counts.read(str(text)) == count
    assert isinstance(text, str) or abs(text) <= 2**53


@given(FEW)
def test_a_sum_of_few_powers_is_short(powers: list[tuple[int, int]]) -> None:
    count = total(powers)
    if len(str(abs(count))) > counts.MOST_DIGITS:
        assert len(str(counts.written(count))) <= min(len(str(count)), len(powers) * len("+2^40000"))


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (2**53, 2**53),
        (2**53 + 1, "9007199254740993"),
        (2**12321 - 2**12310 + 2**77, "2^12321-2^12310+2^77"),
        (1 - 2**200, "-2^200+2^0"),
        (10**40 - 1, "9" * 40),
    ],
)
def test_as_documents_have_them(count: int, text: int | str) -> None:
    assert counts.written(count) == text


def test_digits_of_older_documents_are_read() -> None:
    assert counts.read(str(3**20_000)) == 3**20_000


@pytest.mark.parametrize(
    "text", ["2^", "2^7+", "3^7", "2^7*2^8", "2^7 + 2^6", "2^-7", "many", "", "2^99999999", None, []]
)
def test_what_is_none_is_refused(text: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        counts.read(text)  # type: ignore[arg-type]


# A run read again: bob.load, its table, and the long tables


def saved(folder: Path, run: Result) -> Path:
    """A run directory, as far as its result."""
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(to_json(run)))
    return folder


def test_matrix_of_a_saved_run(tmp_path: Path) -> None:
    run = saved(tmp_path / "run", sixteen())

    loaded = bob.load(str(run))

    assert loaded.result == sixteen()
    assert loaded.folder == run
    assert loaded.matrix().shape == (13, 16)
    pd.testing.assert_frame_equal(loaded.matrix(), matrix(columns_of([(sixteen(), Path())])))
    assert bob.load(run / "result.json") == loaded


def test_a_shell_and_a_notebook_show_little_of_a_large_run(tmp_path: Path) -> None:
    loaded = bob.load(saved(tmp_path / "run", sixteen()))
    fails = (loaded.matrix() == "×").to_numpy().sum()
    assert text_with(repr(loaded).replace(str(tmp_path), "TMP"), 16, fails, 138, 1, 13) == snapshot(
        "<16 configurations in TMP/run: 56 fails, 138 holds, 1 unknown, 13 skipped>"
    )
    assert loaded._repr_html_().count("<td>×</td>") == fails
    empty = replace(loaded, result=replace(loaded.result, subjects=()))
    assert text_with(repr(empty).replace(str(tmp_path), "TMP"), 0) == snapshot(
        "<0 configurations in TMP/run: no cells>"
    )


def test_cells(tmp_path: Path) -> None:
    cells = bob.load(saved(tmp_path / "run", sixteen())).cells()

    assert tuple(cells.columns) == CELL_FIELDS
    assert list(dict.fromkeys(cells["configuration"])) == list(SIXTEEN)
    assert len(cells) == 13 * 16
    [found] = cells.query("configuration == 'btrfs' and property == 'append-any'").to_dict("records")
    assert found["verdict"] == "fails"
    assert (found["workloads"], found["failing_workloads"], found["violations"]) == (12, 4, 28)
    assert found["legal_sectors"] == 2**88
    assert found["witness"] == "witnesses/append-any.json"
    assert found["exhaustive"] == found["reason"] == ""
    wide = cells.pivot(index=["family", "property"], columns="configuration", values="verdict")
    assert (wide == "fails").to_numpy().sum() == (matrix(columns_of([(sixteen(), Path())])) == "×").to_numpy().sum()


def test_workloads_say_which_failed(tmp_path: Path) -> None:
    workloads = bob.load(saved(tmp_path / "run", sixteen())).workloads()

    assert tuple(workloads.columns) == WORKLOAD_FIELDS
    asked = workloads.query("configuration == 'btrfs' and property == 'append-any'")
    assert len(asked) == 12
    failed = asked[asked["verdict"] == Verdict.FAILS.value]
    assert failed["finish"].unique().tolist() == ["natural"]
    assert failed["workload"].tolist() == [f"workload {place}" for place in range(4)]


def test_a_run_without_configurations(tmp_path: Path) -> None:
    loaded = bob.load(saved(tmp_path / "run", replace(result(), subjects=())))

    assert (loaded.matrix().shape, len(loaded.cells()), len(loaded.workloads())) == ((0, 0), 0, 0)
    assert loaded.matrix().index.names == ["family", "property"]


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as refused:
        bob.load(tmp_path)
    assert text_with(str(refused.value).replace(str(tmp_path), "TMP"), "result.json") == snapshot(
        "TMP lacks a result.json"
    )
    with pytest.raises(StoreError) as refused:
        bob.load(tmp_path / "gone")
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot("TMP/gone does not exist")
    (tmp_path / "result.json").write_text("{")
    with pytest.raises(MalformedError) as refused:
        bob.load(tmp_path)
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot(
        "TMP/result.json is not a result: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
    )


def test_who_takes_a_model_for_a_result_is_told_what_shows_it() -> None:
    model = Path(__file__).parents[2] / "reports" / "models" / "osdi14-linux-6.1" / "ext4-ordered.json"
    with pytest.raises(MalformedError, match=r"schema 'bob\.apm/1' is not") as refused:
        bob.load(model)
    assert refused.value.hint == snapshot("`bob apm show FILE` shows a model")


def test_importing_bob_loads_its_version_alone() -> None:
    script = "import bob, sys; print(*(name for name in sys.modules if name.startswith(('bob.', 'pandas', 'jinja2'))))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["bob.version"]


def column(label: str, fs: str) -> ShownColumn:
    """A column of this name."""
    return ShownColumn(label, result(), SubjectResult(label, fs, "", "", "", ()), Path())


@pytest.mark.parametrize(
    ("label", "fs", "variant"),
    [
        ("ext4-ordered", "ext4", "ordered"),
        ("xfs", "xfs", "default"),
        ("xfs, 6.12.1", "xfs", "default, 6.12.1"),
        ("xfs-wsync, 6.12.1", "xfs", "wsync, 6.12.1"),
        ("ext4 -O ^has_journal", "ext4", "-O ^has_journal"),
        ("ext4 noatime", "ext4", "noatime"),
        ("ext4dev", "ext4", "ext4dev"),
        ("a-name-of-mine", "ext4", "a-name-of-mine"),
        ("", "ext4", "ext4"),
    ],
)
def test_variants(label: str, fs: str, variant: str) -> None:
    assert column(label, fs).variant == variant


def test_groups_are_neighbours_of_one_file_system() -> None:
    found = [(fs, [column.label for column in group]) for fs, group in grouped(columns_of([(sixteen(), Path())]))]
    assert [(fs, len(names)) for fs, names in found] == [
        *(("ext2", 2), ("ext3", 3), ("ext4", 4), ("btrfs", 1), ("xfs", 2), ("reiserfs", 4))
    ]
    apart = [column("ext4-a", "ext4"), column("xfs", "xfs"), column("ext4-b", "ext4")]
    assert [fs for fs, _group in grouped(apart)] == ["ext4", "xfs", "ext4"]


# docs/results.md against the code: the formats, and the columns of the tables


PAGE = "docs/results.md"


def test_the_formats_are_those_of_the_command() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\.\w+)` \|", text(PAGE), flags=re.M)
    assert rows == [(name, endings[0]) for name, endings in ENDINGS.items()]


def test_every_column_is_described() -> None:
    assert {*CELL_FIELDS, *WORKLOAD_FIELDS} <= words(text(PAGE))


def test_code_in_a_line() -> None:
    assert markdown_code("bob") == "`bob`"
    assert markdown_code("a`b") == "``a`b``"
    assert markdown_code("``a`") == "``` ``a` ```"


def test_nothing_is_markdown_by_accident() -> None:
    assert markdown("a*b_c`d|e<f>\n[g](h)~i#j&k$\\") == r"a\*b\_c\`d\|e\<f\> \[g\](h)\~i\#j\&k\$" + "\\\\"
