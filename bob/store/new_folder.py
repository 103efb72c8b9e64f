"""Checks that a folder can be made and written, before work begins."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

from bob.errors import UsageError


def check_new_folder(path: Path, option: str) -> None:
    """Raise UsageError unless the folder ``path`` can be made, or is empty and can be written."""
    if path.is_dir() and os.access(path, os.R_OK) and any(path.iterdir()):
        raise UsageError(f"{option}: {path} is not empty", hint="name a new directory: each run has its own")
    check_folder(path, option)


@contextmanager
def withdrawn_if_refused(path: Path, keeps: str) -> Iterator[None]:
    """Restore ``path`` if a UsageError ends the block, so that the corrected command can use the same --out. The folder
    stays if it was not empty before, or has finished work: a path that matches ``keeps``."""
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
    """Raise UsageError unless files can be made in the folder ``path``, which may not exist yet."""
    if path.exists() and not path.is_dir():
        raise UsageError(f"{option}: {path} is not a directory", hint="name another directory")
    existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if reason := why_no_new_file(existing):
        raise UsageError(f"{option}: cannot write to {existing}: {reason}", hint="name another directory")


def why_no_new_file(folder: Path) -> str | None:
    """Return why no file can be made in ``folder``, or None. bob tries: permissions alone do not tell."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return error.strerror or str(error)
