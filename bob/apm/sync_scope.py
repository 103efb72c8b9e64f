"""Find the changes of a workload that are synced by a call for one file, one directory, or one range of a file. A sync
of the whole file system does not count. The functions get all changes of the workload as ``made``, and return changes
as indexes into this list. The operations of the finish, which ends a workload, count as calls, too."""

from collections import deque
from collections.abc import Iterator, Sequence

from bob.apm.clauses import RENAMING_KINDS
from bob.workload import operations as ops
from bob.workload.history import History
from bob.workload.kinds import ChangeKind, OperationChange

_NAMING = (ChangeKind.CREATE, ChangeKind.LINK, ChangeKind.MKDIR, ChangeKind.RENAME, ChangeKind.RENAME_OVER)
_AT_ONCE = (ops.How.SYNC, ops.How.DSYNC, ops.How.DIRECT)


def in_part(history: History, finish: Sequence[ops.Operation], made: Sequence[OperationChange]) -> frozenset[int]:
    """Return each change of a file if a call syncs only a range of this file. The call may be the operation that makes
    the change, or a later one. Examples are sync_file_range and a write with O_SYNC."""
    last: dict[int | None, int] = {None: 0}  # by file: the last operation that syncs only a part of it
    for number, operation, thing in _calls(history, finish, 1):
        if not isinstance(operation, ops.Fsync | ops.Msync):
            last[thing] = number
    return frozenset(
        index
        for index, change in enumerate(made)
        if any(last.get(thing, 0) >= change.number for thing in (None, *change.things))
    )


def for_a_later_part(history: History, finish: Sequence[ops.Operation], change: OperationChange, before: int) -> bool:
    """Return whether the range of a later sync_file_range begins after the first byte of the append ``change``.
    ``before`` is the offset of this byte."""
    return any(
        thing in change.things and isinstance(operation, ops.SyncFileRange) and operation.offset > before
        for _number, operation, thing in _calls(history, finish, change.number)
    )


def alone(history: History, finish: Sequence[ops.Operation], made: Sequence[OperationChange]) -> frozenset[int]:
    """Return the changes whose file or directory is synced by itself, either by the operation that makes the change or
    by a later one. If a synced file got a name in a directory, all changes in that directory count, too."""
    last: dict[int, int] = {}  # by file or directory: the last operation that syncs it, or a file that got a name in it
    last_of_all = 0  # the last operation that syncs an unknown file
    named: dict[int, set[int]] = {}
    waiting = deque(change for change in made if change.kind in _NAMING)
    for number, _operation, thing in _calls(history, finish, 1):
        while waiting and waiting[0].number <= number:
            change = waiting.popleft()
            for one in change.things:
                named.setdefault(one, set()).update(change.directories)
        if thing is None:
            last_of_all = number
        else:
            last.update(dict.fromkeys({thing} | named.get(thing, set()), number))
    return frozenset(
        index
        for index, change in enumerate(made)
        if max([last_of_all, *(last.get(one, 0) for one in change.things | change.directories)]) >= change.number
    )


def logged(history: History, made: Sequence[OperationChange]) -> frozenset[int]:
    """Return the changes that may persist before other changes, because btrfs may write them into its log. First, all
    changes of a file or directory after its first sync count. Second, if such a change is a link, unlink or rename, all
    changes in the directories with a name of its file count. Third, if such a directory gets a new directory, all
    changes in the new directory count (fs/btrfs/tree-log.c, btrfs_log_new_name and btrfs_log_all_parents)."""
    first: dict[int | None, int] = {}
    for number, _operation, thing in _calls(history, (), 1):
        first.setdefault(thing, number)
    found = {
        index
        for index, change in enumerate(made)
        if any(first.get(thing, change.number) < change.number for thing in (None, *change.things))
    }
    within = {one for index in found if made[index].kind in RENAMING_KINDS for one in made[index].directories}
    for index, change in enumerate(made):
        if change.directories & within:
            found.add(index)
            within |= change.things if change.kind in _NAMING else set()
    return frozenset(found)


def elsewhere(history: History, finish: Sequence[ops.Operation], change: OperationChange) -> bool:
    """Return whether an operation after ``change`` syncs any single file or directory. ``change`` need not have
    changed this file or directory."""
    return any(number > change.number for number, _operation, _thing in _calls(history, finish, change.number))


def _calls(
    history: History, finish: Sequence[ops.Operation], first: int
) -> Iterator[tuple[int, ops.Operation, int | None]]:
    """Yield each call that syncs a single file or directory, beginning with operation ``first``. Each item has the
    number of the operation, the operation, and the number of the synced file in the history (None: unknown)."""
    for number, operation in enumerate((*history.operations, *finish), start=1):
        match operation:
            case ops.Fsync(path) | ops.Msync(path) | ops.SyncFileRange(path):
                pass
            case ops.Write(path, _offset, _length, how) if how in _AT_ONCE:
                pass
            case _:
                continue
        if number >= first:
            step = history.after(number)
            yield number, operation, step.names.get(path, step.handles.get(path))
