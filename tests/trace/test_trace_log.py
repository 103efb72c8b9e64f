"""The log's reader and writer: round trips, every malformation, fuzzing, logs of dead guests, memory."""

from __future__ import annotations

import io
import struct
import time
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.errors import MalformedError, UsageError
from bob.trace.log import LogEntry, LogReader
from bob.trace.log_format import ENTRY, KNOWN_FLAGS, MAGIC, SUPER, EntryFlags, longest_mark
from bob.trace.log_writer import NewEntry, write_log
from wording import text_with

SECTORS = st.integers(0, 2**64 - 1)
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy
PLAIN = st.sampled_from([EntryFlags(0), EntryFlags.FUA, EntryFlags.METADATA, EntryFlags.FUA | EntryFlags.METADATA])


@st.composite
def new_entries(draw: st.DrawFn, sectorsize: int) -> NewEntry:
    match draw(st.sampled_from(["write", "flush", "discard", "mark"])):
        case "write":
            data = draw(st.binary(min_size=1, max_size=16)) * sectorsize
            return NewEntry(draw(PLAIN), draw(SECTORS), data)
        case "flush":
            return NewEntry(EntryFlags.FLUSH | draw(PLAIN), draw(SECTORS))
        case "discard":
            return NewEntry(EntryFlags.DISCARD, draw(SECTORS), nr_sectors=draw(SECTORS))
        case _:
            text = draw(st.text(max_size=longest_mark(512) // 4))
            return NewEntry(EntryFlags.MARK, mark=text)


@st.composite
def logs(draw: st.DrawFn) -> tuple[int, list[NewEntry]]:
    sectorsize = draw(st.sampled_from([512, 1024, 4096]))
    return sectorsize, draw(st.lists(new_entries(sectorsize), max_size=12))


def log_bytes(entries: list[NewEntry], sectorsize: int = 512) -> bytearray:
    file = io.BytesIO()
    assert write_log(file, entries, sectorsize=sectorsize) == len(entries)
    return bytearray(file.getvalue())


def reader(log: bytes | bytearray, *, past_count: bool = False) -> LogReader:
    return LogReader(io.BytesIO(log), past_count=past_count)


def as_new(entry: LogEntry) -> NewEntry:
    nr_sectors = entry.nr_sectors if EntryFlags.DISCARD in entry.flags else 0
    return NewEntry(entry.flags, entry.sector, entry.data(), nr_sectors, entry.mark)


@UNHURRIED
@given(logs())
def test_round_trip(log: tuple[int, list[NewEntry]]) -> None:
    sectorsize, entries = log
    written = reader(log_bytes(entries, sectorsize))
    assert (written.super.nr_entries, written.super.sectorsize) == (len(entries), sectorsize)
    assert [as_new(entry) for entry in written] == entries
    assert [entry.index for entry in written] == list(range(len(entries)))


def test_bytes_are_the_kernels() -> None:
    """Against the layout of struct log_write_super and struct log_write_entry, spelt out."""
    log = log_bytes([NewEntry(EntryFlags.FUA, 7, b"x" * 512), NewEntry(EntryFlags.MARK, mark="here")])
    assert log[:28] == struct.pack("<QQQI", 0x6A736677736872, 1, 2, 512)
    assert log[512:544] == struct.pack("<QQQQ", 7, 1, 2, 0)
    assert log[1024:1536] == b"x" * 512
    assert log[1536:1572] == struct.pack("<QQQQ", 0, 0, 8, 4) + b"here"
    assert len(log) == 2048
    assert not any(log[28:512]) and not any(log[544:1024]) and not any(log[1572:])


def test_units() -> None:
    """A log in sectors of 4096 bytes says so; bob's unit is 512."""
    (entry, discard) = reader(
        log_bytes([NewEntry(sector=3, data=bytes(8192)), NewEntry(EntryFlags.DISCARD, 1, nr_sectors=2)], 4096)
    )
    assert (entry.offset, entry.sector, entry.nr_sectors, entry.data_bytes) == (4096, 3, 2, 8192)
    assert (entry.first, entry.sectors) == (24, 16)
    assert (discard.offset, discard.first, discard.sectors, discard.data_bytes) == (16384, 8, 16, 0)
    assert discard.data() == b""


THREE = [
    NewEntry(EntryFlags.FUA, 0, b"a" * 1024),
    NewEntry(EntryFlags.MARK, mark="one"),
    NewEntry(EntryFlags(0), 8, b"b" * 512),
]
SECOND, THIRD = 2048, 2560  # byte offsets of the mark and of the last write


def entry_at(offset: int, *fields: int) -> tuple[int, bytes]:
    return offset, struct.pack("<QQQQ", *fields)


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (
            (0, b"nonsense"),
            snapshot("not a dm-log-writes log: magic 0x65736e65736e6f6e at byte 0 where 0x6a736677736872 should be"),
        ),
        ((8, b"\x02"), snapshot("dm-log-writes log of version 2 at byte 8: only 1 is known")),
        (
            (24, struct.pack("<I", 0)),
            snapshot("not a dm-log-writes log: sectorsize 0 is not a power of two from 512 to 65536 (byte 24)"),
        ),
        (
            (24, struct.pack("<I", 256)),
            snapshot("not a dm-log-writes log: sectorsize 256 is not a power of two from 512 to 65536 (byte 24)"),
        ),
        (
            (24, struct.pack("<I", 1536)),
            snapshot("not a dm-log-writes log: sectorsize 1536 is not a power of two from 512 to 65536 (byte 24)"),
        ),
        (
            (24, struct.pack("<I", 1 << 31)),
            snapshot(
                "not a dm-log-writes log: sectorsize 2147483648 is not a power of two from 512 to 65536 (byte 24)"
            ),
        ),
        (entry_at(512, 0, 2, 1 << 5, 0), snapshot("log entry 0 at byte 512: unknown flags 0x20")),
        (entry_at(512, 0, 2, 1 << 63, 0), snapshot("log entry 0 at byte 512: unknown flags 0x8000000000000000")),
        (entry_at(512, 0, 2, 2, 1025), snapshot("log entry 0 at byte 512: 1025 bytes of inline data in 2 sectors")),
        (entry_at(SECOND, 0, 0, 8, 480), snapshot("log entry 1 at byte 2048: a mark of 480 bytes, longer than 479")),
        (entry_at(SECOND, 0, 1, 8, 3), snapshot("log entry 1 at byte 2048: a mark with 1 sectors and flags 0x8")),
        (entry_at(SECOND, 0, 0, 12, 3), snapshot("log entry 1 at byte 2048: a mark with 0 sectors and flags 0xc")),
        ((SECOND + 32, b"\xff"), snapshot("log entry 1 at byte 2048: a mark that is not text: b'\\xffne'")),
        (
            entry_at(THIRD, 8, 2, 0, 0),
            snapshot("log entry 2 at byte 2560: its 1024 bytes of data are cut off: the log has 3584 bytes"),
        ),
        (
            entry_at(THIRD, 8, 2**64 - 1, 0, 0),
            snapshot(
                "log entry 2 at byte 2560: its 9444732965739290426880 bytes of data are cut off: the log has 3584 bytes"
            ),
        ),
        ((16, b"\x04"), snapshot("log entry 3 at byte 3584: its header is cut off: the log has 3584 bytes")),
    ],
)
def test_malformed(patch: tuple[int, bytes], message: str) -> None:
    log = log_bytes(THREE)
    log[patch[0] : patch[0] + len(patch[1])] = patch[1]
    with pytest.raises(MalformedError) as refused:
        list(reader(log))
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (0, "0 bytes are too few for a super"),
        (27, "27 bytes are too few for a super"),
        (512, "log entry 0 at byte 512: its header is cut off"),
        (1000, "log entry 0 at byte 512: its header is cut off"),
        (1024, "log entry 0 at byte 512: its 1024 bytes of data are cut off"),
        (2047, "log entry 0 at byte 512"),
        (2048, "log entry 1 at byte 2048: its header"),
        (3583, "log entry 2 at byte 2560: its 512 bytes of data"),
    ],
)
def test_truncated(size: int, message: str) -> None:
    with pytest.raises(MalformedError, match=message):
        list(reader(log_bytes(THREE)[:size]))


def test_data_that_went_away() -> None:
    file = io.BytesIO(log_bytes(THREE))
    (entry, *_) = LogReader(file)
    file.truncate(1200)
    with pytest.raises(MalformedError) as refused:
        entry.data()
    assert text_with(str(refused.value), 0, 512, 176, 1024) == snapshot(
        "log entry 0 at byte 512: its data ends after 176 of 1024 bytes"
    )


def walk(log: bytes, *, past_count: bool) -> None:
    """Reads all there is; anything but MalformedError is a failure."""
    try:
        for entry in reader(log, past_count=past_count):
            assert len(entry.data()) == entry.data_bytes <= len(log)
            assert entry.offset + entry.sectorsize + entry.data_bytes <= len(log)
    except MalformedError as error:
        assert "byte" in error.message


@UNHURRIED
@given(st.binary(max_size=2000), st.booleans())
@example(struct.pack("<QQQI", MAGIC, 1, 2**64 - 1, 512) + bytes(1 << 12), True)
def test_fuzz_random(log: bytes, past_count: bool) -> None:
    walk(log, past_count=past_count)


@UNHURRIED
@given(logs(), st.data(), st.booleans())
def test_fuzz_mutations(log: tuple[int, list[NewEntry]], data: st.DataObject, past_count: bool) -> None:
    found = log_bytes(log[1], log[0])
    for _ in range(data.draw(st.integers(1, 4))):
        patch = data.draw(st.binary(min_size=1, max_size=8) | st.just(b"\xff" * 8))
        headers = [0, *(entry.offset for entry in reader(log_bytes(log[1], log[0])))]
        at = data.draw(st.sampled_from(headers)) + data.draw(st.integers(0, 40))
        found[at : at + len(patch)] = patch
    walk(bytes(found[: data.draw(st.integers(0, len(found)) | st.just(len(found)))]), past_count=past_count)


@UNHURRIED
@given(logs(), st.data(), st.integers(0, 3))
def test_past_the_count(log: tuple[int, list[NewEntry]], data: st.DataObject, spare: int) -> None:
    """A dead guest's log counts fewer entries than there are; behind the last the device is zero."""
    sectorsize, entries = log
    found = log_bytes(entries, sectorsize) + bytes(spare * sectorsize)
    counted = data.draw(st.integers(0, len(entries)))
    found[16:24] = struct.pack("<Q", counted)
    assert [as_new(entry) for entry in reader(found)] == entries[:counted]
    plausible = entries[:counted] + entries[counted:][: first_empty(entries[counted:])]
    assert [as_new(entry) for entry in reader(found, past_count=True)] == plausible


def first_empty(entries: list[NewEntry]) -> int:
    """Discards of nothing are not plausible: the target does not log them."""
    empty = [n for n, entry in enumerate(entries) if entry.flags == EntryFlags.DISCARD and not entry.nr_sectors]
    return empty[0] if empty else len(entries)


@pytest.mark.parametrize(
    "behind",
    [
        bytes(512),
        b"garbage " * 64,
        struct.pack("<QQQQ", 0, 1, 0, 0).ljust(512, b"\0"),  # its data would be beyond the end
        struct.pack("<QQQQ", 0, 0, 1, 0).ljust(512, b"x"),  # not padded: old data
        struct.pack("<QQQQ", 0, 0, 16, 0).ljust(512, b"\0"),  # neither sectors, nor flush, nor mark
        bytes(100),
    ],
)
def test_what_is_not_plausible_ends_the_log(behind: bytes) -> None:
    assert len(list(reader(log_bytes(THREE) + behind, past_count=True))) == 3


def test_iterates_again_and_data_out_of_order() -> None:
    log = reader(log_bytes(THREE))
    assert list(log) == list(log)
    entries = list(log)
    assert (entries[2].data(), entries[0].data()) == (b"b" * 512, b"a" * 1024)


def test_a_path_is_opened_and_closed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(log_bytes(THREE))
    with closing(LogReader(path)) as log:
        (first, *_) = log
        assert first.data() == b"a" * 1024
    with pytest.raises(ValueError, match="closed"):
        first.data()
    with path.open("rb") as file, closing(LogReader(file)):
        pass
    with pytest.raises(OSError, match="No such file"):
        LogReader(tmp_path / "none")


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    """Half a gigabyte, sparse: 20,000 small entries and a hundred of 4 MiB."""
    path = tmp_path / "log"
    sizes = [8] * 20_000 + [8192] * 100
    with path.open("wb") as file:
        offset = 512
        for sectors in sizes:
            file.seek(offset)
            file.write(ENTRY.build({"sector": 0, "nr_sectors": sectors, "flags": 0, "data_len": 0}))
            offset += 512 + sectors * 512
        file.truncate(offset)
        file.seek(0)
        file.write(SUPER.build({"magic": MAGIC, "version": 1, "nr_entries": len(sizes), "sectorsize": 512}))
    assert offset > 500_000_000
    with closing(LogReader(path)) as log:
        tracemalloc.start()
        started = time.perf_counter()
        assert sum(entry.data_bytes for entry in log) == sum(sizes) * 512
        elapsed = time.perf_counter() - started
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 100_000
    assert elapsed < 10


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (NewEntry(data=b"x"), snapshot("log entry 0: 1 bytes of data are not whole sectors of 512")),
        (NewEntry(EntryFlags.DISCARD, data=bytes(512)), snapshot("log entry 0: a mark or a discard cannot have data")),
        (NewEntry(EntryFlags.MARK, data=bytes(512)), snapshot("log entry 0: a mark or a discard cannot have data")),
        (
            NewEntry(EntryFlags.MARK | EntryFlags.FUA, mark="x"),
            snapshot("log entry 0: a mark cannot have other flags or sectors"),
        ),
        (NewEntry(mark="x"), snapshot("log entry 0: it has a text, but lacks the flag MARK")),
        (
            NewEntry(nr_sectors=1),
            snapshot("log entry 0: only a discard can set nr_sectors; the data of a write gives its length"),
        ),
        (NewEntry(EntryFlags.MARK, mark="x" * 480), snapshot("log entry 0: a mark of 480 bytes, longer than 479")),
    ],
)
def test_what_cannot_be_written(entry: NewEntry, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        log_bytes([entry])
    assert str(refused.value) == message
    with pytest.raises(UsageError) as refused:
        log_bytes([], 100)
    assert text_with(str(refused.value), 100) == snapshot("sectorsize 100 is not a power of two from 512 to 65536")


def test_known_flags() -> None:
    assert KNOWN_FLAGS == 0b11111
