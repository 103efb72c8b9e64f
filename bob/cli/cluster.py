"""``bob cluster``: finds out whether a replicated service survives a crash of all its nodes."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from bob.catalogue.request import CheckPlace
from bob.cli.app import DefaultRun, resume_program, write_example
from bob.cli.ci import EARLIER, check_earlier, finish
from bob.cli.display import watching
from bob.cli.options import completed
from bob.cli.run_directories import check_resumed, telling_what_is_kept
from bob.errors import Exit, UsageError
from bob.options import option
from bob.program.folder import CLUSTER
from bob.report.comparison.sides import Side
from bob.run import option_table as table
from bob.run.option_values import CLUSTERS
from bob.run.requests import RECORDED_ON, cluster_requests

NAME: str | None = option("[CLUSTER]", "", CLUSTERS)
TEMPLATE = "toy"


class ClusterCommands(DefaultRun):
    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        return [*super().shell_complete(ctx, incomplete), *completed(CLUSTERS, ctx, incomplete)]


@click.group(cls=ClusterCommands, context_settings={"help_option_names": ["-h", "--help"]})
def cluster() -> None:
    """Find out whether a cluster survives a crash of all its nodes. `bob cluster NAME` is short for `bob cluster run
    NAME`."""


@cluster.command()
def run(
    context: click.Context,
    *,
    name: str | None = NAME,
    systems: tuple[str, ...] = table.NODE_FILE_SYSTEMS,
    options: table.FileSystemOptions,
    image: str = table.IMAGE,
    guests: table.GuestOptions,
    exploration: table.ClusterExploration,
    checks: CheckPlace = table.CLUSTER_CHECKS,
    delivery: table.Delivery,
    resumed: Path | None = table.RESUME,
    expected: Side | None = EARLIER,
) -> Exit:
    """Find out whether CLUSTER survives a crash of all its nodes.

    CLUSTER is a cluster that bob ships, by name, or a folder with cluster.toml, node, ready, workload and check. All
    nodes run in one guest, each with a network and a disk of its own. bob records the client's workload, its output,
    and the writes to all disks. A crash hits all nodes at one instant, and leaves a legal crash state of each disk. bob
    then starts the nodes again, and runs the client's checker. Its exit code is 0 if all is well, 10 if acknowledged
    data is lost, 11 if data is corrupt, and 13 if the cluster does not answer.

    \b
    Examples:
      bob cluster toy --fs ext4
      bob cluster run ./mine --fs ext4,xfs,btrfs --budget 20
      bob cluster --resume bob-runs/20261121T230021-1f2e3d

    \b
    Exit codes:
      0   safe on all file systems, as far as explored
      1   vulnerable on one of them; with --expect: a vulnerability is new or gone
      2   the cluster cannot run, or its checker cannot be trusted; nothing was explored
      3   unknown on one of them
      4+  another error; `bob --help` lists the codes
    """
    return _run(
        context,
        name,
        systems,
        options,
        image,
        guests,
        exploration,
        checks,
        delivery,
        resumed,
        expected,
        only_durable=False,
    )


@cluster.command("power-cut")
def power_cut(
    context: click.Context,
    *,
    name: str | None = NAME,
    systems: tuple[str, ...] = table.NODE_FILE_SYSTEMS,
    options: table.FileSystemOptions,
    image: str = table.IMAGE,
    guests: table.GuestOptions,
    exploration: table.ClusterExploration,
    checks: CheckPlace = table.CLUSTER_CHECKS,
    delivery: table.Delivery,
    resumed: Path | None = table.RESUME,
    expected: Side | None = EARLIER,
) -> Exit:
    """Cut the power of all nodes of CLUSTER at one instant.

    This command is like `bob cluster run`, but faster. Every disk keeps only what was durable at the instant of the
    crash. bob tries instants just before a write becomes durable. As a control, it also tries the state with every
    write.

    \b
    Examples:
      bob cluster power-cut ./mine --fs ext4

    \b
    Exit codes:
      0   safe on all file systems, as far as explored
      1   vulnerable on one of them; with --expect: a vulnerability is new or gone
      2   the cluster cannot run, or its checker cannot be trusted; nothing was explored
      3   unknown on one of them
      4+  another error; `bob --help` lists the codes
    """
    return _run(
        context,
        name,
        systems,
        options,
        image,
        guests,
        exploration,
        checks,
        delivery,
        resumed,
        expected,
        only_durable=True,
    )


@cluster.command()
def new(name: str = option("NAME")) -> Exit:
    """Write the folder NAME, an example cluster with three nodes.

    The example runs unchanged: it is the cluster `toy`. Replace its scripts with those of your own cluster. bob never
    overwrites a folder.

    \b
    Examples:
      bob cluster new mine
      bob cluster power-cut ./mine --fs ext4

    \b
    Exit codes:
      0   the folder was written
      2   a file or folder NAME exists
    """
    template, skipped = CLUSTER.folders()[TEMPLATE], shutil.ignore_patterns("__pycache__")
    return write_example(
        Path(name), lambda folder: shutil.copytree(template, folder, ignore=skipped), "cluster power-cut"
    )


def _run(
    context: click.Context,
    name: str | None,
    systems: Sequence[str],
    options: table.FileSystemOptions,
    image: str,
    guests: table.GuestOptions,
    exploration: table.ClusterExploration,
    checks: CheckPlace,
    delivery: table.Delivery,
    resumed: Path | None,
    expected: Side | None,
    *,
    only_durable: bool,
) -> Exit:
    if resumed is not None:
        check_resumed(context)
        return resume_program("cluster", resumed, guests.host(), delivery, expected)
    if name is None:
        raise UsageError("no cluster given", hint=CLUSTER.hint)
    asked = CLUSTER.named(name)
    if not systems:
        raise UsageError("missing option '--fs'", hint=f"for example --fs {RECORDED_ON}")
    if options.stack or options.missing or options.lost:
        raise UsageError(
            "layers cannot be used with a cluster", hint="leave out --stack, --without-disk and --lose-disk"
        )

    from bob.run.programs import try_program  # imported only now, since libvirt and paramiko take a while to load

    with telling_what_is_kept("cluster", delivery.out), watching(quiet=delivery.quiet) as progress:
        requests = cluster_requests(
            asked,
            systems,
            options,
            exploration,
            image,
            guests,
            only_durable=only_durable,
            checks=checks,
            progress=progress.step,
        )
        check_earlier(expected, asked.name, [one.configuration.name for one in requests])
        answers, folder = try_program(asked, requests, delivery.out, progress)
    return finish(answers, folder, delivery.json_file, delivery.ci_files, expected)
