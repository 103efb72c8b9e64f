"""An answer: a claim, its verdict, the crash states behind it, and the ways to break it. A claim is a property of a
probe, an expectation of ``bob try``, a program's checker, or that a crash state mounts and shows no trouble."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from bob.agent.loss import Loss
from bob.claim.verdict import Verdict
from bob.counts import Count
from bob.crash.coverage import States
from bob.program.answer import Consequence
from bob.protocol.contrast import Explanation


@dataclass(frozen=True, slots=True)
class ClaimWords:
    """A claim in words. ``kind`` is one in :mod:`bob.claim.kinds`; the ``name`` of an expectation is its text."""

    kind: str
    name: str
    family: str = ""
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class CallWords:
    """A system call in words; the innermost frame of ``stack`` comes first."""

    number: int
    words: str
    stack: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReliedOn:
    """Something that a program relies on; ``trees`` counts the refused trees that lack it. ``calls`` has the calls of
    the ``explanation``; ``kind`` is ALICE's name (:mod:`bob.protocol.kinds`), empty if unknown."""

    explanation: Explanation
    sentence: str
    calls: tuple[CallWords, ...]
    trees: int
    kind: str = ""


class Cross(StrEnum):
    """The verdict of a real file system on a way that a model predicts. ``MISSED``: the model does not predict the way,
    so the model or bob is wrong."""

    CONFIRMED = "confirmed"
    NOT_REACHABLE = "not reachable"
    OPEN = "open"
    MISSED = "missed by the model"


@dataclass(frozen=True, slots=True)
class Way:
    """A way to break a claim: its ``evidence`` in a line, and how many explored crash ``states`` show it.

    ``witness`` (a path in the run directory) is for the easiest state; ``place`` is its recording's index, and
    ``by_recording`` has the number of states in each. Programs: ``told`` is the output before the easiest crash (a
    character a byte), ``trees`` counts distinct trees, and ``relied_on`` starts with what most trees lack. Models: a
    state is a tree, ``step`` is the first step of the work that reached it, and ``crossed`` has the verdict of each
    file system by name."""

    evidence: str
    states: Count
    witness: str | None = None
    place: int = 0
    by_recording: tuple[Count, ...] = ()
    consequence: Consequence | None = None
    told: str = ""
    trees: int = 0
    relied_on: tuple[ReliedOn, ...] = ()
    step: str = ""
    crossed: Mapping[str, Cross] = field(default_factory=dict, hash=False)

    @property
    def output(self) -> bytes:
        return self.told.encode("latin-1")

    @property
    def last_output(self) -> str:
        """The last line of the output that is not blank; empty if all are."""
        lines = self.output.decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    @property
    def cross(self) -> Cross | None:
        """The joint verdict of real file systems: one of them is enough to confirm; None if bob tried none."""
        said = frozenset(self.crossed.values())
        if len(said) < 2:
            return next(iter(said), None)
        return Cross.CONFIRMED if Cross.CONFIRMED in said else Cross.OPEN


@dataclass(frozen=True, slots=True)
class ByRecording:
    """The verdict on a claim by one recording, of workload ``name`` with this ``finish``. ``violations`` counts
    explored states. ``needs_no_crash``: the state with every write breaks the claim, too. ``fall`` is the panic or hang
    that prevented a recording."""

    name: str
    finish: str
    verdict: Verdict
    states: States
    violations: Count = 0
    reason: str | None = None
    needs_no_crash: bool = False
    is_recorded: bool = True
    fall: Loss | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a ``claim``: FAILS, with ``ways`` to break it, the easiest to explain first; HOLDS; or UNKNOWN or
    SKIPPED, with a ``reason``."""

    claim: ClaimWords
    verdict: Verdict
    states: States
    ways: tuple[Way, ...] = ()
    recordings: tuple[ByRecording, ...] = ()
    reason: str | None = None

    @property
    def name(self) -> str:
        return self.claim.name

    @property
    def family(self) -> str:
        return self.claim.family

    @property
    def meaning(self) -> str:
        return self.claim.meaning

    @property
    def violations(self) -> int:
        """The number of explored crash states that break the claim."""
        return sum(way.states for way in self.ways)

    @property
    def evidence(self) -> str | None:
        """The evidence of the first way."""
        return self.ways[0].evidence if self.ways else None

    @property
    def witness(self) -> str | None:
        """The witness of the first way."""
        return self.ways[0].witness if self.ways else None

    @property
    def needs_no_crash(self) -> bool:
        return any(one.needs_no_crash for one in self.recordings)
