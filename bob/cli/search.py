"""``bob search``: every workload within bounds, held against what calls promise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from bob.cli.asking import (
    check_out,
    check_resumed,
    configuration_options,
    host,
    jobs_option,
    request,
    resume_option,
    telling_what_is_kept,
    trying_options,
)
from bob.cli.display import watching
from bob.cli.kernels import asked_images
from bob.cli.options import Known
from bob.cli.output import console, deliver
from bob.errors import Exit
from bob.report.counts import plural
from bob.result import Result, Verdict
from bob.search.bounds import load
from bob.search.workloads import workloads
from bob.subject import configuration, file_systems

DEFAULT_BOUNDS = "small"


@click.command()
@click.option("--fs", type=Known("file system", file_systems), help="File system, e.g. btrfs.")
@configuration_options
@click.option(
    "--ops",
    "length",
    type=click.IntRange(1, 2),
    default=1,
    show_default=True,
    help="Operations in a workload, at most; calls that make durable do not count.",
)
@click.option(
    "--bounds",
    metavar="NAME|FILE",
    default=DEFAULT_BOUNDS,
    show_default=True,
    help="What workloads are made of: bounds that bob ships, or a file of your own.",
)
@click.option("--count", is_flag=True, help="Only say how many workloads there are; no guest is started.")
@jobs_option
@trying_options
@resume_option
@click.pass_context
def search(
    context: click.Context,
    /,
    fs: str | None,
    mount_opts: str,
    mkfs_opts: str,
    device: int,
    length: int,
    bounds: str,
    count: bool,
    out: Path | None,
    resume: Path | None,
    json_file: Path | None,
    quiet: bool,
    **asked: Any,
) -> Exit:
    """Search for workloads after which something is lost that a call has made durable.

    bob makes every workload of so many operations within bounds, and ends each with a call such as fsync. Workloads
    that differ in names alone are one. Each is recorded, and all crashes are explored that come after the call has
    returned. What the call promises must be there then, and all that no operation was to change must be as it was. A
    promise that is broken comes with a witness; the workload is the smallest that breaks it.

    \b
    Examples:
      bob search --fs btrfs --ops 1
      bob search --fs f2fs --ops 2 --count
      bob search --fs ext4 --bounds my-bounds.toml
      bob search --resume bob-runs/20261121T230021-1f2e3d

    \b
    Exit codes:
      0   no promise is broken by what was tried; or only counted
      1   a promise is broken
      2   the command line asks for something that cannot be; nothing was started
      3   none is broken, but of some it is not known: a guest was lost, or a recording refused
      4+  something is missing or went wrong, see `bob --help`
    """
    if resume is not None:
        check_resumed(context)
    found = load(bounds)
    if count:
        for number in range(1, length + 1):
            made = sum(1 for _workload in workloads(found, number))
            console().print(f"{plural(number, 'operation')}: {plural(made, 'workload')}")
        return Exit.DONE
    if resume is None and fs is None:
        raise click.MissingParameter(ctx=context, param=context.command.params[0])

    from bob.run import prober  # libvirt and paramiko take a while to load
    from bob.run.prober import RUNS
    from bob.search.workloads import probes

    if resume is None:
        [asked["image"]] = asked_images({**asked, "images": (asked["image"],)}, quiet=quiet)
    with telling_what_is_kept("search", resume or out, RUNS), watching(quiet=quiet) as progress:
        if resume is not None:
            result, run = prober.resume(resume, host(asked), progress)
        else:
            check_out(out, RUNS)
            wanted = request(configuration(fs or "", mkfs_opts, mount_opts, device), asked)
            progress.step(f"making the workloads within the bounds {found.name}")
            result, run = prober.probe(replace(wanted, probes=probes(found, length)), out, progress)
    deliver(result, run, json_file)
    return _exit(result)


def _exit(result: Result) -> Exit:
    """1 where a promise is broken, else 3 where of one it is not known, else 0."""
    verdicts = {cell.verdict for column in result.configurations for cell in column.properties}
    if Verdict.FAILS in verdicts:
        return Exit.DIFFERENT
    return Exit.UNKNOWN_CELLS if result.has_unknown else Exit.DONE
