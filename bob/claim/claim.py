"""What every kind of claim can do.

A claim says of one crash state whether the state breaks it, and by what evidence. Reports, replay, shrinking and
witnesses know claims, and no kinds of claims. :mod:`bob.claim.kinds` reads a claim back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

from bob.claim.property.judged_case import JudgedCase
from bob.claim.property.rules import Property
from bob.crash.case import Case
from bob.crash.state import CrashState
from bob.crash.work import Work, workload_in
from bob.observe.observation import Observation
from bob.observe.observations import Worded
from bob.program.answer import CheckerAnswer
from bob.program.program import Program
from bob.story.decisive import decisive
from bob.story.timeline import CrashTimeline
from bob.trace.recording import Statuses
from bob.workload.operations import Workload

NEWER = "a later bob may have written it: show it with that one"
"""A hint for what this bob does not know."""
PropertyLookup = Callable[[str], Property | None]
"""Returns the property of a name; None if this bob does not ship it."""


@dataclass(frozen=True, slots=True)
class Context:
    """What bob knows of a crash state beside a guest's view: the work, and inode numbers and other statuses by name,
    before and after the operations."""

    work: Work
    inodes: tuple[Mapping[str, int], Mapping[str, int]]
    statuses: tuple[Statuses, Statuses]

    @property
    def workload(self) -> Workload:
        """The operations. Raises TypeError if a program did the work."""
        return workload_in(self.work)


def context_of(case: Case) -> Context:
    """Return the context of all crash states of a case."""
    return Context(case.work, case.inodes, case.statuses)


class View(Protocol):
    """One crash state, as a guest shows it. A guest looks at each part when a claim asks for it."""

    @property
    def observation(self) -> Observation:
        """The tree after the mount."""

    def complaints(self) -> Sequence[Worded]:
        """The kernel's complaints at the mount, and the faults that a closer look finds."""

    def undisturbed(self) -> Observation:
        """The tree after a recovery without a crash."""

    def checked(self, program: Program, output: bytes) -> CheckerAnswer:
        """The answer of a program's checker, if the program had written ``output`` before the crash."""


@dataclass(frozen=True, slots=True)
class AfterMount:
    """A view that has the tree after the mount alone."""

    observation: Observation

    def complaints(self) -> Sequence[Worded]:
        """None is known."""
        return ()

    def undisturbed(self) -> Observation:
        """Raise LookupError: it is not known."""
        raise LookupError("the recovery without a crash was not looked at")

    def checked(self, program: Program, output: bytes) -> CheckerAnswer:
        """Raise LookupError: it is not known."""
        raise LookupError(f"the checker of {program.name} did not look at it")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why bob cannot do something with witnesses of a kind of claim. ``reason`` ends the sentence "the witness X is of
    ...", ``hint`` is for the user."""

    reason: str
    hint: str


NO_PROPERTY = {"property": None, "probe": None, "question": None}
"""Fields of a witness whose claim is not a property's."""


class Claim(ABC):
    """A claim of one kind, which is a subclass."""

    kind: ClassVar[str]
    """The key of its kind in :data:`bob.claim.kinds.KINDS`, and in witnesses."""
    is_shown_by_the_tree: ClassVar[bool] = False
    """Whether the tree after the mount is the evidence, and not the words of a kernel or a checker."""
    no_export: ClassVar[Refusal | None] = None
    """Why the log of its witnesses cannot be exported; None if it can."""

    @property
    def name(self) -> str:
        """The name of its witness's file, which no other claim of the run has."""
        return self.kind

    @property
    @abstractmethod
    def title(self) -> str:
        """What a witness of its breach is a witness of."""

    @property
    @abstractmethod
    def asks(self) -> tuple[str, str]:
        """A heading, and what it asks for; the text is empty if this bob does not know."""

    @property
    def operations(self) -> tuple[int, ...]:
        """The numbers of the operations that it is about."""
        return ()

    @property
    def packages(self) -> tuple[str, ...]:
        """The Debian packages that a guest needs to judge it, beside those of its image."""
        return ()

    @property
    def no_shrinking(self) -> Refusal | None:
        """Why its witnesses cannot be made smaller; None if they can, which takes a :class:`Judgeable`."""
        return None

    def headline(self, configuration: str) -> str:
        """Return the title of a page about a breach on ``configuration``."""
        return f"{self.title} on {configuration}"

    @abstractmethod
    def broken(self, view: View, context: Context) -> str | None:
        """Return the evidence, in one line, by which ``view`` breaks it; None if it does not.

        A state that does not mount breaks only claims about mounting: its tree, if any, is the work of a repair.
        """

    def kept(self, view: View, context: Context) -> bool:
        """Return whether ``view`` is known to keep it. If the view cannot tell, it is neither kept nor broken."""
        return view.observation.mounted and self.broken(view, context) is None

    @property
    def breach(self) -> str:
        """What is so after a crash that breaks it, as the end of :meth:`sentence`, unless that is of its own."""
        return ""

    def sentence(self, line: CrashTimeline, context: Context, found: Observation | None) -> str:
        """Return what happened up to a crash that breaks it, in one sentence. ``found`` is the tree after the crash, if
        it is known."""
        return f"{decisive(line)}, and {self.breach}."

    def role(self, number: int) -> str:
        """Return what it says of operation ``number``; an empty text if it is not about that one."""
        return ""

    def to_json(self) -> dict[str, Any]:
        """Return its fields in a witness (docs/formats.md)."""
        return {**NO_PROPERTY}

    @classmethod
    @abstractmethod
    def read(cls, document: Mapping[str, Any], workload: Workload, known: PropertyLookup) -> Self | None:
        """Return the claim of a witness; None if the witness is of another kind. ``known`` has the properties that the
        witness need not declare. May raise KeyError, TypeError, ValueError, UsageError or MalformedError."""


@dataclass(frozen=True, slots=True)
class BrokenClaim:
    """The crash state ``state`` breaks ``claim``, by ``evidence`` in one line. ``found`` is the tree after the crash if
    the evidence is about that; ``is_clear`` as in :class:`bob.claim.property.rules.Violation`."""

    state: CrashState
    claim: Claim
    evidence: str
    found: Observation | None = None
    is_clear: bool = True


class Judgeable(Claim):
    """A claim that bob can judge on all crash states of a case at once."""

    def asking(self, workload: Workload) -> Workload:
        """Return ``workload``, or as much of it as asks for the claim."""
        return workload

    @abstractmethod
    def easiest(self, bench: JudgedCase) -> BrokenClaim | None:
        """Return the crash state that shows a breach best, be it of other operations; None if no state breaks it."""

    @abstractmethod
    def kept_in(self, bench: JudgedCase, state: CrashState) -> bool:
        """Return whether ``state`` is known to keep it."""
