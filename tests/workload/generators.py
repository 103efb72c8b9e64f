"""Random workloads: any operation on a handful of names (most are refused somewhere), and workloads that are not."""

from __future__ import annotations

from hypothesis import strategies as st

from bob.errors import UsageError
from bob.workload import operations as ops
from bob.workload.history import History, simulate
from bob.workload.operations import How, Operation, Workload

NAMES = ("/a", "/b", "/c", "/d", "/d/a", "/d/b", "/d/e", "/d/e/a", "/f", "/f/a")
SIZES = (1, 7, 16, 60, 100, 511, 512, 1000, 4096, 5000, 8192, 9000)
OFFSETS = (0, 0, 3, 100, 512, 4000, 4096, 8192)
PLAIN = (How.PLAIN, How.PLAIN, How.PLAIN, How.SYNC, How.DSYNC)
SMALL_TREE = (
    ops.Mkdir("/d"),
    ops.Mkdir("/d/e"),
    ops.Mkdir("/f"),
    ops.Write("/a", 0, 9000),
    ops.Write("/d/a", 0, 100),
    ops.Create("/d/b"),
    ops.Write("/d/e/a", 0, 4096),
    ops.Write("/f/a", 0, 4096),
)

names = st.sampled_from(NAMES)
sizes = st.sampled_from(SIZES)
offsets = st.sampled_from(OFFSETS)


def writes(hows: tuple[How, ...] = PLAIN) -> st.SearchStrategy[Operation]:
    """Writes and appends of any kind."""
    return st.one_of(
        st.builds(ops.Write, names, offsets, sizes, st.sampled_from([*hows, How.MMAP])),
        st.builds(ops.Write, names, st.none(), sizes, st.sampled_from([*hows, How.TRUNC])),
    )


def tree_operations() -> st.SearchStrategy[Operation]:
    """Operations on names."""
    return st.one_of(
        st.builds(ops.Create, names),
        st.builds(ops.Mkdir, names),
        st.builds(ops.Symlink, st.sampled_from(["nowhere/x", "no/where"]), names),
        st.builds(ops.Rename, names, names),
        st.builds(ops.Rename, names, names),
        st.builds(ops.Link, names, names),
        st.builds(ops.Unlink, names),
        st.builds(ops.Rmdir, names),
    )


def operations(hows: tuple[How, ...] = PLAIN) -> st.SearchStrategy[Operation]:
    """Operations of every kind that changes something, and fsync."""
    return st.one_of(
        tree_operations(),
        writes(hows),
        writes(hows),
        st.builds(ops.Truncate, names, st.sampled_from([0, *SIZES])),
        st.builds(ops.Fallocate, names, offsets, sizes),
        st.builds(ops.Fsync, names, st.booleans()),
    )


def is_accepted(workload: Workload) -> bool:
    """Whether bob takes ``workload``."""
    try:
        simulate(workload)
    except UsageError:
        return False
    return True


@st.composite
def workloads(
    draw: st.DrawFn,
    some: st.SearchStrategy[Operation] | None = None,
    most: int = 7,
    setup: tuple[Operation, ...] = SMALL_TREE,
) -> Workload:
    """Workloads of up to ``most`` operations that are all accepted, on a small tree."""
    chosen: tuple[Operation, ...] = ()
    for operation in draw(st.lists(operations() if some is None else some, min_size=1, max_size=3 * most)):
        if len(chosen) < most and is_accepted(Workload("random", setup, (*chosen, operation))):
            chosen = (*chosen, operation)
    return Workload("random", setup, chosen)


def history_of(setup: str, operations: str) -> History:
    """The history of a workload in the one-line language."""
    from bob.workload.language import parse

    return simulate(Workload("written", parse(setup), parse(operations)))[0]
