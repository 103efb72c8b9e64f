"""The words that names of properties and clauses consist of. A property is a rule about crashes that bob tests. A
clause is one promise in a model of a file system. Some words stand for calls, such as ``fsync-file``. Others stand for
the parts of changes that a call makes durable, such as ``entry`` (a directory entry), or for units of changes, such as
``sector``. From these words come names of rows in a table of properties (``fsync-file.entry``) and names of clauses
(``durable fsync-file entry``)."""

from enum import StrEnum


class Call(StrEnum):
    FSYNC_FILE = "fsync-file"
    FDATASYNC_FILE = "fdatasync-file"
    FSYNC_DIRECTORY = "fsync-directory"
    FDATASYNC_DIRECTORY = "fdatasync-directory"
    MSYNC = "msync"
    O_SYNC = "o-sync"
    O_DSYNC = "o-dsync"
    SYNC_FILE_RANGE = "sync-file-range"  # only in rows of the user's own: models do not know it
    SYNCFS = "syncfs"
    SYNC = "sync"
    RETURNED = "returned"  # the return of the operation that made the change, as a mount with ``sync`` promises

    @property
    def words(self) -> str:
        return _CALLS[self]


class What(StrEnum):
    """The part of earlier changes that a call makes durable.

    Some parts belong to the call's target, the file or directory that it syncs. ``entry`` is the name that the target
    was made with, and ``names`` are its links and renames. If the target is a directory, ``entries`` are the names in
    it. ``parent`` is the entry of the target's parent directory. Parts whose names begin with ``other`` belong to files
    and directories other than the target. For example, ``other-appends`` are the appends to other files,
    and all other changes of those files' sizes. Some calls are without a target: syncfs, sync, and ``returned``, which
    stands for the return of any operation. Then a part such as ``data`` belongs to all files.

    Three parts occur only in names of rows, not of clauses: ``new-entries``, ``moved-entries`` and ``everything``.
    ``moved-entries`` are the names that a rename, a link or a removal changed in the directory that the call syncs."""

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
    """A unit that a crash never tears if a property or clause holds: 512 bytes or 4 KiB of a file, or a whole
    change."""

    SECTOR = "sector"
    BLOCK = "block"
    WHOLE = "whole"


def row_of_today(name: str) -> str:
    """Return the current name of a row in a table of properties. If ``name`` is not an older name of a row, return
    ``name`` itself."""
    return _ROWS.get(name, name)


def clause_of_today(name: str) -> str:
    """Return the current name of a clause. If ``name`` is not an older name of a clause, return ``name`` itself."""
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
    Call.SYNC_FILE_RANGE: "sync_file_range of a part of a file",
    Call.SYNCFS: "syncfs",
    Call.SYNC: "sync",
    Call.RETURNED: "any operation",
}

# Words of older documents. In the names of their rows, fsync-directory means an fsync of the directory that contains
# the changed file.
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
