"""Which operations a call makes durable, if it keeps what a property says of it.

The call is the last operation of a workload whose crashes come after it has returned. What it does not say it makes
durable may be there or not, so this is all that durability asks.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from bob.workload import operations as ops
from bob.workload.history import History, Kind
from bob.workload.kinds import Change, ChangeKind, Extent, Relation, changes, extent, relation, single_changes
from bob.workload.operations import At, How


class Call(StrEnum):
    """The calls by which a program makes something durable."""

    FSYNC_FILE = "fsync-file"
    FDATASYNC_FILE = "fdatasync-file"
    FSYNC_DIRECTORY = "fsync-directory"
    MSYNC = "msync"
    O_SYNC = "o-sync"
    O_DSYNC = "o-dsync"
    SYNCFS = "syncfs"
    SYNC = "sync"
    RETURNED = "returned"
    """Of any other operation that it returned: what a mount with the option ``sync`` promises."""


def covered(
    call: Call, kinds: Collection[ChangeKind], relations: Collection[Relation], history: History
) -> tuple[int, ...]:
    """The operations that ``call`` is to make durable: changes of ``kinds`` that stand in one of ``relations`` to what
    it is made on (with none of these, any). Empty where ``history`` does not end with the call, or its crashes may come
    before that has returned.

    Only what is done in directories of the initial tree counts, and to files of it, unless it is their making: where a
    file is not there, nobody can say more of it than of its making. And only operations that are one change: of a write
    that makes its file, the entry may be there, as it is to be, and not the data. If it is the call, both are to be.
    """
    last = len(history.operations)
    if history.at is not At.END or not last:
        return ()
    if _call(history) is not call:
        return ()
    target = _target(history)
    found = [
        change.number
        for change in changes(history)
        if change.kind in kinds
        and (call is not Call.RETURNED or change.number == last)
        and (target is None or not relations or relation(change, target) in relations)
        and _is_seen(change, history)
    ]
    return tuple(dict.fromkeys(found))


def _is_seen(change: Change, history: History) -> bool:
    is_old = {thing: history.things[thing].born < 0 for thing in change.things | change.directories}
    if not all(is_old[directory] for directory in change.directories):
        return False
    if change.number in single_changes(history):
        return change.kind in _MAKING or all(is_old[thing] for thing in change.things)
    return change.kind is ChangeKind.CREATE and change.number == len(history.operations)


_MAKING = (ChangeKind.CREATE, ChangeKind.SYMLINK, ChangeKind.MKDIR)


def _call(history: History) -> Call | None:
    """What the last operation is, as a call."""
    match history.operations[-1]:
        case ops.Fsync(path, data_only):
            is_directory = history.things[history.steps[-1].names[path]].kind is Kind.DIRECTORY
            if data_only:
                return None if is_directory else Call.FDATASYNC_FILE
            return Call.FSYNC_DIRECTORY if is_directory else Call.FSYNC_FILE
        case ops.Msync():
            return Call.MSYNC
        case ops.Write(how=How.SYNC):
            return Call.O_SYNC
        case ops.Write(how=How.DSYNC):
            return Call.O_DSYNC
        case ops.Sync(this_only):
            return Call.SYNCFS if this_only else Call.SYNC
        case ops.SyncFileRange() | ops.Sleep() | ops.Acknowledge():
            return None
    return Call.RETURNED


def _target(history: History) -> Extent | None:
    """What the last operation is made on; None for the whole file system."""
    match history.operations[-1]:
        case ops.Fsync(path) | ops.Msync(path) | ops.Write(path):
            return extent(history, len(history.operations), history.steps[-1].names[path])
    return None
