"""An expectation as a tree of tests.

Each name and source has its place in the text (``at``: first character, and the one after the last), at which an error
points. Two that differ in their places alone are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

TextSpan = tuple[int, int]


class SizeRelation(StrEnum):
    """How sizes and numbers are compared."""

    EQUAL = "="
    DIFFERENT = "!="
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="


class StatField(StrEnum):
    """What stat says of a name, by its word in the language."""

    SIZE = "size"
    LINKS = "links"
    MODE = "mode"
    OWNER = "owner"
    TIME = "time"
    TARGET = "target"


class KeptContents(StrEnum):
    """Contents with a name."""

    OLD = "old"
    NEW = "new"
    ZEROS = "zeros"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class NamedPath:
    """A path within the probed file system."""

    path: str
    at: TextSpan = field(default=(0, 0), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Source:
    """Whose bytes are expected: those of an operation by its number, or kept ones."""

    what: int | KeptContents
    at: TextSpan = field(default=(0, 0), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The bytes ``start`` up to, not including, ``stop`` of a file."""

    start: int
    stop: int
    at: TextSpan = field(default=(0, 0), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Mounts:
    """The kernel mounts the file system at once: no repair comes first."""


@dataclass(frozen=True, slots=True)
class Exists:
    """The name is there."""

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
    """``field`` of the name's inode compares so to ``value``: a number, (user, group) or a text.

    Sizes (bytes) and numbers of names are of files, targets of symbolic links. A time is in seconds since 1970, as an
    operation has set it.
    """

    name: NamedPath
    field: StatField
    value: int | tuple[int, int] | str
    relation: SizeRelation = SizeRelation.EQUAL


@dataclass(frozen=True, slots=True)
class Content:
    """The name is that of a file, which holds the bytes of ``source``; with ``prefix``, the first of them."""

    name: NamedPath
    source: Source
    within: ByteRange | None = None
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class Attribute:
    """The name is there, and its extended attribute is as that of ``source``; if there was none, it has none."""

    name: NamedPath
    attribute: str
    source: Source


@dataclass(frozen=True, slots=True)
class Not:
    """``inner`` does not hold."""

    inner: Formula


@dataclass(frozen=True, slots=True)
class And:
    """Both hold."""

    left: Formula
    right: Formula


@dataclass(frozen=True, slots=True)
class Or:
    """One holds, or both."""

    left: Formula
    right: Formula


@dataclass(frozen=True, slots=True)
class Implies:
    """If ``left`` holds, ``right`` does."""

    left: Formula
    right: Formula


Atom = Mounts | Exists | Absent | Same | StatIs | Content | Attribute
Formula = Atom | Not | And | Or | Implies


@dataclass(frozen=True, slots=True)
class Expectation:
    """An expectation: the ``text`` of its author, and the ``test`` that it means."""

    text: str
    test: Formula

    @property
    def line(self) -> str:
        """The text in one line, for people."""
        return " ".join(self.text.split())

    @property
    def asks_of_mounts(self) -> bool:
        """Whether it speaks of states that the kernel does not mount."""
        return any(isinstance(atom, Mounts) for atom in atoms(self.test))


def atoms(test: Formula) -> Iterator[Atom]:
    """Yield the atoms of ``test``, from left to right."""
    match test:
        case Not(inner):
            yield from atoms(inner)
        case And(left, right) | Or(left, right) | Implies(left, right):
            yield from atoms(left)
            yield from atoms(right)
        case _:
            yield test


def names(atom: Atom) -> tuple[NamedPath, ...]:
    """Return the names in ``atom``."""
    if isinstance(atom, Mounts):
        return ()
    return (atom.one, atom.other) if isinstance(atom, Same) else (atom.name,)
