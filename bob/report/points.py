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

from bob.claim.verdict import Verdict
from bob.judge.answers import Answer
from bob.judge.program_result import ModelResult, ProgramResult, Programs, Safety
from bob.judge.tried import Tried
from bob.report.answers import held
from bob.report.comparison.compare import Cell, Comparison, Kind
from bob.report.comparison.sides import Said, answer_of
from bob.report.comparison.words import BETTER, WORSE, command, evidence, says
from bob.report.counts import explored, of_model
from bob.report.nearby import witness_command
from bob.report.rows import cells
from bob.result import ConfigurationResult, PropertyResult, Result, Run
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
_SAFETY = {
    Safety.SAFE: Outcome.PASSED,
    Safety.VULNERABLE: Outcome.FAILED,
    Safety.UNKNOWN: Outcome.UNKNOWN,
}
_NO_REASON = "no reason was kept"


def suites_of(result: Result, folder: Path, within: str = "") -> tuple[Suite, ...]:
    """A suite for each configuration of ``result``, whose files are in ``folder``: one point for each property.

    ``within`` stands before the configurations' names, where results of several kernels go into one file.
    """
    return tuple(
        Suite(
            name=f"{within}{column.name}",
            points=tuple(_point(cell, folder) for cell in cells(column).values()),
            started=result.run.started,
            seconds=_seconds(result.run),
            about=_about(result, column),
            notes=tuple(_notes(column, folder)),
        )
        for column in result.configurations
    )


def suites_of_tried(tried: Tried, folder: Path) -> tuple[Suite, ...]:
    """A suite for a quick question: one point for each expectation, and for each finish at which the kernel fell."""
    points = tuple(
        _expectation(tried, answer, witnesses, folder)
        for answer, witnesses in zip(tried.answers, tried.witnesses, strict=True)
    )
    points += tuple(
        Point(f"kernel, finish {part.finish.name}", Outcome.FAILED, part.refused or "", part.fall.lines)
        for part in tried.falls
        if part.fall is not None
    )
    about = (("kernel", tried.environment.kernel), ("mounted", tried.mount), ("device", tried.model.words))
    started, seconds = tried.run.started, _seconds(tried.run)
    return (Suite(tried.configuration.name, points, started, seconds, about, tried.notes),)


def suites_of_programs(found: Programs, folder: Path) -> tuple[Suite, ...]:
    """A suite for a program: one point for each configuration that it was tried on, and for each model."""
    points = tuple([_program(result, folder) for result in found.results] + [_model(one) for one in found.models])
    told = [(one.configuration, one.notes) for one in found.results]
    told += [(f"model {one.model}", one.notes) for one in found.models]
    notes = tuple(f"{name}: {note}" for name, notes in told for note in notes)
    about = (("kernel", found.kernel),) if found.kernel else ()
    return (Suite(found.program, points, about=about, notes=notes),)


def suites_of_comparison(comparison: Comparison, within: str = "") -> tuple[Suite, ...]:
    """A suite for each configuration of B, held against what A expects: what is as expected has passed.

    A cell of which one side says nothing is skipped.
    """
    result = comparison.b.result
    if result is None:
        return ()
    suites = suites_of(result, comparison.b.folder, within)
    points = (tuple(_points_of(comparison, column)) for column in result.configurations)
    return tuple(replace(suite, points=compared) for suite, compared in zip(suites, points, strict=True))


def _point(cell: PropertyResult, folder: Path) -> Point:
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


def _points_of(comparison: Comparison, column: ConfigurationResult) -> Iterator[Point]:
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


def _not_expected(cell: PropertyResult) -> Point:
    said = says(answer_of(cell))
    if cell.verdict is Verdict.UNKNOWN:
        return Point(cell.name, Outcome.UNKNOWN, cell.reason or _NO_REASON, (said,))
    return Point(cell.name, Outcome.SKIPPED, f"nothing is expected of it; found: {said}", (said,))


def _expectation(tried: Tried, answer: Answer, witnesses: Sequence[str], folder: Path) -> Point:
    name = answer.expectation.text
    match answer.verdict:
        case Verdict.FAILS:
            first = answer.ways[0].evidence if answer.ways else "it can break"
            details = [f"breaks in {plural(answer.states, 'crash state')}"]
            for number, way in enumerate(answer.ways):
                details.append(f"{way.evidence}, in {plural(way.states, 'crash state')}")
                details.append(_command(folder, witnesses[number]) if number < len(witnesses) else "")
            return Point(name, Outcome.FAILED, first, _lines(details))
        case Verdict.HOLDS:
            unmountable = 0 if answer.expectation.asks_of_mounts else tried.unmountable.states
            return Point(name, Outcome.PASSED, "", (held(tried.states, unmountable),))
    return Point(name, _OUTCOMES[answer.verdict], answer.reason or _NO_REASON)


def _program(result: ProgramResult, folder: Path) -> Point:
    seen = f"{explored(result.states)}; {plural(result.trees, 'outcome')}, {plural(result.checks, 'check')}"
    details = [seen]
    for one in result.vulnerabilities:
        details.append(f"{one.evidence}, in {plural(one.states, 'crash state')}")
        details.append(_command(folder, one.witness))
    return Point(result.configuration, _SAFETY[result.safety], _said(result), _lines(details))


def _model(result: ModelResult) -> Point:
    details = [f"{plural(result.tried, 'state')}, {of_model(result)}; {plural(result.trees, 'tree')}"]
    details += [f"{one.evidence}, in {plural(one.trees, 'tree')}" for one in result.vulnerabilities]
    details += [missed.words for missed in result.missed]
    if wrong := [missed.words for missed in result.missed if missed.is_wrong]:
        return Point(f"model {result.model}", Outcome.FAILED, wrong[0], _lines(details))
    return Point(f"model {result.model}", _SAFETY[result.safety], _said(result), _lines(details))


def _said(result: ProgramResult | ModelResult) -> str:
    """The first thing that is wrong; empty where nothing is."""
    match _SAFETY[result.safety]:
        case Outcome.FAILED:
            return result.vulnerabilities[0].evidence if result.vulnerabilities else "it is vulnerable"
        case Outcome.PASSED:
            return ""
    return result.reason or _NO_REASON


def _notes(column: ConfigurationResult, folder: Path) -> Iterator[str]:
    """What belongs to no cell: findings, states that do not mount, what is wrong with some that do."""
    for finding in column.findings:
        yield f"{finding.words}: {finding.evidence} (the smallest: {finding.workload})"
        yield from filter(None, [_command(folder, finding.witness)])
    if column.unmountable.states:
        why = f": {column.unmountable.error}" if column.unmountable.error else ""
        yield f"{plural(column.unmountable.states, 'crash state')} could not be mounted{why}"
        yield from filter(None, [_command(folder, column.unmountable.witness)])
    for trouble in column.troubles:
        yield f"{plural(trouble.states, 'crash state')} {trouble.kind.said}: {trouble.words}"
        yield from filter(None, [_command(folder, trouble.witness)])
    yield from column.notes


def _about(result: Result, column: ConfigurationResult) -> tuple[tuple[str, str], ...]:
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
