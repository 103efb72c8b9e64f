"""What GitHub Actions is told beside the log: annotations, which it shows at the top of a run.

Only there (`GITHUB_ACTIONS=true`, which GitHub documents as set wherever Actions runs a workflow): `CI=true` is set by
others too, to whom such a line means nothing.
"""

from __future__ import annotations

import os
from enum import StrEnum

import click


class Level(StrEnum):
    """How bad it is. GitHub shows ten of each in a step."""

    ERROR = "error"
    WARNING = "warning"


def annotate(level: Level, title: str, message: str) -> None:
    """Write an annotation to stderr, which GitHub reads as it reads stdout; nothing elsewhere."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        click.echo(f"::{level.value} title={_property(title)}::{_data(message)}", err=True)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
