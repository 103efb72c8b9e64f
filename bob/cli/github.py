"""Annotations for GitHub Actions (``GITHUB_ACTIONS=true``). bob writes none on other CIs, which set only
``CI=true``."""

import os
from enum import StrEnum

import click


class Level(StrEnum):
    """The level of an annotation. GitHub shows ten annotations of each level in a step."""

    ERROR = "error"
    WARNING = "warning"


def annotate(level: Level, title: str, message: str) -> None:
    """Write an annotation to stderr if bob runs on GitHub, which reads annotations from stderr as from stdout."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        click.echo(f"::{level.value} title={_property(title)}::{_data(message)}", err=True)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
