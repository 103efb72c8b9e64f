"""Where things are, as it is best written in this directory."""

from __future__ import annotations

import os
import shlex
from pathlib import Path


def witness_command(run: Path, witness: str) -> str:
    """The command that shows a witness again, to be pasted into a shell in this directory."""
    return f"bob replay {shlex.quote(str(nearby(run / witness)))}"


def nearby(path: Path) -> Path:
    """``path`` as it is best written here: from this directory on where it is inside, else in full."""
    path, here = Path(os.path.normpath(Path.cwd() / path)), Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
