"""What each call makes durable: the rows of ``bob matrix --rows durability``.

The names of the rows are ``CALL.WHAT``. Their workloads are in probes/rows/durability.toml.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from bob.claim.property.calls import Call
from bob.claim.property.rules import Property, Rule
from bob.workload.kinds import ChangeKind, Relation

FAMILY = "durability"


class What(StrEnum):
    """What a call may make durable."""

    DATA = "data"
    SIZE = "size"
    NEW_ENTRY = "new-entry"
    OTHER_NAMES = "other-names"
    PARENT_ENTRY = "parent-entry"
    ATTRIBUTE = "attribute"
    EVERYTHING = "everything"


_KINDS = {
    What.DATA: (ChangeKind.OVERWRITE,),
    What.SIZE: (ChangeKind.APPEND, ChangeKind.TRUNCATE_DOWN, ChangeKind.TRUNCATE_UP, ChangeKind.FALLOCATE),
    What.NEW_ENTRY: (ChangeKind.CREATE, ChangeKind.SYMLINK),
    What.OTHER_NAMES: (
        *(ChangeKind.LINK, ChangeKind.RENAME, ChangeKind.RENAME_OVER),
        *(ChangeKind.UNLINK, ChangeKind.RMDIR),
    ),
    What.PARENT_ENTRY: (ChangeKind.MKDIR,),
    What.ATTRIBUTE: (ChangeKind.SETXATTR,),
    What.EVERYTHING: tuple(ChangeKind),
}
_OF_A_FILE = {
    What.DATA: "its data",
    What.SIZE: "its size, with what was appended",
    What.NEW_ENTRY: "its new directory entry (safe file flush)",
    What.OTHER_NAMES: "its other names: those that it was given, or lost",
    What.PARENT_ENTRY: "the entry of its new directory",
    What.ATTRIBUTE: "its attributes",
    What.EVERYTHING: "everything that was issued before (a total ordering point)",
}
_OF_A_DIRECTORY = {
    What.DATA: "the data of the files in it",
    What.SIZE: "the sizes of the files in it",
    What.NEW_ENTRY: "new entries in it",
    What.OTHER_NAMES: "names that are moved, linked or removed in it",
    What.PARENT_ENTRY: "its own entry, where it is new",
    What.ATTRIBUTE: "the attributes of the files in it",
    What.EVERYTHING: _OF_A_FILE[What.EVERYTHING],
}
_OF_ALL = {
    What.DATA: "data",
    What.SIZE: "sizes, with what was appended",
    What.NEW_ENTRY: "new directory entries",
    What.OTHER_NAMES: "names that are moved, linked or removed",
    What.PARENT_ENTRY: "the entries of new directories",
    What.ATTRIBUTE: "attributes",
    What.EVERYTHING: "everything that was issued before",
}
_CALLS = {
    Call.FSYNC_FILE: "fsync of a file",
    Call.FDATASYNC_FILE: "fdatasync of a file",
    Call.FSYNC_DIRECTORY: "fsync of a directory",
    Call.MSYNC: "msync of a mapped file",
    Call.O_SYNC: "a write with O_SYNC",
    Call.O_DSYNC: "a write with O_DSYNC",
    Call.SYNCFS: "syncfs",
    Call.SYNC: "sync",
    Call.RETURNED: "any operation, by itself,",
}
_WHOLE_FILE_SYSTEM = (Call.SYNCFS, Call.SYNC, Call.RETURNED)


def properties() -> Iterator[Property]:
    """Every call with everything that it may make durable, call by call."""
    for call in Call:
        for what in What:
            if call is Call.RETURNED and what is What.EVERYTHING:
                continue  # where each operation is durable when it returns, all before it are
            words = _OF_A_DIRECTORY if call is Call.FSYNC_DIRECTORY else _OF_A_FILE
            words = _OF_ALL if call in _WHOLE_FILE_SYSTEM else words
            yield Property(
                name=f"{call.value}.{what.value}",
                family=FAMILY,
                meaning=f"{_CALLS[call]} has made durable, when it returns: {words[what]}",
                rule=Rule.DURABLE,
                kinds=_kinds(call, what),
                relations=_relations(call, what),
                call=call,
            )


def _kinds(call: Call, what: What) -> tuple[ChangeKind, ...]:
    if call is Call.FSYNC_DIRECTORY and what is What.NEW_ENTRY:
        return (*_KINDS[what], ChangeKind.MKDIR)
    return _KINDS[what]


def _relations(call: Call, what: What) -> tuple[Relation, ...]:
    """How a change is related to the file or directory that the call is made on."""
    if call in _WHOLE_FILE_SYSTEM or what is What.EVERYTHING:
        return ()
    is_beside = (call is Call.FSYNC_DIRECTORY) != (what is What.PARENT_ENTRY)
    return (Relation.SAME_DIRECTORY if is_beside else Relation.SAME_FILE,)
