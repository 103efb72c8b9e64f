"""A result as one HTML page: the table, and details of each cell, which is the answer for one property of one
configuration. The details are what was run, what failed, and the evidence: a line about the damage after a crash. The
page needs no network and no script. It needs no other file either, unless bob writes a separate page for each witness
(a recorded crash)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path, PurePosixPath

from bob.answer.answer import Answer, ByRecording, Way
from bob.answer.result import SubjectResult
from bob.answer.unseen import notes_of
from bob.catalogue.places import place_of
from bob.claim.verdict import Verdict
from bob.errors import MalformedError
from bob.report.columns import ShownColumn, heading, kernels_of, results_of
from bob.report.counts import examined, explored
from bob.report.grids import Grid, finishes, grids, listed
from bob.report.rows import MARKS_IN_GRID, by_family, cells, meanings
from bob.report.shown_way import INDEX, WITNESSES, ShownWay, shown_way, witness_pages
from bob.report.table import HOLDS_MEANS, STATES_MEAN
from bob.report.templating import html
from bob.text import plural


@dataclass(frozen=True, slots=True)
class PageCell:
    """A cell of the table: the answer for one property of the configuration with the label ``place``. Crash states may
    break the property in several ways. ``shown`` is the first way that bob found. A section of the page shows the
    evidence for it."""

    place: str
    cell: Answer
    shown: ShownWay

    @property
    def anchor(self) -> str:
        return self.shown.anchor

    @property
    def link(self) -> str:
        return self.shown.page or f"#{self.anchor}"

    @property
    def mark(self) -> str:
        return MARKS_IN_GRID[self.cell.verdict]

    @property
    def violations(self) -> int:
        return sum(workload.violations for workload in self.cell.recordings)

    @property
    def variants(self) -> str:
        """Numbers of workloads in words: how many were run, how many failed, and how many are unknown."""
        run = len(self.cell.recordings)
        if not run:
            return ""
        failed = sum(workload.verdict is Verdict.FAILS for workload in self.cell.recordings)
        unknown = sum(workload.verdict is Verdict.UNKNOWN for workload in self.cell.recordings)
        said = f"{f'{failed:,}' if failed else 'none'} of {plural(run, 'workload')} failed"
        return f"{said}, {unknown:,} unknown" if unknown else said

    @property
    def finishes(self) -> str:
        """Words for the finishes of failing workloads (how these workloads end). They are empty unless the cell is in a
        grid (a table of properties)."""
        return finishes(self.cell) if self.is_in_grid else ""

    @property
    def is_in_grid(self) -> bool:
        return place_of(self.cell.name) is not None

    @property
    def by_workload(self) -> list[tuple[str, list[ByRecording]]]:
        """The name of each workload, with its verdicts: one for each recorded run. These runs differ in their finish
        (how the workload ends)."""
        return [(name, list(group)) for name, group in groupby(self.cell.recordings, lambda workload: workload.name)]

    @property
    def summary(self) -> str:
        """The cell in one line, for people who cannot see its row and column."""
        said = f"{self.cell.name} on {self.place}: {self.cell.verdict.value}"
        if self.cell.recordings:
            return f"{said}; {self.finishes or self.variants}; {explored(self.cell.states)}"
        return said


@dataclass(frozen=True, slots=True)
class PageColumn:
    """A configuration, and what the page shows of it. ``anchor`` is the id of its section. ``cells`` has the
    configuration's cells by property, and ``families`` has the same cells in groups of properties, such as "ordering".
    ``beside`` has trouble that no property asks about, such as crash states that do not mount."""

    anchor: str
    column: ShownColumn
    cells: Mapping[str, PageCell]
    families: Mapping[str, Sequence[PageCell]]
    grids: Sequence[Grid]
    beside: Sequence[ShownWay]

    @property
    def configuration(self) -> SubjectResult:
        return self.column.configuration

    @property
    def notes(self) -> tuple[str, ...]:
        return notes_of(self.configuration)

    @property
    def ways(self) -> list[ShownWay]:
        """All parts of the page that show a witness: one for each cell, and one for each trouble in ``beside``. Each of
        these witnesses may have a separate page."""
        return [*(cell.shown for cell in self.cells.values()), *self.beside]


@dataclass(slots=True)
class _Anchors:
    """A maker of ids for the sections of a page, or of names for files. It never makes the same id or name twice.
    ``given`` has all ids and names so far."""

    given: set[str] = field(default_factory=set)

    def new(self, *words: str) -> str:
        """Return an id made of ``words``. The id stands in a link without escapes, and is short enough for the name of
        a file."""
        wanted = "--".join(re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-")[:80] or "x" for word in words)
        found, number = wanted, 2
        while found in self.given:
            found, number = f"{wanted}-{number}", number + 1
        self.given.add(found)
        return found


def to_html(columns: Sequence[ShownColumn]) -> str:
    return _render(_laid_out(columns))


def pages(shown: Sequence[PageColumn], home: str = "") -> Iterator[tuple[PurePosixPath, str]]:
    """Yield the path and the text of each file of a report. First come two files for each witness: the page about the
    witness, and the witness itself. The page of the table comes last. ``home`` is the URL of the folder of a web site,
    relative to the page of the table. Without it, the pages do not link to a site. ``shown`` has the columns of the
    table."""
    yield from witness_pages((way for column in shown for way in column.ways), home)
    yield INDEX, _render(shown, home)


def shown_apart(columns: Sequence[ShownColumn]) -> list[PageColumn]:
    return _laid_out(columns, WITNESSES)


def _render(shown: Sequence[PageColumn], home: str = "") -> str:
    columns = [one.column for one in shown]
    groups = [(fs, list(group)) for fs, group in groupby(shown, key=lambda one: one.configuration.fs)]
    results = results_of(columns)
    every = [cell for column in shown for cell in column.cells.values()]
    page = html().get_template("page.html.j2")
    return page.render(
        home=home,
        heading=heading(columns),
        columns=shown,
        apart=any(cell.shown.page for cell in every),
        has_pictures=any(cell.shown.is_drawn_here and not cell.is_in_grid for cell in every),
        groups=groups,
        families=by_family(listed(column.configuration) for column in columns),
        results=results,
        kernels=kernels_of(results),
        mounted=sum(column.configuration.states.mounted for column in columns),
        tally=[(verdict, sum(cell.cell.verdict is verdict for cell in every)) for verdict in Verdict],
        meanings=meanings(column.configuration for column in columns),
        examined=examined,
        holds_means=HOLDS_MEANS,
        states_mean=STATES_MEAN,
    )


def _laid_out(columns: Sequence[ShownColumn], folder: str = "") -> list[PageColumn]:
    """Return each of ``columns`` with its place on the page. With a ``folder``, each readable witness gets a page in
    that folder, CONFIGURATION/PROPERTY.html."""
    anchors = _Anchors({"table", "reading", "measured", "comparison", "configurations", "top"})
    return [_page_column(column, anchors, folder) for column in columns]


def _page_column(column: ShownColumn, anchors: _Anchors, folder: str) -> PageColumn:
    found, run, files = column.configuration, column.run, _Anchors()
    anchor = anchors.new(column.label)

    def page(name: str) -> str:
        return folder and f"{folder}/{anchor}/{files.new(name)}.html"

    unmountable = page("unmountable")
    known = {
        name: PageCell(column.label, cell, _shown(anchors.new(column.label, name), cell.ways, run, page(name)))
        for name, cell in cells(found).items()
    }
    place = anchors.new(column.label, "unmountable")
    beside = []
    if (refused := found.unmountable) is not None:
        where = f"{plural(refused.states, 'crash state')} could not be mounted"
        beside.append(_shown(place, [refused], run, unmountable, where))
    for kind, trouble in found.troubles():
        where = f"{plural(trouble.states, 'crash state')} {kind.said}"
        file = page(Path(trouble.witness or kind.value).stem)
        beside.append(_shown(anchors.new(column.label, kind.value), [trouble], run, file, where))
    families = {family: [known[name] for name in names] for family, names in by_family([found]).items()}
    return PageColumn(anchor, column, known, families, grids(found), beside)


def _shown(anchor: str, ways: Sequence[Way], run: Path, page: str, where: str = "") -> ShownWay:
    """Return the part of a page about the first of ``ways``, which are kinds of crash states that break a claim. The
    page tells the story of this way's witness (a recorded crash). If bob cannot read the witness, the part lacks a
    story."""
    way = ways[0] if ways else Way("", 0)
    try:
        return shown_way(anchor, way, run, where, page)
    except MalformedError:
        return ShownWay(anchor, way, run, where)
