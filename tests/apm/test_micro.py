"""What a workload's operations change, one place at a time."""

from __future__ import annotations

import pytest

from bob.apm.micro import AttributeCell, DataCell, MicroKind, SizeCell, workings
from bob.workload.history import simulate
from bob.workload.language import parse
from bob.workload.operations import Workload

SETUP = "write /a 0 1000"


def of(operations: str) -> list[tuple[MicroKind, object]]:
    taken = workings(simulate(Workload("w", parse(SETUP), parse(operations)))[0])
    return [(one.kind, one.value) for one in taken.operations]


@pytest.mark.parametrize("mode", ["punch", "zero-keep"])
def test_a_range_of_zeros_is_written_piece_by_piece_and_no_size_is_changed(mode: str) -> None:
    """A piece ends at a sector, at the old end of the file, and where the range ends."""
    assert of(f"fallocate /a 100 1000 {mode}") == [
        (MicroKind.WRITE_BLOCK, bytes(412)),
        (MicroKind.WRITE_BLOCK, bytes(488)),
        (MicroKind.WRITE_BLOCK, bytes(24)),
        (MicroKind.WRITE_BLOCK, bytes(76)),
    ]


def test_where_it_grows_the_file_it_changes_the_size_too() -> None:
    kinds = of("fallocate /a 512 1000 zero")
    assert [value for kind, value in kinds if kind is MicroKind.CHANGE_FILE_SIZE] == [1512]
    assert sum(len(value) for kind, value in kinds if isinstance(value, bytes)) == 1000


def test_what_changes_nothing_that_can_be_read_is_no_micro_operation() -> None:
    assert of("fallocate /a 0 5000 keep") == []


def test_a_mode_and_an_owner_are_attributes() -> None:
    taken = workings(simulate(Workload("w", parse(SETUP), parse("chmod /a 600; chown /a 1:2")))[0])
    assert [(one.cell, one.value) for one in taken.operations] == [
        (AttributeCell(1, "mode"), b"600"),
        (AttributeCell(1, "owner"), b"1:2"),
    ]
    assert not any(isinstance(one.cell, DataCell | SizeCell) for one in taken.operations)
