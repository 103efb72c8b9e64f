"""Make models from a published table. A row of the table stands for a property, and a column for a file system. A mark
says that the file system violates the property. The model for a column promises the properties that are not marked, and
what POSIX says about syncs of a file."""

from collections.abc import Mapping

from bob.apm import clauses
from bob.apm.clauses import Clause, matching
from bob.apm.model import ClauseFinding, ClauseStatus, Model
from bob.errors import UsageError
from bob.report.published import Published

_NAMES, _GROWING = "|".join(clauses.DIRECTORY_KINDS), "|".join(clauses.GROWING_KINDS)
_APPEND_FILLS = ("never append any", "never-in append any any")
_REFUTED: Mapping[str, tuple[Clause, ...]] = {
    "single-sector-overwrite": matching("never overwrite any"),
    "single-sector-append": matching(*_APPEND_FILLS, "whole append any"),
    "single-block-overwrite": matching("whole overwrite any"),
    "single-block-append": matching("whole append any"),
    "multi-block-append": matching("whole append|overwrite whole"),
    "multi-block-prefix-append": matching(*_APPEND_FILLS),
    "directory-op": matching(f"whole {_NAMES} whole"),
    "overwrite-any": matching("ordered overwrite any any"),
    "trunc-append-any": matching("ordered truncate-down any any", "in-turn sizes any"),
    "append-append-same-file": matching("ordered append append same-file"),
    "append-any": matching(f"ordered {_GROWING} any any", "in-turn sizes any"),
    "directory-op-any": matching(f"ordered {_NAMES}|setxattr any any", "in-turn names any"),
}  # by row of Table 1: the clauses that a violation refutes; ``append-rename-any`` follows from two other rows

_OF_NOTHING = frozenset(matching("durable returned|o-sync|o-dsync any", "durable any other-*"))
"""Clauses that neither the table nor POSIX promises."""


def from_published(configuration: str, table: Published) -> Model:
    """Return the model for one column of a published table. Raises UsageError if the table lacks the column."""
    if configuration not in table.configurations:
        raise UsageError(
            f"the published table lacks a column {configuration!r}", hint=f"it has {', '.join(table.configurations)}"
        )
    refuted = {
        clause: row for row, against in _REFUTED.items() if configuration in table.fails[row] for clause in against
    }
    findings = tuple(_finding(clause, refuted.get(clause)) for clause in clauses.every_clause())
    about = f"{configuration} as published: promises everything that {table.source} did not find violated"
    return Model(configuration, about, findings, {"published": table.source})


def _finding(clause: Clause, row: str | None) -> ClauseFinding:
    if row is not None:
        return ClauseFinding(clause, ClauseStatus.REFUTED, promised=False, reason=f"a violation of {row} is published")
    if clause in _OF_NOTHING:
        return ClauseFinding(clause, ClauseStatus.ASSUMED, promised=False, reason="the table does not cover it")
    return ClauseFinding(clause, ClauseStatus.ASSUMED, promised=True)
