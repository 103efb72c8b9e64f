"""What a CI is told of results: one *point* for each question that was asked, which passed or did not.

A point is what JUnit calls a test case: a property of a configuration, a program on a configuration, or an expectation.
Points of one configuration, or of one program, are a *suite*. Against a table that says what is expected
(:func:`suites_of_comparison`), a point passes where the verdict is the expected one, whichever that is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from bob.answer.answer import Answer
from bob.answer.result import Result, Run, SubjectResult
from bob.claim.verdict import Verdict
from bob.report.answers import held
from bob.report.comparison.compare import Cell, Comparison, Kind
from bob.report.comparison.sides import Said, answer_of
from bob.report.comparison.words import BETTER, WORSE, command, evidence, says
from bob.report.counts import explored, of_model
from bob.report.nearby import witness_command
from bob.report.programs import seen
from bob.report.rows import cells
from bob.text import plural


class Outcome(StrEnum):
    """What became of a point. UNKNOWN is neither of the first two: a guest was lost, say."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Point:
    """One question: ``message`` says in one line why it did not pass, ``details`` are more lines; the last of these is
    the command that shows a violation again, where there is a witness.

    ``is_better`` says of a FAILED one that less is broken than was expected.
    """

    name: str
    outcome: Outcome
    message: str = ""
    details: tuple[str, ...] = ()
    is_better: bool = False


@dataclass(frozen=True, slots=True)
class Suite:
    """Points that belong together. ``started`` is ISO 8601, ``seconds`` how long the whole run took (None: not known).

    ``about`` says on what it was measured, a name and a value each; ``notes`` are lines that belong to no point.
    """

    name: str
    points: tuple[Point, ...]
    started: str = ""
    seconds: int | None = None
    about: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    def count(self, outcome: Outcome) -> int:
        """How many points came out so."""
        return sum(point.outcome is outcome for point in self.points)


_OUTCOMES = {
    Verdict.HOLDS: Outcome.PASSED,
    Verdict.FAILS: Outcome.FAILED,
    Verdict.UNKNOWN: Outcome.UNKNOWN,
    Verdict.SKIPPED: Outcome.SKIPPED,
}
_NO_REASON = "no reason was kept"


def suites_of(result: Result, folder: Path, within: str = "") -> tuple[Suite, ...]:
    """Return the suites of ``result``, whose files are in ``folder``.

    Of a table they are one for each configuration, with a point for each property; ``within`` stands before their
    names, where results of several kernels go into one file. A question has a point for each expectation, and for each
    finish at which the kernel fell. A program has one for each file system that it was tried on, and for each model.
    """
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
            notes=tuple(_notes(column, folder)),
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
    notes = tuple(f"{_named(subject)}: {note}" for subject in result.subjects for note in subject.notes)
    kernel = result.environment.kernel
    return (Suite(result.program_name, points, about=(("kernel", kernel),) if kernel else (), notes=notes),)


def suites_of_comparison(comparison: Comparison, within: str = "") -> tuple[Suite, ...]:
    """A suite for each configuration of B, held against what A expects: what is as expected has passed.

    A cell of which one side says nothing is skipped.
    """
    result = comparison.b.result
    if result is None:
        return ()
    suites = suites_of(result, comparison.b.folder, within)
    points = (tuple(_points_of(comparison, column)) for column in result.subjects)
    return tuple(replace(suite, points=compared) for suite, compared in zip(suites, points, strict=True))


def _point(cell: Answer, folder: Path) -> Point:
    said = says(answer_of(cell))
    match cell.verdict:
        case Verdict.FAILS:
            message = cell.evidence or said
            details = [cell.meaning, said, cell.evidence or "", _command(folder, cell.witness)]
        case Verdict.HOLDS:
            message, details = "", [cell.meaning, said]
        case _:
            message, details = cell.reason or _NO_REASON, [cell.meaning]
    return Point(cell.name, _OUTCOMES[cell.verdict], message, _lines(details))


def _points_of(comparison: Comparison, column: SubjectResult) -> Iterator[Point]:
    if column.name not in comparison.configurations:
        yield from map(_not_expected, cells(column).values())
    for cell in comparison.cells:
        if cell.configuration == column.name:
            yield _compared(comparison, cell)


def _compared(comparison: Comparison, cell: Cell) -> Point:
    """A cell that a table expects something of, or that only one side has."""
    was = f"expected: {says(cell.a)}" if cell.a is not None else ""
    now = f"found: {says(cell.b)}" if cell.b is not None else ""
    details = _lines([was, now, evidence(cell.b) or "", command(comparison.b, cell.b) or ""])
    match cell.kind:
        case Kind.NEWLY_FAILS:
            return Point(cell.name, Outcome.FAILED, f"{WORSE}: {evidence(cell.b) or now}", details)
        case Kind.NO_LONGER_FAILS:
            again = command(comparison.a, cell.a)
            details = _lines([was, now, evidence(cell.a) or "", again or ""])
            return Point(cell.name, Outcome.FAILED, f"{BETTER}: {now}", details, is_better=True)
        case Kind.ONLY_A:
            return Point(cell.name, Outcome.SKIPPED, "this run did not ask it", details)
        case Kind.ONLY_B:
            assert cell.b is not None and cell.b.cell is not None
            return _not_expected(cell.b.cell)
        case Kind.UNDECIDED:
            return Point(cell.name, Outcome.UNKNOWN, f"it is unknown whether it differs: {now}", details)
    if cell.unknown:
        return Point(cell.name, Outcome.UNKNOWN, now, details)
    assert cell.b is not None
    outcome = Outcome.SKIPPED if cell.b.said is Said.SKIPPED else Outcome.PASSED
    return Point(cell.name, outcome, now if outcome is Outcome.SKIPPED else "", details)


def _not_expected(cell: Answer) -> Point:
    said = says(answer_of(cell))
    if cell.verdict is Verdict.UNKNOWN:
        return Point(cell.name, Outcome.UNKNOWN, cell.reason or _NO_REASON, (said,))
    return Point(cell.name, Outcome.SKIPPED, f"nothing is expected of it; found: {said}", (said,))


def _expectation(answer: Answer, folder: Path) -> Point:
    name = answer.name
    match answer.verdict:
        case Verdict.FAILS:
            first = answer.ways[0].evidence if answer.ways else "it can break"
            details = [f"breaks in {plural(answer.violations, 'crash state')}"]
            for way in answer.ways:
                details.append(f"{way.evidence}, in {plural(way.states, 'crash state')}")
                details.append(_command(folder, way.witness))
            return Point(name, Outcome.FAILED, first, _lines(details))
        case Verdict.HOLDS:
            return Point(name, Outcome.PASSED, "", (held(answer),))
    return Point(name, _OUTCOMES[answer.verdict], answer.reason or _NO_REASON)


def _program(subject: SubjectResult, folder: Path) -> Point:
    """Return the point of a program on a file system, or by a model; one that is wrong has failed."""
    answer, model = subject.answer, subject.model
    outcome, said = _OUTCOMES[answer.verdict], _reason(answer)
    if model is None:
        details = [f"{explored(answer.states)}; {seen(subject, 'outcome')}"]
        for way in answer.ways:
            details += [f"{way.evidence}, in {plural(way.states, 'crash state')}", _command(folder, way.witness)]
        return Point(_named(subject), outcome, said, _lines(details))
    trees = 0 if subject.checks is None else subject.checks.trees
    details = [f"{plural(model.tried, 'state')}, {of_model(model)}; {plural(trees, 'tree')}"]
    details += [f"{way.evidence}, in {plural(way.trees, 'tree')}" for way in answer.ways]
    details += [missed.words for missed in model.missed]
    if wrong := [missed.words for missed in model.missed if missed.is_wrong]:
        outcome, said = Outcome.FAILED, wrong[0]
    return Point(_named(subject), outcome, said, _lines(details))


def _named(subject: SubjectResult) -> str:
    return subject.name if subject.model is None else f"model {subject.name}"


def _reason(answer: Answer) -> str:
    """Return the first thing that is wrong; nothing if all is well."""
    match answer.verdict:
        case Verdict.FAILS:
            return answer.evidence or "it is vulnerable"
        case Verdict.HOLDS:
            return ""
    return answer.reason or _NO_REASON


def _notes(column: SubjectResult, folder: Path) -> Iterator[str]:
    """What belongs to no cell: findings, states that do not mount, what is wrong with some that do."""
    for finding in column.findings:
        yield f"{finding.words}: {finding.evidence} (the smallest: {finding.workload})"
        yield from filter(None, [_command(folder, finding.witness)])
    if (refused := column.unmountable) is not None:
        why = f": {refused.evidence}" if refused.evidence else ""
        yield f"{plural(refused.states, 'crash state')} could not be mounted{why}"
        yield from filter(None, [_command(folder, refused.witness)])
    for kind, trouble in column.troubles():
        yield f"{plural(trouble.states, 'crash state')} {kind.said}: {trouble.evidence}"
        yield from filter(None, [_command(folder, trouble.witness)])
    yield from column.notes


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
    """How long a run took; None where it was stopped."""
    try:
        took = datetime.fromisoformat(run.finished) - datetime.fromisoformat(run.started)
    except (ValueError, TypeError):
        return None
    return max(0, round(took.total_seconds()))


def _command(folder: Path, witness: str | None) -> str:
    return witness_command(folder, witness) if witness else ""


def _lines(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(text for text in texts if text)
