"""The default finishes for ``bob try``, which tests a workload that the user gives. A finish is the end of a recording,
after the workload's operations.

bob records the workload several times, each time with another finish. One finish is natural writeback: bob waits until
the kernel has written everything by itself. The other finishes sync files that the workload does not ask to sync. The
reason is that another program may sync something before the crash. On many file systems, a sync of one file also writes
the metadata of all others, long before the kernel would write their data by itself. So a sync leads to other crash
states (Bornholt et al., "Specifying and Checking File System Crash-Consistency Models", ASPLOS 2016)."""

from bob.workload.history import FileKind, History
from bob.workload.language import write_one
from bob.workload.operations import CHANGELESS_OPERATIONS, NATURAL, Finish, Fsync, Operation, parent


def synced(*syncs: Operation) -> Finish:
    return Finish("; ".join(map(write_one, syncs)), syncs)


def default_finishes(history: History) -> tuple[Finish, ...]:
    """Return up to three finishes. The first is ``natural`` writeback. The second has an fsync of each directory that
    the workload changed, except the root. It begins with the directory that was changed last. The third is an fsync of
    the root."""
    there = {
        path for path, thing in history.steps[-1].names.items() if history.things[thing].kind is FileKind.DIRECTORY
    }
    changed = dict.fromkeys(path for operation in reversed(history.operations) for path in _directories(operation))
    syncs = tuple(Fsync(path) for path in changed if path in there and path != "/")
    return (NATURAL, *([synced(*syncs)] if syncs else []), synced(Fsync("/")))


def _directories(operation: Operation) -> tuple[str, ...]:
    if isinstance(operation, CHANGELESS_OPERATIONS):
        return ()
    values = (getattr(operation, name) for name in ("path", "old", "new") if hasattr(operation, name))
    return tuple(parent(value) for value in values if value.startswith("/"))  # a handle is not in a directory
