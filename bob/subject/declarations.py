"""Reads declarations: TOML files whose mistakes are told in one line, with the name of the file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from bob.errors import UsageError

T = TypeVar("T")


class Table:
    """A table of a declaration; ``name`` is the file's without its ending. An unknown key is a mistake."""

    def __init__(self, name: str, values: Mapping[str, Any]) -> None:
        self.name = name
        self._values = dict(values)

    def text(self, key: str, *default: str) -> str:
        """The text under ``key``. Raises ValueError for anything else, and KeyError if it is missing."""
        value = self._take(key, default)
        if not isinstance(value, str):
            raise ValueError(f"{key} = {value!r} is not a text")
        return value

    def number(self, key: str, *default: float) -> float:
        """The number, 0 or more, under ``key``. Raises ValueError for anything else, and KeyError if it is missing."""
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**40:
            raise ValueError(f"{key} = {value!r} is not a number from 0 on")
        return value

    def truth(self, key: str, default: bool) -> bool:
        """The true or false under ``key``. Raises ValueError for anything else."""
        value = self._take(key, (default,))
        if not isinstance(value, bool):
            raise ValueError(f"{key} = {value!r} is neither true nor false")
        return value

    def texts(self, key: str) -> dict[str, str]:
        """The table of texts under ``key``, empty if it is missing. Raises ValueError for anything else."""
        value = self._take(key, ({},))
        if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
            raise ValueError(f"{key} is not a table of texts")
        return dict(value)

    def names(self, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        """The list of texts under ``key``. Raises ValueError for anything else."""
        value = self._take(key, (list(default),))
        if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
            raise ValueError(f"{key} is not a list of texts")
        return tuple(value)

    def codes(self, key: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """The list of exit codes under ``key``. Raises ValueError for anything else."""
        value = self._take(key, (list(default),))
        if not isinstance(value, list) or not all(type(one) is int and 0 <= one < 256 for one in value):
            raise ValueError(f"{key} is not a list of exit codes, from 0 to 255")
        return tuple(value)

    def patterns(self, key: str) -> tuple[str, ...]:
        """The list of regular expressions under ``key``, empty if it is missing. Raises ValueError."""
        value = self._take(key, ([],))
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise ValueError(f"{key} is not a list of texts")
        for one in value:
            try:
                re.compile(one)
            except re.error as error:
                raise ValueError(f"{key}: {one!r} is no regular expression: {error}") from None
        return tuple(value)

    def tables(self, key: str) -> list[Table]:
        """The tables under ``key``, at least one. Raises ValueError for anything else, and KeyError if missing."""
        value = self._take(key, ())
        if not isinstance(value, list) or not value or not all(isinstance(one, dict) for one in value):
            raise ValueError(f"{key} is not an array of tables")
        return [Table(self.name, one) for one in value]

    def done(self) -> None:
        """Refuse unknown keys: most are slips."""
        if self._values:
            raise ValueError(f"unknown key {next(iter(self._values))!r}")

    def _take(self, key: str, default: tuple[Any, ...]) -> Any:
        return self._values.pop(key, default[0]) if default else self._values.pop(key)


def read(path: Path, make: Callable[[Table], T]) -> T:
    """What ``make`` makes of the file ``path``; raises UsageError for what is wrong with it."""
    try:
        text = path.read_text()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint=HINT) from None
    except ValueError as error:  # no UTF-8
        raise UsageError(f"{path.name}: {error}", hint=HINT) from None
    return read_text(path.name, text, make)


def read_text(file: str, text: str, make: Callable[[Table], T]) -> T:
    """What ``make`` makes of ``text``, that of a file of this name; raises UsageError for what is wrong with it."""
    try:
        table = Table(Path(file).stem, tomllib.loads(text))
        made = make(table)
        table.done()
    except KeyError as error:
        raise UsageError(f"{file}: {error.args[0]!r} is missing", hint=HINT) from None
    except ValueError as error:  # TOML's errors are ValueErrors too
        raise UsageError(f"{file}: {error}", hint=HINT) from None
    except UsageError as error:
        raise UsageError(f"{file}: {error.message}", hint=error.hint) from None
    return made


HINT = "see docs/formats.md"
