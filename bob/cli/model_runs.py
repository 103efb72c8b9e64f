"""The runs that ``bob apm`` makes models from: their workloads, read, and witnesses of what these refute."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from bob.cli.output import console, write_json
from bob.errors import StoreError, UsageError

if TYPE_CHECKING:
    from bob.apm.derive import DerivedModel
    from bob.apm.evidence import ObservedCase
    from bob.apm.model import Model


def by_configuration(runs: Sequence[Path]) -> dict[str, list[Path]]:
    """The run directories of probes in ``runs``, a matrix's columns included, by the name of their configuration."""
    from bob.store.matrix_directory import MatrixDirectory
    from bob.store.run_directory import RunDirectory, request_of

    found: dict[str, list[Path]] = {}
    for run in runs:
        for folder in MatrixDirectory(run).folders if MatrixDirectory.is_one(run) else [run]:
            request = request_of(RunDirectory(folder))
            found.setdefault(request.configuration.name, []).append(folder)
    return found


def read_workloads(folders: Sequence[Path], quiet: bool) -> list[ObservedCase]:
    """The observed workloads of run directories."""
    from bob.apm.evidence import witnessed
    from bob.store.matrix_directory import MatrixDirectory

    found = []
    for folder in folders:
        if MatrixDirectory.is_one(folder):
            column = MatrixDirectory(folder).folders[0]
            raise UsageError(f"{folder} is the run of a matrix", hint=f"name one of its columns, such as {column}")
        with watching_workloads(f"reading {folder.name}", quiet) as step:
            for workload in witnessed(folder):
                found.append(workload)
                step()
    if not found:
        raise StoreError(f"{folders[0]} has no observed workload", hint="was the run finished?")
    return found


def with_witnesses(derived: DerivedModel, out: Path) -> Model:
    """The model, with the paths of the witnesses that are written for its refuted clauses."""
    from bob.apm.witnesses import file_name, witness_of

    findings = []
    for finding in derived.model.findings:
        shown, refutation = derived.shown.get(finding.clause), finding.refutation
        document = None if shown is None else witness_of(finding.clause, *shown)
        if document is not None and refutation is not None:
            place = Path("witnesses") / derived.model.name / file_name(finding.clause)
            (out / place).parent.mkdir(parents=True, exist_ok=True)
            write_json(out / place, document)
            finding = replace(finding, refutation=replace(refutation, witness=str(place)))
        findings.append(finding)
    return replace(derived.model, findings=tuple(findings))


def published_model(configuration: str) -> Model:
    from bob.apm.published import from_published
    from bob.report.published import osdi14

    return from_published(configuration, osdi14())


@contextmanager
def watching_workloads(what: str, quiet: bool, total: int | None = None) -> Iterator[Callable[[], None]]:
    """Shows how a piece of work gets on; gives what is to be called after each workload."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    screen = console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=quiet or not screen.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda: progress.advance(task)
