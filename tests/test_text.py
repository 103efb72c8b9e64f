"""Names and words of others are told in one line, and with nothing that a terminal obeys."""

from __future__ import annotations

import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.padding import Padding
from rich.text import Text

from bob.cli.output import paper
from bob.observe.observation import Node, Observation
from bob.program.answer import CheckerAnswer
from bob.report.lines import Trimmed
from bob.run.replay import lines
from bob.text import printable


@given(st.text())
def test_what_is_printable_stays_and_all_else_is_to_be_seen(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert shown == text or not text.isprintable()
    assert printable(shown) == shown


@pytest.mark.parametrize(
    ("name", "shown"),
    [("a\nb", "a\\nb"), ("\x1b[2J", "\\x1b[2J"), ("\udcff", "\\xff"), ("\u202e", "\\u202e"), ("ä×…", "ä×…")],
)
def test_how_it_is_shown(name: str, shown: str) -> None:
    assert printable(name) == shown


def test_a_replay_has_a_line_for_each_name() -> None:
    tree = {name: Node("directory") for name in ("/a\nb", "/c\x1b[2J")}
    found = lines(Observation(True, None, tree))
    assert len(found) == 3
    assert all(line.isprintable() for line in found)


@given(st.text())
def test_a_terminal_obeys_nothing_that_is_printed(text: str) -> None:
    """Also of a result that somebody else has written: only bob's own colours and line ends are there."""
    file = io.StringIO()
    screen = paper(file, 80)
    screen.print(Trimmed(Padding(Text(text), (0, 0, 0, 4))))
    screen.print(Text(text), soft_wrap=True)
    assert not any(unicodedata.category(letter) == "Cc" and letter != "\n" for letter in file.getvalue())


def test_what_a_checker_prints_is_one_line() -> None:
    answer = CheckerAnswer(10, "first\nthe key \x1b[31mred\x1b[0m is gone\n")
    assert answer.evidence.isprintable() and "is gone" in answer.evidence
