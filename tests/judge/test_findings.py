"""Findings: what makes two violations one, and that nothing else does."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

import samples_of_runs as samples
from bob.answer.result import Cause, Finding
from bob.blocks.naming import BlockKind, BlockName
from bob.catalogue.finer_rows import durability_rows
from bob.claim.property.judged_case import JudgedCase, WorkloadVerdict
from bob.claim.property.rules import Property
from bob.claim.verdict import Verdict
from bob.crash.case import Case
from bob.crash.coverage import States
from bob.crash.device import DeviceModel
from bob.crash.plan import Plan
from bob.crash.state import CrashState
from bob.judge import findings
from bob.judge.column import Column
from bob.judge.findings import Findings, Flushing, Losses, cause_of, in_words
from bob.observe.observations import ExploredState
from bob.trace.model import Flush, Mark, Trace
from bob.witness.document import ShownState, read
from bob.workload.language import parse
from bob.workload.operations import At, Finish, Workload
from claim.worlds import World
from claims import broken

NATURAL = Finish("natural", natural=True)
PROMISES = {prop.name: prop for prop in durability_rows()}
WRITES = (2, 6, 10)
"""When the writes are sent; each is done four later. Operation 1 returns at 4, the fsync at 20, the recording at 40."""
NAMES = ("data", "inode table", "log record")


def workload(text: str) -> Workload:
    return Workload(text, parse("write /f 0 8192; write /g 0 8192"), parse(text), NATURAL, At.END)


APPEND, OTHER, OVERWRITE = map(
    workload, ["append /f 4096; fsync /f", "append /g 4096; fsync /g", "write /f 0 4096; fdatasync /f"]
)
BOTH = workload("append /f 4096; setxattr /f user.x 9; fsync /f")
LONGER = workload("append /g 4096; sync; append /f 4096; fsync /f")


def case_of(made: Workload, flushes: Sequence[tuple[int, int]] = ()) -> Case:
    """Three writes, which are pending when the last operation has returned, and flushes (sent, done)."""
    last = len(made.operations)
    writes = [
        replace(samples.write(index, 8 * index, bytes([index + 1]) * 512, time), completed=samples.at(time + 4))
        for index, time in enumerate(WRITES)
    ]
    marks = [Mark(samples.at(number), f"op {number} end") for number in range(1, last)]
    marks.append(Mark(samples.at(20), f"op {last} end"))
    trace = Trace(
        tuple(writes),
        tuple(Flush(samples.at(sent), samples.at(done)) for sent, done in flushes),
        tuple(marks),
        samples.at(1),
        samples.at(40),
        (samples.SECTORS,),
    )
    return Case(samples.CONFIGURATION, made, samples.BASE, samples.RECORDING, Plan(trace, samples.BASE, DeviceModel()))


def bench_of(case: Case, lost: Sequence[tuple[int, ...]]) -> JudgedCase:
    """All subsets of the writes are seen; where one of the sets ``lost`` is lost, nothing but the calls is there."""
    world = World.of(case.workload)
    point = len(case.plan.points) - 1
    pending = case.plan.points[point].pending
    calls = tuple(n for n, one in enumerate(case.workload.operations, 1) if type(one).__name__ in ("Fsync", "Sync"))
    seen = []
    for size in range(len(pending) + 1):
        for kept in combinations(pending, size):
            gone = set(pending) - {*kept}
            seen.append(ExploredState(CrashState(point, kept), int(any(gone >= set(one) for one in lost))))
    steps = world.history.steps
    inodes = [{path: world.numbers[thing] for path, thing in steps[at].names.items()} for at in (0, -1)]
    outcomes = [world.crash(world.all), world.crash(calls)]
    return JudgedCase(case.workload, inodes, seen, outcomes, States(8, 8, 8, "writes"), None, case.complete)


def judged(bench: JudgedCase, prop: Property) -> WorkloadVerdict:
    found = bench.judge(prop)
    assert found is not None and found.verdict is Verdict.FAILS
    return found


def written(showing: ShownState, _writes: Sequence[BlockName]) -> dict[str, Any]:
    return {"of": showing.claim.name, "workload": showing.case.workload.name, "showing": showing}


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the writes are."""
    sorts = list(NAMES)
    monkeypatch.setattr(
        findings.witness, "named", lambda _case: tuple(BlockName(BlockKind.METADATA, "x", sort) for sort in sorts)
    )
    return sorts


def found_in(*broken: tuple[Workload, str, Sequence[tuple[int, ...]]]) -> tuple[list[Finding], dict[str, Any]]:
    """The findings of workloads, each with a row that it breaks where these sets of writes are lost."""
    made, documents = Findings(written), dict[str, Any]()
    for one, row, lost in broken:
        case = case_of(one)
        bench = bench_of(case, lost)
        made.add(case, bench, PROMISES[row], judged(bench, PROMISES[row]))

    def kept(name: str, document: Mapping[str, Any]) -> str:
        documents[name] = document
        return f"witnesses/{name}.json"

    return list(made.kept(kept)), documents


def test_rows_and_workloads_with_one_lost_block_are_one_finding_with_the_smallest_workload(blocks: list[str]) -> None:
    every = [
        (LONGER, "fsync-file.size", [(2,)]),
        (OTHER, "fsync-file.size", [(2,)]),
        (BOTH, "fsync-file.attributes", [(2,)]),
        (APPEND, "fsync-file.size", [(2,)]),
        (OVERWRITE, "fdatasync-file.data", [(2,)]),
    ]
    said = set()
    for order in permutations(every):
        [finding], documents = found_in(*order)
        assert finding.cause == Cause("durable", "log record", "lost", "none")
        assert finding.words == snapshot("log record was lost: no flush was sent after it")
        assert set(finding.rows) == {"fsync-file.size", "fsync-file.attributes", "fdatasync-file.data"}
        assert finding.missing == ("append", "overwrite", "setxattr")
        assert (finding.shown_by, finding.operations, finding.witness) == (5, 2, "witnesses/finding-1.json")
        assert documents["finding-1"]["workload"] == finding.workload
        assert finding.evidence == snapshot(
            "operation 2 (fsync /f) had returned, but nothing of operation 1 (append /f 4096) is there (the size of /f: 8,192 B instead of 12,288 B)"
        )
        said.add(finding.workload)
    assert said == {"append /f 4096; fsync /f"}, "of the shortest texts the first"


def test_a_workload_that_breaks_two_rows_counts_once(blocks: list[str]) -> None:
    [finding], _documents = found_in((BOTH, "fsync-file.size", [(2,)]), (BOTH, "fsync-file.attributes", [(2,)]))
    assert (finding.shown_by, finding.rows) == (1, ("fsync-file.size", "fsync-file.attributes"))


def test_other_lost_blocks_are_other_findings_though_the_row_is_the_same(blocks: list[str]) -> None:
    several, documents = found_in((OTHER, "fsync-file.size", [(2,)]), (APPEND, "fsync-file.size", [(1,)]))
    assert [(one.cause.block, one.workload) for one in several] == [
        ("inode table", "append /f 4096; fsync /f"),
        ("log record", "append /g 4096; fsync /g"),
    ]
    assert [documents[f"finding-{number}"]["workload"] for number in (1, 2)] == [one.workload for one in several]


def test_the_shortest_text_is_the_smallest_and_not_the_first(blocks: list[str]) -> None:
    long, short = workload("append /f 40960; fsync /f"), workload("write /g 0 9; fsync /g")
    assert long.name < short.name and len(long.name) > len(short.name)
    [finding], _documents = found_in((long, "fsync-file.size", [(2,)]), (short, "fsync-file.data", [(2,)]))
    assert finding.workload == short.name


def test_of_those_that_must_all_be_lost_it_is_the_last(blocks: list[str]) -> None:
    [finding], documents = found_in((APPEND, "fsync-file.size", [(0, 2)]))
    assert finding.cause.block == "log record"
    assert documents["finding-1"]["showing"].state.kept == (1,)


def test_of_several_that_are_each_enough_it_is_the_last(blocks: list[str]) -> None:
    [finding], documents = found_in((APPEND, "fsync-file.size", [(0,), (1,), (2,)]))
    assert finding.cause.block == "log record"
    showing = documents["finding-1"]["showing"]
    assert (showing.state.kept, showing.causes) == ((0, 1), (2,))


def test_what_has_no_name_is_told_apart_by_what_is_not_there(blocks: list[str]) -> None:
    blocks[:] = ["unknown"] * 3
    every = [
        (APPEND, "fsync-file.size", [(2,)]),
        (OTHER, "fsync-file.size", [(1,)]),
        (BOTH, "fsync-file.attributes", [(2,)]),
        (OVERWRITE, "fdatasync-file.data", [(2,)]),
    ]
    several, _documents = found_in(*every)
    assert [(one.cause.call, one.cause.kinds, one.shown_by) for one in several] == [
        ("fsync-file", ("append",), 2),
        ("fdatasync-file", ("overwrite",), 1),
        ("fsync-file", ("setxattr",), 1),
    ]
    assert several[0].words == snapshot(
        "a block that bob cannot name was lost: no flush was sent after it; after fsync of a file append is not there as it should be"
    )


def test_renames_over_a_name_are_renames_and_truncations_one(blocks: list[str]) -> None:
    blocks[:] = ["unknown"] * 3
    several, _documents = found_in(
        (workload("rename /f /g; fsync /g"), "fsync-file.names", [(2,)]),
        (workload("rename /f /n; fsync /n"), "fsync-file.names", [(2,)]),
        (workload("truncate /f 99; fsync /f"), "fsync-file.size", [(2,)]),
        (workload("truncate /f 9999; fsync /f"), "fsync-file.size", [(2,)]),
    )
    assert [(one.cause.kinds, one.missing) for one in several] == [
        (("rename",), ("rename", "rename-over")),
        (("truncate",), ("truncate-down", "truncate-up")),
    ]


def test_where_nothing_is_lost_calls_and_kinds_tell_causes_apart(blocks: list[str]) -> None:
    every = [
        (APPEND, "fsync-file.size", [()]),
        (OTHER, "fsync-file.size", [()]),
        (BOTH, "fsync-file.attributes", [()]),
        (OVERWRITE, "fdatasync-file.data", [()]),
    ]
    made = Findings(written)
    for one, row, lost in every:
        case = case_of(one)
        bench = bench_of(case, lost)
        bench.distrust = None  # that a control failed is another matter
        made.add(case, bench, PROMISES[row], judged(bench, PROMISES[row]))
    several = made.kept(lambda name, _document: name)
    assert [(one.cause, one.shown_by) for one in several] == [
        (Cause("durable", call="fsync-file", kinds=("append",)), 2),
        (Cause("durable", call="fdatasync-file", kinds=("overwrite",)), 1),
        (Cause("durable", call="fsync-file", kinds=("setxattr",)), 1),
    ]
    assert several[0].words == snapshot(
        "the disk lost no write that it had been sent; after fsync of a file append is not there as it should be"
    )


@pytest.mark.parametrize(
    ("flushes", "at", "expected"),
    [
        ([], At.END, Flushing.NONE),
        ([(3, 5)], At.END, Flushing.NONE),
        ([(25, 30)], At.END, Flushing.NONE),
        ([(12, 16)], At.END, Flushing.UNDER_WAY),
        ([(15, 99)], At.END, Flushing.NOT_DONE),
        ([(12, 16), (15, 99)], At.END, Flushing.NOT_DONE),
    ],
)
def test_where_the_flush_was(blocks: list[str], flushes: list[tuple[int, int]], at: At, expected: Flushing) -> None:
    """The write is sent at 10 and done at 14; the call returns at 20."""
    case = case_of(replace(APPEND, at=at), flushes)
    points = case.plan.points
    number = next(n for n in reversed(range(len(points))) if 2 in points[n].pending)
    state = CrashState(number, tuple(index for index in points[number].pending if index != 2))
    assert caused(case, state) == Cause("durable", "log record", "lost", expected.value)


@pytest.mark.parametrize(
    ("flush", "expected"),
    [((11, 99), Flushing.NONE), ((8, 99), Flushing.UNDER_WAY), ((10, 99), Flushing.NOT_DONE)],
)
def test_where_the_crash_comes_at_any_time_what_is_sent_after_it_does_not_count(
    blocks: list[str], flush: tuple[int, int], expected: Flushing
) -> None:
    """The lost write is sent at 6 and done at 10, when the last one is sent that is there."""
    case = case_of(replace(APPEND, at=At.ANY), [flush])
    state = CrashState(len(case.plan.points) - 1, (0, 2))
    assert caused(case, state) == Cause("durable", "inode table", "lost", expected.value)


def caused(case: Case, state: CrashState) -> Cause:
    return cause_of(Losses(case), PROMISES["fsync-file.size"], state, ("append",), lambda: findings.witness.named(case))


def later(case: Case, *times: int) -> Case:
    """The same, with the third write sent at the first of these times, and more at the others; each is done at once."""
    trace = case.plan.trace
    writes = [
        replace(trace.writes[2], index=2 + n, submitted=samples.at(at), completed=samples.at(at + 1))
        for n, at in enumerate(times)
    ]
    made = replace(trace, writes=(*trace.writes[:2], *writes))
    return replace(case, plan=Plan(made, samples.BASE, DeviceModel()))


def test_what_is_sent_after_the_return_is_said_to_be(blocks: list[str]) -> None:
    case = later(case_of(APPEND), 22, 24)
    assert caused(case, CrashState(len(case.plan.points) - 1, (0, 1, 3))).flush == "unsent"


def test_torn_is_not_lost(blocks: list[str]) -> None:
    case = case_of(APPEND)
    cause = caused(case, CrashState(len(case.plan.points) - 1, (0, 1), ((2, ((0, 1),)),)))
    assert (cause.fate, in_words(cause)) == ("torn", snapshot("log record was torn: no flush was sent after it"))


@given(st.lists(st.lists(st.integers(0, 2), unique=True), min_size=1, unique_by=lambda one: tuple(sorted(one))))
def test_the_smallest_loss_is_one_of_those_that_show_it_and_none_is_smaller(several: list[list[int]]) -> None:
    case = case_of(APPEND)
    losses, last = Losses(case), len(case.plan.points) - 1
    states = [ExploredState(CrashState(last, tuple(sorted(kept))), 0) for kept in several]
    chosen = losses.smallest(states)
    assert chosen in states
    lost = {seen.state: losses.of(seen.state) for seen in states}
    assert all(len(lost[chosen.state]) <= len(one) for one in lost.values())
    alike = [one for one in lost.values() if len(one) == len(lost[chosen.state])]
    assert max(lost[chosen.state], default=0) == max(max(one, default=0) for one in alike)
    assert losses.smallest(states[::-1]) == chosen


def test_what_was_sent_after_the_last_write_that_is_there_is_no_loss(blocks: list[str]) -> None:
    """The crash comes before it is sent: at the return, at 20, or when the last write that is there is sent."""
    made = later(case_of(APPEND), 22, 24)
    losses, last = Losses(made), len(made.plan.points) - 1
    lost = {kept: losses.of(CrashState(last, kept)) for kept in [(), (0,), (0, 1), (0, 1, 2), (0, 1, 3), (3,)]}
    assert lost == {(): (0, 1), (0,): (1,), (0, 1): (), (0, 1, 2): (), (0, 1, 3): (2,), (3,): (0, 1, 2)}
    assert [losses.crash(CrashState(last, kept)) for kept in lost] == [20, 20, 20, 22, 24, 24]
    any_time = Losses(replace(made, work=replace(APPEND, at=At.ANY)))
    assert [any_time.of(CrashState(last, kept)) for kept in [(), (0,), (1,), (3,)]] == [(), (), (0,), (0, 1, 2)]
    torn = CrashState(last, (0,), ((1, ((0, 1),)),))
    assert (any_time.of(torn), losses.of(torn)) == ((1,), (1,))
    flushed = replace(made.plan.trace, flushes=(Flush(samples.at(12), samples.at(30)),))
    after = Losses(replace(made, plan=Plan(flushed, samples.BASE, DeviceModel())))
    assert after.crash(CrashState(1)) == 30 and after.of(CrashState(1)) == (2, 3), "the first two are durable by then"


@pytest.mark.parametrize(("lost", "expected"), [([(2,)], True), ([(0,), (1,), (2,)], True), ([(2,), (0, 1, 2)], True)])
def test_it_is_known_whether_it_shows_where_all_is_lost(
    blocks: list[str], lost: list[tuple[int, ...]], expected: bool
) -> None:
    _found, documents = found_in((APPEND, "fsync-file.size", lost))
    assert documents["finding-1"]["showing"].all_lost is expected


def test_where_the_loss_of_all_is_fine_or_was_not_seen(blocks: list[str]) -> None:
    for outcome, expected in ((0, False), (None, None)):
        case = case_of(APPEND)
        bench = bench_of(case, [(2,)])
        bare = CrashState(len(case.plan.points) - 1)
        seen = [one._replace(outcome=outcome) if one.state == bare else one for one in bench._states]
        changed = JudgedCase(
            case.workload, _inodes(case), seen, bench._observations, States(8, 8, 8, "writes"), None, case.complete
        )
        changed.distrust = None  # this one is the state from before the operations, too
        made, documents = Findings(written), dict[str, Any]()
        made.add(case, changed, PROMISES["fsync-file.size"], judged(changed, PROMISES["fsync-file.size"]))
        made.kept(lambda name, document, documents=documents: documents.setdefault(name, document) and name)  # type: ignore[misc]
        assert documents["finding-1"]["showing"].all_lost is expected


def _inodes(case: Case) -> list[dict[str, int]]:
    world = World.of(case.workload)
    steps = world.history.steps
    return [{path: world.numbers[thing] for path, thing in steps[at].names.items()} for at in (0, -1)]


def test_a_column_has_findings_where_they_are_asked_for_and_each_has_a_witness(tmp_path: Path) -> None:
    for by_cause in (False, True):
        kept: dict[str, Any] = {}
        column = Column(
            samples.CONFIGURATION,
            [PROMISES["returned.entry"]],
            samples.ENVIRONMENT,
            lambda name, document, kept=kept: kept.setdefault(name, document) and f"witnesses/{name}.json",  # type: ignore[misc]
            by_cause=by_cause,
        )
        made = replace(samples.WORKLOAD, at=At.END)
        marks = (*samples.TRACE.marks, Mark(samples.at(19), "op 2 end"))
        column.add(
            samples.case(made, replace(samples.TRACE, marks=marks)),
            samples.observed((samples.LAST, 0), (CrashState(1), 1), found=[samples.ALL, samples.NOTHING]),
        )
        result = column.result(column.cells())
        assert set(kept) == {"returned.entry", *(["finding-1"] if by_cause else [])}
        assert len(result.findings) == by_cause
    [finding] = result.findings
    assert (finding.rows, finding.missing, finding.witness) == (
        ("returned.entry",),
        ("create",),
        "witnesses/finding-1.json",
    )
    (tmp_path / "w.json").write_text(json.dumps(kept["finding-1"]))
    found = read(tmp_path / "w.json")
    gone, there = samples.observed(found=[samples.NOTHING, samples.ALL]).findings.observations()
    assert broken(found, gone) == finding.evidence == found.evidence
    assert broken(found, there) is None
