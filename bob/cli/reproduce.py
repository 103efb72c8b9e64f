"""``bob reproduce``: a published experiment with programs and models of today, beside what was published."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from bob.cli.commands import Command
from bob.cli.options import takes_options
from bob.cli.output import console, is_stdout, write_json
from bob.errors import BobError, Exit, GuestError, RecordingError, UsageError
from bob.judge.program_result import Programs, Safety
from bob.options import Choice, option
from bob.program.pace import Pace
from bob.program.program import Program
from bob.request import ProbeRequest
from bob.run import option_table as table
from bob.run.option_values import FOLDER, one_of
from bob.run.requests import RECORDED_ON, program_requests

NOTE = "reproduce.json"
"""What the folder of an experiment says of itself: how it was asked."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """Programs against models. ``theirs`` are published counts, by the words for them."""

    title: str
    programs: tuple[str, ...]
    models: tuple[str, ...]
    theirs: Mapping[str, str]


EXPERIMENTS = {
    "ccfs": Experiment(
        "Vulnerabilities by file system (ccfs, FAST'17)",
        ("leveldb", "sqlite-rollback", "git-commit", "hg-commit", "zookeeper"),
        ("ext4-writeback", "ext4-ordered", "ext4-nodelalloc", "ext4-datajournal", "ccfs"),
        {"FAST'17": "ccfs", "reproduced": "ccfs-reproduced"},
    )
}
ABOUT = (
    "Static vulnerabilities: those at one place of the program are one. The models of ext4 are those that bob derived "
    "on Linux 6.1, that of ccfs is built-in. FAST'17: the paper; reproduced: the project of Harvard's CS 261 in 2021, "
    "which ran out of memory where there is a ?. Programs were of other versions then. None found is no proof."
)


@click.command(cls=Command)
@takes_options
def reproduce(
    experiment: str = option("EXPERIMENT", "", Choice(tuple(EXPERIMENTS))),
    *,
    out: Path | None = option(
        "--out DIR",
        "Where the runs are kept, one for each program; what is finished there is not done again.",
        FOLDER,
        words="bob-runs/reproduce-EXPERIMENT",
    ),
    wanted: tuple[str, ...] = option(
        "--app PROGRAM",
        "Only this program of it.",
        one_of(lambda: dict.fromkeys(name for made in EXPERIMENTS.values() for name in made.programs)),
    ),
    image: str = table.IMAGE,
    guests: table.Guests,
    exploration: table.Exploration,
    json_file: Path | None = table.JSON,
    quiet: bool = table.QUIET,
) -> Exit:
    """Do a published experiment again, and print it beside what was published.

    ccfs: LevelDB, SQLite with a rollback journal, Git, Mercurial and ZooKeeper on four modes of ext4 and on ccfs, as in
    "Application Crash Consistency and Performance with CCFS" (FAST'17). Each program is recorded once, and held against
    the derived models of ext4 and the built-in one of ccfs, up to --budget trees for each.

    It takes minutes for each program. The same command goes on after it was stopped. `bob show DIR/*` has the same runs
    by type and consequence, and `bob show DIR/PROGRAM` one of them.

    \b
    Examples:
      bob reproduce ccfs
      bob reproduce ccfs --budget 100 --app git-commit --app sqlite-rollback
      bob reproduce ccfs --quiet --json - | jq .programs

    \b
    Exit codes:
      0   each program has an answer by each model
      2   usage, or DIR was made with other options
      3   some answer is not known
      4+  something is missing or went wrong, see `bob --help`
    """
    from bob.report import vulnerability_tables as tables
    from bob.run.prober import RUNS

    made = EXPERIMENTS[experiment]
    programs, left_out = _programs(made, wanted)
    folder = out or RUNS / f"reproduce-{experiment}"
    asked = {
        "experiment": experiment,
        "image": image,
        "budget": exploration.budget,
        "seed": exploration.seed,
        "write_cache": exploration.write_cache,
        "atomic_write": str(exploration.atomic_write),
        "completion": exploration.completion.value,
    }
    _check_asked(folder, asked)
    found: list[Programs] = []
    failed: dict[str, str] = {}

    def ask(program: Program, step: Callable[[str], None]) -> list[ProbeRequest]:
        recorded_on = (RECORDED_ON,), table.FileSystemOptions(), (Pace.UNDISTURBED,)
        return program_requests(program, *recorded_on, exploration, image, guests, progress=step)

    for program, answers in _answers(programs, made.models, folder, ask, quiet=quiet):
        if isinstance(answers, BobError):
            failed[program] = answers.message
        else:
            found.append(answers)
    theirs = {name: tables.published(which) for name, which in made.theirs.items()}
    sheet = tables.beside_published(found, made.models, theirs, made.title)
    if json_file is not None:
        document = {**tables.to_json([sheet]), "schema": "bob.reproduce/1", "experiment": experiment}
        about = [_about(one) for one in found]
        write_json(json_file, {**document, "programs": about, "failed": failed, "left_out": left_out})
    if not is_stdout(json_file):
        _print(sheet, found, failed, left_out)
    is_unknown = failed or any(model.safety is Safety.UNKNOWN for one in found for model in one.models)
    return Exit.UNKNOWN_CELLS if is_unknown else Exit.DONE


def _programs(made: Experiment, wanted: Sequence[str]) -> tuple[list[Program], list[str]]:
    """The programs of an experiment, or those that are ``wanted`` of it; and those that bob does not ship."""
    from bob.program.folder import named, shipped_programs

    if wrong := [name for name in wanted if name not in made.programs]:
        raise UsageError(f"{wrong[0]!r} is no program of it", hint=f"it has {', '.join(made.programs)}")
    there = shipped_programs()
    asked = [name for name in made.programs if not wanted or name in wanted]
    return [named(name) for name in asked if name in there], [name for name in asked if name not in there]


def _check_asked(folder: Path, asked: Mapping[str, Any]) -> None:
    """Note how an experiment is asked, in its folder; raise UsageError where that was asked otherwise before."""
    from bob.store.files import read_document

    note = folder / NOTE
    if note.exists():
        before = read_document(note)
        for key, value in asked.items():
            if before.get(key) != value:
                option = key if key == "experiment" else f"--{key.replace('_', '-')}"
                hint = f"name another --out, or leave {option} as it was"
                raise UsageError(f"{folder} was made with {option} {before.get(key)}, not {value}", hint=hint)
        return
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty, and no experiment", hint="name another directory with --out")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make {folder}: {error.strerror}", hint="name another --out") from None
    write_json(note, dict(asked))


def _answers(
    programs: Sequence[Program],
    models: Sequence[str],
    folder: Path,
    ask: Callable[[Program, Callable[[str], None]], list[ProbeRequest]],
    *,
    quiet: bool,
) -> Iterator[tuple[str, Programs | BobError]]:
    """The answers for each program, or why there is none; what is finished is read."""
    from bob.apm.named import named_models
    from bob.cli.display import watching
    from bob.run.programs import try_program
    from bob.store.kept_runs import remove

    against = named_models(models)
    for number, program in enumerate(programs, start=1):
        run = folder / program.name
        if (kept := _finished(run, program)) is not None:
            yield program.name, kept
            continue
        if not quiet:
            console(stderr=True).print(Text(f"{program.name}: {number} of {len(programs)}", "bob.dim"))
        if run.is_dir() and any(run.iterdir()):
            remove(run)
        try:
            with watching(quiet=quiet) as progress:
                requests = ask(program, progress.step)
                answers, _run = try_program(program, requests, run, progress, against, explores=False)
            yield program.name, answers
        except (UsageError, RecordingError, GuestError) as error:
            yield program.name, error


def _finished(run: Path, program: Program) -> Programs | None:
    """The answers in a run that was finished with the program as it is now."""
    from bob.report.saved import programs
    from bob.store.files import read_document

    if not (run / "run.json").exists() or "finished" not in read_document(run / "run.json"):
        return None
    is_same = read_document(run / "result.json")["program"].get("digest") == program.digest
    return programs(run) if is_same else None


def _about(one: Programs) -> dict[str, Any]:
    return {
        "program": one.program,
        "models": [
            {"model": model.model, "safety": model.safety.value, "reason": model.reason, "tried": model.tried,
             "all": model.is_all, "trees": model.trees}
            for model in one.models
        ],
    }  # fmt: skip


def _print(sheet: Any, found: Sequence[Programs], failed: Mapping[str, str], left_out: Sequence[str]) -> None:
    from bob.report.counts import of_model
    from bob.report.vulnerability_tables import print_sheets

    screen = console()
    print_sheets(screen, [sheet], ABOUT)
    screen.print()
    for one in found:
        for model in one.models:
            said = f"? {model.reason}" if model.reason else f"{model.tried:,} crash states tried, {of_model(model)}"
            style = "bob.unknown" if model.reason else "bob.dim"
            screen.print(Text(f"{one.program}, {model.model}: {said}", style), soft_wrap=True)
    for name, reason in failed.items():
        screen.print(Text(f"{name}: ? {reason}", "bob.unknown"), soft_wrap=True)
    for name in left_out:
        screen.print(Text(f"{name} is left out: bob ships no such program", "bob.dim"), soft_wrap=True)
