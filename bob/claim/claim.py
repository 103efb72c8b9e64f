"""The interface that every kind of claim has. A *claim* is what each crash state should satisfy, such as a property. A
*witness* is a document about one crash state that breaks a claim. bob can replay a witness, or shrink it (leave out
what the breach does not need). Reports, replay, shrinking and witnesses use only this interface."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

from bob.claim.property.judged_case import JudgedCase
from bob.claim.property.rules import Property
from bob.crash.state import CrashState
from bob.crash.work import Work, workload_in
from bob.observe.observation import Observation
from bob.observe.observations import Complaint
from bob.program.answer import CheckerAnswer
from bob.program.program import Program
from bob.story.decisive import decisive
from bob.story.timeline import CrashTimeline
from bob.trace.recording import Statuses
from bob.workload.operations import Workload

NEWER = "a later version of bob may have written it; use that version"  # a hint
PropertyLookup = Callable[[str], Property | None]  # by name; None if this bob does not ship the property


@dataclass(frozen=True, slots=True)
class Context:
    """The work before a crash: either the operations of a workload, or the run of a program. ``inodes`` and
    ``statuses`` are pairs of mappings by path, from before the work and from after it. ``inodes`` has the numbers of
    the inodes, and ``statuses`` has their other attributes, such as the mode."""

    work: Work
    inodes: tuple[Mapping[str, int], Mapping[str, int]]
    statuses: tuple[Statuses, Statuses]

    @property
    def workload(self) -> Workload:
        """The workload. Raises TypeError if the work is the run of a program."""
        return workload_in(self.work)


class View(Protocol):
    """One crash state that a guest looks at. The guest looks at each part of the state, such as the tree, only when a
    claim asks for this part. A claim is a statement about crash states. A state keeps the claim if the statement is
    true of it, and breaks the claim if the statement is false."""

    @property
    def observation(self) -> Observation:
        """The tree after the mount."""

    def complaints(self) -> Sequence[Complaint]:
        """The kernel's complaints at the mount, and further faults of the file system. To find these faults, bob runs
        fsck. It also mounts the state again and removes all files, because damage may make a removal fail."""

    def undisturbed(self) -> Observation:
        """The tree after a recovery that no crash interrupts. Only the claim about crashes during recovery needs it."""

    def checked(self, program: Program, output: bytes) -> CheckerAnswer:
        """The answer of the checker of ``program``. ``output`` is the output of the program before the crash."""


@dataclass(frozen=True, slots=True)
class AfterMount:
    """A view that has only the tree after the mount. It lists no complaints, and its other methods raise
    LookupError."""

    observation: Observation

    def complaints(self) -> Sequence[Complaint]:
        return ()

    def undisturbed(self) -> Observation:
        raise LookupError("the recovery without a crash was not looked at")

    def checked(self, program: Program, output: bytes) -> CheckerAnswer:
        raise LookupError(f"the checker of {program.name} did not look at it")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal to shrink a witness, or to export the writes of its workload as a log of dm-log-writes. bob prints
    ``reason`` after the words "the witness X is of". An example of a reason is "a crash during recovery"."""

    reason: str
    hint: str


# Fields in witnesses of claims that are not about a property.
NO_PROPERTY = {"property": None, "probe": None, "question": None}


class Claim(ABC):
    """A claim about crash states. Each kind of claim is a subclass."""

    kind: ClassVar[str]  # the key in :data:`bob.claim.kinds.KINDS`, and in witnesses
    is_shown_by_the_tree: ClassVar[bool] = False  # the evidence in a report is the tree, not a sentence
    no_export: ClassVar[Refusal | None] = None  # why bob cannot export the logs of this claim's witnesses

    @property
    def name(self) -> str:
        """The claim's name. It is unique in a run, and the file name of the claim's witness contains it."""
        return self.kind

    @property
    @abstractmethod
    def title(self) -> str:
        """The title of a witness that shows a broken claim. It is a noun phrase, not a sentence."""

    @property
    @abstractmethod
    def asks(self) -> tuple[str, str]:
        """A pair: a heading, and the claim in words. The words are empty if the claim is about a property that this
        version of bob does not know."""

    @property
    def operations(self) -> tuple[int, ...]:
        return ()

    @property
    def packages(self) -> tuple[str, ...]:
        """The Debian packages that a guest needs to judge the claim, in addition to the packages of its image."""
        return ()

    @property
    def no_shrinking(self) -> Refusal | None:
        """The reason why bob cannot shrink the claim's witnesses; None if it can. bob can shrink only witnesses of a
        :class:`Judgeable` claim."""
        return None

    def headline(self, configuration: str) -> str:
        """Return the title of a page about a breach on ``configuration``."""
        return f"{self.title} on {configuration}"

    @abstractmethod
    def broken(self, view: View, context: Context) -> str | None:
        """Return the evidence in one line if ``view`` breaks the claim, otherwise None. A state that does not mount
        breaks only claims about mounting. If bob has repaired such a state, ``view`` has the tree after the repair.
        Claims ignore that tree."""

    def kept(self, view: View, context: Context) -> bool:
        """Return whether ``view`` certainly keeps the claim. If bob cannot see enough of the state, neither this method
        nor :meth:`broken` confirms anything: this returns False, and :meth:`broken` returns None."""
        return view.observation.mounted and self.broken(view, context) is None

    @property
    def breach(self) -> str:
        """The end of the sentence that :meth:`sentence` returns, such as "the next recovery led to another tree". A
        kind of claim with its own :meth:`sentence` does not need it."""
        return ""

    def sentence(self, line: CrashTimeline, context: Context, found: Observation | None) -> str:
        """Return one sentence about a crash that breaks the claim. ``found`` is the tree after the crash, if bob knows
        it."""
        return f"{decisive(line)}, and {self.breach}."

    def role(self, number: int) -> str:
        """Return in words what the claim says about operation ``number``. The text is empty if the claim is not about
        this operation."""
        return ""

    def to_json(self) -> dict[str, Any]:
        """Return the fields of the claim in a witness (docs/formats.md)."""
        return {**NO_PROPERTY}

    @classmethod
    @abstractmethod
    def read(cls, document: Mapping[str, Any], workload: Workload, known: PropertyLookup) -> Self | None:
        """Return the claim that the witness ``document`` is about; None if the claim is of another kind. A witness
        about a shipped property may contain the property's name without its declaration. ``known`` then returns the
        property. May raise KeyError, TypeError, ValueError, UsageError or MalformedError."""


@dataclass(frozen=True, slots=True)
class BrokenClaim:
    """The result that ``state`` breaks ``claim``, with ``evidence`` in one line. ``found`` is the tree after the crash,
    if the evidence is about the tree. If ``claim`` says that one operation persists before a later one, ``is_clear``
    says whether the later one certainly is complete in ``state``. For any other claim, ``is_clear`` is True."""

    state: CrashState
    claim: Claim
    evidence: str
    found: Observation | None = None
    is_clear: bool = True


class Judgeable(Claim):
    """A claim that bob can judge for a whole workload, from all crash states of the workload together."""

    def asking(self, workload: Workload) -> Workload:
        """Return the part of ``workload`` that tests the claim."""
        return workload

    @abstractmethod
    def easiest(self, bench: JudgedCase) -> BrokenClaim | None:
        """Return the crash state that best shows a breach, or None if no state breaks the claim. If the claim is about
        a property, any breach of this property counts. The claim in the result may then name other operations of the
        workload."""

    @abstractmethod
    def kept_in(self, bench: JudgedCase, state: CrashState) -> bool:
        """Return whether bob knows that ``state`` keeps the claim."""
