"""``bob runs``: lists run directories (each has the recordings and results of a run). ``bob runs remove`` removes some
of them."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bob.claim.verdict import Verdict
from bob.cli.commands import Commands
from bob.cli.options import takes_options
from bob.cli.output import present
from bob.errors import BobError, Exit, StoreError, UsageError
from bob.options import option
from bob.report.lines import Trimmed, longest_part
from bob.report.nearby import nearby
from bob.report.rows import MARKS
from bob.run import option_table as table
from bob.run.option_paths import EXISTING_FOLDER
from bob.run.option_values import one_of
from bob.schema import Document
from bob.store.kept_runs import KeptRun, RunState, check_run, remove, runs_in
from bob.store.run_directory import RUNS
from bob.text import plural, size

_STYLES = {
    RunState.DONE: "bob.holds",
    RunState.STOPPED: "bob.unknown",
    RunState.RUNNING: "bob.command",
    RunState.DAMAGED: "bob.fails",
    RunState.NO_RUN: "bob.dim",
}


class RunsDocument(Document, frozen=True, tag_field="schema", tag="bob.runs/1"):
    """Run directories, as `bob runs` writes them."""

    runs: tuple[KeptRun, ...]


@click.group(cls=Commands, invoke_without_command=True, subcommand_metavar="[remove RUN...]")
@takes_options
def runs(
    context: click.Context,
    folder: Path | None = option("--in DIR", "The folder with the run directories.", EXISTING_FOLDER, words=str(RUNS)),
    json_file: Path | None = table.JSON,
) -> Exit | None:
    """List run directories: the command and its subject, start, state, verdicts, and size on the disk.

    A stopped run continues with --resume, except those of `bob try`, which start again. A matrix or a search is
    listed once, without its columns or lots, and a run on several kernels once for each kernel. Other folders are
    listed as `no run`, since they take space, too.

    \b
    Examples:
      bob runs
      bob runs --in overnight
      bob runs --json - | jq -r '.runs[] | select(.state == "stopped") | .path'
      bob runs remove bob-runs/20261121T230021-1f2e3d

    \b
    Exit codes:
      0   the runs were listed; there may be none
      9   the folder cannot be read
    """
    if context.invoked_subcommand is not None:
        if folder is not None or json_file is not None:
            raise UsageError("--in and --json apply only to the list", hint="bob runs remove RUN...")
        return None
    found = list(runs_in(folder or RUNS)) if folder is not None or RUNS.is_dir() else []
    present(json_file, RunsDocument(tuple(found)), lambda screen: _print(screen, found, folder or RUNS))
    return Exit.DONE


@runs.command("remove")
def remove_runs(
    paths: tuple[Path, ...] = option("RUN...", "", one_of(tuple, "dir")), *, yes: bool = option("--yes", "Do not ask.")
) -> Exit:
    """Remove the run directories RUN..., with all recordings, observations and witnesses in them.

    RUN is a path, or the name of a run in bob-runs. bob asks first. It removes neither a run that another bob is
    writing nor a folder that is not a run directory.

    \b
    Examples:
      bob runs remove bob-runs/20261121T230021-1f2e3d
      bob runs remove --yes bob-runs/*

    \b
    Exit codes:
      0   all were removed
      2   nothing was removed: the answer was no, or stdin is not a terminal
      9   some cannot be removed; the others were removed
    """
    paths = tuple(dict.fromkeys(_as_listed(Path(path)) for path in paths))
    failures: list[BobError] = []
    if not yes and (runs := [path for path in paths if _is_run(path)]):
        _ask(runs)
    for path in paths:
        try:
            used = remove(path)
        except BobError as failure:
            failures.append(failure)
            continue
        click.echo(f"removed {path} ({size(used)})")
    for other in failures[:-1]:
        click.echo(f"bob: {other.message}", err=True)
    if failures:
        raise failures[-1]
    return Exit.DONE


def _as_listed(path: Path) -> Path:
    listed = RUNS / path
    return listed if len(path.parts) == 1 and not path.exists() and listed.is_dir() else path


def _is_run(path: Path) -> bool:
    try:
        check_run(path)
    except StoreError:
        return False
    return True


def _ask(paths: Sequence[Path]) -> None:
    hint = "--yes removes them without asking"
    if not sys.stdin.isatty():
        raise UsageError("cannot ask before the removal: stdin is not a terminal", hint=hint)
    if not click.confirm(f"remove {', '.join(map(str, paths))}?", err=True):
        raise UsageError("nothing was removed", hint=hint)


_DATED = 100  # columns of a terminal; a narrower one shows no dates


def _print(screen: Console, found: Sequence[KeptRun], folder: Path) -> None:
    if not found:
        screen.print(f"there are no runs in {folder}", soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    # A narrow table shows no dates, since the name that bob gives to a run contains the date.
    dated = screen.width >= _DATED
    rows = []
    for run in found:
        what = f"{run.kind.value} {run.of}".strip() if run.kind else ""
        began = (run.started[:16].replace("T", " "),) if dated else ()
        state = Text(run.state.value, _STYLES[run.state])
        rows.append((str(nearby(Path(run.path))), what, *began, state, _found(run), size(run.bytes)))
    headings = ("run", "of", *(("began",) if dated else ()), "", "found", "size")
    texts = [[heading, *(str(row[place]) for row in rows)] for place, heading in enumerate(headings)]
    # A user cannot paste a path that is broken into lines. Other text breaks between words, if there is room.
    may_break = [heading in ("of", "found") for heading in headings]
    needed = [longest_part(each, of_words=breaks) for each, breaks in zip(texts, may_break, strict=True)]
    fits = sum(needed) + 2 * (len(needed) - 1) <= screen.width
    for heading, breaks, least in zip(headings, may_break, needed, strict=True):
        justify: Literal["left", "right"] = "right" if heading == "size" else "left"
        least_width = least if breaks and fits else None
        table.add_column(
            Text(heading, "bob.dim"), overflow="fold", no_wrap=not breaks, justify=justify, min_width=least_width
        )
    for row in rows:
        table.add_row(*row)
    screen.print(Trimmed(table))
    others = sum(run.state is RunState.NO_RUN for run in found)
    more = f" and {plural(others, 'other folder')}" if others else ""
    said = f"{plural(len(found) - others, 'run')}{more}, {size(sum(run.bytes for run in found))}"
    screen.print(Text(said, "bob.dim"))


def _found(run: KeptRun) -> str:
    return ", ".join(f"{run.verdicts[one]} {MARKS[one]}" for one in Verdict if one in run.verdicts)
