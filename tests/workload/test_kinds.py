"""What kinds of change operations make, and how two are related."""

from __future__ import annotations

import pytest

from bob.workload.kinds import ChangeKind, Relation, changes, relation
from bob.workload.language import parse
from bob.workload.operations import Workload
from bob.workload.simulation import simulate

SETUP = "mkdir /d; mkdir /e; write /d/a 0 8192; write /e/b 0 100; write /d/c 0 100"


def changes_of(operations: str) -> list[tuple[int, str]]:
    history, _setup, _performed = simulate(Workload("w", tuple(parse(SETUP)), tuple(parse(operations))))
    return [(change.number, change.kind.value) for change in changes(history)]


@pytest.mark.parametrize(
    ("operation", "kinds"),
    [
        ("write /d/a 0 4096", ["overwrite"]),
        ("append /d/a 10", ["append"]),
        ("write /d/a 8000 4096", ["overwrite", "append"]),
        ("write /d/a 9000 10", ["append"]),
        ("append /d/a 10 trunc", ["truncate-down", "append"]),
        ("write /d/new 0 10", ["create", "append"]),
        ("create /d/new", ["create"]),
        ("truncate /d/a 10", ["truncate-down"]),
        ("truncate /d/a 9000", ["truncate-up"]),
        ("truncate /d/a 8192", []),
        ("fallocate /d/a 0 10K", ["fallocate"]),
        ("fallocate /d/a 0 10K keep", []),
        ("fallocate /d/a 0 10K punch", ["zero"]),
        ("fallocate /d/a 8K 1K punch", []),
        ("fallocate /d/a 0 10K zero", ["zero", "fallocate"]),
        ("fallocate /d/a 0 4K zero", ["zero"]),
        ("fallocate /d/a 8K 4K zero", ["fallocate"]),
        ("fallocate /d/a 0 10K zero-keep", ["zero"]),
        ("fallocate /d/a 0 4K collapse", ["shift"]),
        ("fallocate /d/a 4K 8K insert", ["shift"]),
        ("mknod /d/p fifo", ["create"]),
        ("utimes /d 1000000000", ["setxattr"]),
        ("copy_file_range /d/a /e/b 0 4096", ["overwrite", "append"]),
        ("copy_file_range /d/a /e/b 4096 100", ["append"]),
        ("copy_file_range /d/a /e/new 0 10", ["create", "append"]),
        ("reflink /d/a /e/b", ["overwrite", "append"]),
        ("open /d/a as f", []),
        ("tmpfile /d as f", []),
        ("rename /d/a /e/a", ["rename"]),
        ("rename /d/a /e/b", ["rename-over"]),
        ("rename /d/a /e/a noreplace", ["rename"]),
        ("rename /d/a /e/b exchange", ["rename-over"]),
        ("rename /d /e exchange", ["rename-over"]),
        ("link /d/a /e/a", ["link"]),
        ("symlink a /e/a", ["symlink"]),
        ("unlink /d/a", ["unlink"]),
        ("mkdir /d/new", ["mkdir"]),
        ("setxattr /d/a user.x 4", ["setxattr"]),
        ("chmod /d 700", ["setxattr"]),
        ("chown /d/a 1:1", ["setxattr"]),
        ("fsync /d/a", []),
        ("sync", []),
    ],
)
def test_an_operation_is_changes_of_kinds(operation: str, kinds: list[str]) -> None:
    assert changes_of(operation) == [(1, kind) for kind in kinds]


@pytest.mark.parametrize(
    ("operations", "kinds"),
    [
        ("open /d/a as f; unlink /d/a; write f 0 10; truncate f 20; chmod f 600; close f",
         [(2, "unlink"), (3, "overwrite"), (4, "truncate-down"), (5, "setxattr")]),
        ("tmpfile /d as f; append f 10; link f /d/x; link f /d/y", [(2, "append"), (3, "create"), (4, "link")]),
        ("open /d as f; utimes f 1000000000", [(2, "setxattr")]),
    ],
)  # fmt: skip
def test_what_is_done_to_an_open_file(operations: str, kinds: list[tuple[int, str]]) -> None:
    assert changes_of(operations) == kinds


def test_every_kind_can_be_made() -> None:
    made = changes_of(
        "write /d/a 8000 4096; truncate /d/a 10; truncate /d/a 20; fallocate /d/a 0 8192; create /d/x; link /d/x /d/y;"
        "symlink t /d/z; unlink /d/x; rename /d/y /e/y; rename /e/y /e/b; mkdir /d/s; rmdir /d/s;"
        "setxattr /d/a user.x 4; fallocate /d/a 0 10 punch; fallocate /d/a 0 4096 collapse"
    )
    assert {kind for _number, kind in made} == {kind.value for kind in ChangeKind}


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ("write /d/a 0 10; append /d/a 10", Relation.SAME_FILE),
        ("append /d/a 10; rename /d/a /e/x", Relation.SAME_FILE),
        ("write /d/a 0 10; rename /d/c /d/a", Relation.SAME_FILE),
        ("write /d/a 0 10; write /d/c 0 10", Relation.SAME_DIRECTORY),
        ("create /d/x; unlink /d/c", Relation.SAME_DIRECTORY),
        ("mkdir /d/x; create /d/x/y", Relation.SAME_DIRECTORY),
        ("rename /d/a /e/x; create /e/y", Relation.SAME_DIRECTORY),
        ("write /d/a 0 10; write /e/b 0 10", Relation.OTHER_DIRECTORY),
        ("create /d/x; create /e/x", Relation.OTHER_DIRECTORY),
    ],
)
def test_two_changes_are_related_by_file_then_by_directory(operations: str, expected: Relation) -> None:
    history, _setup, _performed = simulate(Workload("w", tuple(parse(SETUP)), tuple(parse(operations))))
    one, other = changes(history)
    assert relation(one, other) is relation(other, one) is expected
