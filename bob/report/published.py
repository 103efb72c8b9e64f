"""Published tables, and known reasons why a kernel of today differs from them (reports/published/, docs/formats.md).
bob has Table 1 of the paper at OSDI'14, and Table 2 of EXPLODE, a tool of 2006. A blank cell of a table means that the
authors found no violation, not that the property holds. A *witness* is a file about one crash state that breaks a
property in a run of bob."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from bob.errors import MalformedError, UsageError, meant
from bob.report.rows import FAMILIES, TITLES
from bob.resources import shipped
from bob.schema import Declaration, Document, OneLine, adapt, declared, decode, mistakes_in, toml
from bob.schema import field as key
from bob.witness.traits import WORDS, Trait, Traits

OSDI14, EXPLODE = "osdi14", "explode"  # the names of the published tables on the command line
PUBLISHED = (OSDI14, EXPLODE)

_FILES = {
    OSDI14: ("osdi14-table1.json", "osdi14-reasons.toml"),
    EXPLODE: ("explode-table2.json", "explode-reasons.toml"),
}
_FOLDER = shipped("reports/published")
Texts = Annotated[tuple[str, ...], Meta(min_length=1)]


@dataclass(frozen=True, slots=True)
class Published:
    """A published table. ``fails`` has for each property the configurations with a reported violation. ``families`` are
    the properties of the table in groups. ``asked`` has, for some configurations, the properties that the authors
    tested. On all other configurations they tested all properties. ``title`` names the table."""

    source: str
    configurations: tuple[str, ...]
    fails: Mapping[str, frozenset[str]]
    name: str = OSDI14
    title: str = "Table 1 of 2014"
    families: Mapping[str, Iterable[str]] = field(default_factory=lambda: FAMILIES)
    asked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def properties(self) -> tuple[str, ...]:
        return tuple(chain.from_iterable(self.families.values()))

    def asks(self, configuration: str, name: str) -> bool:
        return configuration not in self.asked or name in self.asked[configuration]


class PublishedDocument(Document, frozen=True, kw_only=True):
    """The JSON file of a published table. Without ``families``, the properties are those of Table 1 of OSDI'14."""

    source: str
    note: str
    configurations: tuple[str, ...]
    fails: Mapping[str, tuple[str, ...]]
    title: str = "Table 1 of 2014"
    families: Mapping[str, tuple[str, ...]] = key(
        default_factory=lambda: {one: tuple(FAMILIES[one]) for one in FAMILIES}
    )
    asked: Mapping[str, tuple[str, ...]] = key(default_factory=dict)


class Direction(StrEnum):
    """The direction of a difference: a run has a violation that the published table lacks, or lacks a violation that
    the published table has."""

    FOUND = "found"  # bob finds a violation where the published table is blank
    NOT_FOUND = "not found"  # bob finds no violation where the published table has a ×
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Difference:
    """A cell (the answer of a run for one property of one configuration) whose verdict differs from the published
    table. ``name`` is the property. ``shown`` has the traits of the cell's witness (words about how it breaks the
    property). Without a witness, ``shown`` is None. ``unlike`` has the other configurations in the run whose verdict
    for the property differs from the cell's verdict."""

    configuration: str
    name: str
    direction: Direction
    shown: Traits | None = None
    unlike: frozenset[str] = frozenset()


class Reason(Declaration, frozen=True, eq=False):
    """The reason why some cells differ from the published table.

    ``configurations`` and ``properties`` say with names or globs which cells the reason is about. ``measured`` has the
    kernel versions that bob confirmed the reason on. If ``background`` is true, the reason is vague: it says that a
    configuration's code has been replaced, but not which change makes the difference. The reason explains a violation
    only if the witness fits ``shows``. For some traits of a witness (:mod:`bob.witness.traits`), ``shows`` has a set of
    words. For each such trait, the witness must have a word from the set. If the reason is about a missing violation,
    ``like`` may name a second configuration. The reason then fits unless the two configurations have different verdicts
    for the property."""

    title: OneLine
    direction: Direction
    configurations: Texts
    properties: Texts
    because: str
    background: bool = False
    measured: Texts = ()
    shows: Mapping[Trait, Texts] = key(default_factory=dict)
    like: str | None = None

    def speaks_of(self, configuration: str, name: str, direction: Direction) -> bool:
        return (
            self.direction in (direction, Direction.ANY)
            and any(fnmatchcase(configuration, glob) for glob in self.configurations)
            and any(fnmatchcase(name, glob) for glob in self.properties)
        )

    def fits(self, difference: Difference) -> bool:
        """Return whether the reason explains ``difference``. It does if the cell and its witness meet all conditions of
        the reason."""
        if not self.speaks_of(difference.configuration, difference.name, difference.direction):
            return False
        if difference.direction is Direction.NOT_FOUND:
            return self.like not in difference.unlike
        if (shown := difference.shown) is None:
            return not self.shows
        return not any(shown[trait].isdisjoint(words) for trait, words in self.shows.items())

    @property
    def sentences(self) -> str:
        """The reason in sentences, with the kernels that it was measured on."""
        if self.background:
            return f"{self.because} Which part of that code makes the difference is not yet explained."
        return f"{self.because} (Measured on {', '.join(self.measured)}.)" if self.measured else self.because


def reason_for(reasons: Sequence[Reason], difference: Difference) -> Reason | None:
    """Return the first of ``reasons`` that fits ``difference``. Return a vague reason (``background``) only if no other
    reason fits."""
    fitting = [reason for reason in reasons if reason.fits(difference)]
    return min(fitting, key=lambda reason: reason.background, default=None)


@cache
def published(name: str) -> Published:
    """Return the published table ``name``, one of :data:`PUBLISHED`."""
    document = decode(PublishedDocument, json.loads((_FOLDER / _FILES[name][0]).read_bytes()))
    fails = {row: frozenset(configurations) for row, configurations in document.fails.items()}
    return adapt(Published, document, name=name, fails=fails)


@cache
def reasons_of(name: str) -> tuple[Reason, ...]:
    """Return the known reasons why a run differs from the published table ``name``, in the order of their file."""
    return load_reasons(_FOLDER / _FILES[name][1], published(name).properties)


def osdi14() -> Published:
    """Return Table 1 of "All File Systems Are Not Created Equal" (OSDI 2014)."""
    return published(OSDI14)


def osdi14_reasons() -> tuple[Reason, ...]:
    return reasons_of(OSDI14)


class ReasonsDeclaration(Declaration, frozen=True):
    reason: tuple[Reason, ...]


def load_reasons(path: Path, properties: Sequence[str] = tuple(TITLES)) -> tuple[Reason, ...]:
    """Return the reasons in the file ``path``. ``properties`` are those of the published table. Raise MalformedError if
    a reason is damaged, or names an unknown property."""
    text = toml(path, "see docs/formats.md")
    with mistakes_in(path.name, "see docs/formats.md", MalformedError):
        return tuple(_checked(reason, properties) for reason in declared(ReasonsDeclaration, text).reason)


def _checked(reason: Reason, properties: Sequence[str]) -> Reason:
    """Return ``reason`` with its text in one line. Raise UsageError if one of its ``properties`` is a name or glob that
    fits none of ``properties``. Raise it also if ``shows`` has an unknown word for a trait (one aspect of how a crash
    breaks the property). Raise UsageError also if the reason explains violations but lacks ``shows``, unless it is a
    ``background`` reason."""
    for glob in reason.properties:
        if not any(fnmatchcase(name, glob) for name in properties):
            raise UsageError(f"reason {reason.title!r}: unknown property {glob!r}")
    for trait, words in reason.shows.items():  # a mistyped name would fit nothing
        if unknown := [word for word in words if word not in WORDS[trait]]:
            said = f"reason {reason.title!r}: unknown word {unknown[0]!r} for {trait}"
            raise UsageError(said, hint=meant(unknown[0], WORDS[trait], "known words"))
    if reason.direction is not Direction.NOT_FOUND and not reason.background and not reason.shows:
        hint = f"shows = {{ {Trait.LOST} = [...] }}, or background = true"
        raise UsageError(f"reason {reason.title!r} does not say what a witness shows", hint=hint)
    return replace(reason, because=" ".join(reason.because.split()))
