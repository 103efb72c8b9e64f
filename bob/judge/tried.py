"""A quick question, and what came of it: the document ``bob.try/1``, which docs/formats.md describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bob import counts
from bob.agent.loss import Loss
from bob.catalogue.request import ProbeRequest
from bob.claim.expectation.language import parse
from bob.claim.expectation.syntax import Expectation
from bob.claim.verdict import Verdict
from bob.crash.coverage import States
from bob.crash.device import DeviceModel, DeviceModelDocument
from bob.errors import MalformedError, UsageError
from bob.fields import MISSHAPEN, said
from bob.judge.answers import Answer, Way
from bob.result import Environment, Run, Unmountable, environment_from_json, plain, run_from_json, unmountable_from_json
from bob.schema import decode, encode
from bob.subject import Subject
from bob.subject.subject import ConfigurationDocument
from bob.workload.operations import At, Finish, Workload
from bob.workload.plain import finish_from_json, finish_to_json, workload_from_json, workload_to_json

SCHEMA = "bob.try/1"


@dataclass(frozen=True, slots=True)
class Trial:
    """What is asked: of ``request`` how and where, what is done, when the crash comes, and what is expected then.

    ``workloads`` differ in how they finish, and in nothing else. Of each expectation that breaks, up to
    ``most_witnesses`` ways are kept as witnesses.
    """

    request: ProbeRequest
    workloads: tuple[Workload, ...]
    expectations: tuple[Expectation, ...]
    most_witnesses: int

    @property
    def at(self) -> At:
        """When the crash comes."""
        return self.workloads[0].at


@dataclass(frozen=True, slots=True)
class Finished:
    """What was explored of the recording with one ``finish``; ``refused`` says why there is none, if there is none, and
    ``fall`` how the kernel panicked or hung while it was made."""

    finish: Finish
    states: States
    unmountable: Unmountable
    refused: str | None = None
    fall: Loss | None = None


@dataclass(frozen=True, slots=True)
class Tried:
    """Operations with what is expected after a crash, and the answers over all ``finishes``.

    ``workload`` has the first of them. ``witnesses`` has, for each answer, the paths in the run directory of the
    witnesses of its first ways. ``mount`` are the mount options as the kernel lists them; ``states`` and
    ``unmountable`` are those of all recordings together.
    """

    run: Run
    environment: Environment
    model: DeviceModel
    configuration: Subject
    mount: str
    workload: Workload
    at: At
    states: States
    unmountable: Unmountable
    answers: tuple[Answer, ...]
    witnesses: tuple[tuple[str, ...], ...]
    finishes: tuple[Finished, ...]
    notes: tuple[str, ...] = ()

    @property
    def falls(self) -> tuple[Finished, ...]:
        """The finishes with which the kernel panicked or hung: findings about that kernel."""
        return tuple(part for part in self.finishes if part.fall is not None)


def to_json(tried: Tried) -> dict[str, Any]:
    """``tried`` as a plain document."""
    document: dict[str, Any] = plain(
        {
            "schema": SCHEMA,
            "run": asdict(tried.run),
            "environment": asdict(tried.environment),
            "device_model": encode(DeviceModelDocument.of(tried.model)),
            "configuration": encode(ConfigurationDocument.of(tried.configuration)),
            "effective_mount_options": tried.mount,
            "workload": workload_to_json(tried.workload),
            "at": tried.at,
            "states": asdict(tried.states),
            "unmountable": asdict(tried.unmountable),
            "finishes": [
                {
                    **finish_to_json(part.finish),
                    "states": asdict(part.states),
                    "unmountable": asdict(part.unmountable),
                    "refused": part.refused,
                    "fall": None if part.fall is None else encode(part.fall),
                }
                for part in tried.finishes
            ],
            "expectations": [
                _answer(answer, witnesses) for answer, witnesses in zip(tried.answers, tried.witnesses, strict=True)
            ],
            "notes": tried.notes,
        }
    )
    return document


def from_json(document: Mapping[str, Any]) -> Tried:
    """The answers in a plain document; raises MalformedError if it is none of this schema.

    Those of a bob that asked after one finish only have no ``finishes``: it is that of the workload.
    """
    schema = document.get("schema")
    if schema != SCHEMA:
        raise MalformedError(f"schema {schema!r} is not {SCHEMA!r}", hint="is it the result of bob try?")
    try:
        workload = workload_from_json(document["workload"])
        states, unmountable = decode(States, document["states"]), unmountable_from_json(document["unmountable"])
        found = [_answer_from_json(one) for one in document["expectations"]]
        finishes = tuple(
            Finished(
                finish_from_json(one),
                decode(States, one["states"]),
                unmountable_from_json(one["unmountable"]),
                one["refused"],
                None if one.get("fall") is None else decode(Loss, one["fall"]),
            )
            for one in document.get("finishes", ())
        )
        return Tried(
            run=run_from_json(document["run"]),
            environment=environment_from_json(document["environment"]),
            model=decode(DeviceModelDocument, document["device_model"]).model,
            configuration=decode(ConfigurationDocument, document["configuration"]).configuration,
            mount=document["effective_mount_options"],
            workload=workload,
            at=At(document["at"]),
            states=states,
            unmountable=unmountable,
            answers=tuple(answer for answer, _witnesses in found),
            witnesses=tuple(witnesses for _answer, witnesses in found),
            finishes=finishes or (Finished(workload.finish, states, unmountable),),
            notes=tuple(document["notes"]),
        )
    except UsageError as error:
        raise MalformedError(f"the answers are damaged: {error.message}", hint=error.hint) from None
    except MISSHAPEN as error:
        raise MalformedError(f"the answers are damaged: {said(error)}") from None


def _answer(answer: Answer, witnesses: tuple[str, ...]) -> dict[str, Any]:
    paths = [*witnesses, *[None] * (len(answer.ways) - len(witnesses))]
    each = answer.each or (answer,)
    return {
        "expectation": answer.expectation.text,
        "verdict": answer.verdict,
        "violations": answer.states,
        "ways": [
            {
                "evidence": way.evidence,
                "violations": way.states,
                "witness": path,
                "finish": way.place,
                "by_finish": answer.counts(way) or (way.states,),
            }
            for way, path in zip(answer.ways, paths, strict=True)
        ],
        "needs_no_crash": answer.needs_no_crash,
        "reason": answer.reason,
        "by_finish": [
            {
                "verdict": one.verdict,
                "violations": one.states,
                "needs_no_crash": one.needs_no_crash,
                "reason": one.reason,
            }
            for one in each
        ],
    }


def _answer_from_json(document: Mapping[str, Any]) -> tuple[Answer, tuple[str, ...]]:
    """An answer, and its witnesses."""
    expectation, ways = parse(document["expectation"]), document["ways"]
    each = tuple(
        Answer(
            expectation,
            Verdict(one["verdict"]),
            tuple(Way(way["evidence"], shown, None) for way in ways if (shown := counts.read(way["by_finish"][place]))),
            one["reason"],
            one["needs_no_crash"],
        )
        for place, one in enumerate(document.get("by_finish", ()))
    )
    answer = Answer(
        expectation,
        Verdict(document["verdict"]),
        tuple(Way(way["evidence"], counts.read(way["violations"]), None, way.get("finish", 0)) for way in ways),
        document["reason"],
        document["needs_no_crash"],
        each if len(each) > 1 else (),
    )
    return answer, tuple(way["witness"] for way in ways if way["witness"] is not None)
