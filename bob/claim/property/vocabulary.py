"""The words of the theory, one for each thing: calls, what they make durable, and units.

Rows of tables (``fsync-file.entry``) and clauses of models (``durable fsync-file entry``) are made of them, and a word
says the same in both. Older documents have other words for some of these. They are translated where they are read:
:func:`row_of_today`, :func:`clause_of_today`.
"""

from __future__ import annotations

from enum import StrEnum


class Call(StrEnum):
    """After the return of what something is durable."""

    FSYNC_FILE = "fsync-file"
    FDATASYNC_FILE = "fdatasync-file"
    FSYNC_DIRECTORY = "fsync-directory"
    FDATASYNC_DIRECTORY = "fdatasync-directory"
    MSYNC = "msync"
    O_SYNC = "o-sync"
    O_DSYNC = "o-dsync"
    SYNCFS = "syncfs"
    SYNC = "sync"
    RETURNED = "returned"
    """Of the operation itself that made the change: what a mount with the option ``sync`` promises."""

    @property
    def words(self) -> str:
        """The call for people."""
        return _CALLS[self]


class What(StrEnum):
    """What a call makes durable.

    Of the file or directory that it is given: its ``data``, ``size``, ``attributes``, the ``entry`` that it was made
    with, its ``names`` (links and renames of it), the names in it (``entries``), the entry of its ``parent``. Of all
    else that was done before: overwrites, appends (and whatever changes a size), names, attributes. Calls that are
    given nothing (sync) and ``returned`` speak of every file.

    Only rows of tables ask for two parts of ``entries``, the new ones and those that are moved, linked or removed, and
    for ``everything``: a call that makes all of it durable is a total ordering point.
    """

    DATA = "data"
    SIZE = "size"
    ATTRIBUTES = "attributes"
    ENTRY = "entry"
    NAMES = "names"
    ENTRIES = "entries"
    NEW_ENTRIES = "new-entries"
    MOVED_ENTRIES = "moved-entries"
    PARENT = "parent"
    OTHER_OVERWRITES = "other-overwrites"
    OTHER_APPENDS = "other-appends"
    OTHER_NAMES = "other-names"
    OTHER_ATTRIBUTES = "other-attributes"
    EVERYTHING = "everything"


class Unit(StrEnum):
    """Up to which size a change is whole: 512 bytes of a file, 4 KiB of a file, or all of the change."""

    SECTOR = "sector"
    BLOCK = "block"
    WHOLE = "whole"


def row_of_today(name: str) -> str:
    """The name of a row as it is written today; any other name as it is."""
    return _ROWS.get(name, name)


def clause_of_today(name: str) -> str:
    """A clause of a model as it is written today; any other text as it is."""
    form, *rest = name.split(" ")
    if form != "durable" or not rest:
        return name
    return " ".join([form, _CLAUSES.get(rest[0], rest[0]), *rest[1:]])


_CALLS = {
    Call.FSYNC_FILE: "fsync of a file",
    Call.FDATASYNC_FILE: "fdatasync of a file",
    Call.FSYNC_DIRECTORY: "fsync of a directory",
    Call.FDATASYNC_DIRECTORY: "fdatasync of a directory",
    Call.MSYNC: "msync of a file",
    Call.O_SYNC: "a write with O_SYNC",
    Call.O_DSYNC: "a write with O_DSYNC",
    Call.SYNCFS: "syncfs",
    Call.SYNC: "sync",
    Call.RETURNED: "any operation",
}

# The words of older documents. In rows fsync-directory was of the directory of the file that the other words spoke of.
_CLAUSES = {"o-sync-write": Call.O_SYNC, "o-dsync-write": Call.O_DSYNC, "return": Call.RETURNED}
_OF_A_FILE = {
    "new-entry": What.ENTRY,
    "other-names": What.NAMES,
    "parent-entry": What.PARENT,
    "attribute": What.ATTRIBUTES,
}
_OF_A_DIRECTORY = {
    "data": What.OTHER_OVERWRITES,
    "size": What.OTHER_APPENDS,
    "new-entry": What.NEW_ENTRIES,
    "other-names": What.MOVED_ENTRIES,
    "parent-entry": What.ENTRY,
    "attribute": What.OTHER_ATTRIBUTES,
}
_ROWS = {
    f"{call}.{was}": f"{call}.{now}"
    for call in Call
    for was, now in (_OF_A_DIRECTORY if call is Call.FSYNC_DIRECTORY else _OF_A_FILE).items()
}
