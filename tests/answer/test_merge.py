"""Results of lots as one: the worst verdict wins, nothing counts twice or is left out, the first witness is shown."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from bob.answer.answer import Answer, ByRecording, ClaimWords, Way
from bob.answer.merge import merged, within
from bob.answer.result import TROUBLE, UNMOUNTABLE, Cause, Environment, Finding, Result, Run, SubjectResult, beside
from bob.claim.verdict import Verdict
from bob.crash.coverage import States
from bob.crash.device import DeviceModel, DeviceModelDocument

RUN = Run("whole", "then", "now", "0", 1, 100)
NAMES = ["a", "b", "collateral"]
CAUSES = [Cause("durable", block, "lost", "none") for block in ("data", "inode table", "superblock")]
VERDICTS = st.sampled_from([Verdict.FAILS, Verdict.HOLDS, Verdict.UNKNOWN])

FINDINGS = st.builds(
    Finding,
    st.sampled_from(CAUSES),
    st.just("words"),
    st.lists(st.sampled_from(NAMES), min_size=1, unique=True).map(tuple),
    st.lists(st.sampled_from(["append", "create"]), unique=True).map(tuple),
    st.integers(1, 9),
    st.sampled_from(["a; b", "a; c", "a; bb"]),
    st.just("natural"),
    st.integers(2, 3),
    st.just("evidence"),
    st.just("witnesses/finding-1.json"),
)


@st.composite
def lots(draw: st.DrawFn) -> list[tuple[str, Result]]:
    found = []
    for number in range(draw(st.integers(1, 4))):
        cells = []
        for name in draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1)):
            verdict, states = (
                draw(VERDICTS),
                States(draw(st.integers(0, 9)), 9, 20, draw(st.sampled_from([None, "writes"]))),
            )
            witness = draw(st.sampled_from([None, f"witnesses/{name}.json"]))
            cells.append(
                Answer(
                    ClaimWords("property", name, "family"),
                    verdict,
                    states,
                    (Way(f"{number}", number, witness),) if verdict is Verdict.FAILS else (),
                    (ByRecording(f"{number}{name}", "natural", verdict, states),),
                    "lost" if verdict is Verdict.UNKNOWN else None,
                )
            )
        told = draw(st.lists(FINDINGS, max_size=3, unique_by=lambda one: one.cause))
        others = [beside(TROUBLE, "checker", [Way(f"block {number} is bad", 2, "witnesses/checker.json")])]
        if refused := draw(st.integers(0, 3)):
            others.append(beside(UNMOUNTABLE, UNMOUNTABLE, [Way(f"error {number}", refused, "witnesses/u.json")]))
        column = SubjectResult(
            "fs", "fs", "", "", "rw", tuple(cells), tuple(others), notes=(f"note {number % 2}",),
            examined=1, examinable=2, findings=tuple(sorted(told, key=lambda one: one.size)),
        )  # fmt: skip
        environment = Environment("6.1", "image", "tcg", "virtual", "7", "9", "1")
        run = replace(RUN, id=str(number))
        found.append((f"lot-{number}", Result(run, environment, DeviceModelDocument.of(DeviceModel()), (column,))))
    return found


@given(lots())
def test_lots_are_one(several: list[tuple[str, Result]]) -> None:
    whole = merged([within(result, folder) for folder, result in several], RUN)
    [column] = whole.subjects
    assert whole.run == RUN
    every = [(folder, cell) for folder, result in several for cell in result.subjects[0].answers]
    assert [cell.name for cell in column.answers] == list(dict.fromkeys(cell.name for _folder, cell in every))
    for cell in column.answers:
        parts = [(folder, part) for folder, part in every if part.name == cell.name]
        verdicts = [part.verdict for _folder, part in parts]
        worst = next(one for one in (Verdict.FAILS, Verdict.UNKNOWN, Verdict.HOLDS) if one in verdicts)
        assert cell.verdict is worst
        assert [one.name for one in cell.recordings] == [one.name for _folder, part in parts for one in part.recordings]
        assert cell.states.explored == sum(part.states.explored for _folder, part in parts)
        assert (cell.states.exhaustive == "writes") == all(part.states.exhaustive for _folder, part in parts)
        shown = [(folder, part) for folder, part in parts if part.verdict is Verdict.FAILS]
        shown.sort(key=lambda one: one[1].witness is None)
        assert cell.witness == (f"{shown[0][0]}/{shown[0][1].witness}" if shown and shown[0][1].witness else None)
        assert cell.evidence == (shown[0][1].evidence if shown else None)
        assert cell.violations == sum(part.violations for _folder, part in shown)
        assert (cell.reason is not None) == (worst is Verdict.UNKNOWN)
    refused = [(folder, way) for folder, one in several if (way := one.subjects[0].unmountable) is not None]
    told = column.unmountable
    assert (told is None) is (not refused)
    if told is not None:
        folder, first = refused[0]
        assert told == replace(
            first, states=sum(one.states for _folder, one in refused), witness=f"{folder}/witnesses/u.json"
        )
    assert [(way.states, way.witness) for _kind, way in column.troubles()] == [
        (2 * len(several), "lot-0/witnesses/checker.json")
    ], "words that differ in numbers only are one trouble"
    assert column.notes == tuple(f"note {number}" for number in range(min(2, len(several))))
    assert (column.examined, column.examinable) == (len(several), 2 * len(several))


@given(lots())
def test_a_cause_that_several_lots_show_is_one_finding(several: list[tuple[str, Result]]) -> None:
    [column] = merged([within(result, folder) for folder, result in several], RUN).subjects
    every = [(folder, one) for folder, result in several for one in result.subjects[0].findings]
    assert {one.cause for one in column.findings} == {one.cause for _folder, one in every}
    assert len({one.cause for one in column.findings}) == len(column.findings)
    sizes = [(one.operations, len(one.workload), one.workload) for one in column.findings]
    assert sizes == sorted(sizes)
    for finding in column.findings:
        parts = [(folder, one) for folder, one in every if one.cause == finding.cause]
        assert set(finding.rows) == {row for _folder, one in parts for row in one.rows}
        assert len(set(finding.rows)) == len(finding.rows)
        assert set(finding.missing) == {kind for _folder, one in parts for kind in one.missing}
        assert finding.shown_by == sum(one.shown_by for _folder, one in parts)
        least = min((one.operations, len(one.workload), one.workload) for _folder, one in parts)
        assert (finding.operations, len(finding.workload), finding.workload) == least
        folder = next(folder for folder, one in parts if (one.operations, len(one.workload), one.workload) == least)
        assert finding.witness == f"{folder}/witnesses/finding-1.json"


def test_subjects_of_other_names_stand_side_by_side() -> None:
    parts = [
        subject_alone("ext4", "e2fsprogs 1"),
        subject_alone("xfs", "xfsprogs 2"),
        subject_alone("ext3", "e2fsprogs 1"),
    ]
    whole = merged(parts, RUN)
    assert whole.subjects == tuple(part.subjects[0] for part in parts)
    assert whole.environment.mkfs_version == "e2fsprogs 1, xfsprogs 2"


def subject_alone(name: str, mkfs: str) -> Result:
    environment = Environment("6.1", "image", "tcg", "virtual", "7", "9", mkfs)
    return Result(RUN, environment, DeviceModelDocument.of(DeviceModel()), (SubjectResult(name),))
