"""The file system can be mounted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from bob.claim.claim import BrokenClaim, Context, PropertyLookup, Refusal, View
from bob.claim.property.judged_case import JudgedCase
from bob.crash.state import CrashState
from bob.observe.easiest import easiest
from bob.observe.observation import Observation
from bob.story.decisive import decisive
from bob.story.timeline import CrashTimeline
from bob.workload.operations import Workload


@dataclass(frozen=True, slots=True)
class Mountable:
    """The kernel mounts the crash state without a repair."""

    kind = name = "unmountable"
    title = "a crash state that does not mount"
    asks = (
        "What is asked for",
        "No property speaks of it: where nothing can be mounted, there is no tree to look at.",
    )
    is_shown_by_the_tree = False
    operations: ClassVar[tuple[int, ...]] = ()
    packages: ClassVar[tuple[str, ...]] = ()
    no_shrinking: ClassVar[Refusal | None] = None
    no_export: ClassVar[Refusal | None] = None

    def headline(self, configuration: str) -> str:
        return f"{configuration} does not mount after a crash"

    def broken(self, view: View, context: Context) -> str | None:
        del context
        return None if view.observation.mounted else view.observation.summary

    def kept(self, view: View, context: Context) -> bool:
        del context
        return view.observation.mounted

    def asking(self, workload: Workload) -> Workload:
        return workload

    def easiest(self, bench: JudgedCase) -> BrokenClaim | None:
        found = easiest(bench.unmountable)
        if not found or found.shown.outcome is None:
            return None
        return BrokenClaim(found.shown.state, self, bench.observation(found.shown.outcome).error or "")

    def kept_in(self, bench: JudgedCase, state: CrashState) -> bool:
        return bench.satisfies(None, state)

    def sentence(self, line: CrashTimeline, context: Context, found: Observation | None) -> str:
        del context, found
        return f"{decisive(line)}, and the file system could not be mounted."

    def role(self, number: int) -> str:
        del number
        return ""

    def to_json(self) -> dict[str, Any]:
        return {"property": None, "probe": None, "question": None}


def read(document: Mapping[str, Any], workload: Workload, known: PropertyLookup) -> Mountable:
    """The claim of a witness that says of nothing else what it breaks."""
    del document, workload, known
    return Mountable()
