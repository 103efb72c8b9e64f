"""The operations that a call such as fsync makes durable. The call ends the workload, and all crashes come after it has
returned."""

from collections import Counter
from collections.abc import Collection

from bob.claim.property.sightings import NamePlaces
from bob.claim.property.vocabulary import Call
from bob.workload import operations as ops
from bob.workload.history import FileKind, History, HistoryStep
from bob.workload.kinds import ChangeKind, OperationChange, OperationScope, Relation, changes, extent, relation
from bob.workload.operations import At, How, Operation


def covered(
    call: Call,
    kinds: Collection[ChangeKind],
    relations: Collection[Relation],
    history: History,
    *,
    several: bool = False,
    own: bool = False,
) -> tuple[int, ...]:
    """Return the numbers of the operations that ``call`` must make durable. The arguments select certain changes. The
    kind of a selected change is in ``kinds``, and its relation to the call's target (such as "same file") is in
    ``relations``. The target is the file or directory that the call syncs. If ``relations`` is empty, the relation does
    not matter.

    The result is empty if ``history`` does not end with the call, or if a crash may come before the call returns. An
    operation is in the result only if all of its changes are selected. There is one exception if ``several`` is False.
    If the call itself is a synchronous write and creates a file, it is enough that this creation is selected.

    If ``own`` is True, the result has only the call itself, which must be a write.

    If ``several`` is True, each operation in the result makes several changes, or depends on another operation
    (:func:`makers`)."""
    last = len(history.operations)
    if history.at is not At.END or not last:
        return ()
    if call_of(history.operations[-1], history, history.steps[-1]) is not call:
        return ()
    target, places, every = target_of(history, last), NamePlaces(history), changes(history)
    if target is not None and not any(history.steps[-1].inodes[thing].links for thing in target.things):
        return ()  # a crash removes a file that is only kept open
    found = [
        change
        for change in every
        if change.kind in kinds
        and ((call is not Call.RETURNED and not own) or change.number == last)
        and (target is None or not relations or relation(change, target) in relations)
        and (call is not Call.FSYNC_DIRECTORY or not relations or _is_in(change, target, places))
    ]
    how_many, durable = Counter(change.number for change in every), Counter(change.number for change in found)
    made = {change.number for change in found if change.kind is ChangeKind.CREATE and call is not Call.RETURNED}
    if several:
        whole = (number for number in durable if durable[number] == how_many[number])
        return tuple(number for number in whole if how_many[number] > 1 or makers(history, number))
    return tuple(number for number in durable if durable[number] == how_many[number] or number in made & {last})


def makers(history: History, number: int) -> frozenset[int]:
    """Return the operations that operation ``number`` depends on. They made the files and directories that operation
    ``number`` changes, or the directories that contain the names of these files and directories. If such an operation
    is lost, bob cannot judge operation ``number``. If a rename replaces a file, the operation that made the replaced
    file does not count."""
    about = [change.things | change.directories for change in changes(history) if change.number == number]
    things = frozenset[int]().union(*about)
    operation, before = history.operations[number - 1], history.steps[number - 1].names
    if isinstance(operation, ops.Rename) and operation.replacing is ops.Replacing.REPLACE and operation.new in before:
        things -= {before[operation.new]} - {before[operation.old]}
    born = {_maker(history, thing) for thing in things}
    return frozenset(maker for maker in born if maker > 0) - {number}


def _maker(history: History, thing: int) -> int:
    if not history.things[thing].is_born_unnamed:
        return history.things[thing].born
    named = (number for number, step in enumerate(history.steps) if thing in step.inodes and step.inodes[thing].links)
    return next(named, 0)


def _is_in(change: OperationChange, target: OperationScope | None, places: NamePlaces) -> bool:
    """Return whether ``change`` has to do with the directory ``target``. It does if it changes the directory itself, a
    name in the directory, or the contents of a file that has a name there."""
    if target is None or change.things & target.things:
        return True
    if change.kind in _OF_NAMES:
        return any(folder in target.things for folder, _name in places.changes[change.number])
    return bool(change.directories & target.things)


_OF_NAMES = (
    *(ChangeKind.CREATE, ChangeKind.SYMLINK, ChangeKind.MKDIR),
    *(ChangeKind.LINK, ChangeKind.RENAME, ChangeKind.RENAME_OVER, ChangeKind.UNLINK, ChangeKind.RMDIR),
)


def call_of(operation: Operation, history: History, step: HistoryStep) -> Call | None:
    """Return the kind of call that ``operation`` is. ``step`` has the tree after the operation; it shows whether a
    synced path is a file or a directory. Return None for an operation that neither changes anything nor makes a change
    durable, such as a close."""
    match operation:
        case ops.Fsync(path, data_only):
            return _FSYNCS[history.things[step.thing(path)].kind is FileKind.DIRECTORY, data_only]
        case ops.Msync():
            return Call.MSYNC
        case ops.Write(how=How.SYNC):
            return Call.O_SYNC
        case ops.Write(how=How.DSYNC):
            return Call.O_DSYNC
        case ops.Sync(this_only):
            return Call.SYNCFS if this_only else Call.SYNC
        case ops.SyncFileRange():
            return Call.SYNC_FILE_RANGE
        case ops.Open() | ops.Close() | ops.Sleep() | ops.Acknowledge():
            return None
        case ops.Writeback() | ops.MetadataWriteback() | ops.Commit():
            return None
    return Call.RETURNED


def target_of(history: History, number: int) -> OperationScope | None:
    """Return the target of operation ``number``: the file or directory that it syncs. Return None if it syncs the whole
    file system, or nothing."""
    match history.operations[number - 1]:
        case ops.Fsync(path) | ops.Msync(path) | ops.SyncFileRange(path) | ops.Write(path, how=How.SYNC | How.DSYNC):
            return extent(history, number, history.steps[number].thing(path))
    return None


_FSYNCS = {
    (False, False): Call.FSYNC_FILE,
    (False, True): Call.FDATASYNC_FILE,
    (True, False): Call.FSYNC_DIRECTORY,
    (True, True): Call.FDATASYNC_DIRECTORY,
}
