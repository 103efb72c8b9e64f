"""The log that is exported: whole it makes the device, and up to a mark it has what the disk had been sent by then."""

from __future__ import annotations

import io

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bob.trace.join import DiskLog, join
from bob.trace.log import LogReader
from bob.trace.log_format import EntryFlags
from bob.trace.log_writer import write_log
from bob.trace.model import DeviceWrite, Flush, Mark, Moment, Trace
from bob.trace.replay_log import ReplayStep, steps
from strict_replay import replay

from .dm_simulator import DEVICE, Simulator

UNHURRIED = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SECTORS = 400


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Joined recordings of random histories: flushes in flight, FUA writes that overtake, sectors written often."""
    simulator = Simulator(
        draw(st.integers(0)), twins=draw(st.booleans()), sectorsize=draw(st.sampled_from([512, 4096]))
    )
    simulator.run(draw(st.integers(0, 120)))
    return join([DiskLog(simulator.log(), DEVICE, SECTORS)], simulator.timeline())


def written(log: tuple[ReplayStep, ...]) -> bytes:
    file = io.BytesIO()
    assert write_log(file, (step.entry for step in log)) == len(log)
    return file.getvalue()


def landed(trace: Trace, until: int) -> bytearray:
    """The device when all that was submitted up to the time ``until`` has landed, in the order of submission."""
    image = bytearray(b"?" * SECTORS * 512)
    for write in trace.writes:
        if write.submitted.time <= until:
            image[write.sector * 512 : write.sector * 512 + len(write.data)] = write.data
    return image


@UNHURRIED
@given(traces())
def test_the_whole_log_makes_the_device(trace: Trace) -> None:
    log = written(steps(trace))
    by_bob, by_rule = bytearray(b"?" * SECTORS * 512), bytearray(b"?" * SECTORS * 512)
    for entry in LogReader(io.BytesIO(log)):
        by_bob[entry.first * 512 : entry.first * 512 + entry.data_bytes] = entry.data()
    assert replay(log, by_rule) == ["start", "end"]
    assert by_bob == by_rule == landed(trace, 1 << 62)


@UNHURRIED
@given(traces())
def test_nothing_is_lost_and_nothing_is_added(trace: Trace) -> None:
    log = [step for step in steps(trace) if step.write is not None]
    assert [step.write for step in log] == [write.index for write in trace.writes]
    for step, write in zip(log, trace.writes, strict=True):
        assert (step.entry.sector, step.entry.data) == (write.sector, write.data)
        assert (EntryFlags.FUA in step.entry.flags, EntryFlags.METADATA in step.entry.flags) == (write.fua, write.meta)
    flushes = [step for step in steps(trace) if step.entry.flags == EntryFlags.FLUSH]
    assert len(flushes) == len(trace.flushes)


@UNHURRIED
@given(traces(), st.data())
def test_a_mark_has_before_it_what_was_sent_by_then(trace: Trace, data: st.DataObject) -> None:
    crash = data.draw(st.integers(trace.start.time, trace.end.time))
    log = written(steps(trace, crash))
    for mark, time in (("start", trace.start.time), ("crash", crash), ("end", trace.end.time)):
        image = bytearray(b"?" * SECTORS * 512)
        assert replay(log, image, end_mark=mark)[-1] == mark
        assert image == landed(trace, time)


@UNHURRIED
@given(traces())
def test_a_flush_has_before_it_what_it_made_durable(trace: Trace) -> None:
    before: set[int | None] = set()
    flushes = iter(sorted(trace.flushes, key=lambda flush: flush.completed.time))
    for step in steps(trace):
        before.add(step.write)
        if step.entry.flags == EntryFlags.FLUSH:
            sent = next(flushes).submitted.time
            assert before >= {write.index for write in trace.writes if write.completed.time <= sent}


def at(time: int) -> Moment:
    return Moment(time, float(time))


def test_a_flush_comes_before_the_data_that_waited_for_it() -> None:
    """PREFLUSH and FUA: one bio, whose data is submitted the moment its flush is over."""
    trace = Trace(
        writes=(
            DeviceWrite(0, 8, b"a" * 512, at(2), at(3)),
            DeviceWrite(1, 0, b"c" * 512, at(6), at(8), fua=True, meta=True),
        ),
        flushes=(Flush(at(4), at(6)),),
        marks=(Mark(at(1), "start"), Mark(at(9), "end")),
        start=at(1),
        end=at(9),
        device_sectors=(SECTORS,),
    )
    log = steps(trace, crash=6)
    assert [step.entry.mark or step.entry.flags for step in log] == [
        "start",
        EntryFlags(0),
        EntryFlags.FLUSH,
        EntryFlags.FUA | EntryFlags.METADATA,
        "crash",
        "end",
    ]


def test_no_two_marks_are_alike() -> None:
    """replay-log stops at the first of a name."""
    texts = ["start", "op 1 begin", "op 1 end", "op 0 begin", "op 0 end", "op 0 begin", "op 0 end", "end"]
    marks = tuple(Mark(at(time), text) for time, text in enumerate(texts))
    trace = Trace((), (), marks, marks[0].at, marks[-1].at, (SECTORS,))
    assert replay(written(steps(trace)), bytearray()) == [
        "start",
        "op-1-begin",
        "op-1-end",
        "finish-1-begin",
        "finish-1-end",
        "finish-2-begin",
        "finish-2-end",
        "end",
    ]


@pytest.mark.parametrize(
    "damage",
    [
        lambda log: log[:-1],
        lambda log: log[:-512],
        lambda log: log + bytes(512),
        lambda log: b"\0" + log[1:],
        lambda log: log[:8] + b"\2" + log[9:],
        lambda log: log[:16] + b"\1" + log[17:],
        lambda log: log[:528] + b"\0" + log[529:],
        lambda log: log[:544] + b"x" + log[545:],
    ],
)  # fmt: skip
def test_the_strict_replay_is_strict(damage: object) -> None:
    """What the tests here rest on refuses a log that is cut off, too long, of another kind, miscounted or unpadded."""
    trace = Trace((DeviceWrite(0, 1, b"a" * 512, at(2), at(3)),), (Flush(at(0), at(1)),), (), at(0), at(4), (SECTORS,))
    log = written(steps(trace))
    replay(log, bytearray(SECTORS * 512))
    assert callable(damage)
    with pytest.raises(AssertionError):
        replay(damage(log), bytearray(SECTORS * 512))
