"""The answer for a program on a configuration, and the document of several (docs/formats.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from bob.counts import read, written
from bob.crash.coverage import States
from bob.crash.state import CrashState
from bob.errors import MalformedError
from bob.fields import MISSHAPEN, said
from bob.judge.reliance import CallWords, ReliedOn
from bob.program.answer import Consequence
from bob.program.program import Program
from bob.protocol.contrast import Explanation, Reliance
from bob.protocol.diagram import Protocol
from bob.schema import decode, encode
from bob.typed import array, typed

SCHEMA = "bob.app/1"


class Safety(StrEnum):
    """Whether a program survives a crash on a configuration, as far as it was explored."""

    SAFE = "safe"
    VULNERABLE = "vulnerable"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class EasiestState:
    """The crash ``state`` that is easiest to explain, with the number of its ``outcome``, of the window with the number
    ``place``. A document has none: the witness has it."""

    place: int
    state: CrashState
    outcome: int


@dataclass(frozen=True, slots=True)
class Vulnerability:
    """A way in which crashes harm the program: what the checker says, in how many legal crash states (``states``) and
    how many different trees (``trees``). Before the ``easiest`` crash ``told`` had been told. The program relies on
    what is ``relied_on``, the one with most trees first."""

    consequence: Consequence
    evidence: str
    states: int
    trees: int
    told: bytes
    relied_on: tuple[ReliedOn, ...] = ()
    witness: str | None = None
    easiest: EasiestState | None = None


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """The answer of one configuration.

    ``trees`` is how many different outcomes there are, each with what was told before, and ``checks`` how often the
    checker was run. ``reason`` says why it is unknown, ``notes`` what else is to be known.
    """

    configuration: str
    mount: str
    safety: Safety
    states: States
    windows: int
    trees: int
    checks: int
    vulnerabilities: tuple[Vulnerability, ...] = ()
    reason: str | None = None
    notes: tuple[str, ...] = ()


class Cross(StrEnum):
    """What the crash states of a real file system say of a vulnerability that a model predicts; or of one of theirs
    that it does not (``MISSED``: the model, or bob, is wrong)."""

    CONFIRMED = "confirmed"
    NOT_REACHABLE = "not reachable"
    OPEN = "open"
    MISSED = "missed by the model"


@dataclass(frozen=True, slots=True)
class Predicted:
    """A way in which crashes that a model allows harm the program; as a :class:`Vulnerability`, without a disk.
    ``step`` says which step of the work came to it first. ``crossed`` has, by configuration, what the real file system
    says of it."""

    consequence: Consequence
    evidence: str
    trees: int
    told: bytes
    step: str
    relied_on: tuple[ReliedOn, ...] = ()
    crossed: Mapping[str, Cross] = field(default_factory=dict)

    @property
    def cross(self) -> Cross | None:
        """What all real file systems together say of it: one that confirms it is enough, and none can reach it only if
        each cannot. None where it was not looked for."""
        said = frozenset(self.crossed.values())
        if len(said) < 2:
            return next(iter(said), None)
        return Cross.CONFIRMED if Cross.CONFIRMED in said else Cross.OPEN


@dataclass(frozen=True, slots=True)
class Missed:
    """A vulnerability of a real file system, the ``configuration``, with a tree that a model does not allow, by these
    ``clauses`` (none: it is not known by which). Where ``is_wrong``, the model was derived of that file system: it is
    wrong, or bob."""

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
class ModelResult:
    """The answer of one model.

    ``tried`` crash states (a closed set of micro-operations, with what had been told) were made, of ``operations``
    operations and ``micro_operations``; ``is_all`` says that the model allows no other one. It allows so many
    (``allowed``; None: not counted), or, unless ``is_counted``, at least so many. Those that were made left as many
    different ``trees``, and the checker was run so often for this model (``checks``): of what another model has left,
    too, the answer was known. ``missed`` is what the real file systems have, and it does not allow.
    """

    model: str
    about: str
    safety: Safety
    operations: int
    micro_operations: int
    tried: int
    is_all: bool
    trees: int
    checks: int
    vulnerabilities: tuple[Predicted, ...] = ()
    reason: str | None = None
    notes: tuple[str, ...] = ()
    missed: tuple[Missed, ...] = ()
    allowed: int | None = None
    is_counted: bool = False


@dataclass(frozen=True, slots=True)
class Programs:
    """The answers for a ``program``, of which a document says what it is ``about``; the ``kernel`` is empty where a
    document does not tell. ``models`` are the answers of models, which are held against the first of the ``protocols``:
    what the program did, for each configuration on which that is known."""

    program: str
    about: str
    results: tuple[ProgramResult, ...]
    kernel: str = ""
    models: tuple[ModelResult, ...] = ()
    protocols: tuple[Protocol, ...] = ()

    @property
    def safeties(self) -> frozenset[Safety]:
        """What the answers say, those of models included."""
        return frozenset({*(one.safety for one in self.results), *(one.safety for one in self.models)})

    @property
    def is_contradicted(self) -> bool:
        """Whether a model forbids what the file system that it was derived of has left."""
        return any(missed.is_wrong for model in self.models for missed in model.missed)


def to_json(
    program: Program,
    results: Sequence[ProgramResult],
    about: Mapping[str, Any],
    models: Sequence[ModelResult] = (),
    protocols: Sequence[Protocol] = (),
) -> dict[str, Any]:
    """The result document (docs/formats.md)."""
    return {
        "schema": SCHEMA,
        **about,
        "program": {"name": program.name, "about": program.about, "digest": program.digest},
        "refuses": list(program.must_fail),
        "configurations": [_result_to_json(result) for result in results],
        **({"models": [_model_to_json(model) for model in models]} if models else {}),
        **({"protocols": [encode(protocol) for protocol in protocols]} if protocols else {}),
    }


def _model_to_json(model: ModelResult) -> dict[str, Any]:
    return {
        "model": model.model,
        "about": model.about,
        "safety": model.safety.value,
        "reason": model.reason,
        "operations": model.operations,
        "micro_operations": model.micro_operations,
        "tried": model.tried,
        "all": model.is_all,
        **({} if model.allowed is None else {"allowed": written(model.allowed), "counted": model.is_counted}),
        "trees": model.trees,
        "checks": model.checks,
        "vulnerabilities": [
            {
                "consequence": one.consequence.value,
                "evidence": one.evidence,
                "trees": one.trees,
                "told": one.told.decode("latin-1"),
                "step": one.step,
                "relied_on": [_relied_on_to_json(relied) for relied in one.relied_on],
                "crossed": {name: cross.value for name, cross in one.crossed.items()},
            }
            for one in model.vulnerabilities
        ],
        "notes": list(model.notes),
        "missed": [asdict(missed) for missed in model.missed],
    }


def _result_to_json(result: ProgramResult) -> dict[str, Any]:
    states = result.states
    return {
        "name": result.configuration,
        "mounted": result.mount,
        "safety": result.safety.value,
        "reason": result.reason,
        "explored": written(states.explored),
        "legal_writes": written(states.legal_writes),
        "legal_sectors": written(states.legal_sectors),
        "exhaustive": states.exhaustive,
        "explored_writes": None if states.explored_writes is None else written(states.explored_writes),
        "unmountable": written(states.unmountable),
        "unmountable_writes": written(states.unmountable_writes),
        "mounted_states": states.mounted,
        "windows": result.windows,
        "trees": result.trees,
        "checks": result.checks,
        "vulnerabilities": [
            {
                "consequence": one.consequence.value,
                "evidence": one.evidence,
                "states": written(one.states),
                "trees": one.trees,
                "told": one.told.decode("latin-1"),
                "relied_on": [_relied_on_to_json(relied) for relied in one.relied_on],
                "witness": one.witness,
            }
            for one in result.vulnerabilities
        ],
        "notes": list(result.notes),
    }


def _relied_on_to_json(relied: ReliedOn) -> dict[str, Any]:
    explanation = relied.explanation
    return {
        "reliance": explanation.reliance.value,
        "sentence": relied.sentence,
        "missing": list(explanation.missing),
        "there": list(explanation.there),
        **({"beside": list(explanation.beside)} if explanation.beside else {}),
        "calls": [{"number": one.number, "words": one.words, "stack": list(one.stack)} for one in relied.calls],
        "trees": relied.trees,
        "kind": relied.kind,
    }


def from_json(document: Mapping[str, Any]) -> Programs:
    """The answers in a result document. Raises MalformedError where it is damaged."""
    try:
        if document["schema"] != SCHEMA:
            raise ValueError(f"its schema is {document['schema']!r}")
        results = tuple(_result_from_json(one) for one in document["configurations"])
        kernel = document.get("environment", {}).get("kernel", "")
        models = tuple(_model_from_json(one) for one in document.get("models", ()))
        protocols = tuple(decode(Protocol, one) for one in document.get("protocols", ()))
        program = document["program"]
        return typed(Programs(program["name"], program["about"], results, kernel, models, protocols))
    except MISSHAPEN as error:
        raise MalformedError(f"this is no result of bob app: {said(error)}", hint="was it truncated?") from error


def _result_from_json(document: Mapping[str, Any]) -> ProgramResult:
    found = ProgramResult(
        configuration=document["name"],
        mount=document["mounted"],
        safety=Safety(document["safety"]),
        states=decode(States, {**document, "mounted": document["mounted_states"]}),
        windows=document["windows"],
        trees=document["trees"],
        checks=document["checks"],
        vulnerabilities=tuple(_vulnerability_from_json(one) for one in document["vulnerabilities"]),
        reason=document["reason"],
        notes=array(document["notes"]),
    )
    return typed(found)


def _vulnerability_from_json(document: Mapping[str, Any]) -> Vulnerability:
    found = Vulnerability(
        consequence=Consequence(document["consequence"]),
        evidence=document["evidence"],
        states=read(document["states"]),
        trees=document["trees"],
        told=document["told"].encode("latin-1"),
        relied_on=tuple(_relied_on_from_json(one) for one in document.get("relied_on", ())),
        witness=document["witness"],
    )
    return typed(found)


def _relied_on_from_json(document: Mapping[str, Any]) -> ReliedOn:
    explanation = Explanation(
        Reliance(document["reliance"]),
        array(document["missing"]),
        array(document["there"]),
        array(document.get("beside", ())),
    )
    calls = tuple(typed(CallWords(one["number"], one["words"], array(one["stack"]))) for one in document["calls"])
    found = ReliedOn(typed(explanation), document["sentence"], calls, document["trees"], document.get("kind", ""))
    return typed(found)


def _model_from_json(document: Mapping[str, Any]) -> ModelResult:
    found = ModelResult(
        model=document["model"],
        about=document["about"],
        safety=Safety(document["safety"]),
        operations=document["operations"],
        micro_operations=document["micro_operations"],
        tried=document["tried"],
        is_all=document["all"],
        trees=document["trees"],
        checks=document["checks"],
        vulnerabilities=tuple(
            typed(
                Predicted(
                    consequence=Consequence(one["consequence"]),
                    evidence=one["evidence"],
                    trees=one["trees"],
                    told=one["told"].encode("latin-1"),
                    step=one["step"],
                    relied_on=tuple(_relied_on_from_json(relied) for relied in one["relied_on"]),
                    crossed={name: Cross(cross) for name, cross in one["crossed"].items()},
                )
            )
            for one in document["vulnerabilities"]
        ),
        reason=document["reason"],
        notes=array(document["notes"]),
        missed=tuple(
            typed(Missed(one["configuration"], one["evidence"], one["is_wrong"], array(one.get("clauses", ()))))
            for one in document.get("missed", ())
        ),
        allowed=read(document["allowed"]) if "allowed" in document else None,
        is_counted=document.get("counted", False),
    )
    return typed(found)
