"""Marks, colours and sizes: what reaches terminals of all kinds, and what is taken from the command line."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from bob.cli.options import Size
from bob.cli.output import console, deliver, write_json
from bob.errors import UsageError

from .stand_in import result


def printed(monkeypatch: pytest.MonkeyPatch, encoding: str) -> str:
    """The table as it comes out of a stdout of this encoding."""
    stdout = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stdout)
        deliver(result(), Path("run"), None)
    stdout.seek(0)
    return stdout.read()


def test_a_terminal_without_our_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mark that cannot be written must not become another mark."""
    assert "× append-any" in printed(monkeypatch, "utf-8")
    assert "× append-any" in printed(monkeypatch, "latin-1")
    assert "x append-any" in printed(monkeypatch, "ascii")


def test_no_dash_becomes_a_question_mark() -> None:
    assert "× – · Ж".encode("ascii", errors="bob.ascii") == b"x - . ?"


@pytest.mark.parametrize(("variables", "colours"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], colours: bool) -> None:
    file = io.StringIO()
    file.isatty = lambda: True  # type: ignore[method-assign]
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", file)
    deliver(result(), Path("run"), None)
    assert ("\x1b[1;38;5;" in file.getvalue()) is colours
    assert "append-any" in file.getvalue()


def test_no_colours_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    console().print("×", style="bob.fails")
    assert capsys.readouterr().out == "×\n"


def test_json_is_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text("before")
    with pytest.raises(TypeError):
        write_json(tmp_path / "r.json", {"a": object()})
    assert (tmp_path / "r.json").read_text() == "before"
    assert list(tmp_path.iterdir()) == [tmp_path / "r.json"]


def test_json_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write"):
        write_json(tmp_path / "gone" / "r.json", {})


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("64M", 2**26), ("64m", 2**26), ("64MB", 2**26), ("64MiB", 2**26), ("1G", 2**30), (" 2T ", 2**41)],
)
def test_sizes(text: str, size: int) -> None:
    assert Size().convert(text, None, None) == size


@pytest.mark.parametrize("text", ["", "M", "-1M", "1.5G", "64X", "0M"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(UsageError):
        Size().convert(text, None, None)
