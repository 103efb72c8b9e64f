"""``bob show``: a finished run again, or several side by side, as a table on the terminal or as a document."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import click
from rich.console import Console

from bob.cli.options import NewFile, json_option
from bob.cli.output import console, is_stdout, paper, write_json, write_text
from bob.errors import Exit, UsageError
from bob.report.columns import Column, columns_of
from bob.report.saved import Saved, load
from bob.report.table import nearby, print_result
from bob.result import to_json

STDOUT = Path("-")
ENDINGS = {
    "table": (".txt",),
    "markdown": (".md", ".markdown"),
    "latex": (".tex",),
    "csv": (".csv",),
    "json": (".json",),
    "html": (".html", ".htm"),
}
"""The formats, and how their files end."""


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--format",
    "wanted",
    type=click.Choice(tuple(ENDINGS)),
    help="What to write.  [default: what FILE ends with, else table]",
)
@click.option("--output", type=NewFile(), metavar="FILE", help="Write it into FILE; - is stdout, the default.")
@json_option
def show(runs: tuple[Path, ...], wanted: str | None, output: Path | None, json_file: Path | None) -> Exit:
    """Print the table of RUN again: a run directory, or a result that --json wrote.

    Several runs are shown side by side, a column for each configuration.

    The formats: Markdown for a forge; LaTeX in the layout of the paper's Table 1, with booktabs; CSV with a line for
    each cell; JSON, the result document; HTML, one page that stands alone, where each cell leads to its evidence and
    to what was run.

    \b
    Examples:
      bob show bob-runs/20261121T230021-1f2e3d
      bob show bob-runs/*
      bob show bob-runs/20261121T230021-1f2e3d --output table1.html
      bob show bob-runs/* --format latex --output table1.tex
      bob show --json - bob-runs/20261121T230021-1f2e3d | jq .environment

    \b
    Exit codes:
      0   every cell has a verdict
      3   some cell is unknown
      8   a file is no result
      9   a run has no result
    """
    shown = output or STDOUT
    if is_stdout(json_file) and (output or wanted) and is_stdout(shown):
        raise UsageError("two documents cannot both go to stdout", hint="name a file with --output or with --json")
    saved = [load(run) for run in runs]
    if json_file is not None:
        write_json(json_file, _documents(saved))
    if not (is_stdout(json_file) and is_stdout(shown)):
        _write(wanted or _format_of(output), saved, runs, shown)
    return Exit.UNKNOWN_CELLS if any(one.result.has_unknown for one in saved) else Exit.DONE


def _format_of(output: Path | None) -> str:
    """The format that the name of the file speaks of."""
    ending = output.suffix.lower() if output else ""
    return next((name for name, endings in ENDINGS.items() if ending in endings), "table")


def _write(wanted: str, saved: list[Saved], runs: tuple[Path, ...], output: Path) -> None:
    match wanted:
        case "table" if is_stdout(output):
            _print(console(), saved, runs)
        case "table":
            file = io.StringIO()
            _print(paper(file), saved, runs)
            write_text(output, file.getvalue(), "--output")
        case "json":
            write_text(output, json.dumps(_documents(saved), indent=2) + "\n", "--output")
        case _:
            columns = columns_of((one.result, one.folder) for one in saved)
            write_text(output, _writer(wanted)(columns), "--output")


def _writer(wanted: str) -> Callable[[Sequence[Column]], str]:
    """What makes the document. pandas and jinja2 take a while to load, so only now."""
    if wanted == "html":
        from bob.report.page import to_html

        return to_html
    from bob.report.documents import to_csv, to_latex, to_markdown

    return {"csv": to_csv, "latex": to_latex, "markdown": to_markdown}[wanted]


def _documents(saved: list[Saved]) -> object:
    """The result document, or an array of them where there are several."""
    return to_json(saved[0].result) if len(saved) == 1 else [to_json(one.result) for one in saved]


def _print(screen: Console, saved: list[Saved], runs: tuple[Path, ...]) -> None:
    if len(saved) == 1:
        print_result(screen, saved[0].result, saved[0].folder)
        return
    from bob.report.overview import print_overview

    print_overview(screen, [one.result for one in saved])
    screen.print()
    for one, run in zip(saved, runs, strict=True):
        names = ", ".join(column.name for column in one.result.configurations)
        screen.print(f"{names}: bob show {nearby(run)}", style="bob.dim", soft_wrap=True)
