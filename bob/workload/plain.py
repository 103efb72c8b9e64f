"""The documents of workloads and finishes (the ends of recordings) in run directories and witnesses (docs/formats.md).
They have each operation as a line of text (:mod:`bob.workload.language`)."""

from __future__ import annotations

from typing import Any

from bob.schema import Document, Number, adapt, encode
from bob.workload.language import parse_one, write_one
from bob.workload.operations import At, Finish, Operation, Workload
from bob.workload.pattern import PATTERN, UNSHADED_PATTERN


class FinishDocument(Document, frozen=True, kw_only=True):
    name: str
    operations: tuple[str, ...]
    natural: bool
    phase: Number

    @classmethod
    def of(cls, finish: Finish) -> FinishDocument:
        return adapt(cls, finish, operations=_texts(finish.operations))

    @property
    def finish(self) -> Finish:
        return adapt(Finish, self, operations=_operations(self.operations))


class WorkloadDocument(Document, frozen=True, kw_only=True):
    """The document of a workload. Old documents lack ``pattern``. ``at`` says when crashes may come."""

    name: str
    setup: tuple[str, ...]
    operations: tuple[str, ...]
    finish: FinishDocument
    at: At = At.ANY
    pattern: int = UNSHADED_PATTERN

    def __post_init__(self) -> None:
        if self.pattern not in (UNSHADED_PATTERN, PATTERN):
            raise ValueError(f"this version of bob does not know the data pattern {self.pattern!r}")

    @classmethod
    def of(cls, workload: Workload) -> WorkloadDocument:
        setup, operations = _texts(workload.setup), _texts(workload.operations)
        return adapt(cls, workload, setup=setup, operations=operations, finish=FinishDocument.of(workload.finish))

    @property
    def workload(self) -> Workload:
        """The workload. Raises UsageError for an unknown operation."""
        setup, operations = _operations(self.setup), _operations(self.operations)
        return adapt(Workload, self, setup=setup, operations=operations, finish=self.finish.finish)


def _texts(operations: tuple[Operation, ...]) -> tuple[str, ...]:
    return tuple(map(write_one, operations))


def _operations(texts: tuple[str, ...]) -> tuple[Operation, ...]:
    return tuple(map(parse_one, texts))


def workload_to_json(workload: Workload) -> Any:
    return encode(WorkloadDocument.of(workload))
