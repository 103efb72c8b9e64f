"""A classification of operations for Table 1 (bob's main table of properties). It distinguishes overwrites, appends
and directory operations. Each write has a *span*, which says whether it stays inside one sector or one block."""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from bob.trace.model import SECTOR_BYTES
from bob.workload import operations as ops
from bob.workload.history import History

BLOCK_BYTES = 4096  # bytes in a block, as the rows of Table 1 mean it


class Effect(StrEnum):
    OVERWRITE = "overwrite"
    APPEND = "append"
    TRUNCATING_APPEND = "truncating-append"
    DIRECTORY = "directory"
    OTHER = "other"


class Span(StrEnum):
    """The reach of a write: inside one sector, inside one block, or over several blocks."""

    SECTOR = "sector"
    BLOCK = "block"
    BLOCKS = "blocks"


@dataclass(frozen=True, slots=True)
class ClassifiedOperation:
    number: int
    effect: Effect
    span: Span | None = None
    thing: int | None = None


@lru_cache(maxsize=8)
def subjects(history: History) -> tuple[ClassifiedOperation, ...]:
    """Return every operation of ``history`` that changes the file system, in program order."""
    return tuple(
        _classify(history, number, operation)
        for number, operation in enumerate(history.operations, start=1)
        if not isinstance(operation, ops.CHANGELESS_OPERATIONS)
    )


def _classify(history: History, number: int, operation: ops.Operation) -> ClassifiedOperation:
    if isinstance(operation, ops.DIRECTORY_OPERATIONS):
        return ClassifiedOperation(number, Effect.DIRECTORY)
    if not isinstance(operation, ops.Write):
        return ClassifiedOperation(number, Effect.OTHER)
    thing, offset, length = history.data[number]
    was = history.steps[number - 1].inodes.get(thing)
    size = len(was.content) if was is not None else 0
    last = offset + length - 1
    span = Span.BLOCKS
    if offset // SECTOR_BYTES == last // SECTOR_BYTES:
        span = Span.SECTOR
    elif offset // BLOCK_BYTES == last // BLOCK_BYTES:
        span = Span.BLOCK
    if operation.how is ops.How.TRUNC:
        return ClassifiedOperation(number, Effect.TRUNCATING_APPEND, span, thing)
    if offset + length <= size:
        return ClassifiedOperation(number, Effect.OVERWRITE, span, thing)
    # A write over the end of a file is neither an overwrite nor an append. A write that makes its file is both a
    # directory operation and an append, and its half-done effects belong to no row of the table.
    appends = offset == size and was is not None
    return ClassifiedOperation(number, Effect.APPEND if appends else Effect.OTHER, span, thing)
