"""Results for a CI. A *point* (a test case of JUnit) is the answer to one question, such as whether a property holds.
The answer is a *verdict*: fails, holds, unknown or skipped. A *suite* has the points of one configuration, or of one
program. A point passes if its verdict is "holds". With a table of expected verdicts, it passes if its verdict is the
expected one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from bob.answer.answer import Answer
from bob.answer.result import Result, Run, SubjectResult
from bob.answer.unseen import notes_of
from bob.claim.verdict import Verdict
from bob.report.answers import held
from bob.report.comparison.compare import Cell, Comparison, Kind
from bob.report.comparison.sides import Said, answer_of
from bob.report.comparison.words import BETTER, WORSE, command, evidence, says
from bob.report.counts import explored, of_model
from bob.report.nearby import witness_command
from bob.report.programs import seen
from bob.report.repair import Repair, repair_of
from bob.report.rows import cells
from bob.report.table import seconds_between
from bob.text import plural


class Outcome(StrEnum):
    """The outcome of a point. UNKNOWN means that bob could not find out the answer, for example because it lost a
    guest."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Point:
    """The answer to one question. ``message`` says why the point did not pass. ``details`` are lines about it. If there
    is a witness (a file about one crash that shows a violation), the last line is the command that shows this violation
    again. ``is_better`` says that the point FAILED only because less is broken than expected. If the point is about a
    program, ``repairs`` has one for each way to fail. ``seconds`` is the time that bob took for this point alone (None:
    unknown). Properties have none, since bob judges all of them on the same crash states."""

    name: str
    outcome: Outcome
    message: str = ""
    details: tuple[str, ...] = ()
    is_better: bool = False
    repairs: tuple[Repair, ...] = ()
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Suite:
    """Points that belong together. ``started`` is ISO 8601. ``seconds`` is the time of the whole run (None: unknown).
    ``about`` has pairs of a name and a value: the conditions of the measurement, such as the kernel. ``notes`` are
    lines about the suite as a whole."""

    name: str
    points: tuple[Point, ...]
    started: str = ""
    seconds: int | None = None
    about: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    def count(self, outcome: Outcome) -> int:
        return sum(point.outcome is outcome for point in self.points)


_OUTCOMES = {
    Verdict.HOLDS: Outcome.PASSED,
    Verdict.FAILS: Outcome.FAILED,
    Verdict.UNKNOWN: Outcome.UNKNOWN,
    Verdict.SKIPPED: Outcome.SKIPPED,
}
_NO_REASON = "the result does not give a reason"


def suites_of(result: Result, folder: Path, within: str = "") -> tuple[Suite, ...]:
    """Return the suites of ``result``, whose files are in ``folder``. If the result is a table, there is one suite for
    each configuration, with a point for each property. If the user asked about one workload, there is a point for each
    expectation, and for each panic or hang of the kernel. An expectation is the user's condition on the files after a
    crash. If the user asked about a program, there is a point for each file system, and for each model. A model
    describes what a crash may leave. The name of each suite begins with ``within``, such as the name of a kernel."""
    if result.workload is not None:
        return _of_question(result, folder)
    if result.program is not None:
        return _of_program(result, folder)
    return tuple(
        Suite(
            name=f"{within}{column.name}",
            points=tuple(_point(cell, folder) for cell in cells(column).values()),
            started=result.run.started,
            seconds=_seconds(result.run),
            about=_about(result, column),
            notes=_lines(_notes(column, folder)),
        )
        for column in result.subjects
    )


def _of_question(result: Result, folder: Path) -> tuple[Suite, ...]:
    [subject] = result.subjects
    points = [_expectation(answer, folder) for answer in subject.answers]
    for part in subject.falls:
        assert part.fall is not None
        points.append(Point(f"kernel, finish {part.finish}", Outcome.FAILED, part.reason or "", part.fall.lines))
    mounted = subject.effective_mount_options
    about = (("kernel", result.environment.kernel), ("mounted", mounted), ("device", result.model.words))
    started, seconds = result.run.started, _seconds(result.run)
    return (Suite(subject.name, tuple(points), started, seconds, about, subject.notes),)


def _of_program(result: Result, folder: Path) -> tuple[Suite, ...]:
    points = tuple(_program(subject, folder) for subject in result.subjects)
    notes = tuple(f"{subject.title}: {note}" for subject in result.subjects for note in subject.notes)
    kernel = result.environment.kernel
    about = (("kernel", kernel),) if kernel else ()
    return (Suite(result.program_name, points, result.run.started, _seconds(result.run), about, notes),)


def suites_of_comparison(comparison: Comparison, within: str = "") -> tuple[Suite, ...]:
    """Return a suite for each configuration of table B. Each suite has a point for each property. The point passes if
    table A has the same verdict. The point is skipped if only one of the tables has a verdict for the property and the
    configuration. The name of each suite begins with ``within``, such as the name of a kernel."""
    result = comparison.b.result
    if result is None:
        return ()
    suites = suites_of(result, comparison.b.folder, within)
    if result.program is not None:
        return (_compared_program(comparison, result, *suites),)
    points = (tuple(_points_of(comparison, column)) for column in result.subjects)
    return tuple(replace(suite, points=compared) for suite, compared in zip(suites, points, strict=True))


def _compared_program(comparison: Comparison, result: Result, suite: Suite) -> Suite:
    """Return the suite of a program with a point for each vulnerability that either side has. A file system that only
    this run has keeps its own point."""
    points: list[Point] = []
    for column, own in zip(result.subjects, suite.points, strict=True):
        if column.title in comparison.configurations:
            named = _points_of(comparison, column)
            points += (replace(point, name=f"{column.title}: {point.name}") for point in named)
        else:
            points.append(own)
    return replace(suite, points=tuple(points))


def _point(cell: Answer, folder: Path) -> Point:
    said = says(answer_of(cell))
    details = [cell.meaning]
    if cell.verdict is Verdict.FAILS:
        details += [said, cell.evidence or "", witness_command(folder, cell.witness)]
    elif cell.verdict is Verdict.HOLDS:
        details.append(said)
    return _judged(cell, cell.name, said, details)


def _judged(answer: Answer, name: str, broken: str, details: Iterable[str]) -> Point:
    """Return the point of ``answer``. If the point failed and ``answer`` lacks evidence, the point's message is
    ``broken``."""
    match answer.verdict:
        case Verdict.FAILS:
            message = answer.evidence or broken
        case Verdict.HOLDS:
            message = ""
        case _:
            message = answer.reason or _NO_REASON
    return Point(name, _OUTCOMES[answer.verdict], message, _lines(details))


def _points_of(comparison: Comparison, column: SubjectResult) -> Iterator[Point]:
    if column.title not in comparison.configurations:
        yield from map(_not_expected, cells(column).values())
    for cell in comparison.cells:
        if cell.configuration == column.title:
            yield _compared(comparison, cell)


def _compared(comparison: Comparison, cell: Cell) -> Point:
    was = f"expected: {says(cell.a)}" if cell.a is not None else ""
    now = f"found: {says(cell.b)}" if cell.b is not None else ""
    is_better = cell.kind is Kind.NO_LONGER_FAILS
    side, answer = (comparison.a, cell.a) if is_better else (comparison.b, cell.b)
    repairs = () if answer is None or answer.cell is None else _repairs(answer.cell, side.folder)
    why = (line for one in repairs for line in one.why)
    details = _lines([was, now, evidence(answer) or "", *why, command(side, answer)])
    match cell.kind:
        case Kind.NEWLY_FAILS:
            return Point(cell.name, Outcome.FAILED, f"{WORSE}: {evidence(cell.b) or now}", details, repairs=repairs)
        case Kind.NO_LONGER_FAILS:
            return Point(cell.name, Outcome.FAILED, f"{BETTER}: {now}", details, is_better=True)
        case Kind.ONLY_A:
            return Point(cell.name, Outcome.SKIPPED, "this run did not ask for it", details)
        case Kind.ONLY_B:
            assert cell.b is not None and cell.b.cell is not None
            return _not_expected(cell.b.cell)
        case Kind.UNDECIDED:
            return Point(cell.name, Outcome.UNKNOWN, f"cannot be compared: {now}", details)
    if cell.unknown:
        return Point(cell.name, Outcome.UNKNOWN, now, details)
    assert cell.b is not None
    outcome = Outcome.SKIPPED if cell.b.said is Said.SKIPPED else Outcome.PASSED
    return Point(cell.name, outcome, now if outcome is Outcome.SKIPPED else "", details)


def _repairs(answer: Answer, folder: Path) -> tuple[Repair, ...]:
    return tuple(repair_of(way, folder) for way in answer.ways if way.consequence is not None)


def _not_expected(cell: Answer) -> Point:
    said = says(answer_of(cell))
    if cell.verdict is Verdict.UNKNOWN:
        return Point(cell.name, Outcome.UNKNOWN, cell.reason or _NO_REASON, (said,))
    return Point(cell.name, Outcome.SKIPPED, f"the expected table does not have it; found: {said}", (said,))


def _expectation(answer: Answer, folder: Path) -> Point:
    details = []
    if answer.verdict is Verdict.FAILS:
        details = [f"breaks in {plural(answer.violations, 'crash state')}", *_ways(answer, folder)]
    elif answer.verdict is Verdict.HOLDS:
        details = [held(answer)]
    return _judged(answer, answer.name, "it can break", details)


def _ways(answer: Answer, folder: Path) -> Iterator[str]:
    for way in answer.ways:
        yield f"{way.evidence}, in {plural(way.states, 'crash state')}"
        if way.consequence is not None:
            yield from repair_of(way, folder).why
        yield witness_command(folder, way.witness)


def _program(subject: SubjectResult, folder: Path) -> Point:
    """Return the point for a program on ``subject``, which is a file system or the model of a file system. The point
    also fails if the model is wrong. A model is wrong if it forbids a tree of files that the modelled file system left
    after a crash."""
    answer, model, name = subject.answer, subject.model, subject.title
    if model is None:
        details = [f"{explored(answer.states)}; {seen(subject, 'outcome')}", *_ways(answer, folder)]
        return _of_subject(subject, folder, details)
    trees = 0 if subject.checks is None else subject.checks.trees
    details = [f"{plural(model.tried, 'state')}, {of_model(model)}; {plural(trees, 'tree')}"]
    for way in answer.ways:
        details += [f"{way.evidence}, in {plural(way.trees, 'tree')}", *repair_of(way, folder).why]
    details += [missed.words for missed in model.missed]
    if wrong := [missed.words for missed in model.missed if missed.is_wrong]:
        return Point(name, Outcome.FAILED, wrong[0], _lines(details))
    return _of_subject(subject, folder, details)


def _of_subject(subject: SubjectResult, folder: Path, details: Iterable[str]) -> Point:
    point = _judged(subject.answer, subject.title, "the program is vulnerable", details)
    return replace(point, repairs=_repairs(subject.answer, folder), seconds=subject.seconds)


def _notes(column: SubjectResult, folder: Path) -> Iterator[str]:
    for finding in column.findings:
        yield f"{finding.words}: {finding.evidence} (the smallest: {finding.workload})"
        yield witness_command(folder, finding.witness)
    for said, way in column.beside_in_words():
        yield f"{said}: {way.evidence}" if way.evidence else said
        yield witness_command(folder, way.witness)
    yield from notes_of(column)


def _about(result: Result, column: SubjectResult) -> tuple[tuple[str, str], ...]:
    on = result.environment
    told = {
        "kernel": on.kernel,
        "image": on.image,
        "accelerator": on.accelerator,
        "fs": column.fs,
        "mkfs options": column.mkfs_options,
        "mount options": column.effective_mount_options or column.mount_options,
        "device": result.model.words,
        "budget": str(result.run.budget),
        "seed": str(result.run.seed),
        "bob": result.run.bob_version,
    }
    return tuple((name, value) for name, value in told.items() if value)


def _seconds(run: Run) -> int | None:
    took = seconds_between(run.started, run.finished)
    return None if took is None else max(0, round(took))


def _lines(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(filter(None, texts))
