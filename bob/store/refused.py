"""A workload of which nothing was seen, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bob.agent.loss import Cause, Loss
from bob.workload.operations import Workload
from bob.workload.plain import workload_from_json, workload_to_json
from bob.workload.steps import place_of


@dataclass(frozen=True, slots=True)
class Refused:
    """A workload that could not be recorded or observed, with the ``reason``. ``fall`` is how the kernel panicked or
    hung while it was recorded, twice; None where it did neither."""

    workload: Workload
    reason: str
    fall: Loss | None = None

    @classmethod
    def by_kernel(cls, workload: Workload, fall: Loss) -> Refused:
        """A workload at which the kernel panicked or hung: in which step, and in the kernel's words."""
        verb = "panicked" if fall.cause is Cause.PANICKED else "hung"
        words = " ".join(filter(None, ["the kernel", verb, place_of(fall.step, workload)]))
        return cls(workload, f"{words}: {fall.said}", fall)

    def to_json(self) -> dict[str, Any]:
        """The plain document (docs/formats.md, refused.json and lost.json)."""
        document = {"workload": workload_to_json(self.workload), "reason": self.reason}
        return document if self.fall is None else {**document, "fall": self.fall.to_json()}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Refused:
        """What a plain document says. Raises KeyError, TypeError or ValueError if a field is missing or wrong."""
        fall = document.get("fall")
        return cls(
            workload_from_json(document["workload"]),
            document["reason"],
            None if fall is None else Loss.from_json(fall),
        )
