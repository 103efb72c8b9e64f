"""``bob app``: finds out whether a program survives a crash on a file system."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from bob.catalogue.request import CheckPlace, Host, ProbeRequest
from bob.cli.ci import EARLIER, check_earlier, finish
from bob.cli.commands import Commands
from bob.cli.display import watching
from bob.cli.options import completed
from bob.cli.output import Screen, console, present
from bob.cli.run_directories import check_resumed, telling_what_is_kept
from bob.errors import Exit, UsageError
from bob.options import group, option
from bob.program.folder import named, of_commands
from bob.program.program import Pace, Program
from bob.report.comparison.sides import Side
from bob.run import option_table as table
from bob.run.option_values import PROGRAM
from bob.run.requests import RECORDED_ON, program_requests
from bob.text import plural

DEFAULT = "run"
TEMPLATE = Path(__file__).with_name("new-app")


@group
class ProgramOptions:
    """The options about the program under test. They say which program it is, and where and how its workload runs."""

    program: str | None = option("[PROGRAM]", "", PROGRAM)
    fs: tuple[str, ...] = table.FILE_SYSTEM
    workload: str | None = option("--workload COMMAND", "The command that is the workload, instead of PROGRAM.")
    check: str | None = option(
        "--check COMMAND",
        "The command that checks a crash state; exit code 0 means that all is well.",
        default=None,
        words="bob asks about files that are neither as before nor as after an output or a sync",
    )
    setup: str | None = option(
        "--setup COMMAND", "The command that makes the initial files. They are durable before the workload starts."
    )
    paces: tuple[Pace, ...] = table.PACES

    def read(self) -> Program:
        """Return the program under test. The options give it in one of three ways: the name of a shipped program, a
        folder, or commands. Raise UsageError if they give no program, or both a program and commands."""
        if self.program is None:
            if self.workload is None:
                raise UsageError("no program given", hint="name a program or a folder, or give --workload")
            return of_commands(self.workload, self.check or "", self.setup or "")
        if self.workload or self.check or self.setup:
            raise UsageError("PROGRAM has scripts of its own", hint="leave out --workload, --check and --setup")
        return named(self.program)


class DefaultRun(Commands):
    """A group that reads ``bob app NAME`` as ``bob app run NAME``, unless NAME is a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


class AppCommands(DefaultRun):
    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        return [*super().shell_complete(ctx, incomplete), *completed(PROGRAM, ctx, incomplete)]


@click.group(cls=AppCommands, context_settings={"help_option_names": ["-h", "--help"]})
def app() -> None:
    """Find out whether a program survives a crash. `bob app PROGRAM` is short for `bob app run PROGRAM`."""


@app.command()
def run(
    context: click.Context,
    *,
    about: ProgramOptions,
    options: table.FileSystemOptions,
    models: tuple[str, ...] = table.MODELS,
    soft: bool = option("--soft", "Also try soft crashes: the process dies after a call, and the kernel lives."),
    checks: CheckPlace = table.CHECKS,
    shard: tuple[int, int] = table.SHARD,
    image: str = table.IMAGE,
    guests: table.GuestOptions,
    scheduler: str | None = table.SCHEDULER,
    exploration: table.Exploration,
    delivery: table.Delivery,
    resumed: Path | None = table.RESUME,
    expected: Side | None = EARLIER,
) -> Exit:
    """Find out whether PROGRAM survives a crash.

    PROGRAM is a program that bob ships, by name, or a folder with app.toml, setup, workload and check. The workload
    runs in a guest, and bob records the writes to the disk and the program's standard output. Then bob runs the checker
    on crash states. Its arguments are the directory after the crash, and a file with the output before the crash. Its
    exit code is 0 if all is well, 10 if acknowledged data is lost, 11 if data is corrupt, and 12 if the data cannot be
    opened. Any other code is a violation, too.

    The workload runs at three paces. Undisturbed is full speed. Slow waits seconds between calls, so that the kernel's
    timers fire in between. Busy runs beside another process, which syncs its own file after each call. A fourth pace,
    slower, is added on a file system that commits less often. Each pace has its own answer.

    With --model, bob also checks the program's system calls against a model of a file system. It builds the states that
    the model allows, up to --budget for each model, and runs the checker on each.

    With --soft, bob also runs the checker on the files after each call, as if the process had died there and the kernel
    had not. A test that kills the process, as by SIGKILL, sees only these states. The answer is `model soft`.

    Without --check, bob compares what a crash leaves with the files at the start, at each output, at each sync and at
    the end. Files like none of them are a question to you, not a verdict, and the exit code is 3.

    With --expect, known vulnerabilities do not fail a CI: the exit code is 1 if one is new or gone. A file system that
    EARLIER lacks counts as without --expect.

    \b
    Examples:
      bob app sqlite-rollback --fs ext4
      bob app replace-rename --fs ext4 --model ext4-ordered
      bob app sqlite-rollback --soft
      bob app run ./my-app --fs ext4 --fs btrfs --fs xfs
      bob app --fs ext4 --workload ./w.sh --check ./c.sh
      bob app --fs ext4 --workload ./w.sh
      bob app ./my-app --fs ext4 --fs xfs --junit report.xml
      bob app ./my-app --fs ext4 --pace undisturbed
      bob app ./my-app --fs ext4 --fs xfs --shard 2/2
      bob app ./my-app --fs ext4 --expect known.json
      bob app --resume bob-runs/20261121T230021-1f2e3d

    \b
    Exit codes:
      0   safe on all file systems and by all models, as far as explored
      1   vulnerable on one of them; with --expect: a vulnerability is new or gone
      2   the program cannot run, or its checker cannot be trusted; nothing was explored
      3   unknown on one of them: a guest was lost, the checker contradicts itself, or a call is not traced
      10  a model forbids a state that its own file system left: the model or bob is wrong
      4+  another error; `bob --help` lists the codes
    """
    if resumed is not None:
        check_resumed(context)
        return resume_program("app", resumed, guests.host(scheduler), delivery, expected)
    program, systems, paces = about.read(), about.fs, about.paces
    if soft:
        from bob.apm.builtin import SOFT  # models take a while to load

        models = (*models, SOFT)
    if models and not systems:
        systems, paces = (RECORDED_ON,), paces or (Pace.UNDISTURBED,)
    _check_file_systems(systems)
    if models and shard != table.WHOLE:
        raise UsageError("--shard cannot be used with --model", hint="check the models in a separate run")

    from bob.apm.named import named_models
    from bob.run.programs import try_program  # imported only now, since libvirt and paramiko take a while to load

    against = named_models(models)
    with telling_what_is_kept("app", delivery.out), watching(quiet=delivery.quiet) as progress:
        requests = program_requests(
            program,
            systems,
            options,
            paces,
            exploration,
            image,
            guests,
            scheduler=scheduler,
            checks=checks,
            progress=progress.step,
        )
        numbers = range(len(requests))[shard[0] - 1 :: shard[1]]
        if not numbers:
            pairs = plural(len(requests), "pair")
            raise UsageError(
                f"--shard {shard[0]}/{shard[1]} is empty: there are {pairs} of a file system and a pace",
                hint=f"use {len(requests)} shards at most",
            )
        check_earlier(expected, program.name, [*_names(requests), *(f"model {model.name}" for model in against)])
        mine, only = [requests[number] for number in numbers], None if shard == table.WHOLE else numbers
        answers, folder = try_program(
            program, mine, delivery.out, progress, against, explores=bool(about.fs), numbers=only
        )
    return finish(answers, folder, delivery.json_file, delivery.ci_files, expected)


def _names(requests: Sequence[ProbeRequest]) -> list[str]:
    return [one.pace.of(one.configuration.name) for one in requests]


def resume_program(verb: str, run: Path, host: Host, delivery: table.Delivery, expected: Side | None) -> Exit:
    """Resume the run ``run`` of the command ``verb`` (app or cluster), and report its result."""
    from bob.run.programs import resume  # imported only now, since libvirt and paramiko take a while to load

    with telling_what_is_kept(verb, run), watching(quiet=delivery.quiet) as progress:
        answers, folder = resume(run, host, progress, of_cluster=verb == "cluster")
    if expected is not None:
        check_earlier(expected, answers.program_name, [one.title for one in answers.subjects])
    return finish(answers, folder, delivery.json_file, delivery.ci_files, expected)


@app.command("check")
def check_app(
    *,
    about: ProgramOptions,
    options: table.FileSystemOptions,
    how: table.ProgramRunOptions,
) -> Exit:
    """Run and record PROGRAM, and test its checker, without exploring crashes.

    The checker must accept the files after the setup, before any output, and the files after a clean end. It must
    refuse the states that must_fail in app.toml lists.

    \b
    Examples:
      bob app check ./my-app --fs ext4
      bob app check ./my-app --fs ext4 --quiet --json - | jq .configurations[0].states

    \b
    Exit codes:
      0   bob can explore the program
      2   the program cannot run, or its checker cannot be trusted
      4+  another error; `bob --help` lists the codes
    """
    program, paces = about.read(), about.paces or (Pace.UNDISTURBED,)
    _check_file_systems(about.fs)

    from bob.run.program_recording import AppCheckDocument
    from bob.run.programs import preflight

    with watching(quiet=how.quiet) as progress:
        requests = program_requests(
            program, about.fs, options, paces, how.exploration, how.image, how.guests, progress=progress.step
        )
        ready = preflight(program, requests, progress)

    def show(screen: Screen) -> None:
        for one in ready:
            outputs = f"{plural(one.outputs, 'output')} ({plural(one.told, 'byte')})"
            calls = plural(one.calls, "traced call")
            screen.print(f"{one.configuration}: ready; {outputs}, {calls}", soft_wrap=True)
            windows = f"{plural(one.windows, 'window')} between outputs"
            states = f"{plural(one.states, 'whole crash state')} in {windows}"
            most = f"at most {plural(how.exploration.budget, 'mount')} for each window"
            screen.print(f"  to explore: {states}, {most}", soft_wrap=True)

    present(how.json_file, AppCheckDocument(program.name, tuple(ready)), show)
    return Exit.DONE


@app.command("build")
def build_app(
    folder: Path = option("FOLDER"),
    *,
    image: str = table.IMAGE,
    quiet: bool = table.QUIET,
) -> Exit:
    """Run the script `build` of FOLDER with the libraries of the guest.

    A program that was built on a newer system may need a newer C library than the guest has. The script runs on this
    machine, in a copy of FOLDER, without a network. Its root directory has the packages and build_packages of app.toml,
    from the guest's release of Debian. bob copies the files that it made or changed to FOLDER.

    \b
    Examples:
      bob app build ./my-app
      bob app build ./my-app --image debian-trixie

    \b
    Exit codes:
      0   the script succeeded
      2   there is no such script, or it failed
      4+  another error; `bob --help` lists the codes
    """
    from bob.run.builds import build_program  # imported only now, since libvirt and paramiko take a while to load

    with watching(quiet=quiet) as progress:
        made = build_program(folder, image, progress)
    console().print(f"made {', '.join(made) or 'nothing new'}", soft_wrap=True)
    return Exit.DONE


@app.command()
def new(name: str = option("NAME")) -> Exit:
    """Write the folder NAME, a commented example program.

    The example runs unchanged. Replace its scripts with those of your own program. bob never overwrites a folder.

    \b
    Examples:
      bob app new my-app
      bob app ./my-app --fs ext4

    \b
    Exit codes:
      0   the folder was written
      2   a file or folder NAME exists
    """

    def copy(folder: Path) -> None:
        folder.mkdir(parents=True)
        for source in sorted(TEMPLATE.iterdir()):
            shutil.copyfile(source, folder / source.name)
            (folder / source.name).chmod(0o644 if source.suffix == ".toml" else 0o755)

    return write_example(Path(name), copy, "app")


def write_example(folder: Path, copy: Callable[[Path], object], command: str) -> Exit:
    """Write the example ``folder`` by the function ``copy``, and print how to run it with ``bob COMMAND``. Raise
    UsageError if the folder exists, or if it cannot be written."""
    if folder.exists():
        raise UsageError(f"{folder} already exists", hint="choose another name, or remove it")
    try:
        copy(folder)
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror}", hint="change to another directory") from None
    console().print(f"wrote {folder}; edit it, then run\n  bob {command} ./{folder} --fs ext4", soft_wrap=True)
    return Exit.DONE


def _check_file_systems(named: Sequence[str]) -> None:
    if not named:
        raise UsageError("missing option '--fs'", hint=f"for example --fs {RECORDED_ON}")
