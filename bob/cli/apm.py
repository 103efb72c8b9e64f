"""``bob apm``: derives abstract persistence models (promises of a file system about crashes) from runs, checks them
against runs, and compares, shows and changes them."""

import os
from collections.abc import Sequence
from pathlib import Path

import click
from rich.text import Text

from bob.apm import listing
from bob.apm.check import check
from bob.apm.compare import differences
from bob.apm.dependencies import graph_of_workload
from bob.apm.derive import Trust
from bob.apm.derive import derive as derived_from
from bob.apm.evidence import ObservedCase
from bob.apm.model import save, to_json, with_distinct_names
from bob.apm.model_states import allowed_trees
from bob.apm.named import named_model
from bob.apm.published import from_published
from bob.apm.what_if import what_if
from bob.catalogue.request import CheckPlace
from bob.cli.commands import Command, Commands
from bob.cli.display import watching
from bob.cli.model_runs import by_configuration, read_workloads, watching_workloads, with_witnesses
from bob.cli.output import Screen, console, is_stdout, present, write_json, write_text
from bob.errors import Exit, MissingProgramError, UsageError
from bob.judge.modelled import Change
from bob.judge.programs import SAFETY
from bob.options import Choice, Range, option
from bob.program.folder import named, shipped_programs
from bob.program.program import Program
from bob.report.programs import print_change
from bob.report.published import osdi14
from bob.run import option_table as table
from bob.run.option_paths import EXISTING_FOLDER, FOLDER, NEW_FILE, OUTPUT
from bob.run.option_values import ALL, MODEL, PROGRAM
from bob.store.run_directory import check_runs
from bob.text import plural
from bob.workload.language import parse
from bob.workload.operations import Workload


class WithSigns(Command):
    """A command whose arguments may begin with ``-`` if they have several words."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self.shielded(args))

    @staticmethod
    def shielded(args: list[str]) -> list[str]:
        """Put a space before each argument that begins with ``-`` and has several words. Without the space, click would
        take the argument for an option. The parser of clauses ignores the space."""
        return [f" {one}" if one.startswith("-") and " " in one else one for one in args]


@click.group(cls=Commands)
def apm() -> None:
    """Abstract persistence models: what an application can rely on after a crash."""


@apm.command()
def derive(
    runs: tuple[Path, ...] = table.RUNS,
    *,
    trust: str = option(
        "--trust",
        "Promise what held in every legal crash state (exhaustive), or in every explored one (sampled).",
        Choice(("exhaustive", "sampled")),
        "exhaustive",
    ),
    published: str | None = option(
        "--published", "Promise everything that this published table does not refute.", Choice(("osdi14",))
    ),
    seed: int | None = option(
        "--hold-out SEED", "Leave out a third of the workloads, and check the model against them."
    ),
    refuting: tuple[Path, ...] = option(
        "--refuting RUN", "A run whose workloads can refute clauses, but not support them.", EXISTING_FOLDER
    ),
    witnesses: bool = option("--witnesses", "Also write a witness of each refuted clause."),
    out: Path = option("--out", "The folder for the models.", FOLDER, Path("apm")),
    json_file: Path | None = table.JSON,
    quiet: bool = table.QUIET,
) -> Exit:
    """Derive a model of each configuration in the runs RUN..., and write it to apm/NAME.json.

    A model is a set of clauses, such as: an append is persisted before a later rename of the file. An observed crash
    state refutes each clause that it contradicts. The model promises the other clauses if workloads tested them and
    they held in every legal crash state. Each RUN is a run of `bob probe` or `bob matrix`. More workloads decide more
    clauses. This needs no guest.

    \b
    Examples:
      bob apm derive bob-runs/20261121T230021-1f2e3d
      bob apm derive --hold-out 1 --out models bob-runs/matrix bob-runs/pairs
      bob apm derive --refuting bob-runs/beside bob-runs/matrix
      bob apm derive --published osdi14 --out published bob-runs/matrix

    \b
    Exit codes:
      0   the models were written
      1   a model forbids a state that a held-out workload left
      9   RUN is not a run directory, or is incomplete
    """
    documents, unsound, beside = [], 0, by_configuration(refuting) if refuting else {}
    configurations = by_configuration(runs)
    if beside and not beside.keys() & configurations.keys():
        raise UsageError(
            f"--refuting has {', '.join(beside)}, but RUN has {', '.join(configurations)}",
            hint="give a run of the same configuration with other workloads (bob probe --probe)",
        )
    for name, folders in configurations.items():
        workloads: list[ObservedCase] = []
        if published is not None:
            model = from_published(name, osdi14())
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
            unsound += found.unsound
            line.append(f"; {listing.soundness(found)}")
        if not is_stdout(json_file):
            console().print(line, soft_wrap=True)
    if json_file is not None:
        write_json(json_file, documents)
    return Exit.DIFFERENT if unsound else Exit.DONE


@apm.command()
def states(
    model: str = table.MODEL_NAME,
    operations: str = table.OPERATIONS,
    *,
    setup: str = table.SETUP,
    limit: int = option("--limit", "Stop after this many states.", Range(1), 1000),
    json_file: Path | None = table.JSON,
) -> Exit:
    """List the crash states that MODEL allows for OPERATIONS, as directory trees.

    MODEL is a file that `bob apm derive` wrote, a shipped model such as ext4-ordered, or a built-in one: ext3-w,
    ext3-o, ext3-j, ext4-o, btrfs, ccfs. OPERATIONS and --setup are written as for `bob try`.

    \b
    Examples:
      bob apm states ext4-o --setup 'write /f 0 8K' 'write /g 0 4K; rename /g /f'
      bob apm states apm/xfs.json 'write /g 0 4K; rename /g /f' --json -

    \b
    Exit codes:
      0   the list is complete
      3   there are more states than --limit
    """
    promised = named_model(model).promised
    workload = Workload("states", parse(setup), parse(operations))
    asked = graph_of_workload(workload)
    allowed = allowed_trees(asked, promised, limit)
    document = listing.document(asked, promised, allowed)
    present(json_file, document, lambda screen: listing.print_states(screen, asked, allowed))
    return Exit.DONE if allowed.complete else Exit.UNKNOWN_CELLS


@apm.command("check")
def check_(
    model: str = table.MODEL_NAME,
    run: Path = table.RUN,
    *,
    limit: int = option(
        "--limit", "Count the allowed states of a workload only if there are at most this many.", Range(1), 2000
    ),
    json_file: Path | None = table.JSON,
    quiet: bool = table.QUIET,
) -> Exit:
    """Check MODEL against the crash states observed in RUN.

    A model is sound if it allows every observed crash state. It is tight if most of the states that it allows were
    observed. If MODEL is the folder that `bob apm derive` wrote, bob checks each configuration of RUN against its own
    model.

    \b
    Examples:
      bob apm check apm/ext4-ordered.json bob-runs/matrix/ext4-ordered
      bob apm check ext4-o bob-runs/matrix/ext4-ordered
      bob apm check apm bob-runs/matrix

    \b
    Exit codes:
      0   the model is sound
      1   it forbids an observed crash state
      9   RUN is not a run directory, or is incomplete
    """
    checks = []
    for name, folders in by_configuration([run]).items():
        held = named_model(str(Path(model) / f"{name}.json") if Path(model).is_dir() else model)
        workloads = read_workloads(folders, quiet)
        with watching_workloads(f"checking {held.name}", quiet, len(workloads)) as step:
            checks.append(check(held, name, workloads, limit, progress=step))
    present(json_file, checks, lambda screen: listing.print_checks(screen, checks))
    return Exit.DIFFERENT if any(found.unsound for found in checks) else Exit.DONE


@apm.command("compare")
def compare_(
    a: str = option("A", "", MODEL), b: str = option("B", "", MODEL), json_file: Path | None = table.JSON
) -> Exit:
    """Show what one of two models allows and the other forbids.

    For each clause that only one model promises, bob prints the smallest workload with a crash state that only the
    other model allows. If an observed crash state refuted the clause for the other model, bob prints that, too.

    \b
    Examples:
      bob apm compare apm/ext4-ordered.json ext4-o
      bob apm compare ext3-o ext3-j --json -

    \b
    Exit codes:
      0   the models promise the same, or no small workload distinguishes them
      1   the models differ
    """
    one, other = named_model(a), named_model(b)
    found = list(differences(one, other))
    document = listing.apart_document(one, other, found)
    present(json_file, document, lambda screen: listing.print_apart(screen, one, other, found))
    return Exit.DIFFERENT if found else Exit.DONE


@apm.command()
def show(model: str = table.MODEL_NAME, json_file: Path | None = table.JSON) -> Exit:
    """Explain in prose which guarantees MODEL gives, which it lacks, and the evidence.

    The text is Markdown; on a terminal, bob formats it. --json writes the model itself.

    \b
    Examples:
      bob apm show apm/ext4-ordered.json
      bob apm show ext4-o | less
      bob apm show ext4-o > ext4-o.md

    \b
    Exit codes:
      0   the text was printed
      8   the file is not a valid model
    """
    from rich.markdown import Markdown

    from bob.apm.export.prose import text

    found = named_model(model)

    def tell(screen: Screen) -> None:
        if screen.is_terminal:
            screen.print(Markdown(text(found)))
        else:
            write_text(Path("-"), text(found), "MODEL")

    present(json_file, to_json(found), tell)
    return Exit.DONE


@apm.command()
def export(
    models: tuple[str, ...] = option("MODEL...", "", MODEL),
    *,
    html: Path | None = option("--html FILE", "Write MODEL as a stand-alone page.", OUTPUT),
    alice: Path | None = option("--alice FILE", "Write MODEL as a file system for ALICE's replayer.", OUTPUT),
    svg: Path | None = option("--svg FILE", "Draw which models are weaker than others.", OUTPUT),
) -> Exit:
    """Write MODEL as a page, as a picture, or for ALICE.

    The page is about the first MODEL. With several, it has a picture of all of them, which Graphviz draws. The file for
    ALICE is a Python module that does not need bob. It lists what ALICE cannot express of the model.

    \b
    Examples:
      bob apm export apm/ext4-ordered.json --html ext4.html
      bob apm export apm/ext4-ordered.json --alice ext4_ordered.py
      bob apm export apm/*.json ext4-o btrfs --svg models.svg

    \b
    Exit codes:
      0   the files were written
      2   invalid usage, or no file was requested
      4   --svg: Graphviz is not installed
      8   a file is not a valid model
    """
    from bob.apm.export.alice import alice_module, not_sayable
    from bob.apm.export.lattice import lattice
    from bob.apm.export.prose import page

    if html is None and alice is None and svg is None:
        raise UsageError("nothing to write", hint="name a file with --html, --alice or --svg")
    if len(models) > 1 and alice is not None:
        raise UsageError("--alice takes one MODEL", hint="export one model at a time")
    found = with_distinct_names([named_model(name) for name in models])
    if svg is not None:
        write_text(svg, lattice(found), "--svg")
    if html is not None:
        beside, picture = Path(os.path.relpath(Path(models[0]).parent, html.parent)).as_posix(), ""
        try:
            picture = lattice(found) if len(found) > 1 else ""
        except MissingProgramError as error:
            _note(f"the page has no picture: {error.message}; {error.hint}")
        write_text(html, page(found[0], picture, "" if beside == "." else f"{beside}/"), "--html")
    if alice is not None:
        write_text(alice, alice_module(found[0]), "--alice")
        for sentence in not_sayable(found[0]):
            _note(sentence)
    return Exit.DONE


def _note(sentence: str) -> None:
    console(stderr=True).print(Text(f"note: {sentence}", "bob.dim"))


@apm.command("what-if", cls=WithSigns)
def what_if_(
    model: str = table.MODEL_NAME,
    changes: tuple[str, ...] = option("CHANGE...", ""),
    *,
    out: Path | None = option("--out FILE", "The file for the new model.", NEW_FILE, words="apm/MODEL-what-if.json"),
    programs: tuple[str, ...] = option(
        "--app PROGRAM", "Check this program against both models. `all` means every program that bob ships.", PROGRAM
    ),
    how: table.ProgramRunOptions,
    checks: CheckPlace = table.CHECKS,
) -> Exit:
    """Change clauses of MODEL, write the new model, and say what differs.

    CHANGE is a clause with a sign: the new model promises it with +, and does not with -. A word of the clause can be
    any, several words joined by |, or a pattern with *. Some changes have names, which a - reverses: 'fsync persists
    only its file', 'safe rename', 'safe file flush', 'atomic contents', 'atomic appends', 'directory operations in
    order', 'everything in order'.

    With --app, bob records programs in a guest and checks them against both models (see `bob app run --help`). It
    prints which vulnerabilities the change adds and which it removes. All options except --out, --json and --quiet
    apply only to --app.

    \b
    Examples:
      bob apm what-if ext3-j 'fsync persists only its file'
      bob apm what-if ext4-o '-safe rename' --out no-safe-rename.json --app replace-rename
      bob apm what-if xfs '+ordered append any same-file' '-durable fsync-file other-*'

    \b
    Exit codes:
      0   the model was written; no program has a new vulnerability
      1   the change adds a vulnerability to a program
      2   a change is invalid, or changes nothing
      3   some program's answer is unknown
      4+  another error; `bob --help` lists the codes
    """
    before = named_model(model)
    name = out.stem if out is not None else f"{before.name}-what-if"
    found = what_if(before, [change.strip() for change in changes], name)
    tried = _named_programs(programs)
    if tried:
        check_runs(None)
    path = out or Path("apm") / f"{name}.json"
    save(found.after, path)
    if not is_stdout(how.json_file):
        listing.print_what_if(console(), found, path)
    answers = []
    for program in tried:
        # Imported only now, since libvirt and paramiko take a while to load.
        from bob.run.model_change import model_change

        with watching(quiet=how.quiet) as progress:
            answers.append(model_change(program, (found.before, found.after), how, checks, progress))
        if not is_stdout(how.json_file):
            console().print()
            print_change(console(), answers[-1])
    if how.json_file is not None:
        write_json(how.json_file, listing.what_if_document(found, path, [_row(one) for one in answers]))
    if any(answer.added for answer in answers):
        return Exit.DIFFERENT
    return Exit.UNKNOWN_CELLS if any(answer.is_unknown for answer in answers) else Exit.DONE


def _row(found: Change) -> listing.ProgramChange:
    sides = found.before, found.after
    evidence = (tuple(one.evidence for one in several) for several in (found.added, found.mended, found.kept))
    safety = [SAFETY[side.answer.verdict] for side in sides]
    is_all = [side.model is not None and side.model.is_all for side in sides]
    reason = found.before.answer.reason or found.after.answer.reason
    return listing.ProgramChange(found.program, (safety[0], safety[1]), reason, (is_all[0], is_all[1]), *evidence)


def _named_programs(wanted: Sequence[str]) -> list[Program]:
    names = [name for one in wanted for name in (shipped_programs() if one == ALL else (one,))]
    return [named(name) for name in dict.fromkeys(names)]
