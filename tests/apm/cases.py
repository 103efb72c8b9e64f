"""Small workloads and the models that they are held against."""

from __future__ import annotations

from collections.abc import Iterable

from bob.apm.clauses import (
    DIRECTORY_KINDS,
    WHATS,
    Clause,
    Durable,
    Intact,
    InTurn,
    Ordered,
    TreePart,
    Whole,
    every_clause,
)
from bob.apm.dependencies import Graph, graph_of_workload
from bob.apm.model import ClauseFinding, ClauseStatus, Model
from bob.claim.property.vocabulary import Call, Unit, What
from bob.workload.language import parse
from bob.workload.operations import Workload

EVERYTHING = frozenset(every_clause())
NOTHING: frozenset[Clause] = frozenset()


LETTER_OF_POSIX: frozenset[Clause] = frozenset(
    {
        *(Intact(part) for part in TreePart),
        *(Whole(kind, Unit.WHOLE) for kind in DIRECTORY_KINDS),
        *(Durable(call, what) for call in (Call.FSYNC_FILE, Call.FDATASYNC_FILE) for what in (What.DATA, What.SIZE)),
        *(Durable(call, What.ENTRIES) for call in (Call.FSYNC_DIRECTORY, Call.FDATASYNC_DIRECTORY)),
        *(Durable(call, what) for call in (Call.SYNC, Call.SYNCFS) for what in WHATS),
    }
)
"""Names come whole, and what is synced is there: nothing else. A file's fsync does not keep its name."""


def workload(operations: str, setup: str = "") -> Workload:
    return Workload("case", tuple(parse(setup)), tuple(parse(operations)))


def graph_of(operations: str, setup: str = "") -> Graph:
    return graph_of_workload(workload(operations, setup))


def without_order() -> frozenset[Clause]:
    return frozenset(clause for clause in every_clause() if not isinstance(clause, Ordered | InTurn))


def model(promised: Iterable[Clause], name: str = "a-model") -> Model:
    """A model that promises just these clauses, which held exhaustively; nothing puts the others to the test."""
    wanted = frozenset(promised)
    findings = [
        ClauseFinding(clause, ClauseStatus.EXHAUSTIVE if clause in wanted else ClauseStatus.ASSUMED, clause in wanted)
        for clause in every_clause()
    ]
    return Model(name, "For a test", tuple(findings), {"kernel": "6.1.0", "run": 'a "run" \\ of «mine»'})
