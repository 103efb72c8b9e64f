"""The one sentence: what is there, and where what is missing was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bob.claim.claim import Claim
from bob.claim.expectation.expected import Expected
from bob.claim.mounting import Mountable
from bob.claim.property.of_property import OfProperty
from bob.claim.property.rules import Question
from bob.claim.recovery import Idempotent
from bob.claim.soundness import Sound
from bob.result import TroubleKind
from bob.story.timeline import Called, Event, Fate, Timeline, Written
from bob.workload.language import parse

OPERATIONS = parse("write /a 0 512; create /d/n")
ORDERED = Question((1,), 2)
FIRST = "«write /a 0 512», issued before it,"
COMMIT = "journal commit block of transaction 5"


def written(seconds: float, fate: Fate, what: str, kind: str, *operations: int, kept: str = "") -> Written:
    return Written(seconds, seconds + 0.001, 0, 1, 8, 1, "kworker/0:1", False, fate, kind, what, operations, kept)


def told(*events: Event, question: Question = ORDERED, claim: Claim | None = None) -> str:
    calls = (Called(0.001, 0.002, 1), Called(0.003, 0.004, 2))
    asked = claim or OfProperty("mine", question)
    return asked.sentence(Timeline((*calls, *events), 40.0), OPERATIONS)


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
            [written(17.4, Fate.DURABLE, "log record at 1/18 (inodes 134, 136: /e): agi; 2 btrees", "journal")],
            f"became durable with the log record at 1/18 of 17.4 s while {FIRST} was still only in memory.",
        ),
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
    assert [OfProperty("mine", after).role(number) for number in (1, 2, 3)] == [
        "must be there once operation 2 had returned",
        "had returned",
        "",
    ]
    assert OfProperty("mine", itself).role(1) == "had returned"


def test_what_does_not_mount_and_what_recovery_does() -> None:
    lost = decisive(written(6.2, Fate.LOST, COMMIT, "journal"))
    assert told(lost, claim=Mountable()) == f"The {COMMIT} of 6.2 s was lost, and the file system could not be mounted."
    assert told(lost, claim=Idempotent()).startswith(f"The {COMMIT} of 6.2 s was lost as recovery was under way")


def decisive(one: Written) -> Written:
    return replace(one, decides=True)


TABLE = "inode table (inode 12: /d/n)"


def test_the_write_that_an_expectation_hangs_on_is_named_and_no_other() -> None:
    """Once: "The superblock of 30.8 s was lost"."""
    superblock = written(30.8, Fate.LOST, "superblock", "superblock")
    line = Timeline((superblock, decisive(data(30.9, Fate.LOST))), 40.0)
    assert Expected("exists  /a").sentence(line, OPERATIONS) == (
        "The data of operation 1 in /a of 30.9 s was lost, and «exists /a» does not hold."
    )


def test_a_write_that_was_kept_can_be_the_one() -> None:
    """Once: "the commit block was lost"."""
    events = [written(0.3, Fate.LOST, COMMIT, "journal"), decisive(written(5.2, Fate.KEPT, TABLE, "metadata"))]
    assert told(*events, question=Question((2,))) == (
        f"When the power failed, the {TABLE} of 5.2 s was on the disk already, though not flushed: "
        "«create /d/n» is there only in part."
    )
    assert told(*events).endswith(
        f"{FIRST} is not there: the {TABLE} of 5.2 s was on the disk already, though not flushed."
    )


def test_a_block_without_a_name_is_told_by_its_place() -> None:
    """Once: "The unknown of 92.2 s was lost"."""
    event = decisive(written(92.2, Fate.LOST, "unknown", "unknown"))
    assert told(event, claim=Mountable()).startswith("The write of 512 bytes at sector 8 of 92.2 s was lost, and")


ASKED = [OfProperty("mine", one) for one in (ORDERED, Question((1,)), Question((2,), returned=2))]


@pytest.mark.parametrize("claim", [Mountable(), Idempotent(), Sound(TroubleKind.CHECKER), *ASKED])
def test_where_no_write_is_known_to_make_the_difference_none_is_blamed(claim: Claim) -> None:
    events = [
        written(0.3, Fate.LOST, COMMIT, "journal"),
        written(0.4, Fate.LOST, "superblock", "superblock"),
        written(5.2, Fate.KEPT, TABLE, "metadata"),
    ]
    text = told(*events, claim=claim)
    assert "2 were lost and 1 was on the disk (bob cannot say which of them makes the difference)" in text
    assert COMMIT not in text and "superblock" not in text
    assert f"{TABLE} of 5.2 s was on the disk" not in text


def test_where_several_would_do_they_are_named_and_no_choice_is_made() -> None:
    events = [decisive(written(k + 1.0, Fate.LOST, f"block {k}", "metadata")) for k in range(5)]
    assert told(*events[:2], claim=Mountable()) == (
        "The block 0 of 1.0 s was lost and the block 1 of 2.0 s was lost (bob cannot say which: any one of them "
        "taken back is enough), and the file system could not be mounted."
    )
    assert "the block 2 of 3.0 s was lost and 2 more like these (bob cannot say which" in told(
        *events, claim=Mountable()
    )


def test_where_nothing_was_lost() -> None:
    assert told(COMMITTED, claim=Mountable()).startswith("Nothing that the disk had been sent was lost, and")


def test_the_only_write_that_was_pending_is_named_and_not_blamed() -> None:
    assert told(written(6.2, Fate.LOST, COMMIT, "journal"), claim=Mountable()).startswith(
        f"Of the writes that were not flushed 1 was lost, the {COMMIT} of 6.2 s, and"
    )


def test_what_is_wrong_though_it_mounts_is_not_told_as_a_mount_that_failed() -> None:
    """Once: "and the file system could not be mounted", of a state that mounted."""
    lost = decisive(written(6.2, Fate.LOST, COMMIT, "journal"))
    assert told(lost, claim=Sound(TroubleKind.KERNEL_MESSAGE)) == (
        f"The {COMMIT} of 6.2 s was lost, and the crash state mounted, but the kernel warned."
    )
