"""Logs that QEMU's driver blklogwrites writes: what bob takes for legal is legal for the drive, and bad logs are told."""

from __future__ import annotations

import io
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bob.crash.device import DeviceModel
from bob.crash.legal import growth_points
from bob.errors import BobError, MalformedError, RecordingError, UsageError
from bob.trace.check import checked
from bob.trace.log import LogReader
from bob.trace.log_format import EntryFlags
from bob.trace.log_writer import NewEntry, write_log
from bob.trace.model import Trace
from bob.trace.outside import Extent, Outside, extent_in, imported

SECTORS = 6
FLUSH = NewEntry(EntryFlags.FLUSH)


def sector(letter: str) -> bytes:
    return letter.encode() * 512


def write(at: int, letters: str) -> NewEntry:
    return NewEntry(sector=at, data=b"".join(map(sector, letters)))


def discard(at: int, sectors: int) -> NewEntry:
    return NewEntry(EntryFlags.DISCARD, at, nr_sectors=sectors)


def reader(*entries: NewEntry) -> LogReader:
    file = io.BytesIO()
    write_log(file, entries)
    return LogReader(file)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "base.img"
    path.write_bytes(bytes(SECTORS * 512))
    return path


def trace_of(found: Outside) -> Trace:
    return checked(found.recording, found.base)


def states(trace: Trace) -> set[frozenset[int]]:
    """The legal states of whole writes, as the writes that are on the medium."""
    found = set()
    for point in growth_points(trace, DeviceModel()):
        for kept in chain.from_iterable(combinations(point.pending, n) for n in range(len(point.pending) + 1)):
            found.add(frozenset(point.durable) | frozenset(kept))
    return found


def test_whole_writes_between_flushes_are_there_in_any_combination(image: Path) -> None:
    log = reader(write(0, "a"), write(1, "b"), FLUSH, write(2, "c"), FLUSH)
    found = imported(log, image, extent_in(image, 0, None))
    assert states(trace_of(found)) == {frozenset(each) for each in [(), (0,), (1,), (0, 1), (0, 1, 2)]}
    assert (found.entries, found.writes, found.flushes, found.is_checked) == (5, 3, 2, False)


class Drive:
    """A drive as QEMU emulates it: requests are carried out, logged, answered. What its steps are is drawn; ``log`` has
    what the driver logs, and ``legal`` each set of writes that may be on the medium when the power fails, at any step.
    """

    def __init__(self) -> None:
        self.log: list[NewEntry] = []
        self.number: list[int] = []  # of each logged write: its number in order of submission
        self.submitted: list[int] = []
        self.done: set[int] = set()
        self.durable: set[int] = set()
        self.flushing: list[set[int]] = []
        self.legal: set[frozenset[int]] = {frozenset()}

    def step(self, draw: Any) -> None:
        open_ = [number for number in self.submitted if number not in self.done]
        kinds = ["submit", "flush"] + ["complete"] * bool(open_) + ["flushed"] * bool(self.flushing)
        match draw(st.sampled_from(kinds)):
            case "submit" if len(self.submitted) < SECTORS:
                self.submitted.append(len(self.submitted))
            case "complete":
                number = draw(st.sampled_from(open_))
                self.done.add(number)
                self.number.append(number)
                self.log.append(write(number, chr(ord("a") + number)))
            case "flush":
                self.flushing.append(set(self.done))
            case "flushed":
                self.durable |= self.flushing.pop(0)
                self.log.append(FLUSH)
        pending = [number for number in self.submitted if number not in self.durable]
        for kept in chain.from_iterable(combinations(pending, n) for n in range(len(pending) + 1)):
            self.legal.add(frozenset(self.durable) | frozenset(kept))


@given(st.data())
def test_no_illegal_state_counts_as_legal(data: st.DataObject) -> None:
    drive = Drive()
    for _step in range(data.draw(st.integers(0, 24))):
        drive.step(data.draw)
    found = imported(reader(*drive.log), Path("/dev/zero"), Extent(0, SECTORS), needs_flush=False)
    trace = trace_of(found)
    # Writes are numbered in the order of the log there, and in that of submission here.
    named = {frozenset(drive.number[write] for write in state) for state in states(trace)}
    assert named <= drive.legal
    # Nothing is left out but what depends on the times: with each request alone under way, all is found.
    flushed, durable = [], set[int]()
    alone = {frozenset[int]()}
    for entry in drive.log:
        if entry is FLUSH:
            durable.update(flushed)
        else:
            flushed.append(drive.number[len(flushed)])
        pending = [number for number in flushed if number not in durable]
        for kept in chain.from_iterable(combinations(pending, n) for n in range(len(pending) + 1)):
            alone.add(frozenset(durable) | frozenset(kept))
    assert named == alone


def test_the_window_is_between_two_entries(image: Path) -> None:
    log = reader(write(0, "a"), FLUSH, write(1, "b"), write(2, "c"), FLUSH, write(3, "d"))
    part = extent_in(image, 0, None)
    late = states(trace_of(imported(log, image, part, first=2)))
    assert late == {frozenset(each) for each in [(0,), (0, 1), (0, 2), (0, 1, 2), (0, 1, 2, 3)]}
    assert states(trace_of(imported(log, image, part, first=2, stop=3))) == {frozenset((0,)), frozenset((0, 1))}
    with pytest.raises(UsageError, match=r"no entries 4 to 3"):
        imported(log, image, part, first=4, stop=3)


def test_a_partition_is_cut_out(tmp_path: Path) -> None:
    drive = tmp_path / "drive.img"
    drive.write_bytes(b"".join(map(sector, "0123456789")))
    part = extent_in(drive, 2 * 512, 4 * 512)
    log = reader(write(0, "x"), write(1, "stuv"), FLUSH, write(5, "wxyz"), discard(8, 2), FLUSH)
    found = imported(log, drive, part)
    trace = trace_of(found)
    assert [(one.sector, one.data[:1], one.sectors) for one in trace.writes] == [(0, b"t", 3), (3, b"w", 1)]
    assert (found.writes, found.flushes, found.discards, len(trace.flushes)) == (2, 2, 0, 2)
    assert [found.base.sector(number)[:1] for number in (0, 3, 4, 2047)] == [b"2", b"5", b"\0", b"\0"]
    assert found.base.length == 1024 * 1024


def test_the_drive_after_the_session_must_be_what_the_log_gives(tmp_path: Path, image: Path) -> None:
    final, part = tmp_path / "final.img", extent_in(image, 0, None)
    entries = [write(0, "ab"), FLUSH, write(1, "c"), discard(0, 1), FLUSH]
    final.write_bytes(bytes(512) + sector("c") + bytes(4 * 512))  # the discarded sector has zeros now
    found = imported(reader(*entries), image, part, final=final)
    assert found.is_checked
    assert found.discards == 1
    trace_of(found)

    with pytest.raises(RecordingError, match="1 sectors differ, the first is 1"):
        trace_of(imported(reader(entries[0], FLUSH, discard(0, 1), FLUSH), image, part, final=final))
    final.write_bytes(bytes(512))
    with pytest.raises(UsageError, match="has 512 bytes, and"):
        imported(reader(*entries), image, part, final=final)


@pytest.mark.parametrize(
    ("entries", "error", "words"),
    [
        ([write(0, "a")], RecordingError, "1 writes, but no flush"),
        ([NewEntry(EntryFlags.FUA, 0, sector("a"))], MalformedError, "the flag FUA"),
        ([NewEntry(EntryFlags.MARK, mark="start")], MalformedError, "the flag MARK"),
        ([NewEntry(), FLUSH], MalformedError, "log entry 0 at byte 512 is empty"),
    ],
)
def test_another_log_is_refused(image: Path, entries: list[NewEntry], error: type[BobError], words: str) -> None:
    with pytest.raises(error, match=words) as raised:
        imported(reader(*entries), image, extent_in(image, 0, None))
    assert raised.value.hint


def test_an_image_that_is_not_a_raw_drive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "disk"
    path.write_bytes(b"QFI\xfb" + bytes(1020))
    with pytest.raises(UsageError, match="qcow2 image"):
        extent_in(path, 0, None)
    path.write_bytes(bytes(1000))
    with pytest.raises(UsageError, match="not whole sectors"):
        extent_in(path, 0, None)
    path.write_bytes(bytes(1024))
    for offset, size in ((1024, None), (512, 1024), (512, 100)):
        with pytest.raises(UsageError):
            extent_in(path, offset, size)
