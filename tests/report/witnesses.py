"""Witnesses made up for tests, and a run's folder that has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import samples_of_runs as samples
from bob.answer.result import Result
from bob.catalogue.probe_files import shipped_probes
from bob.crash.state import CrashState
from bob.judge.column import Column
from bob.witness.document import Witness, read


@cache
def documents() -> Mapping[str, Any]:
    """Witnesses as a run writes them: ``overwrite-any``, ``single-sector-overwrite``, ``unmountable``."""
    keep: dict[str, Any] = {}

    def kept(name: str, document: Mapping[str, Any]) -> str:
        keep[name] = json.loads(json.dumps(document))
        return f"witnesses/{name}.json"

    properties = [probe.property for probe in shipped_probes()]
    column = Column(samples.CONFIGURATION, properties, samples.ENVIRONMENT, kept)
    seen = samples.observed(
        (samples.FIRST, 0),
        (samples.LAST, 1),
        (CrashState(1, (3,)), 2),
        (CrashState(0, (1,), ((2, ((0, 1),)),)), 3),
        (CrashState(0, (2,)), 4),
        found=[samples.NOTHING, samples.ALL, samples.OUT_OF_ORDER, samples.TORN, samples.UNMOUNTABLE],
    )
    column.add(samples.case(), seen)
    column.result(column.cells())
    return keep


def witness(name: str, folder: Path) -> Witness:
    """The witness of this name, written into ``folder`` and read again."""
    path = folder / f"{name}.json"
    path.write_text(json.dumps(documents()[name]))
    return read(path)


def put(folder: Path, result: Result) -> None:
    """Write a witness wherever ``result`` names one, into its run's ``folder``."""
    for column in result.subjects:
        paths = [(cell.name, cell.witness) for cell in column.answers]
        for name, path in [*paths, ("unmountable", column.unmountable.witness if column.unmountable else None)]:
            if path is not None:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                known = documents()
                (folder / path).write_text(json.dumps(known.get(name, known["overwrite-any"])))
