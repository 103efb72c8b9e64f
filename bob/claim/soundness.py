"""A crash state that mounts is well: no warning of the kernel's, and no fault that a checker or a removal finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from bob.claim.claim import Context, PropertyLookup, Refusal, View
from bob.observe.observation import Observation
from bob.observe.observations import TroubleKind
from bob.story.decisive import decisive
from bob.story.timeline import CrashTimeline
from bob.workload.operations import Workload


@dataclass(frozen=True, slots=True)
class Sound:
    """There is no trouble of this kind."""

    trouble: TroubleKind

    kind = "trouble"
    is_shown_by_the_tree = False
    operations: ClassVar[tuple[int, ...]] = ()
    packages: ClassVar[tuple[str, ...]] = ()
    no_export: ClassVar[Refusal | None] = None

    @property
    def name(self) -> str:
        return self.trouble.value

    @property
    def title(self) -> str:
        return f"a crash state that {self.trouble.said}"

    @property
    def asks(self) -> tuple[str, str]:
        return "What is asked for", "No property speaks of it: what mounts is to be well, whatever is in it."

    @property
    def no_shrinking(self) -> Refusal | None:
        return Refusal(
            f"a state that {self.trouble.said}", "bob shrinks those of properties, and of states that do not mount"
        )

    def headline(self, configuration: str) -> str:
        return f"{self.title} on {configuration}"

    def broken(self, view: View, context: Context) -> str | None:
        del context
        return next((one.words for one in view.complaints() if one.kind == self.trouble), None)

    def kept(self, view: View, context: Context) -> bool:
        return view.observation.mounted and self.broken(view, context) is None

    def sentence(self, line: CrashTimeline, context: Context, found: Observation | None) -> str:
        del context, found
        return f"{decisive(line)}, and the crash state {self.trouble.said}."

    def role(self, number: int) -> str:
        del number
        return ""

    def to_json(self) -> dict[str, Any]:
        return {"property": None, "probe": None, "question": None, "trouble": self.trouble.value}


def read(document: Mapping[str, Any], workload: Workload, known: PropertyLookup) -> Sound | None:
    """The claim of a witness; None where the witness is of another kind. ValueError for an unknown trouble."""
    del workload, known
    return Sound(TroubleKind(document["trouble"])) if "trouble" in document else None
