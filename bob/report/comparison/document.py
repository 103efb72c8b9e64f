"""The document of a comparison, ``bob.comparison/1``; docs/formats.md has its fields."""

from typing import Any

from bob.claim.verdict import Verdict
from bob.crash.device import DeviceModelDocument
from bob.report.comparison.compare import Cell, Comparison, Kind
from bob.report.comparison.sides import Side, SideAnswer
from bob.report.comparison.words import command, settings
from bob.report.published import Reason
from bob.schema import encode

SCHEMA = "bob.comparison/1"


def to_document(comparison: Comparison) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "a": _side(comparison.a),
        "b": _side(comparison.b),
        "differs": comparison.differs(),
        "undecided": comparison.is_undecided,
        "counts": {kind.value: len(comparison.of(kind)) for kind in Kind},
        "settings": [{"setting": what, "a": old, "b": new} for what, old, new in settings(comparison)],
        "configurations": list(comparison.configurations),
        "only_a": list(comparison.only_a),
        "only_b": list(comparison.only_b),
        "cells": [_cell(comparison, cell) for cell in comparison.cells],
    }


def _side(side: Side) -> dict[str, Any]:
    result = side.result
    if result is None:
        return {"name": side.name, "published": side.source, "run": None, "environment": None, "device_model": None}
    run, environment = encode(result.run), encode(result.environment)
    model = encode(DeviceModelDocument.of(result.model))
    return {"name": side.name, "published": None, "run": run, "environment": environment, "device_model": model}


def _cell(comparison: Comparison, cell: Cell) -> dict[str, Any]:
    return {
        "configuration": cell.configuration,
        "property": cell.name,
        "family": cell.family,
        "kind": cell.kind.value,
        "a": _answer(comparison.a, cell.a),
        "b": _answer(comparison.b, cell.b),
        "notes": list(cell.notes),
        "because": _because(cell.reason),
    }


def _answer(side: Side, answer: SideAnswer | None) -> dict[str, Any] | None:
    if answer is None:
        return None
    cell = answer.cell
    if cell is None:
        return {"verdict": answer.said.value}
    return {
        "verdict": answer.said.value,
        "states": encode(cell.states),
        "workloads": len(cell.recordings),
        "failing": sum(workload.verdict is Verdict.FAILS for workload in cell.recordings),
        "violations": sum(workload.violations for workload in cell.recordings),
        "finishes": list(dict.fromkeys(workload.finish for workload in cell.recordings)),
        "evidence": cell.evidence,
        "witness": cell.witness,
        "replay": command(side, answer) or None,
        "reason": cell.reason,
    }


def _because(reason: Reason | None) -> dict[str, Any] | None:
    if reason is None:
        return None
    return {
        "title": reason.title,
        "text": reason.because,
        "background": reason.background,
        "measured": list(reason.measured),
    }
