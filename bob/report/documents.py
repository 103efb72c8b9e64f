"""Results as Markdown, LaTeX and CSV. :mod:`bob.report.page` makes the HTML page."""

from collections.abc import Callable, Sequence
from typing import Any

from bob.claim.verdict import Verdict
from bob.report.columns import ShownColumn, grouped, heading, kernels_of, results_of
from bob.report.counts import examined, torn_states, whole_states
from bob.report.escape import markdown, markdown_code, tex
from bob.report.frames import cell_frame
from bob.report.nearby import witness_command
from bob.report.rows import MARKS, MARKS_IN_GRID, cells, families_of, title
from bob.report.table import HOLDS_MEANS, STATES_MEAN, foot, tally
from bob.report.templating import TEX_DELIMITERS, environment
from bob.text import plural

NOT_PROBED = "·"  # the mark in LaTeX, where a blank means that the property holds

# For each family, its properties, and for each property the marks of all columns.
Rows = list[tuple[str, list[tuple[str, list[str]]]]]


def to_csv(columns: Sequence[ShownColumn]) -> str:
    """Return CSV with one line for each cell (the answer for one property of one configuration). The first line has the
    names in :data:`bob.report.frames.CELL_FIELDS`."""
    return str(cell_frame(columns).to_csv(index=False, lineterminator="\n"))


def to_markdown(columns: Sequence[ShownColumn]) -> str:
    """Return Markdown for a forge: the table, the evidence of each × (a property that fails), and the conditions of the
    measurement."""
    text = _render(
        "table.md.j2",
        markdown,
        _rows(columns, MARKS_IN_GRID, ""),
        columns,
        code=markdown_code,
        marks=MARKS,
        cells=cells,
        whole_states=whole_states,
        torn_states=torn_states,
        foot=foot,
        tally=tally,
        heading=heading(columns),
        witness_command=witness_command,
        means=[HOLDS_MEANS, STATES_MEAN],
    )
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def to_latex(columns: Sequence[ShownColumn]) -> str:
    """Return the table as a fragment of LaTeX that needs booktabs and graphicx. Its layout is that of Table 1 in the
    ALICE paper (OSDI'14)."""
    rows = _rows(columns, {**MARKS, Verdict.HOLDS: ""}, NOT_PROBED)
    shown = {mark for _family, named in rows for _name, marks in named for mark in marks}
    heads, first = [], 2  # the first column has the names of the properties
    for fs, group in grouped(columns):
        heads.append((fs, group, first))
        first += len(group)
    devices = list(dict.fromkeys(dict(foot(result))["device"] for result in results_of(columns)))
    return _render("table.tex.j2", tex, rows, columns, heads=heads, shown=shown, not_probed=NOT_PROBED, devices=devices)


def _render(name: str, escape: Callable[[Any], str], rows: Rows, columns: Sequence[ShownColumn], **more: Any) -> str:
    results = results_of(columns)
    template = environment(finalize=escape, **TEX_DELIMITERS).get_template(name)
    return template.render(
        rows=rows,
        columns=columns,
        results=results,
        kernels=kernels_of(results),
        mounted=sum(column.configuration.states.mounted for column in columns),
        plural=plural,
        examined=examined,
        title=title,
        **more,
    )


def _rows(columns: Sequence[ShownColumn], marks: dict[Verdict, str], not_probed: str) -> Rows:
    return [
        (family, [(name, [marks[cell.verdict] if cell else not_probed for cell in found]) for name, found in named])
        for family, named in families_of(columns)
    ]
