"""What is done to a subject: operations, or a program. Whoever needs operations asks a work that has them."""

from __future__ import annotations

from typing import Protocol

from bob.workload.operations import Operation, Workload
from bob.workload.plain import WorkloadDocument


class Work(Protocol):
    """Something that can be recorded."""

    @property
    def name(self) -> str:
        """What documents call it."""

    @property
    def title(self) -> str:
        """What people call it."""

    @property
    def slug(self) -> str:
        """What folders are called after."""


def operations_of(work: Work) -> tuple[Operation, ...]:
    """Return its operations; none where a program does the work."""
    return work.operations if isinstance(work, Workload) else ()


def workload_in(work: Work) -> Workload:
    """Return ``work``, which is operations. Raises TypeError where a program does it."""
    if not isinstance(work, Workload):
        raise TypeError(f"{work.title} is no workload of operations")
    return work


def document_of(work: Work) -> WorkloadDocument:
    """Return what documents have of it: of a program its name, and no operations."""
    return WorkloadDocument.of(work if isinstance(work, Workload) else Workload(work.name, (), ()))
