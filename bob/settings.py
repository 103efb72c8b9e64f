"""bob.toml: what a user, or a project, says once for all commands.

::

    image = "debian-trixie"    # the guest image, in place of debian-bookworm
    jobs = 2                   # guests side by side
    budget = 200               # mounts per workload
    cache = "/big/disk/bob"    # guest images and saved guests, in place of ~/.cache/bob

One file is read: that of the working directory, or else that of the user, $XDG_CONFIG_HOME/bob/bob.toml. The command
line wins over it.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from bob.errors import GuestError, UsageError, meant

FILE = "bob.toml"
_SEE = f"see docs/ci.md#settings for what can stand in {FILE}"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the file ``path`` says; None where it says nothing, or where there is no file.

    ``jobs`` are guests, ``budget`` mounts per workload; ``cache`` is an absolute path.
    """

    path: Path | None = None
    image: str | None = None
    jobs: int | None = None
    budget: int | None = None
    cache: Path | None = None

    @property
    def said(self) -> dict[str, Any]:
        """What is said, by key."""
        return {key: value for key in KEYS if (value := getattr(self, key)) is not None}


KEYS = tuple(field.name for field in fields(Settings) if field.name != "path")


def settings() -> Settings:
    """What bob.toml says, or said when it was asked first. Raises UsageError, which names the file, where that cannot
    be read or is wrong."""
    return _settings(places())


def forget() -> None:
    """Have the next one who asks read the file: a command line begins."""
    _settings.cache_clear()


@lru_cache(maxsize=1)  # a probe of an hour does not change its mind when the file is edited
def _settings(paths: tuple[Path, ...]) -> Settings:
    for path in paths:
        try:
            text = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}", hint="mend its permissions, or move it") from None
        return read(path, text)
    return Settings()


def places() -> tuple[Path, Path]:
    """Where the file is looked for, in order."""
    home = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return Path(FILE), (home if home.is_absolute() else Path.home() / ".config") / "bob" / FILE


def read(path: Path, text: bytes) -> Settings:
    """The settings in ``text``, which is that of ``path``. Raises UsageError where it is wrong."""
    try:
        table = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}", hint=_SEE) from None
    if unknown := [key for key in table if key not in KEYS]:
        raise UsageError(f"{path}: unknown key {unknown[0]!r}", hint=meant(unknown[0], KEYS, "keys there"))
    return Settings(
        path,
        image=_text(path, table, "image"),
        jobs=_number(path, table, "jobs"),
        budget=_number(path, table, "budget"),
        cache=_folder(path, table),
    )


def cache_home() -> Path:
    """bob's cache: what ``cache`` in bob.toml says, else $XDG_CACHE_HOME/bob, else ~/.cache/bob; it need not exist."""
    home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return settings().cache or (home if home.is_absolute() else Path.home() / ".cache") / "bob"


def _text(path: Path, table: Mapping[str, Any], key: str) -> str | None:
    value = table.get(key)
    if value is None or (isinstance(value, str) and value.strip()):
        return value
    raise UsageError(f"{path}: {key!r} is {_shown(value)}, not a text", hint=f'for example {key} = "debian-bookworm"')


def _number(path: Path, table: Mapping[str, Any], key: str) -> int | None:
    value = table.get(key)
    if value is None or (type(value) is int and value >= 1):
        return value
    raise UsageError(f"{path}: {key!r} is {_shown(value)}, not a whole number from 1 on", hint=f"for example {key} = 2")


def _folder(path: Path, table: Mapping[str, Any]) -> Path | None:
    value = table.get("cache")
    if value is None:
        return None
    if isinstance(value, str) and value.strip() and "\0" not in value:
        try:
            return (path.absolute().parent / Path(value).expanduser()).absolute()
        except RuntimeError:  # ~ of a user who is not there
            pass
    raise UsageError(f"{path}: 'cache' is {_shown(value)}, not a folder", hint='for example cache = "/big/disk/bob"')


def _shown(value: Any) -> str:
    """A value as it may stand in one line."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


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
