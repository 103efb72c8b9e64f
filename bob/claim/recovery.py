"""A crash during recovery: the next recovery comes to the same (:mod:`bob.claim.idempotence`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from bob.claim.claim import Context, PropertyLookup, Refusal, View
from bob.claim.idempotence import IDEMPOTENT, during_recovery
from bob.claim.property.declaration import PropertyDocument
from bob.observe.observation import Observation
from bob.schema import encode
from bob.story.decisive import decisive
from bob.story.timeline import CrashTimeline
from bob.workload.operations import Workload


@dataclass(frozen=True, slots=True)
class Idempotent:
    """Recovery that a crash interrupts comes to what recovery without a crash comes to."""

    kind = "recovery"
    name = title = IDEMPOTENT.name
    asks = (f"What {IDEMPOTENT.name} asks for", IDEMPOTENT.meaning)
    is_shown_by_the_tree = True
    operations: ClassVar[tuple[int, ...]] = ()
    packages: ClassVar[tuple[str, ...]] = ()
    no_shrinking = Refusal("a crash during recovery", "in that there is nothing to leave out")
    no_export = Refusal("a crash during recovery", "only what operations wrote can be exported")

    def headline(self, configuration: str) -> str:
        return f"{self.name} is violated on {configuration}"

    def broken(self, view: View, context: Context) -> str | None:
        del context
        return during_recovery(view.undisturbed(), view.observation) if view.observation.mounted else None

    def kept(self, view: View, context: Context) -> bool:
        return view.observation.mounted and self.broken(view, context) is None

    def sentence(self, line: CrashTimeline, context: Context, found: Observation | None) -> str:
        del context, found
        return f"{decisive(line)} as recovery was under way, and the next recovery did not come to the same."

    def role(self, number: int) -> str:
        del number
        return ""

    def to_json(self) -> dict[str, Any]:
        return {
            "property": self.name,
            "probe": encode(PropertyDocument.of(IDEMPOTENT)),
            "question": {"required": [], "later": None},
        }


def read(document: Mapping[str, Any], workload: Workload, known: PropertyLookup) -> Idempotent | None:
    """The claim of a witness; None where the witness is of another kind."""
    del workload, known
    return Idempotent() if document["property"] == IDEMPOTENT.name else None
