"""Where bob keeps what can be made again: $XDG_CACHE_HOME/bob."""

from __future__ import annotations

import os
from pathlib import Path

from bob.errors import GuestError


def cache_folder(name: str) -> Path:
    """The folder ``name`` in bob's cache, made if need be. Raises GuestError if it cannot be."""
    home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    folder = (home if home.is_absolute() else Path.home() / ".cache") / "bob" / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GuestError(
            f"cannot write to {folder}: {error.strerror}", hint="set XDG_CACHE_HOME to another folder"
        ) from error
    return folder
