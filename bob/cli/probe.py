"""``bob probe``: probes one configuration of a file system."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

import click

from bob.cli.display import watching
from bob.cli.ending import Interrupted
from bob.cli.options import (
    DEFAULT_IMAGE,
    Known,
    NewFolder,
    Size,
    check_new_folder,
    connect_option,
    image_names,
    json_option,
    quiet_option,
)
from bob.cli.output import deliver
from bob.config import DEFAULT_BUDGET, FILE_SYSTEMS, Configuration, configuration
from bob.errors import Exit, UsageError

ATOMIC_WRITES = ("8", "512", "4096", "16384")


def property_names() -> Iterable[str]:
    """The persistence properties that there are probes for."""
    from bob.probe_files import probe_names

    return probe_names()


@click.command()
@click.option("--fs", type=Known("file system", lambda: FILE_SYSTEMS), required=True, help="File system, e.g. ext4.")
@click.option("--mount-opts", metavar="OPTIONS", default="", help="Mount options, e.g. data=ordered.")
@click.option("--mkfs-opts", metavar="OPTIONS", default="", help="More options for mkfs, e.g. '-O ^has_journal'.")
@click.option("--device", type=Size(), default=0, help="Size of the probed device, e.g. 64M. [default: by file system]")
@click.option(
    "--property",
    "properties",
    type=Known("property", property_names),
    multiple=True,
    help="Ask only this property; may be repeated. [default: all of them]",
)
@click.option(
    "--image",
    type=Known("guest image", image_names),
    default=DEFAULT_IMAGE,
    show_default=True,
    help="The guest image, and with it the kernel.",
)
@connect_option
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    metavar="N",
    default=DEFAULT_BUDGET,
    show_default=True,
    help="Crash states per workload, at most.",
)
@click.option("--seed", type=int, metavar="N", default=1, show_default=True, help="Chooses the random crash states.")
@click.option(
    "--write-cache",
    type=click.Choice(["volatile", "none"]),
    default="volatile",
    show_default=True,
    help="The disk's cache; without one, a write is durable when it completes.",
)
@click.option(
    "--atomic-write",
    type=click.Choice(ATOMIC_WRITES),
    default="512",
    show_default=True,
    help="Bytes that the disk writes as a whole.",
)
@click.option("--out", type=NewFolder(), metavar="DIR", help="The run directory. [default: a new one in bob-runs]")
@json_option
@quiet_option
def probe(
    fs: str,
    mount_opts: str,
    mkfs_opts: str,
    device: int,
    properties: tuple[str, ...],
    image: str,
    connect: str | None,
    budget: int,
    seed: int,
    write_cache: str,
    atomic_write: str,
    out: Path | None,
    json_file: Path | None,
    quiet: bool,
) -> Exit:
    """Find out which persistence properties a file system has.

    Records small workloads on it in a guest, makes the states that a crash may leave, lets the guest's kernel mount
    each, and judges what is there. All of it is kept in a run directory; a cell that fails comes with a witness that
    `bob replay` shows again.

    \b
    Examples:
      bob probe --fs ext4 --mount-opts data=ordered
      bob probe --fs ext4 --property append-any --property directory-op --budget 2000
      bob probe --fs ext4 --mkfs-opts '-O ^has_journal' --out no-journal --json no-journal.json

    \b
    Exit codes:
      0   every cell has a verdict: × or holds, or was skipped
      2   the command line asks for something that cannot be; nothing was started
      3   done, but some cell is unknown: a guest was lost, or a recording refused
      4+  something is missing or went wrong, see `bob --help`
    """
    made = _configuration(fs, mkfs_opts, mount_opts, device)

    from bob.prober import RUNS, ProbeRequest  # libvirt and paramiko take a while to load
    from bob.prober import probe as run_probe

    if out is None:
        check_new_folder(RUNS / "new", "--out")
    earlier = set(RUNS.glob("*"))
    request = ProbeRequest(
        configuration=made,
        properties=tuple(dict.fromkeys(properties)),
        image=image,
        connect=connect,
        budget=budget,
        seed=seed,
        write_cache=write_cache,
        atomic_write_bytes=int(atomic_write),
        out=out,
    )
    try:
        with watching(quiet=quiet) as progress:
            result, run = run_probe(request, progress)
    except KeyboardInterrupt:
        run_folders = [out] if out else sorted(set(RUNS.glob("*")) - earlier)
        raise Interrupted(_what_is_kept(run_folders)) from None
    deliver(result, run, json_file)
    return Exit.UNKNOWN_CELLS if result.has_unknown else Exit.DONE


def _what_is_kept(folders: list[Path]) -> str | None:
    """What can be done with a run that was interrupted, if it is clear which that is."""
    started = [folder for folder in folders if (folder / "run.json").exists()]
    if len(started) != 1:
        return None
    return f"what is finished is kept; `bob judge {shlex.quote(str(started[0]))}` judges it"


def _configuration(fs: str, mkfs_opts: str, mount_opts: str, device: int) -> Configuration:
    made = configuration(fs, mkfs_opts, mount_opts, device)
    try:
        _ = made.mkfs
    except ValueError as error:
        raise UsageError(f"--mkfs-opts: {str(error).lower()}", hint="quote them as for a shell") from None
    return made
