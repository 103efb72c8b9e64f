"""What a model can promise: the clauses, each of which forbids some crash states.

A model is the set of those that it promises. The fewer, the weaker it is; without any, every micro-operation is
persisted or not by itself, in units of a sector, and what is found may be garbage.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import product

from bob.errors import MalformedError
from bob.workload.kinds import ChangeKind, Relation


class Unit(StrEnum):
    """What comes all at once: a change as a whole, or each file-system block (4 KiB of a file) of it."""

    WHOLE = "whole"
    BLOCK = "block"


class Fill(StrEnum):
    """What may be where data is not (yet)."""

    ZEROS = "zeros"
    STALE = "stale"


class Call(StrEnum):
    """After what something is durable. ``RETURN`` is the return of whatever operation made the change."""

    FSYNC_FILE = "fsync-file"
    FDATASYNC_FILE = "fdatasync-file"
    FSYNC_DIRECTORY = "fsync-directory"
    FDATASYNC_DIRECTORY = "fdatasync-directory"
    MSYNC = "msync"
    SYNC = "sync"
    SYNCFS = "syncfs"
    SYNC_WRITE = "o-sync-write"
    DSYNC_WRITE = "o-dsync-write"
    RETURN = "return"


class What(StrEnum):
    """What a call makes durable.

    Of the file or directory that it is given: its ``data``, ``size``, ``attributes``, the ``entry`` that it was made
    with, its ``names`` (links and renames of it), the names in it (``entries``), the entry of its ``parent``. Of all
    else that was done before: overwrites, appends (and whatever changes a size), names, attributes; a call that makes
    all of it durable is a total ordering point. Calls that are given nothing (sync) and ``return`` speak of every file.
    """

    DATA = "data"
    SIZE = "size"
    ATTRIBUTES = "attributes"
    ENTRY = "entry"
    NAMES = "names"
    ENTRIES = "entries"
    PARENT = "parent"
    OTHER_OVERWRITES = "other-overwrites"
    OTHER_APPENDS = "other-appends"
    OTHER_NAMES = "other-names"
    OTHER_ATTRIBUTES = "other-attributes"


class Part(StrEnum):
    """What is left as somebody made it, whatever else is lost."""

    NAMES = "names"
    SIZES = "sizes"
    CONTENTS = "contents"
    ATTRIBUTES = "attributes"


@dataclass(frozen=True, slots=True)
class Ordered:
    """Where a change of kind ``after`` is there, even in part, every earlier one of kind ``before`` is whole."""

    before: ChangeKind
    after: ChangeKind
    relation: Relation

    @property
    def name(self) -> str:
        """How the clause is written in a model's file."""
        return f"ordered {self.before} {self.after} {self.relation}"

    @property
    def words(self) -> str:
        """The clause for people."""
        return f"{_A[self.before]} is persisted before a later {self.after} ({self.relation.replace('-', ' ')})"


@dataclass(frozen=True, slots=True)
class Whole:
    """A change of this kind comes all at once, or (``unit`` block) each file-system block of it does."""

    kind: ChangeKind
    unit: Unit

    @property
    def name(self) -> str:
        """How the clause is written in a model's file."""
        return f"whole {self.kind} {self.unit}"

    @property
    def words(self) -> str:
        """The clause for people."""
        if self.unit is Unit.WHOLE:
            return f"{_A[self.kind]} is all there or not at all"
        return f"of {_A[self.kind]} each 4 KiB block is all there or not at all"


@dataclass(frozen=True, slots=True)
class Never:
    """Where the data of a change of this kind is not, there is no ``fill`` in its place."""

    kind: ChangeKind
    fill: Fill

    @property
    def name(self) -> str:
        """How the clause is written in a model's file."""
        return f"never {self.kind} {self.fill}"

    @property
    def words(self) -> str:
        """The clause for people."""
        found = "zeros" if self.fill is Fill.ZEROS else "old contents of the disk"
        return f"{_A[self.kind]} never leaves {found} where its data belongs"


@dataclass(frozen=True, slots=True)
class Durable:
    """When ``call`` has returned, ``what`` of the changes before it is there."""

    call: Call
    what: What

    @property
    def name(self) -> str:
        """How the clause is written in a model's file."""
        return f"durable {self.call} {self.what}"

    @property
    def words(self) -> str:
        """The clause for people."""
        return f"after {_CALLS[self.call]} has returned, {_DURABLE[self.what]} is durable"


@dataclass(frozen=True, slots=True)
class Intact:
    """No crash leaves names, sizes, contents or attributes that no operation made, even in part."""

    part: Part

    @property
    def name(self) -> str:
        """How the clause is written in a model's file."""
        return f"intact {self.part}"

    @property
    def words(self) -> str:
        """The clause for people."""
        return f"a crash leaves no {self.part} that nobody made"


Clause = Ordered | Whole | Never | Durable | Intact

DATA_KINDS = (ChangeKind.OVERWRITE, ChangeKind.APPEND)
GROWING_KINDS = (ChangeKind.APPEND, ChangeKind.TRUNCATE_UP, ChangeKind.FALLOCATE)
DIRECTORY_KINDS = (
    ChangeKind.CREATE,
    ChangeKind.LINK,
    ChangeKind.SYMLINK,
    ChangeKind.UNLINK,
    ChangeKind.RENAME,
    ChangeKind.RENAME_OVER,
    ChangeKind.MKDIR,
    ChangeKind.RMDIR,
)

NEVERS = tuple(
    Never(kind, fill)
    for kind in (ChangeKind.OVERWRITE, *GROWING_KINDS)
    for fill in Fill
    if kind in DATA_KINDS or fill is Fill.STALE  # where nothing was written, zeros belong
)


def every_clause() -> tuple[Clause, ...]:
    """All that a model can promise, in the order in which it is written."""
    return (
        *(Intact(part) for part in Part),
        *NEVERS,
        *(Whole(kind, unit) for kind in DATA_KINDS for unit in Unit),
        *(Whole(kind, Unit.WHOLE) for kind in ChangeKind if kind not in DATA_KINDS),
        *(Ordered(*three) for three in product(ChangeKind, ChangeKind, Relation)),
        *(Durable(call, what) for call, what in product(Call, What)),
    )


def clause_of(name: str) -> Clause:
    """The clause that is written so; MalformedError if there is none."""
    if name not in _BY_NAME:
        raise MalformedError(f"{name!r} is no clause of a model")
    return _BY_NAME[name]


_A = {kind: f"{'an' if kind[0] in 'aou' else 'a'} {kind.replace('-', ' ')}" for kind in ChangeKind}
_CALLS = {
    Call.FSYNC_FILE: "fsync of a file",
    Call.FDATASYNC_FILE: "fdatasync of a file",
    Call.FSYNC_DIRECTORY: "fsync of a directory",
    Call.FDATASYNC_DIRECTORY: "fdatasync of a directory",
    Call.MSYNC: "msync of a file",
    Call.SYNC: "sync",
    Call.SYNCFS: "syncfs",
    Call.SYNC_WRITE: "an O_SYNC write",
    Call.DSYNC_WRITE: "an O_DSYNC write",
    Call.RETURN: "an operation",
}
_DURABLE = {
    What.DATA: "the data",
    What.SIZE: "the size",
    What.ATTRIBUTES: "every attribute",
    What.ENTRY: "the entry that it was made with",
    What.NAMES: "every link and rename of it",
    What.ENTRIES: "every name in it",
    What.PARENT: "the entry of its directory",
    What.OTHER_OVERWRITES: "every overwrite of another file",
    What.OTHER_APPENDS: "every append to another file (and whatever else changed its size)",
    What.OTHER_NAMES: "every other name that was made, moved or removed",
    What.OTHER_ATTRIBUTES: "every attribute of another file",
}
_BY_NAME = {clause.name: clause for clause in every_clause()}
