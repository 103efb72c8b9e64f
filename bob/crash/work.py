"""Work on a file system: operations, or a program."""

from typing import Protocol

from bob.workload.operations import Operation, Workload
from bob.workload.plain import WorkloadDocument


class Work(Protocol):
    """Something that can be recorded."""

    @property
    def name(self) -> str:
        """The name in documents."""

    @property
    def title(self) -> str:
        """The name for people."""

    @property
    def slug(self) -> str:
        """The name of folders."""


def operations_of(work: Work) -> tuple[Operation, ...]:
    """Return the operations of ``work``; () if a program does it."""
    return work.operations if isinstance(work, Workload) else ()


def workload_in(work: Work) -> Workload:
    """Return ``work`` as operations. Raises TypeError if a program does it."""
    if not isinstance(work, Workload):
        raise TypeError(f"{work.title} is not a workload of operations")
    return work


def document_of(work: Work) -> WorkloadDocument:
    """Return the document of ``work``; for a program only the name."""
    return WorkloadDocument.of(work if isinstance(work, Workload) else Workload(work.name, (), ()))
