"""Whether a folder can be made and written, before work is begun whose result it is to hold."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from bob.errors import UsageError


def check_new_folder(path: Path, option: str) -> None:
    """Raise UsageError if the folder ``path`` can neither be made nor is there and empty."""
    if path.is_dir() and os.access(path, os.R_OK) and any(path.iterdir()):
        raise UsageError(f"{option}: {path} is not empty", hint="every run has a directory of its own")
    check_folder(path, option)


def check_folder(path: Path, option: str) -> None:
    """Raise UsageError if there is no folder ``path`` to write to, and none can be made."""
    if path.exists() and not path.is_dir():
        raise UsageError(f"{option}: {path} is not a directory", hint="name another one")
    existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if reason := why_no_new_file(existing):
        raise UsageError(f"{option}: cannot write to {existing}: {reason}", hint="name another directory")


def why_no_new_file(folder: Path) -> str | None:
    """Why no file can be made in ``folder``; None if one can. It is tried: permissions alone do not tell."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return error.strerror or str(error)
