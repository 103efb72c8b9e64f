"""What a model can promise: the clauses, each of which forbids some crash states.

A model is the set of those that it promises. The fewer, the weaker it is; without any, every micro-operation is
persisted or not by itself, in units of a sector, and what is found may be garbage.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import product

from bob.claim.property.vocabulary import Call, Unit, What, clause_of_today
from bob.errors import MalformedError
from bob.workload.kinds import MODELLED_KINDS, ChangeKind, Relation


class Fill(StrEnum):
    """What may be where data is not (yet)."""

    ZEROS = "zeros"
    STALE = "stale"


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
        return f"after {self.call.words} has returned, {_DURABLE[self.what]} is durable"


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
WHATS = tuple(_DURABLE)
"""What a clause says to be durable; the rest of :class:`What` is for tables."""
UNITS = (Unit.WHOLE, Unit.BLOCK)
"""Up to which a clause says that a change is whole: where none does, sectors are."""

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
        *(Whole(kind, unit) for kind in DATA_KINDS for unit in UNITS),
        *(Whole(kind, Unit.WHOLE) for kind in MODELLED_KINDS if kind not in DATA_KINDS),
        *(Ordered(*three) for three in product(MODELLED_KINDS, MODELLED_KINDS, Relation)),
        *(Durable(call, what) for call, what in product(Call, WHATS)),
    )


def clause_of(name: str) -> Clause:
    """The clause that is written so, today or in older files; MalformedError if there is none."""
    written = clause_of_today(name)
    if written not in _BY_NAME:
        raise MalformedError(f"{name!r} is no clause of a model")
    return _BY_NAME[written]


_A = {kind: f"{'an' if kind[0] in 'aou' else 'a'} {kind.replace('-', ' ')}" for kind in ChangeKind}
_BY_NAME = {clause.name: clause for clause in every_clause()}
