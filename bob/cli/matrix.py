"""``bob matrix``: probes a set of configurations, and prints the table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from bob.cli.asking import (
    check_out,
    check_resumed,
    host,
    probing_options,
    request,
    row_names,
    scheduler_option,
    telling_what_is_kept,
)
from bob.cli.ci import check_expected, conclude
from bob.cli.commands import Command
from bob.cli.display import watching
from bob.cli.kernels import asked_images, on_kernels
from bob.cli.options import Files, Shard
from bob.cli.output import deliver
from bob.errors import Exit
from bob.guest.capacity import check_device
from bob.report.comparison.sides import Side
from bob.subject import ConfigurationSet, load_set, set_names


class Set(Files):
    """A shipped set of configurations, or the TOML file of one."""

    name = "set"

    def __init__(self) -> None:
        super().__init__(set_names)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ConfigurationSet:
        """The set, read."""
        return value if isinstance(value, ConfigurationSet) else load_set(value)


@click.command(cls=Command)
@click.option("--set", "chosen", type=Set(), metavar="NAME|FILE", help="The configurations to probe, e.g. osdi14.")
@click.option(
    "--shard",
    type=Shard(),
    default="1/1",
    help="Only the Kth of N parts of the configurations, in a run of its own; bob merge puts them together."
    " [default: all]",
)
@probing_options
@scheduler_option
@click.pass_context
def matrix(
    context: click.Context,
    /,
    chosen: ConfigurationSet | None,
    shard: tuple[int, int],
    out: Path | None,
    resume: Path | None,
    json_file: Path | None,
    junit_file: Path | None,
    expected: Side | None,
    quiet: bool,
    **asked: Any,
) -> Exit:
    """Probe a set of configurations, one after the other, and print the table.

    The set osdi14 has the sixteen configurations of Table 1 of "All File Systems Are Not Created Equal", the set modern
    file systems of today, plain each of these as mkfs and mount make it; a TOML file of your own can name any others
    (docs/formats.md). A configuration that mkfs or the kernel refuse is skipped, and the table says why. The run
    directory has a folder for each configuration, which is a run directory of its own.

    --rows asks other properties than those of Table 1: which kinds of change are persisted before which, what each call
    makes durable, or up to which size changes are whole (docs/finer-tables.md).

    With several --image, each has such a run directory, named after it, in the one that --out names; below their
    tables stands what changed from one kernel to the next.

    With --expect, bob holds its table against a result that was kept, as `bob compare` does: exit code 1 where a cell
    is worse, and where it is better, too. The number of explored states makes no difference (docs/ci.md).

    \b
    Examples:
      bob matrix --set osdi14
      bob matrix --set my-kernels-options.toml --out overnight --budget 1000
      bob matrix --set modern --image debian-bookworm --image debian-trixie
      bob matrix --set osdi14 --rows durability
      bob matrix --set my-set.toml --expect reference/result.json --junit report.xml
      bob matrix --set osdi14 --shard 1/4 --out part-1
      bob matrix --set osdi14 --scheduler tcp://server:8786
      bob matrix --resume overnight
      bob show overnight/ext4-ordered

    \b
    Exit codes:
      0   every cell has a verdict: × or holds, or was skipped; with --expect, the expected one
      1   with --expect: a verdict is not the expected one
      2   the command line asks for something that cannot be; nothing was started
      3   done, but some cell is unknown: a guest was lost, or a recording refused
      4+  something is missing or went wrong, see `bob --help`
    """
    if resume is not None:
        check_resumed(context)
    elif chosen is None:
        raise click.MissingParameter(ctx=context, param=context.command.params[0])
    elif shard != (1, 1):
        chosen = chosen.part(*shard)

    for made in chosen.configurations if chosen is not None else ():
        check_device(made)
    if chosen is not None and resume is None:
        asks = ((made.name, row_names(request(made, asked))) for made in chosen.configurations)
        check_expected(expected, asks)

    from bob.judge.searched import check, keep
    from bob.run import matrix as table  # libvirt and paramiko take a while to load
    from bob.run.prober import RUNS

    check(resume or out or RUNS / "new")
    asked["images"] = images = asked_images(asked, quiet=quiet)
    if chosen is not None and len(images) > 1:
        wanted = request(chosen.configurations[0], asked)
        return on_kernels(
            "matrix",
            images,
            out,
            lambda image, folder, progress: table.matrix(chosen, replace(wanted, image=image), folder, progress),
            json_file,
            junit_file,
            expected,
            builds=asked["scheduler"] is None,
            quiet=quiet,
        )
    with telling_what_is_kept("matrix", resume or out, RUNS), watching(quiet=quiet) as progress:
        if chosen is None or resume is not None:
            assert resume is not None
            result, run = table.resume(resume, host(asked), progress)
        else:
            check_out(out, RUNS)
            result, run = table.matrix(chosen, request(chosen.configurations[0], asked), out, progress)
    result = keep(run, result)
    deliver(result, run, json_file)
    return conclude([(result, run)], json_file, junit_file, expected)
