"""Models of file systems, made from runs. A model consists of clauses. A *clause* is one promise about what survives a
crash. bob derives the model from the workloads that a run observed. If a run shows that a clause is false, bob writes a
witness: a document about one crash state that breaks the clause."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from bob.apm.derive import DerivedModel
from bob.apm.evidence import ObservedCase, witnessed
from bob.apm.model import Model
from bob.apm.witnesses import file_name, witness_of
from bob.cli.output import console, write_json
from bob.errors import StoreError, UsageError
from bob.store.matrix_directory import MatrixDirectory
from bob.store.run_directory import RunDirectory, request_of


def by_configuration(runs: Sequence[Path]) -> dict[str, list[Path]]:
    """Return a mapping from the name of each configuration to its run directories. The run of a matrix (several
    configurations) contains a run directory for each configuration, and the mapping has these. Raise StoreError if a
    run was stopped before its end, since its model would lack promises."""
    found: dict[str, list[Path]] = {}
    for run in runs:
        for folder in MatrixDirectory(run).folders if MatrixDirectory.is_one(run) else [run]:
            directory = RunDirectory(folder)
            request = request_of(directory)
            if "finished" not in directory.about():
                verb = "matrix" if folder != run else "probe"
                hint = f"bob {verb} --resume {shlex.quote(str(run))} continues it"
                raise StoreError(f"{folder} was stopped before its end", hint=hint)
            found.setdefault(request.configuration.name, []).append(folder)
    return found


def read_workloads(folders: Sequence[Path], quiet: bool) -> list[ObservedCase]:
    """Return the observed workloads of run directories. Raise UsageError for the directory of a matrix, and StoreError
    if no workload was observed."""
    found = []
    for folder in folders:
        if MatrixDirectory.is_one(folder):
            column = MatrixDirectory(folder).folders[0]
            raise UsageError(f"{folder} is a run of bob matrix", hint=f"name one of its columns, such as {column}")
        with watching_workloads(f"reading {folder.name}", quiet) as step:
            for workload in witnessed(folder):
                found.append(workload)
                step()
    if not found:
        raise StoreError(f"no workload of {folders[0]} was observed", hint="was the run finished?")
    return found


def with_witnesses(derived: DerivedModel, out: Path) -> Model:
    """Return the model of ``derived``, with the path of a witness for each clause that the runs show to be false. Write
    these witnesses into a folder below ``out``."""
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


@contextmanager
def watching_workloads(what: str, quiet: bool, total: int | None = None) -> Iterator[Callable[[], None]]:
    """Show the progress of reading workloads. Yield a function that the caller calls after each workload. ``what`` says
    in words what the caller does with them."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    screen = console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=quiet or not screen.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda: progress.advance(task)
