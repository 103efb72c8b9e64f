"""Results of programs, made by hand: what tests of answers, pages and tables begin with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bob.answer.answer import Answer, Way
from bob.answer.result import Allowed, AskedProgram, Checks, Environment, Result, Run, SubjectResult
from bob.claim.verdict import Verdict
from bob.crash.coverage import NOTHING, States
from bob.crash.device import DeviceModel, DeviceModelDocument
from bob.judge.programs import CHECKER
from bob.program.answer import Consequence


def way(
    consequence: Consequence, evidence: str, states: int = 1, trees: int = 1, told: bytes = b"", **more: Any
) -> Way:
    """Return a way to break a program, before which it had ``told`` this."""
    return Way(evidence, states, consequence=consequence, told=told.decode("latin-1"), trees=trees, **more)


def file_system(
    name: str,
    verdict: Verdict,
    ways: Sequence[Way] = (),
    states: States = NOTHING,
    checks: Checks = Checks(1, 1, 1),  # noqa: B008
    reason: str | None = None,
    notes: Sequence[str] = (),
) -> SubjectResult:
    """Return the answer of a program on the file system of this ``name``."""
    answer = Answer(CHECKER, verdict, states, tuple(ways), reason=reason)
    fs = name.partition("-")[0]
    return SubjectResult(name, fs, "", "", "rw", (answer,), checks=checks, notes=tuple(notes))


def by_model(
    name: str,
    verdict: Verdict,
    ways: Sequence[Way] = (),
    model: Allowed = Allowed("a model", 1, 1, 1, is_all=True),  # noqa: B008
    checks: Checks = Checks(0, 1, 1),  # noqa: B008
    reason: str | None = None,
    notes: Sequence[str] = (),
) -> SubjectResult:
    """Return the answer of a program by the model of this ``name``."""
    answer = Answer(CHECKER, verdict, NOTHING, tuple(ways), reason=reason)
    return SubjectResult(name, answers=(answer,), checks=checks, model=model, notes=tuple(notes))


def of_program(name: str, about: str, *subjects: SubjectResult, kernel: str = "", **more: Any) -> Result:
    """Return the result of the program of this ``name``."""
    return Result(
        Run("made-up", "2026-11-21T23:00:21Z", "2026-11-21T23:04:33Z"),
        Environment(kernel, "", "", "", "", "", ""),
        DeviceModelDocument.of(DeviceModel()),
        subjects,
        AskedProgram(name, about),
        **more,
    )
