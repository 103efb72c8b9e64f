"""bob probe: what it asks for, what it hands over, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bob.catalogue.sets import Rows, probes_of
from bob.crash.caches import CACHES
from bob.crash.device import DeviceModel
from bob.errors import GuestError, MissingProgramError
from bob.request import Host, ProbeRequest
from bob.result import from_json
from bob.subject import configuration
from bob.trace.completion import Completion

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
    assert (some.rows, some.properties) == (Rows.UNITS, ("append.block",))
    assert every.properties == tuple(probe.property.name for probe in probes_of(Rows.UNITS))


def test_the_table_is_on_stdout_and_the_progress_is_not(bob: Bob) -> None:
    ended = bob(*PROBE)

    assert ended.out.startswith("ext4-ordered ")
    assert "bob replay bob-runs/made-up/witnesses/append-any.json" in ended.out
    assert ended.err.startswith("booting a guest\n1 workload, at most 200 tries\n")


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
    assert json.loads((tmp_path / "target").read_text())["schema"] == "bob.result/1"


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
    assert ended.err == f"bob: interrupted\nhint: what is finished is kept; `bob probe --resume {run}` goes on\n"


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
    assert f"bob: {options[0]} cannot be changed on the way\n" in ended.err
    assert work.asked == []
