"""bob show: a run as a document, into a file or to standard output."""

from __future__ import annotations

import io
import json
import lzma
from pathlib import Path

import pandas as pd
import pytest
from inline_snapshot import snapshot

from bob.answer.document import from_json, to_json
from bob.cli.formats import ENDINGS
from bob.cli.output import document
from bob.documents import opened
from bob.report.answer_pages import pages as programs_pages
from bob.report.answer_pages import to_html as programs_to_html
from bob.report.columns import columns_of
from bob.report.documents import to_csv, to_latex, to_markdown
from bob.report.page import pages, shown_apart, to_html
from bob.schema import encode
from report.test_programs_page import KEPT, with_protocol
from report.test_programs_page import found as programs_found
from report.witnesses import put as put_witnesses

from .stand_in import Bob, Ended, result

DOCUMENTS = {"markdown": to_markdown, "latex": to_latex, "csv": to_csv, "html": to_html}


@pytest.fixture
def run(bob: Bob) -> Path:
    """A run directory, as far as its result."""
    return put("here", "ext4-ordered")


def put(folder: str, name: str) -> Path:
    Path(folder).mkdir()
    (Path(folder) / "result.json").write_text(json.dumps(to_json(result(name))))
    return Path(folder)


def test_of_several_runs_those_without_a_table_are_left_out_and_named(bob: Bob, run: Path) -> None:
    put("there", "xfs")
    Path("stopped").mkdir()
    Path("asked").mkdir()
    (Path("asked") / "result.json").write_text('{"schema": "bob.try/1"}')
    (Path("asked") / "run.json").write_text('{"id": "1", "bob": "0.2.0", "expectations": []}')
    ended, both = bob("show", "here", "stopped", "there", "asked"), bob("show", "here", "there")
    assert (ended.code, ended.out) == (both.code, both.out)
    assert ended.err.splitlines() == snapshot(
        ["left out: stopped lacks a result.json", "left out: asked is a run of bob try, which has no table"]
    )
    assert bob("show", "stopped", "asked").code == 9
    assert bob("show", "asked").code == 8


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents(bob: Bob, run: Path, name: str) -> None:
    document = DOCUMENTS[name](columns_of([(result(), run)]))

    assert bob("show", "here", "--format", name) == Ended(3, document, "")
    assert bob("show", "here/result.json", "--format", name, "--output", "-") == Ended(3, document, "")
    assert bob("show", "here", "--format", name, "--output", "file") == Ended(3, "", "")
    assert Path("file").read_text(encoding="utf-8") == document


@pytest.mark.parametrize(
    ("name", "ending"), [(name, ending) for name, endings in ENDINGS.items() for ending in endings]
)
def test_the_name_of_the_file_says_the_format(bob: Bob, run: Path, name: str, ending: str) -> None:
    assert bob("show", "here", "--format", name, "--output", "asked").code == 3
    assert bob("show", "here", "--output", f"file{ending.upper()}").code == 3
    assert Path(f"file{ending.upper()}").read_bytes() == Path("asked").read_bytes()


def test_what_is_asked_for_wins_over_the_name(bob: Bob, run: Path) -> None:
    bob("show", "here", "--format", "csv", "--output", "table.html")

    assert len(pd.read_csv("table.html")) == 3


def test_without_a_format_it_is_the_table(bob: Bob, run: Path) -> None:
    table = bob("show", "here").out

    assert bob("show", "here", "--format", "table").out == table
    assert bob("show", "here", "--output", "file") == Ended(3, "", "")
    assert Path("file").read_text() == table


def test_json_is_the_result_document(bob: Bob, run: Path) -> None:
    text = bob("show", "here", "--format", "json").out

    assert text == bob("show", "here", "--json", "-").out
    assert opened(text.encode()) == document(result(), run)
    assert from_json(opened(text.encode())) == from_json(opened((run / "result.json").read_bytes())) == result()
    [replayed, *_others] = [
        way["replay"] for one in document(result(), run)["subjects"][0]["answers"] for way in one.get("ways", ())
    ]
    assert replayed == "bob replay here/witnesses/append-any.json"


@pytest.mark.parametrize("name", ENDINGS)
def test_several_runs(bob: Bob, name: str) -> None:
    put("a", "ext4-ordered"), put("b", "xfs")

    ended = bob("show", "a", "b", "--format", name)

    assert (ended.code, ended.err) == (3, "")
    assert "ordered" in ended.out and "xfs" in ended.out
    if name == "json":
        assert json.loads(ended.out) == [
            document(result("ext4-ordered"), Path("a")),
            document(result("xfs"), Path("b")),
        ]
    if name == "csv":
        assert pd.read_csv(io.StringIO(ended.out))["configuration"].unique().tolist() == ["ext4-ordered", "xfs"]
    if name == "html":
        assert "bob replay a/witnesses/append-any.json" in ended.out
        assert "bob replay b/witnesses/append-any.json" in ended.out


def test_a_document_and_json_at_once(bob: Bob, run: Path) -> None:
    assert bob("show", "here", "--output", "t.html", "--json", "-").out == bob("show", "here", "--format", "json").out
    assert bob("show", "here", "--format", "csv", "--json", "r.json").out.startswith("run,kernel,configuration,")
    assert opened(Path("r.json").read_bytes()) == document(result(), run)
    assert Path("t.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--format", "csv", "--json", "-"),
            snapshot("""\
bob: two documents cannot both go to stdout
hint: name a file with --output or with --json
"""),
        ),
        (
            ("--output", "-", "--json", "-"),
            snapshot("""\
bob: two documents cannot both go to stdout
hint: name a file with --output or with --json
"""),
        ),
        (
            ("--output", "gone/t.html"),
            snapshot("""\
bob: --output: the directory gone does not exist
hint: mkdir -p gone
"""),
        ),
        (
            ("--output", "here"),
            snapshot("""\
bob: --output: here is a run directory
hint: for example --output here/pages/
"""),
        ),
        (
            ("--output", "here/"),
            snapshot("""\
bob: --output: here is a run directory
hint: for example --output here/pages/
"""),
        ),
        (
            ("--output", ""),
            snapshot("""\
bob: --output: . is a directory
hint: for example result.json
"""),
        ),
        (
            ("--output", "here/result.json/"),
            snapshot("""\
bob: --output: here/result.json is not a directory
hint: name another directory
"""),
        ),
        (
            ("--format", "csv", "--output", "new/"),
            snapshot("""\
bob: --output: new is a directory
hint: for example new/table.csv
"""),
        ),
        (
            ("--output", "table.pdf"),
            snapshot("""\
bob: --output: cannot write .pdf
hint: it writes .txt, .md, .tex, .csv, .json, .html, .xml, .ktap; with --format, FILE may have any ending
"""),
        ),
        (
            ("--output", "t.XLSX"),
            snapshot("""\
bob: --output: cannot write .xlsx
hint: it writes .txt, .md, .tex, .csv, .json, .html, .xml, .ktap; with --format, FILE may have any ending
"""),
        ),
        (
            ("--format", "site"),
            snapshot("""\
bob: a site needs a directory
hint: for example --output pages/
"""),
        ),
        (
            ("--format", "site", "--output", "-"),
            snapshot("""\
bob: a site needs a directory
hint: for example --output pages/
"""),
        ),
        (
            ("--format", "site", "--output", "here/result.json"),
            snapshot("""\
bob: --output: here/result.json is not a directory
hint: name another directory
"""),
        ),
        (
            ("--format", "pdf"),
            snapshot("""\
bob: invalid value for '--format': 'pdf' is not one of 'table', 'markdown', 'latex', 'csv', 'json', 'html', 'junit', 'ktap', 'svg', 'dot', 'site'
hint: bob show --help
"""),
        ),
    ],
)
def test_what_cannot_be(bob: Bob, run: Path, options: tuple[str, ...], message: str) -> None:
    ended = bob("show", "here", *options)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err == message
    assert "\nhint: " in ended.err


def test_a_document_is_utf_8_whatever_the_terminal_is(bob: Bob, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", stdout)
        bob("show", "here", "--format", "markdown")
    assert "| append-any | × |" in stdout.buffer.getvalue().decode("utf-8")  # type: ignore[attr-defined]


def test_a_result_with_half_a_letter_is_written(bob: Bob, run: Path) -> None:
    text = (
        (run / "result.json")
        .read_text()
        .replace("the guest was lost", "lost \\\\ud800 \\\\u0000".replace("\\\\", "\\"))
    )
    (run / "result.json").write_text(text)
    for name in ENDINGS:
        assert bob("show", "here", "--format", name, "--output", "file").code == 3
        Path("file").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "options", [("--output", "new/pages/"), ("--output", "."), ("--format", "site", "--output", "p")]
)
def test_a_folder_becomes_a_site(bob: Bob, run: Path, options: tuple[str, ...]) -> None:
    put_witnesses(run, result())
    expected = {str(place): text for place, text in pages(shown_apart(columns_of([(result(), run)])))}

    assert bob("show", "here", *options) == Ended(3, "", "")

    folder = Path(options[-1])
    made = [folder / "index.html", *(folder / "witnesses").rglob("*.*")]
    found = {str(path.relative_to(folder)): path.read_text() for path in made}
    assert found == expected
    page = "witnesses/ext4-ordered/append-any"
    assert set(found) == {"index.html", f"{page}.html", f"{page}.json"}
    assert f"bob replay {run}/witnesses/append-any.json" in found["witnesses/ext4-ordered/append-any.html"]


def test_a_site_takes_the_place_of_the_one_before(bob: Bob, run: Path) -> None:
    assert bob("show", "here", "--output", "pages/").code == 3
    put_witnesses(run, result())
    assert bob("show", "here", "--output", "pages", "--json", "-").out == bob("show", "here", "--json", "-").out
    assert Path("pages/witnesses/ext4-ordered/append-any.html").exists()


def test_answers_for_a_program(bob: Bob) -> None:
    """As text, as a page, and as several; 1 since the program is vulnerable on one of them."""
    answers, run = programs_found(Path.cwd()), "result.json"
    shown = bob("show", run)
    assert (shown.code, shown.err) == (1, "") and answers.answers[0].ways[0].evidence in shown.out
    assert bob("show", run, "--output", "answers.txt") == Ended(1, "", "")
    assert Path("answers.txt").read_text().split() == shown.out.split()
    assert bob("show", run, "--output", "answers.html") == Ended(1, "", "")
    assert Path("answers.html").read_text() == programs_to_html(answers, Path())
    assert bob("show", run, "--output", "made/") == Ended(1, "", "")
    made = {path.relative_to("made").as_posix() for path in Path("made").rglob("*.*")}
    assert made == {str(place) for place, _text in programs_pages(answers, Path())}
    shown = opened(bob("show", run, "--json", "-").out.encode())
    assert from_json(shown) == answers and shown == document(answers, Path())
    Path("packed.json.xz").write_bytes(lzma.compress(Path(run).read_bytes()))
    assert opened(bob("show", "packed.json.xz", "--json", "-").out.encode()) == shown
    for made_of in ("html", "junit"):
        ended = bob("show", run, "--format", made_of, "--json", "-")
        assert (ended.code, ended.out) == (2, "")
    ended = bob("show", run, "--format", "json")
    assert (ended.code, opened(ended.out.encode())) == (1, shown)
    assert bob("show", run, "--format", "csv").out.startswith("program,kind,name,safety,type,consequences,place\n")
    assert f"| {answers.program_name} | " in bob("show", run, "--format", "markdown").out


def test_the_update_protocol_is_a_picture_and_a_graph(bob: Bob, run: Path) -> None:
    answers = with_protocol(Path.cwd())
    document = opened(Path("result.json").read_bytes())
    Path("result.json").write_text(json.dumps({**document, "protocols": [encode(one) for one in answers.protocols]}))
    for name, begins in (("p.svg", "<svg "), ("p.dot", "digraph protocol {"), ("p.gv", "digraph protocol {")):
        assert bob("show", "result.json", "--output", name) == Ended(1, "", "")
        assert Path(name).read_text().startswith(begins)
    assert bob("show", "result.json", "--format", "dot").out == Path("p.dot").read_text()
    ended = bob("show", str(run), "--output", "p.svg")
    assert (ended.code, ended.err.splitlines()) == (
        2, [snapshot("bob: cannot draw here as svg: it has no update protocol"), snapshot("hint: a run of bob app has one")]
    )  # fmt: skip
    Path("result.json").write_text(json.dumps(document))
    ended = bob("show", "result.json", "--output", "p.svg")
    assert ended.code == 2 and ended.err == snapshot("""\
bob: this run of replace-mv lacks an update protocol
hint: older runs lack it, and so do runs in which bob could not follow the program's calls
""")


def test_several_runs_of_programs_are_tables_of_vulnerabilities(bob: Bob) -> None:
    sample = Path(__file__).resolve().parents[1] / "answer" / "apps-1.json.xz"
    programs = json.loads(lzma.decompress(sample.read_bytes()))["programs"]
    for one in programs:
        if one["program"]["name"] in ("gdbm", "lmdb"):
            Path(f"{one['program']['name']}.json").write_text(json.dumps(one))
    shown = bob("show", "gdbm.json", "lmdb.json")
    assert (shown.code, shown.err) == (1, "") and "Vulnerabilities by consequence" in shown.out
    assert ["gdbm", "3", "3", "0", "3", "0", "3"] in [line.split() for line in shown.out.splitlines()]
    assert bob("show", "gdbm.json", "lmdb.json", "--output", "t.txt") == Ended(1, "", "")
    assert Path("t.txt").read_text().split() == shown.out.split()
    for name in ("t.md", "t.tex", "t.csv", "t.html"):
        assert bob("show", "gdbm.json", "lmdb.json", "--output", name) == Ended(1, "", "")
        assert "gdbm" in Path(name).read_text()
    assert json.loads(bob("show", "gdbm.json", "lmdb.json", "--json", "-").out)["schema"] == "bob.vulnerabilities/1"
    Path("begun").mkdir()
    begun, both = bob("show", "gdbm.json", "begun", "lmdb.json"), bob("show", "gdbm.json", "lmdb.json")
    assert (begun.code, begun.out, begun.err) == (
        both.code,
        both.out,
        snapshot("left out: begun lacks a result.json\n"),
    )
    assert bob("show", "begun", "begun").code == 9
    ended = bob("show", "gdbm.json", "lmdb.json", "--format", "junit")
    assert (ended.code, ended.err.splitlines()[0]) == (
        2,
        snapshot("bob: cannot write several runs of bob app as junit"),
    )
    whole = bob("show", str(KEPT / "apps.json.xz"))
    assert whole.code == 1 and len(whole.out.splitlines()) > len(programs) * 3
