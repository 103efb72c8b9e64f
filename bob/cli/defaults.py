"""What bob.toml says (:mod:`bob.settings`), as defaults of options: the command line wins over it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bob.errors import UsageError
from bob.settings import Settings, settings

_HELP = {"-h", "--help"}


def defaults(arguments: Sequence[str]) -> dict[str, Any]:
    """The defaults for the command line ``arguments``, by command and then by parameter, as click takes them.

    Only commands that ask anew take some: a replay, say, takes the image that its witness names. Help is there whatever
    is in the file; else raises UsageError where that is wrong.
    """
    if not arguments or arguments[0] not in _BY_COMMAND:
        return {}
    try:
        said = settings()
    except UsageError:
        if _HELP & set(arguments):
            return {}
        raise
    return {arguments[0]: _BY_COMMAND[arguments[0]](said)}


def _probing(said: Settings) -> dict[str, Any]:
    """Of commands that take several images."""
    images = {"images": (said.image,)} if said.image is not None else {}
    return {**images, **_numbers(said)}


def _trying(said: Settings) -> dict[str, Any]:
    """Of commands that take one."""
    image = {"image": said.image} if said.image is not None else {}
    return {**image, **_numbers(said)}


def _numbers(said: Settings) -> dict[str, Any]:
    return {key: value for key, value in (("jobs", said.jobs), ("budget", said.budget)) if value is not None}


def _app(said: Settings) -> dict[str, Any]:
    return {"run": _trying(said), "check": _trying(said)}


def _image(said: Settings) -> dict[str, Any]:
    return {"build": {"name": said.image}} if said.image is not None else {}


_BY_COMMAND = {
    "probe": _probing,
    "matrix": _probing,
    "try": _trying,
    "search": _trying,
    "app": _app,
    "image": _image,
}
