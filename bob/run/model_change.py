"""The vulnerabilities of a program on models of file systems, and the comparison of two models. bob records the program
once, on a real file system, for all models."""

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
    """Record ``program`` once, and return a result with its vulnerabilities on each of ``models``. Do not explore crash
    states of the real file system that the recording was made on. Keep the run in the directory ``out``. ``how`` has
    the options for the recording."""
    where, paces, deep = FileSystemOptions(), (Pace.UNDISTURBED,), how.exploration
    requests = program_requests(
        program, (RECORDED_ON,), where, paces, deep, how.image, how.guests, checks=checks, progress=progress.step
    )
    answers, _run = try_program(program, requests, out, progress, models, explores=False)
    return answers


def model_change(
    program: Program, models: tuple[Model, Model], how: ProgramRunOptions, checks: CheckPlace, progress: Progress
) -> Change:
    """Record ``program`` once, and find its vulnerabilities on two models. Return which vulnerabilities it has only on
    the second model, and which only on the first. ``how`` has the options for the recording."""
    answers = answers_by_models(program, with_distinct_names(models), how, checks, progress)
    return change(program.name, *answers.models)
