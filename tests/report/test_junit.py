"""Points and JUnit: what passes and what does not, what each says, and that the file is XML whatever others say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.answer.answer import Answer, Way
from bob.answer.result import Allowed, Cause, Checks, Finding, Result
from bob.claim.verdict import Verdict
from bob.crash.coverage import NOTHING, States
from bob.observe.observations import TroubleKind
from bob.program.answer import Consequence
from bob.report.comparison.compare import compare
from bob.report.comparison.sides import run_side
from bob.report.comparison.words import as_expected
from bob.report.escape import REPLACEMENT
from bob.report.junit import to_junit
from bob.report.points import Outcome, Point, Suite, suites_of, suites_of_comparison
from samples_of_programs import by_model, file_system, of_program, way
from wording import text_with

from .samples import EVIDENCE, KERNEL_SAYS, MOSTLY_UNKNOWN, cell, mostly_unknown, result, trouble, unmountable

HOLDS, FAILS, UNKNOWN, SKIPPED = Verdict.HOLDS, Verdict.FAILS, Verdict.UNKNOWN, Verdict.SKIPPED
SOME = States(812, 4096, 2**88, None, 0, 700)
ROW = "append-any"
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase", "system-out"},
    "properties": {"property"},
    "testcase": {"failure", "error", "skipped", "system-out"},
}
"""What may stand in what, and ATTRIBUTES on what: of the schema that Jenkins' plugin xunit checks files against."""
ATTRIBUTES = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "timestamp"},
    "property": {"name", "value"},
    "testcase": {"classname", "name", "time"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
    "skipped": {"message"},
}


def parse(text: str) -> Xml.Element:
    """The file as a CI reads it, after a look at whether it has what the schema allows, and counts right."""
    root = Xml.fromstring(text.encode())
    for element in root.iter():
        assert {inner.tag for inner in element} <= CHILDREN.get(element.tag, set())
        assert set(element.attrib) <= ATTRIBUTES.get(element.tag, set())
    for counted in [root, *root]:
        for attribute, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
            assert int(counted.attrib[attribute]) == len(list(counted.iter(tag)))
    for suite in root:
        assert int(suite.attrib["skipped"]) == len(list(suite.iter("skipped")))
    return root


def run(*cells: Answer, name: str = "ext4-ordered", **more: object) -> Result:
    """A run of one configuration."""
    [first, *_rest] = result().subjects
    column = replace(first, name=name, answers=cells, **{"notes": (), "beside": (), **more})
    return replace(result(), subjects=(column,))


def cases(found: Result) -> dict[str, Xml.Element]:
    root = parse(to_junit(suites_of(found, Path("run"))))
    return {case.attrib["name"]: case for case in root.iter("testcase")}


def test_few_explored_torn_states_are_noted() -> None:
    [suite] = suites_of(replace(result(), subjects=(mostly_unknown(),)), Path("run"))
    assert MOSTLY_UNKNOWN in suite.notes


def test_each_verdict_is_what_a_ci_takes_it_for() -> None:
    found = cases(
        run(
            cell(ROW, FAILS, SOME, evidence=EVIDENCE, witness="witnesses/append-any.json"),
            cell("overwrite-any", HOLDS, SOME),
            cell("directory-op", UNKNOWN, SOME, reason="the guest was lost: it hung"),
            cell("directory-op-any", SKIPPED, NOTHING, 0, reason="mkfs refused it"),
        )
    )
    assert {name: [inner.tag for inner in case] for name, case in found.items()} == {
        "directory-op": ["error"],
        "overwrite-any": ["system-out"],
        "append-any": ["failure"],
        "directory-op-any": ["skipped"],
    }
    [failure] = found[ROW]
    assert failure.attrib["message"] == EVIDENCE
    assert (failure.text or "").splitlines()[-1] == "bob replay run/witnesses/append-any.json"
    assert text_with(failure.text or "", 28, 4, 12) == snapshot("""\
fails in 28 crash states, in 4 of 12 workloads
operation 2 (overwrite /a at 0, 4096 bytes) is partial: sectors 0-3 have its data, sectors 4-7 have that of operation 0, after write 17 was torn
bob replay run/witnesses/append-any.json\
""")
    [error], [skipped] = found["directory-op"], found["directory-op-any"]
    assert (error.attrib["message"], skipped.attrib["message"]) == (
        snapshot("the guest was lost: it hung"),
        "mkfs refused it",
    )
    [held] = found["overwrite-any"]
    assert text_with(held.text or "", 12) == snapshot(
        "holds: nothing found in 12 workloads ending with natural, natural 2.5, fsync /d/a; explored: 700 of 4,096 whole states, < 0.1 % of the torn ones"
    )
    assert all(case.attrib["classname"] == "ext4-ordered" for case in found.values())


def test_a_suite_for_each_configuration_says_on_what_it_was_measured() -> None:
    found = result()
    root = parse(to_junit(suites_of(found, Path("run"), "trixie: ")))
    names = [f"trixie: {column.name}" for column in found.subjects]
    assert [suite.attrib["name"] for suite in root] == names
    assert len(list(root.iter("testcase"))) == sum(len(column.answers) for column in found.subjects)
    about = {one.attrib["name"]: one.attrib["value"] for one in root[0].iter("property")}
    assert about["kernel"] == found.environment.kernel
    assert about["budget"] == str(found.run.budget)


def test_how_long_it_took_and_a_run_that_was_stopped() -> None:
    found = run(cell(ROW, HOLDS, SOME))
    timed = replace(found, run=replace(found.run, started="2026-11-21T23:00:21Z", finished="2026-11-21T23:04:33Z"))
    root = parse(to_junit(suites_of(timed, Path())))
    assert (root.attrib["time"], root[0].attrib["timestamp"]) == ("252", "2026-11-21T23:00:21")
    stopped = replace(timed, run=replace(timed.run, finished=""))
    assert "time" not in parse(to_junit(suites_of(stopped, Path()))).attrib


def test_what_belongs_to_no_cell_is_told_by_the_suite() -> None:
    found = run(
        cell(ROW, HOLDS, SOME),
        beside=(
            unmountable(3, "witnesses/unmountable.json", KERNEL_SAYS),
            trouble(TroubleKind.CHECKER, Way("it found fault", 2, "witnesses/checker.json")),
        ),
        findings=(
            Finding(
                Cause("durable"), "a node block is lost", ("x",), (), 3, "fsync /a", "f", 1, "/a is gone", "w/1.json"
            ),
        ),
        notes=("a note",),
    )
    [suite] = parse(to_junit(suites_of(found, Path("run"))))
    said = (suite.findtext("system-out") or "").splitlines()
    assert said == [
        snapshot("a node block is lost: /a is gone (the smallest: fsync /a)"),
        "bob replay run/w/1.json",
        snapshot(
            "3 crash states could not be mounted: EXT4-fs (loop0): VFS: Found ext4 filesystem with invalid superblock checksum.  Run e2fsck?"
        ),
        "bob replay run/witnesses/unmountable.json",
        snapshot("2 crash states mounted, but the file system's checker found errors afterwards: it found fault"),
        "bob replay run/witnesses/checker.json",
        "a note",
    ]


@given(st.text(max_size=60), st.text(max_size=60), st.lists(st.text(max_size=60), max_size=3))
def test_whatever_others_say_it_is_xml(name: str, message: str, details: list[str]) -> None:
    points = tuple(Point(name, outcome, message, tuple(details)) for outcome in Outcome)
    root = parse(to_junit([Suite(name, points, name, 3, ((name, message),), tuple(details))]))
    assert len(list(root.iter("testcase"))) == len(Outcome)


def test_control_characters_are_seen_and_markup_is_text() -> None:
    nasty = "\x1b[31m</failure>\x00&\ud800 ]]> \"'\r\n\tend"
    points = (Point("a", Outcome.FAILED, nasty, (nasty, "last")),)
    [case] = parse(to_junit([Suite("s", points)])).iter("testcase")
    seen = f"{REPLACEMENT}[31m</failure>{REPLACEMENT}&{REPLACEMENT} ]]> \"' end"
    assert case[0].attrib["message"] == seen
    assert " ".join((case[0].text or "").split()) == f"{seen} last"


def test_a_program_has_a_case_for_each_file_system() -> None:
    lost = way(Consequence.LOST, "acknowledged data is lost", 5, 2, b"done\n", witness="witnesses/00-1.json")
    checks, none = Checks(2, 10, 12), Checks(2, 0, 0)
    answers = (
        file_system("ext4", HOLDS, (), SOME, checks),
        file_system("xfs", FAILS, (lost,), SOME, checks),
        file_system("btrfs", UNKNOWN, (), SOME, none, reason="a guest was lost", notes=("a note",)),
    )
    harm = way(Consequence.LOST, "a row is lost", 3, 3, step="prefix")
    all_of_it, nothing = Allowed("a model", 4, 21, 14, is_all=True), Allowed("a model", 0, 0, 0, is_all=False)
    models = (
        by_model("ext4-o", FAILS, (harm,), all_of_it, Checks(0, 10, 13), notes=("so be it",)),
        by_model("btrfs", UNKNOWN, (), nothing, Checks(0, 0, 0), "not traced: mmap of /data"),
    )
    asked = of_program("sqlite", "a database", *answers, *models, kernel="6.1")
    [suite] = parse(to_junit(suites_of(asked, Path("run"))))
    assert suite.attrib["name"] == "sqlite"
    assert {one.attrib["name"]: one.attrib["value"] for one in suite.iter("property")} == {"kernel": "6.1"}
    found = {case.attrib["name"]: [inner.tag for inner in case] for case in suite.iter("testcase")}
    assert found == {
        "ext4": ["system-out"],
        "xfs": ["failure"],
        "btrfs": ["error"],
        "model ext4-o": ["failure"],
        "model btrfs": ["error"],
    }
    [failure, predicted], [error, untold] = suite.iter("failure"), suite.iter("error")
    assert (predicted.attrib["message"], untold.attrib["message"]) == snapshot(
        ("a row is lost", "not traced: mmap of /data")
    )
    assert text_with(predicted.text or "", 14, 10) == snapshot("""\
14 states, all that it allows; 10 trees
a row is lost, in 3 trees
the program had not written any output\
""")
    assert failure.attrib["message"] == snapshot("acknowledged data is lost")
    assert text_with(failure.text or "", 5, "run/witnesses/00-1.json") == snapshot("""\
700 of 4,096 whole states, < 0.1 % of the torn ones; 10 outcomes, 12 checks
acknowledged data is lost, in 5 crash states
last output before it: done
bob replay run/witnesses/00-1.json\
""")
    assert error.attrib["message"] == snapshot("a guest was lost")
    assert text_with(suite.findtext("system-out"), "ext4-o") == snapshot("""\
btrfs: a note
model ext4-o: so be it\
""")


# Against what is expected


def against(a: Verdict | None, b: Verdict | None) -> Point:
    """The point of a cell that is ``a`` where it is expected, and ``b`` where it was found; None: not there."""
    others = cell("overwrite-any", HOLDS, SOME)
    sides = [
        run_side(name, run(others, *([_cell(verdict)] if verdict else [])), Path(name))
        for name, verdict in (("table", a), ("found", b))
    ]
    [suite] = suites_of_comparison(compare(*sides))
    [point] = [point for point in suite.points if point.name == ROW]
    return point


def _cell(verdict: Verdict) -> Answer:
    match verdict:
        case Verdict.FAILS:
            return cell(ROW, verdict, SOME, evidence=EVIDENCE, witness="witnesses/append-any.json")
        case Verdict.HOLDS:
            return cell(ROW, verdict, SOME)
    return cell(ROW, verdict, SOME, reason="nobody knows")


@pytest.mark.parametrize(
    ("a", "b", "outcome", "said"),
    [
        (FAILS, FAILS, Outcome.PASSED, ""),
        (HOLDS, HOLDS, Outcome.PASSED, ""),
        (HOLDS, FAILS, Outcome.FAILED, f"worse: {EVIDENCE}"),
        (FAILS, HOLDS, Outcome.FAILED, "better: found: holds"),
        (HOLDS, UNKNOWN, Outcome.UNKNOWN, "cannot be compared: found: unknown: nobody knows"),
        (UNKNOWN, FAILS, Outcome.UNKNOWN, "cannot be compared: found: fails"),
        (UNKNOWN, UNKNOWN, Outcome.UNKNOWN, "found: unknown: nobody knows"),
        (SKIPPED, SKIPPED, Outcome.SKIPPED, "found: skipped: nobody knows"),
        (HOLDS, SKIPPED, Outcome.UNKNOWN, "cannot be compared"),
        (None, FAILS, Outcome.SKIPPED, "the expected table does not have it; found: fails"),
        (None, UNKNOWN, Outcome.UNKNOWN, "nobody knows"),
        (FAILS, None, Outcome.SKIPPED, "this run did not ask for it"),
    ],
)
def test_what_is_expected_passes(a: Verdict | None, b: Verdict | None, outcome: Outcome, said: str) -> None:
    point = against(a, b)
    assert (point.outcome, point.message.startswith(said)) == (outcome, True), point.message
    assert point.is_better is (said.startswith("better"))


def test_what_is_worse_and_what_was_better_can_be_replayed() -> None:
    assert against(HOLDS, FAILS).details[-1] == "bob replay found/witnesses/append-any.json"
    assert against(FAILS, HOLDS).details[-1] == "bob replay table/witnesses/append-any.json"
    [failure] = parse(to_junit([Suite("s", (against(FAILS, HOLDS),))])).iter("failure")
    assert failure.attrib["type"] == "better"


def test_a_configuration_that_nothing_is_expected_of_is_skipped() -> None:
    table = run_side("table", run(_cell(HOLDS)), Path())
    found = run(_cell(FAILS))
    more = replace(found.subjects[0], name="xfs")
    both = replace(found, subjects=(*found.subjects, more))
    first, second = suites_of_comparison(compare(table, run_side("found", both, Path())))
    assert [point.outcome for point in (*first.points, *second.points)] == [Outcome.FAILED, Outcome.SKIPPED]
    assert second.name == "xfs"


def test_how_much_is_as_expected() -> None:
    rows = ("append-any", "overwrite-any", "directory-op", "directory-op-any", "single-block-append")
    old = dict(zip(rows, (HOLDS, FAILS, HOLDS, UNKNOWN, FAILS), strict=True))
    new = dict(zip(rows, (FAILS, HOLDS, UNKNOWN, UNKNOWN, FAILS), strict=True))
    less = States(5, 4096, 2**88, None, 0, 5)  # another number of explored states makes no difference
    a = run_side("t.json", run(*(cell(name, verdict, SOME) for name, verdict in old.items())), Path())
    b = run_side("b", run(*(cell(name, verdict, less) for name, verdict in new.items())), Path())
    assert text_with(as_expected(compare(a, b)), 5, "t.json", 1, 2) == snapshot(
        "5 cells expected by t.json: 1 worse, 1 better, 2 not known, 1 as expected"
    )
    assert text_with(as_expected(compare(a, a)), 1, 4) == snapshot(
        "5 cells expected by t.json: 1 not known, 4 as expected"
    )
