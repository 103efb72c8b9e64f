"""File data of a workload in writes to the disk. The files of a workload are filled with a pattern that says which
operation wrote it. So bob recognises the data sector by sector."""

from collections.abc import Sequence

from bob.blocks.owners import BlockOwner
from bob.blocks.parts import BlockKind, BlockPiece, DataRun, WritePart, owned, unknown
from bob.trace.model import SECTOR_BYTES
from bob.workload.pattern import CELL_BYTES, FIRST_SETUP_NUMBER, author, operations_in


def data_part(written: bytes, sector: int, place: int | None) -> WritePart | None:
    """Return a part of a write that says which data of the workload the bytes ``written`` have, or None if they have no
    such data. ``written`` is a piece of the write, from its sector ``sector`` on. ``place`` is the number of the block
    that the bytes belong to (None: unknown). bob later uses it to find the file that owns the block."""
    if not any(written):
        return None
    spans: dict[int, list[DataRun]] = {}
    for start in range(0, len(written), SECTOR_BYTES):
        here = sector + start // SECTOR_BYTES
        for operation in _operations(written[start : start + SECTOR_BYTES]):
            runs = spans.setdefault(operation, [])
            if runs and runs[-1].last == here - 1:
                runs[-1] = DataRun(operation, runs[-1].first, here)
            else:
                runs.append(DataRun(operation, here, here))
    found = tuple(run for _operation, runs in sorted(spans.items()) for run in runs)
    return WritePart(BlockKind.DATA, "data", place=place, runs=found, role="data") if found else None


def writers_of(data: bytes) -> str:
    """Return words that name the operations whose data is in a metadata block, such as "operation 3". The result is
    empty for a block without data of operations."""
    numbers = operations_in(data)
    return operation_words([number for number in numbers if number < FIRST_SETUP_NUMBER] or list(numbers))


def operation_words(operations: Sequence[int]) -> str:
    """Return words for several operations: "operations 3, 5 and initial data"."""
    own = [str(number) for number in sorted(set(operations)) if number < FIRST_SETUP_NUMBER]
    words = [f"operation{'s' * (len(own) > 1)} {', '.join(own)}"] if own else []
    return " and ".join(words + ["initial data"] * any(number >= FIRST_SETUP_NUMBER for number in operations))


def rest_part(written: bytes, place: int) -> WritePart:
    """Return the part of a write that consists of one block of a file, without data of the workload. The part is named
    "zeros" if all bytes ``written`` to the block are zero, and otherwise "data block". ``place`` is the number of the
    block."""
    return WritePart(BlockKind.DATA, "data block" if any(written) else "zeros", place=place, role="data")


def owned_part(piece: BlockPiece, owner: BlockOwner | None) -> WritePart:
    """Return the part of a write that consists of ``piece``, one block whose content bob does not recognise. The part
    is named after the block's role in the file that owns the block. If ``owner`` is None, the part
    remains unknown."""
    if owner is not None and owner.role == "data":
        return rest_part(piece.written, piece.block)
    return owned(unknown(piece.block), owner)


def _operations(sector: bytes) -> frozenset[int]:
    numbers = operations_in(sector) or _beginning(sector)
    return frozenset(min(number, FIRST_SETUP_NUMBER) for number in numbers)


def _beginning(sector: bytes) -> frozenset[int]:
    """Return the operation whose data the sector has, for a file of less than 16 bytes. Such a file is shorter than one
    *cell* of the pattern that operations write, so it is recognised by the beginning of the cell. The sector has the
    file's bytes, then zeros."""
    text = sector.rstrip(b"\0")
    number = author(text, 0) if 5 <= len(text) < CELL_BYTES else None
    return frozenset() if number is None else frozenset({number})
