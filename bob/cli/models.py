"""What the commands of ``bob apm`` share: naming models and runs, reading workloads, telling of checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from bob.cli.options import Files
from bob.cli.output import console, write_json
from bob.errors import StoreError, UsageError
from bob.program.pace import Pace
from bob.report.counts import plural
from bob.report.lines import Trimmed

if TYPE_CHECKING:
    from bob.apm.check import Check
    from bob.apm.derive import Derived
    from bob.apm.evidence import Witnessed
    from bob.apm.model import Model
    from bob.judge.modelled import Change
    from bob.program.program import Program


class ModelName(Files):
    """A model: the name of a built-in or a shipped one, or a file; what is wrong with it is said when it is read."""

    name = "model"

    def __init__(self, *, every: bool = False) -> None:
        self._every = every
        super().__init__(self._names)

    def _names(self) -> list[str]:
        from bob.apm.named import EVERY, model_names  # they take a while to load

        return [*model_names(), *((EVERY,) if self._every else ())]


def by_configuration(runs: Sequence[Path]) -> dict[str, list[Path]]:
    """The run directories of probes in ``runs``, a matrix's columns included, by the name of their configuration."""
    from bob.request import request_of
    from bob.store.matrix_directory import MatrixDirectory
    from bob.store.run_directory import RunDirectory

    found: dict[str, list[Path]] = {}
    for run in runs:
        for folder in MatrixDirectory(run).folders if MatrixDirectory.is_one(run) else [run]:
            request = request_of(RunDirectory(folder))
            found.setdefault(request.configuration.name, []).append(folder)
    return found


def read_workloads(folders: Sequence[Path], quiet: bool) -> list[Witnessed]:
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


def with_witnesses(derived: Derived, out: Path) -> Model:
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


def soundness(found: Check, *, held_out: bool) -> str:
    observed, unsound = found.observed(held_out=held_out), found.unsound(held_out=held_out)
    of = "held-out workloads" if held_out else f"{len(found.workloads)} workloads"
    return f"{unsound:,} of {observed:,} observed outcomes of {of} are forbidden"


def print_checks(checks: Sequence[Check]) -> None:
    """A table of what was checked, and what the models forbid of it."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for heading in ("model", "on", "promises", "forbids", "of it held out", "tightness", "counted in"):
        table.add_column(Text(heading, "bob.dim"), overflow="fold")
    for found in checks:
        table.add_row(
            Text(found.model, "bold"),
            found.run,
            plural(found.promised, "clause"),
            Text(_forbids(found, held_out=False), "bob.fails" if found.unsound() else ""),
            _forbids(found, held_out=True) if any(one.held_out for one in found.workloads) else "",
            "" if found.tightness is None else f"{found.tightness:.0%}",
            f"{found.counted} of {plural(len(found.workloads), 'workload')}",
        )
    screen = console()
    screen.print(Trimmed(table))
    for found in checks:
        for one in found.workloads:
            for counter in one.unsound[:3]:
                clauses = ", ".join(counter.clauses)
                screen.print(Text.assemble(("forbidden", "bob.fails"), f" {found.run}, {one.title}: {clauses}"))
                screen.print(Text(f"    {counter.evidence}"))


def _forbids(found: Check, *, held_out: bool) -> str:
    return f"{found.unsound(held_out=held_out):,} of {plural(found.observed(held_out=held_out), 'outcome')}"


def named_programs(wanted: Sequence[str]) -> list[Program]:
    """The programs of these names, each once; :data:`EVERY` is each one that bob ships."""
    from bob.apm.named import EVERY
    from bob.program.folder import named, shipped_programs

    names = [name for one in wanted for name in (shipped_programs() if one == EVERY else (one,))]
    return [named(name) for name in dict.fromkeys(names)]


def held_beside(
    programs: Sequence[Program], models: tuple[Model, Model], asked: dict[str, Any], *, quiet: bool, tells: bool
) -> Iterator[Change]:
    """What the second of two ``models`` changes for each of the ``programs``, which are recorded as the options
    ``asked``; each answer is printed if bob ``tells``."""
    if not programs:
        return
    from bob.apm.model import told_apart
    from bob.cli.app import requests_of
    from bob.cli.asking import check_out
    from bob.cli.display import watching
    from bob.judge.modelled import change
    from bob.report.programs import print_change
    from bob.run.prober import RUNS
    from bob.run.programs import try_program
    from bob.run.requests import RECORDED_ON

    check_out(None, RUNS)
    once: dict[str, Any] = {"fs_names": (RECORDED_ON,), "paces": (Pace.UNDISTURBED.value,)}
    whole = {**asked, **once, "mkfs_opts": "", "mount_opts": "", "device": 0}
    for program in programs:
        requests = requests_of(program, dict(whole), quiet=quiet)
        with watching(quiet=quiet) as progress:
            answers, _run = try_program(program, requests, None, progress, told_apart(models), explores=False)
        found = change(program.name, *answers.models)
        if tells:
            console().print()
            print_change(console(), found)
        yield found


@contextmanager
def watching_workloads(what: str, quiet: bool, total: int | None = None) -> Iterator[Callable[[], None]]:
    """Shows how a piece of work gets on; gives what is to be called after each workload."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    screen = console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=quiet or not screen.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda: progress.advance(task)
