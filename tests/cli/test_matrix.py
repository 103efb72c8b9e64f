"""bob matrix: what it asks for, what it hands over, and how it ends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bob.request import Host, ProbeRequest
from bob.subject import load_set

from .stand_in import Bob, Work

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
    column = work.result.configurations[0]
    work.result = replace(work.result, configurations=(column, replace(column, name="btrfs")))

    ended = bob(*MATRIX, "--quiet")

    assert ended.out.splitlines()[0].split() == ["ext4-ordered", "btrfs"]
    assert ["append-any", "×", "×"] in [line.split() for line in ended.out.splitlines()]
    assert "? btrfs, directory-op: the guest was lost" in ended.out


def test_it_is_gone_on_with(bob: Bob, work: Work) -> None:
    Path("run").mkdir()

    assert bob("matrix", "--resume", "run", "--quiet").code == 3
    assert work.asked == [(Path("run"), Host())]
    ended = bob("matrix", "--resume", "run", "--seed", "1")
    assert ended.code == 2
    assert ended.err.startswith("bob: --seed cannot be changed on the way\n")


@pytest.mark.parametrize(("out", "run"), [([], "bob-runs/made-up"), (["--out", "my run"], "'my run'")])
def test_interrupted(bob: Bob, work: Work, out: list[str], run: str) -> None:
    work.raises = KeyboardInterrupt()

    ended = bob(*MATRIX, *out, "--quiet")

    assert ended.code == 130
    assert ended.err == f"bob: interrupted\nhint: what is finished is kept; `bob matrix --resume {run}` goes on\n"
