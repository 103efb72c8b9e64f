"""Base images: asking for one sector says what the whole image says there, and a recording is checked by sectors."""

from __future__ import annotations

import json
import lzma
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

import samples_of_runs as samples
from bob.cli.main import cli
from bob.crash.device import DeviceModel
from bob.errors import Exit, MalformedError, RecordingError
from bob.trace import differences
from bob.trace.base import Base
from bob.trace.check import checked, disagreeing
from bob.trace.differences import BLANK, RUN
from bob.trace.log_format import EntryFlags
from bob.trace.log_writer import NewEntry, write_log
from bob.trace.model import SECTOR_BYTES
from crash.traces import Case, cases, replay_all
from mediums import image_of, lay
from wording import text_with

UNWRITTEN = 1 << 31
LENGTH = 40 * SECTOR_BYTES


@st.composite
def packed(draw: st.DrawFn) -> bytes:
    """Runs apart from each other, some of them blank."""
    edges = sorted(draw(st.sets(st.integers(0, 39), max_size=12)))
    pieces = []
    for number, (first, stop) in enumerate(zip(edges[::2], edges[1::2], strict=False)):
        blank = draw(st.booleans())
        pieces.append(struct.pack(">QI", first, stop - first | UNWRITTEN * blank))
        pieces += [] if blank else [bytes([65 + number]) * ((stop - first) * SECTOR_BYTES)]
    return zlib.compress(b"".join(pieces))


@given(packed())
def test_a_sector_is_what_the_image_says(difference: bytes) -> None:
    base = Base("b", LENGTH, difference, "", "")
    image = image_of(base)
    assert len(image) == LENGTH
    assert image == b"".join(base.sector(number) for number in range(LENGTH // SECTOR_BYTES))


@given(packed(), packed())
def test_a_digest_is_of_what_is_written_where(one: bytes, other: bytes) -> None:
    """However it is divided: ``overlaid`` makes a run of each sector."""
    divided = differences.overlaid(one, differences.runs(one))
    assert differences.digest(divided) == differences.digest(one)
    alike = differences.by_sector(differences.runs(one)) == differences.by_sector(differences.runs(other))
    assert (differences.digest(one) == differences.digest(other)) == alike


@given(packed())
def test_an_image_is_written_with_holes(difference: bytes) -> None:
    base = Base("b", LENGTH, difference, "", "")
    with TemporaryFile() as file:
        base.write(file)
        file.seek(0)
        assert file.read() == image_of(base)


def test_zeros_take_no_room(tmp_path: Path) -> None:
    blank = Base(
        "b", 1 << 24, zlib.compress(struct.pack(">QI", 8, ((1 << 24) // SECTOR_BYTES - 8) | UNWRITTEN)), "", ""
    )
    with (tmp_path / "image").open("wb") as file:
        blank.write(file)
    found = (tmp_path / "image").stat()
    assert found.st_size == 1 << 24
    assert found.st_blocks * SECTOR_BYTES < 1 << 20


@given(cases([DeviceModel()]), packed(), packed())
def test_what_the_log_does_not_explain_is_found(case: Case, difference: bytes, final: bytes) -> None:
    base = Base("b", max(LENGTH, len(case.base)), difference, "", "")
    replayed, device = bytearray(image_of(base)), bytearray(image_of(base))
    replay_all(case.trace, replayed)
    lay(final, device)
    wrong = [
        number
        for number in range(base.length // SECTOR_BYTES)
        if replayed[number * SECTOR_BYTES :][:SECTOR_BYTES] != device[number * SECTOR_BYTES :][:SECTOR_BYTES]
    ]
    assert disagreeing(case.trace, base, final) == wrong


@pytest.mark.parametrize("count", [0, 2, 3])
def test_a_recording_of_another_number_of_disks_is_refused(count: int) -> None:
    recording = replace(samples.RECORDING, disks=samples.RECORDING.disks * count, timeline="")
    with pytest.raises(RecordingError) as refused:
        checked(recording, samples.BASE)
    assert str(refused.value).replace(str(count), "N") == snapshot("a recording of N disks is not of a base of 1")


# Differences laid on each other give what they give one after the other

SECTORS = 40
content = st.integers(1, 255)


@st.composite
def some_runs(draw: st.DrawFn) -> list[tuple[int, bytes]]:
    """Runs that may cover each other, each sector full of one byte."""
    runs = []
    for first in draw(st.lists(st.integers(0, SECTORS - 1), max_size=6)):
        bytes_ = draw(st.lists(content, min_size=1, max_size=SECTORS - first))
        runs.append((first, b"".join(bytes([one]) * SECTOR_BYTES for one in bytes_)))
    return runs


@st.composite
def a_difference(draw: st.DrawFn) -> bytes:
    """Runs in order, none on another, some of them blank."""
    edges = sorted(draw(st.sets(st.integers(0, SECTORS), max_size=10)))
    packed = b""
    for start, stop in zip(edges[::2], edges[1::2], strict=False):
        if draw(st.booleans()):
            packed += RUN.pack(start, (stop - start) | BLANK)
        else:
            packed += RUN.pack(start, stop - start) + b"".join(
                bytes([draw(content)]) * SECTOR_BYTES for _ in range(start, stop)
            )
    return zlib.compress(packed)


@given(a_difference(), some_runs())
def test_it_is_as_if_both_were_applied(packed: bytes, over: list[tuple[int, bytes]]) -> None:
    one = Base("one", SECTORS * SECTOR_BYTES, differences.overlaid(packed, over), "", "")
    image = bytearray(image_of(Base("other", SECTORS * SECTOR_BYTES, packed, "", "")))
    for first, data in over:
        image[first * SECTOR_BYTES : first * SECTOR_BYTES + len(data)] = data
    assert image_of(one) == bytes(image)
    assert b"".join(map(one.sector, range(SECTORS))) == bytes(image)


# bob trace show and bob trace verify

ENTRIES = [
    NewEntry(EntryFlags.FUA | EntryFlags.METADATA, 2, b"superblock".ljust(1024, b"\0")),
    NewEntry(EntryFlags.MARK, mark="before"),
    NewEntry(EntryFlags.FLUSH),
    NewEntry(EntryFlags.DISCARD, 100, nr_sectors=8),
    NewEntry(EntryFlags(0), 7, b"\xff" * 512),
]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log"
    with path.open("wb") as file:
        write_log(file, ENTRIES)
    return path


def bob(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["trace", *map(str, arguments)])


def test_show(log: Path) -> None:
    assert bob("show", log).output.splitlines() == snapshot(
        [
            "5 entries, sectors of 512 bytes",
            "   entry          byte      sector  sectors  what",
            "       0           512           2        2  write fua metadata",
            "       1          2048           0        0  'before'",
            "       2          2560           0        0  flush",
            "       3          3072         100        8  discard",
            "       4          3584           7        1  write",
        ]
    )


def test_show_some_with_data(log: Path) -> None:
    lines = bob("show", "--from", 4, "--limit", 1, "--data", log).output.splitlines()
    assert len(lines) == 3
    assert lines[2] == snapshot(
        "       4          3584           7        1  write             ffffffff ffffffff ffffffff ffffffff |................|"
    )
    first = bob("show", "--limit", 1, "--data", log).output.splitlines()[2]
    assert first.endswith("73757065 72626c6f 636b0000 00000000 |superblock......|")


def test_show_json(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert bob("show", "--data", "--json", out, log).output == ""
    document = json.loads(out.read_text())
    assert (document["schema"], document["nr_entries"], document["sectorsize"]) == ("bob.trace.show/1", 5, 512)
    assert [entry["flags"] for entry in document["entries"]] == [
        ["fua", "metadata"],
        ["mark"],
        ["flush"],
        ["discard"],
        [],
    ]
    assert document["entries"][4]["data"] == "ff" * 16
    assert json.loads(bob("show", "--from", 9, "--json", "-", log).output)["entries"] == []


def test_verify(log: Path) -> None:
    counts = dict(line.rsplit(maxsplit=1) for line in bob("verify", log).output.splitlines())
    expected = {"sectorsize": 512, "entries": 5, "writes": 2, "fua": 1, "metadata": 1, "flushes": 1, "discards": 1}
    expected |= {"marks": 1, "bytes": 1536, "beyond count": 0}
    assert counts == {name: str(count) for name, count in expected.items()}
    document = json.loads(bob("verify", "--json", "-", log).output)
    assert document == {"schema": "bob.trace.verify/1"} | {k.replace(" ", "_"): v for k, v in expected.items()}


def test_verify_counts_what_a_dead_guest_left(log: Path) -> None:
    raw = bytearray(log.read_bytes()) + bytes(4096)
    raw[16] = 2
    log.write_bytes(raw)
    document = json.loads(bob("verify", "--json", "-", log).output)
    assert (document["entries"], document["beyond_count"]) == (5, 3)
    assert len(bob("show", log).output.splitlines()) == 4
    assert len(bob("show", "--past-count", log).output.splitlines()) == 7


def test_verify_of_a_malformed_log(log: Path) -> None:
    log.write_bytes(log.read_bytes()[:-1])
    result = bob("verify", log)
    assert isinstance(result.exception, MalformedError)
    assert result.exception.exit_code == Exit.MALFORMED == 8
    assert text_with(result.exception.message, 4, 3584, 512) == snapshot(
        "log entry 4 at byte 3584: its 512 bytes of data are cut off: the log has 4607 bytes"
    )


def test_no_such_log(tmp_path: Path) -> None:
    assert bob("show", tmp_path / "none").exit_code == 2


def test_a_real_log(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(lzma.decompress((Path(__file__).parent / "data/ext4-linux-6.1/log.xz").read_bytes()))
    document = json.loads(bob("verify", "--json", "-", path).output)
    assert (document["writes"], document["flushes"], document["marks"], document["beyond_count"]) == (106, 17, 2, 0)
    assert "'dm-log-writes-end'" in bob("show", path).output.splitlines()[-1]


@pytest.mark.parametrize("verb", ["show", "verify"])
def test_help_has_an_example(verb: str) -> None:
    assert f"Example:\n    bob trace {verb} " in bob(verb, "--help").output
