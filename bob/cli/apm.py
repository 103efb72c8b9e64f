"""``bob apm``: abstract persistence models, derived from runs and held against them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from bob.cli.commands import Commands
from bob.cli.model_runs import by_configuration, published_model, read_workloads, watching_workloads, with_witnesses
from bob.cli.options import takes_options
from bob.cli.output import console, is_stdout, write_json, write_text
from bob.cli.what_if import what_if_
from bob.errors import Exit, MissingProgramError, UsageError
from bob.options import Choice, Range, option
from bob.run import option_table as table
from bob.run.option_values import EXISTING_FOLDER, FOLDER, MODEL, OUTPUT
from bob.text import plural

if TYPE_CHECKING:
    from bob.apm.evidence import ObservedCase


@click.group(cls=Commands)
def apm() -> None:
    """Abstract persistence models: what an application may find after a crash, and what it can rely on."""


@apm.command()
@takes_options
def derive(
    runs: tuple[Path, ...] = table.RUNS,
    *,
    trust: str = option(
        "--trust",
        "Promise only what held in every legal crash state, or also what held in all that were explored.",
        Choice(("exhaustive", "sampled")),
        "exhaustive",
    ),
    published: str | None = option(
        "--published", "Promise what this table found no violation of.", Choice(("osdi14",))
    ),
    seed: int | None = option("--hold-out SEED", "Leave a third of the workloads out, for a check."),
    refuting: tuple[Path, ...] = option("--refuting RUN", "A run whose workloads may only refute.", EXISTING_FOLDER),
    witnesses: bool = option("--witnesses", "Write a witness of each refuted clause, too."),
    out: Path = option("--out", "The folder.", FOLDER, Path("apm")),
    json_file: Path | None = table.JSON,
    quiet: bool = table.QUIET,
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
      bob apm derive --refuting bob-runs/beside bob-runs/matrix
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
    from bob.apm.listing import soundness
    from bob.apm.model import save, to_json

    documents, unsound, beside = [], 0, by_configuration(refuting) if refuting else {}
    configurations = by_configuration(runs)
    if beside and not beside.keys() & configurations.keys():
        raise UsageError(
            f"what is to refute is of {', '.join(beside)}, and the runs are of {', '.join(configurations)}",
            hint="--refuting takes a run of the same configuration, with other workloads (bob probe --probe)",
        )
    for name, folders in configurations.items():
        workloads: list[ObservedCase] = []
        if published is not None:
            model = published_model(name)
        else:
            workloads = read_workloads(folders, quiet)
            against = read_workloads(beside[name], quiet) if name in beside else []
            with watching_workloads(f"deriving {name}", quiet, len(workloads) + len(against)) as step:
                derived = derived_from(workloads, Trust(trust), seed, refuting=against, progress=step)
            model = with_witnesses(derived, out) if witnesses else derived.model
        path = out / f"{model.name}.json"
        save(model, path)
        documents.append(to_json(model))
        line = Text.assemble((f"{path}", "bold"), f": {plural(len(model.promised), 'clause')} promised")
        if model.source.get("held_out"):
            found = check(model, "", workloads, limit=None)
            unsound += found.unsound()
            line.append(f"; {soundness(found, held_out=True)}")
        if not is_stdout(json_file):
            console().print(line, soft_wrap=True)
    if json_file is not None:
        write_json(json_file, documents)
    return Exit.DIFFERENT if unsound else Exit.DONE


@apm.command()
@takes_options
def states(
    model: str = table.MODEL_NAME,
    operations: str = table.OPERATIONS,
    *,
    setup: str = table.SETUP,
    limit: int = option("--limit", "Stop at so many states.", Range(1), 1000),
    json_file: Path | None = table.JSON,
) -> Exit:
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
    from bob.apm.named import named_model
    from bob.apm.trees import allowed_trees
    from bob.workload.language import parse
    from bob.workload.operations import Workload
    from bob.workload.simulation import simulate

    promised = named_model(model).promised
    workload = Workload("states", parse(setup), parse(operations))
    asked = graph(workload, workings(simulate(workload)[0], workload.finish.operations))
    allowed = allowed_trees(asked, promised, limit)
    if json_file is not None:
        write_json(json_file, document(asked, promised, allowed))
    if not is_stdout(json_file):
        print_states(console(), asked, allowed)
    return Exit.DONE if allowed.complete else Exit.UNKNOWN_CELLS


@apm.command("check")
@takes_options
def check_(
    model: str = table.MODEL_NAME,
    run: Path = table.RUN,
    *,
    limit: int = option(
        "--limit", "Count the allowed states of workloads that have no more than this.", Range(1), 2000
    ),
    json_file: Path | None = table.JSON,
    quiet: bool = table.QUIET,
) -> Exit:
    """Hold MODEL against all that was observed in RUN.

    It is sound if it allows every crash state that was observed. It is tight if most of the states that it allows were
    observed, too. Where MODEL is the folder that `bob apm derive` wrote, each configuration of RUN is held against its
    own.

    \b
    Examples:
      bob apm check apm/ext4-ordered.json bob-runs/matrix/ext4-ordered
      bob apm check ext4-o bob-runs/matrix/ext4-ordered
      bob apm check apm bob-runs/matrix

    \b
    Exit codes:
      0   it is sound
      1   it forbids something that was observed
      9   RUN is no run directory, or lacks something that the run should have kept
    """
    from bob.apm.check import CheckDocument, check
    from bob.apm.listing import print_checks
    from bob.apm.named import named_model

    checks = []
    for name, folders in by_configuration([run]).items():
        held = named_model(str(Path(model) / f"{name}.json") if Path(model).is_dir() else model)
        workloads = read_workloads(folders, quiet)
        with watching_workloads(f"checking {held.name}", quiet, len(workloads)) as step:
            checks.append(check(held, name, workloads, limit, progress=step))
    if json_file is not None:
        write_json(json_file, [CheckDocument.of(found) for found in checks])
    if not is_stdout(json_file):
        print_checks(console(), checks)
    return Exit.DIFFERENT if any(found.unsound() for found in checks) else Exit.DONE


@apm.command("compare")
@takes_options
def compare_(
    a: str = option("A", "", MODEL), b: str = option("B", "", MODEL), json_file: Path | None = table.JSON
) -> Exit:
    """Say what one of two models allows and the other forbids.

    For each clause that just one of them promises: the smallest workload with a crash state that only the other allows,
    and the crash state by which it was refuted there, where it was.

    \b
    Examples:
      bob apm compare apm/ext4-ordered.json ext4-o
      bob apm compare ext3-o ext3-j --json -

    \b
    Exit codes:
      0   they promise the same, or no small workload tells them apart
      1   they differ
    """
    from bob.apm.compare import differences
    from bob.apm.listing import apart_document, print_apart
    from bob.apm.named import named_model

    one, other = named_model(a), named_model(b)
    found = list(differences(one, other))
    if json_file is not None:
        write_json(json_file, apart_document(one, other, found))
    if not is_stdout(json_file):
        print_apart(console(), one, other, found)
    return Exit.DIFFERENT if found else Exit.DONE


@apm.command()
@takes_options
def show(model: str = table.MODEL_NAME, json_file: Path | None = table.JSON) -> Exit:
    """Tell in prose which guarantees MODEL gives, which it lacks, and the evidence.

    The text is Markdown, which a terminal shows as headings and lists. --json has the model itself.

    \b
    Examples:
      bob apm show apm/ext4-ordered.json
      bob apm show ext4-o | less
      bob apm show ext4-o > ext4-o.md

    \b
    Exit codes:
      0   it was told
      8   the file is no model, or damaged
    """
    from bob.apm.export.prose import text
    from bob.apm.model import to_json
    from bob.apm.named import named_model

    found = named_model(model)
    if json_file is not None:
        write_json(json_file, to_json(found))
    if is_stdout(json_file):
        return Exit.DONE
    screen = console()
    if screen.is_terminal:
        from rich.markdown import Markdown

        screen.print(Markdown(text(found)))
    else:
        write_text(Path("-"), text(found), "MODEL")
    return Exit.DONE


@apm.command()
@takes_options
def export(
    models: tuple[str, ...] = option("MODEL...", "", MODEL),
    *,
    html: Path | None = option("--html FILE", "Write MODEL as a page that stands alone.", OUTPUT),
    alice: Path | None = option("--alice FILE", "Write MODEL as a file system for ALICE's replayer.", OUTPUT),
    svg: Path | None = option("--svg FILE", "Draw which of the models MODEL... is weaker than which.", OUTPUT),
) -> Exit:
    """Write MODEL for people, and for other programs.

    A page has the picture of all models that are named, the first of which it is about. Graphviz draws it. The file for
    ALICE is a Python module that needs nothing of bob; it says what of the model cannot be said there.

    \b
    Examples:
      bob apm export apm/ext4-ordered.json --html ext4.html
      bob apm export apm/ext4-ordered.json --alice ext4_ordered.py
      bob apm export apm/*.json ext4-o btrfs --svg models.svg

    \b
    Exit codes:
      0   the files were written
      2   usage, or no file was asked for
      4   --svg, and Graphviz is not installed
      8   a file is no model, or damaged
    """
    from bob.apm.export.alice import alice_module, not_sayable
    from bob.apm.export.lattice import lattice
    from bob.apm.export.prose import page
    from bob.apm.model import with_distinct_names
    from bob.apm.named import named_model

    if html is None and alice is None and svg is None:
        raise UsageError("nothing to write", hint="name a file with --html, --alice or --svg")
    if len(models) > 1 and alice is not None:
        raise UsageError("--alice takes one MODEL", hint="write one after the other")
    found = with_distinct_names([named_model(name) for name in models])
    if svg is not None:
        write_text(svg, lattice(found), "--svg")
    if html is not None:
        beside = Path(os.path.relpath(Path(models[0]).parent, html.parent)).as_posix()
        folder = "" if beside == "." else f"{beside}/"
        picture = ""
        try:
            picture = lattice(found) if len(found) > 1 else ""
        except MissingProgramError as error:
            console(stderr=True).print(Text(f"note: the page has no picture: {error.message}; {error.hint}", "bob.dim"))
        write_text(html, page(found[0], picture, folder), "--html")
    if alice is not None:
        write_text(alice, alice_module(found[0]), "--alice")
        for sentence in not_sayable(found[0]):
            console(stderr=True).print(Text(f"note: {sentence}", "bob.dim"))
    return Exit.DONE


apm.add_command(what_if_)
