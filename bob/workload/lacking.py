"""Workloads for file systems that lack operations: hard links, symbolic links, extended attributes, modes and
owners."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from bob.workload import operations as ops
from bob.workload.history import RefusedError, simulate
from bob.workload.operations import Operation, Workload

LACKABLE: dict[str, tuple[type[Operation], ...]] = {
    "link": (ops.Link,),
    "symlink": (ops.Symlink,),
    "setxattr": (ops.Setxattr, ops.Removexattr),
    "chmod": (ops.Chmod, ops.Chown),
}
"""The operations that a file system may lack, as its declaration calls them."""


def without(workload: Workload, lacks: Collection[str]) -> Workload | None:
    """``workload`` without the operations that the file system ``lacks``.

    None where nothing would be left, or where something else is done to what such an operation makes.
    """
    kinds = tuple(kind for name in lacks for kind in LACKABLE[name])
    setup = tuple(_kept(workload.setup, kinds))
    operations = tuple(_kept(workload.operations, kinds))
    made = {_made(one) for one in (*workload.setup, *workload.operations) if isinstance(one, kinds)} - {""}
    touched = {path for one in (*setup, *operations, *workload.finish.operations) for path in _paths(one)}
    if not operations or touched & made:
        return None
    kept = replace(workload, setup=setup, operations=operations)
    try:
        simulate(kept)
    except RefusedError:
        return None  # what was made had another name by then: a directory above it was renamed
    return kept


def _kept(operations: Iterable[Operation], kinds: tuple[type[Operation], ...]) -> Iterator[Operation]:
    return (one for one in operations if not isinstance(one, kinds))


def _made(operation: Operation) -> str:
    """The name that an operation makes; empty for one that makes none."""
    match operation:
        case ops.Link(_old, new):
            return new
        case ops.Symlink(_target, path):
            return path
    return ""


def _paths(operation: Operation) -> tuple[str, ...]:
    match operation:
        case ops.Rename(old, new) | ops.Link(old, new):
            return (old, new)
        case ops.Sync() | ops.Sleep() | ops.Acknowledge():
            return ()
    return (operation.path,)
