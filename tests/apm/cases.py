"""Small workloads and the models that they are held against."""

from __future__ import annotations

from bob.apm.clauses import Clause, Ordered, every_clause
from bob.apm.dependencies import Graph, graph
from bob.apm.micro import workings
from bob.workload.history import simulate
from bob.workload.language import parse
from bob.workload.operations import Workload

EVERYTHING = frozenset(every_clause())
NOTHING: frozenset[Clause] = frozenset()


def workload(operations: str, setup: str = "") -> Workload:
    return Workload("case", tuple(parse(setup)), tuple(parse(operations)))


def graph_of(operations: str, setup: str = "") -> Graph:
    return graph_of_workload(workload(operations, setup))


def graph_of_workload(asked: Workload) -> Graph:
    return graph(asked, workings(simulate(asked)[0]))


def without_order() -> frozenset[Clause]:
    return frozenset(clause for clause in every_clause() if not isinstance(clause, Ordered))
