"""The published table, and the known reasons why a kernel of today differs from it: data of bob's own.

Both are files in reports/published/ (docs/formats.md describes them). Blank in the published table means that no
violation was found, not that the property holds.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from bob.errors import MalformedError
from bob.report.rows import FAMILIES
from bob.resources import shipped

OSDI14 = "osdi14"
"""What the published table is called on the command line."""

_TABLE, _REASONS = "osdi14-table1.json", "osdi14-reasons.toml"
_KEYS = {"title", "direction", "configurations", "properties", "because"}
_MORE_KEYS = {"background", "measured"}


@dataclass(frozen=True, slots=True)
class Published:
    """A published table: ``fails`` has the configurations for which a violation was reported, by property."""

    source: str
    configurations: tuple[str, ...]
    fails: Mapping[str, frozenset[str]]


class Direction(StrEnum):
    """Which difference from the published table a reason is about."""

    FOUND = "found"
    """We find a violation where the published table is blank."""
    NOT_FOUND = "not found"
    """We find none where the published table has a ×."""
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why cells differ from the published table.

    ``configurations`` and ``properties`` are names or globs. ``background`` says that other code is behind the name,
    but not what in it makes the difference. ``measured`` are the kernel versions on which it was found out.
    """

    title: str
    because: str
    direction: Direction
    configurations: tuple[str, ...]
    properties: tuple[str, ...]
    background: bool = False
    measured: tuple[str, ...] = ()

    def fits(self, configuration: str, name: str, direction: Direction) -> bool:
        """Whether it explains that cell's difference in that direction."""
        return (
            self.direction in (direction, Direction.ANY)
            and any(fnmatchcase(configuration, glob) for glob in self.configurations)
            and any(fnmatchcase(name, glob) for glob in self.properties)
        )

    @property
    def sentences(self) -> str:
        """What it says, and where that was measured."""
        if self.background:
            return f"{self.because} Which part of that code makes the difference is not yet explained."
        return f"{self.because} (Measured on {', '.join(self.measured)}.)" if self.measured else self.because


def reason_for(reasons: Sequence[Reason], configuration: str, name: str, direction: Direction) -> Reason | None:
    """The first of ``reasons`` that fits; background only where no other does."""
    fitting = [reason for reason in reasons if reason.fits(configuration, name, direction)]
    return min(fitting, key=lambda reason: reason.background, default=None)


@cache
def osdi14() -> Published:
    """Table 1 of "All File Systems Are Not Created Equal" (OSDI 2014)."""
    document = json.loads((shipped("reports/published") / _TABLE).read_bytes())
    fails = {name: frozenset(configurations) for name, configurations in document["fails"].items()}
    return Published(document["source"], tuple(document["configurations"]), fails)


@cache
def osdi14_reasons() -> tuple[Reason, ...]:
    """The known reasons for differences from that table, in the order of their file."""
    return load_reasons(shipped("reports/published") / _REASONS)


def load_reasons(path: Path) -> tuple[Reason, ...]:
    """The reasons in the file ``path``; raises MalformedError where one of them is damaged or can fit no row."""
    try:
        document = tomllib.loads(path.read_text())
        return tuple(_reason(path, table) for table in document["reason"])
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MalformedError(f"{path}: {error}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise MalformedError(f"{path}: not an array of [[reason]] tables: {error}") from error


def _reason(path: Path, table: Mapping[str, Any]) -> Reason:
    keys = set(table)
    if not keys >= _KEYS or not keys <= _KEYS | _MORE_KEYS:
        wrong = sorted(_KEYS - keys) or sorted(keys - _KEYS - _MORE_KEYS)
        what = "lacks" if not keys >= _KEYS else "has unknown keys:"
        raise MalformedError(f"{path}: reason {table.get('title')!r} {what} {', '.join(wrong)}")
    try:
        direction = Direction(table["direction"])
    except ValueError:
        known = ", ".join(Direction)
        raise MalformedError(
            f"{path}: reason {table['title']!r}: unknown direction {table['direction']!r}", hint=f"one of: {known}"
        ) from None
    rows = [name for names in FAMILIES.values() for name in names]
    configurations, properties = _texts(path, table, "configurations"), _texts(path, table, "properties")
    for glob in properties:
        if not any(fnmatchcase(name, glob) for name in rows):
            raise MalformedError(f"{path}: reason {table['title']!r}: no property is called {glob!r}")
    return Reason(
        title=table["title"],
        because=" ".join(table["because"].split()),
        direction=direction,
        configurations=configurations,
        properties=properties,
        background=bool(table.get("background", False)),
        measured=_texts(path, table, "measured") if "measured" in table else (),
    )


def _texts(path: Path, table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = table[key]
    if not isinstance(value, list) or not value or not all(isinstance(text, str) for text in value):
        raise MalformedError(f"{path}: reason {table['title']!r}: {key} must be a list of texts")
    return tuple(value)
