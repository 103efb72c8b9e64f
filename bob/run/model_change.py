"""What a change of a model means for a program: its answer by one model beside that by another."""

from __future__ import annotations

from bob.apm.model import Model, told_apart
from bob.judge.modelled import Change, change
from bob.program.pace import Pace
from bob.program.program import Program
from bob.progress import Progress
from bob.run.option_table import Exploration, FileSystemOptions, Guests
from bob.run.programs import try_program
from bob.run.requests import RECORDED_ON, program_requests


def model_change(
    program: Program,
    models: tuple[Model, Model],
    exploration: Exploration,
    image: str,
    guests: Guests,
    progress: Progress,
) -> Change:
    """Record ``program`` once, and return what the second of two ``models`` changes for it."""
    requests = program_requests(
        program,
        (RECORDED_ON,),
        FileSystemOptions(),
        (Pace.UNDISTURBED,),
        exploration,
        image,
        guests,
        progress=progress.step,
    )
    answers, _run = try_program(program, requests, None, progress, told_apart(models), explores=False)
    return change(program.name, *answers.models)
