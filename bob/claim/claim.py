"""What every kind of claim can do.

A claim says of one crash state whether the state breaks it, and by what evidence. It has a title, it can be written
down, and it can be read back (:mod:`bob.claim.kinds`). Reports, replay, shrinking and witnesses know claims, and no
kinds of claims.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from bob.claim.property.judged_case import JudgedCase
from bob.claim.property.rules import Property
from bob.crash.case import Case
from bob.crash.state import CrashState
from bob.crash.work import Work, workload_in
from bob.observe.observation import Observation
from bob.observe.observations import Worded
from bob.program.answer import CheckerAnswer
from bob.program.program import Program
from bob.story.timeline import CrashTimeline
from bob.trace.recording import Statuses
from bob.workload.operations import Workload

NEWER = "a later bob may have written it: show it with that one"
"""A hint for what this bob does not know."""
PropertyLookup = Callable[[str], Property | None]
"""The property of a name; None for one that this bob does not ship."""


@dataclass(frozen=True, slots=True)
class Context:
    """What is known of a crash state beside what a guest shows of it: the work, and what stat said of each name before
    and after the operations (inode numbers, and all else)."""

    work: Work
    inodes: tuple[Mapping[str, int], Mapping[str, int]]
    statuses: tuple[Statuses, Statuses]

    @property
    def workload(self) -> Workload:
        """The operations that were done. Raises TypeError where a program did the work."""
        return workload_in(self.work)


def context_of(case: Case) -> Context:
    """What is known of all crash states of a case."""
    return Context(case.work, case.inodes, case.statuses)


class View(Protocol):
    """One crash state, as a guest shows it. Each part is looked at when a claim asks for it."""

    @property
    def observation(self) -> Observation:
        """What is there after the mount."""

    def complaints(self) -> Sequence[Worded]:
        """What the kernel says of the mount, and what a closer look finds wrong."""

    def undisturbed(self) -> Observation:
        """What is there where recovery is not crashed."""

    def checked(self, program: Program, output: bytes) -> CheckerAnswer:
        """What a program's checker says of it, after a crash before which ``output`` was told."""


@dataclass(frozen=True, slots=True)
class AfterMount:
    """A view of what was seen after the mount, and of nothing else."""

    observation: Observation

    def complaints(self) -> Sequence[Worded]:
        """None is known."""
        return ()

    def undisturbed(self) -> Observation:
        """Not known: raises LookupError."""
        raise LookupError("the recovery without a crash was not looked at")

    def checked(self, program: Program, output: bytes) -> CheckerAnswer:
        """Not known: raises LookupError."""
        del output
        raise LookupError(f"the checker of {program.name} did not look at it")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why something cannot be done with witnesses of a kind of claim: ``reason`` ends the sentence "the witness X is
    of ...", ``hint`` is for the user."""

    reason: str
    hint: str


class Claim(Protocol):
    """See the module's text."""

    @property
    def kind(self) -> str:
        """The name of its kind, in :data:`bob.claim.kinds.KINDS` and in witnesses."""

    @property
    def name(self) -> str:
        """What files and pages call it: the name of its witness's file, so no two claims of a run have the same."""

    @property
    def title(self) -> str:
        """What a witness of its breach is a witness of."""

    @property
    def asks(self) -> tuple[str, str]:
        """What it asks for: a heading, and a text, which is empty where this bob does not know."""

    @property
    def is_shown_by_the_tree(self) -> bool:
        """Whether the tree after the mount is the evidence, and not what a kernel or a checker says."""

    @property
    def operations(self) -> tuple[int, ...]:
        """The numbers of the operations that it is about."""

    @property
    def packages(self) -> tuple[str, ...]:
        """The Debian packages that a guest needs, beside what its image has, to judge it."""

    @property
    def no_shrinking(self) -> Refusal | None:
        """Why its witnesses cannot be made smaller; None where they can, which takes a :class:`Judgeable`."""

    @property
    def no_export(self) -> Refusal | None:
        """Why the log of its witnesses cannot be exported; None where it can."""

    def headline(self, configuration: str) -> str:
        """What is found on ``configuration``, as the title of a page."""

    def broken(self, view: View, context: Context) -> str | None:
        """The evidence, in one line, by which ``view`` breaks it; None where it does not.

        A state that does not mount breaks only what speaks of mounting: its tree, if there is one, is what a repair
        left.
        """

    def kept(self, view: View, context: Context) -> bool:
        """Whether ``view`` is known to keep it: where the view cannot tell, it is neither kept nor broken."""

    def sentence(self, line: CrashTimeline, context: Context, found: Observation | None) -> str:
        """What happened up to a crash that breaks it, in one sentence; ``found`` is what was there then, where that is
        known."""

    def role(self, number: int) -> str:
        """What it says of operation ``number``; nothing where it is not about that one."""

    def to_json(self) -> dict[str, Any]:
        """The fields by which a witness tells of it (docs/formats.md). ``property``, ``probe`` and ``question`` are
        among them, and null where it is no property's."""


@dataclass(frozen=True, slots=True)
class BrokenClaim:
    """The crash state ``state`` breaks ``claim``; ``evidence`` says by what, in one line. ``found`` is what was there,
    where that is what the evidence is about; ``is_clear`` as in :class:`bob.claim.property.rules.Violation`."""

    state: CrashState
    claim: Claim
    evidence: str
    found: Observation | None = None
    is_clear: bool = True


@runtime_checkable
class Judgeable(Claim, Protocol):
    """A claim that is judged on all crash states of a bench at once."""

    def asking(self, workload: Workload) -> Workload:
        """``workload``, or as much of it as asks for the claim."""

    def easiest(self, bench: JudgedCase) -> BrokenClaim | None:
        """The crash state that shows best how it is broken, be it in other operations; None where none breaks it."""

    def kept_in(self, bench: JudgedCase, state: CrashState) -> bool:
        """Whether ``state`` is known to keep it."""
