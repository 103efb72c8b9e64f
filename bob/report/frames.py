"""Results as long tables, for whoever wants to count, filter and plot: one row a cell, or one row a workload.

Counts of legal states have up to thousands of digits; they are Python's own integers (dtype object), and exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from bob.report.columns import Column
from bob.report.rows import cells
from bob.result import PropertyResult, States, Verdict, WorkloadResult

CELL_FIELDS = (
    *("run", "kernel", "configuration", "fs", "family", "property", "verdict"),
    *("explored", "legal_writes", "legal_sectors", "exhaustive"),
    *("workloads", "failing_workloads", "violations", "evidence", "reason", "witness"),
)
WORKLOAD_FIELDS = (
    *("run", "kernel", "configuration", "fs", "family", "property", "workload", "finish", "verdict"),
    *("explored", "legal_writes", "legal_sectors", "exhaustive", "violations", "reason"),
)
_COUNTS = ("workloads", "failing_workloads")
"""Counts that are never large; those of crash states are of any size."""


def cell_frame(columns: Iterable[Column]) -> pd.DataFrame:
    """One row for each cell of the table, column by column, each in the order of Table 1.

    The columns are :data:`CELL_FIELDS`. ``workloads`` says how many asked, ``failing_workloads`` how many of them
    showed a violation, and ``violations`` in how many explored states all together; ``witness`` is a path within the
    run directory. What a cell does not have (evidence, reason, witness, exhaustive) is an empty text.
    """
    rows = [_cell(column, cell) for column in columns for cell in cells(column.configuration).values()]
    return _frame(rows, CELL_FIELDS)


def workload_frame(columns: Iterable[Column]) -> pd.DataFrame:
    """One row for each workload that was asked for a cell: which variants were run, and which failed.

    The columns are :data:`WORKLOAD_FIELDS`. A recording that several properties ask about has a row in each of them.
    """
    rows = [
        _workload(column, cell, workload)
        for column in columns
        for cell in cells(column.configuration).values()
        for workload in cell.workloads
    ]
    return _frame(rows, WORKLOAD_FIELDS)


def _frame(rows: list[dict[str, Any]], fields: tuple[str, ...]) -> pd.DataFrame:
    """Every column is made as objects, so that numbers of any size stay what they are and nothing becomes NaN."""
    frame = pd.DataFrame({field: pd.Series([row[field] for row in rows], dtype=object) for field in fields})
    return frame.astype({field: "int64" for field in _COUNTS if field in fields})


def _cell(column: Column, cell: PropertyResult) -> dict[str, Any]:
    return {
        **_place(column, cell),
        **_states(cell.states),
        "verdict": cell.verdict.value,
        "workloads": len(cell.workloads),
        "failing_workloads": sum(workload.verdict is Verdict.FAILS for workload in cell.workloads),
        "violations": sum(workload.violations for workload in cell.workloads),
        "evidence": cell.evidence or "",
        "reason": cell.reason or "",
        "witness": cell.witness or "",
    }


def _workload(column: Column, cell: PropertyResult, workload: WorkloadResult) -> dict[str, Any]:
    return {
        **_place(column, cell),
        **_states(workload.states),
        "workload": workload.name,
        "finish": workload.finish,
        "verdict": workload.verdict.value,
        "violations": workload.violations,
        "reason": workload.reason or "",
    }


def _place(column: Column, cell: PropertyResult) -> dict[str, Any]:
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
    }
