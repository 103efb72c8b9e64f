"""``bob matrix``: probes a set of configurations, and prints the table."""

from __future__ import annotations

from pathlib import Path

import click

from bob.answer.result import Result
from bob.catalogue.request import ProbeRequest
from bob.cli.commands import command
from bob.cli.run_directories import check_resumed
from bob.cli.tables import TableOptions, make_table
from bob.errors import Exit
from bob.options import option
from bob.progress import Progress
from bob.run import option_table as table
from bob.run.option_values import SET
from bob.subject import ConfigurationSet


@command()
def matrix(
    context: click.Context,
    chosen: ConfigurationSet | None = option("--set NAME|FILE", "The configurations to probe, e.g. osdi14.", SET),
    shard: tuple[int, int] = table.SHARD,
    *,
    options: TableOptions,
    scheduler: str | None = table.SCHEDULER,
) -> Exit:
    """Probe a set of configurations, one after the other, and print the table.

    The set osdi14 has the sixteen configurations of Table 1 of "All File Systems Are Not Created Equal", the set modern
    file systems of today, plain each of these as mkfs and mount make it; a TOML file of your own can name any others
    (docs/formats.md). A configuration that mkfs or the kernel refuse is skipped, and the table says why. The run
    directory has a folder for each configuration, which is a run directory of its own.

    --rows asks other properties than those of Table 1: which kinds of change are persisted before which, what each call
    makes durable, or up to which size changes are whole (docs/extend.md).

    With several --image, each has such a run directory, named after it, in the one that --out names; below their
    tables stands what changed from one kernel to the next.

    With --expect, bob holds its table against a result that was kept, as `bob compare` does: exit code 1 where a cell
    is worse, and where it is better, too. The number of explored states makes no difference (docs/results.md).

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
    if options.resume is not None:
        check_resumed(context)
    elif chosen is None:
        raise click.MissingParameter(ctx=context, param=context.command.params[0])
    elif shard != table.WHOLE:
        chosen = chosen.part(*shard)

    from bob.run import matrix as columns  # libvirt and paramiko take a while to load

    def probe(first: ProbeRequest, out: Path | None, progress: Progress) -> tuple[Result, Path]:
        assert chosen is not None
        return columns.matrix(chosen, first, out, progress)

    configurations = chosen.configurations if chosen is not None else ()
    return make_table("matrix", options, configurations, probe, columns.resume, scheduler=scheduler)
