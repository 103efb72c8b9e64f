"""Conflicts and micro-operations in words."""

from __future__ import annotations

from bob.apm.allowed import Conflict
from bob.apm.dependencies import Graph
from bob.apm.micro import AttributeCell, DataCell, MicroKind, MicroOperation, NameCell, SizeCell, Workings
from bob.claim.property.rules import quoted


def said(taken: Workings, operation: MicroOperation) -> str:
    """A micro-operation in a few words: ``bytes 0 to 512 of /a``, ``the name b in /d``."""
    things = taken.history.things
    match operation.cell:
        case DataCell(thing, start, stop):
            return f"bytes {start:,} to {stop:,} of {min(things[thing].names)}"
        case SizeCell(thing):
            return f"the size {int(operation.value or 0):,} B of {min(things[thing].names)}"
        case AttributeCell(thing, name):
            return f"the attribute {name} of {min(things[thing].names)}"
        case NameCell((directory, name)):
            verb = "no name" if operation.kind is MicroKind.DELETE_DIR_ENTRY else "the name"
            return f"{verb} {name} in {min(things[directory].names)}"


def what_shows(graph: Graph, conflict: Conflict) -> str:
    """What an observation shows that refutes a clause."""
    if conflict.there is None or conflict.missing is None:
        return conflict.about or "forbidden by several clauses together"
    missing = _node(graph, conflict.missing)
    if conflict.there >= len(graph.workings.operations):
        return f"{_node(graph, conflict.there)} had returned, {missing} is not there"
    return f"{_node(graph, conflict.there)} is there, {missing} is not"


def _node(graph: Graph, node: int) -> str:
    operations = graph.workings.operations
    if node < len(operations):
        operation = operations[node]
        return f"{said(graph.workings, operation)} of {quoted(graph.workings.history, operation.number)}"
    number = graph.operation(node)
    if number <= len(graph.workings.history.operations):
        return quoted(graph.workings.history, number)
    return "the final sync of the workload"
