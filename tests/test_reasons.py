"""The known reasons for differences from the published table, held against the witnesses of all references.

What each reason says of a witness is read here once more, from the witness itself and not by :mod:`bob.witness.traits`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from msgspec import structs

from bob.report.comparison.compare import Cell, Comparison, Kind, compare
from bob.report.comparison.sides import named_side, published_side
from bob.report.published import Direction, Reason, osdi14, osdi14_reasons
from bob.story.timeline import CallEvent, Fate
from bob.witness import document as witness
from bob.witness.document import Witness
from bob.workload.language import write_one
from bob.workload.operations import Fsync, How, Operation, Rename, SyncFileRange, Write
from claims import question_of

REFERENCES = sorted(
    path.parent
    for path in (Path(__file__).parent.parent / "reports" / "reference").glob("*/result.json*")
    if path.parent.name.partition("-")[0] not in ("durability", "pairs")  # of other rows than the published table's
)
LATE = 20
"""Seconds: before that nothing makes the flusher write data, and the journal and the log have committed."""


def later(found: Witness) -> Operation | None:
    number = question_of(found.claim).later
    return None if number is None else found.workload.operations[number - 1]


def survived(found: Witness) -> bool:
    """Whether the evidence tells that the later operation did."""
    return ") survived; " in found.evidence


def missing(found: Witness) -> tuple[int, Operation]:
    """The first operation of which the evidence tells that it is not there as it should be."""
    written = {number: found.workload.operations[number - 1] for number in question_of(found.claim).required}
    told = {number: f"operation {number} ({write_one(one)})" for number, one in written.items()}
    number = next(number for number in written if told[number] in found.evidence)
    return number, written[number]


def sent(found: Witness) -> list[float]:
    """When data of the operation was sent to the disk (seconds); of what is not there, where something is not."""
    own = [one for one in found.timeline.writes if missing(found)[0] in one.operations and one.kind == "data"]
    return [one.seconds for one in own if one.fate is Fate.LOST] or [one.seconds for one in own]


def called(found: Witness) -> float:
    """When the operation after the missing one was called (seconds)."""
    number = missing(found)[0]
    return next(one.seconds for one in found.timeline.events if isinstance(one, CallEvent) and one.number == number + 1)


def syncs(found: Witness) -> bool:
    """Whether a file or a directory is synced."""
    every = (*found.workload.operations, *found.workload.finish.operations)
    return any(isinstance(one, Fsync) or (isinstance(one, Write) and one.how is How.SYNC) for one in every)


def commits(found: Witness) -> list[float]:
    """When the commits, or records of a log, were sent that are durable (seconds)."""
    words = ("commit block", "log record", "superblock, generation")
    there = [one for one in found.timeline.writes if one.fate is Fate.DURABLE and one.seconds > 0]
    return [one.seconds for one in there if any(word in one.what for word in words)]


def is_late(found: Witness) -> bool:
    return all(seconds > LATE for seconds in sent(found)) and min(commits(found)) < LATE


def is_at_once(found: Witness) -> bool:
    return isinstance(missing(found)[1], Write) and max(sent(found)) < called(found)


def how(operation: Operation | None) -> How | None:
    return operation.how if isinstance(operation, Write) else None


def old_names(found: Witness) -> set[str]:
    return set(found.inodes[0])


def renamed_to(found: Witness) -> list[str]:
    return [one.new for one in found.workload.operations if isinstance(one, Rename)]


SAYS: Mapping[str, Callable[[Witness], bool]] = {
    "A later overwrite in place passes the journal": lambda found: (
        isinstance(write := later(found), Write) and write.offset is not None and syncs(found) and survived(found)
    ),
    "The new size is committed before the data": lambda found: "zeros (" in found.evidence and is_late(found),
    "Data in blocks that were already allocated is not ordered": lambda found: (
        "zeros (" in found.evidence and is_late(found) and how(later(found)) is How.PLAIN
    ),
    "The data of unwritten blocks is not ordered": lambda found: "zeros (" in found.evidence and is_at_once(found),
    "A rename over nothing does not allocate delayed blocks": lambda found: (
        "the size of" in found.evidence and is_late(found) and not old_names(found).intersection(renamed_to(found))
    ),
    "Appended data is delayed longer than the log": lambda found: "the size of" in found.evidence and is_late(found),
    "What a truncated file is given is sent when it is closed, and not waited for": lambda found: (
        ": 0 B instead of" in found.evidence
        and how(missing(found)[1]) is How.TRUNC
        and is_at_once(found)
        and survived(found)
    ),
    "O_SYNC syncs what it wrote, not what was appended before": lambda found: (
        how(later(found)) is How.SYNC and is_late(found)
    ),
    "fsync logs the file that it syncs, not what came before": lambda found: (
        syncs(found)
        and any("log tree" in one.what for one in found.timeline.writes if one.fate is Fate.DURABLE)
        and survived(found)
    ),
    "A commit does not write delayed data": lambda found: (
        not syncs(found) and min(commits(found)) < min(sent(found), default=found.timeline.crash)
    ),
    "A file in both directories after a rename": lambda found: (
        "still exists" in found.evidence and isinstance(missing(found)[1], Rename) and syncs(found)
    ),
    "The tail of an append is written early": lambda found: any(
        isinstance(one, SyncFileRange) for one in found.workload.operations
    ),
    "Freed blocks are given away before they are free": lambda found: "misplaced data of" in found.evidence,
    "A sync mount writes at once, and leaves it in the disk's cache": lambda found: bool(found.state.kept),
    "A sync mount does not write everything at once": lambda found: not found.state.kept and not found.state.torn,
    "A direct write does not go through the journal": lambda found: (
        how(missing(found)[1]) is How.DIRECT and bool(found.state.torn)
    ),
}
"""What each reason says of a witness, by its title: a new reason needs a line here."""


@cache
def against_the_published(folder: Path) -> Comparison:
    return compare(published_side(osdi14()), named_side(str(folder)), osdi14_reasons())


def explained(folder: Path) -> Iterator[tuple[Cell, Reason | None, Witness]]:
    """The violations that the published table does not have."""
    for cell in against_the_published(folder).of(Kind.NEWLY_FAILS):
        assert cell.b is not None and cell.b.cell is not None and cell.b.cell.witness is not None
        yield cell, cell.reason, witness.read(folder / cell.b.cell.witness)


@pytest.mark.parametrize("folder", REFERENCES, ids=lambda path: path.name)
def test_no_witness_contradicts_the_reason_beside_it(folder: Path) -> None:
    for cell, reason, found in explained(folder):
        where = f"{cell.configuration} {cell.name}: {reason and reason.title}"
        assert reason is not None and reason.title in SAYS, where
        assert SAYS[reason.title](found), f"{where}: {found.evidence}"


def test_every_difference_of_table_1_has_a_reason_of_its_own() -> None:
    [folder] = [path for path in REFERENCES if path.name.startswith("osdi14")]
    differing = against_the_published(folder).of(Kind.NEWLY_FAILS, Kind.NO_LONGER_FAILS)
    assert len(differing) == 57
    assert [cell.name for cell in differing if cell.reason is None or cell.reason.background] == []


def test_every_reason_of_a_violation_is_shown_by_some_witness() -> None:
    shown = {reason for folder in REFERENCES for _cell, reason, _found in explained(folder)}
    apart = {reason.title for reason in osdi14_reasons() if reason.shows and reason not in shown}
    assert apart == {"A sync mount does not write everything at once"}  # of disks without a cache: see test_published


def test_a_reason_for_another_witness_is_not_told() -> None:
    """What was told of ext4's and xfs' O_TRUNC before reasons were held against what was found."""
    [folder] = [path for path in REFERENCES if path.name.startswith("osdi14")]
    [wrong] = [reason for reason in osdi14_reasons() if reason.title.startswith("A later overwrite in place")]
    held = compare(published_side(osdi14()), named_side(str(folder)), [wrong])
    told = {(cell.configuration, cell.name) for cell in held.cells if cell.reason is wrong}
    spoken_of = {
        (cell.configuration, cell.name)
        for cell in held.of(Kind.NEWLY_FAILS)
        if wrong.speaks_of(cell.configuration, cell.name, Direction.FOUND)
    }
    assert {("ext4-ordered", "trunc-append-any"), ("xfs", "trunc-append-any")} <= spoken_of - told
    assert ("ext3-ordered", "trunc-append-any") in told
    loose = structs.replace(wrong, shows={})
    told = {cell.name for cell in compare(held.a, held.b, [loose]).cells if cell.reason is loose}
    assert "trunc-append-any" in told


@pytest.mark.parametrize("written", [None, "{}", "no JSON", '{"schema": "bob.witness/1"}'])
def test_where_no_witness_can_be_read_no_reason_of_a_violation_is_told(tmp_path: Path, written: str | None) -> None:
    [folder] = [path for path in REFERENCES if path.name.startswith("osdi14")]
    elsewhere = replace(named_side(str(folder)), folder=tmp_path)
    for cell in against_the_published(folder).of(Kind.NEWLY_FAILS) if written is not None else ():
        assert cell.b is not None and cell.b.cell is not None
        path = tmp_path / str(cell.b.cell.witness)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(written)
    held = compare(published_side(osdi14()), elsewhere, osdi14_reasons())
    assert {cell.reason for cell in held.of(Kind.NEWLY_FAILS) if cell.reason and not cell.reason.background} == set()
    assert {cell.reason.title for cell in held.of(Kind.NO_LONGER_FAILS) if cell.reason} == {
        "nolog does nothing any more"
    }


def test_what_is_like_another_configuration_says_the_same() -> None:
    [folder] = [path for path in REFERENCES if path.name.startswith("osdi14")]
    run = named_side(str(folder))
    columns = {name: dict(cells) for name, cells in run.columns.items()}
    columns["reiserfs-ordered"]["directory-op"] = columns["ext2"]["directory-op"]  # which fails
    held = compare(published_side(osdi14()), replace(run, columns=columns), osdi14_reasons())
    told = {cell.name for cell in held.of(Kind.NO_LONGER_FAILS) if cell.reason is not None}
    assert told == {"single-block-append", "multi-block-prefix-append", "append-append-same-file"}
    assert {cell.name for cell in held.of(Kind.NO_LONGER_FAILS)} == told | {"directory-op"}
