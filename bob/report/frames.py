"""Results as DataFrames: the whole table, a row for each cell (the answer for one property of one configuration), or a
row for each workload. Counts may have thousands of digits. So they are Python's integers (dtype object), and another
column has the binary logarithm of each."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from bob.answer.answer import Answer, ByRecording
from bob.claim.verdict import Verdict
from bob.crash.coverage import States
from bob.report.columns import ShownColumn
from bob.report.rows import MARKS, cells, families_of
from bob.text import log2

_PLACE = ("run", "kernel", "configuration", "fs", "family", "property")
_EXPLORED = ("explored", "explored_writes", "unmountable", "unmountable_writes")
_LEGAL = ("legal_writes", "legal_sectors", "exhaustive")
_LOG2 = ("log2_explored", "log2_explored_writes", "log2_legal_writes", "log2_legal_sectors")
_STATES = (*_EXPLORED, *_LEGAL, *_LOG2, "torn_share")
_COUNTS = ("workloads", "failing_workloads")  # small counts, which fit into int64
_VIOLATIONS = ("violations", "log2_violations")
_FLOATS = (*_LOG2, "log2_violations", "torn_share")
CELL_FIELDS = (*_PLACE, "verdict", *_STATES, *_COUNTS, *_VIOLATIONS, "evidence", "reason", "witness")
WORKLOAD_FIELDS = (*_PLACE, "workload", "finish", "verdict", *_STATES, *_VIOLATIONS, "reason")


def matrix(columns: Sequence[ShownColumn]) -> pd.DataFrame:
    """Return a table of marks (``×``, ``holds``, ``?``, ``–``) with a column for each configuration. A mark is empty if
    the property was not probed. The rows are properties, grouped by family (a two-level index), in the order of Table 1
    in the ALICE paper (OSDI'14)."""
    rows = [
        (family, name, [MARKS[cell.verdict] if cell else "" for cell in found])
        for family, named in families_of(columns)
        for name, found in named
    ]
    levels = [[family for family, _name, _marks in rows], [name for _family, name, _marks in rows]]
    return pd.DataFrame(
        [marks for _family, _name, marks in rows],
        index=pd.MultiIndex.from_arrays(levels, names=["family", "property"]),
        columns=pd.Index([column.label for column in columns], dtype=object),
    )


def cell_frame(columns: Iterable[ShownColumn]) -> pd.DataFrame:
    """Return a row for each cell, with the fields :data:`CELL_FIELDS`. All rows of one configuration follow each other,
    with the properties in the order of Table 1. ``workloads`` is the number of workloads that tested the property.
    ``failing_workloads`` is the number of those that broke it, and ``violations`` counts the explored states that break
    it. ``witness`` is a path in the run directory. Texts that a cell lacks are "", not NaN."""
    rows = [_cell(column, cell) for column in columns for cell in cells(column.configuration).values()]
    return _frame(rows, CELL_FIELDS)


def workload_frame(columns: Iterable[ShownColumn]) -> pd.DataFrame:
    """Return a row for each workload of each cell (:data:`WORKLOAD_FIELDS`). If a workload tested several properties,
    it has one row for each of these properties."""
    rows = [
        _workload(column, cell, workload)
        for column in columns
        for cell in cells(column.configuration).values()
        for workload in cell.recordings
    ]
    return _frame(rows, WORKLOAD_FIELDS)


def _frame(rows: list[dict[str, Any]], fields: tuple[str, ...]) -> pd.DataFrame:
    """Return ``rows`` as a DataFrame. Its values are Python objects, so that integers stay exact. Logarithms and shares
    are floats; NaN if unknown."""
    frame = pd.DataFrame(rows, columns=list(fields), dtype=object)
    kinds = {**dict.fromkeys(_COUNTS, "int64"), **dict.fromkeys(_FLOATS, "float64")}
    return frame.astype({field: kind for field, kind in kinds.items() if field in fields})


def _cell(column: ShownColumn, cell: Answer) -> dict[str, Any]:
    return {
        **_place(column, cell),
        **_states(cell.states),
        **_violations(sum(workload.violations for workload in cell.recordings)),
        "verdict": cell.verdict.value,
        "workloads": len(cell.recordings),
        "failing_workloads": sum(workload.verdict is Verdict.FAILS for workload in cell.recordings),
        "evidence": cell.evidence or "",
        "reason": cell.reason or "",
        "witness": cell.witness or "",
    }


def _workload(column: ShownColumn, cell: Answer, workload: ByRecording) -> dict[str, Any]:
    return {
        **_place(column, cell),
        **_states(workload.states),
        **_violations(workload.violations),
        "workload": workload.name,
        "finish": workload.finish,
        "verdict": workload.verdict.value,
        "reason": workload.reason or "",
    }


def _place(column: ShownColumn, cell: Answer) -> dict[str, Any]:
    run, kernel = column.result.run.id, column.result.environment.kernel
    return dict(zip(_PLACE, (run, kernel, column.label, column.fs, cell.family, cell.name), strict=True))


def _violations(count: int) -> dict[str, Any]:
    return {"violations": count, "log2_violations": log2(count)}


def _states(states: States) -> dict[str, Any]:
    unknown = "" if states.legal_writes else 0  # missing in older results
    return {
        **{name: getattr(states, name) for name in (*_EXPLORED, *_LEGAL)},
        **{name: log2(getattr(states, name.removeprefix("log2_")) or 0) for name in _LOG2},
        "explored_writes": unknown if states.explored_writes is None else states.explored_writes,
        "exhaustive": states.exhaustive or "",
        "torn_share": _torn_share(states),
    }


def _torn_share(states: States) -> float:
    """Return the explored share of the legal torn states (0 to 1). The share comes from logarithms, since the counts
    are too large for floats."""
    if states.explored_torn is None or states.legal_torn <= 0:
        return math.nan
    if states.explored_torn <= 0:
        return 0.0
    return min(1.0, math.exp2(log2(states.explored_torn) - log2(states.legal_torn)))
