"""``bob search``: looks for a workload, within bounds or of a Python file, that breaks a promise."""

from __future__ import annotations

from pathlib import Path

import click

from bob.catalogue.probe_files import probe_names
from bob.cli.ci import finish
from bob.cli.commands import command
from bob.cli.display import watching
from bob.cli.options import is_given
from bob.cli.output import console
from bob.cli.run_directories import check_resumed, telling_what_is_kept
from bob.errors import Exit, UsageError
from bob.options import Range, option
from bob.run import option_table as table
from bob.run.guest_images import asked_images
from bob.run.option_paths import EXISTING_FILE
from bob.run.option_values import ALL, known, one_of
from bob.run.requests import request
from bob.search.ace import Ace
from bob.search.space import BESIDE, Part
from bob.search.spaces import PROPERTY_OPS, PROPERTY_SECONDS, SHAPES, SMALL, Search, bounds_names, search_of_file
from bob.search.spaces import search as asked_search
from bob.text import plural


@command()
def search(
    context: click.Context,
    fs: str | None = table.FILE_SYSTEM,
    *,
    options: table.FileSystemOptions,
    length: int | None = option(
        "--ops",
        "Operations in a workload, at most; calls that make durable do not count. More than two only with --sample,"
        " --seconds or --property.",
        Range(1, 4),
        words=f"1, or with --property {PROPERTY_OPS}",
    ),
    bounds: str | None = option(
        "--bounds NAME|FILE",
        "What workloads are made of: bounds that bob ships, ace or ace-metadata for those of ACE, or a file of your"
        " own.",
        one_of(bounds_names),
        words=f"{SMALL}, or with --property {SHAPES}",
    ),
    file: Path | None = option(
        "--workload FILE",
        "A Python file that makes the workloads, in place of --bounds: bob runs its workload(fs, choose) here, once"
        " for each sequence of choices.",
        EXISTING_FILE,
    ),
    names: tuple[str, ...] = option(
        "--property",
        "Search for a workload that breaks this property of Table 1, in place of what calls promise, or, with all,"
        " each of them. Workloads are drawn until all of them are broken, or --seconds have passed"
        f" ({PROPERTY_SECONDS} by default).",
        known("property", lambda: (*_asked_names(), ALL)),
    ),
    sample: int | None = option(
        "--sample N",
        "Draw so many workloads, by --seed, in place of going through all; each has as many operations as --ops says.",
        Range(1),
    ),
    seconds: int | None = option(
        "--seconds N",
        "Draw workloads, by --seed, until so much time has passed; each has as many operations as --ops says.",
        Range(1),
    ),
    shard: tuple[int, int] = table.SHARD,
    count: bool = option("--count", "Only say how many workloads there are; no guest is started."),
    image: str = table.IMAGE,
    guests: table.GuestOptions,
    guest: str | None = table.GUEST,
    scheduler: str | None = table.SCHEDULER,
    exploration: table.Exploration,
    delivery: table.Delivery,
    resume: Path | None = table.RESUME,
) -> Exit:
    """Search for workloads after which something is lost that a call has made durable.

    bob makes every workload of so many operations within bounds, and ends each with a call such as fsync. Workloads
    that differ in names alone are one. Each is recorded, and all crashes are explored that come after the call has
    returned. What the call promises must be there then, and all that no operation was to change must be as it was.
    Violations that have one cause, the loss of a block of one sort, are told as one, with a witness of the smallest
    workload that shows it. `bob witness export` makes a probe file of that, or a case for xfstests.

    With --property, workloads are drawn that ask for a property of Table 1, with several finishes, and crashed at any
    time, until one breaks it. With --sample or --seconds, some workloads are drawn, so that they may be longer.

    With --workload, a Python file makes the workloads: def workload(fs, choose) calls operations on fs, and may choose.
    bob tries what it does for every sequence of choices.

    A search goes on lot by lot, and tells after each how fast it is and how long it will take. --resume goes on with
    one that was stopped.

    \b
    Examples:
      bob search --fs btrfs --ops 1
      bob search --fs f2fs --ops 2 --count
      bob search --fs f2fs --ops 2 --shard 1/8
      bob search --fs btrfs --ops 3 --sample 200 --seed 7
      bob search --fs ext4 --ops 3 --seconds 600 --seed 7
      bob search --fs xfs --property append-any
      bob search --fs ext4 --mount-opts data=journal --property all
      bob search --fs f2fs --ops 1 --bounds ace
      bob search --fs ext4 --bounds my-bounds.toml
      bob search --fs ext4 --workload my-workload.py
      bob search --fs f2fs --ops 1 --junit report.xml
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
    if sample is None and seconds is None and not names and (length or 1) > 2:
        raise UsageError(
            f"there are too many workloads of {length} operations to try all",
            hint="--sample N draws some, --seconds N as many as that time allows",
        )
    if sample is not None and seconds is not None:
        raise UsageError("--sample says how many workloads are drawn, --seconds for how long", hint="leave one out")
    part = Part(*shard, sample, exploration.seed)
    if file is not None:
        _check_alone(context)
        wanted = search_of_file(file, part, seconds)
    else:
        names = tuple(dict.fromkeys(one for name in names for one in (_asked_names() if name == ALL else (name,))))
        wanted = asked_search(bounds, names, length, part, seconds)
    if count:
        return _count(wanted)
    if resume is None and fs is None:
        raise click.MissingParameter(ctx=context, param=context.command.params[0])

    from bob.run import search as searching  # libvirt and paramiko take a while to load

    with telling_what_is_kept("search", resume or delivery.out), watching(quiet=delivery.quiet) as progress:
        if resume is not None:
            result, run = searching.resume(resume, guests.host(scheduler), progress)
        else:
            made, how = options.of(fs or ""), exploration.completion
            [image] = asked_images(
                (image,), guests, [made.fs], completion=how, guest=guest, scheduler=scheduler, progress=progress.step
            )
            asked = request(made, exploration, image, guests.host(scheduler))
            result, run = searching.search(wanted, asked, delivery.out, progress)
    return finish(result, run, delivery.json_file, delivery.junit_file)


def _asked_names() -> tuple[str, ...]:
    """Return the properties to search for; each search asks for ``BESIDE`` anyway."""
    return tuple(name for name in probe_names() if name != BESIDE)


def _check_alone(context: click.Context) -> None:
    """Raise UsageError for an option that contradicts the Python file."""
    hint = "the Python file says what a workload does, and what is promised of it"
    for parameter in context.command.params:
        if is_given(context, parameter) and parameter.name in ("length", "bounds", "names"):
            raise UsageError(f"{parameter.opts[0]} does not go with --workload", hint=hint)


def _count(wanted: Search) -> Exit:
    space, part, screen = wanted.space(), wanted.part, console()
    if wanted.props and part.sample is None:
        screen.print(f"as many as are drawn in {wanted.seconds} seconds")
    elif part.sample is not None or part.shards > 1 or wanted.is_python:
        screen.print(plural(sum(1 for _workload in part.of(space, wanted.length)), "workload"))
        for words in space.notes:
            screen.print(words)
    else:
        for number in range(1, wanted.length + 1):
            made = sum(1 for _workload in space.every(number))
            by_ace = f" (ACE counts {space.count(number):,})" if isinstance(space, Ace) else ""
            screen.print(f"{plural(number, 'operation')}: {plural(made, 'workload')}{by_ace}")
    return Exit.DONE
