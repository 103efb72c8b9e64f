"""``bob apm``: abstract persistence models, derived from runs and held against them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from bob.cli.commands import Commands
from bob.cli.options import RUN, json_option, quiet_option
from bob.cli.output import console, is_stdout, write_json
from bob.errors import Exit, StoreError, UsageError, meant
from bob.report.counts import plural

if TYPE_CHECKING:
    from bob.apm.check import Check
    from bob.apm.derive import Derived
    from bob.apm.evidence import Witnessed
    from bob.apm.model import Model


@click.group(cls=Commands)
def apm() -> None:
    """Abstract persistence models: what an application may find after a crash, and what it can rely on."""


@apm.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=RUN)
@click.option(
    "--trust",
    type=click.Choice(["exhaustive", "sampled"]),
    default="exhaustive",
    show_default=True,
    help="Promise only what held in every legal crash state, or also what held in all that were explored.",
)
@click.option("--published", type=click.Choice(["osdi14"]), help="Promise what this table found no violation of.")
@click.option("--hold-out", "seed", type=int, metavar="SEED", help="Leave a third of the workloads out, for a check.")
@click.option("--witnesses", is_flag=True, help="Write a witness of each refuted clause, too.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default="apm", show_default=True, help="The folder."
)
@json_option
@quiet_option
def derive(
    runs: tuple[Path, ...],
    trust: str,
    published: str | None,
    seed: int | None,
    witnesses: bool,
    out: Path,
    json_file: Path | None,
    quiet: bool,
) -> Exit:
    """Derive a model of each configuration in the runs RUN into apm/NAME.json.

    A model is a set of clauses, such as: an append is persisted before a later rename of the file. All that an observed
    crash state contradicts are refuted; of the others those are promised that were put to the test, and held in every
    legal crash state. Each RUN is that of a probe or of a matrix; the more workloads, the more is known. No guest is
    needed.

    \b
    Examples:
      bob apm derive bob-runs/20261121T230021-1f2e3d
      bob apm derive --hold-out 1 --out models bob-runs/matrix bob-runs/pairs
      bob apm derive --published osdi14 --out published bob-runs/matrix

    \b
    Exit codes:
      0   the models were written
      1   a model forbids what was seen of a workload that was left out
      9   RUN is no run directory, or lacks something that the run should have kept
    """
    from bob.apm.check import check
    from bob.apm.derive import Trust
    from bob.apm.derive import derive as derived_from
    from bob.apm.model import save, to_json

    documents, unsound = [], 0
    for name, folders in _by_configuration(runs).items():
        workloads: list[Witnessed] = []
        if published is not None:
            model = _published(name)
        else:
            workloads = _read(folders, quiet)
            with _watching(f"deriving {name}", quiet, len(workloads)) as step:
                derived = derived_from(workloads, Trust(trust), seed, progress=step)
            model = _with_witnesses(derived, out) if witnesses else derived.model
        path = out / f"{model.name}.json"
        save(model, path)
        documents.append(to_json(model))
        line = Text.assemble((f"{path}", "bold"), f": {plural(len(model.promised), 'clause')} promised")
        if model.source.get("held_out"):
            found = check(model, "", workloads, limit=1)
            unsound += found.unsound()
            line.append(f"; {_soundness(found, held_out=True)}")
        if not is_stdout(json_file):
            console().print(line, soft_wrap=True)
    if json_file is not None:
        write_json(json_file, documents)
    return Exit.DIFFERENT if unsound else Exit.DONE


@apm.command()
@click.argument("model", metavar="MODEL")
@click.argument("operations", metavar="OPERATIONS")
@click.option("--setup", metavar="OPERATIONS", default="", help="The initial tree, durable before it all begins.")
@click.option("--limit", type=click.IntRange(min=1), default=1000, show_default=True, help="Stop at so many states.")
@json_option
def states(model: str, operations: str, setup: str, limit: int, json_file: Path | None) -> Exit:
    """List the crash states that MODEL allows for OPERATIONS, as directory trees.

    MODEL is a file that `bob apm derive` wrote, or the name of a built-in one: ext3-w, ext3-o, ext3-j, ext4-o, btrfs,
    ccfs. OPERATIONS and --setup are written as for `bob try`.

    \b
    Examples:
      bob apm states ext4-o --setup 'write /f 0 8K' 'write /g 0 4K; rename /g /f'
      bob apm states apm/xfs.json --setup 'write /f 0 8K' 'write /g 0 4K; rename /g /f' --json -

    \b
    Exit codes:
      0   these are all of them
      3   there are more than --limit
    """
    from bob.apm.dependencies import graph
    from bob.apm.listing import document, print_states
    from bob.apm.micro import workings
    from bob.apm.states import allowed_trees
    from bob.workload.history import simulate
    from bob.workload.language import parse
    from bob.workload.operations import Workload

    promised = _model(model).promised
    workload = Workload("states", parse(setup), parse(operations))
    asked = graph(workload, workings(simulate(workload)[0]))
    allowed = allowed_trees(asked, promised, limit)
    if json_file is not None:
        write_json(json_file, document(asked, promised, allowed))
    if not is_stdout(json_file):
        print_states(console(), asked, allowed)
    return Exit.DONE if allowed.complete else Exit.UNKNOWN_CELLS


@apm.command("check")
@click.argument("model", metavar="MODEL")
@click.argument("run", type=RUN)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=2000,
    show_default=True,
    help="Count the allowed states of workloads that have no more than this.",
)
@json_option
@quiet_option
def check_(model: str, run: Path, limit: int, json_file: Path | None, quiet: bool) -> Exit:
    """Hold MODEL against all that was observed in RUN.

    It is sound if it allows every crash state that was observed. It is tight if most of the states that it allows were
    observed, too.

    \b
    Examples:
      bob apm check apm/ext4-ordered.json bob-runs/matrix/ext4-ordered
      bob apm check ext4-o bob-runs/matrix/ext4-ordered

    \b
    Exit codes:
      0   it is sound
      1   it forbids something that was observed
      9   RUN is no run directory, or lacks something that the run should have kept
    """
    from bob.apm.check import check, to_json

    held = _model(model)
    workloads = _read([run], quiet)
    with _watching(f"checking {held.name}", quiet, len(workloads)) as step:
        found = check(held, str(run), workloads, limit, progress=step)
    if json_file is not None:
        write_json(json_file, to_json(found))
    if not is_stdout(json_file):
        _print_check(found)
    return Exit.DIFFERENT if found.unsound() else Exit.DONE


@apm.command("compare")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@json_option
def compare_(a: str, b: str, json_file: Path | None) -> Exit:
    """Say what one of two models allows and the other forbids.

    For each clause that just one of them promises: the smallest workload with a crash state that only the other allows,
    and the crash state by which it was refuted there, where it was.

    \b
    Examples:
      bob apm compare apm/ext4-ordered.json ext4-o
      bob apm compare ext3-o ext3-j --json -

    \b
    Exit codes:
      0   they promise the same
      1   they differ
    """
    from bob.apm.compare import differences
    from bob.apm.listing import apart_document, print_apart

    one, other = _model(a), _model(b)
    found = list(differences(one, other))
    if json_file is not None:
        write_json(json_file, apart_document(one, other, found))
    if not is_stdout(json_file):
        print_apart(console(), one, other, found)
    return Exit.DIFFERENT if found else Exit.DONE


def _model(name: str) -> Model:
    """The model in a file, or the built-in one of this name."""
    from bob.apm.builtin import builtin, names
    from bob.apm.model import load

    if name in names():
        return builtin(name)
    if not Path(name).is_file():
        raise UsageError(f"there is no model {name!r}", hint=meant(name, names(), "a file of `bob apm derive`, or"))
    return load(Path(name))


def _by_configuration(runs: Sequence[Path]) -> dict[str, list[Path]]:
    """The run directories of probes in ``runs``, a matrix's columns included, by the name of their configuration."""
    from bob.columns import MatrixDirectory
    from bob.request import request_from_json
    from bob.store import RunDirectory

    found: dict[str, list[Path]] = {}
    for run in runs:
        for folder in MatrixDirectory(run).folders if MatrixDirectory.is_one(run) else [run]:
            request = request_from_json(RunDirectory(folder).about()["request"])
            found.setdefault(request.configuration.name, []).append(folder)
    return found


def _read(folders: Sequence[Path], quiet: bool) -> list[Witnessed]:
    """The observed workloads of run directories."""
    from bob.apm.evidence import witnessed
    from bob.columns import MatrixDirectory

    found = []
    for folder in folders:
        if MatrixDirectory.is_one(folder):
            column = MatrixDirectory(folder).folders[0]
            raise UsageError(f"{folder} is the run of a matrix", hint=f"name one of its columns, such as {column}")
        with _watching(f"reading {folder.name}", quiet) as step:
            for workload in witnessed(folder):
                found.append(workload)
                step()
    if not found:
        raise StoreError(f"{folders[0]} has no observed workload", hint="was the run finished?")
    return found


def _with_witnesses(derived: Derived, out: Path) -> Model:
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


def _published(configuration: str) -> Model:
    from bob.apm.published import from_published
    from bob.report.published import osdi14

    return from_published(configuration, osdi14())


def _soundness(found: Check, *, held_out: bool) -> str:
    observed, unsound = found.observed(held_out=held_out), found.unsound(held_out=held_out)
    of = "held-out workloads" if held_out else f"{len(found.workloads)} workloads"
    return f"{unsound:,} of {observed:,} observed outcomes of {of} are forbidden"


def _print_check(found: Check) -> None:
    screen = console()
    screen.print(f"{found.model}: {_soundness(found, held_out=False)}")
    if any(one.held_out for one in found.workloads):
        screen.print(f"  {_soundness(found, held_out=True)}")
    if found.tightness is not None:
        screen.print(
            f"tightness: {found.tightness:.0%} of the states that it allows were observed, in the {found.counted} of"
            f" {len(found.workloads)} workloads where they were counted"
        )
    for one in found.workloads:
        for counter in one.unsound[:3]:
            screen.print(Text.assemble(("forbidden", "bob.fails"), f" {one.title}: {', '.join(counter.clauses)}"))
            screen.print(f"    {counter.evidence}")


@contextmanager
def _watching(what: str, quiet: bool, total: int | None = None) -> Iterator[Callable[[], None]]:
    """Shows how a piece of work gets on; gives what is to be called after each workload."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    screen = console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=quiet or not screen.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda: progress.advance(task)
