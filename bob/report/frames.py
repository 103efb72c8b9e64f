"""Results as long tables, for whoever wants to count, filter and plot: one row a cell, or one row a workload.

Counts of legal states have up to thousands of digits; they are Python's own integers (dtype object), and exact. Beside
each stands its binary logarithm, for programs that have no such integers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pandas as pd

from bob.answer.answer import Answer, ByRecording
from bob.claim.verdict import Verdict
from bob.crash.coverage import States
from bob.report.columns import ShownColumn
from bob.report.rows import cells
from bob.text import log2

_STATES = (
    *(
        "explored",
        "explored_writes",
        "unmountable",
        "unmountable_writes",
        "legal_writes",
        "legal_sectors",
        "exhaustive",
    ),
    *("log2_explored", "log2_explored_writes", "log2_legal_writes", "log2_legal_sectors", "torn_share"),
)
CELL_FIELDS = (
    *("run", "kernel", "configuration", "fs", "family", "property", "verdict"),
    *_STATES,
    *("workloads", "failing_workloads", "violations", "log2_violations", "evidence", "reason", "witness"),
)
WORKLOAD_FIELDS = (
    *("run", "kernel", "configuration", "fs", "family", "property", "workload", "finish", "verdict"),
    *_STATES,
    *("violations", "log2_violations", "reason"),
)
_COUNTS = ("workloads", "failing_workloads")
"""Counts that are never large; those of crash states are of any size."""
_FLOATS = (
    *("log2_explored", "log2_explored_writes", "log2_legal_writes", "log2_legal_sectors", "log2_violations"),
    "torn_share",
)


def cell_frame(columns: Iterable[ShownColumn]) -> pd.DataFrame:
    """One row for each cell of the table, column by column, each in the order of Table 1.

    The columns are :data:`CELL_FIELDS`. ``workloads`` says how many asked, ``failing_workloads`` how many of them
    showed a violation, and ``violations`` in how many explored states all together; ``witness`` is a path from the run
    directory on. What a cell does not have (evidence, reason, witness, exhaustive) is an empty text.
    """
    rows = [_cell(column, cell) for column in columns for cell in cells(column.configuration).values()]
    return _frame(rows, CELL_FIELDS)


def workload_frame(columns: Iterable[ShownColumn]) -> pd.DataFrame:
    """One row for each workload that was asked for a cell: which variants were run, and which failed.

    The columns are :data:`WORKLOAD_FIELDS`. A recording that several properties ask about has a row in each of them.
    """
    rows = [
        _workload(column, cell, workload)
        for column in columns
        for cell in cells(column.configuration).values()
        for workload in cell.recordings
    ]
    return _frame(rows, WORKLOAD_FIELDS)


def _frame(rows: list[dict[str, Any]], fields: tuple[str, ...]) -> pd.DataFrame:
    """Every column is made as objects, so that numbers of any size stay what they are and nothing becomes NaN; but
    logarithms and shares are floats, NaN where there is nothing to tell."""
    frame = pd.DataFrame({field: pd.Series([row[field] for row in rows], dtype=object) for field in fields})
    kinds = {**dict.fromkeys(_COUNTS, "int64"), **dict.fromkeys(_FLOATS, "float64")}
    return frame.astype({field: kind for field, kind in kinds.items() if field in fields})


def _cell(column: ShownColumn, cell: Answer) -> dict[str, Any]:
    violations = sum(workload.violations for workload in cell.recordings)
    return {
        **_place(column, cell),
        **_states(cell.states),
        "verdict": cell.verdict.value,
        "workloads": len(cell.recordings),
        "failing_workloads": sum(workload.verdict is Verdict.FAILS for workload in cell.recordings),
        "violations": violations,
        "log2_violations": log2(violations),
        "evidence": cell.evidence or "",
        "reason": cell.reason or "",
        "witness": cell.witness or "",
    }


def _workload(column: ShownColumn, cell: Answer, workload: ByRecording) -> dict[str, Any]:
    return {
        **_place(column, cell),
        **_states(workload.states),
        "workload": workload.name,
        "finish": workload.finish,
        "verdict": workload.verdict.value,
        "violations": workload.violations,
        "log2_violations": log2(workload.violations),
        "reason": workload.reason or "",
    }


def _place(column: ShownColumn, cell: Answer) -> dict[str, Any]:
    return {
        "run": column.result.run.id,
        "kernel": column.result.environment.kernel,
        "configuration": column.label,
        "fs": column.fs,
        "family": cell.family,
        "property": cell.name,
    }


def _states(states: States) -> dict[str, Any]:
    return {
        "explored": states.explored,
        "legal_writes": states.legal_writes,
        "legal_sectors": states.legal_sectors,
        "exhaustive": states.exhaustive or "",
        "explored_writes": _known(states),
        "unmountable": states.unmountable,
        "unmountable_writes": states.unmountable_writes,
        "log2_explored": log2(states.explored),
        "log2_explored_writes": log2(states.explored_writes or 0),
        "log2_legal_writes": log2(states.legal_writes),
        "log2_legal_sectors": log2(states.legal_sectors),
        "torn_share": _torn_share(states),
    }


def _known(states: States) -> int | str:
    """How many whole states were explored; an empty text where an older result does not tell."""
    if states.explored_writes is None:
        return "" if states.legal_writes else 0
    return states.explored_writes


def _torn_share(states: States) -> float:
    """Which part of the legal torn states was explored (0 to 1): from logarithms, as the counts are too large."""
    if states.explored_torn is None or states.legal_torn <= 0:
        return math.nan
    if states.explored_torn <= 0:
        return 0.0
    return min(1.0, math.exp2(log2(states.explored_torn) - log2(states.legal_torn)))
