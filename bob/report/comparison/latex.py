"""A comparison as a fragment of LaTeX: for each configuration, the marks of both sides beside each other. A *cell* is
the answer for one property of one configuration."""

from bob.report.comparison.compare import CHANGES, Cell, Comparison
from bob.report.comparison.sides import Said, Side, SideAnswer
from bob.report.comparison.words import FAILS, FINE, SKIPPED, UNKNOWN, counts
from bob.report.escape import Raw, tex
from bob.report.rows import title
from bob.report.templating import TEX_DELIMITERS, environment

_MARKS = {Said.FAILS: FAILS, Said.UNKNOWN: UNKNOWN, Said.SKIPPED: SKIPPED}
_WIDE = r"p{0.6\linewidth}"  # names of vulnerabilities are sentences


def to_latex(comparison: Comparison) -> str:
    """Return the table as a fragment of LaTeX that needs booktabs and graphicx. Its rows are those of Table 1 in the
    ALICE paper (OSDI'14). Each configuration has a column for each side. A box marks an answer of side B that differs
    from that of side A."""
    cells = comparison.by_place
    rows = [
        (family, [(name, [cells.get((one, name)) for one in comparison.configurations]) for name in names])
        for family, names in comparison.families.items()
    ]
    return (
        environment(finalize=tex, **TEX_DELIMITERS)
        .get_template("comparison.tex.j2")
        .render(
            comparison=comparison,
            rows=rows,
            marks=marks,
            title=title,
            spec=Raw(_WIDE if comparison.b.is_of_program else "l"),
            source_of=source_of,
            counts=counts(comparison),
        )
    )


def marks(cell: Cell | None) -> tuple[str, str]:
    """Return the marks of side A and of side B. The second one has a box if both sides have a verdict, and these
    differ. A mark is empty if its side lacks the cell."""
    if cell is None:
        return "", ""
    a, b = _mark(cell.a), _mark(cell.b)
    return a, Raw(rf"\fbox{{{tex(b)}}}") if cell.kind in CHANGES else b


def _mark(answer: SideAnswer | None) -> str:
    return "" if answer is None else _MARKS.get(answer.said, FINE)


def source_of(side: Side) -> str:
    """Return what a side is, for the caption: the kernel of a run, or the title of a published table."""
    if side.result is None:
        return side.title or side.name
    return f"{side.name}, Linux {side.result.environment.kernel}"
