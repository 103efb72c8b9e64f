"""The results of lots of workloads as one: what a search has found so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from bob.claim.verdict import Verdict, merged_verdict
from bob.crash.coverage import total
from bob.observe.observations import without_numbers
from bob.result import Cause, ConfigurationResult, Finding, PropertyResult, Result, Run, Trouble, Unmountable


def merged(lots: Sequence[tuple[str, Result]], names: Sequence[str], run: Run, notes: Sequence[str] = ()) -> Result:
    """The results of ``lots``, at least one, each with its folder, as that of ``run``, with ``notes`` of its own.

    Properties stand in the order of ``names``. A witness is that of the first lot that has one: the workloads of
    earlier lots are not longer.
    """
    first = lots[0][1]
    columns = [result.configurations[0].within(folder) for folder, result in lots]
    cells = [cell for column in columns for cell in column.properties]
    found = {name: [cell for cell in cells if cell.name == name] for name in dict.fromkeys(cell.name for cell in cells)}
    order = {name: place for place, name in enumerate(names)}
    properties = [_cell(found[name]) for name in sorted(found, key=lambda name: order.get(name, len(order)))]
    return replace(first, run=run, configurations=(_column(columns, properties, notes),))


def _cell(several: Sequence[PropertyResult]) -> PropertyResult:
    verdict = merged_verdict(cell.verdict for cell in several)
    shown = next((cell for cell in several if cell.witness), several[0])
    reason = next((cell.reason for cell in several if cell.verdict is Verdict.UNKNOWN), None)
    return replace(
        shown,
        verdict=verdict,
        states=total([cell.states for cell in several]),
        workloads=tuple(workload for cell in several for workload in cell.workloads),
        reason=reason if verdict is Verdict.UNKNOWN else None,
    )


def _column(
    columns: Sequence[ConfigurationResult], properties: Sequence[PropertyResult], notes: Sequence[str]
) -> ConfigurationResult:
    unmountable = [column.unmountable for column in columns]
    shown = next((one for one in unmountable if one.witness), Unmountable())
    return replace(
        columns[0],
        properties=tuple(properties),
        unmountable=replace(shown, states=sum(one.states for one in unmountable)),
        notes=tuple(dict.fromkeys([*(note for column in columns for note in column.notes), *notes])),
        troubles=tuple(_troubles(trouble for column in columns for trouble in column.troubles)),
        examined=sum(column.examined for column in columns),
        examinable=sum(column.examinable for column in columns),
        findings=_findings(finding for column in columns for finding in column.findings),
    )


def _troubles(troubles: Iterable[Trouble]) -> Iterator[Trouble]:
    """Each kind of trouble once where the words differ in numbers only, with the states of all lots."""
    found: dict[tuple[str, str], Trouble] = {}
    for trouble in troubles:
        key = trouble.kind, without_numbers(trouble.words)
        earlier = found.get(key)
        found[key] = trouble if earlier is None else replace(earlier, states=earlier.states + trouble.states)
    yield from found.values()


def _findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each cause once, with the rows and the workloads of all lots, and the smallest workload as its witness."""
    found: dict[Cause, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.cause, []).append(finding)
    return tuple(sorted(map(_together, found.values()), key=lambda finding: finding.size))


def _together(several: Sequence[Finding]) -> Finding:
    return replace(
        min(several, key=lambda finding: finding.size),
        rows=tuple(dict.fromkeys(row for finding in several for row in finding.rows)),
        missing=tuple(sorted({kind for finding in several for kind in finding.missing})),
        shown_by=sum(finding.shown_by for finding in several),
    )
