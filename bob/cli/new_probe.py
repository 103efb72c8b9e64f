"""``bob probe new``: writes a probe file to begin with."""

from __future__ import annotations

import shlex
from pathlib import Path

from bob.catalogue.probe_files import check_name, probe_names
from bob.cli.commands import command
from bob.cli.output import console
from bob.errors import Exit, UsageError
from bob.options import option

TEMPLATE = Path(__file__).with_name("new-probe.toml")
_NAME = "log-then-rename"
"""What the property is called in the template."""


@command()
def new(name: str = option("NAME")) -> Exit:
    """Write NAME.toml, a probe file with comments, for a property and workloads of your own.

    It is whole as it is, and can be probed at once; change it to ask what you want to know. docs/write-a-probe.md has
    everything that can stand in it. A file that is there is never overwritten.

    \b
    Examples:
      bob probe new log-then-rename
      bob probe --fs ext4 --probe log-then-rename.toml

    \b
    Exit codes:
      0   the file was written
      2   there is such a file, or the name cannot be a property's
    """
    try:
        check_name(name)
    except ValueError as error:
        raise UsageError(str(error), hint="for example bob probe new log-then-rename") from None
    if name in probe_names():
        raise UsageError(f"{name!r} is a shipped property", hint=f"choose another name, e.g. 'my-{name}'")
    path = Path(f"{name}.toml")
    try:
        with path.open("x") as file:
            file.write(TEMPLATE.read_text().replace(_NAME, name))
    except FileExistsError:
        raise UsageError(f"{path} is there already", hint="choose another name, or remove it") from None
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", hint="go to another directory") from None
    screen = console()
    screen.print(f"wrote {path}; change it, then", soft_wrap=True)
    screen.print(f"  bob probe --fs ext4 --probe {shlex.quote(str(path))}", soft_wrap=True)
    return Exit.DONE
