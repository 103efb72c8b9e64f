"""What a user expects of the tree after a crash (:mod:`bob.claim.expectation.language`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from bob.claim.claim import Context, PropertyLookup, Refusal, View
from bob.claim.expectation.evaluate import check, evidence, holds
from bob.claim.expectation.language import parse
from bob.observe.observation import Observation
from bob.story.decisive import decisive
from bob.story.timeline import CrashTimeline
from bob.workload.operations import Workload
from bob.workload.simulation import simulate


@dataclass(frozen=True, slots=True)
class ExpectationClaim:
    """``text`` holds, in the language of expectations."""

    text: str

    kind = name = "expectation"
    is_shown_by_the_tree = True
    operations: ClassVar[tuple[int, ...]] = ()
    packages: ClassVar[tuple[str, ...]] = ()
    no_shrinking = Refusal(
        "an expectation, and bob shrinks those of properties", "bob try answers for fewer operations"
    )
    no_export: ClassVar[Refusal | None] = None

    @property
    def title(self) -> str:
        return f"«{parse(self.text).line}» does not hold"

    @property
    def asks(self) -> tuple[str, str]:
        return "What was expected", self.text

    def headline(self, configuration: str) -> str:
        return f"{self.title} on {configuration}"

    def broken(self, view: View, context: Context) -> str | None:
        history, test, seen = simulate(context.workload)[0], parse(self.text).test, view.observation
        return evidence(test, seen, history) if holds(test, seen, history) is False else None

    def kept(self, view: View, context: Context) -> bool:
        history = simulate(context.workload)[0]
        return holds(parse(self.text).test, view.observation, history) is True

    def sentence(self, line: CrashTimeline, context: Context, found: Observation | None) -> str:
        del context, found
        return f"{decisive(line)}, and «{' '.join(self.text.split())}» does not hold."

    def role(self, number: int) -> str:
        del number
        return ""

    def to_json(self) -> dict[str, Any]:
        return {"property": None, "probe": None, "question": None, "expectation": self.text}


def read(document: Mapping[str, Any], workload: Workload, known: PropertyLookup) -> ExpectationClaim | None:
    """The expectation of a witness; None where it is of none. Raises UsageError for what cannot be expected of the
    workload."""
    del known
    if (text := document.get("expectation")) is None:
        return None
    check(parse(text), simulate(workload)[0])
    return ExpectationClaim(text)
