"""The result of an experiment (``bob.result/2``). Every command of bob that makes an experiment writes a result, and
every report reads results. docs/formats.md describes the fields. From bob's first release on, the names of a result's
fields stay the same. An *answer* is a verdict on one claim. A *claim* is what each crash state should satisfy, such as
a property. Each *way* of an answer is one kind of crash state that breaks the claim, and its *evidence* says in a line
what is wrong."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from bob.answer.answer import Answer, ByRecording, ClaimWords, Cross, Way
from bob.claim.verdict import Verdict
from bob.counts import Count
from bob.crash.coverage import NOTHING, States, total
from bob.crash.cuts import CutKind
from bob.crash.device import DeviceModel, DeviceModelDocument
from bob.observe.observations import TroubleKind
from bob.protocol.diagram import Protocol
from bob.subject import Subject
from bob.text import plural
from bob.workload.plain import WorkloadDocument

SCHEMA = "bob.result/2"
UNMOUNTABLE, TROUBLE = "unmountable", "trouble"  # kinds of claims that bob checks for every crash state


def beside(kind: str, name: str, ways: Iterable[Way]) -> Answer:
    """Return an answer to a question that the user did not ask, such as whether each crash state mounts. The verdict of
    the answer is FAILS, and each of ``ways`` is a kind of crash state that breaks the claim."""
    return Answer(ClaimWords(kind, name), Verdict.FAILS, NOTHING, tuple(ways))


@dataclass(frozen=True, slots=True)
class Run:
    """A run of bob. Times are ISO 8601 in UTC; ``finished`` is empty if the run was stopped. ``search`` describes what
    a search tried."""

    id: str
    started: str
    finished: str
    bob_version: str = ""
    seed: Count = 0
    budget: Count = 0
    search: str | None = None


@dataclass(frozen=True, slots=True)
class Environment:
    """The machine and the tools that produced a result. ``clock`` is "virtual" or "real"."""

    kernel: str
    image: str
    accelerator: str
    clock: str
    qemu: str
    libvirt: str
    mkfs_version: str


@dataclass(frozen=True, slots=True)
class Cause:
    """The common cause of the violations of one finding (docs/search.md). ``rule`` is the sort of promise that was
    broken, such as "durable". ``block`` is the kind of block whose loss breaks this promise, and ``fate`` says whether
    the block was lost or torn. ``flush`` says where the flush was that should have saved the block. ``block``, ``fate``
    and ``flush`` are empty if no block was lost. If no block was lost, or its kind is unknown, two further fields tell
    causes apart. These are ``call``, the system call that the promise is about, and ``kinds``, the kinds of changes
    that are missing after the crash."""

    rule: str
    block: str = ""
    fate: str = ""
    flush: str = ""
    call: str = ""
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of a search: the violations with one ``cause``, described by ``words``. ``rows`` names the properties
    that these violations break. ``missing`` names the kinds of changes that the crashes lost. ``shown_by`` is the
    number of workloads that show such a violation; ``workload`` is the smallest of these workloads, with its
    ``evidence`` in one line."""

    cause: Cause
    words: str
    rows: tuple[str, ...]
    missing: tuple[str, ...]
    shown_by: int
    workload: str
    finish: str
    operations: int
    evidence: str
    witness: str | None = None

    @property
    def size(self) -> tuple[int, int, str, str]:
        """The sort key of the finding: findings with small workloads come first."""
        return self.operations, len(self.workload), self.workload, self.words


@dataclass(frozen=True, slots=True)
class Checks:
    """Counts of a program's checks. A window is the time from one output of the program to the next. ``windows`` counts
    the windows with at least one tried crash. ``trees`` counts the distinct trees of files that crashes leave, and
    ``runs`` counts the runs of the checker."""

    windows: int
    trees: int
    runs: int


@dataclass(frozen=True, slots=True)
class NodeGrid:
    """The trees of two ``nodes`` of a cluster. Each of ``rows`` is a tree of the first node, and each letter in it a
    tree of the second node, the oldest trees first. The letter is "x" if the checker refused some tuple with both
    trees, "." if it accepted all checked ones, "?" if none was checked, and a space if no cut has both trees."""

    nodes: tuple[int, int]
    rows: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClusterTuples:
    """Counts of a cluster's crash states. A tuple has a tree of files for each node, and the client's output before the
    crash. ``trees`` has the number of distinct trees of each node. If ``are_all_trees`` is true, no legal crash state
    of whole writes has another tree. A tuple is ``possible`` if a crash can leave it. ``cut`` says which crashes bob
    looks at (:class:`bob.crash.cuts.CutKind`), by the ``messages`` between the nodes and the client. bob started the
    cluster on the ``checked`` tuples.

    ``rules`` of the cluster (:class:`bob.crash.rules.PaceRule`) set ``set_aside`` of the possible tuples aside, and
    ``set_aside_by`` counts what each rule alone sets aside. bob leaves ``exchanged`` of the other tuples out: they
    differ from others only by an exchange of like nodes (:mod:`bob.crash.exchanges`). If the cluster says what a node
    has recovered, the tuples belong to ``classes`` (:class:`bob.crash.tuples.Classes`). An answer decides all tuples of
    a class, unless a control has ``split`` the class; ``decided`` counts these tuples. ``unmountable`` states of single
    disks did not mount. If sandboxes on the host checked tuples, guests ``repeated`` some of these checks (None: guests
    checked all). ``why_guests`` is the reason that bob had no sandboxes, or did not believe them (empty: neither, or
    the user wants guests). ``grids`` has a grid for each two nodes; it is empty if a node has very many trees."""

    cut: str
    messages: int
    trees: tuple[int, ...]
    possible: Count
    checked: int
    are_all_trees: bool
    rules: tuple[str, ...] = ()
    set_aside: Count = 0
    set_aside_by: Mapping[str, Count] = field(default_factory=dict, hash=False)
    exchanged: Count = 0
    classes: int = 0
    decided: Count = 0
    split: int = 0
    unmountable: Count = 0
    repeated: int | None = None
    why_guests: str = ""
    grids: tuple[NodeGrid, ...] = ()

    @property
    def words(self) -> str:
        at = (
            "at one instant" if self.cut == CutKind.INSTANT else f"at any moments that {self.messages:,} messages allow"
        )
        trees = ", ".join(map(str, self.trees))
        are_all = "and no others" if self.are_all_trees else "perhaps also others"
        classes = ""
        if self.classes:
            classes = f"; by what each node recovers alone, these are {self.classes:,} classes, and {self.decided:,} "
            classes += f"combinations are decided ({plural(self.split, 'class', 'classes')} split by controls)"
        refused = f"; {plural(self.unmountable, 'state')} of single disks did not mount" if self.unmountable else ""
        on_host = ""
        if self.repeated is not None:
            on_host = f"; the host checked, in sandboxes, and guests repeated {plural(self.repeated, 'check')}"
        if self.why_guests:
            on_host += f"; guests checked all, because {self.why_guests}"
        rules = f"; the rules {', '.join(self.rules)} set {self.set_aside:,} of them aside" if self.rules else ""
        if len(choosing := {rule: some for rule, some in self.set_aside_by.items() if some}) > 1:
            rules += f" ({', '.join(f'{rule} alone: {some:,}' for rule, some in choosing.items())})"
        if self.exchanged:
            rules += f"; {self.exchanged:,} differ from others only by an exchange of like nodes"
        return (
            f"checked {self.checked:,} of {'' if self.are_all_trees else 'at least '}{self.possible:,} combinations of "
            f"trees and output that crashes of the nodes {at} can leave{rules}{classes}; the nodes have {trees} "
            f"distinct trees, {are_all} without torn writes{refused}{on_host}"
        )


@dataclass(frozen=True, slots=True)
class Missed:
    """A tree of files that a persistence model (a set of promises about crashes) forbids, although a crash of a real
    file system leaves it. ``configuration`` names the file system. ``clauses`` are the promises of the model that
    forbid the tree (empty: unknown which). ``is_wrong`` is true if the model was derived from this file system. Then
    the model or bob is wrong."""

    configuration: str
    evidence: str
    is_wrong: bool
    clauses: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        by = f", by {' and '.join(map(repr, self.clauses))}" if self.clauses else ""
        said = f"{self.configuration} leaves a tree that the model does not allow{by}"
        said = f"{Cross.MISSED.value}: {self.evidence} ({said})"
        wrong = "; the model was derived from this file system, so the model or bob is wrong"
        return f"{said}{wrong}" if self.is_wrong else said


@dataclass(frozen=True, slots=True)
class Allowed:
    """How many crash states a model allows, and how many of these bob tried (``tried``). A crash state is a set of
    micro-operations that persisted, together with the output before the crash. A micro-operation puts one value into
    one place, such as a name or a size. The set is closed: if a micro-operation in the set needs another one to persist
    first, that one is in the set, too. ``is_all`` says that the model allows no other states. ``allowed`` is the number
    of all states that it allows (None: not counted); it is only a lower bound unless ``is_counted``. ``missed`` has
    trees that real file systems leave and the model forbids."""

    about: str
    operations: int
    micro_operations: int
    tried: Count
    is_all: bool
    allowed: Count | None = None
    is_counted: bool = False
    missed: tuple[Missed, ...] = ()


@dataclass(frozen=True, slots=True)
class SubjectResult:
    """A subject (a configuration of a file system, or a model), with the ``answers`` about it.

    ``beside`` has answers about crash states that do not mount, or that show trouble after the mount, such as a warning
    of the kernel. Only a search has ``findings``. An outcome is what a mount of a crash state shows. To examine an
    outcome, bob runs the file system's checker and removes all files. ``examinable`` counts the outcomes, and
    ``examined`` counts those that bob examined. ``checks`` is set for programs, and ``model`` is set if the subject is
    a model. ``stack`` names the layers (such as RAID) below the file system, and the disks that were lost.

    ``seconds`` is the time that bob took to record a program on this file system, and to explore its crashes (host's
    clock; None: unknown). Results that differ only in it are equal."""

    name: str
    fs: str = ""
    mkfs_options: str = ""
    mount_options: str = ""
    effective_mount_options: str = ""
    answers: tuple[Answer, ...] = ()
    beside: tuple[Answer, ...] = ()
    mkfs_version: str = ""
    findings: tuple[Finding, ...] = ()
    examined: Count = 0
    examinable: Count = 0
    checks: Checks | None = None
    model: Allowed | None = None
    notes: tuple[str, ...] = ()
    stack: str = ""
    tuples: ClusterTuples | None = None
    seconds: float | None = field(default=None, compare=False)

    @classmethod
    def of(cls, made: Subject, effective_mount_options: str = "", mkfs_version: str = "") -> Self:
        """Return a result about the configuration ``made``, without answers."""
        options = made.mkfs_options, made.mount_options, effective_mount_options
        return cls(made.name, made.fs.name, *options, mkfs_version=mkfs_version, stack=made.stack)

    @property
    def title(self) -> str:
        """The name of the subject. It says so if the subject is a model, which may have the name of a file system."""
        return self.name if self.model is None else f"model {self.name}"

    @property
    def answer(self) -> Answer:
        """The only answer of the subject. This property is for results about a program, where each subject has exactly
        one answer."""
        [answer] = self.answers
        return answer

    @property
    def unmountable(self) -> Way | None:
        """All crash states that do not mount, as one way to break the claim that each state mounts. The evidence of
        this way comes from the first recorded workload with such a state. None if all states mount."""
        found = next((answer for answer in self.beside if answer.claim.kind == UNMOUNTABLE), None)
        return None if found is None else replace(found.ways[0], states=found.violations)

    def troubles(self) -> Iterator[tuple[TroubleKind, Way]]:
        """Yield each kind of trouble that some crash states show although they mount. Each kind comes with a way, which
        stands for all states that show this trouble."""
        for answer in self.beside:
            if answer.claim.kind == TROUBLE:
                yield from ((TroubleKind(answer.name), way) for way in answer.ways)

    def beside_in_words(self) -> Iterator[tuple[str, Way]]:
        """Yield a sentence such as "3 crash states could not be mounted", together with the :class:`Way` that stands
        for these crash states. If some states do not mount, the first pair is about these. Then there is a pair for
        each kind of trouble."""
        if (refused := self.unmountable) is not None:
            yield f"{plural(refused.states, 'crash state')} could not be mounted", refused
        for kind, trouble in self.troubles():
            yield f"{plural(trouble.states, 'crash state')} {kind.said}", trouble

    @property
    def falls(self) -> tuple[ByRecording, ...]:
        """The recordings that ended in a panic or hang of the kernel."""
        recordings = self.answers[0].recordings if self.answers else ()
        return tuple(one for one in recordings if one.fall is not None)

    @property
    def states(self) -> States:
        """The numbers of legal and explored states. If several answers use the same recorded workload, it counts only
        once, with the most states that any of them explored."""
        recordings: dict[tuple[str, str], States] = {}
        for one in (one for answer in self.answers for one in answer.recordings):
            before = recordings.setdefault((one.name, one.finish), one.states)
            if one.states.explored > before.explored:
                recordings[one.name, one.finish] = one.states
        return total(list(recordings.values()))


@dataclass(frozen=True, slots=True)
class AskedProgram:
    """The program that was tested. ``digest`` is a digest of all its files. bob first tries the program's checker on
    trees that are damaged on purpose. ``refuses`` names the kinds of damage that the checker detected."""

    name: str
    about: str
    digest: str = ""
    refuses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a whole experiment. ``workload`` has the operations of ``bob try``, and their finish (how the
    workload ends). If there were several finishes, it has the first one. ``protocols`` show what the program did, for
    each subject where that is known."""

    run: Run
    environment: Environment
    device_model: DeviceModelDocument
    subjects: tuple[SubjectResult, ...]
    program: AskedProgram | None = None
    workload: WorkloadDocument | None = None
    protocols: tuple[Protocol, ...] = ()

    @property
    def model(self) -> DeviceModel:
        return self.device_model.model

    @property
    def file_systems(self) -> tuple[SubjectResult, ...]:
        return tuple(subject for subject in self.subjects if subject.model is None)

    @property
    def models(self) -> tuple[SubjectResult, ...]:
        return tuple(subject for subject in self.subjects if subject.model is not None)

    @property
    def program_name(self) -> str:
        return "" if self.program is None else self.program.name

    @property
    def is_table(self) -> bool:
        """Whether the result is about properties, and not about a program or a question of ``bob try``."""
        return self.program is None and self.workload is None

    @property
    def answers(self) -> tuple[Answer, ...]:
        return tuple(answer for subject in self.subjects for answer in subject.answers)

    @property
    def verdicts(self) -> frozenset[Verdict]:
        return frozenset(answer.verdict for answer in self.answers)

    @property
    def has_unknown(self) -> bool:
        return Verdict.UNKNOWN in self.verdicts

    @property
    def is_contradicted(self) -> bool:
        """Whether a model forbids a tree that a crash has left on the model's own file system (:class:`Missed`)."""
        tried = (subject.model for subject in self.subjects if subject.model is not None)
        return any(missed.is_wrong for one in tried for missed in one.missed)
