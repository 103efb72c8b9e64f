"""Options whose values are files and folders. This module imports nothing heavy, so that a command with only such
options starts fast."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bob.errors import UsageError
from bob.options import ExistingPath, Words
from bob.store.new_folder import check_folder, check_new_folder, why_no_new_file

STDOUT = "-"


@dataclass(frozen=True, slots=True)
class Destination:
    """The place where a command writes documents. ``path`` is a file for one document, or a folder for several."""

    path: Path
    is_folder: bool


def _read_new_folder(word: Any, option: str) -> Path:
    check_new_folder(Path(word), option)
    return Path(word)


def _read_new_file(word: Any, option: str) -> Path:
    path = Path(word)
    if str(word) == STDOUT:
        raise UsageError(f"{option}: cannot write to stdout", hint="name a file")
    if not path.parent.is_dir():
        raise UsageError(f"{option}: the directory {path.parent} does not exist", hint=f"mkdir -p {path.parent}")
    if path.is_dir():
        raise UsageError(f"{option}: {path} is a directory", hint=f"for example {path / 'result.json'}")
    if reason := _why_not_writable(path):
        raise UsageError(f"{option}: cannot write {path}: {reason}", hint="name another file")
    return path


def _why_not_writable(path: Path) -> str | None:
    if not path.exists():
        return why_no_new_file(path.parent)
    return None if os.access(path, os.W_OK) else "permission denied"


def _read_output(word: Any, option: str) -> Path:
    return Path(word) if str(word) == STDOUT else _read_new_file(word, option)


def _read_destination(word: Any, option: str) -> Destination:
    if not word or not (word.endswith("/") or Path(word).is_dir()):
        return Destination(_read_output(word, option), False)
    check_folder(Path(word), option)
    return Destination(Path(word), True)


def _read_folder(word: Any, option: str) -> Path:
    if Path(word).is_file():
        raise UsageError(f"{option}: {word} is not a directory", hint="name another one")
    return Path(word)


EXISTING = ExistingPath()
EXISTING_FILE = ExistingPath(folder=False)
EXISTING_FOLDER = ExistingPath(file=False)
NEW_FOLDER = Words(_read_new_folder, files="dir", name="dir")
NEW_FILE = Words(_read_new_file, files="file", name="file")
OUTPUT = Words(_read_output, files="file", name="file")  # a file to write, or standard output
DESTINATION = Words(
    _read_destination, files="file", name="file"
)  # a file to write, or a folder (it exists, or ends with /)
FOLDER = Words(_read_folder, files="dir", name="dir")  # a folder, which may not exist yet
