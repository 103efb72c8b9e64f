"""The report to a CI at the end of a run: files in JUnit XML and KTAP, annotations, an exit code, and a comparison with
a table of expected verdicts. A verdict (such as HOLDS or FAILS) is about one property of one configuration."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bob.answer.result import Result
from bob.catalogue.request import ProbeRequest
from bob.claim.verdict import Verdict
from bob.cli.github import Level, annotate
from bob.cli.output import console, deliver, is_stdout, write_text
from bob.errors import Exit, UsageError
from bob.options import Words, option
from bob.program.stack import SourceLine
from bob.report.comparison.compare import Comparison, compare
from bob.report.comparison.sides import Side, known_reasons, named_side, run_side
from bob.report.junit import to_junit
from bob.report.ktap import to_ktap
from bob.report.points import Outcome, Point, Suite, suites_of, suites_of_comparison
from bob.report.published import PUBLISHED
from bob.run.option_table import CiFiles

_WORST_LAST = (Exit.DONE, Exit.UNKNOWN_CELLS, Exit.DIFFERENT, Exit.CONTRADICTED)
_LINES = 6  # lines of details in an annotation: GitHub shows only the first ones
EXPECTED: Side | None = option(
    "--expect TABLE",
    "Compare with this result, which --json wrote. The exit code is 1 if a verdict differs.",
    Words(lambda word, _option: named_side(word), lambda _given: PUBLISHED, "file", "table"),
    renewable=True,
)
EARLIER: Side | None = option(
    "--expect EARLIER",
    "Compare with this earlier run, or with a result that --json wrote. The exit code is 1 if a vulnerability is new or"
    " gone, and 0 if all are known.",
    Words(lambda word, _option: named_side(word), files="file", name="run"),
    renewable=True,
)


def check_expected(expected: Side | None, requests: Iterable[ProbeRequest]) -> None:
    """Raise UsageError if the table ``expected`` lacks all cells that ``requests`` ask for. A cell is one
    property of one configuration."""
    if expected is None:
        return
    if expected.is_of_program:
        raise UsageError(f"{expected.name} is about a program, not about properties", hint="expect a table")
    asked = {one.configuration.name: {probe.property.name for probe in one.asked} for one in requests}
    columns = expected.columns
    if any(names & set(columns.get(configuration, ())) for configuration, names in asked.items()):
        return
    if asked.keys() & columns.keys():
        raise UsageError(f"{expected.name} lacks these properties", hint="it is about other ones")
    raise _expects_nothing(expected, ", ".join(asked))


def check_earlier(expected: Side | None, program: str, names: Sequence[str]) -> None:
    """Raise UsageError if the run ``expected`` is not of the program ``program``, or lacks all of the file systems and
    models ``names``."""
    if expected is None:
        return
    if expected.result is None or not expected.is_of_program:
        raise UsageError(f"{expected.name} is not about a program", hint="expect an earlier run of the same command")
    if expected.result.program_name != program:
        raise UsageError(f"{expected.name} is about {expected.result.program_name}, not about {program}")
    if not set(names) & set(expected.columns):
        raise _expects_nothing(expected, ", ".join(names))


def _expects_nothing(expected: Side, of: str) -> UsageError:
    return UsageError(f"{expected.name} lacks {of}", hint=f"it has {', '.join(expected.columns) or 'no configuration'}")


def conclude(
    done: Sequence[tuple[Result, Path]], json_file: Path | None, ci_files: CiFiles, expected: Side | None
) -> Exit:
    """Report results to a CI. ``done`` has each result with its run directory. Return exit code 1 if a
    verdict differs from the ``expected`` one, and 3 if an unknown verdict leaves that open. Otherwise return the worst
    exit code of the results, without those failures that were expected."""
    several = len(done) > 1
    suites: list[Suite] = []
    comparisons: list[Comparison] = []
    for result, run in done:
        # The part of an image's name before its key.
        within = f"{result.environment.image.partition(' (')[0]}: " if several else ""
        if expected is None:
            suites += suites_of(result, run, within)
            continue
        side = run_side(f"{within}this run", result, run)
        comparisons.append(compare(expected, side, known_reasons(expected, side)))
        suites += suites_of_comparison(comparisons[-1], within)
    for comparison in comparisons:
        _print(comparison, json_file)
    tell(suites, ci_files, is_wrong=expected is not None)
    if any(comparison.differs() for comparison in comparisons):
        return Exit.DIFFERENT
    if any(comparison.is_undecided for comparison in comparisons):
        return Exit.UNKNOWN_CELLS
    if expected is not None:
        return max((_beside_expected(result, expected) for result, _run in done), key=_WORST_LAST.index)
    return exit_of(result for result, _run in done)


def finish(
    result: Result,
    run: Path,
    json_file: Path | None,
    ci_files: CiFiles,
    expected: Side | None = None,
    *,
    is_wrong: bool = True,
) -> Exit:
    """Print ``result``, write it into ``json_file`` (if given), report it to a CI, and return the exit code. If
    ``is_wrong`` is True, a failure counts as an error, and otherwise as a warning (:func:`tell`). With an ``expected``
    result, only a difference from it counts (:func:`conclude`)."""
    deliver(result, run, json_file)
    if expected is not None:
        return conclude([(result, run)], json_file, ci_files, expected)
    tell(suites_of(result, run), ci_files, is_wrong=is_wrong)
    return _exit_of(result, is_wrong=is_wrong)


def exit_of(results: Iterable[Result]) -> Exit:
    """Return the worst of the exit codes of ``results``. There must be at least one result."""
    return max(map(_exit_of, results), key=_WORST_LAST.index)


def _exit_of(result: Result, *, is_wrong: bool = False) -> Exit:
    """Return the exit code of ``result``. A verdict FAILS makes the code 1 if the result is about a program. For any
    other result, it does so only if ``is_wrong`` is True, so that a failure counts as an error."""
    is_wrong = (is_wrong or result.program is not None) and not result.is_contradicted
    return Exit.DIFFERENT if is_wrong and Verdict.FAILS in result.verdicts else _apart_from_failures(result)


def _beside_expected(result: Result, expected: Side) -> Exit:
    """Return the exit code of a result whose verdicts are all as ``expected``. A failure counts only if it is of a
    program, on a file system that the expected run lacks."""
    codes = [_apart_from_failures(result)]
    if result.program is not None and not result.is_contradicted:
        for one in result.subjects:
            is_new, answer = one.title not in expected.columns, one.answer
            is_open = answer.verdict is Verdict.UNKNOWN and (is_new or not answer.is_question)
            codes.append(Exit.UNKNOWN_CELLS if is_open else Exit.DONE)
            codes.append(Exit.DIFFERENT if is_new and answer.verdict is Verdict.FAILS else Exit.DONE)
        codes = codes[1:]
    return max(codes, key=_WORST_LAST.index)


def _apart_from_failures(result: Result) -> Exit:
    if result.is_contradicted:
        return Exit.CONTRADICTED
    return Exit.UNKNOWN_CELLS if result.has_unknown else Exit.DONE


def tell(suites: Sequence[Suite], ci_files: CiFiles, *, is_wrong: bool) -> None:
    """Write those of ``ci_files`` that the user asked for. On GitHub, annotate each point (a test case of JUnit) that
    failed or is unknown. A failure is an error if ``is_wrong`` is true, and otherwise a warning."""
    if ci_files.junit_file is not None:
        write_text(ci_files.junit_file, to_junit(suites), "--junit")
    if ci_files.ktap_file is not None:
        write_text(ci_files.ktap_file, to_ktap(suites), "--ktap")
    found = [(_level(point, is_wrong=is_wrong), suite, point) for suite in suites for point in suite.points]
    for level in Level:  # errors come first, since GitHub shows only ten annotations of each level
        for one in _annotations((suite, point) for other, suite, point in found if other is level):
            annotate(level, one.title, one.text, one.source)


@dataclass(slots=True)
class _Annotation:
    """An annotation about all ``points`` that share its lines. ``command`` replays the witness of the first one."""

    suite: str
    points: list[str]
    lines: tuple[str, ...]
    command: str = ""
    source: SourceLine | None = None

    @property
    def title(self) -> str:
        return f"{self.suite}: {', '.join(self.points)}"

    @property
    def text(self) -> str:
        return "\n".join(filter(None, (*self.lines, self.command)))


def _annotations(found: Iterable[tuple[Suite, Point]]) -> Iterable[_Annotation]:
    """Return the annotations for points, each with its suite. A point about a program has one for each of its repairs,
    at the repair's source line. A program often fails alike on several file systems, so these share annotations."""
    made: dict[tuple[str, ...], _Annotation] = {}
    for suite, point in found:
        for repair in point.repairs:
            # The message of a point often has the evidence of its first repair.
            message = point.message if repair is point.repairs[0] or point.outcome is Outcome.UNKNOWN else ""
            lines = (message, *(line for line in (repair.evidence, *repair.why) if line not in message))
            place = "" if repair.source is None else repair.source.words
            new = _Annotation(suite.name, [], lines, repair.replay, repair.source)
            made.setdefault((suite.name, place, *lines), new).points.append(point.name)
        if not point.repairs:
            details = [line for line in point.details if line not in point.message]
            shown = point.message, *details[:_LINES], *details[_LINES:][-1:]  # the last line is the command
            made[suite.name, point.name, *shown] = _Annotation(suite.name, [point.name], shown)
    return made.values()


def _level(point: Point, *, is_wrong: bool) -> Level | None:
    if point.outcome is Outcome.FAILED and is_wrong and not point.is_better:
        return Level.ERROR
    return Level.WARNING if point.outcome in (Outcome.FAILED, Outcome.UNKNOWN) else None


def _print(comparison: Comparison, json_file: Path | None) -> None:
    from bob.report.comparison.terminal import print_unexpected

    if not comparison.compared:
        raise _expects_nothing(comparison.a, "every cell of this run")
    screen = console(stderr=is_stdout(json_file))
    screen.print()
    print_unexpected(screen, comparison)
