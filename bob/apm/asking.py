"""Which changes a program asks for alone, by calls that sync one file, one directory, or a part of a file.

What the kernel writes when nothing asks for it, it writes in an order of its own, which such a call may overtake. So
some clauses speak of changes that no call asks for. Operations are numbered from 1, those of the finish go on behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bob.workload import operations as ops
from bob.workload.history import History
from bob.workload.kinds import Change, ChangeKind

_NAMING = (ChangeKind.CREATE, ChangeKind.LINK, ChangeKind.MKDIR, ChangeKind.RENAME, ChangeKind.RENAME_OVER)
_AT_ONCE = (ops.How.SYNC, ops.How.DSYNC, ops.How.DIRECT)


def in_part(history: History, finish: Sequence[ops.Operation], change: Change) -> bool:
    """Whether the operation of ``change``, or a later one, asks for a part of its file: sync_file_range, a write with
    O_SYNC, O_DSYNC or O_DIRECT."""
    return any(
        thing in (None, *change.things) and not isinstance(operation, ops.Fsync | ops.Msync)
        for _number, operation, thing in _calls(history, finish, change.number)
    )


def for_a_later_part(history: History, finish: Sequence[ops.Operation], change: Change, before: int) -> bool:
    """Whether sync_file_range asks for a part of what an append to a file of ``before`` bytes wrote, and not for the
    beginning of that."""
    return any(
        thing in change.things and isinstance(operation, ops.SyncFileRange) and operation.offset > before
        for _number, operation, thing in _calls(history, finish, change.number)
    )


def alone(history: History, finish: Sequence[ops.Operation], made: Sequence[Change], change: Change) -> bool:
    """Whether the operation of ``change``, or a later one, asks for what it changed. It asks for the file or directory
    that it is given, and for what is in the directories in which that one was given a name."""
    for number, _operation, thing in _calls(history, finish, change.number):
        if thing is None:
            return True
        named = {
            directory
            for other in made
            if other.number <= number and other.kind in _NAMING and thing in other.things
            for directory in other.directories
        }
        if ({thing} | named) & (change.things | change.directories):
            return True
    return False


def elsewhere(history: History, finish: Sequence[ops.Operation], change: Change) -> bool:
    """Whether an operation behind ``change`` syncs a file or a directory."""
    return any(number > change.number for number, _operation, _thing in _calls(history, finish, change.number))


def _calls(
    history: History, finish: Sequence[ops.Operation], first: int
) -> Iterator[tuple[int, ops.Operation, int | None]]:
    """The calls from operation ``first`` on that ask for something, and for which file or directory (None: unknown)."""
    for number, operation in enumerate((*history.operations, *finish), start=1):
        match operation:
            case ops.Fsync(path) | ops.Msync(path) | ops.SyncFileRange(path):
                pass
            case ops.Write(path, _offset, _length, how) if how in _AT_ONCE:
                pass
            case _:
                continue
        if number >= first:
            step = history.steps[min(number, len(history.steps) - 1)]
            yield number, operation, step.names.get(path, step.handles.get(path))
