"""``bob matrix``: tests the persistence properties of a set of configurations (file systems with their options), and
prints the table."""

from dataclasses import replace
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
from bob.run.requests import with_rows_of
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

    The set osdi14 has the sixteen configurations of Table 1 of "All File Systems Are Not Created Equal". The set modern
    has today's file systems, with options that change what a crash leaves, and plain has each of them with the defaults
    of mkfs and mount. The set sync-table checks what each way to sync promises, as Table 2 of EXPLODE (OSDI 2006) does
    (docs/sync-table.md). A TOML file of your own can list any others (docs/formats.md). bob skips a configuration that
    mkfs or the kernel refuses, and the table says why. The run directory has one run directory for each configuration.

    With --rows, bob checks other properties than those of Table 1: the order of changes on the disk, the durability of
    each call, or the size of atomic changes (docs/extend.md).

    With several --image, each image gets such a run directory, named after it, inside that of --out. Below the tables,
    bob prints the changes from one kernel to the next.

    With --expect, bob compares its table with an earlier result, as `bob compare` does. The exit code is 1 if any
    verdict differs, for worse or for better. The number of explored states does not matter (docs/results.md).

    \b
    Examples:
      bob matrix --set osdi14
      bob matrix --set my-kernels-options.toml --out overnight --budget 1000
      bob matrix --set modern --image debian-bookworm --image debian-trixie
      bob matrix --set osdi14 --rows durability
      bob matrix --set sync-table
      bob matrix --set my-set.toml --expect reference/result.json --junit report.xml
      bob matrix --set osdi14 --shard 1/4 --out part-1
      bob matrix --set osdi14 --scheduler tcp://server:8786
      bob matrix --resume overnight
      bob show overnight/ext4-ordered

    \b
    Exit codes:
      0   every cell has a verdict: ×, holds or skipped; with --expect, the expected one
      1   with --expect: a verdict is not the expected one
      2   invalid usage; nothing was started
      3   done, but some cell is unknown: a guest was lost, or a recording refused
      4+  another error; `bob --help` lists the codes
    """
    if options.resume is not None:
        check_resumed(context)
    elif chosen is None:
        raise click.MissingParameter(ctx=context, param=context.command.params[0])
    else:
        chosen, questions = with_rows_of(chosen.part(*shard) if shard != table.WHOLE else chosen, options.questions)
        options = replace(options, questions=questions)

    from bob.run import matrix as columns  # imported only now, since libvirt and paramiko take a while to load

    def probe(first: ProbeRequest, out: Path | None, progress: Progress) -> tuple[Result, Path]:
        assert chosen is not None
        return columns.matrix(chosen, first, out, progress)

    configurations = chosen.configurations if chosen is not None else ()
    return make_table("matrix", options, configurations, probe, columns.resume, scheduler=scheduler)
