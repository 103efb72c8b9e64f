"""Quick questions on real guests: known breaks show and their witnesses replay, what holds holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bob.agent.loss import LossCause
from bob.answer.document import from_json, to_json
from bob.answer.result import Result
from bob.catalogue.probe_files import parse_finish
from bob.catalogue.request import DEFAULT_MODEL, ProbeRequest
from bob.claim.expectation.language import parse as expectation
from bob.claim.property.subjects import BLOCK_BYTES
from bob.claim.verdict import Verdict
from bob.errors import StoreError
from bob.judge.again import judge_again
from bob.judge.question import Trial
from bob.progress import Silent
from bob.run.prober import try_out
from bob.run.replay import replay
from bob.store.run_directory import RunDirectory
from bob.story.timeline import Fate
from bob.subject import configuration
from bob.trace.model import SECTOR_BYTES
from bob.witness.document import read
from bob.workload.finishes import NATURAL, default_finishes
from bob.workload.language import parse
from bob.workload.operations import At, Workload
from bob.workload.simulation import simulate

pytestmark = [pytest.mark.vm, pytest.mark.usefixtures("warm_guests")]


def ask(
    out: Path,
    operations: str,
    *expected: str,
    setup: str = "",
    options: str = "",
    at: At = At.END,
    fs: str = "ext4",
    finishes: tuple[str, ...] = ("natural",),
    atomic_write_bytes: int = SECTOR_BYTES,
) -> Result:
    """Ask it of a file system, with these finishes, or those by default where there are none."""
    model = replace(DEFAULT_MODEL, atomic_write_bytes=atomic_write_bytes)
    request = ProbeRequest(configuration(fs, "", options), budget=60, model=model)
    made, done = parse(setup), parse(operations)
    asked = [parse_finish(finish, done) for finish in finishes]
    ways = asked or default_finishes(simulate(Workload("try", made, done))[0])
    workloads = tuple(Workload("try", made, done, finish, at) for finish in ways)
    result, path = try_out(Trial(request, workloads, tuple(map(expectation, expected)), 2), out, Silent())
    assert path == out
    return result


def verdicts(result: Result) -> list[Verdict]:
    return [answer.verdict for answer in result.answers]


def test_without_fsync_a_write_may_be_lost_and_the_witness_shows_it_again(tmp_path: Path) -> None:
    result = ask(
        tmp_path / "run",
        "write /a 0 4096",
        "content /a = new",
        "exists /a implies content /a = empty or content /a = new",
    )
    assert verdicts(result) == [Verdict.FAILS, Verdict.HOLDS]
    assert {way.evidence for way in result.answers[0].ways} == {"/a is not there", "/a is empty"}
    assert not result.answers[0].needs_no_crash

    path = tmp_path / "run" / str(result.answers[0].witness)
    again = list(replay([path], image=None, connect=None, times=3, progress=Silent()))
    assert [(one.confirmed, one.evidence) for one in again] == [(3, result.answers[0].ways[0].evidence)]
    called = [event for event in read(path).timeline.events if getattr(event, "number", 0) == 1]
    assert [event.end is not None for event in called] == [True]  # the write had returned
    witnesses = [str(way.witness) for way in result.answers[0].ways]
    without_name, empty = (read(tmp_path / "run" / witness).timeline for witness in witnesses)
    assert not without_name.causes, "with the commit block that is missing, /a is there, and empty"
    [decisive] = [one for one in empty.writes if one.decides]
    assert decisive.fate is Fate.LOST and "commit block" in decisive.what
    with pytest.raises(StoreError, match="is a run of bob try"):
        judge_again(tmp_path / "run")


def test_an_operation_that_panics_the_kernel_is_a_finding(tmp_path: Path) -> None:
    """Linux 6.1 to at least 6.1.192: ext4_map_blocks and jbd2_journal_file_inode of a file with inline data. Two guests
    fall at it (16 s)."""
    request = ProbeRequest(configuration("ext4", "-O inline_data", ""), budget=60)
    workload = Workload("try", parse("write /f 0 40"), parse("truncate /f 100; fsync /f"), NATURAL, At.END)
    result, path = try_out(Trial(request, (workload,), (expectation("mounts"),), 2), tmp_path / "run", Silent())
    [part] = result.subjects[0].falls
    assert part.fall is not None and part.fall.cause is LossCause.PANICKED
    assert "operation 1 (truncate /f 100): BUG: kernel NULL pointer" in str(part.reason)
    assert any("jbd2_journal_file_inode" in line for line in part.fall.lines)
    assert verdicts(result) == [Verdict.UNKNOWN]
    assert RunDirectory(path).refusal(RunDirectory(path).workloads()[0]) is not None, "it stays in the run"


def test_after_fsync_it_is_there_and_before_it_may_not_be(tmp_path: Path) -> None:
    question = "write /a 0 4096; fsync /a", "content /a = new", "exists /a"
    after = ask(tmp_path / "after", *question)
    assert verdicts(after) == [Verdict.HOLDS, Verdict.HOLDS]
    anywhere = ask(tmp_path / "anywhere", *question, at=At.ANY)
    assert verdicts(anywhere) == [Verdict.FAILS, Verdict.FAILS]
    assert anywhere.answers[0].states.legal_sectors > after.answers[0].states.legal_sectors


def test_a_rename_over_a_file_loses_both_contents_where_ext4_does_not_take_care(tmp_path: Path) -> None:
    result = ask(
        tmp_path / "run",
        "write /g 0 4096; rename /g /f",
        "content /f = old or content /f = new",
        "exists /f",
        setup="write /f 0 8192",
        options="noauto_da_alloc",
    )
    assert verdicts(result) == [Verdict.FAILS, Verdict.HOLDS]
    assert [way.evidence for way in result.answers[0].ways] == ["/f is empty"]


def test_a_write_of_one_byte_can_be_seen(tmp_path: Path) -> None:
    """It begins a cell, as does what it replaces: without shades both are the same byte."""
    question = "content /f = op2 implies content /f = op1"
    result = ask(tmp_path / "run", "write /f 40959 1; write /f 0 1", question, setup="write /f 0 40K")
    assert verdicts(result) == [Verdict.FAILS]


FERRITE = {
    # Figure 3 of "Specifying and Checking File System Crash-Consistency Models" (ASPLOS 2016) has these as broken.
    "prefix-append": ("f2fs", "write /file 0 2500", "append /file 2500", "content /file prefix new", "zeros"),
    "atomic-create-via-rename": (
        "btrfs",
        "",
        "write /file.tmp 0 4096; rename /file.tmp /file",
        "exists /file implies content /file = new",
        "is empty",
    ),
}
"""Litmus tests of Ferrite's that the kernel's own pace does not break, and others' syncs do."""


@pytest.mark.parametrize("name", FERRITE)
def test_outcomes_of_ferrite_show_by_default_and_not_in_the_kernels_own_pace(tmp_path: Path, name: str) -> None:
    fs, setup, operations, expected, shown = FERRITE[name]
    before = ask(tmp_path / "before", operations, expected, setup=setup, fs=fs)
    assert (verdicts(before), before.answers[0].states.exhaustive is None) == ([Verdict.HOLDS], False)  # so it was told

    now = ask(tmp_path / "now", operations, expected, setup=setup, fs=fs, finishes=())
    [answer] = now.answers
    assert [one.finish for one in answer.recordings] == ["natural", "fsync /"]
    assert [one.verdict for one in answer.recordings] == [Verdict.HOLDS, Verdict.FAILS]
    assert (answer.verdict, answer.needs_no_crash) == (Verdict.FAILS, False)
    assert shown in answer.ways[0].evidence
    assert from_json(to_json(now)).answers[0].violations == answer.violations == answer.recordings[1].violations

    path = tmp_path / "now" / str(answer.witness)
    assert read(path).workload.finish.name == "fsync /"
    again = list(replay([path], image=None, connect=None, times=2, progress=Silent()))
    assert [(one.confirmed, one.evidence) for one in again] == [(2, answer.ways[0].evidence)]


TORN_COMMIT = (
    "write /d/a 512 512; write /d/b 4200 100; write /d/s 20 60; write /d/a 8300 200 mmap",
    "mkdir /d; mkdir /e; write /d/a 0 40000; write /d/b 0 20000; write /d/s 0 100; write /e/o 0 8192; create /e/p",
)
"""The commit block lies where the journal had another block before, which is not all zeros."""


def test_a_torn_commit_block_breaks_mounts_and_writes_of_whole_blocks_do_not(tmp_path: Path) -> None:
    operations, setup = TORN_COMMIT
    result = ask(tmp_path / "torn", operations, "mounts", setup=setup, at=At.ANY)
    assert verdicts(result) == [Verdict.FAILS]
    [way] = result.answers[0].ways
    assert "Structure needs cleaning" in way.evidence
    assert not result.answers[0].needs_no_crash

    path = tmp_path / "torn" / str(result.answers[0].witness)
    again = list(replay([path], image=None, connect=None, times=2, progress=Silent()))
    assert [one.confirmed for one in again] == [2]

    whole = ask(tmp_path / "whole", operations, "mounts", setup=setup, at=At.ANY, atomic_write_bytes=BLOCK_BYTES)
    assert (verdicts(whole), whole.answers[0].states.exhaustive is not None) == ([Verdict.HOLDS], True)
