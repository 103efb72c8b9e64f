"""``bob show``: prints a finished run again, or several side by side, as a table on the terminal or as a document."""

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
        "The format.",
        Choice(FORMATS),
        words="by the ending of FILE, else table; site for a directory",
    ),
    output: Destination | None = option(
        "--output FILE|DIR/",
        "Write into FILE; - is stdout, the default. DIR/ gets a page for the table, and one for each witness.",
        DESTINATION,
    ),
    json_file: Path | None = table.JSON,
) -> Exit:
    """Print the results of RUN again, or write them as a document. RUN is a run directory, or a result that --json
    wrote.

    bob prints several runs side by side, one column for each configuration. It leaves out runs without a table, such as
    a stopped run or one of `bob try`, and names them. For one run of `bob try` or `bob app`, it prints the answers, or
    writes pages. For one run of `bob app`, it can also draw the program's update protocol, as SVG or as DOT for
    Graphviz. For several runs of `bob app`, it prints the number of vulnerabilities by type, by consequence, and by
    file system and model, beside the numbers of OSDI'14.

    The formats: Markdown for a forge; LaTeX with booktabs, in the layout of the paper's Table 1; CSV with one line for
    each cell; JSON, the result document; HTML, a stand-alone page where each cell links to its evidence; JUnit XML for
    CI (docs/results.md). In an existing directory, or one whose name ends in a slash, bob writes a site. Its index.html
    has the table, and each × links to a page with the story of its witness and a timeline.

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
      0   every cell or expectation has an answer
      1   a program is vulnerable
      3   some cell or expectation is unknown
      8   a file is not a valid result
      9   a run has no result
      10  a model forbids a state that its own file system left: the model or bob is wrong
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
    """Return the results of ``runs``. If there are several runs, leave out those without a result, and print their
    names. If not all of them are runs of bob app, also leave out those whose result is not a table."""
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
