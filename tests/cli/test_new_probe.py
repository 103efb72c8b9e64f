"""bob probe new, and what bob probe makes of probe files of the user's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bob.catalogue.probe_files import load, probe_names
from bob.errors import UsageError
from bob.request import ProbeRequest, request_from_json, request_to_json
from bob.subject import configuration

from .stand_in import Bob, Work

PROBE = ("probe", "--fs", "ext4")


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
        ("later", "no workload has an operation that the property is about"),
        ("then_renamed", "no workload has an operation that the property is about"),
        ("tree", "a workload has a tree or a setup, not both"),
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
        with pytest.raises(UsageError, match=says):
            load(file)


def test_what_is_there_stays(bob: Bob, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("precious")

    ended = bob("probe", "new", "mine")

    assert ended.code == 2
    assert ended.err == "bob: mine.toml is there already\nhint: choose another name, or remove it\n"
    assert (tmp_path / "mine.toml").read_text() == "precious"


def test_own_probes_are_asked_alone_or_beside_shipped_ones(bob: Bob, work: Work, tmp_path: Path) -> None:
    bob("probe", "new", "mine")
    bob("probe", "new", "other")
    mine, other = load(tmp_path / "mine.toml"), load(tmp_path / "other.toml")
    bob(*PROBE, "--probe", "mine.toml", "--probe", "other.toml", "--out", "a")
    bob(*PROBE, "--probe", "mine.toml", "--property", "append-any", "--out", "b")
    bob(*PROBE, "--probe", "mine.toml", "--property", "append-any", "--property", "all", "--out", "c")
    bob("matrix", "--set", "osdi14", "--probe", "mine.toml", "--out", "d")

    asked = [each[-2] for each in work.asked]
    assert [request.probes for request in asked] == [(mine, other), (mine,), (mine,), (mine,)]
    assert [request.properties for request in asked[:2]] == [(), ("append-any",)]
    assert sorted(asked[2].properties) == sorted(probe_names())


def test_two_of_one_name_and_one_of_a_shipped_name(bob: Bob, work: Work, tmp_path: Path) -> None:
    bob("probe", "new", "mine")
    (tmp_path / "copy.toml").write_text((tmp_path / "mine.toml").read_text())
    ended = bob(*PROBE, "--probe", "mine.toml", "--probe", "copy.toml")
    assert (ended.code, ended.err.splitlines()[0]) == (2, "bob: two probe files are named 'mine'")

    (tmp_path / "copy.toml").write_text((tmp_path / "mine.toml").read_text().replace('"mine"', '"append-any"'))
    ended = bob(*PROBE, "--probe", "copy.toml")
    assert ended.code == 2
    assert ended.err == "bob: 'append-any' is a shipped property\nhint: name yours otherwise, e.g. 'my-append-any'\n"
    assert work.asked == []


def test_a_run_keeps_the_probe_whole(bob: Bob, tmp_path: Path) -> None:
    bob("probe", "new", "mine")
    request = ProbeRequest(configuration("ext4"), ("append-any",), probes=(load(tmp_path / "mine.toml"),))
    document = json.loads(json.dumps(request_to_json(request)))
    assert request_from_json(document) == request
    del document["probes"]  # as a run of an earlier bob
    assert request_from_json(document).probes == ()
