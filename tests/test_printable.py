"""Names and words of others are told in one line, and with nothing that a terminal obeys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bob.observe.observation import Node, Observation
from bob.printable import printable
from bob.program.answer import CheckerAnswer
from bob.run.replay import lines


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


def test_what_a_checker_prints_is_one_line() -> None:
    answer = CheckerAnswer(10, "first\nthe key \x1b[31mred\x1b[0m is gone\n")
    assert answer.evidence.isprintable() and "is gone" in answer.evidence
