"""``bob witness``: the evidence for a × by itself."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from bob.cli.commands import Commands
from bob.cli.display import watching
from bob.cli.options import Known, NewFile, connect_option, image_names, quiet_option
from bob.cli.output import console, write_json, write_text
from bob.errors import Exit


@click.group(cls=Commands)
def witness() -> None:
    """Look at a witness: the crash state that shows a violation, in a file of its own."""


@witness.command()
@click.argument("path", metavar="WITNESS", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--svg", "picture", type=NewFile(), metavar="FILE", help="Draw the time line, too.")
def show(path: Path, picture: Path | None) -> Exit:
    """Tell the story of WITNESS.

    What the program did, what the disk was sent and when, which of that the crash left, what was found after it, and
    one sentence that sums it up. No guest is needed; `bob replay` shows it again on a real kernel.

    \b
    Examples:
      bob witness show bob-runs/20261121T230021-1f2e3d/witnesses/append-any.json
      bob witness show --svg crash.svg append-any.json

    \b
    Exit codes:
      0   the story was told
      8   the file is no witness, or damaged
    """
    from bob.probe_files import shipped_probes
    from bob.report.drawing import svg
    from bob.report.story import print_story
    from bob.witness import read

    found = read(path)
    meaning = shipped_probes((found.property,))[0].property.meaning if found.property else ""
    if picture is not None:
        drawn = svg(found.timeline, found.workload.operations, found.question, found.evidence)
        write_text(picture, drawn + "\n", "--svg")
    print_story(console(), found, meaning, f"bob replay {shlex.quote(str(path))}")
    return Exit.DONE


@witness.command()
@click.argument("path", metavar="WITNESS", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--output", type=NewFile(), metavar="FILE", required=True, help="Where the smaller witness goes.")
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    metavar="N",
    default=100,
    show_default=True,
    help="Mounts an attempt, about.",
)
@click.option(
    "--image", type=Known("guest image", image_names), help="Another guest image; its kernel must be the witness's."
)
@connect_option
@quiet_option
def shrink(path: Path, output: Path, budget: int, image: str | None, connect: str | None, quiet: bool) -> Exit:
    """Make WITNESS smaller.

    Leaves operations out, and parts of the initial tree, records what is left, and keeps what still violates the
    property. Then it looks for the crash state that departs least from a clean one, in which the disk has just the
    first of what it was sent. This takes a guest and some minutes.

    \b
    Examples:
      bob witness shrink --output small.json append-any.json

    \b
    Exit codes:
      0   done; the witness may be as small as it was
      2+  something is missing or went wrong, see `bob --help`
    """
    from bob.shrink import shrink as run_shrink  # libvirt and paramiko take a while to load

    with watching(quiet=quiet) as progress:
        done = run_shrink(path, image=image, connect=connect, budget=budget, progress=progress)
    write_json(output, done.document)
    screen = console()
    for name, before, after in (
        ("operations", done.before.operations, done.after.operations),
        ("in the initial tree", done.before.setup, done.after.setup),
        ("writes off a clean prefix", done.before.departure, done.after.departure),
    ):
        screen.print(f"{name:<26} {before} -> {after}")
    return Exit.DONE
