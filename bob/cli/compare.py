"""``bob compare``: two runs, or a run and the published table, cell by cell."""

from __future__ import annotations

from pathlib import Path

import click

from bob.cli.options import NewFile, json_option
from bob.cli.output import console, is_stdout, write_json, write_text
from bob.errors import Exit, UsageError
from bob.report.comparison.compare import Comparison
from bob.report.comparison.compare import compare as compare_sides
from bob.report.comparison.sides import named_side
from bob.report.published import osdi14_reasons


@click.command()
@click.argument("a", metavar="A", type=click.Path())
@click.argument("b", metavar="B", type=click.Path())
@click.option("--strict", is_flag=True, help="Let cells count that are differently explored, or in one of both only.")
@json_option
@click.option(
    "--markdown",
    "markdown_file",
    type=NewFile(),
    metavar="FILE",
    help="Write a page as Markdown into FILE; - is stdout.",
)
def compare(a: str, b: str, strict: bool, json_file: Path | None, markdown_file: Path | None) -> Exit:
    """Compare two runs, or a run and the published table, cell by cell.

    A is the old one, or the reference; B is the new one. Each is a run directory, a result that --json wrote, or
    osdi14: Table 1 of "All File Systems Are Not Created Equal" (2014).

    Of each cell that both have it says: the same; B newly fails; B no longer fails; differently explored (the same
    verdict from other workloads, or from another number of crash states); or undecided, where one side has no verdict.
    For each difference it tells what was found and how to replay it, or what was explored in vain; and against the
    published table the reason, where it is known. Configurations that only one side has are named, not compared.

    \b
    Examples:
      bob compare osdi14 bob-runs/20261121T230021-1f2e3d
      bob compare osdi14 bob-runs/matrix --markdown comparison.md
      bob compare before/result.json after/result.json || echo "something changed"
      bob compare good bob-runs/new --json - | jq '.cells[] | select(.kind != "same")'

    \b
    To bisect a kernel, with the script that docs/compare.md has:
      git bisect run ./bisect-step good-run
    It makes a guest image, probes, and compares. To git it says 0 (good) and 1 (bad) as `bob compare`
    does, 125 (skip this commit) for a 3, and 128 (stop) for all else.

    \b
    Exit codes:
      0   no verdict differs
      1   some cell newly fails or no longer fails (with --strict: see there)
      2   usage, or there is no cell that both have
      3   none is known to differ, but some cell has no verdict: unknown, or skipped on one side
      8   a file is no result
      9   a run has no result, or cannot be read
    """
    if is_stdout(json_file) and is_stdout(markdown_file):
        raise UsageError("--json and --markdown cannot both go to stdout", hint="name a file for one of them")
    comparison = compare_sides(named_side(a), named_side(b), osdi14_reasons())
    if not comparison.compared:
        raise UsageError(f"{a} and {b} have no cell in common", hint=_hint(comparison))
    if json_file is not None:
        from bob.report.comparison.document import to_document

        write_json(json_file, to_document(comparison))
    if markdown_file is not None:
        from bob.report.comparison.page import page  # jinja2 takes a while to load

        write_text(markdown_file, page(comparison), "--markdown")
    if not is_stdout(json_file) and not is_stdout(markdown_file):
        from bob.report.comparison.terminal import print_comparison

        print_comparison(console(), comparison)
    if comparison.differs(strict=strict):
        return Exit.DIFFERENT
    return Exit.UNKNOWN_CELLS if comparison.is_undecided else Exit.DONE


def _hint(comparison: Comparison) -> str:
    if comparison.configurations:
        return "they probed other properties"
    return f"A has {', '.join(comparison.only_a) or 'none'}; B has {', '.join(comparison.only_b) or 'none'}"
