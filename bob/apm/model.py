"""A model: its clauses, how each stands, and which of them it promises; ``bob.apm/1`` (docs/formats.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from bob import counts, documents, fields
from bob.apm.clauses import Clause, clause_of, closed
from bob.crash.state import CrashState
from bob.errors import MalformedError, StoreError
from bob.schema import decode, encode
from bob.store.files import write_document
from bob.typed import array, typed

SCHEMA = "bob.apm/1"


class Status(StrEnum):
    """How a clause stands. ``ASSUMED`` ones were never put to the test, or come from elsewhere."""

    REFUTED = "refuted"
    EXHAUSTIVE = "held-exhaustively"
    SAMPLED = "held-on-a-sample"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class Refutation:
    """The crash state that refutes a clause: of which run and workload, and what it shows.

    ``there`` is the operation that is there, even in part, or has returned, ``missing`` the one of which something that
    it needs is not; None where a cell breaks the clause by itself. ``alone`` is False where the state forbids no single
    clause for certain, but several together. ``witness`` is the path of its witness, seen from the model's file.
    """

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
class Finding:
    """A clause and how it stands: in how many ``workloads`` it was put to the test, of how many of these every legal
    crash state has a known outcome (``exhaustive``), and with how many crash ``states`` (legal ones whose outcome is
    known). ``reason`` says why one that held is not promised."""

    clause: Clause
    status: Status
    promised: bool
    workloads: int = 0
    exhaustive: int = 0
    states: int = 0
    refutation: Refutation | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Model:
    """An abstract persistence model. ``source`` says what it was made from, for people and programs."""

    name: str
    about: str
    findings: tuple[Finding, ...]
    source: Mapping[str, Any] = field(default_factory=dict)

    @property
    def promised(self) -> frozenset[Clause]:
        """The clauses that it promises, and those that say less than one of these: they make the model."""
        return closed({finding.clause for finding in self.findings if finding.promised})

    @property
    def origin(self) -> str:
        """Where it is from, in a word: built-in, published, what-if or derived."""
        return next((word for key, word in _ORIGINS.items() if key in self.source), "derived")

    def finding(self, clause: Clause) -> Finding:
        """How a clause stands; one that the model does not speak of is assumed, and promised only where it says less
        than one that is."""
        found = next((finding for finding in self.findings if finding.clause == clause), None)
        return found or Finding(clause, Status.ASSUMED, promised=clause in self.promised)


_ORIGINS = {"builtin": "built-in", "published": "published", "what_if": "what-if"}


@dataclass(frozen=True, slots=True)
class _Source:
    """What bob itself reads of where a model is from: whether it was derived of a file system hangs on it."""

    kernels: tuple[str, ...]
    configuration: Mapping[str, Any]


def told_apart(models: Sequence[Model]) -> list[Model]:
    """``models``, with their origins in the names of those that are called the same."""
    often = Counter(model.name for model in models)
    return [
        replace(model, name=f"{model.name} ({model.origin})") if often[model.name] > 1 else model for model in models
    ]


def to_json(model: Model) -> dict[str, Any]:
    """A model as a plain document; what was never tried and is not promised is left out."""
    told = [one for one in model.findings if one.promised or one.workloads or one.status is not Status.ASSUMED]
    return {
        "schema": SCHEMA,
        "name": model.name,
        "about": model.about,
        "source": dict(model.source),
        "clauses": [_finding_to_json(finding) for finding in told],
    }


def from_json(document: Mapping[str, Any]) -> Model:
    """The model in a plain document; MalformedError if there is none."""
    if document.get("schema") != SCHEMA:
        raise MalformedError(
            f"this is no model: its schema is {document.get('schema')!r}", hint=f"it should be {SCHEMA}"
        )
    try:
        findings = tuple(map(_finding_from_json, array(document["clauses"])))
        if twice := [clause.name for clause, often in Counter(one.clause for one in findings).items() if often > 1]:
            raise MalformedError(f"the clause {twice[0]!r} is there twice", hint="older files may spell it otherwise")
        source = document["source"]
        typed(_Source(array(source.get("kernels", ())), source.get("configuration", {})))
        return typed(Model(document["name"], document["about"], findings, source))
    except fields.MISSHAPEN as error:
        raise MalformedError(f"this model is damaged: {fields.said(error)}", hint="derive it again") from None


_WRITTEN = "`bob apm derive` writes models"


def load(path: Path) -> Model:
    """The model in the file ``path``. Raises StoreError where it cannot be read, MalformedError where it is none."""
    try:
        document = documents.opened(path.read_bytes())
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}", hint="is it the file of a model?") from None
    except documents.ChangedError as error:
        raise MalformedError(f"{path}: {error}", hint=documents.BY_HAND) from None
    except ValueError as error:
        raise MalformedError(f"{path} is no model: {error}", hint=_WRITTEN) from None
    try:
        return from_json(document)
    except MalformedError as error:
        raise MalformedError(f"{path}: {error.message}", hint=error.hint) from None


def save(model: Model, path: Path) -> None:
    """Write ``model`` to the file ``path``, whole or not at all; StoreError if that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}", hint="name another file") from None
    write_document(path, to_json(model))


def _finding_to_json(finding: Finding) -> dict[str, Any]:
    document: dict[str, Any] = {
        "clause": finding.clause.name,
        "meaning": finding.clause.words,
        "status": finding.status.value,
        "promised": finding.promised,
        "workloads": finding.workloads,
        "exhaustive": finding.exhaustive,
        "states": str(counts.written(finding.states)),
    }
    if finding.reason is not None:
        document["reason"] = finding.reason
    if (refutation := finding.refutation) is not None:
        document["refuted_by"] = {
            "run": refutation.run,
            "workload": refutation.workload,
            "finish": refutation.finish,
            "folder": refutation.folder,
            "state": encode(refutation.state),
            "evidence": refutation.evidence,
            "there": refutation.there,
            "missing": refutation.missing,
            "alone": refutation.alone,
            "witness": refutation.witness,
        }
    return document


def _finding_from_json(document: Mapping[str, Any]) -> Finding:
    refuted = document.get("refuted_by")
    found = Finding(
        clause_of(document["clause"]),
        Status(document["status"]),
        document["promised"],
        document["workloads"],
        document["exhaustive"],
        counts.read(document["states"]),
        None if refuted is None else typed(Refutation(**{**refuted, "state": decode(CrashState, refuted["state"])})),
        document.get("reason"),
    )
    return typed(found)
