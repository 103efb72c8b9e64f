"""Paths and commands as a user types them in the current directory. A *witness* is a file about one crash state that
breaks a property. A user of ./run may lack ``bob`` in PATH, so ./run says how it was called."""

import os
import shlex
from pathlib import Path

CALLED_AS = "BOB_CALLED_AS"


def called() -> str:
    """Return the word of a shell that calls bob, such as "./run"."""
    return shlex.quote(os.environ.get(CALLED_AS) or "bob")


def witness_command(run: Path, witness: str | None) -> str:
    """Return the command that shows the crash of the witness ``witness`` again, for a shell in the current directory.
    The path ``witness`` is relative to the folder ``run``. Without ``witness``, return an empty text."""
    return f"{called()} replay {shlex.quote(str(nearby(run / witness)))}" if witness else ""


def nearby(path: Path) -> Path:
    """Return ``path`` relative to the current directory if it is inside, otherwise the full path."""
    path, here = Path(os.path.normpath(Path.cwd() / path)), Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
