"""Results as one HTML page: the table, and below it for each cell what was run, what failed, and the evidence.

The page stands alone: no network, no script, nothing beside the file. Or it is the first of several, and each witness
has a page of its own (:mod:`bob.report.site`). Whatever kernels, tools and files said is escaped by jinja2, since every
template value is text to it. ``page.html.j2`` has blocks (``title``, ``heading``, ``links``, ``comparison``,
``footer``), which a template that extends it may fill.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Template
from markupsafe import Markup

from bob.answer.answer import Answer, ByRecording, Way
from bob.answer.result import SubjectResult
from bob.catalogue.places import place_of
from bob.claim.verdict import Verdict
from bob.errors import MalformedError
from bob.observe.observations import TroubleKind
from bob.report.columns import ShownColumn, grouped
from bob.report.counts import examined, explored
from bob.report.documents import results_of
from bob.report.drawing import svg
from bob.report.grids import Grid, finishes, grids, listed
from bob.report.meanings import meanings
from bob.report.nearby import witness_command
from bob.report.rows import by_family, cells
from bob.report.table import HOLDS_MEANS, STATES_MEAN, tally
from bob.report.templating import MARKS_HERE, SAYS, html
from bob.text import plural
from bob.version import __version__
from bob.witness.document import Witness, read


@dataclass(frozen=True, slots=True)
class Story:
    """What the witness in the file ``path`` shows; ``page`` is where its own page is, empty where it has none."""

    witness: Witness
    path: Path
    page: str

    @property
    def sentence(self) -> str:
        """What happened, in one sentence."""
        return self.witness.sentence

    @property
    def picture(self) -> Markup:
        """The time line, drawn, without a legend: the page has one for all of them."""
        found = self.witness
        role = found.claim.role
        return Markup(svg(found.timeline, found.operations, role, found.evidence, legend=False))


@dataclass(frozen=True, slots=True)
class PageCell:
    """A cell with its place on the page: ``anchor`` is the id of the section with its evidence."""

    anchor: str
    place: str
    cell: Answer
    command: str | None
    story: Story | None = None

    @property
    def link(self) -> str:
        """Where its mark in the table leads."""
        return self.story.page if self.story and self.story.page else f"#{self.anchor}"

    @property
    def mark(self) -> str:
        """What stands in the table."""
        return MARKS_HERE[self.cell.verdict]

    @property
    def violations(self) -> int:
        """In how many of the explored states the property is violated."""
        return sum(workload.violations for workload in self.cell.recordings)

    @property
    def variants(self) -> str:
        """How many workloads were run, and how many of them gave the cell its verdict, in words."""
        run = len(self.cell.recordings)
        if not run:
            return ""
        failed = sum(workload.verdict is Verdict.FAILS for workload in self.cell.recordings)
        unknown = sum(workload.verdict is Verdict.UNKNOWN for workload in self.cell.recordings)
        said = f"{failed:,}" if failed else "none"
        said = f"{said} of {plural(run, 'workload')} failed"
        return f"{said}, {unknown:,} unknown" if unknown else said

    @property
    def tally(self) -> str:
        """The same in few words: ``12 of 21 fail``."""
        return tally(self.cell)

    @property
    def finishes(self) -> str:
        """With which finishes it fails, where it stands in a grid, which has no room for that."""
        return finishes(self.cell) if self.is_in_grid else ""

    @property
    def is_in_grid(self) -> bool:
        """Whether it is one of hundreds, so that less is said of it."""
        return place_of(self.cell.name) is not None

    @property
    def by_workload(self) -> list[tuple[str, list[ByRecording]]]:
        """The workloads, those of one name (which differ in how they finish) together."""
        return [(name, list(group)) for name, group in groupby(self.cell.recordings, lambda workload: workload.name)]

    @property
    def summary(self) -> str:
        """The cell in a line, for those who cannot see where it stands."""
        said = f"{self.cell.name} on {self.place}: {SAYS[self.cell.verdict]}"
        if self.cell.recordings:
            return f"{said}; {self.finishes or self.variants}; {explored(self.cell.states)}"
        return said


@dataclass(frozen=True, slots=True)
class PageGrid:
    """A grid of a configuration, with what is down, each with its cells (None: it was not asked)."""

    grid: Grid
    rows: Sequence[tuple[str, Sequence[PageCell | None]]]


@dataclass(frozen=True, slots=True)
class PageTrouble:
    """Something of this ``kind`` that is wrong with states that mount, with its place on the page, the command that
    shows it, and its story."""

    anchor: str
    kind: TroubleKind
    trouble: Way
    command: str | None
    story: Story | None


@dataclass(frozen=True, slots=True)
class PageColumn:
    """A configuration with its place on the page, its cells by the property's name, and those of them that stand in
    grids; and where it is said, with which story, that crash states could not be mounted; and what else is wrong with
    some."""

    anchor: str
    column: ShownColumn
    cells: Mapping[str, PageCell]
    families: Mapping[str, Sequence[PageCell]]
    grids: Sequence[PageGrid]
    explored: int
    unmountable_anchor: str
    unmountable_command: str | None
    unmountable: Story | None
    troubles: Sequence[PageTrouble] = ()

    @property
    def closer_look(self) -> str:
        """How many outcomes had a closer look."""
        return examined(self.configuration)

    @property
    def configuration(self) -> SubjectResult:
        """What was found."""
        return self.column.configuration

    def count(self, verdict: Verdict) -> int:
        """How many of its cells have this verdict."""
        return sum(cell.cell.verdict is verdict for cell in self.cells.values())


@dataclass(slots=True)
class _Anchors:
    """Gives out ids, or names of files, each once."""

    given: set[str] = field(default_factory=set)

    def new(self, *words: str) -> str:
        """One made of ``words``, in letters that need no escaping in a link, and short enough for a file."""
        wanted = "--".join(re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-")[:80] or "x" for word in words)
        found, number = wanted, 2
        while found in self.given:
            found, number = f"{wanted}-{number}", number + 1
        self.given.add(found)
        return found


def to_html(columns: Sequence[ShownColumn], template: Template | None = None, **more: Any) -> str:
    """The page about ``columns``, which stands alone.

    ``template``, of :func:`bob.report.templating.html`, may extend page.html.j2 and fill its blocks; ``more`` is what
    it needs for it.
    """
    return render(columns, list(laid_out(columns)), template, **more)


def render(
    columns: Sequence[ShownColumn],
    shown: Sequence[PageColumn],
    template: Template | None = None,
    home: str = "",
    **more: Any,
) -> str:
    """The page about ``columns``, which are ``shown`` as :func:`laid_out` says; it links to ``home``, if any."""
    by_column = {id(column.column): column for column in shown}
    groups = [(fs, [by_column[id(column)] for column in group]) for fs, group in grouped(columns)]
    results = results_of(columns)
    every = [cell for column in shown for cell in column.cells.values()]
    page = template or html().get_template("page.html.j2")
    return page.render(
        bob=__version__,
        home=home,
        columns=shown,
        apart=any(cell.story and cell.story.page for cell in every),
        has_pictures=any(cell.story and not cell.story.page and not cell.is_in_grid for cell in every),
        groups=groups,
        families=by_family(listed(column.configuration) for column in columns),
        results=results,
        kernels=list(dict.fromkeys(result.environment.kernel for result in results)),
        mounted=sum(column.column.configuration.states.mounted for column in shown),
        tally=[(verdict, sum(cell.cell.verdict is verdict for cell in every)) for verdict in Verdict],
        meanings=meanings(column.configuration for column in columns),
        holds_means=HOLDS_MEANS,
        states_mean=STATES_MEAN,
        **more,
    )


def laid_out(columns: Sequence[ShownColumn], folder: str = "") -> Iterator[PageColumn]:
    """Each of ``columns`` with its place on the page.

    With a ``folder``, each witness that can be read has a page of its own in there, CONFIGURATION/PROPERTY.html.
    """
    anchors = _Anchors({"table", "reading", "measured", "comparison", "configurations", "top"})
    for column in columns:
        found, run = column.configuration, column.run
        anchor, files = anchors.new(column.label), _Anchors()
        below = folder and f"{folder}/{anchor}"
        witness = found.unmountable.witness if found.unmountable else None
        unmountable = _story(run, witness, below and f"{below}/{files.new('unmountable')}.html")
        known = {
            name: PageCell(
                anchors.new(column.label, name),
                column.label,
                cell,
                witness_command(run, cell.witness) if cell.witness else None,
                _story(run, cell.witness, below and f"{below}/{files.new(name)}.html"),
            )
            for name, cell in cells(found).items()
        }
        families = {family: [known[name] for name in names] for family, names in by_family([found]).items()}
        command = witness_command(run, witness) if witness else None
        place = anchors.new(column.label, "unmountable")
        on_page = [_grid(grid, known) for grid in grids(found)]
        explored = found.states.explored
        troubles = []
        for kind, trouble in found.troubles():
            told = witness_command(run, trouble.witness) if trouble.witness else None
            name = files.new(Path(trouble.witness or kind.value).stem)
            story = _story(run, trouble.witness, below and f"{below}/{name}.html")
            troubles.append(PageTrouble(anchors.new(column.label, kind.value), kind, trouble, told, story))
        yield PageColumn(anchor, column, known, families, on_page, explored, place, command, unmountable, troubles)


def _grid(grid: Grid, known: Mapping[str, PageCell]) -> PageGrid:
    rows = [(down, [known[cell.name] if cell else None for cell in cells]) for down, cells in grid.rows()]
    return PageGrid(grid, rows)


def _story(run: Path, witness: str | None, page: str) -> Story | None:
    """The story of ``witness``; None where the file is not there any more, or none that can be read."""
    if witness is None:
        return None
    try:
        return Story(read(run / witness), run / witness, page)
    except MalformedError:
        return None
