"""``bob replay``: shows on a real kernel that a witness does violate its property."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from bob.cli.display import watching
from bob.cli.options import Known, connect_option, image_names, json_option, quiet_option
from bob.cli.output import console, is_stdout, write_json
from bob.errors import Exit
from bob.report.counts import plural
from bob.report.trimmed import Trimmed

if TYPE_CHECKING:
    from bob.replay import Replayed


@click.command()
@click.argument("witness", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--times", type=click.IntRange(min=1), metavar="N", default=3, show_default=True, help="How often.")
@click.option(
    "--image", type=Known("guest image", image_names), help="Another guest image; its kernel must be the witness's."
)
@connect_option
@json_option
@quiet_option
def replay(
    witness: Path, times: int, image: str | None, connect: str | None, json_file: Path | None, quiet: bool
) -> Exit:
    """Show on a real kernel that WITNESS does violate its property.

    Builds the crash state of the witness in a guest, mounts it, looks at what is there, and judges it. A witness is a
    file of its own: it can be sent to someone else, with nothing of the run that found it.

    \b
    Examples:
      bob replay bob-runs/20261121T230021-1f2e3d/witnesses/append-any.json
      bob replay --times 10 append-any.json

    \b
    Exit codes:
      0   the violation shows every time
      1   it does not show, or not every time
      2+  something is missing or went wrong, see `bob --help`
    """
    from bob.replay import replay as run_replay  # libvirt and paramiko take a while to load

    with watching(quiet=quiet) as progress:
        replayed = run_replay(witness, image=image, connect=connect, times=times, progress=progress)
    if json_file is not None:
        write_json(json_file, {"schema": "bob.replay/1", **asdict(replayed)})
    if not is_stdout(json_file):
        _print(console(), replayed)
    return Exit.DONE if replayed.confirmed == replayed.times else Exit.DIFFERENT


def _print(screen: Console, replayed: Replayed) -> None:
    """What is there, then what that means."""
    screen.print(Text("after the crash and the mount", "bob.heading"))
    for line in replayed.observation_lines:
        screen.print(Trimmed(Padding(Text(line), (0, 0, 0, 2))))
    screen.print()
    mark = "bob.fails" if replayed.confirmed else "bob.unknown"
    if replayed.confirmed:
        screen.print(Trimmed(Text.assemble(("× ", mark), replayed.evidence)))
    screen.print(Text(f"the violation shows in {replayed.confirmed} of {plural(replayed.times, 'mount')}", mark))
