"""The syntax tree of expectations (conditions on the tree after a crash). ``at`` is the place of a node in the text,
for messages about mistakes. It has the index of the node's first character, and the index after its last character.
Comparisons of nodes ignore ``at``."""

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
    """The bytes that a test expects in a file or an attribute. If ``what`` is a number, these are the bytes that the
    operation with this number wrote. Otherwise ``what`` is a word for contents, such as ``old`` for the contents in the
    initial tree."""

    what: int | KeptContents
    at: TextSpan = field(default=(0, 0), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ByteRange:
    start: int
    stop: int
    at: TextSpan = field(default=(0, 0), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Mounts:
    """A test that the kernel mounts the file system without a repair."""


@dataclass(frozen=True, slots=True)
class Exists:
    name: NamedPath


@dataclass(frozen=True, slots=True)
class Absent:
    """A test that the name does not exist. It holds only if bob can list the directory of the name, or if that
    directory does not exist either."""

    name: NamedPath


@dataclass(frozen=True, slots=True)
class Same:
    """A test that both names exist and have the same inode."""

    one: NamedPath
    other: NamedPath


@dataclass(frozen=True, slots=True)
class StatIs:
    """A test that compares ``field`` of an inode with ``value``: a number, a pair (user, group) or a text. A test of a
    size (in bytes) or of the number of hard links holds only for files. A test of a target holds only for symbolic
    links. A time of modification is in seconds since 1970. A test of such a time holds only if an operation has set the
    time. It does not hold if the kernel itself has set the time when the file changed."""

    name: NamedPath
    field: StatField
    value: int | tuple[int, int] | str
    relation: SizeRelation = SizeRelation.EQUAL


@dataclass(frozen=True, slots=True)
class Content:
    """A test that a file has the bytes of ``source``. If ``prefix`` is True, it also holds if the file ends early, so
    that it has only the beginning of these bytes."""

    name: NamedPath
    source: Source
    within: ByteRange | None = None
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class Attribute:
    """A test that the name exists, and that its extended attribute ``attribute`` has the expected value. ``source``
    says whether this is the value in the initial tree, in the final tree, or after a certain operation. If the
    attribute does not exist in the tree that ``source`` stands for, the test holds only if it is absent after the
    crash, too."""

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
