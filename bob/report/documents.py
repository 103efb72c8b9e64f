"""Results as documents: Markdown, LaTeX, CSV. The HTML page has a module of its own (:mod:`bob.report.page`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bob.answer.result import Result
from bob.claim.verdict import Verdict
from bob.report.columns import ShownColumn, grouped
from bob.report.counts import examined, torn_states, whole_states
from bob.report.escape import markdown, markdown_code, tex
from bob.report.frames import cell_frame
from bob.report.matrix import matrix_of
from bob.report.nearby import witness_command
from bob.report.rows import MARKS, cells, title
from bob.report.table import HOLDS_MEANS, STATES_MEAN, foot, tally
from bob.report.templating import environment
from bob.text import plural
from bob.version import __version__

_BLANK = {MARKS[Verdict.HOLDS]: ""}
NOT_PROBED = "·"
"""In LaTeX, where blank says that the property holds."""

_CODE = {
    "block_start_string": "<%",
    "block_end_string": "%>",
    "variable_start_string": "<<",
    "variable_end_string": ">>",
    "comment_start_string": "<#",
    "comment_end_string": "#>",
}
"""How code is marked in these templates: braces are LaTeX's own."""


@dataclass(frozen=True, slots=True)
class _Heads:
    """The columns of one file system in the head of the LaTeX table: the first and the last, counted from 1."""

    fs: str
    columns: Sequence[ShownColumn]
    first: int
    last: int

    @property
    def wide(self) -> bool:
        """Whether it has a heading of its own: over a single column there would be no room for one."""
        return len(self.columns) > 1


def to_csv(columns: Sequence[ShownColumn]) -> str:
    """One line for each cell, with the names of :data:`bob.report.frames.CELL_FIELDS` above."""
    return str(cell_frame(columns).to_csv(index=False, lineterminator="\n"))


def to_markdown(columns: Sequence[ShownColumn]) -> str:
    """The table, the evidence of each ×, and on what it was measured, as Markdown for a forge."""
    text = _render(
        "table.md.j2",
        markdown,
        _rows(columns, {MARKS[Verdict.HOLDS]: "·"}),
        columns,
        code=markdown_code,
        marks=MARKS,
        cells=cells,
        whole_states=whole_states,
        torn_states=torn_states,
        foot=foot,
        tally=tally,
        witness_command=witness_command,
        means=[HOLDS_MEANS, STATES_MEAN],
    )
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def to_latex(columns: Sequence[ShownColumn]) -> str:
    """The table in the layout of Table 1 of the paper: a fragment for a document that loads booktabs and graphicx."""
    rows = _rows(columns, {**_BLANK, "": NOT_PROBED})
    shown = {mark for _family, named in rows for _name, marks in named for mark in marks}
    heads = list(_heads(columns))
    devices = list(dict.fromkeys(dict(foot(result))["device"] for result in results_of(columns)))
    return _render("table.tex.j2", tex, rows, columns, heads=heads, shown=shown, not_probed=NOT_PROBED, devices=devices)


def results_of(columns: Sequence[ShownColumn]) -> list[Result]:
    """The results that the columns are from, each once."""
    return list({id(column.result): column.result for column in columns}.values())


def _render(name: str, escape: Callable[[Any], str], rows: Any, columns: Sequence[ShownColumn], **more: Any) -> str:
    template = environment(finalize=escape, **_CODE).get_template(name)
    results = results_of(columns)
    return template.render(
        rows=rows,
        columns=columns,
        results=results,
        kernels=list(dict.fromkeys(result.environment.kernel for result in results)),
        mounted=sum(column.configuration.states.mounted for column in columns),
        bob=__version__,
        plural=plural,
        examined=examined,
        title=title,
        **more,
    )


def _rows(columns: Sequence[ShownColumn], marks: dict[str, str]) -> list[tuple[str, list[tuple[str, list[str]]]]]:
    """Families, in each the properties, with the marks of all columns; ``marks`` has those that look otherwise here."""
    table = matrix_of([(column.result, column.configuration) for column in columns])
    rows: dict[str, list[tuple[str, list[str]]]] = {}
    for (family, name), values in zip(table.index, table.to_numpy().tolist(), strict=True):
        rows.setdefault(str(family), []).append((str(name), [marks.get(value, value) for value in values]))
    return list(rows.items())


def _heads(columns: Sequence[ShownColumn]) -> Iterator[_Heads]:
    first = 2  # the first column has the properties' names
    for fs, group in grouped(columns):
        yield _Heads(fs, group, first, first + len(group) - 1)
        first += len(group)
