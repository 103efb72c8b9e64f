"""A comparison as a page in Markdown, for people: what was measured, the grid, then each difference and its reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby

from jinja2 import Template

from bob.answer.result import Result
from bob.report.comparison.compare import Cell, Comparison, Group, Kind
from bob.report.comparison.sides import Said, Side, SideAnswer
from bob.report.comparison.words import (
    BLANK_MEANS,
    HEADINGS,
    NOT_EXPLAINED,
    command,
    counts,
    evidence,
    legend,
    mark,
    names,
    says,
    settings,
)
from bob.report.templating import environment
from bob.text import plural

_COLUMNS = 7
"""So many configurations stand side by side: more would be wider than a page."""

_CHANGES = (Kind.NEWLY_FAILS, Kind.NO_LONGER_FAILS)

# What a reader of the published table asks, where that table is A.
_SINCE = {
    Kind.NEWLY_FAILS: "Fails today, and was not found then",
    Kind.NO_LONGER_FAILS: "Was found then, and not today",
    Kind.UNDECIDED: "No verdict today",
}


@dataclass(frozen=True, slots=True)
class _ComparedGrid:
    """A table of marks: its heads, and each row's name and marks, all in Markdown."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class _Line:
    """What one side says of a cell; ``label`` is empty where only one side has anything to tell."""

    label: str
    says: str
    evidence: str | None
    command: str | None


@dataclass(frozen=True, slots=True)
class _Entry:
    cell: Cell
    mark: str
    lines: tuple[_Line, ...]


@dataclass(frozen=True, slots=True)
class _Section:
    """A kind of difference; each part has a title, a reason (both may be empty) and the cells that have it."""

    heading: str
    parts: tuple[tuple[str, str, tuple[_Entry, ...]], ...]


def page(comparison: Comparison) -> str:
    """The page, as Markdown with GitHub's tables. Commands are to be run in the directory that it was written from."""
    text = _template().render(
        comparison=comparison,
        title=escaped(title(comparison)),
        again=_again(comparison),
        counts=counts(comparison),
        explained=_explained(comparison),
        run=comparison.b if comparison.a.published else comparison.a,
        facts=facts,
        measured=tuple(_measured(comparison)),
        grids=tuple(_grid(comparison, lot) for lot in _side_by_side(comparison.configurations)),
        legend=tuple(legend(comparison)),
        sections=tuple(_sections(comparison)),
        not_compared=_not_compared(comparison),
        blank_means=BLANK_MEANS if comparison.with_published else "",
    )
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def escaped(text: str) -> str:
    """``text`` on one line, with nothing in it that Markdown takes for its own."""
    return re.sub(r"([\\`*_<>\[\]|~#&$])", r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """``text`` as code in a line; the fence has more backquotes than the text has in a row."""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    blank = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{blank}{text}{blank}{fence}"


@cache
def _template() -> Template:
    made = environment()  # it is no HTML: the filter md escapes
    made.filters |= {"md": escaped, "code": code}
    return made.get_template("comparison.md.j2")


def title(comparison: Comparison) -> str:
    """What a page about ``comparison`` is called; plain text."""
    if comparison.with_published:
        return "Table 1, then and now"
    return f"{comparison.a.name} and {comparison.b.name}, compared"


def headings(comparison: Comparison) -> dict[Kind, str]:
    """What the cells of each kind of difference stand under."""
    then = comparison.with_published and comparison.a.published
    return {kind: (_SINCE if then else {}).get(kind) or words.capitalize() for kind, words in HEADINGS.items()}


def _again(comparison: Comparison) -> str:
    """How much of what was published was found again."""
    if not comparison.with_published:
        return ""
    pairs = [
        (cell.a, cell.b) if comparison.a.published else (cell.b, cell.a)
        for cell in comparison.cells
        if cell.kind not in (Kind.ONLY_A, Kind.ONLY_B)
    ]
    runs = [run for published, run in pairs if published is not None and published.said is Said.FAILS]
    if not runs:
        return "The paper reports no violation in these cells."
    found = sum(run is not None and run.said is Said.FAILS for run in runs)
    these = "this configuration" if len(comparison.configurations) == 1 else "these configurations"
    return f"Of {plural(len(runs), 'violation')} that the paper reports for {these}, {found} showed again."


def _explained(comparison: Comparison) -> str:
    """For how many of the differences from the published table a reason is known."""
    differing = comparison.of(*_CHANGES)
    if not comparison.with_published or not differing:
        return ""
    known = sum(cell.reason is not None and not cell.reason.background for cell in differing)
    return f"The reason is known for {known} of {plural(len(differing), 'difference')}."


def _measured(comparison: Comparison) -> Iterator[tuple[str, str, str]]:
    """The rows of the table on what was measured where: a label, A's and B's."""
    old, new = facts(comparison.a), facts(comparison.b)
    for label in dict.fromkeys([*old, *new]):
        yield label, old.get(label, ""), new.get(label, "")
    for what, in_a, in_b in settings(comparison):
        if what.startswith("mount options of "):
            yield what, in_a, in_b


def facts(side: Side) -> dict[str, str]:
    """On what a side was measured, by label; nothing of the published table."""
    return {} if side.result is None else _environment(side.result)


def _environment(result: Result) -> dict[str, str]:
    on, run = result.environment, result.run
    return {
        "run": run.id,
        "kernel": on.kernel,
        "mkfs": on.mkfs_version,
        "guest": f"{on.image}, {on.accelerator.upper()}, {on.clock} clock",
        "device": result.model.words,
        "explored": f"budget {plural(run.budget, 'mount')} per workload, seed {run.seed}",
        "when": run.started[:10],
        "bob": run.bob_version,
    }


def _side_by_side(configurations: Sequence[str]) -> Iterator[Sequence[str]]:
    """``configurations`` in lots that fit a page; those of one file system stay together where they can."""
    lot: list[str] = []
    for _fs, same in groupby(configurations, key=lambda name: re.split("[- ]", name)[0]):
        more = list(same)
        if lot and len(lot) + len(more) > _COLUMNS:
            yield lot
            lot = []
        lot += more
        while len(lot) > _COLUMNS:
            yield lot[:_COLUMNS]
            lot = lot[_COLUMNS:]
    if lot:
        yield lot


def _grid(comparison: Comparison, configurations: Sequence[str]) -> _ComparedGrid:
    """The marks of some configurations; a family's name stands alone in its row."""
    cells = {(cell.configuration, cell.name): cell for cell in comparison.cells}
    families: dict[str, dict[str, None]] = {}
    for cell in comparison.cells:
        families.setdefault(cell.family, {})[cell.name] = None
    rows: list[tuple[str, tuple[str, ...]]] = []
    for family, found in families.items():
        rows.append((f"**{escaped(family)}**", ("",) * len(configurations)))
        rows += [(escaped(name), tuple(_marked(cells.get((one, name))) for one in configurations)) for name in found]
    return _ComparedGrid(tuple(escaped(name).replace("-", "<br>", 1) for name in configurations), tuple(rows))


def _marked(cell: Cell | None) -> str:
    if cell is None:
        return ""
    shown = mark(cell).replace("<", "&lt;").replace(">", "&gt;").replace("~", "\\~")
    return f"**{shown}**" if cell.kind in _CHANGES else shown


def _sections(comparison: Comparison) -> Iterator[_Section]:
    words = headings(comparison)
    by_kind: dict[Kind, list[Group]] = {}
    for group in comparison.groups():
        by_kind.setdefault(group.kind, []).append(group)
    for kind, groups in by_kind.items():
        yield _Section(words[kind], tuple(_part(comparison, group) for group in groups))


def _part(comparison: Comparison, group: Group) -> tuple[str, str, tuple[_Entry, ...]]:
    entries = tuple(_entry(comparison, cell) for cell in group.cells)
    if group.reason is not None:
        return group.reason.title, group.reason.sentences, entries
    if comparison.with_published and group.kind in _CHANGES:
        return NOT_EXPLAINED.rstrip("."), "", entries
    return "", "", entries


def _entry(comparison: Comparison, cell: Cell) -> _Entry:
    sides = (("A", comparison.a, cell.a), ("B", comparison.b, cell.b))
    told = [
        _line("" if comparison.with_published else label, side, answer, brief=cell.kind is Kind.EXPLORED)
        for label, side, answer in sides
        if answer is not None and not (comparison.with_published and side.published)
    ]
    return _Entry(cell, _marked(cell), tuple(told))


def _line(label: str, side: Side, answer: SideAnswer, *, brief: bool) -> _Line:
    if brief:
        return _Line(label, says(answer), None, None)
    return _Line(label, says(answer), evidence(answer), command(side, answer))


def _not_compared(comparison: Comparison) -> tuple[str, ...]:
    pairs = ((comparison.a, comparison.only_a), (comparison.b, comparison.only_b))
    return tuple(f"{escaped(side.name)} alone has {escaped(names(only))}." for side, only in pairs if only)
