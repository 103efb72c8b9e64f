"""The one sentence that sums a crash up, from its time line and the question that it answers wrongly.

It says two things in the words of the time line: how what is there became durable, or came to be on the medium; and
where what is not there was when the power failed. It claims no more than the time line shows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bob.judge.rules import Question
from bob.story.timeline import Called, Fate, Timeline, Written
from bob.workload.language import write_one
from bob.workload.operations import Operation

JOURNAL, METADATA = "journal", "metadata"


def sentence(
    line: Timeline, operations: Sequence[Operation], question: Question | None, expectation: str | None = None
) -> str:
    """What happened, in one sentence; ``question`` is the one that is answered wrongly, ``expectation`` what does not
    hold; where both are None, nothing mounts."""
    if expectation is not None:
        return f"{_fates(line)}, and «{' '.join(expectation.split())}» does not hold."
    if question is None:
        return f"{_fates(line)}, and the file system could not be mounted."
    if question.beside:
        return f"{_fates(line)}, and what no operation was to change is not as it was."
    if not question.required:
        return f"{_fates(line)} as recovery was under way, and the next recovery did not come to the same."
    if question.returned is not None:
        (number,) = question.required
        if number == question.returned:
            return f"{_name(operations, number)} had returned, but it {_still(line, operations, number)}."
        returned, missing = _name(operations, question.returned), f"{_name(operations, number)}, issued before it,"
        return f"{returned} had returned while {missing} {_still(line, operations, number)}."
    if question.later is None:
        (number,) = question.required
        where = _where(line, operations, number)
        return f"When the power failed, {where}: {_name(operations, number)} is there only in part."
    lost = question.required[0]
    there, missing = _name(operations, question.later), f"{_name(operations, lost)}, issued before it,"
    how, since = _how(line, question.later)
    sent = _sent(line, lost)
    if sent is not None and sent.fate is Fate.LOST and since is not None and sent.seconds > since:
        return f"{there} {how}; {missing} was sent to the disk only at {_at(sent.seconds)}, and was still in its cache."
    return f"{there} {how} while {missing} {_still(line, operations, lost)}."


def _name(operations: Sequence[Operation], number: int) -> str:
    return f"«{write_one(operations[number - 1])}»"


def _how(line: Timeline, number: int) -> tuple[str, float | None]:
    """How operation ``number`` came to be on the medium, and when that was sent there (seconds)."""
    called = next((event for event in line.events if isinstance(event, Called) and event.number == number), None)
    began = called.seconds if called else 0.0
    there = [one for one in line.writes if one.fate is not Fate.LOST and one.seconds >= began]
    commits = [one for one in there if one.kind == JOURNAL and "commit" in one.what]
    own = [one for one in there if number in one.operations and one.kind != JOURNAL]
    if commits and commits[0].fate is Fate.DURABLE:
        return f"was committed at {_at(commits[0].seconds)}", commits[0].seconds
    if commits:
        return f"came to be on the disk with the {commits[0].what} of {_at(commits[0].seconds)}", commits[0].seconds
    for one in (*own, *(one for one in there if one.kind in (JOURNAL, METADATA))):
        verb = "became durable" if one.fate is Fate.DURABLE else "came to be on the disk"
        return f"{verb} with the {one.what} of {_at(one.seconds)}", one.seconds
    return "was already there", None


def _sent(line: Timeline, number: int) -> Written | None:
    """The first write with data of operation ``number`` that is not there as it should be."""
    own = (one for one in line.writes if number in one.operations)
    return next((one for one in own if one.fate in (Fate.LOST, Fate.TORN)), None)


def _still(line: Timeline, operations: Sequence[Operation], number: int) -> str:
    """Where the data of operation ``number``, or what it changed, was instead."""
    own = [one for one in line.writes if number in one.operations]
    if first := _sent(line, number):
        what = "was torn as the disk wrote it" if first.fate is Fate.TORN else "was still only in the disk's cache"
        return f"{what}, sent at {_at(first.seconds)}"
    had = "had its data written, but " if own else ""
    if commits := _lost_commits(line):
        return f"{had}was not committed: the {commits[0].what}, sent at {_at(commits[0].seconds)}, was lost"
    if lost := _about(line, operations, number, Fate.LOST):
        return f"{had}was not in the metadata: the {lost[0].what}, sent at {_at(lost[0].seconds)}, was lost"
    return f"{had}no metadata that would show them" if own else "was still only in memory"


def _where(line: Timeline, operations: Sequence[Operation], number: int) -> str:
    """Which writes with the data of operation ``number``, or with what it changed, are there, and which not."""
    own = [one for one in line.writes if number in one.operations]
    there = sum(one.sectors for one in own if one.fate in (Fate.DURABLE, Fate.KEPT))
    torn = [one for one in own if one.fate is Fate.TORN]
    lost = sum(one.sectors for one in own if one.fate is Fate.LOST)
    if torn:
        return f"the write of {torn[0].what} at {_at(torn[0].seconds)} was torn (there: {torn[0].kept})"
    if there and lost:
        return f"of the sectors of its data {there} were on the disk and {lost} only in the disk's cache"
    if own and lost:
        return f"the sectors of its data, sent at {_at(own[0].seconds)}, were only in the disk's cache"
    data = "its data was on the disk, but " if own else ""
    if missing := (_lost_commits(line) or _about(line, operations, number, Fate.LOST, Fate.TORN)):
        return f"{data}the {missing[0].what}, sent at {_at(missing[0].seconds)}, was {missing[0].fate.value}"
    if own:
        return f"{data}not all of the metadata that would show them"
    if shown := _about(line, operations, number, Fate.DURABLE, Fate.KEPT):
        block = f"the {shown[-1].what}, sent at {_at(shown[-1].seconds)}, was on the disk"
        return f"{block}, and the rest of what the operation changes was not"
    return "part of it was still only in memory"


def _lost_commits(line: Timeline) -> list[Written]:
    return [one for one in line.writes if one.fate is Fate.LOST and one.kind == JOURNAL and "commit" in one.what]


def _about(line: Timeline, operations: Sequence[Operation], number: int, *fates: Fate) -> list[Written]:
    """The blocks of metadata and journal with one of these fates that speak of a name in operation ``number``."""
    words = [word for word in write_one(operations[number - 1]).split() if word.startswith("/")]
    names = {name for word in words for name in (word, word.rpartition("/")[2]) if name}
    return [
        one
        for one in line.writes
        if one.fate in fates and one.kind in (JOURNAL, METADATA) and names & set(re.findall(r"[^\s:,;()]+", one.what))
    ]


def _fates(line: Timeline) -> str:
    torn = [one for one in line.writes if one.fate is Fate.TORN]
    lost = [one for one in line.writes if one.fate is Fate.LOST]
    if torn:
        return f"The {torn[0].what} of {_at(torn[0].seconds)} was torn"
    if lost:
        return f"The {lost[0].what} of {_at(lost[0].seconds)} was lost"
    return "Nothing was lost"


def _at(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"
