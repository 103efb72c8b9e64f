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
    """A claim in words: its ``kind`` (:mod:`bob.claim.kinds`), its ``name``, and its ``meaning`` in a sentence.

    A property has a ``family`` of rows. The name of an expectation is its text.
    """

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
    """Something that a program relies on, and that so many of the refused ``trees`` lack.

    ``calls`` are those in the ``explanation``; ``kind`` is ALICE's name (:mod:`bob.protocol.kinds`; empty: not known).
    """

    explanation: Explanation
    sentence: str
    calls: tuple[CallWords, ...]
    trees: int
    kind: str = ""


class Cross(StrEnum):
    """The verdict of a real file system on a way that a model predicts.

    ``MISSED`` is a way that the model does not predict: the model, or bob, is wrong.
    """

    CONFIRMED = "confirmed"
    NOT_REACHABLE = "not reachable"
    OPEN = "open"
    MISSED = "missed by the model"


@dataclass(frozen=True, slots=True)
class Way:
    """One way to break a claim: the ``evidence`` in a line, and in how many explored crash ``states``.

    ``witness`` is that of the easiest state, a path in the run directory. If the answer has several recordings,
    ``place`` is the number of the one with the witness (from 0), and ``by_recording`` counts the states of each.

    Programs have a ``consequence``, the output ``told`` before the easiest crash (a character a byte), the number of
    different ``trees``, and what they ``relied_on``, that of most trees first. A state of a model is a tree; ``step``
    is the step of the work that came to it first, and ``crossed`` the verdict of each file system, by name.
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
        """The last line of the output that is not blank; empty if there is none."""
        lines = self.output.decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    @property
    def cross(self) -> Cross | None:
        """The verdict of all real file systems together: one that confirms it is enough; None if none was asked."""
        said = frozenset(self.crossed.values())
        if len(said) < 2:
            return next(iter(said), None)
        return Cross.CONFIRMED if Cross.CONFIRMED in said else Cross.OPEN


@dataclass(frozen=True, slots=True)
class ByRecording:
    """The verdict on a claim by one recording, that of the workload ``name`` with this ``finish``.

    ``violations`` counts the explored states that break the claim. ``needs_no_crash`` says that the state with every
    write breaks it, too. If nothing could be recorded, ``fall`` is how the kernel panicked or hung, if it did.
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
    """The answer to a ``claim``: FAILS with the ``ways`` in which it breaks, the easiest to explain first; HOLDS; or
    UNKNOWN or SKIPPED, with a ``reason``. ``recordings`` have the verdict of each recording."""

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
