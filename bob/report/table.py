"""The printing of the table of a run: the verdict for each property of each configuration, the evidence, and the
conditions of the measurement. A verdict is, for example, "fails" or "holds". The *evidence* says in a line what is
wrong after a crash, and a *witness* is a file about that crash."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bob.answer.answer import Answer
from bob.answer.result import Finding, Result, SubjectResult
from bob.answer.unseen import notes_of
from bob.claim.verdict import Verdict
from bob.crash.coverage import total
from bob.observe.observations import TroubleKind
from bob.report.columns import columns_of
from bob.report.counts import examined, torn_states, whole_states
from bob.report.grids import grids, listed
from bob.report.lines import Trimmed, longest_part, print_command, print_hanging, print_indented, print_title
from bob.report.marks import print_grids, print_overview
from bob.report.nearby import nearby
from bob.report.rows import MARKS, by_family, cells, style
from bob.text import compact, duration, plural

HOLDS_MEANS = "holds: no explored crash state of these workloads violates it. This is not a proof."
STATES_MEAN = (
    "whole states: how many of these workloads' legal crash states without torn writes bob explored; torn: the share "
    "that it explored of those with torn writes."
)


def print_result(console: Console, result: Result, run: Path) -> None:
    """Print ``result``. Its witnesses are in the folder ``run``. If the result has one configuration, print everything
    about this configuration. If the result has several, print a table with a column for each, and notes."""
    if len(result.subjects) > 1:
        _print_several(console, result, run)
    elif result.subjects:
        _print_configuration(console, result.subjects[0], run)
    if result.subjects:
        console.print()
    _print_foot(console, result, run)


def _print_several(console: Console, result: Result, run: Path) -> None:
    for column in result.subjects:
        if _print_grids(console, column, run):
            console.print()
    flat = replace(result, subjects=tuple(map(listed, result.subjects)))
    if any(column.answers for column in flat.subjects):
        print_overview(console, columns_of([(flat, run)]))
        console.print()
    for column in result.subjects:
        for (verdict, reason), names in _by_reason(column.answers).items():
            what = column.name if len(names) == len(column.answers) else f"{column.name}, {', '.join(names)}"
            print_hanging(console, MARKS[verdict], style(verdict), f"{what}: {reason}")
    for column in result.subjects:
        if column.unmountable is not None:
            states = plural(column.unmountable.states, "crash state")
            print_hanging(console, "!", "bob.unmountable", f"{column.name}: {states} could not be mounted")
        for kind in TroubleKind:
            if found := [trouble.states for other, trouble in column.troubles() if other is kind]:
                said = f"{column.name}: {_several_findings(found)} {kind.said}"
                print_hanging(console, "!", "bob.unmountable", said)
    noted = [(column.name, notes_of(column)) for column in result.subjects]
    for note in dict.fromkeys(note for _name, notes in noted for note in notes):
        names = [name for name, notes in noted if note in notes]
        print_hanging(console, "note:", "bob.dim", f"{', '.join(names)}: {note}")
    first = result.subjects[0].name
    if (run / first).is_dir():
        console.print()
        command = Text(f"bob show {nearby(run / first)}", "bob.command")
        console.print(command, "shows a column with its evidence.", soft_wrap=True)


def _several_findings(states: Sequence[int]) -> str:
    """Return the beginning of a sentence about one or several findings of the same kind. An example is "3 findings of 2
    to 5 crash states each:". ``states`` has the number of crash states of each finding. These numbers are not added,
    since findings may share crash states."""
    if len(states) == 1:
        return plural(states[0], "crash state")
    least, most = min(states), max(states)
    each = plural(most, "crash state") if least == most else f"{compact(least)} to {plural(most, 'crash state')}"
    return f"{len(states):,} findings of {each} each:"


def _by_reason(answers: Iterable[Answer]) -> dict[tuple[Verdict, str], list[str]]:
    """Return the names of the properties whose verdict is unknown or skipped. The keys are the verdict and the reason
    for it."""
    names: dict[tuple[Verdict, str], list[str]] = {}
    for cell in answers:
        if cell.verdict in (Verdict.UNKNOWN, Verdict.SKIPPED):
            names.setdefault((cell.verdict, cell.reason or "no reason was kept"), []).append(cell.name)
    return names


def _print_configuration(console: Console, column: SubjectResult, run: Path) -> None:
    flat = listed(column)
    if _print_grids(console, column, run) and flat.answers:
        console.print()
    if flat.answers:
        _print_title(console, column)
        console.print(Trimmed(_table(flat, console.width)))
    violated = [cell for cell in cells(flat).values() if cell.verdict is Verdict.FAILS]
    if violated or column.findings:
        console.print()
    for number, finding in enumerate(column.findings, start=1):
        _print_finding(console, number, finding, run)
    told = {row for finding in column.findings for row in finding.rows}
    for cell in violated:
        if cell.name not in told:
            _print_violation(console, cell, run)
    unsaid = _by_reason(cell for cell in cells(column).values() if cell.reason)
    if unsaid:
        console.print()
    for (verdict, reason), names in unsaid.items():
        print_hanging(console, MARKS[verdict], style(verdict), f"{', '.join(names)}: {reason}")
    for said, way in column.beside_in_words():
        console.print()
        _print_entry(console, Text(f"! {said}", "bob.unmountable"), "", [way.evidence])
        print_command(console, run, way.witness)
    if column.examinable:
        console.print()
        print_indented(console, examined(column), 0, "bob.dim")
    notes = notes_of(column)
    if notes:
        console.print()
    for note in notes:
        print_hanging(console, "note:", "bob.dim", note)


def _print_grids(console: Console, column: SubjectResult, run: Path) -> bool:
    """Print the grids of a configuration (a grid is a table of properties). Return whether the configuration has any
    grid."""
    found = grids(column)
    if found:
        _print_title(console, column)
        print_grids(console, found, run)
    return bool(found)


def _print_title(console: Console, column: SubjectResult) -> None:
    mounted = column.effective_mount_options or column.mount_options
    told = ", ".join([column.fs, *options(column.mkfs_options, mounted)])
    print_title(console, (column.name, "bob.title"), (f"   {told}", "bob.dim"))
    console.print()


def options(mkfs: str, mounted: str) -> list[str]:
    return [f"{what} {given}" for what, given in (("mkfs", mkfs), ("mounted", mounted)) if given]


_HEADINGS = "property", "verdict", "whole states", "torn", "workloads"
_GAP = 2


def _table(column: SubjectResult, width: int) -> Table:
    """Return the table of ``column`` for a terminal of ``width`` columns. No text is cut: whole states and workloads
    break between words first, and then names of properties within."""
    known, rows = cells(column), []
    for family, names in by_family([column]).items():
        rows.append((Text(family, "bob.heading"), Text(), "", "", ""))
        for name in names:
            cell = known[name]
            mark = Text(MARKS[cell.verdict], style(cell.verdict))
            rows.append((Text(f"  {name}"), mark, whole_states(cell.states), torn_states(cell.states), tally(cell)))
    texts = [[heading, *(str(row[place]) for row in rows)] for place, heading in enumerate(_HEADINGS)]
    may_break = [heading in ("whole states", "workloads") for heading in _HEADINGS]
    needed = [longest_part(each, of_words=breaks) for each, breaks in zip(texts, may_break, strict=True)]
    too_wide = sum(needed) + _GAP * len(needed) > width
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="")
    for heading, breaks, least in zip(_HEADINGS, may_break, needed, strict=True):
        is_name = heading == "property"
        table.add_column(
            Text(heading, "bob.dim"),
            overflow="fold",
            no_wrap=not (breaks or (is_name and too_wide)),
            width=least if breaks and too_wide else None,
            min_width=least if breaks else None,
        )
    for row in rows:
        table.add_row(*row)
    return table


def tally(cell: Answer) -> str:
    """Return in words how many workloads tested the property of ``cell``. If the property fails (or is unknown), also
    say in how many of these workloads it fails (or is unknown)."""
    asked = len(cell.recordings)
    if not asked or cell.verdict is Verdict.SKIPPED:
        return ""
    if cell.verdict is Verdict.HOLDS:
        return f"{asked}"
    same = sum(workload.verdict is cell.verdict for workload in cell.recordings)
    return f"{same} of {asked} {'fail' if cell.verdict is Verdict.FAILS else 'unknown'}"


def _print_violation(console: Console, cell: Answer, run: Path) -> None:
    states = sum(workload.violations for workload in cell.recordings)
    head = Text(f"{MARKS[cell.verdict]} {cell.name}", style(cell.verdict))
    _print_entry(console, head, f"in {plural(states, 'crash state')}" if states else "", [cell.evidence])
    print_command(console, run, cell.witness)


def _print_finding(console: Console, number: int, finding: Finding, run: Path) -> None:
    missing = f"missing: {', '.join(finding.missing)}" if finding.missing else None
    smallest = f"the smallest: {finding.workload}"
    details = [f"breaks {', '.join(finding.rows)}", missing, smallest]
    head = Text(f"{MARKS[Verdict.FAILS]} {number}. {finding.words}", style(Verdict.FAILS))
    _print_entry(console, head, f"in {plural(finding.shown_by, 'workload')}", details)
    print_indented(console, finding.evidence, 4)
    print_command(console, run, finding.witness)


def _print_entry(console: Console, head: Text, where: str, details: Iterable[str | None]) -> None:
    console.print(Trimmed(Text.assemble(head, (f"   {where}" if where else "", "bob.dim"))))
    for detail in details:
        if detail:
            print_indented(console, detail, 4)


def _print_foot(console: Console, result: Result, run: Path) -> None:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for label, text in foot(result):
        grid.add_row(Text(label, "bob.dim"), Text(text))
    console.print(Trimmed(grid))
    console.print(Text.assemble(("run       ", "bob.dim"), str(nearby(run))), soft_wrap=True)
    print_indented(console, HOLDS_MEANS, 0, "bob.dim")
    if any(cell.states.legal_sectors for cell in result.answers):
        print_indented(console, STATES_MEAN, 0, "bob.dim")


def foot(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the conditions of the measurement, each with a label and one line of text."""
    on = result.environment
    guest = f"kernel {on.kernel}, {on.accelerator.upper()}, {on.clock} clock, image {on.image}"
    hypervisor = f", QEMU {on.qemu}, libvirt {on.libvirt}" if on.qemu else ""  # empty for a machine that the user gave
    yield "measured", f"{guest}, {on.mkfs_version}{hypervisor}"
    yield "device", result.model.words
    took = _took(result.run.started, result.run.finished)
    asked = f"budget {result.run.budget:,} mounts per workload, seed {result.run.seed}{took}"
    yield "explored", asked + _mounted(result) + _exhausted(result)
    if result.run.search:
        yield "search", result.run.search


def _mounted(result: Result) -> str:
    states = total([column.states for column in result.subjects])
    if not 0 < states.mounted < states.explored:
        return ""
    return f"; {plural(states.explored, 'crash state')} by {plural(states.mounted, 'mount')}"


def _exhausted(result: Result) -> str:
    """Return in words how many verdicts "holds" are exhaustive: bob explored every legal crash state without torn
    writes to reach them. Return an empty text if none is exhaustive."""
    held = [cell for cell in result.answers if cell.verdict is Verdict.HOLDS]
    whole = sum(cell.states.exhaustive is not None for cell in held)
    return f"; {whole} of {len(held)} holds cover{'s' if whole == 1 else ''} every whole state" if whole else ""


def _took(started: str, finished: str) -> str:
    if not finished:
        return "; the run was stopped early"
    took = seconds_between(started, finished)
    return "" if took is None else f", in {duration(took)}"


def seconds_between(started: str, finished: str) -> float | None:
    """Return the seconds between two times in ISO 8601, or None if one of them is malformed."""
    try:
        return (datetime.fromisoformat(finished) - datetime.fromisoformat(started)).total_seconds()
    except (ValueError, TypeError):
        return None
