"""Random workloads on a small tree: any operations on a handful of names, or only those that a file system would take.

They come from a seed, not from hypothesis: thousands of them are worth more here than shrunk ones.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from random import Random

from bob.workload import operations as ops
from bob.workload.file_tree import FileTree
from bob.workload.operations import How, Operation, Workload
from bob.workload.pattern import FIRST_SETUP_NUMBER
from bob.workload.simulation import _apply

NAMES = ("/a", "/b", "/c", "/d", "/d/a", "/d/b", "/d/e", "/d/e/a", "/f", "/f/a")
SIZES = (1, 7, 16, 60, 100, 511, 512, 1000, 4096, 5000, 8192, 9000)
OFFSETS = (0, 0, 3, 100, 512, 4000, 4096, 8192)
HANDLES = ("f", "g")
TIMES = (500_000_000, 1_000_000_000)
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
FEW_FILES = (ops.Write("/a", 0, 9000), ops.Create("/b"), ops.Write("/c", 0, 100))


def name_operation(rng: Random) -> Operation:
    """An operation on names."""
    path, other = rng.choice(NAMES), rng.choice(NAMES)
    made: list[Callable[[], Operation]] = [
        lambda: ops.Create(path),
        lambda: ops.Mkdir(path),
        lambda: ops.Symlink(rng.choice(["nowhere/x", "no/where"]), path),
        lambda: ops.Rename(path, other),
        lambda: ops.Rename(path, other),
        lambda: ops.Rename(path, other),
        lambda: ops.Rename(path, other, rng.choice(list(ops.Replacing))),
        lambda: ops.Link(path, other),
        lambda: ops.Link(path, other),
        lambda: ops.Link(rng.choice(HANDLES), other),
        lambda: ops.Mknod(path, rng.choice(list(ops.Special))),
        lambda: ops.Unlink(path),
        lambda: ops.Unlink(path),
        lambda: ops.Rmdir(path),
    ]
    return rng.choice(made)()


def handle_operation(rng: Random) -> Operation:
    """An operation that opens a file, or closes one."""
    path, handle = rng.choice(NAMES), rng.choice(HANDLES)
    made = [ops.Open(path, handle), ops.Open(path, handle), ops.Unnamed(rng.choice(["/", "/d"]), handle)]
    return rng.choice([*made, ops.Close(handle)])


def file_operation(rng: Random, hows: tuple[How, ...] = PLAIN) -> Operation:
    """An operation on a file's contents."""
    files = (*NAMES[: rng.choice([3, 10])], *HANDLES)
    path, other, size, offset = rng.choice(files), rng.choice(files), rng.choice(SIZES), rng.choice(OFFSETS)
    blocks = rng.choice([0, 4096, 8192]), rng.choice([4096, 8192])
    made: list[Callable[[], Operation]] = [
        lambda: ops.Write(path, offset, size, rng.choice([*hows, How.MMAP])),
        lambda: ops.Write(path, offset, size, rng.choice(hows)),
        lambda: ops.Write(path, None, size, rng.choice([*hows, How.TRUNC])),
        lambda: ops.Write(path, None, size, rng.choice(hows)),
        lambda: ops.Write(path, None, size, rng.choice(hows)),
        lambda: ops.Truncate(path, rng.choice([0, *SIZES])),
        lambda: ops.Fallocate(path, offset, size),
        lambda: ops.Fallocate(path, offset, size, rng.choice(list(ops.Allocation))),
        lambda: ops.Fallocate(path, *blocks, rng.choice([ops.Allocation.COLLAPSE, ops.Allocation.INSERT])),
        lambda: ops.CopyRange(other, path, offset, size),
        lambda: ops.Reflink(other, path),
        lambda: ops.Utimes(path, rng.choice(TIMES)),
        lambda: ops.Setxattr(path, rng.choice(["user.x", "user.y"]), size % 256 + 1),
        lambda: ops.Removexattr(path, rng.choice(["user.x", "user.y"])),
        lambda: ops.Chmod(path, rng.choice([0o600, 0o640, 0o644, 0o755])),
        lambda: ops.Chown(path, rng.choice([0, 1000]), rng.choice([0, 100])),
    ]
    return rng.choice(made)()


def any_operation(rng: Random, hows: tuple[How, ...] = PLAIN) -> Operation:
    """An operation of any kind."""
    kinds = [name_operation, lambda r: file_operation(r, hows), lambda r: ops.Fsync(r.choice([*NAMES, *HANDLES]))]
    return rng.choice([*kinds, *kinds, handle_operation])(rng)


def random_workload(rng: Random, most: int = 6, *, shifting: bool = True) -> Workload:
    """A workload of up to ``most`` operations, all of which a file system would take; ``shifting``: some may move what
    is in a file."""
    setup = rng.choice([SMALL_TREE, FEW_FILES])
    kind = rng.choice([any_operation, any_operation, name_operation, file_operation])
    system = FileTree()
    for number, operation in enumerate(setup, start=FIRST_SETUP_NUMBER):
        _apply(system, operation, number, -1)
    chosen: list[Operation] = []
    for _ in range(rng.randint(1, 4 * most)):
        with contextlib.suppress(ValueError):
            operation = kind(rng)
            if isinstance(operation, ops.Fallocate) and operation.mode.shifts and not shifting:
                continue
            _apply(system, operation, len(chosen) + 1, len(chosen) + 1)
            chosen.append(operation)
        if len(chosen) == most:
            break
    return Workload("random", setup, tuple(chosen))
