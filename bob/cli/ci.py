"""What a CI is told of a run: a JUnit file, annotations, and whether a table is what was expected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from bob.cli.github import Level, annotate
from bob.cli.options import Files, NewFile
from bob.cli.output import console, is_stdout, write_text
from bob.errors import Exit, UsageError
from bob.report.comparison.compare import Comparison, compare
from bob.report.comparison.sides import Side, named_side, run_side
from bob.report.junit import to_junit
from bob.report.points import Outcome, Point, Suite, suites_of, suites_of_comparison
from bob.report.published import OSDI14, osdi14_reasons
from bob.result import Result

_LINES = 6
"""So many lines of a point's details are in its annotation: GitHub shows the first ones only."""


class ExpectedTable(Files):
    """A table that says what is expected, read: what is wrong with it is told before anything starts."""

    name = "table"

    def __init__(self) -> None:
        super().__init__(lambda: (OSDI14,))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Side:
        """The table."""
        return value if isinstance(value, Side) else named_side(str(value))


junit_option = click.option(
    "--junit",
    "junit_file",
    type=NewFile(stdout=False),
    metavar="FILE",
    help="Write the result as JUnit XML into FILE, for a CI (docs/ci.md).",
)
expect_option = click.option(
    "--expect",
    "expected",
    type=ExpectedTable(),
    metavar="TABLE",
    help="Compare with this result, which --json wrote: exit code 1 where a verdict differs.",
)


def check_expected(expected: Side | None, asked: Iterable[tuple[str, Iterable[str]]]) -> None:
    """Raise UsageError where a table expects nothing of all that is ``asked``: configurations with their properties."""
    if expected is None:
        return
    asked = [(configuration, tuple(properties)) for configuration, properties in asked]
    columns = expected.columns
    if any(name in columns.get(configuration, ()) for configuration, properties in asked for name in properties):
        return
    names = [configuration for configuration, _properties in asked]
    if any(name in columns for name in names):
        raise UsageError(f"{expected.name} expects nothing of these properties", hint="it probed other ones")
    raise UsageError(
        f"{expected.name} expects nothing of {', '.join(names)}", hint=f"it has {', '.join(columns) or 'nothing'}"
    )


def conclude(
    done: Sequence[tuple[Result, Path]], json_file: Path | None, junit_file: Path | None, expected: Side | None
) -> Exit:
    """Tell a CI of results, each with its run directory, that were delivered; the exit code.

    Where something is ``expected``, that is 1 where a verdict differs. Of several results, each is held against it.
    """
    several = len(done) > 1
    suites: list[Suite] = []
    comparisons: list[Comparison] = []
    for result, run in done:
        within = f"{result.environment.image.partition(' (')[0]}: " if several else ""  # without the image's key
        if expected is None:
            suites += suites_of(result, run, within)
            continue
        side = run_side(f"{within}this run", result, run)
        comparisons.append(compare(expected, side, osdi14_reasons()))
        suites += suites_of_comparison(comparisons[-1], within)
    for comparison in comparisons:
        _print(comparison, json_file)
    tell(suites, junit_file, is_wrong=expected is not None)
    if any(comparison.differs() for comparison in comparisons):
        return Exit.DIFFERENT
    unknown = any(result.has_unknown for result, _run in done)
    return Exit.UNKNOWN_CELLS if unknown or any(one.is_undecided for one in comparisons) else Exit.DONE


def tell(suites: Sequence[Suite], junit_file: Path | None, *, is_wrong: bool) -> None:
    """Write ``suites`` into ``junit_file``, if there is one, and annotate what did not pass, where GitHub runs bob.

    ``is_wrong`` says that what failed makes the exit code 1: then it is an error; else, as what is not known is, a
    warning.
    """
    if junit_file is not None:
        write_text(junit_file, to_junit(suites), "--junit")
    found = [(_level(point, is_wrong=is_wrong), suite, point) for suite in suites for point in suite.points]
    for level in Level:  # the errors first: GitHub drops what comes after the tenth of each
        for other, suite, point in found:
            if other is level:
                lines = [line for line in point.details if line not in point.message][:_LINES]
                annotate(level, f"{suite.name}: {point.name}", "\n".join([point.message, *lines]))


def _level(point: Point, *, is_wrong: bool) -> Level | None:
    match point.outcome:
        case Outcome.FAILED:
            return Level.ERROR if is_wrong and not point.is_better else Level.WARNING
        case Outcome.UNKNOWN:
            return Level.WARNING
    return None


def _print(comparison: Comparison, json_file: Path | None) -> None:
    """Say what is not as expected: on stdout, below the table, unless a document is there."""
    from bob.report.comparison.terminal import print_unexpected

    if not comparison.compared:
        raise UsageError(
            f"{comparison.a.name} expects nothing of what this run asked",
            hint=f"it has {', '.join(comparison.a.columns) or 'nothing'}",
        )
    screen = console(stderr=is_stdout(json_file))
    screen.print()
    print_unexpected(screen, comparison)
