"""What each call makes durable: the rows of ``bob matrix --rows durability``.

The names of the rows are ``CALL.WHAT``. Their workloads are in probes/rows/durability.toml. A row asks for what these
change, which can be less than the same words promise in a model: of the data only what is overwritten or made zeros,
and of other files, where a directory is synced, only those in it.
"""

from __future__ import annotations

from collections.abc import Iterator

from bob.claim.property.rules import Property, Rule
from bob.claim.property.vocabulary import Call, What
from bob.workload.kinds import ChangeKind, Relation

FAMILY = "durability"

_SIZING = (
    *(ChangeKind.APPEND, ChangeKind.TRUNCATE_DOWN, ChangeKind.TRUNCATE_UP, ChangeKind.FALLOCATE),
    ChangeKind.SHIFT,
)
_MAKING = (ChangeKind.CREATE, ChangeKind.SYMLINK)
_NAMING = (ChangeKind.LINK, ChangeKind.RENAME, ChangeKind.RENAME_OVER, ChangeKind.UNLINK, ChangeKind.RMDIR)
_KINDS = {
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


def properties() -> Iterator[Property]:
    """Every call that a workload ends with, and everything that it may make durable, call by call."""
    for call in Call:
        if call is Call.FDATASYNC_DIRECTORY:
            continue  # no workload ends with it
        is_directory = call is Call.FSYNC_DIRECTORY
        words = _OF_ALL if call in _WHOLE_FILE_SYSTEM else _OF_A_DIRECTORY if is_directory else _OF_A_FILE
        for what, kinds in (_KINDS_IN_A_DIRECTORY if is_directory else _KINDS).items():
            if call is Call.RETURNED and what is What.EVERYTHING:
                continue  # where each operation is durable when it returns, all before it are
            yield Property(
                name=f"{call.value}.{what.value}",
                family=FAMILY,
                meaning=f"{call.words} has made durable, when it returns: {words[what]}",
                rule=Rule.DURABLE,
                kinds=kinds,
                relations=_relations(call, what),
                call=call,
            )


def _relations(call: Call, what: What) -> tuple[Relation, ...]:
    """How a change is related to the file or directory that the call is made on."""
    if call in _WHOLE_FILE_SYSTEM or what is What.EVERYTHING:
        return ()
    is_of_itself = what is What.ENTRY if call is Call.FSYNC_DIRECTORY else what is not What.PARENT
    return (Relation.SAME_FILE if is_of_itself else Relation.SAME_DIRECTORY,)
