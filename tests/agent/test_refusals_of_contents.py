"""A crash state counts as one that does not start only if the kernel refuses its contents, twice and in the same words.
An error that passes, or an error of bob, is no answer about it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import pytest

from bob.agent.inside import devices
from bob.agent.inside.assembly import Assembly
from bob.agent.inside.documents import LayerDocument
from bob.agent.inside.frames import Denial
from bob.agent.inside.refusals import MOST_STARTS, OF_CONTENTS, LayerFailed, StartBroke, started

CRYPT = LayerDocument("crypt", [0], 8, [["dm", "TOP", "0", "8", "crypt", "DISK0"]], [], [], "", [], [], "", [])
PASSING = (errno.EBUSY, errno.ENOMEM, errno.EAGAIN, errno.EINTR, errno.ETIMEDOUT)


def assembly(monkeypatch: pytest.MonkeyPatch, failure: Exception, *, crashed: bool = True) -> Assembly:
    def refuse(*_: object, **_more: object) -> int:
        raise failure

    monkeypatch.setattr(devices, "_command", refuse)
    return Assembly([CRYPT], ["/nowhere/disk"], crashed=crashed)


@pytest.mark.parametrize("number", PASSING)
def test_an_error_that_passes_says_nothing_about_a_crash_state(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    with pytest.raises(StartBroke, match=os.strerror(number)):
        assembly(monkeypatch, OSError(number, os.strerror(number))).assemble()


@pytest.mark.parametrize("failure", [TypeError("a bug"), LookupError("a bug"), MemoryError()])
def test_an_error_of_the_agent_says_nothing_about_a_crash_state(
    monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    with pytest.raises(StartBroke, match="the layer crypt cannot be started: "):
        assembly(monkeypatch, failure).assemble()


@pytest.mark.parametrize("number", sorted(OF_CONTENTS))
def test_a_refusal_of_the_contents_is_an_answer(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    with pytest.raises(LayerFailed, match=f"the layer crypt does not start: .*{os.strerror(number)}"):
        assembly(monkeypatch, OSError(number, os.strerror(number))).assemble()


def test_before_a_crash_each_error_is_told_to_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (errno.EBUSY, errno.EINVAL):
        with pytest.raises(Denial, match=os.strerror(number)):
            assembly(monkeypatch, OSError(number, os.strerror(number)), crashed=False).assemble()


Step = str


def attempts(*steps: Step) -> tuple[Callable[[], str], list[str]]:
    """A function that goes through the steps (``started``, or an error: ``broke``, or the words of a refusal), and a
    list of what was done."""
    left, done = list(steps), []

    def attempt() -> str:
        done.append("try")
        step = left.pop(0)
        if step == "broke":
            raise StartBroke("it is busy")
        if step != "started":
            raise LayerFailed(step)
        return step

    return attempt, done


@pytest.mark.parametrize("steps", [["started"], ["broke", "started"], ["broke", "broke", "started"]])
def test_a_state_that_starts_is_looked_at(steps: list[Step]) -> None:
    attempt, done = attempts(*steps)
    assert started(attempt, lambda: done.append("undo")) == "started"
    assert done == [*["try", "undo"] * (len(steps) - 1), "try"]


@pytest.mark.parametrize("steps", [["no", "no"], ["broke", "no", "no"], ["no", "broke", "no"]])
def test_a_state_does_not_start_if_it_is_refused_twice(steps: list[Step]) -> None:
    attempt, done = attempts(*steps)
    with pytest.raises(LayerFailed, match="no"):
        started(attempt, lambda: done.append("undo"))
    assert done == [*["try", "undo"] * (len(steps) - 1), "try"]


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (["broke"] * MOST_STARTS, "it is busy"),
        (["no", "broke", "broke"], "it is busy"),
        (["broke", "broke", "no"], "it is busy"),
        (["no", "started"], "not at the first attempt: no"),
        (["no", "never"], "differ: no; never"),
    ],
)
def test_anything_else_is_no_answer(steps: list[Step], words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        started(attempts(*steps)[0], lambda: None)
