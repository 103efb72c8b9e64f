"""All that is in a file system is removed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from bob.agent.inside import removal
from bob.agent.inside.removal import KEEPING, remove_all
from wording import text_with

from .test_look import deep_file, flagged


def test_all_is_removed_but_what_the_file_system_keeps(tmp_path: Path) -> None:
    for path in ("lost+found/x", "d/e/f", "d/lost+found/y", ".bob-clock", "a", "d/e/g/h"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "kept").touch()
    (tmp_path / "d/s").symlink_to(outside)
    os.mkfifo(tmp_path / "d/p")
    here = Path.cwd()
    assert remove_all(str(tmp_path)) is None
    assert Path.cwd() == here
    assert [path.name for path in tmp_path.iterdir()] == ["lost+found"]
    assert (tmp_path / "lost+found/x").exists()
    assert (outside / "kept").exists()


def test_a_tree_may_be_deeper_than_a_path_is_long(tmp_path: Path) -> None:
    deep_file(tmp_path, b"far down")
    assert remove_all(str(tmp_path)) is None
    assert not list(tmp_path.iterdir())


def test_flags_keep_nothing(tmp_path: Path) -> None:
    for path in ("d/e/f", "d/g"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    try:
        for path in ("d/g", "d/e", "d"):
            flagged(tmp_path / path, KEEPING)
    except OSError as error:
        pytest.skip(f"such a flag cannot be set here: {error.strerror}")
    assert remove_all(str(tmp_path)) is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("call", "name", "path"), [("unlink", "f", "/d/f"), ("rmdir", "d", "/d"), ("chdir", "d", "/d")]
)
def test_what_cannot_be_removed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, name: str, path: str
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/f").touch()
    real = getattr(os, call)

    def fail(which: str, *arguments: Any) -> Any:
        if which == name:
            raise OSError(117, "Structure needs cleaning")
        return real(which, *arguments)

    monkeypatch.setattr(removal.os, call, fail)
    assert remove_all(str(tmp_path)) == f"{path}: Structure needs cleaning"


def test_a_tree_without_an_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "DEEPEST", 2)
    (tmp_path / "a/b/c").mkdir(parents=True)
    assert text_with(remove_all(str(tmp_path)), "/a/b/c") == snapshot("/a/b/c: directories without an end")
    assert (tmp_path / "a/b/c").exists()
