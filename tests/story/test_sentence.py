"""The one sentence: what is there, and where what is missing was."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot
from msgspec import structs

import samples_of_runs as samples
from bob.claim.claim import Claim, Context
from bob.claim.expectation.expected import ExpectationClaim
from bob.claim.idempotence import Idempotent
from bob.claim.mounting import Mountable, Sound
from bob.claim.property.of_property import OfProperty
from bob.claim.property.rules import Question
from bob.crash.cubes import Cube
from bob.crash.legal import growth_points
from bob.crash.state import CrashState
from bob.crash.units import WriteUnits
from bob.observe.observation import Observation
from bob.observe.observations import TroubleKind
from bob.schema import ShapeError, decode, encode
from bob.story.decisive import at
from bob.story.timeline import (
    MOST_EVENTS,
    CallEvent,
    CrashTimeline,
    Fate,
    FlushEvent,
    ProgramCallEvent,
    StoryEvent,
    WriteEvent,
    timeline,
    with_calls,
)
from bob.trace.model import DeviceWrite, Mark
from bob.workload.language import parse
from bob.workload.operations import Workload
from bob.workload.pattern import contents
from claim.worlds import World
from crash.traces import Case, cases
from wording import text_with

SETUP = parse("mkdir /d; write /a 0 512")
OPERATIONS = parse("write /a 0 512; create /d/n")
CONTEXT = Context(Workload("w", SETUP, OPERATIONS), ({}, {}), ({}, {}))
ORDERED = Question((1,), 2)
FIRST = "«write /a 0 512», issued before it,"
COMMIT = "journal commit block of transaction 5"


def written(seconds: float, fate: Fate, what: str, kind: str, *operations: int, kept: str = "") -> WriteEvent:
    return WriteEvent(
        seconds=seconds,
        end=seconds + 0.001,
        first=0,
        count=1,
        sector=8,
        sectors=1,
        task="kworker/0:1",
        fua=False,
        fate=fate,
        kind=kind,
        what=what,
        operations=operations,
        kept=kept,
    )


def told(
    *events: StoryEvent,
    question: Question = ORDERED,
    claim: Claim | None = None,
    context: Context = CONTEXT,
    found: Observation | None = None,
) -> str:
    calls = (CallEvent(seconds=0.001, end=0.002, number=1), CallEvent(seconds=0.003, end=0.004, number=2))
    asked = claim or OfProperty("mine", question)
    return asked.sentence(CrashTimeline(events=(*calls, *events), crash=40.0), context, found)


def data(seconds: float, fate: Fate, kept: str = "") -> WriteEvent:
    return written(seconds, fate, "data of operation 1 in /a", "data", 1, kept=kept)


COMMITTED = written(6.2, Fate.DURABLE, COMMIT, "journal")


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([COMMITTED], snapshot('«create /d/n» was committed at 6.2 s while «write /a 0 512», issued before it, was still only in memory.')),
        (
            [data(0.005, Fate.LOST), COMMITTED],
            snapshot("«create /d/n» was committed at 6.2 s while «write /a 0 512», issued before it, was still only in the disk's cache, sent at 5 ms."),
        ),
        (
            [COMMITTED, data(30.8, Fate.LOST)],
            snapshot('«create /d/n» was committed at 6.2 s; «write /a 0 512», issued before it, was sent to the disk only at 30.8 s, and was still in its cache.'),
        ),
        ([COMMITTED, data(30.8, Fate.TORN, "unit 0")], snapshot('«create /d/n» was committed at 6.2 s while «write /a 0 512», issued before it, was torn as the disk wrote it, sent at 30.8 s.')),
        (
            [written(17.4, Fate.DURABLE, "log record at 1/18 (inodes 134, 136: /e): agi; 2 btrees", "journal")],
            snapshot('«create /d/n» became durable with the log record at 1/18 of 17.4 s while «write /a 0 512», issued before it, was still only in memory.'),
        ),
        (
            [written(0.4, Fate.KEPT, "inode table (inode 12: /d/n)", "metadata"), data(0.5, Fate.LOST)],
            snapshot('«create /d/n» reached the disk with the inode table (inode 12: /d/n) of 400 ms; «write /a 0 512», issued before it, was sent to the disk only at 500 ms, and was still in its cache.'),
        ),
    ],
)  # fmt: skip
def test_an_order_that_was_broken(events: list[StoryEvent], words: str) -> None:
    assert text_with(told(*events), FIRST) == words


def test_what_is_there_in_part() -> None:
    one = Question((1,))
    torn = told(data(0.5, Fate.TORN, "unit 0"), question=one)
    assert text_with(torn, 1, "/a", 500, 0) == snapshot(
        "When the power failed, the write of data of operation 1 in /a at 500 ms was torn (there: unit 0): «write /a 0 512» is there only in part."
    )
    assert text_with(told(data(0.5, Fate.LOST), question=one), 500) == snapshot(
        "When the power failed, the sectors of its data, sent at 500 ms, were only in the disk's cache: «write /a 0 512» is there only in part."
    )


def test_what_had_returned() -> None:
    after, itself = Question((1,), returned=2), Question((1,), returned=1)
    lost = data(0.005, Fate.LOST)
    assert text_with(told(lost, question=after), "create /d/n", FIRST) == snapshot(
        "«create /d/n» had returned while «write /a 0 512», issued before it, was still only in the disk's cache, sent at 5 ms."
    )
    assert text_with(told(lost, question=itself), "write /a 0 512") == snapshot(
        "«write /a 0 512» had returned, but it was still only in the disk's cache, sent at 5 ms."
    )
    assert [OfProperty("mine", after).role(number) for number in (1, 2, 3)] == snapshot(
        ["must be there after operation 2 has returned", "had returned", ""]
    )
    assert OfProperty("mine", itself).role(1) == "had returned"


def test_what_does_not_mount_and_what_recovery_does() -> None:
    lost = decisive(written(6.2, Fate.LOST, COMMIT, "journal"))
    assert text_with(told(lost, claim=Mountable()), COMMIT, "6.2") == snapshot(
        "The journal commit block of transaction 5 of 6.2 s was lost, and the file system could not be mounted."
    )
    assert text_with(told(lost, claim=Idempotent()), COMMIT, "6.2") == snapshot(
        "The journal commit block of transaction 5 of 6.2 s was lost while recovery was under way, and the next recovery led to another tree."
    )


def decisive(one: WriteEvent) -> WriteEvent:
    return structs.replace(one, decides=True)


TABLE = "inode table (inode 12: /d/n)"


def test_the_write_that_an_expectation_hangs_on_is_named_and_no_other() -> None:
    """Once: "The superblock of 30.8 s was lost"."""
    superblock = written(30.8, Fate.LOST, "superblock", "superblock")
    line = CrashTimeline(events=(superblock, decisive(data(30.9, Fate.LOST))), crash=40.0)
    assert ExpectationClaim("exists  /a").sentence(line, CONTEXT, None) == (
        "The data of operation 1 in /a of 30.9 s was lost, and «exists /a» does not hold."
    )


def test_a_write_that_was_kept_can_be_the_one() -> None:
    """Once: "the commit block was lost"."""
    events = [written(0.3, Fate.LOST, COMMIT, "journal"), decisive(written(5.2, Fate.KEPT, TABLE, "metadata"))]
    assert text_with(told(*events, question=Question((2,))), TABLE, "5.2", "create /d/n") == snapshot(
        "When the power failed, the inode table (inode 12: /d/n) of 5.2 s was on the disk already, though not flushed: «create /d/n» is there only in part."
    )
    assert text_with(told(*events), FIRST, TABLE, "5.2") == snapshot(
        "«create /d/n» reached the disk with the inode table (inode 12: /d/n) of 5.2 s while «write /a 0 512», issued before it, is not there: the inode table (inode 12: /d/n) of 5.2 s was on the disk already, though not flushed."
    )


def test_data_that_was_written_and_does_not_show() -> None:
    """Once: "had returned, but it had its data written, but is not there"."""
    itself = Question((1,), returned=1)
    events = [data(0.005, Fate.DURABLE), decisive(written(6.2, Fate.LOST, COMMIT, "journal"))]
    assert text_with(told(*events, question=itself), "write /a 0 512") == snapshot(
        "«write /a 0 512» had returned, but it is not there, though its data was written: the journal commit block of transaction 5 of 6.2 s was lost."
    )
    assert text_with(told(*events), FIRST) == snapshot(
        "«create /d/n» was already there while «write /a 0 512», issued before it, is not there, though its data was written: the journal commit block of transaction 5 of 6.2 s was lost."
    )
    assert told(events[0], question=itself) == snapshot(
        "«write /a 0 512» had returned, but it is not there, though its data was written: no metadata on the disk shows it."
    )


def test_a_block_without_a_name_is_told_by_its_place() -> None:
    """Once: "The unknown of 92.2 s was lost"."""
    event = decisive(written(92.2, Fate.LOST, "unknown", "unknown"))
    assert text_with(told(event, claim=Mountable()), 512, 8, "92.2") == snapshot(
        "The write of 512 bytes at sector 8 of 92.2 s was lost, and the file system could not be mounted."
    )


ASKED = [OfProperty("mine", one) for one in (ORDERED, Question((1,)), Question((2,), returned=2))]


@pytest.mark.parametrize("claim", [Mountable(), Idempotent(), Sound(TroubleKind.CHECKER), *ASKED])
def test_where_no_write_is_known_to_make_the_difference_none_is_blamed(claim: Claim) -> None:
    events = [
        written(0.3, Fate.LOST, COMMIT, "journal"),
        written(0.4, Fate.LOST, "superblock", "superblock"),
        written(5.2, Fate.KEPT, TABLE, "metadata"),
    ]
    text = told(*events, claim=claim)
    assert "2 were lost and 1 was on the disk (bob cannot say which of them makes the difference)" in text
    assert COMMIT not in text and "superblock" not in text
    assert f"{TABLE} of 5.2 s was on the disk" not in text


def test_where_several_would_do_they_are_named_and_no_choice_is_made() -> None:
    events = [decisive(written(k + 1.0, Fate.LOST, f"block {k}", "metadata")) for k in range(5)]
    assert text_with(told(*events[:2], claim=Mountable()), 0, "1.0", 1, "2.0") == snapshot(
        "The block 0 of 1.0 s was lost and the block 1 of 2.0 s was lost (bob cannot say which: any one of them taken back is enough), and the file system could not be mounted."
    )
    assert text_with(told(*events, claim=Mountable()), 2, "3.0") == snapshot(
        "The block 0 of 1.0 s was lost, the block 1 of 2.0 s was lost, the block 2 of 3.0 s was lost and 2 more like these (bob cannot say which: any one of them taken back is enough), and the file system could not be mounted."
    )


def test_where_nothing_was_lost() -> None:
    assert told(COMMITTED, claim=Mountable()) == snapshot(
        "Nothing that the disk had been sent was lost, and the file system could not be mounted."
    )


def test_the_only_write_that_was_pending_is_named_and_not_blamed() -> None:
    assert text_with(told(written(6.2, Fate.LOST, COMMIT, "journal"), claim=Mountable()), 1, COMMIT, "6.2") == snapshot(
        "Of the writes that were not flushed 1 was lost, the journal commit block of transaction 5 of 6.2 s, and the file system could not be mounted."
    )


def test_what_is_wrong_though_it_mounts_is_not_told_as_a_mount_that_failed() -> None:
    """Once: "and the file system could not be mounted", of a state that mounted."""
    lost = decisive(written(6.2, Fate.LOST, COMMIT, "journal"))
    assert text_with(told(lost, claim=Sound(TroubleKind.KERNEL_MESSAGE)), COMMIT, "6.2") == snapshot(
        "The journal commit block of transaction 5 of 6.2 s was lost, and the crash state mounted, but the kernel warned."
    )


# Every write before a crash has its fate, and the time line comes back from JSON as it was

NAMES = [("metadata", f"block {number}") for number in range(2000)]
MARKS = (
    Mark(samples.at(10), "start"),
    Mark(samples.at(11), "op 1 begin"),
    Mark(samples.at(13), "op 1 end"),
    Mark(samples.at(15), "op 2 begin"),
    Mark(samples.at(30), "end"),
)
TRACE = replace(samples.TRACE, marks=MARKS)


@settings(max_examples=150, deadline=None)
@given(cases(), st.integers())
def test_each_write_before_the_crash_is_told_with_its_fate(case: Case, seed: int) -> None:
    points = growth_points(case.trace, case.model)
    parts = WriteUnits(case.trace, points, case.model)
    state = parts.legal.sample(Cube(), Random(seed))
    point = points[state.point]
    line = timeline(case.trace, point, state, NAMES)
    told = {index for one in line.writes for index in range(one.first, one.first + one.count)}
    begun = {write.index for write in case.trace.writes if write.submitted.time <= point.time}
    before = {write.index for write in case.trace.writes if write.submitted.time < case.trace.start.time}
    assert begun - (before & set(point.durable)) == told
    assert line.left_out == len(begun - told)
    for one in line.writes:
        for index in range(one.first, one.first + one.count):
            assert (one.fate is Fate.DURABLE) == (index in point.durable)
            assert (one.fate is Fate.KEPT) == (index in state.kept)
            assert (one.fate is Fate.TORN) == (index in dict(state.torn))
    assert [event.seconds for event in line.events] == sorted(event.seconds for event in line.events)
    assert decode(CrashTimeline, json.loads(json.dumps(encode(line)))) == line


def test_operations_and_flushes_are_told_too() -> None:
    point = samples.plan().points[-1]
    line = timeline(TRACE, point, CrashState(len(samples.plan().points) - 1, point.pending), NAMES)
    assert [type(event) for event in line.events] == [
        CallEvent,
        WriteEvent,
        WriteEvent,
        CallEvent,
        FlushEvent,
        WriteEvent,
    ]
    called = [event for event in line.events if isinstance(event, CallEvent)]
    assert [(event.number, event.seconds, event.end) for event in called] == [(1, 0.25, 0.75), (2, 1.25, None)]


def test_the_calls_of_a_program_are_told_up_to_the_crash() -> None:
    point = samples.plan().points[-1]
    line = timeline(TRACE, point, CrashState(len(samples.plan().points) - 1, point.pending), NAMES)
    early = [ProgramCallEvent(-100 + number / 1000, f"early {number}", "there") for number in range(30)]
    calls = [
        *early,
        ProgramCallEvent(-99, "lost", "missing"),
        ProgramCallEvent(1.3, "late", ""),
        ProgramCallEvent(line.crash + 1, "after", ""),
    ]
    told = with_calls(line, calls)
    said = [event.words for event in told.events if isinstance(event, ProgramCallEvent)]
    assert said == [*(f"early {number}" for number in range(20, 30)), "lost", "late"]
    assert [event.seconds for event in told.events] == sorted(event.seconds for event in told.events)
    assert [event for event in told.events if not isinstance(event, ProgramCallEvent)] == list(line.events)
    assert decode(CrashTimeline, json.loads(json.dumps(encode(told)))) == told


def test_many_events_are_not_all_told_and_none_that_was_pending_is_left_out() -> None:
    writes = tuple(
        DeviceWrite(number, 2 * number, bytes(512), samples.at(1 + 2 * number), samples.at(2 + 2 * number))
        for number in range(400)
    )
    trace = replace(
        samples.TRACE,
        writes=writes,
        flushes=(replace(samples.TRACE.flushes[0], submitted=samples.at(700), completed=samples.at(701)),),
        start=samples.at(0),
        end=samples.at(900),
        device_sectors=(1000,),
    )
    points = growth_points(trace, samples.plan().composer.model)
    line = timeline(trace, points[-1], CrashState(len(points) - 1), NAMES)
    assert sum(one.count for one in line.writes) + line.left_out == 400
    assert sum(one.count for one in line.writes if one.fate is Fate.LOST) == len(points[-1].pending) > 10
    assert len(line.events) <= MOST_EVENTS
    unflushed = replace(trace, flushes=())
    [point] = growth_points(unflushed, samples.plan().composer.model)
    line = timeline(unflushed, point, CrashState(0, point.pending[::2]), NAMES)
    assert [(one.fate, one.count) for one in line.writes] == [(Fate.KEPT, 200), (Fate.LOST, 200)]


def test_data_that_follow_each_other_are_told_together() -> None:
    writes = [
        DeviceWrite(number, 8 * number, contents(1, 4096 * number, 4096), samples.at(11 + number), samples.at(25))
        for number in range(5)
    ]
    trace = replace(TRACE, writes=tuple(writes), flushes=(), marks=())
    points = growth_points(trace, samples.plan().composer.model)
    line = timeline(trace, points[-1], CrashState(0), [("data", "data of operation 1")] * 5)
    [one] = line.writes
    assert (one.count, one.sectors, one.operations, one.fate) == (5, 40, (1,), Fate.LOST)


@settings(max_examples=100, deadline=None)
@given(cases(), st.integers(), st.sets(st.integers(0, 9)))
def test_writes_that_decide_are_told_by_themselves(case: Case, seed: int, wanted: set[int]) -> None:
    points = growth_points(case.trace, case.model)
    state = WriteUnits(case.trace, points, case.model).legal.sample(Cube(), Random(seed))
    causes = wanted & set(points[state.point].pending)
    line = timeline(case.trace, points[state.point], state, NAMES, causes)
    assert line.causes == causes
    assert all(one.count == 1 for one in line.writes if one.decides)
    document = encode(line)
    assert decode(CrashTimeline, json.loads(json.dumps(document))) == line
    assert sum("decides" in event for event in document["events"]) == len(causes)


def test_of_many_writes_of_one_kind_those_that_decide_stand_alone() -> None:
    writes = tuple(
        DeviceWrite(number, 2 * number, bytes(512), samples.at(1 + 2 * number), samples.at(900))
        for number in range(400)
    )
    trace = replace(
        samples.TRACE,
        writes=writes,
        flushes=(),
        start=samples.at(0),
        end=samples.at(899),
        device_sectors=(1000,),
        marks=(),
    )
    [point] = growth_points(trace, samples.plan().composer.model)
    line = timeline(trace, point, CrashState(0), NAMES, {7, 300})
    assert sorted(one.count for one in line.writes) == [1, 1, 398]
    assert line.causes == {7, 300}


@pytest.mark.parametrize(
    "damaged", [None, {}, {"events": [{"event": "written"}], "crash": 1, "left_out": 0}, {"events": 3, "crash": 1}]
)
def test_damage(damaged: object) -> None:
    with pytest.raises(ShapeError):
        decode(CrashTimeline, damaged)


def test_a_sentence_says_no_more_than_what_was_found() -> None:
    """Of the later operation only its size is there, and of two that were to be there before it the second is lost."""
    operations = parse("append /d/a 512; rename /d/a /d/b; append /c 512")
    workload = Workload("w", parse("mkdir /d; create /d/a; create /c"), operations)
    world = World.of(workload)
    tree = dict(world.crash((1,)).tree or {})
    tree["/c"] = replace(tree["/c"], content=bytes(512), size=512)
    question, context = Question((1, 2), 3), Context(workload, ({}, {}), ({}, {}))
    journal = written(5.0, Fate.DURABLE, COMMIT, "journal")
    known = told(journal, question=question, context=context, found=Observation(True, None, tree))
    assert text_with(known, "append /c 512", "5.0", "rename /d/a /d/b") == snapshot(
        "something of «append /c 512» was committed at 5.0 s while «rename /d/a /d/b», issued before it, was still only in memory."
    )
    unknown = told(journal, question=question, context=context)
    assert text_with(unknown, "append /c 512", "5.0", "append /d/a 512") == snapshot(
        "«append /c 512» was committed at 5.0 s while «append /d/a 512», issued before it, was still only in memory."
    )


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(14.1, "14.1 s"), (-14.0, "-14.0 s"), (0.0523, "52.3 ms"), (-0.431, "-431 ms"), (0.0, "0 ms")],
)
def test_a_moment_is_in_seconds_or_in_milliseconds(seconds: float, words: str) -> None:
    """A write before the time line begins has a negative time."""
    assert at(seconds) == words
