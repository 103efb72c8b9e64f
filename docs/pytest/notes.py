"""A program that keeps a note in a file, with a bug that only a crash shows."""

import os
from pathlib import Path


def save(path: Path, text: str) -> None:
    """Replace the note: write a new file, and rename it."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.rename(path)


def save_safely(path: Path, text: str) -> None:
    """Replace the note, and return when it is on the disk."""
    new = path.with_suffix(".new")
    with new.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
