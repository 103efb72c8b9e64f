from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from bob.claim.claim import NO_PROPERTY, Claim, Context, PropertyLookup, Refusal, View
from bob.program.answer import CheckerAnswer
from bob.program.program import Program, ProgramDocument
from bob.schema import decode, encode
from bob.workload.operations import Workload


@dataclass(frozen=True, slots=True)
class CheckerClaim(Claim):
    """The claim that the checker of ``program`` accepts the disk after a crash. A checker is a command that looks at
    the program's files. ``output`` is everything that the program had printed before the crash."""

    program: Program
    output: bytes

    kind = "checker"
    no_export = Refusal("a program; bob exports only what operations wrote", "bob replay --keep makes a disk image")

    @property
    def packages(self) -> tuple[str, ...]:
        return self.program.world_packages

    @property
    def title(self) -> str:
        return f"a crash state that the checker of {self.program.name} refuses"

    @property
    def asks(self) -> tuple[str, str]:
        said = self.output.decode(errors="replace").strip()
        after = f"The program's output before it: {said}" if said else "The program had not written any output yet."
        return "What is asked for", f"The checker of {self.program.name} accepts the disk after the crash. {after}"

    @property
    def breach(self) -> str:
        return f"the checker of {self.program.name} refuses what the crash left"

    def headline(self, configuration: str) -> str:
        return f"{self.program.name} does not survive a crash on {configuration}"

    def broken(self, view: View, context: Context) -> str | None:
        answer = view.checked(self.program, self.output)
        return None if answer.consequence is None else evidence(answer)

    def kept(self, view: View, context: Context) -> bool:
        return self.broken(view, context) is None

    def to_json(self) -> dict[str, Any]:
        program = encode(ProgramDocument.of(self.program))
        return {**NO_PROPERTY, "program": program, "told": self.output.decode("latin-1")}

    @classmethod
    def read(cls, document: Mapping[str, Any], workload: Workload, known: PropertyLookup) -> Self | None:
        if "program" not in document:
            return None
        return cls(decode(ProgramDocument, document["program"]).program, document["told"].encode("latin-1"))


def evidence(answer: CheckerAnswer) -> str:
    assert answer.consequence is not None
    return f"{answer.consequence.words}: {answer.evidence}"
