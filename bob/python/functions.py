"""``bob.probe`` and the other functions for Python. They take the same options as the command line."""

from __future__ import annotations

from pathlib import Path

from bob.catalogue.request import CheckPlace, Host
from bob.errors import UsageError
from bob.options import group, option
from bob.program.program import Pace
from bob.progress import Progress, Silent
from bob.python.calls import for_python
from bob.report import saved
from bob.report.saved import Saved
from bob.run import option_table as table
from bob.store.run_directory import RUNS, check_runs
from bob.workload.operations import At

WATCHER: Progress | None = option("", "An object that bob calls with its progress, from several threads.")


@group
class RunOptions:
    """The depth of the exploration, the guests, the run directory, and the receiver of progress."""

    exploration: table.Exploration
    image: str = table.IMAGE
    jobs: int | None = table.JOBS
    out: Path | None = table.OUT
    progress: Progress | None = WATCHER

    @property
    def watcher(self) -> Progress:
        return self.progress or Silent()


@for_python
def probe(
    fs: str = table.FILE_SYSTEM,
    *,
    options: table.FileSystemOptions,
    questions: table.Questions,
    run: RunOptions,
) -> Saved:
    """Find out which persistence properties a file system has, as ``bob probe`` does. Return the result and its run
    directory."""
    from bob.run import interrupts, prober
    from bob.run.requests import request

    wanted = request(options.of(fs), run.exploration, run.image, Host(jobs=run.jobs), questions)
    check_runs(run.out, "out")
    with interrupts.telling_where(run.out, RUNS), interrupts.no_guest_left():
        return Saved(*prober.probe(wanted, run.out, run.watcher))


@for_python
def resume(run: Path = table.RUN, *, jobs: int | None = table.JOBS, progress: Progress | None = WATCHER) -> Saved:
    """Resume a probe that was stopped or is incomplete, as ``bob probe --resume RUN`` does. bob does not repeat
    finished work.
    """
    from bob.run import interrupts, prober

    with interrupts.telling_where(run, RUNS), interrupts.no_guest_left():
        return Saved(*prober.resume(run, Host(jobs=jobs), progress or Silent()))


@for_python
def try_(
    operations: str = table.OPERATIONS,
    expect: tuple[str, ...] = table.EXPECTATIONS,
    *,
    fs: str = table.FILE_SYSTEM,
    setup: str = table.SETUP,
    at: At = table.MOMENT,
    finishes: tuple[str, ...] = table.FINISHES,
    witnesses: int = table.WITNESSES,
    options: table.FileSystemOptions,
    run: RunOptions,
) -> Saved:
    """Check what you expect of operations after a crash, as ``bob try`` does. Return the answers, and how each
    expectation breaks.

    Raises :class:`bob.errors.RecordingError` if nothing could be recorded.
    """
    from bob.run.interrupts import no_guest_left
    from bob.run.prober import try_out
    from bob.run.requests import QuickQuestion, request, trial

    asked = QuickQuestion(operations, expect, setup, finishes, at, most_witnesses=witnesses)
    question = trial(asked, request(options.of(fs), run.exploration, run.image, Host(jobs=run.jobs)))
    check_runs(run.out, "out")
    with no_guest_left():
        return Saved(*try_out(question, run.out, run.watcher))


@for_python
def app(
    program: str = table.PROGRAM,
    *,
    fs: tuple[str, ...] = table.FILE_SYSTEM,
    model: tuple[str, ...] = table.MODELS,
    checks: CheckPlace = table.CHECKS,
    pace: tuple[Pace, ...] = table.PACES,
    options: table.FileSystemOptions,
    run: RunOptions,
) -> Saved:
    """Find out whether a program survives a crash, as ``bob app`` does (docs/apps.md). Return the result and its run
    directory.

    Raises UsageError if the program cannot run, or its checker cannot be trusted.
    """
    from bob.apm.named import named_models
    from bob.program.folder import named
    from bob.run.interrupts import no_guest_left
    from bob.run.programs import try_program
    from bob.run.requests import RECORDED_ON, program_requests

    found, models = named(program), named_models(model)
    if not fs and not models:
        raise UsageError("neither fs nor model is given", hint="for example fs='ext4', or model='all'")
    paces = pace if pace or fs else (Pace.UNDISTURBED,)
    systems, guests, watcher = fs or (RECORDED_ON,), table.GuestOptions(jobs=run.jobs), run.watcher
    asked = program_requests(
        found, systems, options, paces, run.exploration, run.image, guests, checks=checks, progress=watcher.step
    )
    check_runs(run.out, "out")
    with no_guest_left():
        return Saved(*try_program(found, asked, run.out, watcher, models, explores=bool(fs)))


@for_python
def load(path: Path = option("", "A run directory, or a file that ``--json`` wrote.")) -> Saved:
    """Return the result of a run: ``bob.load(run).matrix()`` is the table as a DataFrame (docs/results.md).

    Raises :class:`bob.errors.StoreError` if the result is missing, and :class:`bob.errors.MalformedError` if it is
    damaged.
    """
    return saved.load(path)
