"""The answers of models for a program that is recorded once, and the changes that another model makes to them."""

from collections.abc import Sequence
from pathlib import Path

from bob.answer.result import Result
from bob.apm.model import Model, with_distinct_names
from bob.catalogue.request import CheckPlace
from bob.judge.modelled import Change, change
from bob.program.program import Pace, Program
from bob.progress import Progress
from bob.run.option_table import FileSystemOptions, ProgramRunOptions
from bob.run.programs import try_program
from bob.run.requests import RECORDED_ON, program_requests


def answers_by_models(
    program: Program,
    models: Sequence[Model],
    how: ProgramRunOptions,
    checks: CheckPlace,
    progress: Progress,
    out: Path | None = None,
) -> Result:
    """Record ``program`` once, and return the answers of ``models``. bob does not explore crash states of the
    recording. The directory ``out`` keeps the run."""
    where, paces, deep = FileSystemOptions(), (Pace.UNDISTURBED,), how.exploration
    requests = program_requests(
        program, (RECORDED_ON,), where, paces, deep, how.image, how.guests, checks=checks, progress=progress.step
    )
    answers, _run = try_program(program, requests, out, progress, models, explores=False)
    return answers


def model_change(
    program: Program, models: tuple[Model, Model], how: ProgramRunOptions, checks: CheckPlace, progress: Progress
) -> Change:
    """Record ``program`` once, and compare it with two models. Return which vulnerabilities of the program the second
    model adds to those of the first, and which it mends."""
    answers = answers_by_models(program, with_distinct_names(models), how, checks, progress)
    return change(program.name, *answers.models)
