"""The published table, and the known reasons why a kernel of today differs from it: data of bob's own.

Both are files in reports/published/ (docs/formats.md describes them). Blank in the published table means that no
violation was found, not that the property holds. A reason is told of a cell only where what was found fits it.
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

from bob.errors import MalformedError, meant
from bob.report.rows import FAMILIES
from bob.resources import shipped
from bob.witness.traits import WORDS, Trait, Traits

OSDI14 = "osdi14"
"""What the published table is called on the command line."""

_TABLE, _REASONS = "osdi14-table1.json", "osdi14-reasons.toml"
_KEYS = {"title", "direction", "configurations", "properties", "because"}
_MORE_KEYS = {"background", "measured", "shows", "like"}


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
class Difference:
    """A cell of a run that differs from the published table, and what was found there.

    ``shown`` is what its witness shows; None where there is none to look at. ``unlike`` are the configurations of which
    the run says otherwise in this row.
    """

    configuration: str
    name: str
    direction: Direction
    shown: Traits | None = None
    unlike: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Reason:
    """Why cells differ from the published table.

    ``configurations`` and ``properties`` are names or globs. ``background`` says that other code is behind the name,
    but not what in it makes the difference. ``measured`` are the kernel versions on which it was found out.

    ``shows`` is what the witness of a violation shows that this is the reason of: of each trait one of these words.
    ``like`` is a configuration that the cell's own is said to be no different from.
    """

    title: str
    because: str
    direction: Direction
    configurations: tuple[str, ...]
    properties: tuple[str, ...]
    background: bool = False
    measured: tuple[str, ...] = ()
    shows: tuple[tuple[Trait, frozenset[str]], ...] = ()
    like: str | None = None

    def speaks_of(self, configuration: str, name: str, direction: Direction) -> bool:
        """Whether it is about that cell and a difference in that direction, whatever was found there."""
        return (
            self.direction in (direction, Direction.ANY)
            and any(fnmatchcase(configuration, glob) for glob in self.configurations)
            and any(fnmatchcase(name, glob) for glob in self.properties)
        )

    def fits(self, difference: Difference) -> bool:
        """Whether it explains that difference: what was found there does not contradict it."""
        if not self.speaks_of(difference.configuration, difference.name, difference.direction):
            return False
        if difference.direction is Direction.NOT_FOUND:
            return self.like not in difference.unlike
        shown = difference.shown
        return not self.shows or (shown is not None and all(shown[trait] & words for trait, words in self.shows))

    @property
    def sentences(self) -> str:
        """What it says, and where that was measured."""
        if self.background:
            return f"{self.because} Which part of that code makes the difference is not yet explained."
        return f"{self.because} (Measured on {', '.join(self.measured)}.)" if self.measured else self.because


def reason_for(reasons: Sequence[Reason], difference: Difference) -> Reason | None:
    """The first of ``reasons`` that fits; background only where no other does."""
    fitting = [reason for reason in reasons if reason.fits(difference)]
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
    shows, like = _shows(path, table), table.get("like")
    if like is not None and not isinstance(like, str):
        raise MalformedError(f"{path}: reason {table['title']!r}: like must be the name of a configuration")
    background = _truth(path, table, "background")
    if direction is not Direction.NOT_FOUND and not background and not shows:
        hint = f"shows = {{ {Trait.LOST} = [...] }}, or background = true"
        raise MalformedError(f"{path}: reason {table['title']!r} does not say what a witness shows", hint=hint)
    return Reason(
        title=table["title"],
        because=" ".join(table["because"].split()),
        direction=direction,
        configurations=configurations,
        properties=properties,
        background=background,
        measured=_texts(path, table, "measured") if "measured" in table else (),
        shows=shows,
        like=like,
    )


def _shows(path: Path, table: Mapping[str, Any]) -> tuple[tuple[Trait, frozenset[str]], ...]:
    """What a witness shows, by the file: words of traits, all of them known, since a slip would fit nothing."""
    asked = table.get("shows", {})
    for trait in asked:
        known = WORDS.get(trait, frozenset(Trait))
        words = _texts(path, asked, trait, table["title"]) if trait in WORDS else (trait,)
        if unknown := [word for word in words if word not in known]:
            where = f"{trait} of its witness" if trait in WORDS else "its witness"
            hint = meant(unknown[0], known, "there is")
            raise MalformedError(f"{path}: reason {table['title']!r}: {where} shows no {unknown[0]!r}", hint=hint)
    return tuple((trait, frozenset(asked[trait])) for trait in Trait if trait in asked)


def _truth(path: Path, table: Mapping[str, Any], key: str) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise MalformedError(f"{path}: reason {table['title']!r}: {key} must be true or false")
    return value


def _texts(path: Path, table: Mapping[str, Any], key: str, title: str = "") -> tuple[str, ...]:
    value = table[key]
    if not isinstance(value, list) or not value or not all(isinstance(text, str) for text in value):
        raise MalformedError(f"{path}: reason {title or table['title']!r}: {key} must be a list of texts")
    return tuple(value)
