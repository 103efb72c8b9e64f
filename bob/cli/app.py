"""``bob app``: does a program survive a crash on this file system?"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from bob.cli.asking import (
    check_out,
    configuration_options,
    jobs_option,
    preflight_options,
    request,
    scheduler_option,
    telling_what_is_kept,
    trying_options,
)
from bob.cli.ci import tell
from bob.cli.commands import Commands
from bob.cli.display import watching
from bob.cli.kernels import asked_images
from bob.cli.models import ModelName
from bob.cli.options import Files, FileSystemName, Shard
from bob.cli.output import console, is_stdout, write_json
from bob.counts import written
from bob.errors import Exit, UsageError
from bob.judge.program_result import Programs, Safety, to_json
from bob.program.folder import named, of_commands, shipped_programs
from bob.program.pace import Pace
from bob.program.program import Program
from bob.report.counts import plural
from bob.report.points import suites_of_programs
from bob.request import ProbeRequest
from bob.run.requests import RECORDED_ON
from bob.subject import Configuration, configuration

DEFAULT = "run"
TEMPLATE = Path(__file__).with_name("new-app")


PROGRAM = Files(shipped_programs, "dir")
"""A program: one that bob ships, or a folder; it is looked at when it is read."""


class AppCommands(Commands):
    """A group in which a program may stand where a command would: it is run."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click's own, with the command that was left out."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Its commands and options, and the programs that bob ships."""
        return [*super().shell_complete(ctx, incomplete), *PROGRAM.shell_complete(ctx, None, incomplete)]


@click.group(cls=AppCommands, context_settings={"help_option_names": ["-h", "--help"]})
def app() -> None:
    """Ask whether a program survives a crash: bob app PROGRAM is short for bob app run PROGRAM."""


_PROGRAM = (
    click.argument("program", metavar="[PROGRAM]", required=False, type=PROGRAM),
    click.option(
        "--fs", "fs_names", type=FileSystemName(), multiple=True,
        help="File system, e.g. ext4, or the TOML file of one of your own; may be repeated.",
    ),
    configuration_options,
    click.option("--workload", metavar="COMMAND", help="What the program does, in place of PROGRAM."),
    click.option("--check", metavar="COMMAND", help="What looks at a crash state: exit code 0 where all is well."),
    click.option("--setup", metavar="COMMAND", help="What is there, durable, before the workload begins."),
    click.option(
        "--pace", "paces", type=click.Choice([pace.value for pace in Pace]), multiple=True,
        help="At which pace the workload runs (docs/apps.md); may be repeated. [default: each; to check: undisturbed]",
    ),
    jobs_option,
)  # fmt: skip


def _program_options(command: Any) -> Any:
    for option in reversed(_PROGRAM):
        command = option(command)
    return command


@app.command()
@_program_options
@click.option(
    "--model",
    "model_names",
    type=ModelName(every=True),
    metavar="MODEL",
    multiple=True,
    help="A model: built-in (ext4-o), shipped (ext4-ordered), a file; or all. May be repeated; no --fs: models only.",
)
@scheduler_option
@click.option(
    "--shard",
    type=Shard(),
    default="1/1",
    help="Only the Kth of N parts of the file systems, in a run of its own; bob merge puts them together."
    " [default: all]",
)
@trying_options
def run(
    program: str | None,
    model_names: tuple[str, ...],
    workload: str | None,
    check: str | None,
    setup: str | None,
    shard: tuple[int, int],
    out: Path | None,
    json_file: Path | None,
    junit_file: Path | None,
    quiet: bool,
    **asked: Any,
) -> Exit:
    """Find out whether PROGRAM survives a crash.

    PROGRAM is the name of a program that bob ships, or a folder with app.toml, setup, workload and check. The workload
    runs in a guest, and bob records what the disk is sent, and what the program tells on its standard output. After
    each legal crash the checker is asked: its arguments are the directory as the crash left it, and a file with what
    the program had told before. Exit code 0 means that all is well, 10 that acknowledged data is lost, 11 that data is
    corrupt, 12 that it cannot be opened; any other one is a violation, too.

    The workload runs three times: undisturbed; slowly, with seconds between its calls, so that the kernel's timers come
    in between; and beside another process that syncs a file of its own after each call. On a file system that commits
    more seldom, it also runs slower. Each has an answer.

    With --model, the program's system calls are held against a model of a file system, too: each state that the model
    allows is built, and the checker is asked, up to --budget trees for each model.

    \b
    Examples:
      bob app sqlite-rollback --fs ext4
      bob app replace-rename --fs ext4 --model ext4-ordered
      bob app run ./my-app --fs ext4 --fs btrfs --fs xfs
      bob app --fs ext4 --workload ./w.sh --check ./c.sh
      bob app ./my-app --fs ext4 --fs xfs --junit report.xml
      bob app ./my-app --fs ext4 --pace undisturbed
      bob app ./my-app --fs ext4 --fs xfs --shard 2/2

    \b
    Exit codes:
      0   safe on all file systems, and by all models, as far as explored
      1   vulnerable on one of them
      2   the program cannot be run, or its checker cannot be trusted; nothing was explored
      3   not known on one of them: a guest was lost, the checker contradicts itself, or a call is not traced
      10  a model forbids what the file system that it was derived of has left: the model is wrong, or bob
      4+  something is missing or went wrong, see `bob --help`
    """
    found = _program(program, workload, check, setup)
    explores = bool(asked["fs_names"])
    if model_names and not explores:
        asked["fs_names"] = (RECORDED_ON,)
        asked["paces"] = asked["paces"] or (Pace.UNDISTURBED.value,)
    requests = requests_of(found, asked, quiet=quiet)
    numbers = range(len(requests))[shard[0] - 1 :: shard[1]]
    if not numbers:
        hint = "a file system is not divided"
        raise UsageError(f"--shard {shard[0]}/{shard[1]}: {plural(len(requests), 'file system')} named", hint=hint)
    if model_names and shard != (1, 1):
        raise UsageError("--shard does not go with --model", hint="ask the models in a run of their own")

    from bob.apm.named import named_models
    from bob.run.prober import RUNS  # libvirt and paramiko take a while to load
    from bob.run.programs import try_program

    models = named_models(model_names)
    check_out(out, RUNS)
    with telling_what_is_kept("app", out, RUNS, resumes=False), watching(quiet=quiet) as progress:
        mine, only = [requests[number] for number in numbers], None if shard == (1, 1) else numbers
        answers, folder = try_program(found, mine, out, progress, models, explores=explores, numbers=only)
    if json_file is not None:
        write_json(json_file, to_json(found, answers.results, {}, answers.models, answers.protocols))
    if not is_stdout(json_file):
        from bob.report.programs import print_programs

        print_programs(console(), answers, folder)
    tell(suites_of_programs(answers, folder), junit_file, is_wrong=True)
    return programs_exit(answers)


@app.command("check")
@_program_options
@preflight_options
def check_app(
    program: str | None,
    workload: str | None,
    check: str | None,
    setup: str | None,
    json_file: Path | None,
    quiet: bool,
    **asked: Any,
) -> Exit:
    """Do everything but explore: run PROGRAM, record it, and try its checker.

    The checker must accept what the setup leaves, with no output, and what a clean end leaves; and it must refuse what
    must_fail in app.toml says.

    \b
    Examples:
      bob app check ./my-app --fs ext4
      bob app check ./my-app --fs ext4 --quiet --json - | jq .configurations[0].states

    \b
    Exit codes:
      0   the program can be explored
      2   it cannot be run, or its checker cannot be trusted
      4+  something is missing or went wrong, see `bob --help`
    """
    found = _program(program, workload, check, setup)
    asked["paces"] = asked["paces"] or (Pace.UNDISTURBED.value,)
    requests = requests_of(found, asked, quiet=quiet)

    from bob.run.programs import preflight

    with watching(quiet=quiet) as progress:
        ready = preflight(found, requests, progress)
    if json_file is not None:
        configurations = [{**asdict(one), "states": written(one.states)} for one in ready]
        write_json(json_file, {"schema": "bob.app-check/1", "program": found.name, "configurations": configurations})
    if is_stdout(json_file):
        return Exit.DONE
    screen = console()
    for one in ready:
        told = f"{plural(one.outputs, 'output')} of {plural(one.told, 'byte')}"
        calls = plural(one.calls, "traced call")
        screen.print(f"{one.configuration}: ready; {told}, {calls}", soft_wrap=True)
        most = f"{plural(one.windows, 'window')} of at most {plural(asked['budget'], 'mount')} each"
        states = f"{plural(one.states, 'whole state')} with what was told"
        screen.print(f"  to be explored: {states}, in {most}", soft_wrap=True)
    return Exit.DONE


@app.command()
@click.argument("name")
def new(name: str) -> Exit:
    """Write the folder NAME, a program with comments, to begin with.

    It can be run as it is; change its scripts to those of a program of your own. What is there is never overwritten.

    \b
    Examples:
      bob app new my-app
      bob app ./my-app --fs ext4

    \b
    Exit codes:
      0   the folder was written
      2   there is such a file or folder
    """
    folder = Path(name)
    if folder.exists():
        raise UsageError(f"{folder} is there already", hint="choose another name, or remove it")
    try:
        folder.mkdir(parents=True)
        for source in sorted(TEMPLATE.iterdir()):
            target = folder / source.name
            target.write_bytes(source.read_bytes())
            target.chmod(0o644 if source.suffix == ".toml" else 0o755)
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror}", hint="go to another directory") from None
    console().print(f"wrote {folder}; change it, then\n  bob app ./{folder} --fs ext4", soft_wrap=True)
    return Exit.DONE


def _program(name: str | None, workload: str | None, check: str | None, setup: str | None) -> Program:
    """The program that is asked about: a shipped one, a folder, or commands."""
    if name is None:
        if workload is None or check is None:
            raise UsageError("no program is named", hint="name a folder, or give --workload and --check")
        return of_commands(workload, check, setup or "")
    if workload or check or setup:
        raise UsageError("PROGRAM has its own scripts", hint="leave out --workload, --check and --setup")
    return named(name)


def requests_of(program: Program, asked: dict[str, Any], *, quiet: bool) -> list[ProbeRequest]:
    """What the options ask, once for each file system and pace."""
    names, mkfs, mount = asked.pop("fs_names"), asked.pop("mkfs_opts"), asked.pop("mount_opts")
    paces = tuple(dict.fromkeys(map(Pace, asked.pop("paces", ()))))
    if not names:
        raise UsageError("missing option '--fs'", hint=f"for example --fs {RECORDED_ON}")
    if asked.get("guest") is not None:
        raise UsageError("a program runs in guests that bob boots", hint="leave out --guest")
    device = asked.pop("device") or 0
    made = [configured(program, name, mkfs, mount, device) for name in dict.fromkeys(names)]
    systems = [one.fs for one in made]
    [asked["image"]] = asked_images({**asked, "images": (asked["image"],)}, systems, quiet=quiet)
    return [replace(request(one, asked), pace=pace) for one in made for pace in paces or Pace.on(one.fs.commit)]


def configured(program: Program, name: str, mkfs: str, mount: str, device: int = 0) -> Configuration:
    """A file system to run the program on. Without ``device`` (bytes), the device is as large as both need it."""
    made = configuration(name, mkfs, mount, device)
    return replace(made, device=program.device) if not device and made.fs.device < program.device else made


def programs_exit(answers: Programs) -> Exit:
    """10 where a model is contradicted; else 1 where a program is vulnerable, by a model, too; else 3 where something
    is not known, else 0."""
    if answers.is_contradicted:
        return Exit.CONTRADICTED
    found = answers.safeties
    if Safety.VULNERABLE in found:
        return Exit.DIFFERENT
    return Exit.UNKNOWN_CELLS if Safety.UNKNOWN in found else Exit.DONE
