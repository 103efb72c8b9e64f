"""A witness that is cut off, of another schema or of another kernel is refused in one line, before a guest starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest

from bob.cli.main import run
from bob.guest.hypervisor import Hypervisor
from witness.test_witness import document, stored

VERBS = {
    "replay": ["replay"],
    "show": ["witness", "show"],
    "shrink": ["witness", "shrink", "--output", "new"],
    "export": ["witness", "export", "--dm-log", "new"],
}

Refused = Callable[[list[str]], tuple[int, list[str]]]


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """The exit code and the lines of a command that must not come so far as to start anything, or to write a file."""

    def started(*_arguments: object) -> NoReturn:
        raise AssertionError("a guest was about to be started")

    monkeypatch.setattr(Hypervisor, "open", started)
    monkeypatch.setattr("bob.run.witness_image.image_called", lambda *_: SimpleNamespace(kernel_release="6.12.1-amd64"))
    monkeypatch.chdir(tmp_path)

    def refused(words: list[str]) -> tuple[int, list[str]]:
        code = run([*words, "witness.json"])
        said = capsys.readouterr()
        assert said.out == ""
        assert not Path("new").exists()
        return code, said.err.splitlines()

    return refused


@pytest.mark.parametrize("verb", VERBS)
def test_one_that_is_cut_off(refused: Refused, tmp_path: Path, verb: str) -> None:
    file = stored(tmp_path, document())
    file.write_bytes(file.read_bytes()[:-100])
    code, lines = refused(VERBS[verb])
    assert code == 8
    assert len(lines) == 2
    assert lines[0].startswith("bob: witness.json is no witness: ")
    assert lines[1] == "hint: was it truncated?"


@pytest.mark.parametrize("verb", VERBS)
def test_one_of_another_schema(refused: Refused, tmp_path: Path, verb: str) -> None:
    stored(tmp_path, document() | {"schema": "bob.witness/2"})
    assert refused(VERBS[verb]) == (
        8,
        [
            "bob: witness.json has schema 'bob.witness/2', not 'bob.witness/1'",
            "hint: replay it with the bob that wrote it",
        ],
    )


@pytest.mark.parametrize(
    ("verb", "more"),
    [
        ("replay", ", or try it on this one with --any-kernel"),
        ("shrink", ""),
        ("export", ", or try it on this one with --any-kernel"),
    ],
)
def test_one_of_another_kernel(refused: Refused, tmp_path: Path, verb: str, more: str) -> None:
    stored(tmp_path, document())
    kernel = document()["environment"]["kernel"]
    assert refused(VERBS[verb]) == (
        2,
        [
            f"bob: the witness witness.json is of kernel {kernel}, the image has 6.12.1-amd64",
            f"hint: name an image with that kernel by --image{more}",
        ],
    )


@pytest.mark.parametrize("verb", ["replay", "export"])
def test_another_kernel_may_do(refused: Refused, tmp_path: Path, verb: str) -> None:
    """Then a guest is about to be started."""
    stored(tmp_path, document())
    code, lines = refused([*VERBS[verb], "--any-kernel"])
    assert code == 70
    assert "a guest was about to be started" in lines[0]


def test_a_state_that_no_recording_has(refused: Refused, tmp_path: Path) -> None:
    made = json.loads(json.dumps(document()))
    made["crash"]["state"]["kept"] = "all"
    stored(tmp_path, made)
    code, lines = refused(VERBS["export"])
    assert code == 8
    assert lines[0] == "bob: witness.json: a crash state has the fields point, kept and torn"


def test_one_of_a_crash_during_recovery(refused: Refused, tmp_path: Path) -> None:
    stored(
        tmp_path,
        document()
        | {"claim": "recovery", "property": "recovery-idempotent", "question": {"required": [], "later": None}},
    )
    code, lines = refused(VERBS["export"])
    assert code == 2
    assert lines[0] == "bob: the witness witness.json is of a crash during recovery"
