"""Judging a run again: the same verdicts as the first time, and nothing holds that was not observed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

import samples_of_runs as samples
from bob.answer.result import Result
from bob.catalogue.request import ProbeRequest
from bob.claim.idempotence import IDEMPOTENT, Idempotent
from bob.claim.property.judged_case import JudgedCase
from bob.claim.verdict import Verdict
from bob.crash import case
from bob.crash.coverage import NOTHING
from bob.crash.state import CrashState
from bob.errors import StoreError
from bob.judge import findings
from bob.judge.again import judge_again
from bob.judge.column import Column, RecoveryCrash
from bob.judge.recoveries import Recovered, add_recoveries, chosen, planned, recovery_of
from bob.observe.observation import OutcomeTable
from bob.observe.observations import ExploredState, Observations
from bob.schema import decode, encode
from bob.search.spaces import search
from bob.store.run_directory import RunDirectory
from bob.store.run_documents import RefusedWorkload
from bob.store.search_directory import SearchDirectory
from bob.witness import document as witness
from bob.witness.document import read
from bob.workload.operations import Workload
from bob.workload.plain import workload_to_json
from claims import broken
from wording import text_with

WORKLOADS = [replace(samples.WORKLOAD, name=name) for name in ("one", "two")]
GOOD = samples.observed((samples.FIRST, 0), (samples.LAST, 1), found=[samples.NOTHING, samples.ALL])
BAD = samples.observed(
    (samples.FIRST, 0),
    (samples.LAST, 1),
    (CrashState(1), 2),
    found=[samples.NOTHING, samples.ALL, samples.OUT_OF_ORDER],
)


@pytest.fixture(autouse=True)
def nothing_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(case, "checked", lambda _recording, _base: samples.TRACE)


def started(path: Path, **more: object) -> RunDirectory:
    request = {
        "name": "ext4-ordered",
        "fs": "ext4",
        "mkfs_options": "",
        "mount_options": "data=ordered",
        "device": 0,
        "properties": ["overwrite-any"],
        "image": "debian-bookworm",
        "budget": 10,
        "seed": 2**60,
        "write_cache": "volatile",
        "atomic_write_bytes": 512,
    }
    about = {"id": "x", "started": "then", "bob": "0.1", "request": request, "environment": samples.ENVIRONMENT}
    about["workloads"] = [workload_to_json(workload) for workload in WORKLOADS]
    about.update(more)
    run = RunDirectory.create(path / "run", {name: value for name, value in about.items() if value is not None})
    run.save_base(samples.BASE)
    return run


def keep(run: RunDirectory, number: int, workload: Workload) -> Path:
    folder = run.folder(number, workload)
    run.save_recording(folder, workload, samples.BASE, samples.RECORDING)
    return folder


def test_what_was_observed_is_judged(tmp_path: Path) -> None:
    run = started(tmp_path)
    for number, seen in enumerate([GOOD, BAD]):
        run.save_observed(keep(run, number, WORKLOADS[number]), seen)
    result = judge_again(run.path)
    [cell] = result.subjects[0].answers
    assert cell.verdict is Verdict.FAILS
    assert [workload.verdict for workload in cell.recordings] == [Verdict.HOLDS, Verdict.FAILS]
    assert cell.witness is not None
    # Without the loss of its commit block, which is write 3, it is the complete state, of which all is there.
    assert read(run.path / cell.witness).timeline.causes == {3}
    assert result.run.seed == 2**60
    assert run.result() == result
    assert judge_again(run.path) == result


def test_a_run_says_how_its_disk_completed_writes_and_an_older_one_was_prompt(tmp_path: Path) -> None:
    for place, (told, expected) in enumerate([({}, "prompt"), ({"completion": "oldest-first"}, "oldest-first")]):
        run = started(tmp_path / str(place))
        run.note(request={**run.about()["request"], **told})
        for number in range(2):
            run.save_observed(keep(run, number, WORKLOADS[number]), GOOD)
        assert judge_again(run.path).model.completion.value == expected
        assert run.result().model.completion.value == expected


def stopped_before_recording(run: RunDirectory) -> None:
    """Nothing is there of the second workload."""


def stopped_while_recording(run: RunDirectory) -> None:
    run.folder(1, WORKLOADS[1]).mkdir()
    (run.folder(1, WORKLOADS[1]) / "log").write_bytes(b"half a log")


def stopped_before_observing(run: RunDirectory) -> None:
    keep(run, 1, WORKLOADS[1])


def refused(run: RunDirectory) -> None:
    run.save_refusal(run.folder(1, WORKLOADS[1]), RefusedWorkload.of(WORKLOADS[1], "the guest was lost"))


@pytest.mark.parametrize("stop", [stopped_before_recording, stopped_while_recording, stopped_before_observing, refused])
def test_a_stopped_run_holds_nothing(tmp_path: Path, stop) -> None:  # type: ignore[no-untyped-def]
    run = started(tmp_path)
    run.save_observed(keep(run, 0, WORKLOADS[0]), GOOD)
    stop(run)
    [cell] = judge_again(run.path).subjects[0].answers
    assert cell.verdict is Verdict.UNKNOWN
    assert cell.reason
    assert cell.states.exhaustive is None


@pytest.mark.parametrize("part", ["__init__", "judge", "_clearest"])
def test_a_judge_that_breaks_makes_its_cells_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    judging = getattr(JudgedCase, part)

    def breaks(bench: JudgedCase, *asked: object) -> object:
        """Breaks on one workload of the two, for one property where there is one to break on."""
        making = part == "__init__"
        mine = (asked[0] if making else bench.workload) == WORKLOADS[1]
        if mine and (making or asked[0].name == "overwrite-any"):  # type: ignore[attr-defined]
            raise ZeroDivisionError("by nothing\nat all")
        return judging(bench, *asked)

    run = started(tmp_path)
    about = json.loads((run.path / "run.json").read_text())
    about["request"]["properties"] = ["directory-op", "overwrite-any"]
    run.note(request=about["request"])
    for number in range(2):
        run.save_observed(keep(run, number, WORKLOADS[number]), GOOD)
    monkeypatch.setattr(JudgedCase, part, breaks)
    directory_op, overwrite = judge_again(run.path).subjects[0].answers
    assert overwrite.verdict is Verdict.UNKNOWN
    assert overwrite.reason is not None
    assert "bob itself failed to judge it: by nothing (test_again.py, line" in overwrite.reason
    assert directory_op.verdict is (Verdict.UNKNOWN if part == "__init__" else Verdict.HOLDS)


@pytest.mark.parametrize("missing", ["request", "bob", "workloads", "environment"])
def test_runs_that_cannot_be_judged(tmp_path: Path, missing: str) -> None:
    run = started(tmp_path, **{missing: None})
    with pytest.raises(StoreError):
        judge_again(run.path)


@pytest.mark.parametrize("value", [None, 7, "x", [], {}, [7], [{}], [{"setup": 7}]])
@pytest.mark.parametrize("name", ["workloads", "environment", "request"])
def test_a_field_that_is_none_is_told(tmp_path: Path, name: str, value: Any) -> None:
    """As in a run.json that an older version wrote, which has no checksum."""
    run = started(tmp_path)
    run.save_observed(keep(run, 0, WORKLOADS[0]), GOOD)
    (run.path / "run.json").write_text(json.dumps({**run.about(), name: value}))
    if name == "workloads" and value in ([], {}):
        assert judge_again(run.path).subjects[0].answers[0].recordings == ()
        return
    with pytest.raises(StoreError, match=r"run\.json is damaged|another version of bob wrote"):
        judge_again(run.path)


def test_of_the_unmountable_the_easiest_to_explain_is_the_witness(tmp_path: Path) -> None:
    # It is one of those that were mounted: which of them are predicted is up to the order of the search.
    run = started(tmp_path)
    torn = CrashState(1, torn=((3, ((0, 1),)),))
    seen = samples.observed(
        (torn, 1), (CrashState(1), 0), (samples.LAST, 1), found=[samples.NOTHING, samples.UNMOUNTABLE]
    )
    run.save_observed(keep(run, 0, WORKLOADS[0]), seen)
    unmountable = judge_again(run.path).subjects[0].unmountable
    assert unmountable is not None
    assert (unmountable.states, unmountable.witness) == (2, "witnesses/unmountable.json")
    witness = json.loads((run.path / "witnesses" / "unmountable.json").read_text())
    assert decode(CrashState, witness["crash"]["state"]) == samples.LAST


# A search, whose lots are judged again by cause


def test_a_cell_stands_where_bob_breaks_at_the_cause(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(findings, "cause_of", lambda *_arguments: 1 / 0)
    result = searched(tmp_path)
    [column] = result.subjects
    assert [cell.verdict for cell in column.answers] == [Verdict.FAILS] and column.findings == ()
    assert any("overwrite-any is not known" in note for note in column.notes)
    assert list(tmp_path.glob("search/run/judging-*.txt"))


def searched(path: Path) -> Result:
    """A search of one lot that is judged again."""
    about = {"id": "x", "started": "then", "bob": "0.1", "search": encode(search("small", ("overwrite-any",)))}
    about["request"] = {"budget": 50}
    directory = SearchDirectory.create(path / "search", about)
    run = started(path / "search")
    directory.note(lots=[["run", 2]])
    for number, one in enumerate(WORKLOADS):
        run.save_observed(keep(run, number, one), BAD)
    return judge_again(path / "search")


def test_a_search_that_is_judged_again_has_its_findings_and_a_probe_has_none(tmp_path: Path) -> None:
    result = searched(tmp_path)
    [finding] = result.subjects[0].findings
    assert (finding.rows, finding.shown_by, finding.witness) == (
        ("overwrite-any",),
        2,
        "run/witnesses/finding-1.json",
    )
    assert read(tmp_path / "search" / str(finding.witness)).evidence == finding.evidence
    assert judge_again(tmp_path / "search" / "run").subjects[0].findings == ()


# A crash during recovery that changes what recovery leaves: a row of its own; and whose recoveries are crashed

WORKLOAD = recovery_of(samples.WORKLOAD, samples.LAST)
LOST = CrashState(1, (3,))


def column(*found: str, keep: dict[str, Any]) -> Column:
    """A column with one crashed recovery, in which the states have these outcomes."""

    def kept(name: str, document: Mapping[str, Any]) -> str:
        keep[name] = json.loads(json.dumps(document))
        return f"witnesses/{name}.json"

    made = Column(samples.CONFIGURATION, [], samples.ENVIRONMENT, kept)
    states = [(samples.FIRST, 0), (samples.LAST, 0), (LOST, 1), (CrashState(0, (2,)), 2)][: len(found) + 1]
    seen = samples.observed(*states, found=found)
    made.add_recovery(samples.case(WORKLOAD), seen, RecoveryCrash(seen.findings.observation(0)))
    return made


def test_a_difference_is_a_row_with_a_witness(tmp_path: Path) -> None:
    keep: dict[str, Any] = {}
    made = column(samples.ALL, samples.NOTHING, samples.UNMOUNTABLE, keep=keep)
    (cell,) = made.cells()
    assert (cell.name, cell.family, cell.verdict) == ("recovery-idempotent", "recovery", Verdict.FAILS)
    assert cell.evidence is not None
    assert text_with(cell.evidence, "/a") == snapshot(
        "after a crash during recovery, /a is a file of 4,096 B (inode 11, 1 links): initial data (4,096 B), and without that crash a file of 4,096 B (inode 11, 1 links): operation 1 (512 B), initial data (3,584 B)"
    )
    refused = made.result((cell,)).unmountable
    assert refused is not None and refused.states == 1
    assert set(keep) == {"recovery-idempotent", "unmountable"}

    path = tmp_path / "recovery-idempotent.json"
    path.write_text(json.dumps(keep["recovery-idempotent"]))
    read = witness.read(path)
    assert read.claim == Idempotent()
    assert read.sentence == snapshot(
        "Of the writes that were not flushed 1 was on the disk, the write of 512 bytes at sector 22 of 2.0 s while recovery was under way, and the next recovery led to another tree."
    )
    undisturbed, other = (
        samples.observed(found=[samples.ALL, samples.NOTHING]).findings.observation(number) for number in (0, 1)
    )
    assert broken(read, other, undisturbed) == cell.evidence
    assert broken(read, undisturbed, undisturbed) is None


def test_a_recovery_that_comes_out_otherwise_each_time_says_nothing() -> None:
    """Without a crash, too: then no difference is the crash's. What another guest found is the control."""
    made = column(samples.ALL, keep={})
    seen = samples.observed((samples.FIRST, 0), (LOST, 1), found=[samples.ALL, samples.NOTHING])
    made.add_recovery(samples.case(WORKLOAD), seen, RecoveryCrash(seen.findings.observation(1)))
    unseen = samples.observed((LOST, 0), found=[samples.ALL])
    made.add_recovery(samples.case(WORKLOAD), unseen, RecoveryCrash(unseen.findings.observation(0)))
    [cell] = made.cells()
    assert [one.verdict for one in cell.recordings] == [Verdict.HOLDS, Verdict.UNKNOWN, Verdict.UNKNOWN]
    _holds, otherwise, without = (one.reason or "" for one in cell.recordings)
    assert otherwise == snapshot(
        "a control failed: recovered twice without a crash, /a is a file of 4,096 B (inode 11, 1 links): operation 1 (512 B), initial data (3,584 B), and without that crash a file of 4,096 B (inode 11, 1 links): initial data (4,096 B)"
    )
    assert without == snapshot("the recovery without a crash was not observed")


def test_the_same_holds_and_what_was_refused_is_unknown() -> None:
    made = column(samples.ALL, keep={})
    assert [cell.verdict for cell in made.cells()] == [Verdict.HOLDS]
    made.refuse_property(IDEMPOTENT, "the guest was lost while recording")
    assert [(cell.verdict, cell.reason) for cell in made.cells()] == [
        (Verdict.UNKNOWN, snapshot("the guest was lost while recording"))
    ]


def test_a_row_that_was_asked_for_is_never_silent(tmp_path: Path) -> None:
    """No crash state to recover from (each guest was lost, say): that is no reason to say nothing, or that it holds."""
    run = RunDirectory.create(tmp_path / "run", {"id": "one"})
    for recoveries in ({}, {"recoveries": []}):
        run.note(**recoveries)
        made = Column(samples.CONFIGURATION, [], samples.ENVIRONMENT, lambda name, _document: name)
        add_recoveries(made, run, [], ProbeRequest(samples.CONFIGURATION))
        assert [(cell.name, cell.verdict) for cell in made.cells()] == [(IDEMPOTENT.name, Verdict.UNKNOWN)]


def test_a_damaged_plan_of_recoveries_is_refused(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", {"recoveries": [{"workload": 0, "state": {"point": 1, "kept": []}}]})
    with pytest.raises(StoreError, match=r"run\.json is damaged: \[0\]: 'outcome' is missing|'torn' is missing"):
        planned(run)


def test_a_plan_of_an_older_bob_is_read(tmp_path: Path) -> None:
    older = {"workload": 0, "state": {"point": 1, "kept": [], "torn": []}, "outcome": 2}
    run = RunDirectory.create(tmp_path / "run", {"recoveries": [older]})
    assert planned(run) == [Recovered(0, CrashState(1), 2)]


@pytest.mark.parametrize("after", [-1, 0, 1])
def test_a_recovery_that_is_not_after_an_earlier_one_is_refused(tmp_path: Path, after: int) -> None:
    one = {"workload": 0, "state": {"point": 1, "kept": [], "torn": []}, "outcome": 0, "after": after}
    run = RunDirectory.create(tmp_path / "run", {"recoveries": [one]})
    with pytest.raises(StoreError, match=r"run\.json is damaged"):
        planned(run)


# Whose recoveries are crashed: one of each outcome, drawn from the seed, and none of a lost guest


OUTCOMES = [json.dumps({"error": error, "repaired": False, "tree": {}}) for error in (None, None, "Bad message")]


def observed(lost: str | None = None) -> Observations:
    torn = CrashState(1, (), ((3, ((0, 1),)),))
    states = (
        ExploredState(CrashState(0), 0),
        ExploredState(torn, 0),
        ExploredState(CrashState(1, (3,)), 0),
        ExploredState(CrashState(2), 1),
        ExploredState(CrashState(2, (4,)), 2),
        ExploredState(CrashState(3), None),
    )
    return Observations(states, OutcomeTable(OUTCOMES), NOTHING, lost)


def test_the_easiest_state_of_each_outcome_that_mounts() -> None:
    every = chosen([(7, observed()), (8, observed("the guest was lost"))], 100, 1)
    assert every == [Recovered(7, CrashState(2), 1), Recovered(7, CrashState(1, (3,)), 0)]
    assert decode(list[Recovered], json.loads(json.dumps(encode(every)))) == every


def test_the_seed_draws_them() -> None:
    runs = [(number, observed()) for number in range(30)]
    drawn = [chosen(runs, 10, seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert [len(one) for one in drawn] == [10, 10, 10]
    assert set(drawn[2]) < set(chosen(runs, 60, 1))
