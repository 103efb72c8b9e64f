"""An expectation as it is understood: a tree of tests, plain data.

Each name and source knows where it stands in the text (``at``: first character, and the one after the last), so that
what cannot be asked is pointed at; two that differ in nothing else are equal.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

TextSpan = tuple[int, int]

PLAIN = re.compile(r"""[^\s()\[\]=<>!'"\\]+""")
"""A word that needs no quotes."""


class SizeRelation(StrEnum):
    """How sizes are compared."""

    EQUAL = "="
    DIFFERENT = "!="
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="


class KeptContents(StrEnum):
    """Contents that go by a name; those of an operation go by its number."""

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
    """Whose bytes are expected: those of ``what``, an operation's number or one of :class:`KeptContents`."""

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
class Size:
    """The name is that of a file, whose size (bytes) is so."""

    name: NamedPath
    relation: SizeRelation
    size: int


@dataclass(frozen=True, slots=True)
class Content:
    """The name is that of a file, which holds the bytes of ``source``; of a ``prefix``, the first of them."""

    name: NamedPath
    source: Source
    within: ByteRange | None = None
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class Links:
    """The name is that of a file, which has so many names."""

    name: NamedPath
    relation: SizeRelation
    number: int


@dataclass(frozen=True, slots=True)
class Mode:
    """The name is there, with these permission bits."""

    name: NamedPath
    mode: int


@dataclass(frozen=True, slots=True)
class Owner:
    """The name is there, with this owner and group."""

    name: NamedPath
    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Time:
    """The name is there, and was modified then (seconds since 1970), as an operation has set it."""

    name: NamedPath
    seconds: int


@dataclass(frozen=True, slots=True)
class Target:
    """The name is that of a symbolic link, which leads to ``path``."""

    name: NamedPath
    path: str


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
    """Where ``left`` holds, ``right`` does."""

    left: Formula
    right: Formula


Atom = Mounts | Exists | Absent | Same | Size | Content | Links | Mode | Owner | Time | Target | Attribute
Formula = Atom | Not | And | Or | Implies


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is expected, as it was written (``text``) and as it is understood (``test``)."""

    text: str
    test: Formula

    @property
    def line(self) -> str:
        """The text in one line, for people."""
        return " ".join(self.text.split())

    @property
    def asks_of_mounts(self) -> bool:
        """Whether it says something of states that the kernel does not mount."""
        return any(isinstance(atom, Mounts) for atom in atoms(self.test))


def atoms(test: Formula) -> Iterator[Atom]:
    """What ``test`` consists of, from left to right."""
    match test:
        case Not(inner):
            yield from atoms(inner)
        case And(left, right) | Or(left, right) | Implies(left, right):
            yield from atoms(left)
            yield from atoms(right)
        case _:
            yield test


def names(atom: Atom) -> tuple[NamedPath, ...]:
    """The names that ``atom`` speaks of."""
    if isinstance(atom, Mounts):
        return ()
    return (atom.one, atom.other) if isinstance(atom, Same) else (atom.name,)


def write(test: Formula) -> str:
    """``test`` in the language, with no brackets but those that it needs; read again it is the same."""
    match test:
        case Mounts():
            return "mounts"
        case Exists(name):
            return f"exists {_quoted(name)}"
        case Absent(name):
            return f"absent {_quoted(name)}"
        case Same(one, other):
            return f"same {_quoted(one)} {_quoted(other)}"
        case Size(name, relation, size):
            return f"size {_quoted(name)} {relation} {size}"
        case Content(name, source, within, prefix):
            piece = f"[{within.start}:{within.stop}]" if within else ""
            return f"content {_quoted(name)}{piece} {'prefix' if prefix else '='} {_written(source)}"
        case Links(name, relation, number):
            return f"links {_quoted(name)} {relation} {number}"
        case Mode(name, mode):
            return f"mode {_quoted(name)} = {mode:03o}"
        case Owner(name, uid, gid):
            return f"owner {_quoted(name)} = {uid}:{gid}"
        case Time(name, seconds):
            return f"time {_quoted(name)} = {seconds}"
        case Target(name, path):
            return f"target {_quoted(name)} = {_in_quotes(path)}"
        case Attribute(name, attribute, source):
            return f"attribute {_quoted(name)} {_in_quotes(attribute)} = {_written(source)}"
        case Not(inner):
            return f"not {_inside(inner, Not)}"
        case And(left, right):
            return f"{_inside(left, Not, And)} and {_inside(right, Not)}"
        case Or(left, right):
            return f"{_inside(left, Not, And, Or)} or {_inside(right, Not, And)}"
        case Implies(left, right):
            return f"{_inside(left, Not, And, Or)} implies {_inside(right, Not, And, Or, Implies)}"


def _inside(test: Formula, *bare: type) -> str:
    """``test``, in brackets unless it is an atom or one of ``bare``."""
    return (
        f"({write(test)})" if isinstance(test, Not | And | Or | Implies) and not isinstance(test, bare) else write(test)
    )


def _quoted(name: NamedPath) -> str:
    return _in_quotes(name.path)


def _in_quotes(word: str) -> str:
    if PLAIN.fullmatch(word):
        return word
    quoted = shlex.quote(word)
    return quoted if quoted != word else f"'{word}'"  # a shell takes = without quotes


def _written(source: Source) -> str:
    return f"op{source.what}" if isinstance(source.what, int) else source.what.value
