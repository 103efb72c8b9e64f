"""``bob probe``: finds out which persistence properties one configuration of a file system has. ``bob probe new``
writes an example of a probe file, which declares a property of the user's own and workloads that test it."""

import shlex
from pathlib import Path

import click

from bob.catalogue.probe_files import check_name, probe_names
from bob.cli.commands import Commands
from bob.cli.options import is_given, takes_options
from bob.cli.output import console
from bob.cli.run_directories import check_resumed
from bob.cli.tables import TableOptions, make_table
from bob.errors import Exit, UsageError
from bob.options import option
from bob.run import option_table as table

TEMPLATE = Path(__file__).with_name("new-probe.toml")
_TEMPLATE_NAME = "log-then-rename"


@click.group(cls=Commands, invoke_without_command=True, subcommand_metavar="[new NAME]")
@takes_options
def probe(
    context: click.Context,
    fs: str | None = table.FILE_SYSTEM,
    *,
    fs_options: table.FileSystemOptions,
    options: TableOptions,
) -> Exit | None:
    """Find out which persistence properties a file system has.

    bob records small workloads in a guest, builds the states that a crash may leave, and lets the guest's kernel mount
    them. It judges what each mount shows, prints a table, and keeps everything in a run directory. A cell of the table
    that fails has a witness, a crash state that `bob replay` shows again.

    By default, bob checks the thirteen properties of Table 1. Select some of them with --property, or another set with
    --rows (docs/extend.md). With --probe, bob checks a property of your own instead, from a probe file with its
    workloads. `bob probe new NAME` writes such a file.

    With several --image, each kernel gets a run directory named after the image, inside that of --out. The tables stand
    side by side, and below them the changes from one kernel to the next.

    With --expect, bob compares its table with an earlier result, as `bob compare` does. The exit code is 1 if any
    verdict differs, for worse or for better. The number of explored states does not matter (docs/results.md).

    \b
    Examples:
      bob probe --fs ext4 --mount-opts data=ordered
      bob probe --fs xfs --property append-any --property directory-op --budget 2000
      bob probe --fs ext4 --rows durability --property fsync-file.entry
      bob probe --fs ext4 --mkfs-opts '-O ^has_journal' --out no-journal --json no-journal.json
      bob probe --fs ext4 --image debian-bookworm --image debian-trixie --out two-kernels
      bob probe --fs ext4 --kernel-tree ~/linux
      bob probe --resume no-journal
      bob probe --fs ext4 --expect reference/ext4.json --junit report.xml
      bob probe new log-then-rename
      bob probe --fs ext4 --probe log-then-rename.toml
      bob probe --fs ext4 --probe log-then-rename.toml --property all

    \b
    Exit codes:
      0   every cell has a verdict: ×, holds or skipped; with --expect, the expected one
      1   with --expect: a verdict is not the expected one
      2   invalid usage; nothing was started
      3   done, but some cell is unknown: a guest was lost, or a recording refused
      4+  another error; `bob --help` lists the codes
    """
    if context.invoked_subcommand is not None:
        _check_nothing_asked(context)
        return None  # the subcommand does the work
    if options.resume is not None:
        check_resumed(context)
    elif fs is None:
        raise click.MissingParameter(ctx=context, param=context.command.params[0])
    configurations = [fs_options.of(fs)] if fs is not None else []

    from bob.run.prober import probe, resume  # imported only now, since libvirt and paramiko take a while to load

    systems = [one.fs for one in configurations]
    return make_table("probe", options, configurations, probe, resume, systems=systems)


def _check_nothing_asked(context: click.Context) -> None:
    for parameter in context.command.params:
        if is_given(context, parameter):
            name = context.invoked_subcommand
            raise UsageError(f"{parameter.opts[0]} does not apply to 'bob probe {name}'", hint=f"bob probe {name} NAME")


@probe.command()
def new(name: str = option("NAME")) -> Exit:
    """Write NAME.toml, a commented probe file for a property and workloads of your own.

    The file is complete: you can probe with it at once, and then edit it. docs/extend.md lists everything that a probe
    file can contain. bob never overwrites a file.

    \b
    Examples:
      bob probe new log-then-rename
      bob probe --fs ext4 --probe log-then-rename.toml

    \b
    Exit codes:
      0   the file was written
      2   the file exists, or NAME is not valid for a property
    """
    try:
        check_name(name)
    except ValueError as error:
        raise UsageError(str(error), hint="for example bob probe new log-then-rename") from None
    if name in probe_names():
        raise UsageError(f"{name!r} is a shipped property", hint=f"choose another name, e.g. 'my-{name}'")
    path = Path(f"{name}.toml")
    try:
        with path.open("x") as file:
            file.write(TEMPLATE.read_text().replace(_TEMPLATE_NAME, name))
    except FileExistsError:
        raise UsageError(f"{path} already exists", hint="choose another name, or remove it") from None
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", hint="change to another directory") from None
    console().print(f"wrote {path}; edit it, then run", soft_wrap=True)
    console().print(f"  bob probe --fs ext4 --probe {shlex.quote(str(path))}", soft_wrap=True)
    return Exit.DONE
