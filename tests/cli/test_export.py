"""``bob witness export``: the files that it writes, and what it says of them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import samples_of_runs as samples
from bob.catalogue.probe_files import load
from bob.trace.replay_log import steps
from report.witnesses import documents
from strict_replay import replay

from .stand_in import Bob, Work


@pytest.fixture
def crash(work: Work) -> SimpleNamespace:
    """The crash of what the stand-in exports."""
    Path("w.json").touch()
    crash = SimpleNamespace(entry=5, lost=(4,), torn=(), other=0, prefix=4)
    witness = SimpleNamespace(base=samples.BASE, configuration=samples.CONFIGURATION)
    work.exported = SimpleNamespace(witness=witness, steps=steps(samples.TRACE, 16), crash=crash)
    return crash


def test_the_files_and_how_to_replay_them(bob: Bob, work: Work, crash: SimpleNamespace) -> None:
    ended = bob("witness", "export", "w.json", "--dm-log", "a log", "--base", "base.img", "--quiet")
    ((path, more),) = work.asked
    assert path == Path("w.json")
    wanted: dict[str, Any] = {"image": None, "any_kernel": False, "connect": None, "progress": None}
    assert {**more, "progress": None} == wanted
    assert (ended.code, ended.err) == (0, "")
    device = bytearray(Path("base.img").read_bytes())
    assert device == samples.BASE.image()
    assert replay(Path("a log").read_bytes(), device) == ["start", "crash", "end"]
    assert ended.out.splitlines() == [
        "'a log': 9 entries, 4 writes",
        "To replay it with xfstests' src/log-writes/replay-log, and look:",
        "  cp --sparse=always base.img disk.img",
        "  replay-log --log 'a log' --replay disk.img --limit 4",
        "  mount -t ext4 -o loop,data=ordered disk.img /mnt",
        "The crash is entry 5, the mark crash; the last mark before it is start.",
        "Of the writes before it, the crash state lacks 1 entry: 4",
        "So the first 4 entries make the crash state.",
        "The image of the witness's own crash state: bob replay --keep DIR w.json",
    ]
    assert sorted(path.name for path in Path().iterdir()) == ["a log", "base.img", "w.json"]


def test_without_the_base(bob: Bob, crash: SimpleNamespace) -> None:
    ended = bob("witness", "export", "w.json", "--dm-log", "log", "--quiet")
    lines = ended.out.splitlines()
    assert "A replay starts from the disk as it was before the first entry: add --base FILE to have its image." in lines
    assert "  cp --sparse=always BASE disk.img" in lines


def test_a_crash_that_no_stretch_makes(bob: Bob, crash: SimpleNamespace) -> None:
    vars(crash).update(lost=(3,), torn=(4,), other=2, prefix=None)
    lines = bob("witness", "export", "w.json", "--dm-log", "log", "--quiet").out.splitlines()
    assert "  replay-log --log log --replay disk.img --end-mark crash" in lines
    assert lines[-5:-1] == [
        "Of the writes before it, the crash state lacks 1 entry: 3",
        "Of the writes before it, the crash state has only a part of 1 entry: 4",
        "So no stretch of the log makes the crash state, only the disk with all that it had been sent by then.",
        "Sectors of it that are not as in the witness, for their time stamps: 2",
    ]


def test_a_recording_that_came_out_otherwise(bob: Bob, work: Work, crash: SimpleNamespace) -> None:
    work.exported.crash = None
    ended = bob("witness", "export", "w.json", "--dm-log", "log", "--quiet")
    assert ended.code == 0
    assert "  replay-log --log log --replay disk.img\n" in ended.out
    assert "The crash of the witness has no mark: the recording came out otherwise, every time.\n" in ended.out


def test_a_full_disk_leaves_no_log(bob: Bob, crash: SimpleNamespace) -> None:
    Path("log").symlink_to("/dev/full")
    ended = bob("witness", "export", "w.json", "--dm-log", "log", "--quiet")
    assert ended.code == 2
    assert ended.err.splitlines() == [
        "bob: cannot write log: No space left on device",
        "hint: name another file with --dm-log",
    ]


@pytest.fixture
def found(bob: Bob) -> dict[str, Any]:
    """A witness in a file, of a crash that may come at any time."""
    document: dict[str, Any] = json.loads(json.dumps(documents()["overwrite-any"]))
    Path("w.json").write_text(json.dumps(document))
    return document


def test_a_probe_file(bob: Bob, work: Work, found: dict[str, Any]) -> None:
    ended = bob("witness", "export", "w.json", "--probe", "a b.toml")
    assert (ended.code, ended.err, work.asked) == (0, "", [])
    assert ended.out.splitlines() == [
        "wrote a b.toml; to ask it again:",
        "  bob probe --fs ext4 --mount-opts data=ordered --completion prompt --probe 'a b.toml'",
    ]
    probe = load(Path("a b.toml"))
    assert (probe.property.name, probe.workloads) == ("found-overwrite-any", (samples.WORKLOAD,))


def test_a_case_for_xfstests(bob: Bob, work: Work, found: dict[str, Any]) -> None:
    refused = bob("witness", "export", "w.json", "--xfstests", "900")
    assert refused.code == 2 and refused.err.startswith("bob: the crash of the witness may come at any time")
    assert not Path("900").exists()
    returned = {"required": [2], "later": None, "returned": 2}
    found["workload"]["at"] = "end"
    found["question"] = returned
    Path("w.json").write_text(json.dumps(found))
    ended = bob("witness", "export", "w.json", "--xfstests", "900")
    assert (ended.code, ended.err, work.asked) == (0, "", [])
    assert ended.out.startswith("wrote 900 and 900.out\n")
    assert ended.out.endswith("nothing is lost that the disk had been sent. dm-flakey makes such a state.\n")
    assert Path("900.out").read_text() == "QA output created by 900\nSilence is golden\n"
    assert Path("900").stat().st_mode & 0o111
    assert Path("900").read_text().startswith("#! /bin/bash\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "bob: say what is to be written"),
        (("--probe", "a.toml", "--base", "b"), "bob: --base goes with --dm-log"),
        (("--probe", "w.json"), "bob: the witness and what is made of it cannot be one file"),
        (("--probe", "9.out", "--xfstests", "9"), "bob: the witness and what is made of it cannot be one file"),
    ],
)
def test_what_cannot_be_written(bob: Bob, work: Work, found: dict[str, Any], words: tuple[str, ...], said: str) -> None:
    ended = bob("witness", "export", "w.json", *words)
    assert ended.code == 2 and ended.err.startswith(said), ended.err
    assert work.asked == [] and [path.name for path in Path().iterdir()] == ["w.json"]
