"""Under which circumstances a workload tries a clause."""

from __future__ import annotations

import pytest

from bob.apm.clauses import Clause, Durable, Ordered
from bob.apm.tried import Tried, how_tried, needed
from bob.claim.property.vocabulary import Call, What
from bob.workload.kinds import ChangeKind, Relation
from bob.workload.language import parse
from bob.workload.operations import Finish, Workload
from tests.apm.cases import graph_of_workload

ORDER = Ordered(ChangeKind.OVERWRITE, ChangeKind.APPEND, Relation.SAME_DIRECTORY)
TAKEN_ALONG = Durable(Call.FSYNC_FILE, What.OTHER_OVERWRITES)
SETUP = "write /a 0 4096; write /b 0 4096"


def tried(operations: str, finish: Finish, clause: Clause) -> frozenset[Tried]:
    workload = Workload("w", parse(SETUP), parse(operations), finish)
    return how_tried(workload, graph_of_workload(workload)).get(clause, frozenset())


@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        (Finish("natural", natural=True), {Tried.NATURAL}),
        (Finish("fsync", parse("fsync /b")), {Tried.SYNCED}),
        (Finish("fsync", parse("fsync /")), {Tried.SYNCED}),
        (Finish("fsync", parse("fsync /a")), set()),
        (Finish("sync", parse("sync")), set()),
    ],
)
def test_an_order_is_tried_by_natural_writeback_and_by_a_sync_of_the_later_one(
    finish: Finish, expected: set[Tried]
) -> None:
    assert tried("write /a 0 512; append /b 100", finish, ORDER) == expected
    assert needed(ORDER) == {Tried.NATURAL, Tried.SYNCED}


def test_an_overwrite_that_an_fsync_takes_along_is_tried_with_a_mapping_too() -> None:
    # reiserfs with data=journal takes along what write(2) wrote, and not what a mapping did.
    finish = Finish("fsync", parse("fsync /b"))
    assert Tried.MAPPED not in tried("write /a 0 512; append /b 100", finish, TAKEN_ALONG)
    assert Tried.MAPPED in tried("write /a 0 512 mmap; append /b 100", finish, TAKEN_ALONG)
    assert needed(TAKEN_ALONG) == {Tried.MAPPED}
