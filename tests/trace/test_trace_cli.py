"""bob trace show and bob trace verify."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bob.cli.trace import trace
from bob.errors import Exit, MalformedError
from bob.trace.log_format import Flags
from bob.trace.log_writer import NewEntry, write_log

ENTRIES = [
    NewEntry(Flags.FUA | Flags.METADATA, 2, b"superblock".ljust(1024, b"\0")),
    NewEntry(Flags.MARK, mark="before"),
    NewEntry(Flags.FLUSH),
    NewEntry(Flags.DISCARD, 100, nr_sectors=8),
    NewEntry(Flags(0), 7, b"\xff" * 512),
]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log"
    with path.open("wb") as file:
        write_log(file, ENTRIES)
    return path


def bob(*arguments: str | Path) -> Result:
    return CliRunner().invoke(trace, [str(argument) for argument in arguments])


def test_show(log: Path) -> None:
    assert bob("show", log).output.splitlines() == [
        "5 entries, sectors of 512 bytes",
        "   entry          byte      sector  sectors  what",
        "       0           512           2        2  write fua metadata",
        "       1          2048           0        0  'before'",
        "       2          2560           0        0  flush",
        "       3          3072         100        8  discard",
        "       4          3584           7        1  write",
    ]


def test_show_some_with_data(log: Path) -> None:
    lines = bob("show", "--from", 4, "--limit", 1, "--data", log).output.splitlines()
    assert len(lines) == 3
    assert lines[2].endswith("write             ffffffff ffffffff ffffffff ffffffff |................|")
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
    assert result.exception.message.startswith("log entry 4 at byte 3584: its 512 bytes of data are cut off")


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
