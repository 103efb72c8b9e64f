"""bob probe: what it asks for, what it hands over, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from bob.answer.document import from_json
from bob.catalogue.probe_files import load, probe_names
from bob.catalogue.request import Host, ProbeRequest, request_from_json, request_to_json
from bob.catalogue.sets import RowSet, probes_of
from bob.crash.caches import CACHES
from bob.crash.device import DeviceModel
from bob.errors import GuestError, MissingProgramError, UsageError
from bob.subject import configuration
from bob.trace.recording import Completion
from wording import text_with

from .stand_in import Bob, Work, result

PROBE = ("probe", "--fs", "ext4")


def test_defaults(bob: Bob, work: Work) -> None:
    bob(*PROBE)

    assert work.asked == [
        (
            ProbeRequest(
                configuration=configuration("ext4"),
                properties=(),
                image="debian-bookworm",
                host=Host(),
                budget=100,
                seed=1,
                model=DeviceModel(CACHES["volatile"], 512, Completion.YOUNGEST_FIRST),
            ),
            None,
        )
    ]


def test_everything_that_can_be_asked(bob: Bob, work: Work) -> None:
    options = {
        "--mount-opts": "data=journal",
        "--mkfs-opts": "-O ^dir_index",
        "--device": "64M",
        "--property": "append-any",
        "--image": "debian-bookworm",
        "--connect": "qemu:///session",
        "--jobs": 3,
        "--budget": 12,
        "--seed": -3,
        "--write-cache": "none",
        "--atomic-write": 4096,
        "--completion": "oldest-first",
        "--out": "here",
    }
    arguments = [part for option in options.items() for part in option]
    bob(*PROBE, *arguments, "--property", "directory-op", "--property", "append-any")

    assert work.asked == [
        (
            ProbeRequest(
                configuration=configuration("ext4", "-O ^dir_index", "data=journal", 64 * 2**20),
                properties=("append-any", "directory-op"),
                image="debian-bookworm",
                host=Host("qemu:///session", 3),
                budget=12,
                seed=-3,
                model=DeviceModel(CACHES["none"], 4096, Completion.OLDEST_FIRST),
            ),
            Path("here"),
        )
    ]


def test_other_rows(bob: Bob, work: Work) -> None:
    bob(*PROBE, "--rows", "units", "--property", "append.block")
    bob(*PROBE, "--rows", "units", "--property", "all")
    [[some, _], [every, _]] = work.asked
    assert (some.rows, some.properties) == (RowSet.UNITS, ("append.block",))
    assert every.properties == tuple(probe.property.name for probe in probes_of(RowSet.UNITS))


def test_a_set_asks_its_own_rows(bob: Bob, work: Work) -> None:
    bob("matrix", "--set", "sync-table")
    bob("matrix", "--set", "sync-table", "--property", "append-any")
    own, other = (each[-2] for each in work.asked)
    assert [probe.property.name for probe in own.asked][:2] == ["sync", "syncfs"]
    assert [probe.property.name for probe in other.asked] == ["append-any"]


def test_the_table_is_on_stdout_and_the_progress_is_not(bob: Bob) -> None:
    ended = bob(*PROBE)

    assert ended.out.startswith("ext4-ordered ")
    assert "bob replay bob-runs/made-up/witnesses/append-any.json" in ended.out
    assert ended.err.splitlines()[:2] == snapshot(["booting a guest", "1 workload, at most 200 crash states to try"])


def test_an_unknown_cell_is_exit_code_3(bob: Bob, work: Work) -> None:
    assert bob(*PROBE, "--out", "a").code == 3
    work.result = result(unknown=False)
    assert bob(*PROBE, "--out", "b").code == 0


def test_json(bob: Bob, work: Work, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text("an earlier one, which may be longer than the new one" * 1000)

    ended = bob(*PROBE, "--json", "r.json")

    assert from_json(json.loads((tmp_path / "r.json").read_text())) == work.result
    assert ended.out.startswith("ext4-ordered ")
    assert {path.name for path in tmp_path.iterdir()} == {"r.json", "bob-runs"}


def test_json_on_stdout_is_alone_there(bob: Bob, work: Work) -> None:
    assert from_json(json.loads(bob(*PROBE, "--json", "-").out)) == work.result


def test_json_goes_where_a_link_points_and_to_what_is_no_file(bob: Bob, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")

    assert bob(*PROBE, "--out", "a", "--json", "link").code == 3
    assert bob(*PROBE, "--out", "b", "--json", "/dev/null").code == 3

    assert (tmp_path / "link").is_symlink()
    assert json.loads((tmp_path / "target").read_text())["schema"] == "bob.result/2"


def test_quiet(bob: Bob) -> None:
    assert bob(*PROBE, "--quiet").err == ""


def test_an_empty_run_directory_may_be_there(bob: Bob, work: Work, tmp_path: Path) -> None:
    (tmp_path / "here" / "witnesses").mkdir(parents=True)
    (tmp_path / "here" / "witnesses").rmdir()

    assert bob(*PROBE, "--out", "here").code == 3


@pytest.mark.parametrize("error", [MissingProgramError("QEMU is not installed", hint="install it"), GuestError("x")])
def test_errors_keep_their_exit_code(bob: Bob, work: Work, error: MissingProgramError | GuestError) -> None:
    work.raises = error

    ended = bob(*PROBE)

    assert ended.code == error.exit_code
    assert f"bob: {error.message}\n" in ended.err


@pytest.mark.parametrize(("out", "run"), [([], "bob-runs/made-up"), (["--out", "my run"], "'my run'")])
def test_interrupted(bob: Bob, work: Work, out: list[str], run: str) -> None:
    work.raises = KeyboardInterrupt()

    ended = bob(*PROBE, *out, "--quiet")

    assert ended.code == 130
    assert text_with(ended.err, f"bob probe --resume {run}").replace(run, "RUN") == snapshot("""\
bob: interrupted
hint: bob keeps what is finished; `bob probe --resume RUN` continues
""")


def test_a_run_is_gone_on_with(bob: Bob, work: Work, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()

    assert bob("probe", "--resume", "run", "--connect", "qemu:///session", "--jobs", "1", "--quiet").code == 3
    assert work.asked == [(Path("run"), Host("qemu:///session", 1))]


@pytest.mark.parametrize(
    "options", [["--fs", "ext4"], ["--budget", "100"], ["--out", "x"], ["--property", "append-any"]]
)
def test_a_run_knows_what_it_was_asked(bob: Bob, work: Work, tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "run").mkdir()

    ended = bob("probe", "--resume", "run", *options)

    assert ended.code == 2
    assert ended.err.splitlines()[0].replace(options[0], "OPTION") == snapshot(
        "bob: OPTION cannot be used with --resume"
    )
    assert work.asked == []


# bob probe new, and what bob probe makes of probe files of the user's own

NEW_PROBE = ("probe", "--fs", "ext4")


def test_a_new_probe_is_whole(bob: Bob, tmp_path: Path) -> None:
    ended = bob("probe", "new", "my_log-2")

    assert (ended.code, ended.err) == (0, "")
    assert "bob probe --fs ext4 --probe my_log-2.toml\n" in ended.out
    probe = load(tmp_path / "my_log-2.toml")
    assert (probe.property.name, probe.row) == ("my_log-2", 1000)
    assert [workload.finish.name for workload in probe.workloads] == ["natural", "natural 2.5", "fsync /d/config"]


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("spans", None),
        ("later", snapshot("mine.toml: no workload has an operation that the property is about")),
        ("then_renamed", snapshot("mine.toml: no workload has an operation that the property is about")),
        ("tree", snapshot("mine.toml: a workload has a tree or a setup, not both")),
    ],
)
def test_what_is_a_comment_in_it_is_a_key_too(bob: Bob, tmp_path: Path, key: str, says: str | None) -> None:
    bob("probe", "new", "mine")
    file = tmp_path / "mine.toml"
    whole = file.read_text()
    assert f"# {key} = " in whole
    file.write_text(whole.replace(f"# {key} = ", f"{key} = "))
    if says is None:
        load(file)
    else:
        with pytest.raises(UsageError) as refused:
            load(file)
        assert str(refused.value).replace(str(tmp_path), "TMP") == says


def test_what_is_there_stays(bob: Bob, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("precious")

    ended = bob("probe", "new", "mine")

    assert ended.code == 2
    assert text_with(ended.err, "mine.toml") == snapshot("""\
bob: mine.toml already exists
hint: choose another name, or remove it
""")
    assert (tmp_path / "mine.toml").read_text() == "precious"


def test_own_probes_are_asked_alone_or_beside_shipped_ones(bob: Bob, work: Work, tmp_path: Path) -> None:
    bob("probe", "new", "mine")
    bob("probe", "new", "other")
    mine, other = load(tmp_path / "mine.toml"), load(tmp_path / "other.toml")
    bob(*NEW_PROBE, "--probe", "mine.toml", "--probe", "other.toml", "--out", "a")
    bob(*NEW_PROBE, "--probe", "mine.toml", "--property", "append-any", "--out", "b")
    bob(*NEW_PROBE, "--probe", "mine.toml", "--property", "append-any", "--property", "all", "--out", "c")
    bob("matrix", "--set", "osdi14", "--probe", "mine.toml", "--out", "d")

    asked = [each[-2] for each in work.asked]
    assert [request.probes for request in asked] == [(mine, other), (mine,), (mine,), (mine,)]
    assert [request.properties for request in asked[:2]] == [(), ("append-any",)]
    assert sorted(asked[2].properties) == sorted(probe_names())


def test_two_of_one_name_and_one_of_a_shipped_name(bob: Bob, work: Work, tmp_path: Path) -> None:
    bob("probe", "new", "mine")
    (tmp_path / "copy.toml").write_text((tmp_path / "mine.toml").read_text())
    ended = bob(*NEW_PROBE, "--probe", "mine.toml", "--probe", "copy.toml")
    assert (ended.code, ended.err.splitlines()[0]) == (2, snapshot("bob: two probe files are named 'mine'"))

    (tmp_path / "copy.toml").write_text((tmp_path / "mine.toml").read_text().replace('"mine"', '"append-any"'))
    ended = bob(*NEW_PROBE, "--probe", "copy.toml")
    assert ended.code == 2
    assert text_with(ended.err, "append-any", "my-append-any") == snapshot("""\
bob: 'append-any' is a shipped property
hint: choose another name, for example 'my-append-any'
""")
    assert work.asked == []


def test_a_run_keeps_the_probe_whole(bob: Bob, tmp_path: Path) -> None:
    bob("probe", "new", "mine")
    request = ProbeRequest(configuration("ext4"), ("append-any",), probes=(load(tmp_path / "mine.toml"),))
    document = json.loads(json.dumps(request_to_json(request)))
    assert request_from_json(document) == request
    del document["probes"]  # as a run of an earlier bob
    assert request_from_json(document).probes == ()
