"""An answer: a claim, its verdict, the crash states that the verdict rests on, and the ways in which they break it.

A property of a probe, an expectation of ``bob try`` and the checker of a program are claims alike; so are that a crash
state mounts, and that it is well.
"""

from __future__ import annotations

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
    """A claim as an answer names it: its ``kind`` (:mod:`bob.claim.kinds`), its ``name``, of a property the ``family``
    of rows, and its ``meaning`` in a sentence. The name of an expectation is its text."""

    kind: str
    name: str
    family: str = ""
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class CallWords:
    """A system call in words, and its frames, the innermost first."""

    number: int
    words: str
    stack: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReliedOn:
    """Something that a program relies on, and that so many of the refused ``trees`` do not have. ``calls`` are those
    that the ``explanation`` names; ``kind`` is what ALICE calls it (:mod:`bob.protocol.kinds`; empty: not known)."""

    explanation: Explanation
    sentence: str
    calls: tuple[CallWords, ...]
    trees: int
    kind: str = ""


class Cross(StrEnum):
    """What the crash states of a real file system say of a way that a model predicts; or of one of theirs that it does
    not (``MISSED``: the model, or bob, is wrong)."""

    CONFIRMED = "confirmed"
    NOT_REACHABLE = "not reachable"
    OPEN = "open"
    MISSED = "missed by the model"


@dataclass(frozen=True, slots=True)
class Way:
    """One way to break a claim: the ``evidence`` in a line, in how many explored crash ``states``, and the ``witness``
    of the easiest of them, a path in the run directory.

    Of an answer by several recordings, ``place`` is the number of the one that has the witness (from 0), and
    ``by_recording`` says in how many states of each it breaks so.

    Of a program: the ``consequence``, what the program had ``told`` before the easiest crash (a character a byte), in
    how many different ``trees`` it breaks so, and what the program is ``relied_on``, the one of most trees first. Of a
    model a state is a tree; ``step`` says which step of the work came to it first, and ``crossed`` what each file
    system, by its name, says of it.
    """

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
        """The program's output before the easiest crash."""
        return self.told.encode("latin-1")

    @property
    def last_output(self) -> str:
        """The last line that the program had told; empty if it had told nothing."""
        lines = self.output.decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    @property
    def cross(self) -> Cross | None:
        """What all real file systems together say: one that confirms it is enough, and none can reach it only if each
        cannot. None where it was not looked for."""
        said = frozenset(self.crossed.values())
        if len(said) < 2:
            return next(iter(said), None)
        return Cross.CONFIRMED if Cross.CONFIRMED in said else Cross.OPEN


@dataclass(frozen=True, slots=True)
class ByRecording:
    """What one recording says of a claim: that of the workload ``name`` with this ``finish``.

    ``violations`` counts the explored states that break the claim. ``needs_no_crash`` says that the state with every
    write breaks it, too, of a recording that ended with everything written. Where nothing could be recorded
    (``is_recorded`` is false), ``fall`` is how the kernel panicked or hung at it, if it did.
    """

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
    """What is known of a ``claim``: FAILS with the ``ways`` in which it breaks, the easiest to explain first; HOLDS; or
    UNKNOWN or SKIPPED, with a ``reason``. ``recordings`` have what each recording says of it."""

    claim: ClaimWords
    verdict: Verdict
    states: States
    ways: tuple[Way, ...] = ()
    recordings: tuple[ByRecording, ...] = ()
    reason: str | None = None

    @property
    def name(self) -> str:
        """The claim's name."""
        return self.claim.name

    @property
    def family(self) -> str:
        """The family of rows that the claim is of."""
        return self.claim.family

    @property
    def meaning(self) -> str:
        """The claim in a sentence."""
        return self.claim.meaning

    @property
    def violations(self) -> int:
        """The number of explored crash states that break the claim."""
        return sum(way.states for way in self.ways)

    @property
    def evidence(self) -> str | None:
        """The evidence of the first way; None if there is none."""
        return self.ways[0].evidence if self.ways else None

    @property
    def witness(self) -> str | None:
        """The witness of the first way; None if there is none."""
        return self.ways[0].witness if self.ways else None

    @property
    def needs_no_crash(self) -> bool:
        """Whether the state with every write breaks the claim, too."""
        return any(one.needs_no_crash for one in self.recordings)
