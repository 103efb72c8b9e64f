"""The case of a program: it is cut by the program's output, and has a transcript beside the blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bob.crash.case import Case
from bob.crash.plan import Plan
from bob.program.program import Program
from bob.program.transcript import Transcript, Window, windows


@dataclass(frozen=True, slots=True)
class ProgramCase(Case):
    """See :class:`Case`; ``transcript`` is the program's side of the ``recording``."""

    work: Program
    transcript: Transcript

    @property
    def name(self) -> str:
        """The name of its answer: the configuration, and the pace."""
        return self.work.pace.of(self.subject.name)

    @property
    def windows(self) -> tuple[Window, ...]:
        """Its windows, in order."""
        return windows(self.plan.trace, self.transcript.outputs)

    def within(self, window: Window) -> ProgramCase:
        """Return the case of the crashes in ``window``."""
        return replace(self, plan=Plan(window.trace, self.base, self.plan.model))
