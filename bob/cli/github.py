"""Annotations for GitHub Actions (``GITHUB_ACTIONS=true``). bob writes none on other CIs, which set only
``CI=true``."""

import os
import subprocess
from enum import StrEnum
from pathlib import Path

import click

from bob.program.stack import SourceLine


class Level(StrEnum):
    """The level of an annotation. GitHub shows ten annotations of each level in a step."""

    ERROR = "error"
    WARNING = "warning"


def annotate(level: Level, title: str, message: str, source: SourceLine | None = None) -> None:
    """Write an annotation to stderr if bob runs on GitHub, which reads annotations from stderr as from stdout. GitHub
    shows it at the line ``source``, if git knows exactly one file of this name."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        path = "" if source is None else _path_of(source.file)
        place = "" if source is None or not path else f"file={_property(path)},line={source.line},"
        click.echo(f"::{level.value} {place}title={_property(title)}::{_data(message)}", err=True)


def _path_of(name: str) -> str:
    """Return the path in the repository of the file ``name``. Return "" if the current directory is in no repository,
    or if it has several such files, or none."""
    command = ["git", "ls-files", "-z", "--full-name", "--", f":(top,glob)**/{name}"]
    try:
        found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError, UnicodeDecodeError):
        return ""
    paths = [path for path in found if Path(path).name == name]
    return paths[0] if len(paths) == 1 else ""


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
