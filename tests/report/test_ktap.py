"""KTAP: what a reader of the kernel's tests makes of it, whatever others say."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.claim.verdict import Verdict
from bob.report.ktap import to_ktap
from bob.report.points import Outcome, Point, Suite, suites_of
from wording import text_with

from .samples import EVIDENCE, result

RESULT = re.compile(r"(?P<said>ok|not ok) (?P<number>[0-9]+)(?: (?P<name>[^#]*?))?(?: # ?(?P<behind>.*))?")
DIRECTIVES = ("SKIP", "TODO", "XFAIL", "TIMEOUT", "ERROR")


@dataclass
class Read:
    """A test as a reader sees it. ``directive`` is empty, or one of DIRECTIVES."""

    name: str
    is_ok: bool
    directive: str = ""
    why: str = ""
    said: list[str] = field(default_factory=list)
    inside: list[Read] = field(default_factory=list)


def read(text: str) -> list[Read]:
    """Return the tests in ``text``, read by the rules of Documentation/dev-tools/ktap.rst. Raise AssertionError for
    text that these rules do not allow."""
    lines = text.splitlines()
    assert text == "".join(f"{line}\n" for line in lines)
    found = level(lines)
    assert not lines
    return found


def level(lines: list[str], indent: str = "") -> list[Read]:
    """Take the lines of one level, with its nested tests, away from ``lines``."""
    assert lines.pop(0) == f"{indent}KTAP version 1"
    plan = re.fullmatch(rf"{indent}1\.\.([0-9]+)", lines.pop(0))
    assert plan is not None
    found: list[Read] = []
    said: list[str] = []
    inside: list[Read] = []
    while lines and (lines[0].startswith(f"{indent}#") or (lines[0].startswith(indent) and len(found) < int(plan[1]))):
        line = lines[0][len(indent) :]
        if line.startswith("  KTAP"):
            inside = level(lines, f"{indent}  ")
            continue
        lines.pop(0)
        if line.startswith("#"):
            said.append(line[2:])
            continue
        one = RESULT.fullmatch(line)
        assert one is not None and int(one["number"]) == len(found) + 1, line
        word, _blank, why = (one["behind"] or "").partition(" ")
        directive, why = (word, why) if word in DIRECTIVES else ("", one["behind"] or "")
        found.append(Read(one["name"] or "", one["said"] == "ok", directive, why, said, inside))
        said, inside = [], []
    assert len(found) == int(plan[1])
    return found


def test_each_configuration_is_a_test_and_each_property_a_subtest() -> None:
    found = result()
    tests = read(to_ktap(suites_of(found, Path("run"))))
    assert [test.name for test in tests] == [column.name for column in found.subjects]
    for test, column in zip(tests, found.subjects, strict=True):
        assert len(test.inside) == len(column.answers)
        assert test.is_ok == {answer.verdict for answer in column.answers}.issubset({Verdict.HOLDS, Verdict.SKIPPED})
        by_name = {one.name: one for one in test.inside}
        for answer in column.answers:
            one = by_name[answer.name]
            assert one.is_ok == (answer.verdict in (Verdict.HOLDS, Verdict.SKIPPED))
            if answer.evidence:
                assert one.why == answer.evidence
            if answer.witness:
                assert one.said[-1] == f"bob replay run/{answer.witness}"


def test_the_text_of_each_outcome() -> None:
    points = (
        Point("append-any", Outcome.FAILED, EVIDENCE, ("fails in 28 crash states", "bob replay run/w.json")),
        Point("overwrite-any", Outcome.PASSED, "", ("holds: nothing found",), seconds=12.5),
        Point("directory-op", Outcome.UNKNOWN, "the guest was lost"),
        Point("collateral", Outcome.SKIPPED, "mkfs refused it"),
    )
    suites = [
        Suite("ext4", points, about=(("kernel", "6.1.0"),), notes=("a note",)),
        Suite("xfs", points[3:]),
        Suite("btrfs", points[1:2]),
    ]
    text = to_ktap(suites)
    assert text_with(text, "append-any", 28, "run/w.json") == snapshot("""\
KTAP version 1
1..3
  KTAP version 1
  1..4
  # kernel: 6.1.0
  # a note
  # fails in 28 crash states
  # bob replay run/w.json
  not ok 1 append-any # operation 2 (overwrite /a at 0, 4096 bytes) is partial: sectors 0-3 have its data, sectors 4-7 have that of operation 0, after write 17 was torn
  # holds: nothing found
  # took 12.5 s
  ok 2 overwrite-any
  not ok 3 directory-op # ERROR the guest was lost
  ok 4 collateral # SKIP mkfs refused it
not ok 1 ext4
  KTAP version 1
  1..1
  ok 1 collateral # SKIP mkfs refused it
ok 2 xfs # SKIP
  KTAP version 1
  1..1
  # holds: nothing found
  # took 12.5 s
  ok 1 overwrite-any
ok 3 btrfs
""")
    assert [(test.is_ok, test.directive) for test in read(text)] == [(False, ""), (True, "SKIP"), (True, "")]
    assert [(one.is_ok, one.directive) for one in read(text)[0].inside] == [
        (False, ""), (True, ""), (False, "ERROR"), (True, "SKIP"),
    ]  # fmt: skip


words = st.text(max_size=40)
points = st.lists(
    st.builds(Point, words, st.sampled_from(Outcome), words, st.lists(words, max_size=2).map(tuple)), max_size=4
)


@given(st.lists(st.builds(Suite, words, points.map(tuple), notes=st.lists(words, max_size=2).map(tuple)), max_size=3))
def test_whatever_others_say_a_reader_gets_each_result(suites: list[Suite]) -> None:
    tests = read(to_ktap(suites))
    is_ok = [[one.outcome in (Outcome.PASSED, Outcome.SKIPPED) for one in suite.points] for suite in suites]
    assert [[one.is_ok for one in test.inside] for test in tests] == is_ok
    assert [test.is_ok for test in tests] == list(map(all, is_ok))
