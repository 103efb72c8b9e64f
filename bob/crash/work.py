"""The work that bob records. bob then examines the states that a crash during this work can leave. The work is either a
workload (a list of file system operations), or a program under test."""

from typing import Protocol

from bob.workload.operations import Operation, Workload
from bob.workload.plain import WorkloadDocument


class Work(Protocol):
    """Work that bob can record."""

    @property
    def name(self) -> str:
        """The name of the work in documents."""

    @property
    def title(self) -> str:
        """The name of the work for people."""

    @property
    def slug(self) -> str:
        """The name of the work in names of folders."""


def operations_of(work: Work) -> tuple[Operation, ...]:
    """Return the operations of ``work``; () if a program does the work."""
    return work.operations if isinstance(work, Workload) else ()


def workload_in(work: Work) -> Workload:
    """Return ``work`` itself, typed as a workload of operations. Raises TypeError if a program does the work."""
    if not isinstance(work, Workload):
        raise TypeError(f"{work.title} is not a workload of operations")
    return work


def document_of(work: Work) -> WorkloadDocument:
    """Return the JSON document of ``work``. If a program does the work, the document contains only the program's
    name."""
    return WorkloadDocument.of(work if isinstance(work, Workload) else Workload(work.name, (), ()))
