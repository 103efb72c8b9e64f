"""The commands that show what is there: show, judge, replay."""

from __future__ import annotations

import json
import lzma
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from inline_snapshot import snapshot

import samples_of_runs as samples
from bob.answer.document import from_json, to_json
from bob.catalogue.probe_files import load
from bob.catalogue.request import Host, ProbeRequest
from bob.store.run_kind import no_probe
from bob.subject import load_set
from bob.trace.replay_log import steps
from mediums import image_of
from report.witnesses import documents
from strict_replay import replay
from wording import line_with, text_with

from .stand_in import Bob, Ended, Work, result


def put(folder: Path, *names: str) -> None:
    """A run directory, as far as its result."""
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(to_json(result(*names))))


def test_show_prints_what_the_probe_printed(bob: Bob) -> None:
    probed = bob("probe", "--fs", "ext4", "--out", "here").out
    Path("here/result.json").write_text(json.dumps(to_json(result())))

    assert bob("show", "here") == Ended(3, probed, "")
    assert bob("show", "here/result.json") == Ended(3, probed, "")


def test_show_takes_a_compressed_result(bob: Bob) -> None:
    """As references have it; a plain one beside it is the newer one."""
    put(Path("plain"))
    put(Path("packed"))
    file = Path("packed/result.json")
    Path("packed/result.json.xz").write_bytes(lzma.compress(file.read_bytes()))
    file.unlink()

    assert bob("show", "packed").out == bob("show", "plain").out.replace("plain", "packed")
    assert bob("show", "packed/result.json.xz").code == bob("show", "packed").code == 3
    assert line_with(bob("compare", "plain", "packed").out, 3) == snapshot("3 cells compared: 3 the same")
    Path("packed/result.json").write_text(json.dumps(to_json(result("btrfs"))))
    assert "btrfs" in bob("show", "packed").out

    file.unlink()
    whole = Path("packed/result.json.xz").read_bytes()
    Path("packed/result.json.xz").write_bytes(whole[:-40])
    ended = bob("show", "packed")
    assert ended.code == 8
    assert text_with(ended.err, "packed/result.json.xz") == snapshot("""\
bob: packed/result.json.xz is not a result: Compressed data ended before the end-of-stream marker was reached
hint: was it truncated?
""")


def test_show_as_json(bob: Bob) -> None:
    put(Path("here"))

    assert from_json(json.loads(bob("show", "here", "--json", "-").out)) == result()


def test_show_several_side_by_side(bob: Bob) -> None:
    put(Path("a"), "ext4-ordered")
    put(Path("b"), "btrfs")

    ended = bob("show", "a", "b", "--json", "both.json")

    assert ended.code == 3
    assert ended.out.splitlines()[0].split() == ["ext4-ordered", "btrfs"]
    assert ended.out.splitlines()[-2:] == snapshot(["ext4-ordered: bob show a", "btrfs: bob show b"])
    assert [from_json(part) for part in json.loads(Path("both.json").read_text())] == [
        result("ext4-ordered"),
        result("btrfs"),
    ]


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (
            None,
            9,
            snapshot("""\
bob: here lacks a result.json
hint: name a run directory, or a result that --json wrote
"""),
        ),
        (
            "{",
            8,
            snapshot("""\
bob: here/result.json is not a result: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)
hint: was it truncated?
"""),
        ),
        (
            "[]",
            8,
            snapshot("""\
bob: here/result.json is not a result: it is not a JSON object
hint: was it truncated?
"""),
        ),
        (
            "{}",
            8,
            snapshot("""\
bob: here/result.json: schema None is not 'bob.result/2'
hint: is it a result document?
"""),
        ),
        (
            '{"schema": "bob.result/1"}',
            8,
            snapshot("bob: here/result.json: the result document is damaged: 'run' is missing\n"),
        ),
    ],
)
def test_show_what_is_no_result(bob: Bob, content: str | None, code: int, message: str) -> None:
    Path("here").mkdir()
    if content is not None:
        Path("here/result.json").write_text(content)

    ended = bob("show", "here")

    assert ended.code == code
    assert ended.out == ""
    assert ended.err == message


def test_judge(bob: Bob, work: Work) -> None:
    Path("here").mkdir()

    ended = bob("judge", "here", "--json", "r.json")

    assert work.asked == [Path("here")]
    assert ended.code == 3
    assert "bob replay here/witnesses/append-any.json" in ended.out
    assert from_json(json.loads(Path("r.json").read_text())) == work.result
    assert ended.err == "judging 3 workloads\n"
    assert bob("judge", "here", "--quiet").err == ""


@pytest.mark.parametrize(("confirmed", "code"), [(3, 0), (2, 1), (0, 1)])
def test_replay(bob: Bob, work: Work, confirmed: int, code: int) -> None:
    Path("w.json").touch()
    answer: dict[str, Any] = {
        "witness": "w.json",
        "kernel": "6.12.1",
        "found_on": "6.12.1",
        "confirmed": confirmed,
        "times": 3,
        "observation_lines": ("mounted", "/a: file, 4,096 B: data of operation 2 (4,096 B)"),
        "evidence": "operation 3 is there, operation 2 is not",
    }
    work.replayed = [SimpleNamespace(**answer)]

    ended = bob("replay", "w.json", "--json", "r.json", "--quiet")

    ((witnesses, more),) = work.asked
    assert ended.code == code
    assert witnesses == (Path("w.json"),)
    assert {**more, "progress": None} == {
        "image": None,
        "any_kernel": False,
        "connect": None,
        "times": 3,
        "progress": None,
    }
    assert line_with(ended.out, "/a", "4,096", 2) == snapshot("/a: file, 4,096 B: data of operation 2 (4,096 B)")
    assert ("× operation 3" in ended.out) == (confirmed > 0)
    last = text_with(ended.out.splitlines()[-1], confirmed, 3, "6.12.1")
    assert last.replace(f" {confirmed} of", " N of") == snapshot("the violation shows in N of 3 mounts, kernel 6.12.1")
    document = json.loads(Path("r.json").read_text())
    assert document.pop("checksum")
    told = list(answer["observation_lines"])
    assert document == {"schema": "bob.run.replay/1", **answer, "observation_lines": told}


def test_a_replay_on_the_kernel_of_a_tree(bob: Bob, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """It need not be the witness's own: that is the question."""
    monkeypatch.setattr("bob.cli.replay.asked_images", lambda images, guests, **more: (f"{images[0]}+6.16.0-mine",))
    Path("w.json").touch()
    work.replayed = []
    bob("replay", "w.json", "--kernel-tree", ".", "--quiet")
    ((_witnesses, more),) = work.asked
    assert (more["image"], more["any_kernel"]) == ("debian-bookworm+6.16.0-mine", True)


def test_several_replays(bob: Bob, work: Work) -> None:
    work.replayed = [
        SimpleNamespace(
            witness=name,
            kernel="6.1.0-57-amd64",
            found_on=found_on,
            confirmed=confirmed,
            times=3,
            observation_lines=(),
            evidence="x",
        )
        for name, confirmed, found_on in (("a.json", 3, "6.1.0-57-amd64"), ("b.json", 2, "6.1.0-56-amd64"))
    ]
    Path("run").mkdir()

    ended = bob("replay", "run", "--json", "r.json", "--quiet")

    assert ended.code == 1
    assert ended.out == snapshot("""\
a.json: the violation shows in 3 of 3 mounts, kernel 6.1.0-57-amd64
b.json: the violation shows in 2 of 3 mounts, kernel 6.1.0-57-amd64 (found on 6.1.0-56-amd64)
1 of 2 witnesses show their violation every time
""")
    assert [one["confirmed"] for one in json.loads(Path("r.json").read_text())] == [3, 2]


@pytest.mark.parametrize(
    ("beside", "hint"),
    [
        (
            "runs/one/run.json",
            snapshot("""\
bob: runs/one lacks a result.json
hint: was it stopped? bob judge runs/one judges what is finished
"""),
        ),
        (
            "runs/result.json",
            snapshot("""\
bob: runs/one lacks a result.json
hint: this is a part of a run; show the whole run: bob show runs
"""),
        ),
    ],
)
def test_a_folder_without_a_result_says_what_to_do(bob: Bob, beside: str, hint: str) -> None:
    Path("runs/one").mkdir(parents=True)
    Path(beside).write_text("{}")
    ended = bob("show", "runs/one")
    assert (ended.code, ended.out) == (9, "")
    assert ended.err == hint


@pytest.mark.parametrize("is_begun", [True, False])
def test_each_hint_about_a_stopped_run_that_cannot_be_resumed_leads_somewhere(bob: Bob, is_begun: bool) -> None:
    """From one command to the next: none names one that refuses this run."""
    kind = "expectations"
    run = Path("runs/one")
    run.mkdir(parents=True)
    (run / "run.json").write_text(json.dumps({kind: {}, "id": "one", "request": {}, "bob": "0", "workloads": []}))
    if is_begun:
        (run / "result.json").write_text("{}")
    hints = [no_probe(run, {kind: {}}).hint or ""]
    if not is_begun:
        ended = bob("show", run)
        assert ended.code == 9
        hints.append(ended.err.partition("hint: ")[2])
    for hint in hints:
        assert "command starts again" in hint
        assert not re.search(r"bob judge|--resume", hint)
        assert ("bob show runs/one" in hint) == is_begun


@pytest.mark.parametrize(("verb", "nodes"), [("app", 0), ("cluster", 3)])
def test_each_hint_about_a_stopped_run_of_a_program_names_what_goes_on(bob: Bob, verb: str, nodes: int) -> None:
    run = Path("runs/one")
    run.mkdir(parents=True)
    about = {"program": {"name": "mine", "nodes": nodes}, "id": "one", "bob": "0"}
    (run / "run.json").write_text(json.dumps(about))
    goes_on = f"bob {verb} --resume runs/one continues it"
    assert no_probe(run, about).hint == goes_on
    ended = bob("show", run)
    assert (ended.code, ended.err.splitlines()[1]) == (9, f"hint: {goes_on}")
    other = {"app": "cluster", "cluster": "app"}[verb]
    ended = bob(other, "--resume", run, "--fs", "ext4")
    assert (ended.code, ended.err.splitlines()[0]) == (2, "bob: --fs cannot be used with --resume")


def test_an_interrupted_run_of_a_program_says_how_it_goes_on(
    bob: Bob, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(_program: object, _requests: object, out: Path, *_: object, **_more: object) -> None:
        out.mkdir()
        (out / "run.json").write_text("{}")
        (out / "result.json").write_text("{}")
        raise KeyboardInterrupt

    monkeypatch.setattr("bob.run.programs.try_program", stopped)
    ended = bob("app", "replace-rename", "--fs", "ext4", "--out", "my run", "--quiet")
    assert ended.code == 130
    assert text_with(ended.err, "my run") == snapshot("""\
bob: interrupted
hint: bob keeps what is finished; `bob app --resume 'my run'` continues
""")


# bob matrix: what it asks for, what it hands over, and how it ends

MATRIX = ("matrix", "--set", "osdi14")


def test_the_set_is_probed_as_it_was_asked(bob: Bob, work: Work) -> None:
    ended = bob(*MATRIX, "--budget", 12, "--property", "append-any", "--out", "here")

    chosen = load_set("osdi14")
    request = ProbeRequest(chosen.configurations[0], ("append-any",), budget=12)
    assert work.asked == [(chosen, request, Path("here"))]
    assert ended.code == 3
    assert ended.out.startswith("ext4-ordered ")


def test_a_set_of_ones_own(bob: Bob, work: Work) -> None:
    Path("mine.toml").write_text('[[configurations]]\nfs = "xfs"\n')

    assert bob("matrix", "--set", "mine.toml", "--quiet").code == 3
    ((chosen, request, out),) = work.asked
    assert [one.name for one in chosen.configurations] == ["xfs"]
    assert (request, out) == (ProbeRequest(chosen.configurations[0]), None)


def test_of_several_configurations_the_table(bob: Bob, work: Work) -> None:
    column = work.result.subjects[0]
    work.result = replace(work.result, subjects=(column, replace(column, name="btrfs")))

    ended = bob(*MATRIX, "--quiet")

    assert ended.out.splitlines()[0].split() == ["ext4-ordered", "btrfs"]
    assert ["append-any", "×", "×"] in [line.split() for line in ended.out.splitlines()]
    assert line_with(ended.out, "directory-op", "btrfs") == snapshot("? btrfs, directory-op: the guest was lost")


def test_it_is_gone_on_with(bob: Bob, work: Work) -> None:
    Path("run").mkdir()

    assert bob("matrix", "--resume", "run", "--quiet").code == 3
    assert work.asked == [(Path("run"), Host())]
    ended = bob("matrix", "--resume", "run", "--seed", "1")
    assert ended.code == 2
    assert text_with(ended.err, "--seed") == snapshot("""\
bob: --seed cannot be used with --resume
hint: RUN keeps the options that it was started with; for others, start a new run
""")


@pytest.mark.parametrize(("out", "run"), [([], "bob-runs/made-up"), (["--out", "my run"], "'my run'")])
def test_interrupted(bob: Bob, work: Work, out: list[str], run: str) -> None:
    work.raises = KeyboardInterrupt()

    ended = bob(*MATRIX, *out, "--quiet")

    assert ended.code == 130
    assert text_with(ended.err, f"bob matrix --resume {run}").replace(run, "RUN") == snapshot("""\
bob: interrupted
hint: bob keeps what is finished; `bob matrix --resume RUN` continues
""")


# ``bob witness export``: the files that it writes, and what it says of them


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
    assert device == image_of(samples.BASE)
    assert replay(Path("a log").read_bytes(), device) == ["start", "crash", "end"]
    assert ended.out.splitlines() == snapshot(
        [
            "'a log': 9 entries, 4 writes",
            "To replay it with xfstests' src/log-writes/replay-log, and mount the result:",
            "  cp --sparse=always base.img disk.img",
            "  replay-log --log 'a log' --replay disk.img --limit 4",
            "  mount -t ext4 -o loop,data=ordered disk.img /mnt",
            "The crash is entry 5, the mark crash; the last mark before it is start.",
            "The crash state lacks 1 entry before it: 4",
            "So the first 4 entries make the crash state.",
            "To get the image of the witness's own crash state: bob replay --keep DIR w.json",
        ]
    )
    assert sorted(path.name for path in Path().iterdir()) == ["a log", "base.img", "w.json"]


def test_without_the_base(bob: Bob, crash: SimpleNamespace) -> None:
    ended = bob("witness", "export", "w.json", "--dm-log", "log", "--quiet")
    lines = ended.out.splitlines()
    assert line_with(lines, "--base") == snapshot(
        "A replay starts from the disk's image before the first entry; --base FILE writes it."
    )
    assert "  cp --sparse=always BASE disk.img" in lines


def test_a_crash_that_no_stretch_makes(bob: Bob, crash: SimpleNamespace) -> None:
    vars(crash).update(lost=(3,), torn=(4,), other=2, prefix=None)
    lines = bob("witness", "export", "w.json", "--dm-log", "log", "--quiet").out.splitlines()
    assert line_with(lines, "replay-log", "--log", "--replay", "disk.img", "--end-mark") == snapshot(
        "replay-log --log log --replay disk.img --end-mark crash"
    )
    assert lines[-5:-1] == snapshot(
        [
            "The crash state lacks 1 entry before it: 3",
            "The crash state has only a part of 1 entry before it: 4",
            "So no part of the log makes the crash state. The replay makes the disk with all writes before the crash.",
            "Sectors that differ from the witness, because of time stamps: 2",
        ]
    )


def test_a_recording_that_came_out_otherwise(bob: Bob, work: Work, crash: SimpleNamespace) -> None:
    work.exported.crash = None
    ended = bob("witness", "export", "w.json", "--dm-log", "log", "--quiet")
    assert ended.code == 0
    assert "  replay-log --log log --replay disk.img\n" in ended.out
    assert line_with(ended.out, "no mark") == snapshot(
        "The log has no mark for the crash of the witness: no new recording has its crash state."
    )


def test_a_full_disk_leaves_no_log(bob: Bob, crash: SimpleNamespace) -> None:
    Path("log").symlink_to("/dev/full")
    ended = bob("witness", "export", "w.json", "--dm-log", "log", "--quiet")
    assert ended.code == 2
    assert ended.err.splitlines() == snapshot(
        ["bob: cannot write log: No space left on device", "hint: name another file with --dm-log"]
    )


@pytest.fixture
def found(bob: Bob) -> dict[str, Any]:
    """A witness in a file, of a crash that may come at any time."""
    document: dict[str, Any] = json.loads(json.dumps(documents()["overwrite-any"]))
    Path("w.json").write_text(json.dumps(document))
    return document


def test_a_probe_file(bob: Bob, work: Work, found: dict[str, Any]) -> None:
    ended = bob("witness", "export", "w.json", "--probe", "a b.toml")
    assert (ended.code, ended.err, work.asked) == (0, "", [])
    assert ended.out.splitlines() == snapshot(
        [
            "wrote a b.toml; to probe with it:",
            "  bob probe --fs ext4 --mount-opts data=ordered --completion prompt --probe 'a b.toml'",
        ]
    )
    probe = load(Path("a b.toml"))
    assert (probe.property.name, probe.workloads) == ("found-overwrite-any", (samples.WORKLOAD,))

    Path("a b.toml").write_text("edited since")
    again = bob("witness", "export", "w.json", "--probe", "a b.toml")
    assert (again.code, again.err.splitlines()[0]) == (2, "bob: a b.toml already exists")
    assert Path("a b.toml").read_text() == "edited since"


def test_a_case_for_xfstests(bob: Bob, work: Work, found: dict[str, Any]) -> None:
    refused = bob("witness", "export", "w.json", "--xfstests", "900")
    assert refused.code == 2 and refused.err == snapshot("""\
bob: the witness may crash at any time, and xfstests has no helper for that: _log_writes_replay_log_range replays a log to an entry, but a write has another entry in each recording, and none can be left out
hint: bob witness export --dm-log writes a log that replay-log steps through
""")
    assert not Path("900").exists()
    returned = {"required": [2], "later": None, "returned": 2}
    found["workload"]["at"] = "end"
    found["question"] = returned
    found["probe"]["judge"] = {"rule": "durable", "call": "sync", "kinds": ["overwrite"]}
    Path("w.json").write_text(json.dumps(found))
    ended = bob("witness", "export", "w.json", "--xfstests", "900")
    assert (ended.code, ended.err, work.asked) == (0, "", [])
    assert ended.out.startswith("wrote 900 and 900.out\n")
    assert text_with(ended.out, "dm-flakey") == snapshot("""\
wrote 900 and 900.out
In bob's crash state the disk has everything that it was sent. dm-flakey makes such a state.
""")
    assert text_with(Path("900.out").read_text(), 900) == snapshot("""\
QA output created by 900
Silence is golden
""")
    assert Path("900").stat().st_mode & 0o111
    assert Path("900").read_text().startswith("#! /bin/bash\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            (),
            snapshot("""\
bob: nothing to export
hint: give --probe FILE, --xfstests FILE or --dm-log FILE
"""),
        ),
        (
            ("--probe", "a.toml", "--base", "b"),
            snapshot("""\
bob: --base needs --dm-log
hint: add --dm-log FILE
"""),
        ),
        (
            ("--probe", "w.json"),
            snapshot("""\
bob: the witness and the exported files must differ
hint: name another file
"""),
        ),
        (
            ("--probe", "9.out", "--xfstests", "9"),
            snapshot("""\
bob: the witness and the exported files must differ
hint: name another file
"""),
        ),
    ],
)
def test_what_cannot_be_written(bob: Bob, work: Work, found: dict[str, Any], words: tuple[str, ...], said: str) -> None:
    ended = bob("witness", "export", "w.json", *words)
    assert ended.code == 2 and ended.err == said, ended.err
    assert work.asked == [] and [path.name for path in Path().iterdir()] == ["w.json"]
