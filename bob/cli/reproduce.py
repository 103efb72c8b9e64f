"""``bob reproduce``: checks several programs, all against the same models of file systems, and prints the results
beside published results."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from bob.answer.result import Result
from bob.catalogue.request import CheckPlace
from bob.cli.commands import command
from bob.cli.display import watching
from bob.cli.output import console, present, write_json
from bob.errors import Exit, GuestError, RecordingError, UsageError
from bob.judge.programs import SAFETY
from bob.options import option
from bob.program.folder import named
from bob.program.program import Program
from bob.program.sets import ProgramSet, load_program_set, program_set_names
from bob.report.counts import of_model
from bob.report.saved import load
from bob.run import option_table as table
from bob.run.option_paths import FOLDER
from bob.run.option_values import PROGRAM_SET, one_of
from bob.store.files import read_document
from bob.store.kept_runs import remove
from bob.store.new_folder import check_new_folder
from bob.store.run_directory import RUNS

PROGRAM_OF_SET = one_of(lambda: [name for one in program_set_names() for name in load_program_set(one).programs])
NOTE = "reproduce.json"  # a file in the folder of a set's runs, with the options of the runs


@command()
def reproduce(
    made: ProgramSet = option("SET", "", PROGRAM_SET),
    *,
    out: Path | None = option(
        "--out DIR",
        "The folder for the runs, one for each program. bob does not repeat finished ones.",
        FOLDER,
        words="bob-runs/reproduce-SET",
    ),
    wanted: tuple[str, ...] = option("--app PROGRAM", "Run only this program of the set.", PROGRAM_OF_SET),
    how: table.ProgramRunOptions,
    checks: CheckPlace = table.CHECKS,
) -> Exit:
    """Repeat a published experiment, and print its results beside the published ones.

    SET is a set of programs and models: one that bob ships, or a TOML file like it (docs/apps.md). The set ccfs is from
    "Application Crash Consistency and Performance with CCFS" (FAST'17). It has LevelDB, SQLite with a rollback journal,
    Git, Mercurial and ZooKeeper, on four modes of ext4 and on ccfs. Each program is recorded once and checked against
    each model, as by `bob app PROGRAM --model`, with up to --budget trees for each model.

    Each program takes minutes. If you stop it, the same command continues. `bob show DIR/*` prints the same runs by
    type and consequence, and `bob show DIR/PROGRAM` prints one.

    \b
    Examples:
      bob reproduce ccfs
      bob reproduce ccfs --budget 100 --app git-commit --app sqlite-rollback
      bob reproduce ccfs --quiet --json - | jq .programs

    \b
    Exit codes:
      0   each program has an answer for each model
      2   invalid usage, or DIR has runs with other options
      3   some answer is unknown
      4+  another error; `bob --help` lists the codes
    """
    from bob.apm.named import named_models
    from bob.report import vulnerability_tables as tables

    # Imported only now, since libvirt and paramiko take a while to load.
    from bob.run.model_change import answers_by_models

    if wrong := [name for name in wanted if name not in made.programs]:
        raise UsageError(f"unknown program {wrong[0]!r}", hint=f"{made.name} has {', '.join(made.programs)}")
    programs = [named(name) for name in made.programs if not wanted or name in wanted]
    models = named_models(made.models)
    folder = out or RUNS / f"reproduce-{made.name}"
    asked = {
        "experiment": made.name,
        "image": how.image,
        "budget": how.exploration.budget,
        "seed": how.exploration.seed,
        "write_cache": how.exploration.write_cache,
        "atomic_write": str(how.exploration.atomic_write),
        "completion": how.exploration.completion.value,
    }
    _check_asked(folder, asked)
    found: list[Result] = []
    failed: dict[str, str] = {}
    for number, program in enumerate(programs, start=1):
        run = folder / program.name
        if (kept := _finished(run, program)) is not None:
            found.append(kept)
            continue
        if not how.quiet:
            console(stderr=True).print(Text(f"{program.name}: {number} of {len(programs)}", "bob.dim"))
        try:
            with watching(quiet=how.quiet) as progress:
                found.append(answers_by_models(program, models, how, checks, progress, run))
        except (UsageError, RecordingError, GuestError) as error:
            failed[program.name] = error.message
    theirs = {name: tables.published(which) for name, which in made.published.items()}
    sheet = tables.beside_published(found, [model.name for model in models], theirs, made.title)
    document = {**tables.to_json([sheet]), "schema": "bob.reproduce/1", "experiment": made.name}
    document |= {"programs": [_about(one) for one in found], "failed": failed}
    present(how.json_file, document, lambda screen: _print(screen, sheet, made.about, found, failed))
    is_unknown = failed or any(one.has_unknown for one in found)
    return Exit.UNKNOWN_CELLS if is_unknown else Exit.DONE


def _check_asked(folder: Path, asked: Mapping[str, Any]) -> None:
    """Write the options ``asked`` into a file in ``folder``, so that a later call can compare them. Raise UsageError if
    the file exists, and has other options."""
    note = folder / NOTE
    if not note.exists():
        check_new_folder(folder, "--out")
        folder.mkdir(parents=True, exist_ok=True)
        write_json(note, dict(asked))
        return
    before = read_document(note)
    for key, value in asked.items():
        if before.get(key) != value:
            option = key if key == "experiment" else f"--{key.replace('_', '-')}"
            hint = f"name another --out, or leave {option} as it was"
            raise UsageError(f"{folder} was made with {option} {before.get(key)}, not {value}", hint=hint)


def _finished(run: Path, program: Program) -> Result | None:
    """Return the result in the run directory ``run`` if the run was of this ``program``, and is finished. Otherwise
    remove the directory's files, and return None."""
    if (run / "run.json").exists() and "finished" in read_document(run / "run.json"):
        result = load(run).result
        if result.program is not None and result.program.digest == program.digest:
            return result
    if run.is_dir() and any(run.iterdir()):
        remove(run)
    return None


def _about(one: Result) -> dict[str, Any]:
    return {
        "program": one.program_name,
        "models": [
            {"model": model.name, "safety": SAFETY[model.answer.verdict], "reason": model.answer.reason,
             "tried": model.model.tried, "all": model.model.is_all, "trees": model.checks.trees}
            for model in one.models
            if model.model is not None and model.checks is not None
        ],
    }  # fmt: skip


def _print(screen: Console, sheet: Any, about: str, found: Sequence[Result], failed: Mapping[str, str]) -> None:
    from bob.report.vulnerability_tables import print_sheets

    print_sheets(screen, [sheet], about)
    screen.print()
    for one in found:
        for subject in one.models:
            reason, model = subject.answer.reason, subject.model
            tried = "" if model is None else f"{model.tried:,} crash states tried, {of_model(model)}"
            style = "bob.unknown" if reason else "bob.dim"
            line = f"{one.program_name}, {subject.name}: {f'? {reason}' if reason else tried}"
            screen.print(Text(line, style), soft_wrap=True)
    for name, reason in failed.items():
        screen.print(Text(f"{name}: ? {reason}", "bob.unknown"), soft_wrap=True)
