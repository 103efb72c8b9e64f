"""A quick question, and what came of it: the document ``bob.try/1``, which docs/formats.md describes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from bob.config import Configuration
from bob.crash.device import DeviceModel
from bob.expect.answers import Answer
from bob.expect.syntax import Expectation
from bob.request import ProbeRequest, configuration_to_json
from bob.result import Environment, Run, States, Unmountable, plain
from bob.store import workload_to_json
from bob.workload.operations import At, Workload

SCHEMA = "bob.try/1"


@dataclass(frozen=True, slots=True)
class Trial:
    """What is asked: of ``request`` how and where, what is done, when the crash comes, and what is expected then.

    Of each expectation that breaks, up to ``most_witnesses`` ways are kept as witnesses.
    """

    request: ProbeRequest
    workload: Workload
    expectations: tuple[Expectation, ...]
    at: At
    most_witnesses: int


@dataclass(frozen=True, slots=True)
class Tried:
    """A workload with what is expected after a crash, and the answers.

    ``witnesses`` has, for each answer, the paths within the run directory of the witnesses of its first ways. ``mount``
    are the mount options as the kernel lists them, ``states`` what was explored of the crash states at that time.
    """

    run: Run
    environment: Environment
    model: DeviceModel
    configuration: Configuration
    mount: str
    workload: Workload
    at: At
    states: States
    unmountable: Unmountable
    answers: tuple[Answer, ...]
    witnesses: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def to_json(tried: Tried) -> dict[str, Any]:
    """``tried`` as a plain document."""
    document: dict[str, Any] = plain(
        {
            "schema": SCHEMA,
            "run": asdict(tried.run),
            "environment": asdict(tried.environment),
            "device_model": {
                "write_cache": tried.model.write_cache.value,
                "atomic_write_bytes": tried.model.atomic_write_bytes,
                "completion": tried.model.completion.value,
            },
            "configuration": configuration_to_json(tried.configuration),
            "effective_mount_options": tried.mount,
            "workload": workload_to_json(tried.workload),
            "at": tried.at,
            "states": asdict(tried.states),
            "unmountable": asdict(tried.unmountable),
            "expectations": [
                _answer(answer, witnesses) for answer, witnesses in zip(tried.answers, tried.witnesses, strict=True)
            ],
            "notes": tried.notes,
        }
    )
    return document


def _answer(answer: Answer, witnesses: tuple[str, ...]) -> dict[str, Any]:
    paths = [*witnesses, *[None] * (len(answer.ways) - len(witnesses))]
    return {
        "expectation": answer.expectation.text,
        "verdict": answer.verdict,
        "violations": answer.states,
        "ways": [
            {"evidence": way.evidence, "violations": way.states, "witness": path}
            for way, path in zip(answer.ways, paths, strict=True)
        ],
        "needs_no_crash": answer.needs_no_crash,
        "reason": answer.reason,
    }
