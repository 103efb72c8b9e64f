"""Which operations of a workload a property speaks of: overwrites, appends, directory operations, and of what span."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from bob.trace.model import SECTOR_BYTES
from bob.workload import operations as ops
from bob.workload.history import History

BLOCK_BYTES = 4096
"""The file-system block that Table 1 means by a block, in bytes."""


class Effect(StrEnum):
    """What an operation does, in the words of Table 1."""

    OVERWRITE = "overwrite"
    APPEND = "append"
    TRUNCATING_APPEND = "truncating-append"
    DIRECTORY = "directory"
    OTHER = "other"


class Span(StrEnum):
    """How far a write reaches: inside one sector, inside one block (over several sectors), over several blocks."""

    SECTOR = "sector"
    BLOCK = "block"
    BLOCKS = "blocks"


@dataclass(frozen=True, slots=True)
class ClassifiedOperation:
    """An operation classified. ``number`` counts from 1; ``thing`` is the file that a write goes to."""

    number: int
    effect: Effect
    span: Span | None = None
    thing: int | None = None


@lru_cache(maxsize=8)
def subjects(history: History) -> tuple[ClassifiedOperation, ...]:
    """Every operation of ``history`` that changes the file system, classified, in program order."""
    found = []
    for number, operation in enumerate(history.operations, start=1):
        if isinstance(operation, ops.CHANGELESS_OPERATIONS):
            continue
        found.append(_classify(history, number, operation))
    return tuple(found)


def _classify(history: History, number: int, operation: ops.Operation) -> ClassifiedOperation:
    if isinstance(operation, ops.DIRECTORY_OPERATIONS):
        return ClassifiedOperation(number, Effect.DIRECTORY)
    if not isinstance(operation, ops.Write):
        return ClassifiedOperation(number, Effect.OTHER)
    thing, offset, length = history.data[number]
    was = history.steps[number - 1].inodes.get(thing)
    size = len(was.content) if was is not None else 0
    span = _span(offset, length)
    if operation.how is ops.How.TRUNC:
        return ClassifiedOperation(number, Effect.TRUNCATING_APPEND, span, thing)
    if offset + length <= size:
        return ClassifiedOperation(number, Effect.OVERWRITE, span, thing)
    # A write over the end of a file is neither an overwrite nor an append; one that makes its file is both a directory
    # operation and an append, and what it leaves halfway belongs to no row of the table.
    appends = offset == size and was is not None
    return ClassifiedOperation(number, Effect.APPEND if appends else Effect.OTHER, span, thing)


def _span(offset: int, length: int) -> Span:
    last = offset + length - 1
    if offset // SECTOR_BYTES == last // SECTOR_BYTES:
        return Span.SECTOR
    return Span.BLOCK if offset // BLOCK_BYTES == last // BLOCK_BYTES else Span.BLOCKS
