"""``bob replay``: shows on a real kernel that the crash state of a witness violates a property. A *witness* is a file
about one crash state that breaks a rule about crashes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from bob.catalogue.request import DEFAULT_IMAGE
from bob.cli.commands import command
from bob.cli.display import watching
from bob.cli.output import present
from bob.errors import Exit, UsageError
from bob.options import Range, option
from bob.report.lines import Trimmed
from bob.run import option_table as table
from bob.run.guest_images import asked_images
from bob.run.option_paths import FOLDER
from bob.run.option_values import WITNESSES
from bob.schema import adapt
from bob.text import plural

if TYPE_CHECKING:
    from bob.run.replay import WitnessReplay


@command()
def replay(
    witnesses: tuple[Path, ...] = option("WITNESS...", "", WITNESSES),
    *,
    times: int = option("--times N", "Mount the crash state N times.", Range(1), 3),
    image: str | None = table.OTHER_IMAGE,
    any_kernel: bool = table.ANY_KERNEL,
    kernel_tree: Path | None = table.KERNEL_TREE,
    guest: str | None = table.GUEST,
    keep: Path | None = option(
        "--keep DIR",
        "For people without bob: write the crash image into DIR, and a script that mounts it and shows the files, and"
        " which bytes are wrong.",
        FOLDER,
    ),
    update: bool = option("--update", "Write the observed files and new evidence into WITNESS."),
    connect: str | None = table.CONNECT,
    json_file: Path | None = table.JSON,
    quiet: bool = table.QUIET,
) -> Exit:
    """Replay WITNESS on a real kernel, to confirm that it violates its property.

    bob builds the crash state of the witness in a guest, mounts it, examines the files and judges them. A witness file
    needs nothing else of its run, so you can send it to others. For a run directory, bob replays all witnesses.

    The guest's kernel may be another of Debian's packages of the same series, such as 6.1.0-57-amd64 for
    6.1.0-56-amd64. The answer names both.

    With --update, a witness whose violation shows every time gets the files of the first mount, and this bob's
    evidence. The result in a run directory gets the same evidence.

    With --kernel-tree or --guest, bob replays on that kernel, even if the witness is from another one. So you see
    whether a patch fixes the violation.

    \b
    Examples:
      bob replay bob-runs/20261121T230021-1f2e3d/witnesses/append-any.json
      bob replay --times 10 append-any.json
      bob replay --quiet bob-runs/20261121T230021-1f2e3d
      bob replay --kernel-tree ~/linux append-any.json
      bob replay --update --times 1 reports/reference/osdi14-linux-6.1
      bob replay --keep for-the-maintainer append-any.json

    \b
    Exit codes:
      0   the violation shows every time
      1   it does not show, or not every time
      2+  another error; `bob --help` lists the codes
    """
    from bob.run.replay import ReplayDocument

    # Imported only now, since libvirt and paramiko take a while to load.
    from bob.run.replay import replay as run_replay

    if keep is not None:
        for written in _kept(witnesses, keep):
            click.echo(f"wrote {written}", err=True)
    if kernel_tree is not None or guest is not None:
        guests = table.GuestOptions(kernel_tree=kernel_tree, connect=connect)
        with watching(quiet=quiet) as progress:
            [image] = asked_images((image or DEFAULT_IMAGE,), guests, guest=guest, progress=progress.step)
        any_kernel = True
    done: list[WitnessReplay] = []
    try:
        with watching(quiet=quiet) as progress:
            for replayed in run_replay(
                witnesses, image=image, any_kernel=any_kernel, connect=connect, times=times, progress=progress
            ):
                done.append(replayed)
                progress.step(f"{replayed.witness}: {_count(replayed)}")
    finally:
        if update:
            keep_found(witnesses, done)
    documents = [adapt(ReplayDocument, replayed) for replayed in done]
    present(json_file, documents[0] if len(documents) == 1 else documents, lambda screen: _print(screen, done))
    return Exit.DONE if all(replayed.confirmed == replayed.times for replayed in done) else Exit.DIFFERENT


def keep_found(witnesses: Sequence[Path], done: Sequence[WitnessReplay]) -> None:
    """Update each witness whose violation showed at every mount: write into it what the replay found. For each run
    directory among ``witnesses``, also update the result files: they quote the evidence (a line of text) of the run's
    witnesses. ``done`` has the results of all replays."""
    from bob.witness import bundle
    from bob.witness.document import updated
    from bob.witness.results import tell_results

    shown = [one for one in done if one.confirmed == one.times]
    bundle.save({Path(one.witness): updated(Path(one.witness), one.found, one.kernel, one.evidence) for one in shown})
    for folder in filter(Path.is_dir, witnesses):
        tell_results(folder)


def _kept(witnesses: tuple[Path, ...], folder: Path) -> tuple[Path, ...]:
    from bob.witness.document import read
    from bob.witness.keep import keep

    if len(witnesses) != 1 or witnesses[0].is_dir():
        raise UsageError("--keep takes one witness", hint="name the file of one witness")
    return keep(read(witnesses[0]), folder)


def _print(screen: Console, done: list[WitnessReplay]) -> None:
    if len(done) == 1:
        _print_whole(screen, done[0])
        return
    for replayed in done:
        screen.print(Text(f"{replayed.witness}: {_count(replayed)}", _style(replayed)), soft_wrap=True)
    shown = sum(replayed.confirmed == replayed.times for replayed in done)
    screen.print(f"{shown} of {len(done)} witnesses show their violation every time")


def _print_whole(screen: Console, replayed: WitnessReplay) -> None:
    screen.print(Text("after the crash and the mount", "bob.heading"))
    for line in replayed.observation_lines:
        screen.print(Trimmed(Padding(Text(line), (0, 0, 0, 2))))
    screen.print()
    if replayed.confirmed:
        screen.print(Trimmed(Text.assemble(("× ", _style(replayed)), replayed.evidence)))
    screen.print(Text(_count(replayed), _style(replayed)), soft_wrap=True)


def _count(replayed: WitnessReplay) -> str:
    times = plural(replayed.times, "mount")
    origin = f" (found on {replayed.found_on})" if replayed.found_on != replayed.kernel else ""
    return f"the violation shows in {replayed.confirmed} of {times}, kernel {replayed.kernel}{origin}"


def _style(replayed: WitnessReplay) -> str:
    return "bob.fails" if replayed.confirmed else "bob.unknown"
