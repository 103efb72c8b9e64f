"""Workloads and finishes as plain documents, as run directories and witnesses have them (docs/formats.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bob.workload.language import parse_one, write_one
from bob.workload.operations import At, Finish, Workload
from bob.workload.pattern import PATTERN, UNSHADED_PATTERN


def workload_to_json(workload: Workload) -> dict[str, Any]:
    """A workload as a plain document, its operations in the one-line language."""
    return {
        "name": workload.name,
        "setup": [write_one(operation) for operation in workload.setup],
        "operations": [write_one(operation) for operation in workload.operations],
        "finish": finish_to_json(workload.finish),
        **({} if workload.at is At.ANY else {"at": workload.at.value}),
        **({} if workload.pattern == UNSHADED_PATTERN else {"pattern": workload.pattern}),
    }


def workload_from_json(document: Mapping[str, Any]) -> Workload:
    """The workload in a plain document; one that names no pattern is of before there were several."""
    pattern = document.get("pattern", UNSHADED_PATTERN)
    if pattern not in (UNSHADED_PATTERN, PATTERN):
        raise ValueError(f"its data has pattern {pattern!r}, which this bob does not know")
    return Workload(
        document["name"],
        tuple(map(parse_one, document["setup"])),
        tuple(map(parse_one, document["operations"])),
        finish_from_json(document["finish"]),
        At(document.get("at", At.ANY)),
        pattern,
    )


def finish_to_json(finish: Finish) -> dict[str, Any]:
    """A finish as a plain document."""
    return {
        "name": finish.name,
        "operations": [write_one(operation) for operation in finish.operations],
        "natural": finish.natural,
        "phase": finish.phase,
    }


def finish_from_json(document: Mapping[str, Any]) -> Finish:
    """The finish in a plain document."""
    operations = tuple(map(parse_one, document["operations"]))
    return Finish(document["name"], operations, document["natural"], document["phase"])
