"""The clauses of persistence models. A clause is one promise of a model about what a crash leaves, and so it forbids
some crash states. A *change* is what an operation does to one file or directory, such as an append or a rename. Without
any clause, a model allows each sector of a change to persist alone, and garbage to appear."""

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from itertools import product

from bob.claim.property.vocabulary import Call, Unit, What, clause_of_today
from bob.errors import MalformedError
from bob.workload.kinds import MODELLED_KINDS, ChangeKind, Relation


class Fill(StrEnum):
    """The bytes that a crash state shows where data of a file did not persist."""

    ZEROS = "zeros"
    STALE = "stale"


class AppendPart(StrEnum):
    """A part of an append. The parts differ because the file system allocates new blocks for some of an append's data;
    the other data goes to a block that the file already has."""

    ANYWHERE = "anywhere"
    TAIL = "tail-block"  # the block where the file ended before, if no call syncs only a part of the file
    LAST = "last-block"  # the block where the file ends now, if the append begins it
    EARLIER = "earlier-blocks"  # earlier blocks that the append begins, if no call syncs only a part of the file


class TreePart(StrEnum):
    """A part of the tree that a clause protects from garbage. In this part, a crash state has nothing but effects of
    operations, though it may lack some of these effects."""

    NAMES = "names"
    SIZES = "sizes"
    CONTENTS = "contents"
    KEPT = "kept-contents"  # in files that are not removed, replaced or cut (other files may get blocks of such a file)
    ATTRIBUTES = "attributes"


ANY = "any"  # in a pattern, this word matches every word
UNLESS_SYNCED = " unless-synced"  # the end of the name of an order that a sync of the later change may break


@dataclass(frozen=True, slots=True)
class Ordered:
    """The promise of an order between changes of two kinds. If any part of a change of the kind ``after`` persisted,
    then every earlier change of the kind ``before`` persisted as a whole. The promise is only about pairs of changes
    with this ``relation``: they share a file, share a directory, or share neither. If ``unless_synced`` is true, the
    order has an exception. A sync of the file or directory of the later change may persist that change before the
    earlier one (ext3-fast of OSDI'14, section 4.6)."""

    before: ChangeKind
    after: ChangeKind
    relation: Relation
    unless_synced: bool = False

    @property
    def is_of_a_name(self) -> bool:
        """True if both changes are of one file, and the later one affects a name of the file."""
        return self.relation is Relation.SAME_FILE and self.after in RENAMING_KINDS

    @property
    def name(self) -> str:
        return f"ordered {self.before} {self.after} {self.relation}{UNLESS_SYNCED if self.unless_synced else ''}"

    @property
    def words(self) -> str:
        relation = self.relation.replace("-", " ")
        unless = ", unless a sync of its own persists that" if self.unless_synced else ""
        return f"{_A[self.before]} is persisted before a later {self.after} ({relation}){unless}"


class Means(StrEnum):
    """A class of changes that a file system tends to write in the same way. So if an order holds for some changes of
    the class, it tends to hold for all of them. ``SYNCED_NAMES`` stands for changes of names that the file system may
    also write into its log of synced files. For example, btrfs does so when a synced file gets a new name
    (btrfs_log_new_name)."""

    OVERWRITES = "overwrites"
    APPENDS = "appends"
    SIZES = "sizes"
    NAMES = "names"
    SYNCED_NAMES = "synced-names"
    OWN = "own-changes"
    METADATA = "metadata"
    SYNCS = "syncs"


@dataclass(frozen=True, slots=True)
class InTurn:
    """The promise of an order between changes of two classes (:class:`Means`). If any part of a change of the class
    ``after`` persisted, then all earlier changes of the class ``before`` persisted as a whole. The promise does not
    hold for a later change if some call syncs its file or directory."""

    before: Means
    after: Means

    @property
    def name(self) -> str:
        return f"in-turn {self.before} {self.after}"

    @property
    def words(self) -> str:
        if self == JOURNALED:
            return "names and sizes are persisted in the order of their changes"
        if self == SYNCED:
            return "every change of a size is persisted before a later sync call returns, whatever file it syncs"
        if self == OWN_FIRST:
            return "an order of changes of one file that ends with its name also holds if the file was synced before"
        changed = f"{_CHANGED[self.before]} are persisted before later {_CHANGED[self.after]}"
        return f"{changed}, unless a call asks for these alone"


@dataclass(frozen=True, slots=True)
class Whole:
    """The promise that a change of this kind is atomic, which means that it persists as a whole or not at all. If the
    unit is a block, only each file-system block of the change is atomic."""

    kind: ChangeKind
    unit: Unit

    @property
    def name(self) -> str:
        return f"whole {self.kind} {self.unit}"

    @property
    def words(self) -> str:
        if self == _CUT:
            return f"{_A[self.kind]} changes the size and frees whole 4 KiB blocks at once"
        if self.unit is Unit.WHOLE:
            return f"{_A[self.kind]} is all there or not at all"
        return f"each 4 KiB block of {_A[self.kind]} is all there or not at all"


@dataclass(frozen=True, slots=True)
class Never:
    """The promise that a crash state does not show ``fill`` (zeros or stale data) in place of the missing data of a
    change of this kind. ``where`` limits the promise to a part of the change."""

    kind: ChangeKind
    fill: Fill
    where: AppendPart = AppendPart.ANYWHERE

    @property
    def name(self) -> str:
        if self.where is AppendPart.ANYWHERE:
            return f"never {self.kind} {self.fill}"
        return f"never-in {self.kind} {self.where} {self.fill}"

    @property
    def words(self) -> str:
        found = "zeros" if self.fill is Fill.ZEROS else "old contents of the disk"
        return f"{_A[self.kind]} never leaves {found} where its data belongs{_WHERE[self.where]}"


@dataclass(frozen=True, slots=True)
class Durable:
    """The promise that earlier changes are durable when a ``call`` returns. ``what`` names the part of these changes
    that is durable, such as the data."""

    call: Call
    what: What

    @property
    def name(self) -> str:
        return f"durable {self.call} {self.what}"

    @property
    def words(self) -> str:
        return f"after {self.call.words} has returned, {_DURABLE[self.what]} is durable"


@dataclass(frozen=True, slots=True)
class Intact:
    """The promise that a crash leaves no garbage in a part of the tree. Garbage is anything that is neither the effect
    of an operation nor a part of such an effect."""

    part: TreePart

    @property
    def name(self) -> str:
        return f"intact {self.part}"

    @property
    def words(self) -> str:
        if self.part is TreePart.KEPT:
            what = "contents that no operation made"
            return f"a crash never leaves {what} in a file that was not removed, replaced or truncated"
        return f"a crash never leaves {self.part} that no operation made"


Clause = Ordered | InTurn | Whole | Never | Durable | Intact

DATA_KINDS = (ChangeKind.OVERWRITE, ChangeKind.APPEND)
GROWING_KINDS = (ChangeKind.APPEND, ChangeKind.TRUNCATE_UP, ChangeKind.FALLOCATE)
RENAMES = (ChangeKind.RENAME, ChangeKind.RENAME_OVER)
RENAMING_KINDS = (ChangeKind.LINK, ChangeKind.UNLINK, *RENAMES)
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
    What.ENTRY: "the name that it was created with",
    What.NAMES: "every link and rename of it",
    What.ENTRIES: "every name in it",
    What.PARENT: "the name of its directory",
    What.OTHER_OVERWRITES: "every overwrite of another file",
    What.OTHER_APPENDS: "every append to another file, or other change of its size,",
    What.OTHER_NAMES: "every other name that was created, moved or removed",
    What.OTHER_ATTRIBUTES: "every attribute of another file",
}
WHATS = tuple(_DURABLE)  # values in clauses; other values occur only in rows of tables
SYNCS = tuple(call for call in Call if call not in (Call.RETURNED, Call.SYNC_FILE_RANGE))
UNITS = (Unit.WHOLE, Unit.BLOCK)  # units that persist whole by a clause; sectors are always whole

NEVERS = tuple(
    Never(kind, fill)
    for kind in (ChangeKind.OVERWRITE, *GROWING_KINDS)
    for fill in Fill
    if kind in DATA_KINDS or fill is Fill.STALE  # for other kinds, zeros are right: no data was written
)
PIECES = tuple(
    Never(ChangeKind.APPEND, fill, where) for where in AppendPart if where is not AppendPart.ANYWHERE for fill in Fill
)  # the clauses of NEVERS about an append, but each for one part of the append


_CUT = Whole(ChangeKind.TRUNCATE_DOWN, Unit.BLOCK)
"""The blocks that a cut takes off a file disappear together with the size. The cut also turns the rest of the last
block into zeros, but by other writes."""
_LESSER: tuple[Clause, ...] = (Intact(TreePart.KEPT), *PIECES, _CUT)


def orders(
    before: Iterable[ChangeKind], after: Iterable[ChangeKind], relations: Iterable[Relation] = Relation
) -> tuple[Ordered, ...]:
    return tuple(Ordered(*three) for three in product(before, after, relations))


def durable(calls: Iterable[Call], whats: Iterable[What]) -> tuple[Durable, ...]:
    return tuple(Durable(*two) for two in product(calls, whats))


def written_by(means: Means) -> tuple[ChangeKind, ...]:
    of = Means.NAMES if means is Means.SYNCED_NAMES else means
    return tuple(kind for kind in MODELLED_KINDS if means_of(kind) is of)


def means_of(kind: ChangeKind, *, is_logged: bool = False) -> Means:
    """Return the class (:class:`Means`) that changes of this kind belong to. ``is_logged`` says that the file system
    may also write the change into a log when it syncs a file."""
    means = _MEANS.get(kind, Means.NAMES)
    return Means.SYNCED_NAMES if is_logged and means is Means.NAMES else means


_MEANS = {
    ChangeKind.OVERWRITE: Means.OVERWRITES,
    ChangeKind.APPEND: Means.APPENDS,
    ChangeKind.TRUNCATE_DOWN: Means.SIZES,
    ChangeKind.TRUNCATE_UP: Means.SIZES,
    ChangeKind.FALLOCATE: Means.SIZES,
    ChangeKind.ZERO: Means.OVERWRITES,  # in a block that stays, the kernel writes zeros like other data
}
IN_TURN = tuple(
    InTurn(before, after)
    for before in (Means.SIZES, Means.NAMES)
    for after in Means
    if after not in (Means.OWN, Means.METADATA, Means.SYNCS)
)
"""Orders by means, for changes of metadata only. Without a sync the kernel writes data by its age, so one order of data
says little about another."""
OWN_FIRST = InTurn(Means.OWN, Means.SYNCED_NAMES)
"""In a model without this clause, a promised order has an exception if both changes are of one file, and the later one
affects a name. Such an order does not hold for a file that is in a log."""
JOURNALED, SYNCED = InTurn(Means.METADATA, Means.METADATA), InTurn(Means.METADATA, Means.SYNCS)
"""Clauses for a journal of metadata (ext3 data=writeback): each sync commits the whole journal, with the sizes of
appends but without their data. bob does not derive these clauses. They follow if all orders hold, and if syncs persist
every append."""
_ORDERS: dict[InTurn, frozenset[Clause]] = {
    clause: frozenset(orders(written_by(clause.before), written_by(clause.after))) for clause in IN_TURN
}
_JOURNALED_KINDS = (*DIRECTORY_KINDS, *GROWING_KINDS, ChangeKind.TRUNCATE_DOWN)
_ORDERS[JOURNALED] = frozenset({OWN_FIRST, *orders(_JOURNALED_KINDS, _JOURNALED_KINDS)})
_ORDERS[SYNCED] = frozenset(durable(SYNCS, (What.OTHER_APPENDS,)))


def every_clause() -> tuple[Clause, ...]:
    """Return all clauses that bob derives from observations, sorted as in a model file. The result lacks ``JOURNALED``
    and ``SYNCED``, two clauses about a journal of metadata. Each order (:class:`Ordered`) has two variants, and the
    result has only the variant without ``unless_synced``."""
    return (
        *(Intact(part) for part in TreePart),
        *NEVERS,
        *PIECES,
        *(Whole(kind, unit) for kind in DATA_KINDS for unit in UNITS),
        *(Whole(kind, Unit.WHOLE) for kind in MODELLED_KINDS if kind not in DATA_KINDS),
        _CUT,
        *orders(MODELLED_KINDS, MODELLED_KINDS),
        *IN_TURN,
        OWN_FIRST,
        *durable((*SYNCS, Call.RETURNED), WHATS),
    )


def every_written() -> tuple[Clause, ...]:
    """Return all clauses that a model file may have. But of the two variants of each order, return only the one without
    ``unless_synced``."""
    return (*every_clause(), JOURNALED, SYNCED)


def clause_of(name: str) -> Clause:
    """Return the clause with this name, in its current or an older spelling. Raises MalformedError if the name is
    unknown."""
    written = clause_of_today(name)
    found = _BY_NAME.get(written.removesuffix(UNLESS_SYNCED))
    if isinstance(found, Ordered) and written.endswith(UNLESS_SYNCED):
        return replace(found, unless_synced=True)
    if found is None or written.endswith(UNLESS_SYNCED):
        raise MalformedError(f"unknown clause {name!r}")
    return found


@cache
def matching(*texts: str) -> tuple[Clause, ...]:
    """Return the clauses whose names match one of the patterns ``texts``. First come the clauses that match the first
    pattern, in the order of a model file, then those that match the second, and so on. Each word of a pattern matches
    one word of the name. It may be ``any`` (which matches every word), contain ``*``, or list alternatives
    (``append|overwrite``). Raises ValueError for a pattern without a match."""
    found = {text: [clause for name, clause in _BY_NAME.items() if _is_like(name, text)] for text in texts}
    if slips := [text for text, those in found.items() if not those]:
        raise ValueError(f"no clause matches {slips[0]!r}")
    return tuple(clause for those in found.values() for clause in those)


def _is_like(name: str, text: str) -> bool:
    words, wanted = name.split(), [word.split("|") for word in text.casefold().split()]
    return len(words) == len(wanted) and all(
        any(one == ANY or fnmatchcase(word, one) for one in some) for word, some in zip(words, wanted, strict=True)
    )


def with_weaker(promised: Set[Clause]) -> frozenset[Clause]:
    """Return the ``promised`` clauses. For each order among them, also return its weaker variant, which allows a sync
    to break the order (``unless_synced``)."""
    orders = {replace(clause, unless_synced=True) for clause in promised if isinstance(clause, Ordered)}
    return frozenset(promised | orders)


def without_exception(clause: Clause) -> Clause:
    """Return ``clause``. If it is an order that allows a sync to break it (``unless_synced``), return the stronger
    order without this exception."""
    return replace(clause, unless_synced=False) if isinstance(clause, Ordered) else clause


def kept_by_logs(promised: Set[Clause]) -> frozenset[Clause]:
    """Return the ``promised`` clauses that also hold for a file whose changes the file system has written into a log.
    The result leaves out each order between two changes of one file if the later change affects a name. Such
    orders hold for a file in a log only with the clause :data:`OWN_FIRST`, which ``promised`` must not contain."""
    return frozenset(clause for clause in promised if not (isinstance(clause, Ordered) and clause.is_of_a_name))


def closed(promised: Set[Clause]) -> frozenset[Clause]:
    """Return ``promised`` together with the weaker clauses that follow from it. The promises of a model are always such
    a closed set."""
    lesser = {clause for clause in _LESSER if not promised.isdisjoint(saying_more(clause))}
    return frozenset(promised | lesser | {clause for clause, orders in _ORDERS.items() if promised >= orders})


def saying_less(taken: Set[Clause]) -> frozenset[Clause]:
    """Return the clauses that are weaker than one of the clauses ``taken``, which are taken away from a model. A weaker
    clause may hold although the stronger one does not. So the model may still promise the clauses in the result."""
    lesser = {clause for clause in _LESSER if not taken.isdisjoint(saying_more(clause))}
    return frozenset(lesser | {clause for clause, orders in _ORDERS.items() if not taken.isdisjoint(orders)})


def saying_more(clause: Clause) -> tuple[Clause, ...]:
    """Return the clauses that are stronger than ``clause``. A crash state that refutes ``clause`` also refutes each of
    these stronger clauses."""
    if isinstance(clause, Never) and clause.where is not AppendPart.ANYWHERE:
        return (Never(clause.kind, clause.fill),)
    if clause == Intact(TreePart.KEPT):
        return (Intact(TreePart.CONTENTS),)
    return (Whole(ChangeKind.TRUNCATE_DOWN, Unit.WHOLE),) if clause == _CUT else ()


_WHERE = {
    AppendPart.ANYWHERE: "",
    AppendPart.TAIL: ", in the block where the file ended before, unless a call asks for a part of the file",
    AppendPart.LAST: ", in the last block of the file, if the append began that block",
    AppendPart.EARLIER: ", in blocks that it began before the last one, unless a call asks for a part of the file",
}
_CHANGED = {
    Means.OVERWRITES: "overwrites and zeroed ranges",
    Means.APPENDS: "appends",
    Means.SIZES: "changes of a size by truncate or fallocate",
    Means.NAMES: "names and attributes",
    Means.OWN: "changes of a file",
    Means.SYNCED_NAMES: "names and attributes of a file that was synced before, or of files beside it",
}
_A = {kind: f"{'an' if kind[0] in 'aou' else 'a'} {kind.replace('-', ' ')}" for kind in ChangeKind}
_BY_NAME = {clause.name: clause for clause in every_written()}
