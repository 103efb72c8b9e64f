"""Checks, before work begins, that bob can make a folder and write into it."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

from bob.errors import UsageError


def check_new_folder(path: Path, option: str) -> None:
    """Raise UsageError unless the folder ``path`` is new or empty, and bob can make it and write into it. The message
    names the ``option``."""
    if path.is_dir() and os.access(path, os.R_OK) and any(path.iterdir()):
        raise UsageError(f"{option}: {path} is not empty", hint="name a new directory: each run has its own")
    check_folder(path, option)


@contextmanager
def withdrawn_if_refused(path: Path, keeps: str) -> Iterator[None]:
    """Remove the folder ``path`` if the code in the with block raises UsageError. If the folder existed before,
    empty it instead. The user can then correct the command and use the same folder. Do nothing if the folder was not
    empty before the block, or if a path in the folder matches the pattern ``keeps``."""
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
    """Raise UsageError unless bob can make files in the folder ``path``, which may not exist yet. The message names the
    ``option``."""
    if path.exists() and not path.is_dir():
        raise UsageError(f"{option}: {path} is not a directory", hint="name another directory")
    existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if reason := why_no_new_file(existing):
        raise UsageError(f"{option}: cannot write to {existing}: {reason}", hint="name another directory")


def why_no_new_file(folder: Path) -> str | None:
    """Return the reason that bob cannot make a file in ``folder``; None if bob can. bob tries to make a file, since the
    folder's permissions do not tell all reasons (the file system may be read-only)."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return error.strerror or str(error)
