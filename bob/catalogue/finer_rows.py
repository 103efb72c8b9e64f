"""The rows of the finer tables: pairs of changes, durability after calls, and units of atomicity. A row is a property
that bob tests. These rows are more exact than the rows of Table 1, bob's main table of properties. bob makes models of
file systems from the results of the finer tables."""

from collections.abc import Iterator
from itertools import product

from bob.claim.property.rules import Property, Rule
from bob.claim.property.subjects import Span
from bob.claim.property.vocabulary import Call, Unit, What
from bob.workload.kinds import MODELLED_KINDS, ChangeKind, Relation

ORDERING, DURABILITY, ATOMICITY = "ordering", "durability", "atomicity"  # names of families of rows

_PAIRED = tuple(kind for kind in ChangeKind if kind not in (ChangeKind.ZERO, ChangeKind.SHIFT))
"""The kinds of changes that the table of pairs has. Its workloads do not zero or shift ranges."""
_SET_THE_SIZE = (ChangeKind.TRUNCATE_DOWN, ChangeKind.TRUNCATE_UP, ChangeKind.FALLOCATE)
UNTELLABLE = frozenset(
    {
        *product(_SET_THE_SIZE, (*_SET_THE_SIZE, ChangeKind.APPEND)),
        (ChangeKind.APPEND, ChangeKind.TRUNCATE_DOWN),
    }
    - {(ChangeKind.TRUNCATE_DOWN, ChangeKind.APPEND)}
)  # pairs of changes of one file whose later change sets the size, so no tree shows whether the earlier one is missing

_WHERE = {
    Relation.SAME_FILE: "on the same file",
    Relation.SAME_DIRECTORY: "in the same directory, on another file",
    Relation.OTHER_DIRECTORY: "in another directory",
}


def pair_rows() -> Iterator[Property]:
    """Yield the rows about the order of two changes. Each row is for two kinds of changes, X and Y. It asks whether a
    change of kind X persists before a later change of kind Y. Its name is ``X-then-Y.RELATION``. Here RELATION says,
    for example, that both changes are of the same file (probes/rows/pairs.toml)."""
    for relation, first, later in product(Relation, _PAIRED, _PAIRED):
        if relation is Relation.SAME_FILE and (first, later) in UNTELLABLE:
            continue
        yield Property(
            name=f"{first.value}-then-{later.value}.{relation.value}",
            family=ORDERING,
            meaning=f"an operation of the kind {first.value} is persisted before a later one of the kind "
            f"{later.value} {_WHERE[relation]}",
            rule=Rule.ORDERED,
            kinds=(first,),
            later_kinds=(later,),
            relations=(relation,),
        )


_SIZING = (
    *(ChangeKind.APPEND, ChangeKind.TRUNCATE_DOWN, ChangeKind.TRUNCATE_UP, ChangeKind.FALLOCATE),
    ChangeKind.SHIFT,
)
_MAKING = (ChangeKind.CREATE, ChangeKind.SYMLINK)
_NAMING = (ChangeKind.LINK, ChangeKind.RENAME, ChangeKind.RENAME_OVER, ChangeKind.UNLINK, ChangeKind.RMDIR)
_KINDS_OF_A_FILE = {
    What.DATA: (ChangeKind.OVERWRITE, ChangeKind.ZERO),
    What.SIZE: _SIZING,
    What.ENTRY: _MAKING,
    What.NAMES: _NAMING,
    What.PARENT: (ChangeKind.MKDIR,),
    What.ATTRIBUTES: (ChangeKind.SETXATTR,),
    What.EVERYTHING: tuple(ChangeKind),
}
_KINDS_IN_A_DIRECTORY = {
    What.OTHER_OVERWRITES: (ChangeKind.OVERWRITE, ChangeKind.ZERO),
    What.OTHER_APPENDS: _SIZING,
    What.NEW_ENTRIES: (*_MAKING, ChangeKind.MKDIR),
    What.MOVED_ENTRIES: _NAMING,
    What.ENTRY: (ChangeKind.MKDIR,),
    What.OTHER_ATTRIBUTES: (ChangeKind.SETXATTR,),
    What.EVERYTHING: tuple(ChangeKind),
}
_OF_A_FILE = {
    What.DATA: "its data",
    What.SIZE: "its size, with what was appended",
    What.ENTRY: "its new directory entry (safe file flush)",
    What.NAMES: "its other names: those that it was given, or lost",
    What.PARENT: "the entry of its new directory",
    What.ATTRIBUTES: "its attributes",
    What.EVERYTHING: "everything that was issued before (a total ordering point)",
}
_OF_A_DIRECTORY = {
    What.OTHER_OVERWRITES: "the data of the files in it",
    What.OTHER_APPENDS: "the sizes of the files in it",
    What.NEW_ENTRIES: "new entries in it",
    What.MOVED_ENTRIES: "names that are moved, linked or removed in it",
    What.ENTRY: "its own entry, where it is new",
    What.OTHER_ATTRIBUTES: "the attributes of the files in it",
    What.EVERYTHING: _OF_A_FILE[What.EVERYTHING],
}
_OF_ALL = {
    What.DATA: "data",
    What.SIZE: "sizes, with what was appended",
    What.ENTRY: "new directory entries",
    What.NAMES: "names that are moved, linked or removed",
    What.PARENT: "the entries of new directories",
    What.ATTRIBUTES: "attributes",
    What.EVERYTHING: "everything that was issued before",
}
_WHOLE_FILE_SYSTEM = (Call.SYNCFS, Call.SYNC, Call.RETURNED)


def durability_rows() -> Iterator[Property]:
    """Yield the rows about durability. Each row is for one call, such as an fsync of a file. It asks whether the call
    makes some earlier changes durable, such as those of the file's size. Its name is ``CALL.WHAT``
    (probes/rows/durability.toml), and WHAT stands for the earlier changes. The workloads of the row end with the call.

    A model of a file system uses the same words for CALL and WHAT, but there a word may stand for more changes. For
    example, ``data`` in a model includes appended data. In a row, it stands for overwrites and zeroed ranges."""
    for call in Call:
        if call in (Call.FDATASYNC_DIRECTORY, Call.SYNC_FILE_RANGE):
            continue  # no workload ends with these calls
        is_directory = call is Call.FSYNC_DIRECTORY
        words = _OF_ALL if call in _WHOLE_FILE_SYSTEM else _OF_A_DIRECTORY if is_directory else _OF_A_FILE
        for what, kinds in (_KINDS_IN_A_DIRECTORY if is_directory else _KINDS_OF_A_FILE).items():
            if call is Call.RETURNED and what is What.EVERYTHING:
                continue  # if each operation is durable when it returns, all operations before it are
            yield Property(
                name=f"{call.value}.{what.value}",
                family=DURABILITY,
                meaning=f"{call.words} has made durable, when it returns: {words[what]}",
                rule=Rule.DURABLE,
                kinds=kinds,
                relations=_relations(call, what),
                call=call,
            )


def _relations(call: Call, what: What) -> tuple[Relation, ...]:
    if call in _WHOLE_FILE_SYSTEM or what is What.EVERYTHING:
        return ()
    is_of_itself = what is What.ENTRY if call is Call.FSYNC_DIRECTORY else what is not What.PARENT
    return (Relation.SAME_FILE if is_of_itself else Relation.SAME_DIRECTORY,)


_SPANS = {Unit.SECTOR: Span.SECTOR, Unit.BLOCK: Span.BLOCK, Unit.WHOLE: Span.BLOCKS}
_UNIT_WORDS = {
    Unit.SECTOR: "inside one sector (512 bytes of the file)",
    Unit.BLOCK: "inside one block (4,096 bytes of the file), over several sectors,",
    Unit.WHOLE: "over several blocks",
}


def unit_rows() -> Iterator[Property]:
    """Yield the rows about atomicity. For each kind of change that writes data, there are several rows, one for each
    unit, such as 512 bytes. Each of these rows asks whether a change inside one such unit is atomic. The smallest unit
    comes first. Any other kind of change has one row, which asks whether a whole change is atomic. A row's name is
    ``KIND.UNIT`` (probes/rows/units.toml)."""
    for kind in MODELLED_KINDS:
        if kind not in (ChangeKind.OVERWRITE, ChangeKind.APPEND):
            meaning = f"an operation of the kind {kind.value} is all or nothing"
            yield Property(f"{kind}.{Unit.WHOLE}", ATOMICITY, meaning, Rule.ATOMIC, kinds=(kind,))
            continue
        for unit in Unit:
            meaning = f"an {kind.value} {_UNIT_WORDS[unit]} is all or nothing"
            yield Property(f"{kind}.{unit}", ATOMICITY, meaning, Rule.ATOMIC, spans=(_SPANS[unit],), kinds=(kind,))
