"""Where bob keeps what can be made again: in its cache (:func:`bob.settings.cache_home`)."""

from __future__ import annotations

from pathlib import Path

from bob.errors import GuestError
from bob.settings import cache_home


def cache_folder(name: str) -> Path:
    """The folder ``name`` in bob's cache, made if need be. Raises GuestError if it cannot be."""
    folder = cache_home() / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GuestError(
            f"cannot write to {folder}: {error.strerror}",
            hint="set XDG_CACHE_HOME to another folder, or cache in bob.toml",
        ) from error
    return folder
