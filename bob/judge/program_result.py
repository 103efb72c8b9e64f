"""The answer for a program on a configuration, and the document of several (docs/formats.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bob.counts import read, written
from bob.crash.coverage import States, states_from_json
from bob.crash.state import CrashState
from bob.errors import MalformedError
from bob.judge.reliance import CallWords, ReliedOn
from bob.program.answer import Consequence
from bob.program.program import Program
from bob.protocol.contrast import Explanation, Reliance

SCHEMA = "bob.app/1"


class Safety(StrEnum):
    """Whether a program survives a crash on a configuration, as far as it was explored."""

    SAFE = "safe"
    VULNERABLE = "vulnerable"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Easiest:
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
    easiest: Easiest | None = None


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


@dataclass(frozen=True, slots=True)
class Programs:
    """The answers for a ``program``, of which a document says what it is ``about``; the ``kernel`` is empty where a
    document does not tell."""

    program: str
    about: str
    results: tuple[ProgramResult, ...]
    kernel: str = ""


def to_json(program: Program, results: Sequence[ProgramResult], about: Mapping[str, Any]) -> dict[str, Any]:
    """The result document (docs/formats.md)."""
    return {
        "schema": SCHEMA,
        **about,
        "program": {"name": program.name, "about": program.about, "digest": program.digest},
        "refuses": list(program.must_fail),
        "configurations": [_result_to_json(result) for result in results],
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
        "calls": [{"number": one.number, "words": one.words, "stack": list(one.stack)} for one in relied.calls],
        "trees": relied.trees,
    }


def from_json(document: Mapping[str, Any]) -> Programs:
    """The answers in a result document. Raises MalformedError where it is damaged."""
    try:
        if document["schema"] != SCHEMA:
            raise ValueError(f"its schema is {document['schema']!r}")
        results = tuple(_result_from_json(one) for one in document["configurations"])
        kernel = document.get("environment", {}).get("kernel", "")
        return Programs(document["program"]["name"], document["program"]["about"], results, kernel)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MalformedError(f"this is no result of bob app: {error}", hint="was it truncated?") from error


def _result_from_json(document: Mapping[str, Any]) -> ProgramResult:
    return ProgramResult(
        configuration=document["name"],
        mount=document["mounted"],
        safety=Safety(document["safety"]),
        states=states_from_json({**document, "mounted": document["mounted_states"]}),
        windows=document["windows"],
        trees=document["trees"],
        checks=document["checks"],
        vulnerabilities=tuple(_vulnerability_from_json(one) for one in document["vulnerabilities"]),
        reason=document["reason"],
        notes=tuple(document["notes"]),
    )


def _vulnerability_from_json(document: Mapping[str, Any]) -> Vulnerability:
    return Vulnerability(
        consequence=Consequence(document["consequence"]),
        evidence=document["evidence"],
        states=read(document["states"]),
        trees=document["trees"],
        told=document["told"].encode("latin-1"),
        relied_on=tuple(_relied_on_from_json(one) for one in document.get("relied_on", ())),
        witness=document["witness"],
    )


def _relied_on_from_json(document: Mapping[str, Any]) -> ReliedOn:
    return ReliedOn(
        Explanation(Reliance(document["reliance"]), tuple(document["missing"]), tuple(document["there"])),
        document["sentence"],
        tuple(CallWords(one["number"], one["words"], tuple(one["stack"])) for one in document["calls"]),
        document["trees"],
    )
