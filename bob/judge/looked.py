"""What was seen of a program's crash states, and what its checker said of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bob.crash.case import Case
from bob.observe.observation import Node
from bob.observe.observations import Observations
from bob.program.answer import CheckerAnswer

NOTHING_TOLD = (
    "the program told nothing on its standard output: no crash was tried after which something has to be durable"
)
"""What an answer says of such a program, as what is accepted then is no more than that the states are consistent."""


@dataclass(frozen=True, slots=True)
class Looked:
    """The crashes before which just ``told`` was told: their ``case``, what was ``observed``, and what the checker said
    by the number of the outcome, in ``checks`` runs. ``disagreed`` says of a checker that answered differently on the
    same tree."""

    told: bytes
    case: Case
    observed: Observations
    answers: Mapping[int, CheckerAnswer]
    checks: int = 0
    disagreed: str | None = None

    @property
    def accepted(self) -> tuple[int, ...]:
        """The outcomes that the checker accepts."""
        return tuple(outcome for outcome, answer in self.answers.items() if answer.consequence is None)

    def tree(self, outcome: int) -> Mapping[str, Node]:
        """What was found of an outcome."""
        return self.observed.findings.observation(outcome).tree or {}

    def control(self, which: int) -> Mapping[str, Node] | None:
        """The tree of the first control, or of the last (-1); None where it was not seen, or does not mount."""
        state = self.case.plan.controls[which]
        for seen in self.observed.states:
            if seen.state == state and seen.outcome is not None:
                observation = self.observed.findings.observation(seen.outcome)
                return observation.tree if observation.mounted else None
        return None
