"""An answer: a claim, its verdict (such as HOLDS or FAILS), the crash states that were explored for it, and its *ways*.
A *claim* is what each crash state should satisfy. A way is one kind of crash state that breaks the claim.

A claim may be a persistence property, or an expectation (a condition that the user wrote for ``bob try``). Other claims
are that a program's checker accepts each crash state, that each crash state mounts, or that no crash state shows
trouble after its mount."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from bob.agent.loss import Loss
from bob.claim.verdict import Verdict
from bob.counts import Count
from bob.crash.coverage import States
from bob.observe.unknown_torn import TornCause
from bob.program.answer import Consequence
from bob.program.stack import SourceLine
from bob.protocol.contrast import Explanation


@dataclass(frozen=True, slots=True)
class ClaimWords:
    """A claim in words. ``kind`` says what the claim is about, such as "property" (:mod:`bob.claim.kinds`). If the
    claim is an expectation, ``name`` is the text of the expectation. If it is a property, ``family`` names its group of
    properties, and ``meaning`` explains it."""

    kind: str
    name: str
    family: str = ""
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class CallWords:
    """A system call in words; ``stack`` has its stack frames, innermost first. ``source`` is the line of the program
    that makes the call (None: not known)."""

    number: int
    words: str
    stack: tuple[str, ...]
    source: SourceLine | None = None


@dataclass(frozen=True, slots=True)
class ReliedOn:
    """Something that a program relies on. ``sentence`` says what that is, and ``calls`` describes the system calls that
    the ``explanation`` names. ``kind`` is the name that the paper ALICE (OSDI'14) gives to such a reliance
    (:mod:`bob.protocol.kinds`); it is empty if unknown. ``trees`` counts the trees of files after a crash that lack
    what the program relies on, and that its checker refuses."""

    explanation: Explanation
    sentence: str
    calls: tuple[CallWords, ...]
    trees: int
    kind: str = ""

    @property
    def first(self) -> CallWords | None:
        """The call to look at first: the first one that is missing after the crash, or else the first one that is there
        too early."""
        calls = {call.number: call for call in self.calls}
        numbers = (*self.explanation.missing, *self.explanation.there)
        return next((calls[number] for number in numbers if number in calls), None)


class Cross(StrEnum):
    """The verdict of real crash states on a model's prediction. A model predicts a way to break a claim, and a real
    file system confirms the way or does not. ``MISSED``: the file system shows a way that the model does not predict,
    so the model or bob is wrong."""

    CONFIRMED = "confirmed"
    NOT_REACHABLE = "not reachable"
    OPEN = "open"
    MISSED = "missed by the model"


class ClusterHarm(StrEnum):
    """A consequence of a cluster's vulnerability (PACE, Table 2b). A *window* closes by itself. ``LOSS`` is about data
    that the client was told about in the recording, and ``LOSS_OF_OLD`` about earlier data."""

    CORRUPTION = "silent corruption"
    LOSS_OF_OLD = "loss of old data"
    LOSS = "loss of new data"
    UNAVAILABLE = "unavailable"
    WINDOW_OF_CORRUPTION = "window of silent corruption"
    WINDOW_OF_LOSS_OF_OLD = "window of loss of old data"
    WINDOW_OF_LOSS = "window of loss of new data"
    WINDOW_OF_UNAVAILABILITY = "window of unavailability"


@dataclass(frozen=True, slots=True)
class ClusterKind:
    """The kind of a cluster's vulnerability. It ``is_global`` if one node with an old tree is not enough."""

    harm: ClusterHarm
    is_global: bool

    @property
    def words(self) -> str:
        return f"{'global' if self.is_global else 'local'}: {self.harm.value}"


@dataclass(frozen=True, slots=True)
class Way:
    """A way to break a claim, as one kind of crash state shows it. ``evidence`` says in one line what is wrong after
    such a crash, and ``states`` counts the explored crash states of this kind.

    ``witness`` is a file in the run directory (the directory of the run's results). This file has the state that is
    easiest to explain. ``place`` is the index of that state's recording, and ``by_recording`` has the number of states
    in each recording.

    For programs, ``told`` is the program's output before the crash that the witness shows (one character for each
    byte). ``trees`` counts the distinct trees of files. ``relied_on`` lists what the program relied on. The first item
    is the one that most trees lack. For clusters, ``behind`` has the nodes that are behind in the witness's crash
    (:mod:`bob.crash.tuples`); no explored crash of this kind has fewer of them. Otherwise it is None. ``kind`` is the
    kind of a cluster's vulnerability, if the check says it.

    ``replay`` is the command that shows the witness again, for a shell in the directory where bob wrote the document.
    Only documents of --json have it.

    For models, a state is a tree, and ``step`` names the kind of crash that first left such a tree
    (:class:`bob.apm.model_states.CrashStage`). ``crossed`` maps the name of each real file system to the :class:`Cross`
    of that file system on this way."""

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
    behind: tuple[int, ...] | None = None
    replay: str = field(default="", compare=False)
    kind: ClusterKind | None = None

    @property
    def behind_words(self) -> str:
        """A sentence that names the nodes with an old tree in the witness, and the vulnerability's kind. It is empty if
        the program is not a cluster."""
        if self.behind is None:
            return ""
        kind = "" if self.kind is None else f" ({self.kind.words})"
        if not self.behind:
            return f"no node has to keep an old tree for that{kind}"
        nodes, verb = " and ".join(f"n{node}" for node in self.behind), "keeps" if len(self.behind) == 1 else "keep"
        return f"it is enough that {nodes} {verb} an old tree{kind}"

    @property
    def output(self) -> bytes:
        return self.told.encode("latin-1")

    @property
    def last_output(self) -> str:
        """The last line of the output that is not blank; empty if the output has only blank lines."""
        lines = self.output.decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    @property
    def cross(self) -> Cross | None:
        """The verdict of all real file systems together on this way. It is CONFIRMED if one of them confirms the way.
        Otherwise it is their verdict if they agree, and OPEN if they do not. The value None means that bob tried no
        real file system."""
        said = frozenset(self.crossed.values())
        if len(said) < 2:
            return next(iter(said), None)
        return Cross.CONFIRMED if Cross.CONFIRMED in said else Cross.OPEN


@dataclass(frozen=True, slots=True)
class ByRecording:
    """The verdict that the crash states of one recording give on a claim. ``name`` is the recorded workload. ``finish``
    names the end of that workload, such as "sync" or "natural" (bob waited for writeback). ``violations`` counts the
    explored states that break the claim. ``needs_no_crash`` says that the claim is broken even in the state with all
    writes. If the kernel's panic or hang prevented the recording, ``fall`` describes it. If the claim holds,
    ``unknown_torn`` is the main cause why bob did not explore torn states (None: bob explored most of them)."""

    name: str
    finish: str
    verdict: Verdict
    states: States
    violations: Count = 0
    reason: str | None = None
    needs_no_crash: bool = False
    is_recorded: bool = True
    fall: Loss | None = None
    unknown_torn: TornCause | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to the question whether a ``claim`` holds. If its verdict is FAILS, it has ``ways`` to break the
    claim, the easiest to explain first. If its verdict is UNKNOWN or SKIPPED, it has a ``reason``."""

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
    def title(self) -> str:
        return self.name

    @property
    def family(self) -> str:
        return self.claim.family

    @property
    def meaning(self) -> str:
        return self.claim.meaning

    @property
    def is_question(self) -> bool:
        """Whether bob asks the user if the ways break the claim. It does so for a program without a checker."""
        return self.verdict is Verdict.UNKNOWN and self.claim.name == "moments" and bool(self.ways)

    @property
    def violations(self) -> int:
        """The number of explored crash states that break the claim."""
        return sum(way.states for way in self.ways)

    @property
    def evidence(self) -> str | None:
        """The evidence of the first way to break the claim, or None."""
        return self.ways[0].evidence if self.ways else None

    @property
    def witness(self) -> str | None:
        """The witness of the first way to break the claim, or None."""
        return self.ways[0].witness if self.ways else None

    @property
    def needs_no_crash(self) -> bool:
        return any(one.needs_no_crash for one in self.recordings)
