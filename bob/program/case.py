"""The case of a program: it is cut by what the program had told, and has a transcript beside the blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bob.crash.case import Case
from bob.crash.plan import Plan
from bob.program.program import Program
from bob.program.transcript import Transcript, Window, windows


@dataclass(frozen=True, slots=True)
class ProgramCase(Case):
    """See :class:`Case`; ``transcript`` is what the ``recording`` has of the program itself."""

    work: Program
    transcript: Transcript

    @property
    def name(self) -> str:
        """What its answer is called: the configuration, and the pace."""
        return self.work.pace.of(self.subject.name)

    @property
    def windows(self) -> tuple[Window, ...]:
        """The windows that it is cut into, in order."""
        return windows(self.plan.trace, self.transcript.outputs)

    def within(self, window: Window) -> ProgramCase:
        """Return the case of the crashes in ``window``."""
        return replace(self, plan=Plan(window.trace, self.base, self.plan.model))
