"""A workload of which nothing was seen, and why."""

from __future__ import annotations

from dataclasses import dataclass

from bob.agent.loss import Loss, LossCause
from bob.schema import Document, adapt
from bob.workload.operations import Workload
from bob.workload.plain import WorkloadDocument
from bob.workload.steps import place_of


@dataclass(frozen=True, slots=True)
class RefusedWorkload:
    """A workload that could not be recorded or observed, with the ``reason``. ``fall`` is how the kernel panicked or
    hung while it was recorded, twice; None where it did neither."""

    workload: Workload
    reason: str
    fall: Loss | None = None

    @classmethod
    def by_kernel(cls, workload: Workload, fall: Loss) -> RefusedWorkload:
        """A workload at which the kernel panicked or hung: in which step, and in the kernel's words."""
        verb = "panicked" if fall.cause is LossCause.PANICKED else "hung"
        words = " ".join(filter(None, ["the kernel", verb, place_of(fall.step, workload)]))
        return cls(workload, f"{words}: {fall.said}", fall)


class RefusedDocument(Document, frozen=True):
    """The files refused.json and lost.json (docs/formats.md)."""

    workload: WorkloadDocument
    reason: str
    fall: Loss | None = None

    @classmethod
    def of(cls, refused: RefusedWorkload) -> RefusedDocument:
        """Return the document of what was ``refused``."""
        return adapt(cls, refused, workload=WorkloadDocument.of(refused.workload))

    @property
    def refused(self) -> RefusedWorkload:
        """What was refused. Raises UsageError for what is no operation."""
        return adapt(RefusedWorkload, self, workload=self.workload.workload)
