"""The join: recovers the truth of simulated histories and of a real one, and refuses what does not add up."""

from __future__ import annotations

import io
import lzma
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.errors import RecordingError
from bob.trace.join import DiskLog, join
from bob.trace.log import LogReader
from bob.trace.log_format import EntryFlags
from bob.trace.log_writer import NewEntry, write_log
from bob.trace.model import Trace
from bob.trace.timeline import parse_timeline
from wording import text_with

from .dm_simulator import DEVICE, Simulator, run_together

REAL = Path(__file__).parent / "data" / "ext4-linux-6.1"
A, B, C = (letter * 4096 for letter in (b"A", b"B", b"C"))
NONE = EntryFlags(0)
WRITE = ["a-2 Q W 0 + 8", "a-2 S W 0 + 8", "irq-9 C W 0 + 8"]
FLUSH = ["a-2 Q FWS 0 + 0", "a-2 S FWS 0 + 0", "irq-9 C FWS 0 + 0"]
UNHURRIED = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def timeline_text(*events: str) -> str:
    """A timeline: each event is "task-pid event...", with "Q", "S" (sent), "C" or a mark in short."""
    lines = []
    for event in events:
        task, kind, rest = event.split(" ", 2)
        match kind:
            case "Q":
                body = f"block_bio_queue: 253,0 {rest} [{task}]"
            case "S":
                body = f"block_bio_remap: 7,0 {rest} <- (253,0) {rest.split()[1]}"
            case "C":
                body = f"block_bio_complete: 253,0 {rest} [0]"
            case _:
                body = f"tracing_mark_write: bob: {rest}"
        lines.append(f"{task} [000] .....    1.{len(lines):06}: {body}")
    return "\n".join(lines)


def joined(events: list[str], entries: list[NewEntry], *, device_sectors: int = 1 << 20, marks: bool = True) -> Trace:
    if marks:
        events = ["bob-1 M start", *events, "bob-1 M end"]
    file = io.BytesIO()
    write_log(file, entries)
    return join([DiskLog(LogReader(file), DEVICE, device_sectors)], parse_timeline(timeline_text(*events)))


def as_seen(trace: Trace) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    writes = [(w.sector, w.data, w.fua, w.meta, w.submitted.time, w.completed.time, w.task) for w in trace.writes]
    return writes, [(f.submitted.time, f.completed.time, f.task) for f in trace.flushes]


@UNHURRIED
@given(st.integers(0), st.integers(0, 120), st.sampled_from([512, 4096]))
def test_recovers_what_happened(seed: int, steps: int, sectorsize: int) -> None:
    simulator = Simulator(seed, sectorsize=sectorsize)
    simulator.run(steps)
    trace = join([DiskLog(simulator.log(), DEVICE, 1 << 20)], simulator.timeline())
    writes, flushes = as_seen(trace)
    assert writes == sorted(simulator.writes, key=lambda write: write[4])
    assert flushes == simulator.flushes
    assert [write.index for write in trace.writes] == list(range(len(writes)))
    assert (trace.start.time, trace.end.time) == (3, len(simulator.lines))
    assert trace.discards == sum(EntryFlags.DISCARD in entry.flags for entry in simulator.logged)


@UNHURRIED
@given(st.integers(0), st.integers(2, 4), st.integers(0, 120))
def test_several_disks_are_joined_each_with_its_own_log(seed: int, count: int, steps: int) -> None:
    first = Simulator(seed)
    disks = [first, *(Simulator(seed + n, device=(253, n), lines=first.lines) for n in range(1, count))]
    run_together(disks, steps)
    logged = [DiskLog(disk.log(), disk.device, 1 << (20 + n)) for n, disk in enumerate(disks)]
    trace = join(logged, first.timeline())
    assert trace.device_sectors == tuple(1 << (20 + n) for n in range(count))
    assert [write.index for write in trace.writes] == list(range(len(trace.writes)))
    assert [flush.completed.time for flush in trace.flushes] == sorted(f.completed.time for f in trace.flushes)
    for number, disk in enumerate(disks):
        mine = replace(
            trace,
            writes=tuple(write for write in trace.writes if write.device == number),
            flushes=tuple(flush for flush in trace.flushes if flush.device == number),
        )
        writes, flushes = as_seen(mine)
        assert writes == sorted(disk.writes, key=lambda write: write[4])
        assert flushes == disk.flushes


def test_the_log_of_another_disk_is_refused() -> None:
    first = Simulator(3)
    disks = [first, Simulator(4, device=(253, 1), lines=first.lines)]
    run_together(disks, 60)
    with pytest.raises(RecordingError):
        join([DiskLog(disks[1].log(), (253, 0), 1 << 20), DiskLog(first.log(), (253, 1), 1 << 20)], first.timeline())


@UNHURRIED
@given(st.integers(0), st.integers(0, 120))
def test_never_claims_too_early_a_submission_of_twins(seed: int, steps: int) -> None:
    """Writes that look alike and are in flight together: which is which is unknown, and no crash state is invented."""
    simulator = Simulator(seed, twins=True)
    simulator.run(steps)
    trace = join([DiskLog(simulator.log(), DEVICE, 1 << 20)], simulator.timeline())
    truth = {data: (submitted, completed) for _, data, _, _, submitted, completed, _ in simulator.writes}
    assert {write.data for write in trace.writes} == set(truth)
    for write in trace.writes:
        submitted, completed = truth[write.data]
        assert submitted <= write.submitted.time < write.completed.time == completed
    assert len(trace.flushes) == len(simulator.flushes)


@UNHURRIED
@given(st.integers(0), st.data())
def test_a_damaged_recording_is_refused(seed: int, data: st.DataObject) -> None:
    """Any one entry or any one bio event less, and there is no trace."""
    simulator = Simulator(seed)
    simulator.run(40)
    counted = [n for n, e in enumerate(simulator.logged) if e.data or EntryFlags.FLUSH in e.flags]
    events = [n for n, line in enumerate(simulator.lines) if " + " in line and " D" not in line and " R" not in line]
    events = [n for n in events if "8,16" not in simulator.lines[n]]
    if counted and data.draw(st.booleans()):
        del simulator.logged[data.draw(st.sampled_from(counted))]
    elif events:
        del simulator.lines[data.draw(st.sampled_from(events))]
    else:
        return
    with pytest.raises(RecordingError):
        join([DiskLog(simulator.log(), DEVICE, 1 << 20)], simulator.timeline())


def test_a_real_recording() -> None:
    """ext4 data=ordered on Linux 6.1, two threads with fsync, O_DSYNC, sync and rename: replay gives the device."""
    log, base, final = (lzma.decompress((REAL / f"{name}.xz").read_bytes()) for name in ("log", "base", "final"))
    timeline = parse_timeline(lzma.decompress((REAL / "timeline.xz").read_bytes()).decode())
    trace = join([DiskLog(LogReader(io.BytesIO(log)), DEVICE, len(base) // 512)], timeline)
    image = bytearray(base)
    for write in trace.writes:
        image[write.sector * 512 : (write.sector + write.sectors) * 512] = write.data
    assert image == final != base
    assert (len(trace.writes), len(trace.flushes), sum(write.fua for write in trace.writes)) == (106, 17, 13)
    assert [mark.text for mark in trace.marks] == ["start", "op 0 begin", "op 0 end", "end"]
    assert {"jbd2/dm-0-8", "python3"} <= {write.task for write in trace.writes}


def test_commit_block() -> None:
    """jbd2's PREFLUSH|FUA: a flush, and a write that is submitted only when the flush is over."""
    trace = joined(
        [
            "jbd2-7 Q WS 0 + 8",
            "jbd2-7 S WS 0 + 8",
            "irq-9 C WS 0 + 8",
            "jbd2-7 Q FWFSM 8 + 8",
            "jbd2-7 S FWFSM 8 + 0",
            "kdmflush-5 S WFSM 8 + 8",
            "irq-9 C WFSM 8 + 8",
        ],
        [
            NewEntry(NONE, 0, A),
            NewEntry(EntryFlags.FLUSH | EntryFlags.FUA | EntryFlags.METADATA, 8),
            NewEntry(EntryFlags.FUA | EntryFlags.METADATA, 8, B),
        ],
    )
    writes, flushes = as_seen(trace)
    assert writes == [(0, A, False, False, 2, 4, "jbd2"), (8, B, True, True, 7, 8, "jbd2")]
    assert flushes == [(5, 7, "jbd2")]
    assert [write.log_entry for write in trace.writes] == [0, 2]


def test_flushes_complete_in_the_order_they_were_sent() -> None:
    """Task b overtakes task a between queueing and sending; both flushes are empty and look alike."""
    trace = joined(
        ["a-2 Q FWS 0 + 0", "b-3 Q FWS 0 + 0", "b-3 S FWS 0 + 0", "a-2 S FWS 0 + 0", *["irq-9 C FWS 0 + 0"] * 2],
        [NewEntry(EntryFlags.FLUSH), NewEntry(EntryFlags.FLUSH)],
    )
    assert as_seen(trace)[1] == [(3, 6, "b"), (2, 7, "a")]


def test_fua_logged_ahead() -> None:
    """Pitfalls 2 and 4: the FUA write comes first in the log, yet was submitted after the write it overtakes."""
    trace = joined(
        ["a-2 Q W 0 + 8", "a-2 S W 0 + 8", "irq-9 C W 0 + 8", "a-2 Q WF 0 + 8", "a-2 S WF 0 + 8", "irq-9 C WF 0 + 8"],
        [NewEntry(EntryFlags.FUA, 0, B), NewEntry(NONE, 0, A)],
    )
    assert [(write.data, write.fua, write.log_entry) for write in trace.writes] == [(A, False, 1), (B, True, 0)]


def test_same_sectors_written_one_after_the_other() -> None:
    one = ["a-2 Q W 0 + 8", "a-2 S W 0 + 8", "irq-9 C W 0 + 8"]
    trace = joined(one * 3, [NewEntry(NONE, 0, data) for data in (A, B, C)])
    assert [(w.data, w.submitted.time, w.completed.time) for w in trace.writes] == [(A, 2, 4), (B, 5, 7), (C, 8, 10)]


def test_twins_in_flight_are_submitted_as_late_as_can_be() -> None:
    trace = joined(
        ["a-2 Q W 0 + 8", "a-2 S W 0 + 8", "b-3 Q W 0 + 8", "b-3 S W 0 + 8", "irq-9 C W 0 + 8", "irq-9 C W 0 + 8"],
        [NewEntry(NONE, 0, A), NewEntry(NONE, 0, B)],
    )
    assert [(w.data, w.submitted.time, w.completed.time) for w in trace.writes] == [(A, 5, 6), (B, 5, 7)]


def test_a_twin_with_preflush_is_told_by_who_sends_its_data() -> None:
    """Task a is held up between queueing and sending; meanwhile dm's worker sends the data of its twin."""
    trace = joined(
        ["a-2 Q W 0 + 8", "b-3 Q FW 0 + 8", "b-3 S FW 0 + 0", "dm-5 S W 0 + 8", "q-9 C W 0 + 8", *WRITE[1:]],
        [NewEntry(EntryFlags.FLUSH), NewEntry(NONE, 0, B), NewEntry(NONE, 0, A)],
    )
    assert as_seen(trace)[1] == [(3, 5, "b")]
    assert [(w.data, w.submitted.time, w.completed.time) for w in trace.writes] == [(B, 5, 6), (A, 7, 8)]


def test_chained_bios_complete_together() -> None:
    """btrfs's mirrors on 6.1: the second was done first, and so logged first, but is traced with the first."""
    trace = joined(
        [
            "a-2 Q WM 0 + 8",
            "a-2 S WM 0 + 8",
            "a-2 Q WM 8 + 8",
            "a-2 S WM 8 + 8",
            "irq-9 C WM 0 + 8",
            "irq-9 C WM 8 + 8",
        ],
        [NewEntry(EntryFlags.METADATA, 8, B), NewEntry(EntryFlags.METADATA, 0, A)],
    )
    assert [write.data for write in trace.writes] == [A, B]


def test_events_of_other_devices_are_ignored() -> None:
    others = [
        "block_bio_queue: 7,0 W 0 + 8 [x]",
        "block_bio_remap: 254,0 W 0 + 8 <- (254,1) 0",
        "block_bio_complete: 7,0 W 0 + 8 [0]",
    ]
    text = "\n".join([timeline_text("bob-1 M start", "bob-1 M end"), *(f"x-1 [000] 2.0: {other}" for other in others)])
    file = io.BytesIO()
    write_log(file, [NewEntry(EntryFlags.MARK, mark="dm-log-writes-end")])
    trace = join([DiskLog(LogReader(file), DEVICE, 8)], parse_timeline(text))
    assert (trace.writes, trace.flushes, trace.device_sectors) == ((), (), (8,))


@pytest.mark.parametrize(
    ("events", "entries", "message"),
    [
        (
            WRITE,
            [],
            snapshot("the write 0 + 8 of a, completed at timeline line 4, is not in the log; neither are 0 more"),
        ),
        (
            [],
            [NewEntry(NONE, 0, A)],
            snapshot("log entry 0 at byte 512 (0 + 8, no flags) does not match a completed write of the timeline"),
        ),
        (
            WRITE,
            [NewEntry(EntryFlags.FUA, 0, A)],
            snapshot("log entry 0 at byte 512 (0 + 8, FUA) does not match a completed write of the timeline"),
        ),
        (
            WRITE,
            [NewEntry(NONE, 0, A), NewEntry(NONE, 0, A)],
            snapshot("log entry 1 at byte 5120 (0 + 8, no flags) does not match a completed write of the timeline"),
        ),
        (WRITE[:2], [], snapshot("timeline line 2: bio W 0 + 8 of a never completed; neither did 0 more")),
        (FLUSH[:2], [], snapshot("timeline line 2: bio FWS 0 + 0 of a never completed; neither did 0 more")),
        (FLUSH[:1], [], snapshot("timeline line 2: bio FWS 0 + 0 of a never completed; neither did 0 more")),
        (WRITE[1:], [NewEntry(NONE, 0, A)], snapshot("timeline line 2: bio W 0 + 8 of a was never seen queued")),
        (
            [WRITE[0], WRITE[2]],
            [NewEntry(NONE, 0, A)],
            snapshot("timeline line 3: bio W 0 + 8 of irq was never seen queued and sent down"),
        ),
        (
            [FLUSH[0], FLUSH[2]],
            [NewEntry(EntryFlags.FLUSH)],
            snapshot("timeline line 3: bio FWS 0 + 0 of irq was never seen sent down"),
        ),
        (
            FLUSH[1:],
            [NewEntry(EntryFlags.FLUSH)],
            snapshot("timeline line 2: bio FWS 0 + 0 of a was never seen queued"),
        ),
        (FLUSH, [], snapshot("the log has 0 flushes, the timeline 1")),
        (
            ["a-2 Q N 0 + 8"],
            [],
            snapshot("the log cannot record timeline line 2: bio N 0 + 8 of a: not a read, write, flush or discard"),
        ),
        (
            ["a-2 Q WZ 0 + 8"],
            [],
            snapshot("the log cannot record timeline line 2: bio WZ 0 + 8 of a: not a read, write, flush or discard"),
        ),
        (
            ["a-2 Q DE 0 + 8"],
            [],
            snapshot("the log cannot record timeline line 2: bio DE 0 + 8 of a: not a read, write, flush or discard"),
        ),
        (
            WRITE,
            [NewEntry(NONE, 1 << 20, A)],
            snapshot("log entry 0 at byte 512 (1048576 + 8, no flags) is beyond the device's 1048576 sectors"),
        ),
    ],
)
def test_left_overs_are_refused(events: list[str], entries: list[NewEntry], message: str) -> None:
    with pytest.raises(RecordingError) as refused:
        joined(events, entries)
    assert str(refused.value) == message


def test_a_log_out_of_order_is_refused() -> None:
    """Pitfall 9: two flushes in flight on two queues, and what completed earlier is logged later."""
    second = [event.replace(" 0 + 8", " 8 + 8") for event in WRITE]
    with pytest.raises(RecordingError) as refused:
        joined([*WRITE, *second], [NewEntry(NONE, 8, B), NewEntry(NONE, 0, A)])
    assert text_with(str(refused.value), 1, 0) == snapshot(
        "log entry 1 at byte 5120 (0 + 8, no flags) completed before log entry 0 at byte 512 (8 + 8, no flags) was submitted, but is logged after it"
    )


@UNHURRIED
@given(st.integers(1, 5), st.data())
def test_a_log_is_refused_just_where_of_a_kind_one_was_over_before_another_was_submitted(
    count: int, data: st.DataObject
) -> None:
    """Whatever was in flight together may be logged in any order."""
    numbers = list(range(count))
    steps = data.draw(st.permutations([*numbers, *numbers]))
    fua = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    events: list[str] = []
    begun: dict[int, int] = {}
    over: dict[int, int] = {}
    for time, number in enumerate(steps):
        bio = f"W{'F' * fua[number]} {8 * number} + 8"
        events += [f"irq-9 C {bio}"] if number in begun else [f"a-2 Q {bio}", f"a-2 S {bio}"]
        (over if number in begun else begun)[number] = time
    order = data.draw(st.permutations(numbers))
    entries = [NewEntry(EntryFlags.FUA if fua[number] else NONE, 8 * number, A) for number in order]
    misplaced = any(
        fua[one] == fua[other] and over[other] < begun[one]
        for place, one in enumerate(order)
        for other in order[place + 1 :]
    )
    with pytest.raises(RecordingError, match="but is logged after it") if misplaced else nullcontext():
        joined(events, entries)


def test_a_failed_write_is_refused() -> None:
    text = timeline_text("bob-1 M start", *WRITE, "bob-1 M end").replace("[0]", "[-28]")
    file = io.BytesIO()
    write_log(file, [NewEntry(NONE, 0, A)])
    with pytest.raises(RecordingError) as refused:
        join([DiskLog(LogReader(file), DEVICE, 8)], parse_timeline(text))
    assert text_with(str(refused.value), "-28") == snapshot("timeline line 4: bio W 0 + 8 of irq failed with error -28")


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (["bob-1 M end"], snapshot("the timeline has 0 marks 'bob: start' instead of one")),
        (["bob-1 M start"], snapshot("the timeline has 0 marks 'bob: end' instead of one")),
        (
            ["bob-1 M start", "bob-1 M start", "bob-1 M end"],
            snapshot("the timeline has 2 marks 'bob: start' instead of one"),
        ),
        (["bob-1 M end", "bob-1 M start"], snapshot("the mark 'end' (timeline line 1) comes before 'start' (line 2)")),
    ],
)
def test_marks_bound_the_window(events: list[str], message: str) -> None:
    with pytest.raises(RecordingError) as refused:
        joined(events, [], marks=False)
    assert str(refused.value) == message


def test_marks_of_operations() -> None:
    trace = joined(["bob-1 M op 0 begin", "bob-1 M op 0 end"], [])
    assert [(mark.text, mark.at.time) for mark in trace.marks] == [
        ("start", 1),
        ("op 0 begin", 2),
        ("op 0 end", 3),
        ("end", 4),
    ]


# A kernel that does not trace the completion of chained bios

CHAINED = ["x-5 Q W 64 + 8", "x-5 S W 64 + 8"]
"""Queued and sent; it completes, but nobody says so."""
OLD = "bob-1 M kernel 5.10.0-46-amd64"
D = b"D" * 4096


def flushed(number: int) -> list[str]:
    """A flush, by a task of its own."""
    return [f"f-{number} Q FWS 0 + 0", f"f-{number} S FWS 0 + 0", "irq-9 C FWS 0 + 0"]


@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_a_chained_write_is_durable_with_the_flush_that_took_it(epoch: int) -> None:
    """The log says which flush that was: it is between the flushes there."""
    entries = [NewEntry(EntryFlags.FLUSH), NewEntry(EntryFlags.FLUSH)]
    entries.insert(epoch, NewEntry(NONE, 64, D))
    trace = joined([OLD, *CHAINED, *flushed(7), *flushed(8)], entries)
    [write] = trace.writes
    assert (write.data, write.submitted.time) == (D, 3)
    first, second = (flush.submitted.time for flush in trace.flushes)
    taken = [write.completed.time <= first, write.completed.time <= second]
    assert taken == [epoch == 0, epoch <= 1]
    assert [mark.text for mark in trace.marks] == ["start", "end"]


def test_a_chained_write_was_over_after_what_is_logged_before_it() -> None:
    trace = joined([OLD, *CHAINED, *WRITE], [NewEntry(NONE, 0, A), NewEntry(NONE, 64, D)])
    times = {write.data: write.completed.time for write in trace.writes}
    assert times[D] >= times[A]


@UNHURRIED
@given(st.integers(0), st.integers(0, 120))
def test_a_chained_write_is_durable_with_each_flush_that_came_after_it(seed: int, steps: int) -> None:
    """Neither later, which would invent crash states, nor with a flush that the log has before it."""
    simulator = Simulator(seed, chained=True)
    simulator.mark("kernel 5.10.0-46-amd64")
    simulator.run(steps)
    trace = join([DiskLog(simulator.log(), DEVICE, 1 << 20)], simulator.timeline())
    truth = {data: (submitted, done) for _, data, _, _, submitted, done, _ in simulator.writes}
    logged = [b"" if EntryFlags.FLUSH in entry.flags else entry.data for entry in simulator.logged]
    flushes = [place for place, entry in enumerate(simulator.logged) if EntryFlags.FLUSH in entry.flags]
    assert {write.data for write in trace.writes} == truth.keys()
    for write in trace.writes:
        submitted, done = truth[write.data]
        assert write.submitted.time == submitted
        for flush in trace.flushes:
            assert done > flush.submitted.time or write.completed.time <= flush.submitted.time
        if not write.fua:
            for place, began in zip(flushes, simulator.flushes_logged, strict=True):
                assert place > logged.index(write.data) or write.completed.time > began


@pytest.mark.parametrize(
    ("events", "entries", "said"),
    [
        (
            ["bob-1 M kernel 6.1.0-56-amd64", *CHAINED],
            [NewEntry(NONE, 64, D)],
            snapshot("timeline line 3: bio W 64 + 8 of x never completed; neither did 0 more"),
        ),
        (
            CHAINED,
            [NewEntry(NONE, 64, D)],
            snapshot("timeline line 2: bio W 64 + 8 of x never completed; neither did 0 more"),
        ),
        ([OLD, *CHAINED], [], snapshot("the write 64 + 8 of x, sent at timeline line 4, never completed")),
        (
            [OLD, *CHAINED, *CHAINED],
            [NewEntry(NONE, 64, D)] * 2,
            snapshot("timeline line 3: bio W 64 + 8 of x never completed; neither did 1 more"),
        ),
        (
            [OLD, *CHAINED[:1]],
            [NewEntry(NONE, 64, D)],
            snapshot("timeline line 3: bio W 64 + 8 of x never completed; neither did 0 more"),
        ),
        (
            [OLD, "x-5 Q WFS 64 + 8", "x-5 S WFS 64 + 8"],
            [NewEntry(EntryFlags.FUA, 64, D)],
            snapshot("timeline line 3: bio WFS 64 + 8 of x never completed; neither did 0 more"),
        ),
    ],
)
def test_what_may_not_have_completed_is_refused(events: list[str], entries: list[NewEntry], said: str) -> None:
    with pytest.raises(RecordingError) as refused:
        joined(events, entries)
    assert str(refused.value) == said
