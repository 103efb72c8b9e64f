"""The claim that each crash state satisfies a user's expectation, a condition on the tree
(:mod:`bob.claim.expectation.language`). A *witness* is a document about one crash state that breaks a claim."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from bob.claim.claim import NO_PROPERTY, Claim, Context, PropertyLookup, Refusal, View
from bob.claim.expectation.evaluate import check, evidence, holds
from bob.claim.expectation.language import parse
from bob.workload.operations import Workload
from bob.workload.simulation import simulate


@dataclass(frozen=True, slots=True)
class ExpectationClaim(Claim):
    text: str

    kind = "expectation"
    is_shown_by_the_tree = True
    no_shrinking = Refusal("an expectation, which bob cannot shrink", "run bob try with fewer operations")

    @property
    def title(self) -> str:
        return f"«{' '.join(self.text.split())}» does not hold"

    @property
    def asks(self) -> tuple[str, str]:
        return "What was expected", self.text

    @property
    def breach(self) -> str:
        return self.title

    def broken(self, view: View, context: Context) -> str | None:
        history, test, seen = simulate(context.workload)[0], parse(self.text).test, view.observation
        return evidence(test, seen, history) if holds(test, seen, history) is False else None

    def kept(self, view: View, context: Context) -> bool:
        history = simulate(context.workload)[0]
        return holds(parse(self.text).test, view.observation, history) is True

    def to_json(self) -> dict[str, Any]:
        return {**NO_PROPERTY, "expectation": self.text}

    @classmethod
    def read(cls, document: Mapping[str, Any], workload: Workload, known: PropertyLookup) -> Self | None:
        """Return the expectation in the witness ``document``. Raise UsageError if the expectation does not fit the
        workload."""
        if (text := document.get("expectation")) is None:
            return None
        check(parse(text), simulate(workload)[0])
        return cls(text)
