"""``bob show``: a finished run again, or several side by side, as a table on the terminal or as a document."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from bob.cli.ci import exit_of
from bob.cli.commands import command
from bob.cli.formats import FORMATS, check_format, check_output, document_of, format_of, kind_of, write
from bob.cli.output import console, is_stdout, write_json
from bob.errors import BobError, Exit, MalformedError, StoreError, UsageError
from bob.options import Choice, option
from bob.report.saved import Saved, load_every, load_table
from bob.run import option_table as table
from bob.run.option_paths import DESTINATION, EXISTING, Destination
from bob.store.kept_runs import kept_run
from bob.store.run_kind import RunKind


@command()
def show(
    runs: tuple[Path, ...] = option("RUN...", "", EXISTING),
    *,
    wanted: str | None = option(
        "--format",
        "What to write.",
        Choice(FORMATS),
        words="what FILE ends with, else table; for a directory site",
    ),
    output: Destination | None = option(
        "--output FILE|DIR/",
        "Write it into FILE; - is stdout, the default. Into DIR/: a page for the table, and one for each witness.",
        DESTINATION,
    ),
    json_file: Path | None = table.JSON,
) -> Exit:
    """Print the table of RUN again: a run directory, or a result that --json wrote.

    Several runs are shown side by side, a column for each configuration; those without a table, such as a stopped one
    or that of a question to `bob try`, are left out and named. Of a run of `bob try` or `bob app`,
    shown alone, the answers are printed again, or become pages; and the update protocol of the latter a picture: SVG,
    or DOT for Graphviz. Of several runs of `bob app` it prints how many vulnerabilities the programs
    have, by type, by consequence, and by file system and model, beside what OSDI'14 published.

    The formats: Markdown for a forge; LaTeX in the layout of the paper's Table 1, with booktabs; CSV with a line for
    each cell; JSON, the result document; HTML, one page that stands alone, where each cell leads to its evidence and
    to what was run; JUnit XML for a CI (docs/results.md). A directory, one that is there or whose name ends in a slash,
    becomes a site: index.html has the table, and each × leads to a page of its own, with the story of its witness and a
    picture of the time line.

    \b
    Examples:
      bob show bob-runs/20261121T230021-1f2e3d
      bob show bob-runs/*
      bob show bob-runs/20261121T230021-1f2e3d --output table1.html
      bob show bob-runs/20261121T230021-1f2e3d --output pages/
      bob show bob-runs/* --format latex --output table1.tex
      bob show bob-runs/20261121T230021-1f2e3d --output report.xml
      bob show bob-runs/20261121T230021-1f2e3d --output protocol.dot
      bob show bob-runs/20261121T231530-9a8b7c --output answers.html
      bob show --json - bob-runs/20261121T230021-1f2e3d | jq .environment

    \b
    Exit codes:
      0   every cell has a verdict, or every expectation an answer
      1   a program is vulnerable
      10  a model forbids what the file system that it was derived of has left: the model is wrong, or bob
      3   some cell is unknown, or of an expectation it is not known
      8   a file is no result
      9   a run has no result
    """
    made = wanted or format_of(output)
    check_output(made, output)
    shown = output.path if output else Path("-")
    if is_stdout(json_file) and (output or wanted) and is_stdout(shown):
        raise UsageError("two documents cannot both go to stdout", hint="name a file with --output or with --json")
    saved = _load(runs)
    kind = kind_of(saved)
    check_format(kind, made, str(runs[0]))
    if json_file is not None:
        write_json(json_file, document_of(kind, saved))
    if not (is_stdout(json_file) and is_stdout(shown)):
        write(kind, made, saved, shown)
    return exit_of(one.result for one in saved)


def _load(runs: tuple[Path, ...]) -> list[Saved]:
    """Return the results of ``runs``. If there are several, name and skip those without a result. Unless all are of
    bob app, skip those without a table, too."""
    if len(runs) == 1:
        return load_every(runs[0])
    saved: dict[Path, list[Saved]] = {}
    failures: dict[Path, BobError] = {}
    for run in runs:
        try:
            saved[run] = load_every(run)
        except (StoreError, MalformedError) as error:
            if not run.is_dir():
                raise
            failures[run] = error
    every = [one for some in saved.values() for one in some]
    if not every:
        raise next(iter(failures.values()))
    are_programs = all(one.result.program is not None for one in every)
    for run in runs:
        if run in failures or not (are_programs or all(one.result.is_table for one in saved[run])):
            _name_left_out(run, failures.get(run), are_programs=are_programs)
            saved.pop(run, None)
    return [one for some in saved.values() for one in some] or [load_table(runs[0])]


def _name_left_out(run: Path, failure: BobError | None, *, are_programs: bool) -> None:
    kind = kept_run(run).kind
    is_alone = not are_programs and kind in (RunKind.TRY, RunKind.APP)
    words = str(failure.message) if failure else ""
    if kind is not None and (is_alone or failure is None):
        words = f"{run} is a run of bob {kind.value}, which has no table"
    console(stderr=True).print(Text(f"left out: {words}", "bob.dim"), soft_wrap=True)
