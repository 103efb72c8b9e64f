"""Programs in the guest of an agent: one takes the place of another."""

from __future__ import annotations

import pytest

from bob.observe.observation import Node
from bob.observe.tree_builder import TreeBuilder
from bob.program.answer import CheckerRun
from bob.program.program import Program, ProgramFile
from bob.record.recorder import put_program

from .conftest import Inhabited

pytestmark = pytest.mark.vm


def python_that_says(words: str) -> Program:
    """A program whose checker is Python's, which the agent has imported once and forks."""
    return Program("mine", "", (ProgramFile("check", f"#!/usr/bin/python3\nprint({words!r})\n".encode(), True),))


def test_a_guest_takes_one_program_after_the_other(observing: Inhabited) -> None:
    """The first checker has /tmp cleared before it runs. The agent itself came from there."""
    for words in ("first", "second", "third"):
        put_program(observing.agent, python_that_says(words))
        [answer] = TreeBuilder(observing.agent, Node("directory")).check([CheckerRun({}, b"")], 30.0)
        assert (answer.code, answer.printed.strip()) == (0, words)
