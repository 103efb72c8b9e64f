"""Candidates for a smaller witness (a file about one crash state that shows a violation): smaller workloads that may
show the same violation."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bob.workload.operations import Close, Open, Operation, Rename, Unnamed, Workload, names_of, paths_of


def smallest(workload: Workload, asked: Sequence[int]) -> Iterator[Workload]:
    """Yield workloads that are smaller than ``workload``. ``asked`` has the numbers of the operations that the broken
    claim is about. Each workload keeps these operations, or all operations if ``asked`` is empty.

    The first workload has only the operations ``asked``, and only the part of the initial tree that they need. The
    second has the operations ``asked`` and the whole initial tree. The third has all operations, and only the part of
    the initial tree that they need."""
    few = workload
    if asked:
        few = replace(workload, operations=tuple(_with_opens(workload.operations, asked)))
    every = [needed(few), few, needed(workload)]
    yield from (one for one in dict.fromkeys(every) if one != workload)


def needed(workload: Workload) -> Workload:
    """Return ``workload`` with a smaller initial tree: only the part of the tree that its operations and its finish
    use. The finish is the calls that end a workload, such as an fsync."""
    used: set[str] = set()
    for operation in reversed((*workload.operations, *workload.finish.operations)):
        used |= _before(operation, used) | _names(operation)
    kept: list[Operation] = []
    for operation in reversed(workload.setup):
        if used.intersection(paths_of(operation)):
            used |= _before(operation, used) | _names(operation)
            kept.append(operation)
    return replace(workload, setup=tuple(reversed(kept)))


def _with_opens(operations: Sequence[Operation], numbers: Sequence[int]) -> list[Operation]:
    kept: list[Operation] = []
    wanted: set[str] = set()
    for number in range(len(operations), 0, -1):
        operation = operations[number - 1]
        opened = operation.handle if isinstance(operation, Open | Unnamed) else ""
        if number in numbers or opened in wanted:
            kept.append(operation)
            wanted.discard(opened)
            names = [operation.handle] if isinstance(operation, Close) else names_of(operation)
            wanted |= {name for name in names if "/" not in name}
    return kept[::-1]


def _before(operation: Operation, used: set[str]) -> set[str]:
    """If ``operation`` renames a directory, return the old paths of the files and directories below it. ``used`` has
    paths after the operation; return old paths only for these. If the operation is not a rename, the result is
    empty."""
    if not isinstance(operation, Rename):
        return set()
    return {operation.old + path.removeprefix(operation.new) for path in used if path.startswith(operation.new + "/")}


def _names(operation: Operation) -> set[str]:
    return {
        "/".join(names[:count])
        for names in (path.split("/") for path in paths_of(operation))
        for count in range(2, len(names) + 1)
    }
