"""What a CI is told: JUnit files, what is expected, annotations, and the steps of docs/results.md, run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from contextlib import suppress
from dataclasses import replace
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn
from xml.etree import ElementTree as Xml

import pytest
from inline_snapshot import snapshot
from packaging.specifiers import SpecifierSet

from bob.answer.answer import CallWords, ReliedOn, Way
from bob.answer.document import from_json, to_json
from bob.answer.result import Result
from bob.catalogue.request import CheckPlace
from bob.claim.verdict import Verdict
from bob.cli.output import write_json
from bob.documents import opened
from bob.errors import GuestError, UsageError
from bob.program.answer import Consequence
from bob.program.stack import SourceLine
from bob.protocol.contrast import Explanation, Reliance
from samples_of_programs import file_system, of_program, way
from wording import line_with, text_with

from .stand_in import Bob, Work, result
from .test_compare import BAD, GOOD, LOST, NO_BUILD, Tree, put_with
from .test_results import put

ROOT = Path(__file__).parents[2]
PROBE = ("probe", "--fs", "ext4", "--mount-opts", "data=ordered", "--quiet")
MATRIX = ("matrix", "--set", "osdi14", "--quiet")
HOLDS, FAILS, UNKNOWN = Verdict.HOLDS, Verdict.FAILS, Verdict.UNKNOWN


def outcomes(file: str = "report.xml") -> dict[str, list[str]]:
    """What is in each test case, by its suite and its name."""
    root = Xml.parse(file).getroot()
    return {
        f"{case.attrib['classname']}: {case.attrib['name']}": [inner.tag for inner in case]
        for case in root.iter("testcase")
    }


TABLE = {
    "ext4-ordered: directory-op": ["error"],
    "ext4-ordered: overwrite-any": ["system-out"],
    "ext4-ordered: append-any": ["failure"],
}


@pytest.mark.parametrize(
    "command", [PROBE, MATRIX, ("search", "--fs", "ext4", "--quiet"), ("judge", "here")], ids=lambda words: words[0]
)
def test_a_table_as_junit(bob: Bob, command: tuple[str, ...]) -> None:
    put(Path("here"))
    Path("here/run.json").write_text("{}")
    ended = bob(*command, "--junit", "report.xml")
    assert outcomes() == TABLE
    assert ended.code == (1 if command[0] == "search" else 3)
    assert ended.out.startswith("ext4-ordered ")


def test_the_same_as_ktap(bob: Bob) -> None:
    put(Path("here"))
    assert bob(*PROBE, "--ktap", "report.ktap", "--junit", "report.xml").code == 3
    text = Path("report.ktap").read_text()
    results = re.findall(r"^ *((?:not )?ok [0-9]+ [^#\n]*[^# \n])", text, flags=re.M)
    assert results == ["not ok 1 directory-op", "ok 2 overwrite-any", "not ok 3 append-any", "not ok 1 ext4-ordered"]
    assert outcomes() == TABLE
    bob("show", "here", "--output", "shown.ktap")
    assert Path("shown.ktap").read_text() == bob("show", "here", "--format", "ktap").out
    assert results == [
        line.split(" #")[0].strip() for line in Path("shown.ktap").read_text().splitlines() if "ok " in line
    ]
    ended = bob(*PROBE, "--ktap", "-")
    assert ended.code == 2 and ended.err.startswith("bob: --ktap: ")


def test_what_a_run_kept_as_junit(bob: Bob) -> None:
    put(Path("here"))
    assert bob("show", "here", "--output", "report.xml").code == 3
    assert outcomes() == TABLE
    assert bob("show", "here", "--format", "junit").out == Path("report.xml").read_text()


def test_expectations_as_junit(bob: Bob, work: Work) -> None:
    work.breaks = 3
    asks = ("--expect", "exists /a", "--expect", "mounts", "--expect", "content /a = zeros")
    ended = bob(
        "try", "--fs", "ext4", "write /a 0 4096", *asks, "--quiet", "--json", "result.json", "--junit", "report.xml"
    )
    assert ended.code == 1
    assert outcomes() == {
        "ext4: exists /a": ["failure"],
        "ext4: mounts": ["system-out"],
        "ext4: content /a = zeros": ["error"],
    }
    text = Path("report.xml").read_text()
    assert "bob replay bob-runs/made-up/witnesses/expectation-1-1.json" in text
    assert line_with(text, "guest") == snapshot('<error message="the guest was lost: it hung" type="unknown" />')
    assert bob("show", "result.json", "--output", "again.xml").code == 3
    assert outcomes("again.xml") == outcomes()
    assert bob("show", "result.json", "--format", "junit", "--json", "-").code == 2


def test_a_program_as_junit(bob: Bob) -> None:
    systems = ("--fs", "ext4", "--fs", "xfs", "--fs", "btrfs")
    ended = bob("app", "replace-mv", *systems, "--pace", "undisturbed", "--quiet", "--junit", "report.xml")
    assert ended.code == 1
    assert outcomes() == {
        "replace-mv: ext4": ["failure"],
        "replace-mv: xfs": ["system-out"],
        "replace-mv: btrfs": ["error"],
    }


def test_the_place_of_a_checker_is_asked_for(bob: Bob, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """By all commands that hold programs against models."""
    places: list[CheckPlace] = []

    def requests(*_asked: Any, checks: CheckPlace, **_more: Any) -> NoReturn:
        places.append(checks)
        raise UsageError("no more is asked")

    monkeypatch.setattr("bob.cli.app.program_requests", requests)
    monkeypatch.setattr("bob.run.model_change.program_requests", requests)
    for asked in (
        ("app", "replace-mv", "--model", "ext4-o"),
        ("apm", "what-if", "ext4-o", "-safe rename", "--out", "m.json", "--app", "replace-mv"),
        ("reproduce", "ccfs", "--app", "git-commit"),
    ):
        bob(*asked)
        bob(*asked, "--checks", "host")
        bob(*asked, "--checks", "guest")
        assert places == [CheckPlace.AUTO, CheckPlace.HOST, CheckPlace.GUEST]
        places.clear()
    ended = bob("app", "replace-mv", "--model", "ext4-o", "--checks", "cellar")
    assert (ended.code, places) == (2, []) and "'auto', 'host', 'guest'" in ended.err


def test_a_program_that_is_only_checked_as_json(bob: Bob) -> None:
    ended = bob("app", "check", "replace-mv", "--fs", "ext4", "--quiet", "--json", "-")
    assert (ended.code, ended.err) == (0, "")
    [found] = json.loads(ended.out)["configurations"]
    assert (found["configuration"], found["windows"], int(found["states"])) == ("ext4", 3, 2**60)


def test_a_junit_file_that_cannot_be_written_is_told_first(bob: Bob, work: Work) -> None:
    for file, why in (
        ("-", "cannot write to stdout"),
        ("no/r.xml", "the directory no does not exist"),
        (".", ". is a directory"),
    ):
        ended = bob(*PROBE, "--junit", file)
        assert (ended.code, work.asked) == (2, [])
        assert ended.err.startswith(f"bob: --junit: {why}\nhint: ")


# What is expected


@pytest.mark.parametrize("command", [PROBE, MATRIX], ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("table", "found", "code", "told"),
    [
        ({}, {}, 0, snapshot("2 cells expected by table: 2 as expected")),
        ({"append_any": HOLDS}, {}, 1, snapshot("2 cells expected by table: 1 worse, 1 as expected")),
        ({}, {"append_any": HOLDS}, 1, snapshot("2 cells expected by table: 1 better, 1 as expected")),
        ({}, {"append_any": UNKNOWN}, 3, snapshot("2 cells expected by table: 1 not known, 1 as expected")),
        ({"append_any": UNKNOWN}, {}, 3, snapshot("2 cells expected by table: 1 not known, 1 as expected")),
        (
            {"overwrite_any": FAILS},
            {"append_any": UNKNOWN},
            1,
            snapshot("2 cells expected by table: 1 better, 1 not known"),
        ),
        (
            {"overwrite_any": FAILS, "append_any": HOLDS},
            {},
            1,
            snapshot("2 cells expected by table: 1 worse, 1 better"),
        ),
    ],
)
def test_exit_codes(
    bob: Bob, work: Work, command: tuple[str, ...], table: dict[str, Verdict], found: dict[str, Verdict], code: int,
    told: str,
) -> None:  # fmt: skip
    put_with("table", **table)
    work.result = with_verdicts(**found)
    ended = bob(*command, "--expect", "table", "--json", "found.json")
    assert ended.code == code
    assert ended.out.splitlines()[-1] == told
    assert from_json(opened(Path("found.json").read_bytes())) == work.result


def with_verdicts(**verdicts: Verdict) -> Result:
    made = result(unknown=False)
    [column] = made.subjects
    cells = (replace(one, verdict=verdicts.get(one.name.replace("-", "_"), one.verdict)) for one in column.answers)
    return replace(made, subjects=(replace(column, answers=tuple(cells)),))


def test_it_says_which_cell_and_how(bob: Bob, work: Work) -> None:
    put_with("table", append_any=HOLDS, overwrite_any=FAILS)
    work.result = result(unknown=False)
    said = bob(*PROBE, "--expect", "table/result.json").out
    worse, better = said.partition("worse than expected: fails, but was not expected to\n")[2].split(
        "better than expected: "
    )
    assert worse.startswith("  +× append-any, ext4-ordered\n")
    assert "bob replay bob-runs/made-up/witnesses/append-any.json\n" in worse
    assert "  -× overwrite-any, ext4-ordered\n" in better


def test_how_much_was_explored_makes_no_difference(bob: Bob, work: Work) -> None:
    put_with("table")
    made = result(unknown=False)
    [column] = made.subjects
    fewer = tuple(replace(one, states=replace(one.states, explored=3)) for one in column.answers)
    work.result = replace(made, subjects=(replace(column, answers=fewer),))
    ended = bob(*PROBE, "--expect", "table")
    assert (ended.code, ended.out.splitlines()[-1]) == (0, snapshot("2 cells expected by table: 2 as expected"))
    assert bob("compare", "--strict", "table", "table").code == 0


def test_what_only_one_side_has_is_told_and_not_compared(bob: Bob, work: Work) -> None:
    put_with("table")  # two cells
    ended = bob(*PROBE, "--expect", "table")  # three, of which one is unknown
    assert ended.code == 3
    assert text_with(ended.out.splitlines()[-1], 2, 1) == snapshot(
        "2 cells expected by table: 2 as expected; not compared: 1 not in the table"
    )
    work.result = with_verdicts()
    put(Path("more"))
    last = bob(*PROBE, "--expect", "more").out.splitlines()[-1]
    assert text_with(last, 2, 1) == snapshot("2 cells expected by more: 2 as expected; not compared: 1 not asked")


APP = ("app", "replace-mv", "--pace", "undisturbed", "--quiet")


def known(name: str, *systems: str, told: str = "") -> None:
    """A saved result of a program that is vulnerable on the first file system, in a way that ``told`` says."""
    saved = from_json(opened(Path("found.json").read_bytes()))
    subjects = [one for one in saved.subjects if one.name in systems]
    ways = tuple(replace(way, evidence=told or way.evidence) for way in subjects[0].answer.ways)
    answers = (replace(subjects[0].answer, ways=ways),)
    subjects[0] = replace(subjects[0], answers=answers)
    write_json(Path(name), to_json(replace(saved, subjects=tuple(subjects))))


@pytest.mark.parametrize(
    ("told", "code", "said"),
    [
        ("", 0, snapshot("2 cells expected by known.json: 2 as expected")),
        ("another file is lost", 1, snapshot("3 cells expected by known.json: 1 worse, 1 better, 1 as expected")),
    ],
)
def test_known_vulnerabilities_fail_nothing_until_one_is_new_or_gone(bob: Bob, told: str, code: int, said: str) -> None:
    systems = ("--fs", "ext4", "--fs", "xfs")
    assert bob(*APP, *systems, "--json", "found.json").code == 1
    known("known.json", "ext4", "xfs", told=told)
    ended = bob(*APP, *systems, "--expect", "known.json", "--junit", "report.xml")
    assert (ended.code, ended.out.splitlines()[-1]) == (code, said)
    assert list(outcomes().values()).count(["failure"]) == (2 if code else 0)
    assert bob("compare", "known.json", "found.json").code == code


def test_numbers_in_the_evidence_make_no_difference_to_a_known_vulnerability(bob: Bob, work: Work) -> None:
    assert bob(*APP, "--fs", "ext4", "--json", "found.json").code == 1
    known("known.json", "ext4", told="17 of 20 keys are lost")
    known("found.json", "ext4", told="3 of 20 keys are lost")
    ended = bob("compare", "known.json", "found.json")
    assert ended.code == 0
    assert "1 cell compared: 1 the same" in ended.out


def test_a_file_system_that_the_earlier_run_lacks_is_as_without_it(bob: Bob) -> None:
    bob(*APP, "--fs", "xfs", "--fs", "ext4", "--json", "found.json")
    known("known.json", "ext4")
    ended = bob(*APP, "--fs", "xfs", "--fs", "ext4", "--expect", "known.json", "--junit", "report.xml")
    assert ended.code == 1, "xfs is vulnerable, and nobody expected that"
    assert outcomes()["replace-mv: xfs"] == ["failure"]


def test_an_unknown_answer_and_another_program_are_not_as_expected(bob: Bob, work: Work) -> None:
    systems = ("--fs", "ext4", "--fs", "xfs", "--fs", "btrfs")
    bob(*APP, *systems, "--json", "found.json")
    assert bob(*APP, *systems, "--expect", "found.json").code == 3
    put_with("table")
    work.asked.clear()
    for asked, expected, said in (
        (APP, "table", "table is not about a program"),
        (("app", "replace-cp", *APP[2:]), "found.json", "found.json is about replace-mv, not about replace-cp"),
        (PROBE, "found.json", "found.json is about a program, not about properties"),
    ):
        ended = bob(*asked, *(() if asked is PROBE else ("--fs", "ext4")), "--expect", expected)
        assert (ended.code, work.asked) == (2, [])
        assert ended.err.startswith(f"bob: {said}\n")
    assert bob(*APP, "--fs", "f2fs", "--expect", "found.json").err.startswith("bob: found.json lacks f2fs\n")


def test_the_published_table_can_be_expected(bob: Bob, work: Work) -> None:
    work.result = with_verdicts()
    ended = bob(*PROBE, "--expect", "osdi14")
    assert ended.code == 1
    assert text_with(ended.out.splitlines()[-1], 1, 11) == snapshot(
        "2 cells expected by osdi14: 1 better, 1 as expected; not compared: 11 not asked"
    )


@pytest.mark.parametrize(
    ("content", "arguments", "code", "message"),
    [
        (
            None,
            PROBE,
            9,
            snapshot("""\
bob: table.json does not exist
hint: name a run directory, a result that --json wrote, osdi14 or explode
"""),
        ),
        (
            "{",
            PROBE,
            8,
            snapshot("""\
bob: table.json is not a result: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)
hint: was it truncated?
"""),
        ),
        (
            '{"schema": "bob.result/3"}',
            PROBE,
            8,
            snapshot("""\
bob: table.json: schema 'bob.result/3' is not 'bob.result/2'
hint: a later bob wrote it; use that bob, or a later one
"""),
        ),
        (
            '{"schema": "bob.apm/1"}',
            PROBE,
            8,
            snapshot("""\
bob: table.json: schema 'bob.apm/1' is not 'bob.result/2'
hint: `bob apm show FILE` shows a model
"""),
        ),
        (
            json.dumps(json.loads((ROOT / "tests" / "answer" / "try-1.json").read_text())["one finish"]),
            MATRIX,
            8,
            snapshot("""\
bob: table.json is a result of bob try, which does not make a table
hint: bob show PATH
"""),
        ),
        (
            "[" * 100_000,
            PROBE,
            8,
            snapshot("""\
bob: table.json is not a result: it is nested too deeply
hint: was it truncated?
"""),
        ),
        (
            "a run",
            ("probe", "--fs", "xfs"),
            2,
            snapshot("""\
bob: table.json lacks xfs
hint: it has ext4-ordered
"""),
        ),
        (
            "a run",
            (*PROBE, "--rows", "units"),
            2,
            snapshot("""\
bob: table.json lacks these properties
hint: it is about other ones
"""),
        ),
        (
            "a run",
            (*MATRIX, "--rows", "units"),
            2,
            snapshot("""\
bob: table.json lacks these properties
hint: it is about other ones
"""),
        ),
    ],
)
def test_a_table_that_is_of_no_use_is_refused_before_anything_starts(
    bob: Bob, work: Work, content: str | None, arguments: tuple[str, ...], code: int, message: str
) -> None:
    if content is not None:
        Path("table.json").write_text(json.dumps(to_json(result())) if content == "a run" else content)
    ended = bob(*arguments, "--expect", "table.json")
    assert (ended.code, ended.out, work.asked) == (code, "", [])
    assert text_with(ended.err, "table.json") == message
    assert [line.split()[0] for line in ended.err.splitlines()] == ["bob:", "hint:"]


def test_what_is_expected_of_a_run_that_is_gone_on_with(bob: Bob, work: Work) -> None:
    put_with("table", append_any=HOLDS)
    Path("run").mkdir()
    assert bob("probe", "--resume", "run", "--expect", "table", "--junit", "report.xml", "--quiet").code == 1
    put(Path("other"), "xfs")
    ended = bob("probe", "--resume", "run", "--expect", "other", "--quiet")
    assert ended.code == 2
    assert ended.err == snapshot("""\
bob: other lacks every cell of this run
hint: it has xfs
""")


def test_a_document_on_stdout_stays_one(bob: Bob, work: Work) -> None:
    put_with("table", append_any=HOLDS)
    work.result = result(unknown=False)
    ended = bob(*PROBE, "--expect", "table", "--json", "-")
    assert from_json(opened(ended.out.encode())) == work.result
    assert text_with(ended.err.splitlines()[-1], 2, 1) == snapshot("2 cells expected by table: 1 worse, 1 as expected")


def test_junit_of_what_is_expected(bob: Bob) -> None:
    put_with("table", append_any=HOLDS)
    assert bob(*PROBE, "--expect", "table", "--junit", "report.xml").code == 1
    assert outcomes() == {
        "ext4-ordered: directory-op": ["error"],
        "ext4-ordered: overwrite-any": ["system-out"],
        "ext4-ordered: append-any": ["failure"],
    }
    put(Path("same"))
    bob(*PROBE, "--expect", "same", "--junit", "report.xml")
    assert outcomes()["ext4-ordered: append-any"] == ["system-out"]


# Annotations


def annotations(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("::")]


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> None:
    """GitHub runs bob."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")


def test_elsewhere_nothing_is_annotated(bob: Bob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    assert annotations(bob(*PROBE).err) == []
    monkeypatch.setenv("GITHUB_ACTIONS", "false")
    assert annotations(bob(*PROBE).err) == []


@pytest.mark.usefixtures("github")
def test_what_is_only_a_result_is_a_warning(bob: Bob) -> None:
    ended = bob(*PROBE, "--json", "-")
    json.loads(ended.out)  # stdout stays a document
    unknown, fails = annotations(ended.err)
    assert text_with(fails, "title=ext4-ordered%3A", 3, "/d", 2) == snapshot(
        "::warning title=ext4-ordered%3A append-any::operation 3 (mkdir /d) is there, operation 2 (append /a) is not%0Afails%0Abob replay bob-runs/made-up/witnesses/append-any.json"
    )
    assert fails.endswith("%0Abob replay bob-runs/made-up/witnesses/append-any.json")
    assert text_with(unknown, "title=ext4-ordered%3A") == snapshot(
        "::warning title=ext4-ordered%3A directory-op::the guest was lost"
    )


@pytest.mark.usefixtures("github")
def test_what_makes_the_exit_code_1_is_an_error_and_comes_first(bob: Bob) -> None:
    ended = bob("search", "--fs", "ext4", "--quiet")
    assert [line.split()[0] for line in annotations(ended.err)] == ["::error", "::warning"]
    put_with("table", append_any=HOLDS, overwrite_any=FAILS)
    worse, unknown, better = annotations(bob(*PROBE, "--expect", "table").err)
    assert worse.startswith("::error title=ext4-ordered%3A append-any::worse: operation 3")
    assert text_with(unknown, "title=ext4-ordered%3A") == snapshot(
        "::warning title=ext4-ordered%3A directory-op::the guest was lost%0Aunknown: the guest was lost"
    )
    assert better.startswith("::warning title=ext4-ordered%3A overwrite-any::better: found: holds")
    put(Path("same"))
    assert [line.split("::")[1].split()[0] for line in annotations(bob(*PROBE, "--expect", "same").err)] == ["warning"]


@pytest.mark.usefixtures("github")
def test_what_stopped_bob_is_an_error_on_one_line(bob: Bob, work: Work) -> None:
    work.raises = GuestError("the guest\nsaid 100 %", hint="try again")
    ended = bob(*PROBE)
    assert ended.code == 6
    assert annotations(ended.err) == snapshot(["::error title=bob::the guest said 100 %25. try again"])
    assert ended.err.splitlines()[1:] == snapshot(["bob: the guest said 100 %", "hint: try again"])
    work.raises = KeyboardInterrupt()
    assert annotations(bob(*PROBE, "--out", "b").err) == []


@pytest.mark.usefixtures("github")
def test_letters_that_mean_something_to_github(bob: Bob, work: Work) -> None:
    made = result("a, b: 5%", unknown=False)
    [column] = made.subjects
    cells = (replace(column.answers[0], ways=(Way("50 %\r\n::error::no", 1),)),)
    work.result = replace(made, subjects=(replace(column, answers=cells),))
    [line] = annotations(bob(*PROBE).err)
    assert line.startswith("::warning title=a%2C b%3A 5%25%3A append-any::50 %25%0D%0A::error::no")


CALL = CallWords(3, "kv: rename /kv.tmp to /kv (replace in kv.c:20)", (), SourceLine("kv.c", 20, "replace"))
OTHER_CALL = CallWords(4, "kv: append 3 bytes at 0 of /kv.tmp", ())
RELIED = (
    ReliedOn(Explanation(Reliance.DURABLE, (4,)), f"must be durable by then: ‘{OTHER_CALL.words}’", (OTHER_CALL,), 2),
    ReliedOn(Explanation(Reliance.DURABLE, (3,)), f"must be durable by then: ‘{CALL.words}’", (CALL,), 2),
)
REPAIRED = way(
    Consequence.LOST, "saved was told, and it is gone", 5, 2, b"saved\n", witness="witnesses/1.json", relied_on=RELIED
)
KV = ("app", "replace-mv", "--fs", "ext4", "--fs", "xfs", "--pace", "undisturbed", "--quiet")


@pytest.fixture
def vulnerable(bob: Bob, monkeypatch: pytest.MonkeyPatch) -> Result:
    """bob app answers that a program is vulnerable on ext4 and on xfs, in the same way."""
    both = (file_system(name, FAILS, (REPAIRED,)) for name in ("ext4", "xfs"))
    found = of_program("kv", "a store", *(replace(one, seconds=12.25) for one in both))
    monkeypatch.setattr("bob.run.programs.try_program", lambda *_asked, **_more: (found, Path("run")))
    return found


def repository(*files: str) -> None:
    """A repository of git in the current directory, with these files."""
    for file in files:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text("")
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "add", "-f", *files], check=True)


@pytest.mark.usefixtures("github", "vulnerable")
def test_a_repair_is_annotated_once_at_its_source_line(bob: Bob) -> None:
    [unplaced] = annotations(bob(*KV).err)  # not in a repository
    repository("deep/src/kv.c", "deep/src/not-kv.c", "other")
    [error] = annotations(bob(*KV).err)
    assert error.startswith("::error file=deep/src/kv.c,line=20,title=kv%3A ext4%2C xfs::saved was told")
    assert unplaced == error.replace("file=deep/src/kv.c,line=20,", "")
    told = error.split("::")[-1].split("%0A")
    assert {line for one in RELIED for line in [one.sentence]} < set(told)
    assert told[-1] == "bob replay run/witnesses/1.json"
    repository("another/kv.c")  # now bob cannot tell which one it is
    assert annotations(bob(*KV).err) == [unplaced]


@pytest.mark.usefixtures("vulnerable")
def test_the_repair_is_in_every_format(bob: Bob, vulnerable: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOB_CALLED_AS", "./run")
    assert bob(*KV, "--junit", "report.xml", "--json", "found.json").code == 1
    Path("run").mkdir()
    write_json(Path("run/result.json"), to_json(vulnerable))
    bob("show", "run", "--output", "summary.md")
    case, _other = Xml.parse("report.xml").getroot().iter("testcase")
    assert case.attrib["time"] == "12.25"
    junit = case.findtext("failure") or ""
    markdown = re.sub(r"\\(.)", r"\1", Path("summary.md").read_text())
    document = Path("found.json").read_text()
    for text in (junit, markdown, json.dumps(json.loads(document), ensure_ascii=False)):
        for said in (
            REPAIRED.evidence,
            *(one.sentence for one in RELIED),
            CALL.words,
            "./run replay run/witnesses/1.json",
        ):
            assert said in text
    for text in (junit, markdown):
        assert "last output before it: saved" in text
    [place, *_others] = [
        call["source"]
        for one in json.loads(document)["subjects"][0]["answers"][0]["ways"][0]["relied_on"]
        for call in one["calls"]
        if "source" in call
    ]
    assert place == {"file": "kv.c", "line": 20, "function": "replace"}


# The steps of docs/results.md

FAKE_RUN = """\
#!/bin/sh
# ./run, which notes how it was called, and makes what a probe makes.
printf '<%s>' "$@" >> "$CALLS"; echo >> "$CALLS"
[ "$1" = show ] && { echo "the table"; exit "${SHOWN:-0}"; }
mkdir -p bob-run && echo '{}' > bob-run/result.json
exit "${CODE:-0}"
"""


def steps() -> list[str]:
    """What the action runs, step by step."""
    lines = (ROOT / "docs/ci/action.yml").read_text().splitlines()
    found: list[list[str]] = []
    within = False
    for line in lines:
        if within and (not line.strip() or line.startswith(" " * 8)):
            found[-1].append(line[8:])
            continue
        within = line.strip() == "run: |"
        if within:
            found.append([])
    return ["\n".join(step) + "\n" for step in found]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Where GitHub, or GitLab, would have put bob: with a stand-in for ./run."""
    made = tmp_path / "bob"
    (made / "docs/ci").mkdir(parents=True)
    (made / "run").write_text(FAKE_RUN)
    (made / "run").chmod(0o755)
    return made


def step(text: str, checkout: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a step as GitHub does."""
    environment = {
        **os.environ,
        "GITHUB_ACTION_PATH": str(checkout / "docs/ci"),
        "GITHUB_STEP_SUMMARY": str(checkout.parent / "summary"),
        "CALLS": str(checkout.parent / "calls"),
        "BOB_OUT": "bob-run",
        "BOB_JUNIT": "report.xml",
        **variables,
    }
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text]
    return subprocess.run(shell, cwd=checkout.parent, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("code", [0, 1, 3, 6])
def test_the_steps_of_the_action(checkout: Path, tmp_path: Path, code: int) -> None:
    _key, run, show = steps()
    asked = "probe --fs ext4  --mkfs-opts '-O ^has_journal' --expect \"a $b `c`.json\"\n"
    assert step(run, checkout, BOB_ARGUMENTS=asked, CODE=str(code)).returncode == code
    words = ("probe", "--fs", "ext4", "--mkfs-opts", "-O ^has_journal", "--expect", "a $b `c`.json")
    called = "".join(f"<{word}>" for word in (*words, "--out", "bob-run", "--junit", "report.xml"))
    assert (tmp_path / "calls").read_text().splitlines() == [called]
    (tmp_path / "summary").write_text("before\n")
    assert step(show, checkout, SHOWN=str(code)).returncode == 0
    expected = "before\nthe table\n" if code < 6 else "before\nthe table\n```text\nthe table\n```\n"
    assert (tmp_path / "summary").read_text() == expected


def test_the_cache_of_the_action_ends_with_the_recipe_and_with_the_month(tmp_path: Path) -> None:
    key, _run, _show = steps()
    parts = {"guest-images/debian-bookworm/image.toml", "guest-images/debian-bookworm/init", "bob/image/pack.sh"}
    names = []
    for changed in (None, *sorted(parts)):
        checkout = tmp_path / str(len(names))
        for part in parts:
            (checkout / part).parent.mkdir(parents=True, exist_ok=True)
            (checkout / part).write_text(f"{part} {part == changed}")
        (checkout / "docs/ci").mkdir(parents=True)
        assert step(key, checkout, GITHUB_OUTPUT=str(checkout / "output")).returncode == 0
        names.append((checkout / "output").read_text())
    assert len(set(names)) == len(parts) + 1
    assert all(re.fullmatch(r"key=bob-images-[0-9a-f]{16}-\d{4}-\d\d\n", name) for name in names)


def test_gitlab_takes_no_image_of_last_month(tmp_path: Path) -> None:
    [line] = re.findall(r"^    - (month=.*)$", (ROOT / "docs/results.md").read_text(), flags=re.M)
    images = tmp_path / ".cache/bob/images"
    subprocess.run(["bash", "-euc", line], cwd=tmp_path, check=True)
    (images / "image").touch()
    subprocess.run(["bash", "-euc", line], cwd=tmp_path, check=True)
    [month] = images.glob("20??-??")
    assert (images / "image").exists()
    month.rename(images / "2020-01")
    subprocess.run(["bash", "-euc", line], cwd=tmp_path, check=True)
    assert [path.name for path in images.iterdir()] == [month.name]


def test_where_nothing_was_found_nothing_is_shown(checkout: Path, tmp_path: Path) -> None:
    *_before, show = steps()
    assert step(show, checkout).returncode == 0
    assert not (tmp_path / "calls").exists()


def test_the_action_takes_what_its_steps_take() -> None:
    text = (ROOT / "docs/ci/action.yml").read_text()
    inputs = set(re.findall(r"^  (\w+):\n    description", text.partition("outputs:")[0], flags=re.M))
    assert set(re.findall(r"inputs\.(\w+)", text)) == inputs == {"arguments", "out", "junit"}
    read = {"BOB_CALLED_AS", *re.findall(r"\$\{?(BOB_\w+)", text)}  # the first one by ./run
    assert read == set(re.findall(r"^        (BOB_\w+):", text, flags=re.M))
    assert "${{" not in "".join(steps()), "what a caller says must not become a part of a script"
    page = (ROOT / "docs/results.md").read_text()
    assert set(re.findall(r"steps\.bob\.outputs\.(\w+)", page)) <= set(
        re.findall(r"^  (\w+):\n", text.partition("outputs:")[2].partition("runs:")[0], flags=re.M)
    )


def test_the_script_of_the_gitlab_example(checkout: Path, tmp_path: Path) -> None:
    [example] = re.findall(r"<!-- gitlab -->\n```yaml\n(.*?)```", (ROOT / "docs/results.md").read_text(), flags=re.S)
    [line] = re.findall(r"^  script:\n    - (.*)\n", example, flags=re.M)
    assert step(line, checkout, CODE="1").returncode == 1
    [called] = (tmp_path / "calls").read_text().splitlines()
    assert called.startswith("<probe><--fs><ext4>") and called.endswith("<--out><bob-run><--junit><report.xml>")
    paths = re.findall(r"^    paths: \[(.*)\]$", example, flags=re.M)[-1].split(", ")
    assert paths == ["report.xml", "bob-run/result.json", "bob-run/witnesses"]


def test_the_container_has_all_that_is_installed_and_called() -> None:
    """What pyproject.toml takes from beside the package is copied before ./run installs it; nothing else is run."""
    text = (ROOT / "docs/ci/Containerfile").read_text()
    copied: set[str] = set()
    for words in re.findall(r"^COPY (.*)$", text.partition("\nRUN ")[0], flags=re.M):
        *sources, target = words.split()
        assert all((ROOT / source).exists() for source in sources)
        assert target == "./" or sources == [target], "a folder comes as a folder"
        copied |= set(sources)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    beside = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    needed = {path.partition("/")[0] for path in beside} | {"bob", "run", "pyproject.toml", "constraints.txt"}
    needed |= {project["project"]["readme"], project["project"]["license"]["file"]}
    assert copied >= needed
    [folder] = re.findall(r"^WORKDIR (.*)$", text.partition("COPY")[0], flags=re.M)
    assert re.findall(r"^RUN (\S+)", text, flags=re.M) == ["./run"]
    assert json.loads(re.findall(r"^ENTRYPOINT (.*)$", text, flags=re.M)[0]) == [f"{folder}/run"]


def test_the_image_without_a_daemon_is_that_of_the_containerfile(tmp_path: Path) -> None:
    """With stand-ins for mmdebstrap and umoci, which note how they are called."""
    (tmp_path / "bin").mkdir()
    for name in ("mmdebstrap", "umoci"):
        (tmp_path / "bin" / name).write_text(f'#!/bin/sh\nprintf "%s\\n" {name} "$@" ; echo')
        (tmp_path / "bin" / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "BOB_MIRROR": ""}
    words = [ROOT / "docs/ci/oci", tmp_path / "made"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    calls = [call.splitlines() for call in done.stdout.split("\n\n")]
    [included] = [word for word in calls[0] if word.startswith("--include=")]
    run, text = (ROOT / "run").read_text(), (ROOT / "docs/ci/Containerfile").read_text()
    packages = " ".join(re.findall(r'^(?:python_)?packages="([^"]*)"', run, flags=re.M)).split()
    assert included.removeprefix("--include=").split() == [*packages, "git"] and len(packages) > 20
    for copied in re.findall(r"^COPY (.*) \S+$", text, flags=re.M):
        assert copied in done.stdout
    config = calls[-1] if calls[-1] else calls[-2]
    asked = dict(pairwise(config))
    assert [asked["--config.entrypoint"]] == json.loads(re.findall(r"^ENTRYPOINT (.*)$", text, flags=re.M)[0])
    assert [asked["--config.cmd"]] == json.loads(re.findall(r"^CMD (.*)$", text, flags=re.M)[0])
    for option, word in (("env", "ENV"), ("volume", "VOLUME"), ("workingdir", "WORKDIR")):
        assert asked[f"--config.{option}"] == re.findall(rf"^{word} (.*)$", text, flags=re.M)[-1]


def test_the_container_is_told_as_it_is() -> None:
    text, page = ((ROOT / name).read_text() for name in ("docs/ci/Containerfile", "docs/results.md"))
    [build] = re.findall(r"^podman build .*$", page, flags=re.M)
    assert f"#   {build}\n" in text
    [volume] = re.findall(r"^VOLUME (.*)$", text, flags=re.M)
    assert f"ENV XDG_CACHE_HOME={volume}\n" in text and f"--volume bob:{volume} " in page
    assert f'--volume "$PWD":{re.findall(r"^WORKDIR (.*)$", text, flags=re.M)[-1]} bob' in page


def test_the_constraints_fit_the_python_of_debian_12() -> None:
    """Of those packages that are installed here in the version of constraints.txt."""
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line]
    pinned = dict(line.split("==") for line in lines)
    checked = 0
    for name, version in pinned.items():
        with suppress(metadata.PackageNotFoundError):
            if metadata.version(name) == version:
                wanted = metadata.metadata(name).get("Requires-Python") or ""
                assert "3.11.2" in SpecifierSet(wanted), f"{name} {version} needs Python {wanted}"
                checked += 1
    assert checked > len(pinned) // 2


def test_the_line_for_git_bisect(tmp_path: Path) -> None:
    """Run on a history made up: what does not build and what was lost is skipped, and the first bad commit is found."""
    [line] = re.findall(
        r"<!-- bisect-program -->\n```sh\n(.*?)\n```", (ROOT / "docs/results.md").read_text(), flags=re.S
    )
    tree = Tree(tmp_path, [GOOD, NO_BUILD, GOOD, LOST, BAD, BAD, LOST, BAD])
    bob = tmp_path / "bin" / "bob"
    bob.write_text(
        '#!/bin/sh\n[ "$*" = "app ./crash-test --fs ext4 --quiet" ] || exit 2\nread -r code verdict < commit\n'
        '[ "$verdict" != fails ] || code=1\nexit "$code"\n'
    )
    tree.git("bisect", "start", "HEAD", "HEAD~7")
    done = subprocess.run(
        ["sh", "-c", line], cwd=tree.folder, env=tree.environment, capture_output=True, text=True, check=False
    )
    # Whether the lost one before it is the first bad commit nobody can tell.
    assert "commit 4" in done.stdout + done.stderr + tree.git("bisect", "log")
    bad = tree.git("log", "-1", "--format=%s", "refs/bisect/bad").strip()
    assert bad == "commit 4", done.stdout + done.stderr
