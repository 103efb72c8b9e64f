"""Models that promise all that a published table found no violation of; syncs do for their file what POSIX says."""

from __future__ import annotations

from collections.abc import Mapping

from bob.apm import clauses
from bob.apm.clauses import Clause, orders
from bob.apm.model import ClauseFinding, ClauseStatus, Model
from bob.claim.property.vocabulary import Call, Unit
from bob.errors import UsageError
from bob.report.published import Published
from bob.workload.kinds import MODELLED_KINDS, ChangeKind, Relation

_APPEND_FILLS = (*(clauses.Never(ChangeKind.APPEND, fill) for fill in clauses.Fill), *clauses.PIECES)


def _ordered(before: tuple[ChangeKind, ...]) -> tuple[Clause, ...]:
    return orders(before, MODELLED_KINDS)


def _in_turn(before: clauses.Means) -> tuple[Clause, ...]:
    return tuple(clause for clause in clauses.IN_TURN if clause.before is before)


_REFUTED: Mapping[str, tuple[Clause, ...]] = {
    "single-sector-overwrite": tuple(clauses.Never(ChangeKind.OVERWRITE, fill) for fill in clauses.Fill),
    "single-sector-append": (*_APPEND_FILLS, *(clauses.Whole(ChangeKind.APPEND, unit) for unit in clauses.UNITS)),
    "single-block-overwrite": tuple(clauses.Whole(ChangeKind.OVERWRITE, unit) for unit in clauses.UNITS),
    "single-block-append": tuple(clauses.Whole(ChangeKind.APPEND, unit) for unit in clauses.UNITS),
    "multi-block-append": tuple(clauses.Whole(kind, Unit.WHOLE) for kind in (ChangeKind.APPEND, ChangeKind.OVERWRITE)),
    "multi-block-prefix-append": _APPEND_FILLS,
    "directory-op": tuple(clauses.Whole(kind, Unit.WHOLE) for kind in clauses.DIRECTORY_KINDS),
    "overwrite-any": _ordered((ChangeKind.OVERWRITE,)),
    "trunc-append-any": (*_ordered((ChangeKind.TRUNCATE_DOWN,)), *_in_turn(clauses.Means.SIZES)),
    "append-append-same-file": (clauses.Ordered(ChangeKind.APPEND, ChangeKind.APPEND, Relation.SAME_FILE),),
    "append-any": (*_ordered(clauses.GROWING_KINDS), *_in_turn(clauses.Means.SIZES)),
    "directory-op-any": (*_ordered((*clauses.DIRECTORY_KINDS, ChangeKind.SETXATTR)), *_in_turn(clauses.Means.NAMES)),
}  # by row of Table 1, what a × refutes; ``append-rename-any`` is two of the others

_OF_NOTHING = frozenset(
    clause
    for clause in clauses.every_clause()
    if isinstance(clause, clauses.Durable)
    and (clause.call in (Call.RETURNED, Call.O_SYNC, Call.O_DSYNC) or clause.what.startswith("other"))
)  # neither the table nor POSIX promises these


def from_published(configuration: str, table: Published) -> Model:
    """Return the model of a column of a published table. Raises UsageError if it has no such column."""
    if configuration not in table.configurations:
        raise UsageError(
            f"the published table has no column {configuration!r}", hint=f"it has {', '.join(table.configurations)}"
        )
    refuted = {
        clause: row for row, against in _REFUTED.items() if configuration in table.fails[row] for clause in against
    }
    findings = tuple(_finding(clause, refuted.get(clause)) for clause in clauses.every_clause())
    about = f"{configuration} as published: all that {table.source} found no violation of"
    return Model(configuration, about, findings, {"published": table.source})


def _finding(clause: Clause, row: str | None) -> ClauseFinding:
    if row is not None:
        return ClauseFinding(clause, ClauseStatus.REFUTED, promised=False, reason=f"a violation of {row} is published")
    if clause in _OF_NOTHING:
        return ClauseFinding(clause, ClauseStatus.ASSUMED, promised=False, reason="the table does not speak of it")
    return ClauseFinding(clause, ClauseStatus.ASSUMED, promised=True)
