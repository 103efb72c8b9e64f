"""Checks and hints for commands that write a run directory (the recordings and results of a run). The checks refuse
options that do not fit --resume. After Ctrl-C, a hint says what bob keeps."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from bob.cli.ending import Interrupted, is_interrupt
from bob.cli.options import is_given
from bob.errors import UsageError
from bob.options import Option
from bob.run.interrupts import Begun
from bob.store.run_directory import RUNS, check_runs
from bob.store.run_kind import instead_of_resuming


def check_resumed(context: click.Context) -> None:
    """Raise UsageError for an option that cannot be used with --resume, since a run keeps the options of its start."""
    for parameter in context.command.params:
        declared = getattr(parameter, "declared", None)
        if is_given(context, parameter) and not (isinstance(declared, Option) and declared.renewable):
            raise UsageError(
                f"{parameter.opts[0]} cannot be used with --resume",
                hint="RUN keeps the options that it was started with; for others, start a new run",
            )


@contextmanager
def telling_what_is_kept(verb: str, folder: Path | None, *, resumes: bool = True) -> Iterator[None]:
    """Return a context manager for a command that writes a run into ``folder`` (None: a new folder in bob-runs). If
    Ctrl-C ends the command, raise Interrupted with a hint about the files that are kept. In the hint, ``verb`` is the
    name of the command, and ``resumes`` says whether the command can resume its run. Raise UsageError if bob needs a
    new folder, but cannot make it."""
    check_runs(folder)
    begun = Begun(folder, RUNS)
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        if not is_interrupt(error):
            raise
        if (run := begun.run) is None:
            raise Interrupted from None
        if not resumes:
            raise Interrupted(f"bob {verb} cannot be resumed: {instead_of_resuming(run)}") from None
        raise Interrupted(
            f"bob keeps what is finished; `bob {verb} --resume {shlex.quote(str(run))}` continues"
        ) from None
