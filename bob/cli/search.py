"""``bob search``: looks for workloads where a crash breaks a promise of the file system. The user gives bounds
for the workloads (such as their length), or a Python file that makes them."""

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
        "Most operations in a workload, without sync calls such as fsync. More than two need --sample, --seconds or"
        " --property.",
        Range(1, 4),
        words=f"1, or with --property {PROPERTY_OPS}",
    ),
    bounds: str | None = option(
        "--bounds NAME|FILE",
        "Bounds of the workloads: shipped ones by name, ace or ace-metadata for those of ACE, or your own file.",
        one_of(bounds_names),
        words=f"{SMALL}, or with --property {SHAPES}",
    ),
    file: Path | None = option(
        "--workload FILE",
        "A Python file that makes the workloads, instead of --bounds. bob runs its workload(fs, choose) on this"
        " machine, once for each sequence of choices.",
        EXISTING_FILE,
    ),
    names: tuple[str, ...] = option(
        "--property",
        "Search for a workload that breaks this property of Table 1, instead of the promises of calls. `all` means each"
        f" property. bob draws workloads until each is broken, or for --seconds ({PROPERTY_SECONDS} by default).",
        known("property", lambda: (*_asked_names(), ALL)),
    ),
    sample: int | None = option(
        "--sample N",
        "Draw N random workloads, by --seed, instead of trying all. Each has exactly --ops operations.",
        Range(1),
    ),
    seconds: int | None = option(
        "--seconds N",
        "Draw random workloads, by --seed, for N seconds. Each has exactly --ops operations.",
        Range(1),
    ),
    shard: tuple[int, int] = table.SHARD,
    count: bool = option("--count", "Only print the number of workloads; start no guest."),
    image: str = table.IMAGE,
    guests: table.GuestOptions,
    guest: str | None = table.GUEST,
    scheduler: str | None = table.SCHEDULER,
    exploration: table.Exploration,
    delivery: table.Delivery,
    resume: Path | None = table.RESUME,
) -> Exit:
    """Search for workloads where a crash loses something durable.

    bob makes every workload of up to --ops operations within the bounds, and ends each with a call such as fsync.
    Workloads that differ only in names count as one. bob records each, and explores the crashes after that call has
    returned. Everything that the call promises must survive, and everything that no operation changed must be as
    before. Violations with one cause, such as the loss of one kind of block, count as one. Their witness is the
    smallest workload. `bob witness export` turns it into a probe file or a case for xfstests.

    With --property, bob draws random workloads for a property of Table 1, with several finishes. It crashes them at any
    time, until one breaks the property. With --sample or --seconds, bob tries only some workloads, so they can be
    longer.

    With --workload, a Python file makes the workloads. Its function workload(fs, choose) calls operations on fs, and
    can choose between values. bob tries every sequence of choices.

    A search runs in lots of workloads. After each lot, it prints its speed and the time left. --resume continues a
    stopped search.

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
      0   no tried workload breaks a promise, or --count
      1   a promise is broken
      2   invalid usage; nothing was started
      3   none is broken, but some are unknown: a guest was lost, or a recording refused
      4+  another error; `bob --help` lists the codes
    """
    if resume is not None:
        check_resumed(context)
    if sample is None and seconds is None and not names and (length or 1) > 2:
        raise UsageError(
            f"there are too many workloads of {length} operations to try all",
            hint="draw some of them with --sample N or --seconds N",
        )
    if sample is not None and seconds is not None:
        raise UsageError("--sample cannot be used with --seconds", hint="leave one out")
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

    from bob.run import search as searching  # imported only now, since libvirt and paramiko take a while to load

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
    return finish(result, run, delivery.json_file, delivery.ci_files)


def _asked_names() -> tuple[str, ...]:
    """Return the names of the properties that a user can choose for a search. The property ``BESIDE`` is not among
    them, since every search tests it. It says that a crash does not damage anything that no operation was to change."""
    return tuple(name for name in probe_names() if name != BESIDE)


def _check_alone(context: click.Context) -> None:
    """Raise UsageError for an option that a user cannot combine with a Python file."""
    hint = "the Python file defines the workloads and their promises"
    for parameter in context.command.params:
        if is_given(context, parameter) and parameter.name in ("length", "bounds", "names"):
            raise UsageError(f"{parameter.opts[0]} cannot be used with --workload", hint=hint)


def _count(wanted: Search) -> Exit:
    space, part, screen = wanted.space(), wanted.part, console()
    if wanted.props and part.sample is None:
        screen.print(f"as many workloads as bob draws in {wanted.seconds} seconds")
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
