"""The one sentence: what is there, and where what is missing was."""

from __future__ import annotations

import pytest

from bob.judge.idempotence import OF_RECOVERY
from bob.judge.rules import Question
from bob.report.story import role
from bob.story.sentence import sentence
from bob.story.timeline import Called, Event, Fate, Timeline, Written
from bob.workload.language import parse

OPERATIONS = parse("write /a 0 512; create /d/n")
ORDERED = Question((1,), 2)
FIRST = "«write /a 0 512», issued before it,"
COMMIT = "journal commit block of transaction 5"


def written(seconds: float, fate: Fate, what: str, kind: str, *operations: int, kept: str = "") -> Written:
    return Written(seconds, seconds + 0.001, 0, 1, 8, 1, "kworker/0:1", False, fate, kind, what, operations, kept)


def told(*events: Event, question: Question | None = ORDERED) -> str:
    calls = (Called(0.001, 0.002, 1), Called(0.003, 0.004, 2))
    return sentence(Timeline((*calls, *events), 40.0), OPERATIONS, question)


def data(seconds: float, fate: Fate, kept: str = "") -> Written:
    return written(seconds, fate, "data of operation 1 in /a", "data", 1, kept=kept)


COMMITTED = written(6.2, Fate.DURABLE, COMMIT, "journal")


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([COMMITTED], f"«create /d/n» was committed at 6.2 s while {FIRST} was still only in memory."),
        (
            [data(0.005, Fate.LOST), COMMITTED],
            f"was committed at 6.2 s while {FIRST} was still only in the disk's cache, sent at 5 ms.",
        ),
        (
            [COMMITTED, data(30.8, Fate.LOST)],
            f"was committed at 6.2 s; {FIRST} was sent to the disk only at 30.8 s, and was still in its cache.",
        ),
        ([COMMITTED, data(30.8, Fate.TORN, "unit 0")], "was torn as the disk wrote it, sent at 30.8 s."),
        (
            [written(0.4, Fate.KEPT, "inode table (inode 12: /d/n)", "metadata"), data(0.5, Fate.LOST)],
            f"came to be on the disk with the inode table (inode 12: /d/n) of 400 ms; {FIRST} "
            "was sent to the disk only at 500 ms, and was still in its cache.",
        ),
    ],
)  # fmt: skip
def test_an_order_that_was_broken(events: list[Event], words: str) -> None:
    assert told(*events).endswith(words)


def test_what_is_there_in_part() -> None:
    one = Question((1,))
    torn = told(data(0.5, Fate.TORN, "unit 0"), question=one)
    assert "the write of data of operation 1 in /a at 500 ms was torn (there: unit 0)" in torn
    assert "the sectors of its data, sent at 500 ms, were only in the disk's cache" in told(
        data(0.5, Fate.LOST), question=one
    )


def test_what_had_returned() -> None:
    after, itself = Question((1,), returned=2), Question((1,), returned=1)
    lost = data(0.005, Fate.LOST)
    still = "was still only in the disk's cache, sent at 5 ms."
    assert told(lost, question=after) == f"«create /d/n» had returned while {FIRST} {still}"
    assert told(lost, question=itself) == f"«write /a 0 512» had returned, but it {still}"
    assert [role(after, number) for number in (1, 2, 3)] == [
        "must be there once operation 2 had returned",
        "had returned",
        "",
    ]
    assert role(itself, 1) == "had returned"


def test_what_does_not_mount_and_what_recovery_does() -> None:
    lost = written(6.2, Fate.LOST, COMMIT, "journal")
    assert told(lost, question=None) == f"The {COMMIT} of 6.2 s was lost, and the file system could not be mounted."
    assert told(lost, question=OF_RECOVERY).startswith(f"The {COMMIT} of 6.2 s was lost as recovery was under way")
