"""Whether a folder can be made and written, before work is begun whose result it is to hold."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

from bob.errors import UsageError


def check_new_folder(path: Path, option: str) -> None:
    """Raise UsageError if the folder ``path`` can neither be made nor is there and empty."""
    if path.is_dir() and os.access(path, os.R_OK) and any(path.iterdir()):
        raise UsageError(f"{option}: {path} is not empty", hint="every run has a directory of its own")
    check_folder(path, option)


@contextmanager
def withdrawn_if_refused(path: Path, keeps: str) -> Iterator[None]:
    """Has the folder ``path``, in which the block makes a run, as it was before if a UsageError ends the block.

    That is a typing error in a mount option, say: the corrected command has the same --out. What matches the pattern
    ``keeps`` is work that was done: then everything stays. So does what was in the folder before.
    """
    was_there = path.is_dir()
    is_new = not was_there or not any(path.iterdir())
    try:
        yield
    except UsageError:
        if is_new and path.is_dir() and not any(path.glob(keeps)):
            rmtree(path)
            if was_there:
                path.mkdir()
        raise


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
