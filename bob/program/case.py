"""The case of a program, with a transcript beside the blocks; the program's output cuts it into windows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bob.crash.case import Case
from bob.crash.plan import Plan
from bob.program.program import Program
from bob.program.transcript import Transcript, Window, windows


@dataclass(frozen=True, slots=True)
class ProgramCase(Case):
    """A case whose ``transcript`` is the program's side of the ``recording``."""

    work: Program
    transcript: Transcript

    @property
    def name(self) -> str:
        """The name of its answer: the configuration, and the pace."""
        return self.work.pace.of(self.subject.name)

    @property
    def windows(self) -> tuple[Window, ...]:
        return windows(self.plan.trace, self.transcript.outputs)

    def within(self, window: Window) -> ProgramCase:
        return replace(self, plan=Plan(window.trace, self.base, self.plan.model))
