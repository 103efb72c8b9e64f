"""Lines are broken at blanks and behind commas, and nothing of them is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from bob.report.broken import broken


def test_mount_options_are_broken_behind_a_comma() -> None:
    text = Text.assemble(("f2fs", "bold"), "   mounted rw,lazytime,fsync_mode=posix,discard_unit=block")
    assert broken(text, 30).plain.splitlines() == [
        "f2fs   mounted rw,lazytime,",
        "fsync_mode=posix,",
        "discard_unit=block",
    ]
    assert broken(text, 80) == text


def test_a_word_that_is_too_long_is_left_alone() -> None:
    assert broken(Text("a,bbbbbbbbbb,c"), 5).plain == "a,\nbbbbbbbbbb,\nc"


@given(st.text("ab, ", max_size=60), st.integers(1, 30))
def test_nothing_is_lost_and_lines_fit_where_they_can(plain: str, width: int) -> None:
    lines = broken(Text(plain), width).plain.split("\n")
    assert "".join(lines) == plain
    for line in lines:
        assert len(line.rstrip()) <= width or not set(line.rstrip(", ")) & set(", ")
