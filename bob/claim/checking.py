"""The checker of a program accepts the crash state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from bob.claim.claim import Context, PropertyLookup, Refusal, View
from bob.observe.observation import Observation
from bob.program.answer import CheckerAnswer
from bob.program.program import Program, ProgramDocument
from bob.schema import decode, encode
from bob.story.decisive import decisive
from bob.story.timeline import CrashTimeline
from bob.workload.operations import Workload


@dataclass(frozen=True, slots=True)
class CheckerClaim:
    """After a crash before which it had told ``output``, the checker of ``program`` accepts what is there."""

    program: Program
    output: bytes

    kind = name = "checker"
    is_shown_by_the_tree = False
    operations: ClassVar[tuple[int, ...]] = ()
    no_shrinking: ClassVar[Refusal | None] = None
    no_export = Refusal("a program, and only what operations wrote can be exported", "bob replay --keep makes an image")

    @property
    def packages(self) -> tuple[str, ...]:
        return self.program.packages

    @property
    def title(self) -> str:
        return f"a crash state that the checker of {self.program.name} refuses"

    @property
    def asks(self) -> tuple[str, str]:
        said = self.output.decode(errors="replace").strip()
        after = f"The program had told: {said}" if said else "The program had told nothing yet."
        return "What is asked for", f"The checker of {self.program.name} accepts what a crash left. {after}"

    def headline(self, configuration: str) -> str:
        return f"{self.program.name} does not survive a crash on {configuration}"

    def broken(self, view: View, context: Context) -> str | None:
        del context
        answer = view.checked(self.program, self.output)
        return None if answer.consequence is None else evidence(answer)

    def kept(self, view: View, context: Context) -> bool:
        return self.broken(view, context) is None

    def sentence(self, line: CrashTimeline, context: Context, found: Observation | None) -> str:
        del context, found
        return f"{decisive(line)}, and the checker of {self.program.name} refuses what is left."

    def role(self, number: int) -> str:
        del number
        return ""

    def to_json(self) -> dict[str, Any]:
        return {
            "property": None,
            "probe": None,
            "question": None,
            "program": encode(ProgramDocument.of(self.program)),
            "told": self.output.decode("latin-1"),
        }


def evidence(answer: CheckerAnswer) -> str:
    """An answer that refuses, in a line."""
    assert answer.consequence is not None
    return f"{answer.consequence.words}: {answer.evidence}"


def read(document: Mapping[str, Any], workload: Workload, known: PropertyLookup) -> CheckerClaim | None:
    """The checker's claim of a witness; None where the witness is of another kind."""
    del workload, known
    if "program" not in document:
        return None
    return CheckerClaim(decode(ProgramDocument, document["program"]).program, document["told"].encode("latin-1"))
