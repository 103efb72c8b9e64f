"""The settings in bob.toml, for all commands: ``image``, ``jobs``, ``budget``, ``checks`` and ``cache``
(docs/results.md#settings).

bob reads one file: bob.toml in the working directory, or, if it does not exist, $XDG_CONFIG_HOME/bob/bob.toml. An
option on the command line overrides a setting.
"""

import os
import tomllib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from bob.errors import GuestError, UsageError, meant
from bob.text import shortened

FILE = "bob.toml"
_SEE = f"docs/results.md#settings lists the settings of {FILE}"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in the file ``path``. None stands for a setting that the file does not have, or for no file.
    ``jobs`` is the number of guests. For each workload, bob mounts about ``budget`` crash states. ``checks`` says
    whether the checker of a program under test runs on the host or in a guest."""

    path: Path | None = None
    image: str | None = None
    jobs: int | None = None
    budget: int | None = None
    checks: str | None = None
    cache: Path | None = None

    @property
    def said(self) -> dict[str, Any]:
        return {key: value for key in KEYS if (value := getattr(self, key)) is not None}


def _text(_path: Path, value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _place(_path: Path, value: Any) -> str | None:
    return value if value in ("auto", "host", "guest") else None


def _number(_path: Path, value: Any) -> int | None:
    return value if type(value) is int and value >= 1 else None


def _folder(path: Path, value: Any) -> Path | None:
    if isinstance(value, str) and value.strip() and "\0" not in value:
        with suppress(RuntimeError):  # "~name" of an unknown user
            return (path.absolute().parent / Path(value).expanduser()).absolute()
    return None


KEYS: dict[str, tuple[Callable[[Path, Any], Any], str, str]] = {
    "image": (_text, "a name", '"debian-bookworm"'),
    "jobs": (_number, "a whole number, 1 or more", "2"),
    "budget": (_number, "a whole number, 1 or more", "100"),
    "checks": (_place, '"auto", "host" or "guest"', '"guest"'),
    "cache": (_folder, "a folder", '"/big/disk/bob"'),
}  # key: (its reader, which returns None for a wrong value; the kind of value; an example)


def settings() -> Settings:
    """Return the content of bob.toml. bob reads the file once. Raise UsageError, which names the file, if the file is
    wrong."""
    return _settings(places())


def forget() -> None:
    """Have the next call of :func:`settings` read the file again."""
    _settings.cache_clear()


@lru_cache(maxsize=1)  # so editing the file does not change a running probe
def _settings(paths: tuple[Path, ...]) -> Settings:
    for path in paths:
        try:
            text = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}", hint="fix its permissions, or move it") from None
        return read(path, text)
    return Settings()


def places() -> tuple[Path, Path]:
    """Return the two possible paths of bob.toml. bob tries them in this order."""
    home = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return Path(FILE), (home if home.is_absolute() else Path.home() / ".config") / "bob" / FILE


def read(path: Path, text: bytes) -> Settings:
    """Return the settings in ``text``, the content of the file ``path``. Raise UsageError if the text is wrong."""
    try:
        table = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}", hint=_SEE) from None
    if unknown := [key for key in table if key not in KEYS]:
        raise UsageError(f"{path}: unknown key {unknown[0]!r}", hint=meant(unknown[0], KEYS, "the known keys"))
    found = {key: KEYS[key][0](path, table[key]) for key in KEYS if key in table}
    if wrong := [key for key, value in found.items() if value is None]:
        key, (_read, kind, example) = wrong[0], KEYS[wrong[0]]
        shown = shortened(repr(table[key]), 40)
        raise UsageError(f"{path}: invalid {key} {shown}; expected {kind}", hint=f"for example {key} = {example}")
    return Settings(path, **found)


def cache_home() -> Path:
    """Return the path of bob's cache, which may not exist yet: ``cache`` in bob.toml, else $XDG_CACHE_HOME/bob, else
    ~/.cache/bob."""
    home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return settings().cache or (home if home.is_absolute() else Path.home() / ".cache") / "bob"


def cache_folder(name: str) -> Path:
    """Return the path of the folder ``name`` in bob's cache. Make the folder if needed. Raise GuestError if that
    fails."""
    folder = cache_home() / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        hint = "set XDG_CACHE_HOME to another folder, or cache in bob.toml"
        raise GuestError(f"cannot write to {folder}: {error.strerror}", hint=hint) from error
    return folder
