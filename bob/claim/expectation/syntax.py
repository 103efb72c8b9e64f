"""The syntax tree of expectations. ``at`` is the span in the text for errors: the first character, and one past the
last. Comparisons ignore it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

TextSpan = tuple[int, int]


class SizeRelation(StrEnum):
    EQUAL = "="
    DIFFERENT = "!="
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="


class StatField(StrEnum):
    SIZE = "size"
    LINKS = "links"
    MODE = "mode"
    OWNER = "owner"
    TIME = "time"
    TARGET = "target"


class KeptContents(StrEnum):
    OLD = "old"
    NEW = "new"
    ZEROS = "zeros"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class NamedPath:
    path: str
    at: TextSpan = field(default=(0, 0), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Source:
    """The source of the expected bytes: an operation, by its number, or a kept content such as ``old``."""

    what: int | KeptContents
    at: TextSpan = field(default=(0, 0), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ByteRange:
    start: int
    stop: int
    at: TextSpan = field(default=(0, 0), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Mounts:
    """The kernel mounts the file system without a repair."""


@dataclass(frozen=True, slots=True)
class Exists:
    name: NamedPath


@dataclass(frozen=True, slots=True)
class Absent:
    """The name is not there, and its directory can be listed or is not there either."""

    name: NamedPath


@dataclass(frozen=True, slots=True)
class Same:
    """Both names are there, and have one inode."""

    one: NamedPath
    other: NamedPath


@dataclass(frozen=True, slots=True)
class StatIs:
    """A comparison of an inode's ``field`` with ``value``: a number, (user, group) or a text. Only files have sizes
    (bytes) and numbers of names, only symbolic links have targets. A time (seconds since 1970) is one that an operation
    set."""

    name: NamedPath
    field: StatField
    value: int | tuple[int, int] | str
    relation: SizeRelation = SizeRelation.EQUAL


@dataclass(frozen=True, slots=True)
class Content:
    """A file has the bytes of ``source``; with ``prefix``, the first of them."""

    name: NamedPath
    source: Source
    within: ByteRange | None = None
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class Attribute:
    """The name is there. It has the same extended attribute as ``source``, or lacks it if ``source`` does."""

    name: NamedPath
    attribute: str
    source: Source


@dataclass(frozen=True, slots=True)
class Not:
    inner: Formula


@dataclass(frozen=True, slots=True)
class And:
    left: Formula
    right: Formula


@dataclass(frozen=True, slots=True)
class Or:
    left: Formula
    right: Formula


Atom = Mounts | Exists | Absent | Same | StatIs | Content | Attribute
Formula = Atom | Not | And | Or


@dataclass(frozen=True, slots=True)
class Expectation:
    text: str
    test: Formula

    @property
    def line(self) -> str:
        return " ".join(self.text.split())

    @property
    def asks_of_mounts(self) -> bool:
        return any(isinstance(atom, Mounts) for atom in atoms(self.test))


def atoms(test: Formula) -> Iterator[Atom]:
    match test:
        case Not(inner):
            yield from atoms(inner)
        case And(left, right) | Or(left, right):
            yield from atoms(left)
            yield from atoms(right)
        case _:
            yield test


def names(atom: Atom) -> tuple[NamedPath, ...]:
    if isinstance(atom, Mounts):
        return ()
    return (atom.one, atom.other) if isinstance(atom, Same) else (atom.name,)
