"""A model of the states that a file system may leave after a crash. It has *clauses*. A clause is one promise about
crash states. For each clause, the model stores the results of the tests, and whether the clause is promised. Models are
stored as ``bob.apm/1`` (docs/formats.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as of_dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

from bob import counts, documents
from bob.apm.clauses import Clause, clause_of, closed
from bob.crash.state import CrashState
from bob.errors import MalformedError, StoreError
from bob.schema import LATER, Document, adapt, decode, encode, field, is_later, older
from bob.store.files import write_document

SCHEMA = "bob.apm/1"


class ClauseStatus(StrEnum):
    """The result of a clause's tests. ASSUMED means that bob lacks tests of the clause. Such a clause is untested, or
    comes from a built-in model, a paper, or a user's change of a model."""

    REFUTED = "refuted"
    EXHAUSTIVE = "held-exhaustively"
    SAMPLED = "held-on-a-sample"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class Refutation:
    """The crash state that refutes a clause. ``there`` and ``missing`` are numbers of operations. A clause about order
    promises that the operation ``missing`` persists before any part of the operation ``there``. A clause about
    durability promises that ``missing`` persists before ``there`` returns. In the crash state, a part of ``there``
    persisted (or ``there`` had returned), but a part of ``missing`` did not. Both numbers are None if the clause is not
    about two operations, for example because it forbids stale data.

    If ``alone`` is false, no single clause forbids the state, but several clauses together do. ``witness`` is the path
    of a file with the state, relative to the model's file."""

    run: str
    workload: str
    finish: str
    folder: str
    state: CrashState
    evidence: str
    there: int | None = None
    missing: int | None = None
    alone: bool = True
    witness: str | None = None


@dataclass(frozen=True, slots=True)
class ClauseFinding:
    """The knowledge about one clause. ``workloads`` and ``states`` are the numbers of workloads and of *legal* crash
    states (those that the disk may leave) that tested it. ``exhaustive`` counts only the workloads whose legal states
    all have a known outcome. ``reason`` says why the model does not promise the clause."""

    clause: Clause
    status: ClauseStatus
    promised: bool
    workloads: int = 0
    exhaustive: int = 0
    states: int = 0
    refutation: Refutation | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Model:
    """An abstract persistence model. ``source`` says what the model was made from."""

    name: str
    about: str
    findings: tuple[ClauseFinding, ...]
    source: Mapping[str, Any] = of_dataclass(default_factory=dict)

    @cached_property
    def promised(self) -> frozenset[Clause]:
        return closed({finding.clause for finding in self.findings if finding.promised})

    @property
    def origin(self) -> str:
        return next((word for key, word in _ORIGINS.items() if key in self.source), "derived")

    def finding(self, clause: Clause) -> ClauseFinding:
        """Return the finding about a clause. If the model does not list the clause, the status of the finding is
        ASSUMED. In this case, the clause counts as promised if it follows from other clauses that the model
        promises."""
        found = self._by_clause.get(clause)
        return found or ClauseFinding(clause, ClauseStatus.ASSUMED, promised=clause in self.promised)

    @cached_property
    def _by_clause(self) -> Mapping[Clause, ClauseFinding]:
        return {finding.clause: finding for finding in self.findings}


_ORIGINS = {"builtin": "built-in", "published": "published", "what_if": "what-if"}


class SourceDocument(Document, frozen=True):
    """The part of a model's ``source`` that bob reads to decide whether the model was derived from a certain file
    system."""

    kernels: tuple[str, ...] = ()
    configuration: Mapping[str, Any] = field(default_factory=dict)


class FindingDocument(Document, frozen=True, kw_only=True):
    """A clause of a stored model. ``clause`` is its name, and ``meaning`` explains it to people. ``states`` is a number
    that is stored as text, because it may be very large."""

    clause: str
    meaning: str = field(default_factory=older(""))
    status: ClauseStatus
    promised: bool
    workloads: int
    exhaustive: int
    states: str | int
    reason: str | None = None
    refuted_by: Refutation | None = None

    @classmethod
    def of(cls, finding: ClauseFinding) -> FindingDocument:
        clause, states = finding.clause, str(counts.written(finding.states))
        refuted = finding.refutation
        return adapt(cls, finding, clause=clause.name, meaning=clause.words, states=states, refuted_by=refuted)

    @property
    def finding(self) -> ClauseFinding:
        """The stored finding. Raises MalformedError if a clause with this name does not exist."""
        clause, states = clause_of(self.clause), counts.read(self.states)
        return adapt(ClauseFinding, self, clause=clause, states=states, refutation=self.refuted_by)


class ModelDocument(Document, frozen=True, tag_field="schema", tag=SCHEMA):
    """A stored model. It lacks the clauses that are neither tested nor promised."""

    name: str
    about: str
    source: Mapping[str, Any]
    clauses: tuple[FindingDocument, ...]


def with_distinct_names(models: Sequence[Model]) -> list[Model]:
    """Return ``models`` with distinct names. If several models have the same name, the origin of each model is added to
    its name, such as "(derived)"."""
    often = Counter(model.name for model in models)
    return [
        replace(model, name=f"{model.name} ({model.origin})") if often[model.name] > 1 else model for model in models
    ]


def to_json(model: Model) -> dict[str, Any]:
    told = [one for one in model.findings if one.promised or one.workloads or one.status is not ClauseStatus.ASSUMED]
    plain: dict[str, Any] = encode(adapt(ModelDocument, model, clauses=tuple(map(FindingDocument.of, told))))
    return plain


def from_json(plain: Mapping[str, Any]) -> Model:
    """Return the model in the JSON document ``plain``. Raises MalformedError if the document is damaged, or not a
    model."""
    if plain.get("schema") != SCHEMA:
        found = plain.get("schema")
        hint = LATER if is_later(found, SCHEMA) else f"expected {SCHEMA}"
        raise MalformedError(f"not a model: its schema is {found!r}", hint=hint)
    try:
        document = decode(ModelDocument, plain)
        decode(SourceDocument, document.source)
        findings = tuple(one.finding for one in document.clauses)
    except ValueError as error:
        raise MalformedError(f"this model is damaged: {error}", hint="derive it again") from None
    if twice := [clause.name for clause, often in Counter(one.clause for one in findings).items() if often > 1]:
        raise MalformedError(
            f"the clause {twice[0]!r} occurs twice", hint="older files may have another spelling of it"
        )
    return adapt(Model, document, findings=findings)


_WRITTEN = "`bob apm derive` writes models"


def load(path: Path) -> Model:
    """Return the model in the file ``path``. Raises StoreError if the file cannot be read, MalformedError if it is not
    a model."""
    try:
        document = documents.opened(path.read_bytes())
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}", hint="is it the file of a model?") from None
    except documents.ChangedError as error:
        raise MalformedError(f"{path}: {error}", hint=documents.BY_HAND) from None
    except ValueError as error:
        raise MalformedError(f"{path} is not a model: {error}", hint=_WRITTEN) from None
    try:
        return from_json(document)
    except MalformedError as error:
        raise MalformedError(f"{path}: {error.message}", hint=error.hint) from None


def save(model: Model, path: Path) -> None:
    """Write ``model`` to the file ``path``, whole or not at all. Raises StoreError if that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}", hint="name another file") from None
    write_document(path, to_json(model))
