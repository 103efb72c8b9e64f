"""``bob show``: prints the table of a finished run again, or those of several side by side."""

from __future__ import annotations

import json
from pathlib import Path

import click

from bob.cli.options import json_option
from bob.cli.output import console, deliver, is_stdout, write_json
from bob.errors import Exit, MalformedError, StoreError
from bob.report.table import nearby
from bob.result import Result, from_json, to_json


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@json_option
def show(runs: tuple[Path, ...], json_file: Path | None) -> Exit:
    """Print the table of RUN again: a run directory, or a result that --json wrote.

    Several runs are shown side by side, a column for each configuration.

    \b
    Examples:
      bob show bob-runs/20261121T230021-1f2e3d
      bob show bob-runs/*
      bob show --json - bob-runs/20261121T230021-1f2e3d | jq .environment

    \b
    Exit codes:
      0   every cell has a verdict
      3   some cell is unknown
      8   a file is no result
      9   a run has no result
    """
    results = [read_result(run) for run in runs]
    if len(results) == 1:
        deliver(results[0], _folder(runs[0]), json_file)
    else:
        _side_by_side(results, runs, json_file)
    return Exit.UNKNOWN_CELLS if any(result.has_unknown for result in results) else Exit.DONE


def read_result(path: Path) -> Result:
    """The result in ``path``, a run directory or a file; StoreError or MalformedError where there is none."""
    file = path / "result.json" if path.is_dir() else path
    if not file.exists():
        raise StoreError(f"{path} has no result.json", hint=f"was it stopped? bob judge {path} judges what is finished")
    try:
        document = json.loads(file.read_bytes())
    except OSError as error:
        raise StoreError(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise MalformedError(f"{file} is no result: {error}", hint="was it truncated?") from error
    if not isinstance(document, dict):
        raise MalformedError(f"{file} is no result", hint="bob probe writes one into its run directory")
    try:
        return from_json(document)
    except MalformedError as error:
        raise MalformedError(f"{file}: {error.message}", hint=error.hint) from error


def _folder(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def _side_by_side(results: list[Result], runs: tuple[Path, ...], json_file: Path | None) -> None:
    from bob.report.overview import print_overview  # pandas takes a while to load

    if json_file is not None:
        write_json(json_file, [to_json(result) for result in results])
    if is_stdout(json_file):
        return
    screen = console()
    print_overview(screen, results)
    screen.print()
    for result, run in zip(results, runs, strict=True):
        names = ", ".join(column.name for column in result.configurations)
        screen.print(f"{names}: bob show {nearby(run)}", style="bob.dim", soft_wrap=True)
