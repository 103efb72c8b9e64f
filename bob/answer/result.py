"""The result of an experiment (``bob.result/2``): every verb that yields results writes one, every report reads one.

docs/formats.md describes each field. Field names are stable once released; new ones may be added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Self

from bob.answer.answer import Answer, ByRecording, ClaimWords, Cross, Way
from bob.claim.verdict import Verdict
from bob.counts import Count
from bob.crash.coverage import NOTHING, States, total
from bob.crash.device import DeviceModel, DeviceModelDocument
from bob.observe.observations import TroubleKind
from bob.protocol.diagram import Protocol
from bob.subject import Subject
from bob.workload.plain import WorkloadDocument

SCHEMA = "bob.result/2"
UNMOUNTABLE, TROUBLE = "unmountable", "trouble"
"""The kinds of claims that are asked of every crash state, beside what was asked."""


def beside(kind: str, name: str, ways: Iterable[Way]) -> Answer:
    """Return the answer that a claim of every crash state fails in these ``ways``."""
    return Answer(ClaimWords(kind, name), Verdict.FAILS, NOTHING, tuple(ways))


@dataclass(frozen=True, slots=True)
class Run:
    """A run. Times are ISO 8601 in UTC; ``finished`` is empty if it was stopped. ``search`` says which workloads a
    search tried; other runs have None."""

    id: str
    started: str
    finished: str
    bob_version: str = ""
    seed: Count = 0
    budget: Count = 0
    search: str | None = None


@dataclass(frozen=True, slots=True)
class Environment:
    """What it was measured on. ``clock`` is "virtual" or "real"."""

    kernel: str
    image: str
    accelerator: str
    clock: str
    qemu: str
    libvirt: str
    mkfs_version: str


@dataclass(frozen=True, slots=True)
class Cause:
    """The common cause of violations that are one finding (docs/search.md).

    The ``rule`` of the broken claims; the sort of ``block`` whose loss breaks them, its ``fate`` (lost or torn), and
    the place of the ``flush`` that should have saved it. These three are empty if nothing was lost. If they do not tell
    causes apart, the ``call`` and the missing ``kinds`` of change do; else these two are empty.
    """

    rule: str
    block: str = ""
    fate: str = ""
    flush: str = ""
    call: str = ""
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """Violations that have one ``cause``, which is said in ``words``.

    ``rows`` are the properties that they break, ``missing`` the kinds of change that are not there, ``shown_by`` is how
    many workloads show it. The smallest of these is ``workload``, of so many ``operations``; ``evidence`` is what is
    found after it, in one line, ``witness`` its witness.
    """

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
        """The sort key of findings: those with small workloads come first."""
        return self.operations, len(self.workload), self.workload, self.words


@dataclass(frozen=True, slots=True)
class Checks:
    """How a program's checker looked: at crashes in so many ``windows`` between its outputs, which left so many
    different ``trees``, each with what was told before; it was run so often (``runs``)."""

    windows: int
    trees: int
    runs: int


@dataclass(frozen=True, slots=True)
class Missed:
    """A way of a real file system, the ``configuration``, with a tree that a model does not allow, by these ``clauses``
    (none: it is not known by which). Where ``is_wrong``, the model was derived of that file system: it is wrong, or
    bob."""

    configuration: str
    evidence: str
    is_wrong: bool
    clauses: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """A sentence for people."""
        by = f", by {' and '.join(map(repr, self.clauses))}" if self.clauses else ""
        said = f"{self.configuration} leaves a tree that the model does not allow{by}"
        said = f"{Cross.MISSED.value}: {self.evidence} ({said})"
        return f"{said}; the model was derived of this file system: it is wrong, or bob" if self.is_wrong else said


@dataclass(frozen=True, slots=True)
class Allowed:
    """How much was tried of what a model allows; ``about`` says what the model is.

    ``tried`` crash states (a closed set of micro-operations, with what had been told) were made, of ``operations``
    operations and ``micro_operations``; ``is_all`` says that the model allows no other one. It allows so many
    (``allowed``; None: not counted), or, unless ``is_counted``, at least so many. ``missed`` is what the real file
    systems have, and it does not allow.
    """

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
    """What was crashed, with its answers: a configuration of a file system, or what a model allows.

    ``answers`` are to what was asked. ``beside`` has what was not: crash states that do not mount, and what is wrong
    with some that do. ``findings`` are the violations by cause; only a search asks for these. ``examined`` outcomes of
    workloads, of ``examinable`` that mount, had a closer look: by the file system's checker, and by the removal of all
    that is there. ``checks`` are those of a program. Where the subject is a model, ``model`` says how much of it was
    tried.
    """

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

    @classmethod
    def of(cls, made: Subject, effective_mount_options: str = "", mkfs_version: str = "") -> Self:
        """Return the subject ``made`` without an answer yet."""
        options = made.mkfs_options, made.mount_options, effective_mount_options
        return cls(made.name, made.fs.name, *options, mkfs_version=mkfs_version)

    @property
    def answer(self) -> Answer:
        """The answer to the only question, as of a program."""
        [answer] = self.answers
        return answer

    @property
    def unmountable(self) -> Way | None:
        """All crash states that the kernel does not mount, with the evidence and the witness of the first recording
        that has some; None if all mount."""
        found = next((answer for answer in self.beside if answer.claim.kind == UNMOUNTABLE), None)
        return None if found is None else replace(found.ways[0], states=found.violations)

    def troubles(self) -> Iterator[tuple[TroubleKind, Way]]:
        """Yield each thing that is wrong with crash states that mount."""
        for answer in self.beside:
            if answer.claim.kind == TROUBLE:
                yield from ((TroubleKind(answer.name), way) for way in answer.ways)

    @property
    def falls(self) -> tuple[ByRecording, ...]:
        """The recordings at which the kernel panicked or hung: findings about that kernel."""
        recordings = self.answers[0].recordings if self.answers else ()
        return tuple(one for one in recordings if one.fall is not None)

    @property
    def states(self) -> States:
        """What was explored. A recording that several answers rest on counts once; if they rest on different parts of
        it, the largest counts."""
        recordings: dict[tuple[str, str], States] = {}
        for one in (one for answer in self.answers for one in answer.recordings):
            before = recordings.setdefault((one.name, one.finish), one.states)
            if one.states.explored > before.explored:
                recordings[one.name, one.finish] = one.states
        return total(list(recordings.values()))


@dataclass(frozen=True, slots=True)
class AskedProgram:
    """The program that was crashed, in words; its ``digest`` is of all its files. Its checker was seen to refuse what
    ``refuses`` names."""

    name: str
    about: str
    digest: str = ""
    refuses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """A whole experiment. The recordings of each answer name the workloads; ``program`` is the program that was run.

    ``workload`` has the operations of ``bob try``, with the first of its finishes. ``protocols`` say what the program
    did, for each subject on which that is known.
    """

    run: Run
    environment: Environment
    device_model: DeviceModelDocument
    subjects: tuple[SubjectResult, ...]
    program: AskedProgram | None = None
    workload: WorkloadDocument | None = None
    protocols: tuple[Protocol, ...] = ()

    @property
    def model(self) -> DeviceModel:
        """The model of the recorded device."""
        return self.device_model.model

    @property
    def file_systems(self) -> tuple[SubjectResult, ...]:
        """The subjects that are real file systems."""
        return tuple(subject for subject in self.subjects if subject.model is None)

    @property
    def models(self) -> tuple[SubjectResult, ...]:
        """The subjects that are models."""
        return tuple(subject for subject in self.subjects if subject.model is not None)

    @property
    def program_name(self) -> str:
        """The name of the program; empty if none was run."""
        return "" if self.program is None else self.program.name

    @property
    def is_table(self) -> bool:
        """Whether it is of properties: no program was run, and no question was asked."""
        return self.program is None and self.workload is None

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The answers of all subjects."""
        return tuple(answer for subject in self.subjects for answer in subject.answers)

    @property
    def verdicts(self) -> frozenset[Verdict]:
        """The verdicts of the answers."""
        return frozenset(answer.verdict for answer in self.answers)

    @property
    def has_unknown(self) -> bool:
        """Whether some answer is unknown."""
        return Verdict.UNKNOWN in self.verdicts

    @property
    def is_contradicted(self) -> bool:
        """Whether a model forbids what the file system that it was derived of has left."""
        tried = (subject.model for subject in self.subjects if subject.model is not None)
        return any(missed.is_wrong for one in tried for missed in one.missed)
