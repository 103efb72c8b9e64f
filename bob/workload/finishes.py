"""How the recordings of a quick question end where nothing is said of it: as the kernel pleases, and by others' syncs.

A crash may come while some other program syncs something. That writes the metadata of all at once, long before the
kernel writes the data by itself; so it leaves what no crash in the kernel's own pace does (Bornholt et al., "Specifying
and Checking File System Crash-Consistency Models", ASPLOS 2016).
"""

from __future__ import annotations

from dataclasses import fields

from bob.workload.history import FileKind, History
from bob.workload.language import write_one
from bob.workload.operations import CHANGELESS_OPERATIONS, Finish, Fsync, Operation, Symlink

NATURAL = Finish("natural", natural=True)
ROOT = "/"


def default_finishes(history: History) -> tuple[Finish, ...]:
    """``natural``; an fsync of the directories in which the operations change something, the last one first; and an
    fsync of the root."""
    there = {
        path for path, thing in history.steps[-1].names.items() if history.things[thing].kind is FileKind.DIRECTORY
    }
    changed = dict.fromkeys(path for operation in reversed(history.operations) for path in _directories(operation))
    syncs = tuple(Fsync(path) for path in changed if path in there and path != ROOT)
    return (NATURAL, *([_synced(*syncs)] if syncs else []), _synced(Fsync(ROOT)))


def _synced(*syncs: Operation) -> Finish:
    return Finish("; ".join(map(write_one, syncs)), syncs)


def _directories(operation: Operation) -> tuple[str, ...]:
    """The directories of the names that ``operation`` is about; none of one that changes nothing."""
    if isinstance(operation, CHANGELESS_OPERATIONS):
        return ()
    if isinstance(operation, Symlink):  # its target may be anything
        return (_parent(operation.path),)
    values = (getattr(operation, field.name) for field in fields(operation) if field.name in ("path", "old", "new"))
    return tuple(_parent(value) for value in values if value.startswith("/"))  # a handle is in no directory


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or ROOT
