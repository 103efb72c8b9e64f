"""What was seen of a program's crash states, and what its checker said of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bob.crash.case import Case
from bob.observe.observed import Observed
from bob.program.answer import CheckerAnswer


@dataclass(frozen=True, slots=True)
class Looked:
    """The crashes before which just ``told`` was told: their ``case``, what was ``observed``, and what the checker said
    by the number of the outcome, in ``checks`` runs. ``disagreed`` says of a checker that answered differently on the
    same tree."""

    told: bytes
    case: Case
    observed: Observed
    answers: Mapping[int, CheckerAnswer]
    checks: int = 0
    disagreed: str | None = None

    @property
    def accepted(self) -> tuple[int, ...]:
        """The outcomes that the checker accepts."""
        return tuple(outcome for outcome, answer in self.answers.items() if answer.consequence is None)
