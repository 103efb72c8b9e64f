"""Adapt workloads to file systems that lack some operations: links, attributes, modes, and kinds of fallocate."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from bob.workload import operations as ops
from bob.workload.operations import Allocation, Operation, Replacing, Workload
from bob.workload.simulation import RefusedError, simulate

OperationTest = Callable[[Operation], bool]


def _of(*types: type[Operation]) -> OperationTest:
    return lambda operation: isinstance(operation, types)


def _allocating(*modes: Allocation) -> OperationTest:
    return lambda operation: isinstance(operation, ops.Fallocate) and operation.mode in modes


def _renaming(replacing: Replacing) -> OperationTest:
    return lambda operation: isinstance(operation, ops.Rename) and operation.replacing is replacing


LACKABLE: dict[str, OperationTest] = {
    "link": _of(ops.Link),
    "symlink": _of(ops.Symlink),
    "setxattr": _of(ops.Setxattr, ops.Removexattr),
    "chmod": _of(ops.Chmod, ops.Chown),
    "mknod": _of(ops.Mknod),
    "tmpfile": _of(ops.Unnamed),
    "reflink": _of(ops.Reflink),
    "noreplace": _renaming(Replacing.REFUSE),
    "exchange": _renaming(Replacing.EXCHANGE),
    "keep": _allocating(Allocation.KEEP),
    "punch": _allocating(Allocation.PUNCH),
    "zero": _allocating(Allocation.ZERO, Allocation.ZERO_KEEP),
    "collapse": _allocating(Allocation.COLLAPSE, Allocation.INSERT),
}
"""For each word of a declaration of lacking operations, a test whether an operation is of that kind."""


def lacked(operations: Sequence[Operation], lacks: Collection[str]) -> tuple[str, ...]:
    """Return the kinds in ``lacks`` that occur in ``operations``. ``lacks`` has the kinds of operations that a file
    system does not support."""
    return tuple(name for name in lacks if any(map(LACKABLE[name], operations)))


def without(workload: Workload, lacks: Collection[str]) -> Workload | None:
    """Return ``workload`` without operations of the kinds ``lacks``, which its file system does not have. Return None
    if no operation remains, or if a remaining operation depends on a removed one."""
    left_out = [one for one in (*workload.setup, *workload.operations) if lacked([one], lacks)]
    setup, operations = (
        tuple(one for one in several if one not in left_out) for several in (workload.setup, workload.operations)
    )
    if not left_out:
        return workload
    made = set(map(_made, left_out)) - {""}
    kept_operations = (*setup, *operations, *workload.finish.operations)
    touched = {name for one in kept_operations for name in (*ops.names_of(one), getattr(one, "handle", ""))}
    if not operations or touched & made:
        return None
    kept = replace(workload, setup=setup, operations=operations)
    try:
        simulate(kept)
    except RefusedError:
        return None  # by a rename of a directory, an object of a removed operation got another path
    return kept


def _made(operation: Operation) -> str:
    match operation:
        case ops.Link(_old, new):
            return new
        case ops.Symlink(path=path) | ops.Mknod(path=path):
            return path
        case ops.Unnamed(handle=handle):
            return handle
    return ""
