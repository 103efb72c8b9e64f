"""The table of a run for a terminal: each configuration's cells, what was found, and on what it was measured.

Everything is printed to a rich Console whose owner says how wide it is and which colours the styles ``bob.*`` have.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bob.answer.answer import Answer, Way
from bob.answer.result import Finding, Result, SubjectResult
from bob.claim.verdict import Verdict
from bob.crash.coverage import total
from bob.observe.observations import TroubleKind
from bob.report.counts import examined, torn_states, whole_states
from bob.report.grids import grids, listed
from bob.report.lines import Trimmed, broken
from bob.report.nearby import nearby, witness_command
from bob.report.rows import MARKS, by_family, cells, style
from bob.text import compact, plural

HOLDS_MEANS = "holds: no explored crash state of these workloads violates it. It is no proof."
STATES_MEAN = (
    "whole states: how many of these workloads' legal crash states without torn writes were explored; torn: which "
    "share of those with torn writes."
)

_INDENT = 4


def print_result(console: Console, result: Result, run: Path) -> None:
    """Print ``result``, whose files (the witnesses) are in the folder ``run``: of one configuration, everything; of
    several, the table, and below it what is not in a cell."""
    if len(result.subjects) > 1:
        _print_several(console, result, run)
    for column in result.subjects[: len(result.subjects) == 1]:
        print_configuration(console, column, run)
        console.print()
    _print_foot(console, result, run)


def _print_several(console: Console, result: Result, run: Path) -> None:
    from bob.report.overview import print_overview  # pandas takes a while to load

    for column in result.subjects:
        if _print_grids(console, column, run):
            console.print()
    flat = replace(result, subjects=tuple(map(listed, result.subjects)))
    if any(column.answers for column in flat.subjects):
        print_overview(console, [flat])
        console.print()
    for column in result.subjects:
        unsaid = [cell for cell in column.answers if cell.verdict in (Verdict.UNKNOWN, Verdict.SKIPPED)]
        for (verdict, reason), names in _by_reason(unsaid).items():
            what = column.name if len(names) == len(column.answers) else f"{column.name}, {', '.join(names)}"
            _print_hanging(console, MARKS[verdict], f"{what}: {reason}", style(verdict))
    for column in result.subjects:
        if column.unmountable is not None:
            states = plural(column.unmountable.states, "crash state")
            _print_hanging(console, "!", f"{column.name}: {states} could not be mounted", "bob.unmountable")
        for kind in TroubleKind:
            if found := [trouble.states for other, trouble in column.troubles() if other is kind]:
                said = f"{column.name}: {_several_findings(found)} {kind.said}"
                _print_hanging(console, "!", said, "bob.unmountable")
    for note in dict.fromkeys(note for column in result.subjects for note in column.notes):
        names = [column.name for column in result.subjects if note in column.notes]
        _print_hanging(console, "note:", f"{', '.join(names)}: {note}", "bob.dim")
    first = result.subjects[0].name
    if (run / first).is_dir():
        console.print()
        command = Text(f"bob show {nearby(run / first)}", "bob.command")
        console.print(command, "shows a column with its evidence.", soft_wrap=True)
    console.print()


def _several_findings(states: Sequence[int]) -> str:
    """Of findings of one kind, each with its number of crash states: one subject. A state may be in several of them."""
    if len(states) == 1:
        return plural(states[0], "crash state")
    least, most = min(states), max(states)
    each = plural(most, "crash state") if least == most else f"{compact(least)} to {plural(most, 'crash state')}"
    return f"{len(states):,} findings of {each} each:"


def _by_reason(found: Iterable[Answer]) -> dict[tuple[Verdict, str], list[str]]:
    """The names of cells by why they are what they are."""
    names: dict[tuple[Verdict, str], list[str]] = {}
    for cell in found:
        names.setdefault((cell.verdict, cell.reason or "no reason was kept"), []).append(cell.name)
    return names


def print_configuration(console: Console, column: SubjectResult, run: Path) -> None:
    """Print one configuration: its table, the evidence for each ×, the reason for each ? and –, and the notes."""
    flat = listed(column)
    if _print_grids(console, column, run) and flat.answers:
        console.print()
    if flat.answers:
        console.print(Trimmed(broken(_title(column), console.width)))
        console.print()
        console.print(Trimmed(_table(flat)))
    found = [cell for cell in cells(flat).values() if cell.verdict is not Verdict.HOLDS]
    every = cells(column).values()
    unsaid = [cell for cell in every if cell.verdict in (Verdict.UNKNOWN, Verdict.SKIPPED) and cell.reason]
    violated = [cell for cell in found if cell.verdict is Verdict.FAILS]
    if violated or column.findings:
        console.print()
    for number, finding in enumerate(column.findings, start=1):
        _print_finding(console, number, finding, run)
    told = {row for finding in column.findings for row in finding.rows}
    for cell in violated:
        if cell.name not in told:
            _print_violation(console, cell, run)
    if unsaid:
        console.print()
    for (verdict, reason), names in _by_reason(unsaid).items():
        _print_hanging(console, MARKS[verdict], f"{', '.join(names)}: {reason}", style(verdict))
    if column.unmountable is not None:
        console.print()
        _print_beside(console, "could not be mounted", column.unmountable, run)
    for kind, trouble in column.troubles():
        console.print()
        _print_beside(console, kind.said, trouble, run)
    if column.examinable:
        console.print()
        console.print(Trimmed(Text(examined(column), "bob.dim")))
    if column.notes:
        console.print()
    for note in column.notes:
        _print_hanging(console, "note:", note, "bob.dim")


def _print_grids(console: Console, column: SubjectResult, run: Path) -> bool:
    """Print the grids of a configuration; whether it has any."""
    from bob.report.grid_table import print_grids  # pandas takes a while to load

    if found := grids(column):
        console.print(Trimmed(broken(_title(column), console.width)))
        console.print()
        print_grids(console, found, run)
    return bool(found)


def _title(column: SubjectResult) -> Text:
    options = [f"mkfs {column.mkfs_options}"] if column.mkfs_options else []
    mounted = column.effective_mount_options or column.mount_options
    options += [f"mounted {mounted}"] if mounted else []
    return Text.assemble((column.name, "bob.title"), (f"   {', '.join((column.fs, *options))}", "bob.dim"))


def _table(column: SubjectResult) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for heading in ("property", "verdict", "whole states", "torn", "workloads"):
        table.add_column(Text(heading, "bob.dim"), no_wrap=heading in ("property", "verdict", "torn"))
    known = cells(column)
    for family, names in by_family([column]).items():
        table.add_row(Text(family, "bob.heading"))
        for name in names:
            cell = known[name]
            mark = Text(MARKS[cell.verdict], style(cell.verdict))
            table.add_row(Text(f"  {name}"), mark, whole_states(cell.states), torn_states(cell.states), tally(cell))
    return table


def tally(cell: Answer) -> str:
    """How many workloads asked, and how many of them gave the cell its verdict where not all did."""
    asked = len(cell.recordings)
    same = sum(workload.verdict is cell.verdict for workload in cell.recordings)
    match cell.verdict:
        case Verdict.FAILS:
            return f"{same} of {asked} fail" if asked else ""
        case Verdict.UNKNOWN:
            return f"{same} of {asked} unknown" if asked else ""
        case Verdict.HOLDS:
            return f"{asked}" if asked else ""
    return ""


def _print_violation(console: Console, cell: Answer, run: Path) -> None:
    states = sum(workload.violations for workload in cell.recordings)
    head = Text.assemble((f"{MARKS[cell.verdict]} {cell.name}", style(cell.verdict)))
    if states:
        head.append(f"   in {plural(states, 'crash state')}", "bob.dim")
    console.print(Trimmed(head))
    if cell.evidence:
        _print_indented(console, cell.evidence)
    _print_command(console, run, cell.witness)


def _print_finding(console: Console, number: int, finding: Finding, run: Path) -> None:
    """What several workloads show by one cause, in several rows perhaps, is told once."""
    head = Text.assemble((f"{MARKS[Verdict.FAILS]} {number}. {finding.words}", style(Verdict.FAILS)))
    console.print(Trimmed(head.append(f"   in {plural(finding.shown_by, 'workload')}", "bob.dim")))
    _print_indented(console, f"breaks {', '.join(finding.rows)}")
    if finding.missing:
        _print_indented(console, f"not there: {', '.join(finding.missing)}")
    _print_indented(console, f"the smallest: {finding.workload}")
    _print_indented(console, finding.evidence)
    _print_command(console, run, finding.witness)


def _print_beside(console: Console, what: str, way: Way, run: Path) -> None:
    console.print(Trimmed(Text(f"! {plural(way.states, 'crash state')} {what}", "bob.unmountable")))
    if way.evidence:
        _print_indented(console, way.evidence)
    _print_command(console, run, way.witness)


def _print_command(console: Console, run: Path, witness: str | None) -> None:
    """The command on a line of its own, however long: one that is broken up cannot be pasted."""
    if witness:
        console.print(Text(" " * _INDENT + witness_command(run, witness), "bob.command"), soft_wrap=True)


def _print_indented(console: Console, text: str) -> None:
    console.print(Trimmed(Padding(Text(text), (0, 0, 0, _INDENT))))


def _print_hanging(console: Console, mark: str, text: str, mark_style: str) -> None:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_row(Text(mark, mark_style), Text(text))
    console.print(Trimmed(grid))


def _print_foot(console: Console, result: Result, run: Path) -> None:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for label, text in foot(result):
        grid.add_row(Text(label, "bob.dim"), Text(text))
    console.print(Trimmed(grid))
    console.print(Text.assemble(("run       ", "bob.dim"), str(nearby(run))), soft_wrap=True)
    console.print(Trimmed(Text(HOLDS_MEANS, "bob.dim")))
    if any(cell.states.legal_sectors for column in result.subjects for cell in column.answers):
        console.print(Trimmed(Text(STATES_MEAN, "bob.dim")))


def foot(result: Result) -> Iterable[tuple[str, str]]:
    """What it was measured on and how, a label and a line each."""
    on = result.environment
    guest = f"kernel {on.kernel}, {on.accelerator.upper()}, {on.clock} clock, image {on.image}"
    hypervisor = f", QEMU {on.qemu}, libvirt {on.libvirt}" if on.qemu else ""  # which a machine of the user's has not
    yield "measured", f"{guest}, {on.mkfs_version}{hypervisor}"
    yield "device", result.model.words
    took = _took(result.run.started, result.run.finished)
    asked = f"budget {result.run.budget:,} mounts per workload, seed {result.run.seed}{took}"
    yield "explored", asked + _mounted(result) + _exhausted(result)
    if result.run.search:
        yield "search", result.run.search


def _mounted(result: Result) -> str:
    """How many states were explored by how many mounts, where these are fewer."""
    states = total([column.states for column in result.subjects])
    if not 0 < states.mounted < states.explored:
        return ""
    return f"; {plural(states.explored, 'crash state')} by {plural(states.mounted, 'mount')}"


def _exhausted(result: Result) -> str:
    """How many of the cells that hold do so in every legal state of whole writes of their workloads."""
    cells = [cell for column in result.subjects for cell in column.answers if cell.verdict is Verdict.HOLDS]
    whole = sum(cell.states.exhaustive is not None for cell in cells)
    return f"; of {len(cells)} holds, {whole} cover{'s' if whole == 1 else ''} every whole state" if whole else ""


def _took(started: str, finished: str) -> str:
    """How long the run took; one that was stopped, and judged later, says so."""
    if not finished:
        return "; the run was stopped before its end"
    try:
        seconds = round((datetime.fromisoformat(finished) - datetime.fromisoformat(started)).total_seconds())
    except (ValueError, TypeError):
        return ""
    hours, minutes = divmod(seconds // 60, 60)
    return f", in {hours}:{minutes:02}:{seconds % 60:02}" if hours else f", in {minutes}:{seconds % 60:02}"
