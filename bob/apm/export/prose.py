"""Write a model in prose: as a page (``model.html.j2``), or as Markdown with matrices that fit a terminal
(``model.md.j2``). A model is a set of clauses. A *clause* is one promise about crash states. The *evidence* against a
clause is an observation that the clause forbids."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from bob.apm.clauses import JOURNALED, SYNCED, Clause, Intact, InTurn, Never, Ordered, Whole, every_clause
from bob.apm.export.claims import claims
from bob.apm.export.standing import ClauseCell, Matrix, Standing, cells, durability, orders
from bob.apm.model import ClauseFinding, Model
from bob.apm.what_if import lines
from bob.report.escape import Raw, markdown, markdown_code
from bob.report.templating import environment, html
from bob.text import plural

_FEW = 4


@dataclass(frozen=True, slots=True)
class ClauseGroup:
    title: str
    about: str
    cells: tuple[ClauseCell, ...]


def page(model: Model, picture: str = "", folder: str = "", home: str = "", document: str = "") -> str:
    """Return the HTML page about a model. ``picture`` is an ``<svg>`` element, or empty. The other arguments are URLs
    relative to the page, or empty. ``folder`` leads to the witnesses (stored crash states that refute clauses), and
    ends in /. ``home`` leads to the site, and ``document`` to the model as JSON."""
    template = html().get_template("model.html.j2")
    return template.render(**_told(model), picture=Markup(picture), folder=folder, home=home, document=document)


def text(model: Model) -> str:
    """Return a model as Markdown. Its matrices (tables of clauses) show a mark for each clause, but not the evidence
    against the clause."""
    made = environment(finalize=markdown)
    made.filters.update(code=markdown_code, drawn=lambda matrix: Raw(_drawn(matrix)))
    return made.get_template("model.md.j2").render(**_told(model))


def _told(model: Model) -> dict[str, Any]:
    every = claims(model)
    refuted = [ClauseCell(model.finding(clause)) for clause in every_clause()]
    return {
        "model": model,
        "origin": origin(model.source),
        "promised": [claim for claim in every if all(finding.promised for finding in claim.findings)],
        "refuted": [claim for claim in every if claim.standing is Standing.REFUTED],
        "open": [claim for claim in every if claim.standing in (Standing.DOUBTED, Standing.UNTRIED)],
        "groups": list(_groups(model)),
        "orders": list(orders(model)),
        "durability": durability(model),
        "overtaken": [clause for clause in model.promised if isinstance(clause, Ordered) and clause.unless_synced],
        "written": lines,
        "evidence": [cell for cell in refuted if cell.standing is Standing.REFUTED],
        "standings": [(one, sum(cell.standing is one for cell in refuted)) for one in Standing],
        "why": _why,
    }


def _why(finding: ClauseFinding) -> str:
    if finding.refutation is not None:
        together = "" if finding.refutation.alone else " (in a crash state that several clauses forbid together)"
        return f"{finding.refutation.evidence}{together}"
    if finding.reason:
        return finding.reason
    if not finding.workloads:
        return ""
    return f"{plural(finding.workloads, 'workload')}, {plural(finding.states, 'crash state')}"


def _groups(model: Model) -> Iterable[ClauseGroup]:
    yield ClauseGroup(
        "What is atomic",
        "A change that is not atomic may be there in part, with any of its sectors and names.",
        cells(model, _of(Whole)),
    )
    yield ClauseGroup(
        "What may show in place of missing data",
        "A file's size may reach the disk before its data does.",
        cells(model, _of(Never)),
    )
    yield ClauseGroup(
        "What the kernel writes in order",
        "The kernel chooses the order of changes that no call asks for alone: the program's order, or another one.",
        cells(model, [*_of(InTurn), *(one for one in (JOURNALED, SYNCED) if model.finding(one).promised)]),
    )
    yield ClauseGroup(
        "What a crash leaves alone",
        "A crash should not leave anything that no operation made.",
        cells(model, _of(Intact)),
    )


def _of(kind: type[Clause]) -> list[Clause]:
    return [clause for clause in every_clause() if isinstance(clause, kind)]


def _drawn(matrix: Matrix) -> str:
    """Return a matrix as text. The heads of its columns are numbers, to save space. If the columns have other names
    than the rows, these names are listed below the matrix."""
    rows = [name for name, _cells in matrix.rows]
    is_square = tuple(rows) == matrix.columns
    width = max(map(len, rows))
    lines = [" " * (width + 4) + "".join(f"{number:>3}" for number in range(1, len(matrix.columns) + 1))]
    for number, (name, row) in enumerate(matrix.rows, start=1):
        before = f"{number:>2}  " if is_square else "    "
        lines.append(f"{before}{name:<{width}}" + "".join(f"{cell.standing.mark:>3}" for cell in row))
    if not is_square:
        lines += ["", *(f"{number:>2}  {name}" for number, name in enumerate(matrix.columns, start=1))]
    return "\n".join(f"    {line}".rstrip() for line in lines)


def origin(source: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the ``source`` of a model (what it was made from) as names and values. A long list is replaced by its
    length."""
    found = []
    for key, value in source.items():
        if isinstance(value, Mapping):
            value = ", ".join(f"{name} {what}" for name, what in value.items() if what not in ("", 0))
        elif isinstance(value, Sequence) and not isinstance(value, str):
            value = ", ".join(map(str, value)) if len(value) <= _FEW else f"{len(value)} of them"
        if value not in (None, ""):
            found.append((key.replace("_", " "), str(value)))
    return found
