"""Simulate a workload in memory, without a crash, and refuse operations that a kernel would refuse. The simulation
finds out which bytes bob's agent in the guest has to write. It also gives the *history*: what the files contain after
each operation. To find out what survived a crash, bob compares the files after the crash with this history."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import count

from bob.errors import UsageError
from bob.workload import operations as ops
from bob.workload.file_tree import FileTree, not_open
from bob.workload.history import SPECIAL_FILES, FileKind, History, PerformedOperation
from bob.workload.language import write_one
from bob.workload.operations import Allocation, How, Operation, Workload
from bob.workload.pattern import FIRST_SETUP_NUMBER, MAX_OPERATIONS, MOST_SETUP_OPERATIONS, PATTERN

DIRECT_BYTES = 512  # bytes; offsets and lengths of direct I/O are multiples of this
SHIFT_BYTES = 4096  # bytes; collapsed and inserted ranges begin and end at multiples of this
LARGEST_FILE_BYTES = 256 * 1024 * 1024  # a limit, since the history keeps each state of a file in memory


class RefusedError(UsageError):
    """bob refuses ``operation``, and ``why`` is the reason. In most cases, a file system would refuse it, too. If
    ``is_too_large``, the operation would make a file larger than bob allows."""

    def __init__(self, workload: str, operation: Operation, why: str, *, is_too_large: bool = False) -> None:
        hint = None if is_too_large else "see its setup"
        super().__init__(f"workload {workload}: {write_one(operation)!r}: {why}", hint=hint)
        self.operation, self.why, self.is_too_large = operation, why, is_too_large


class _TooLarge(ValueError):
    """A file would become larger than :data:`LARGEST_FILE_BYTES`."""


def simulate(workload: Workload) -> tuple[History, tuple[PerformedOperation, ...], tuple[PerformedOperation, ...]]:
    """Return three things: the history of ``workload``, the operations of its setup, and its own operations. The
    operations are in the form that bob's agent performs, with the bytes to write. Raises RefusedError for an operation
    that a file system would refuse."""
    system, setup = _set_up(tuple(workload.setup), workload.pattern, workload.name)
    system.handles.clear()
    system.data.clear()
    steps = [system.snapshot()]
    performed: list[PerformedOperation] = []
    for number, operation in enumerate(workload.operations, start=1):
        performed.append(_perform(system, operation, number, number, workload.name))
        steps.append(system.snapshot())
    data = dict(system.data)
    for number, operation in enumerate(workload.finish.operations):
        _perform(system, operation, number, 0, workload.name)
    history = History(workload.operations, tuple(steps), tuple(system.things), data, workload.at)
    return history, setup, tuple(performed)


def _set_up(setup: tuple[Operation, ...], pattern: int, name: str) -> tuple[FileTree, tuple[PerformedOperation, ...]]:
    try:
        system, performed = _made(setup, pattern)
    except UsageError:
        _made(setup, pattern, name)  # raises the same error, with the workload's name
        raise
    return system.copy(), performed


@lru_cache(maxsize=4)  # cached, since thousands of workloads of a search have one setup, which may have large files
def _made(
    setup: tuple[Operation, ...], pattern: int, name: str = ""
) -> tuple[FileTree, tuple[PerformedOperation, ...]]:
    system, numbers = FileTree(pattern), count(FIRST_SETUP_NUMBER)
    return system, tuple(_perform(system, operation, next(numbers), -1, name) for operation in setup)


class Simulation:
    """The simulation of a workload that the caller builds, one operation after the other. The operations ``setup`` have
    made the initial tree. ``done`` are the operations after the setup, up to now, and ``tree`` is the tree after them.
    Raises RefusedError for a setup that a file system would refuse, and UsageError for a setup with too many
    operations."""

    def __init__(self, name: str, setup: Sequence[Operation] = ()) -> None:
        self._name, self.setup, self.done = name, tuple(setup), list[Operation]()
        self.tree = self._again()

    def perform(self, operation: Operation) -> None:
        """Perform ``operation``. Raises RefusedError if a file system would refuse the operation, and UsageError if the
        workload has too many operations."""
        number = len(self.done) + 1
        try:
            _perform(self.tree, operation, number, number, self._name)
        except UsageError:
            self.tree = self._again()  # a part of a refused operation may have been done
            raise
        self.done.append(operation)

    def _again(self) -> FileTree:
        system, _performed = _set_up(self.setup, PATTERN, self._name)
        for number, operation in enumerate(self.done, start=1):
            _perform(system, operation, number, number, self._name)
        return system


def _perform(system: FileTree, operation: Operation, number: int, step: int, name: str) -> PerformedOperation:
    if number >= MAX_OPERATIONS or (step >= 0 and number >= FIRST_SETUP_NUMBER):
        hint = f"at most {FIRST_SETUP_NUMBER - 1} operations, and {MOST_SETUP_OPERATIONS} in the setup"
        raise UsageError(f"workload {name} has too many operations", hint=hint)
    try:
        offset, written = _apply(system, operation, number, step)
    except ValueError as error:
        raise RefusedError(name, operation, str(error), is_too_large=isinstance(error, _TooLarge)) from None
    return PerformedOperation(operation, number, offset, written)


def _apply(system: FileTree, operation: Operation, number: int, step: int) -> tuple[int, bytes]:
    match operation:
        case ops.Create(path):
            system.make(path, FileKind.FILE, step)
        case ops.Mkdir(path):
            system.make(path, FileKind.DIRECTORY, step)
        case ops.Symlink(target, path):
            system.make(path, FileKind.SYMLINK, step, target)
        case ops.Mknod(path, special):
            system.make(path, FileKind.OTHER, step, SPECIAL_FILES[special])
        case ops.Open(path, handle):
            system.keep_open(handle, system.find(path, FileKind.FILE, FileKind.DIRECTORY))
        case ops.Unnamed(path, handle):
            system.keep_open(handle, system.make_unnamed(path, step))
        case ops.Close(handle):
            if system.handles.pop(handle, None) is None:
                raise ValueError(not_open(handle))
        case ops.CopyRange(source, path, offset, length):
            return _copy(system, number, step, source, path, offset, length), b""
        case ops.Reflink(source, path):
            length = len(system.inodes[system.find(source, FileKind.FILE)].content)
            if system.has(path) and len(system.inodes[system.find(path, FileKind.FILE)].content) > length:
                raise ValueError(f"{path} is longer than {source}")
            return _copy(system, number, step, source, path, 0, length), b""
        case ops.Write(path, wanted, length, how):
            if not path.startswith("/") and how in (How.DIRECT, How.TRUNC):
                raise ValueError(f"{path} is open already, and {how} is a flag of open(2)")
            if not system.has(path) and how is not How.MMAP:
                system.make(path, FileKind.FILE, step)
            identity = system.find(path, FileKind.FILE)
            size = len(system.inodes[identity].content)
            if how is How.MMAP and (wanted is None or wanted + length > size):
                raise ValueError(f"a mapping cannot grow a file, and {path} has {size:,} bytes")
            old = b"" if how is How.TRUNC else system.inodes[identity].content
            offset = len(old) if wanted is None else wanted
            if how is How.DIRECT and (offset % DIRECT_BYTES or length % DIRECT_BYTES):
                raise ValueError(f"direct I/O needs multiples of {DIRECT_BYTES}, not {length:,} bytes at {offset:,}")
            _check_size(offset + length)
            written = system.written(number, identity, offset, length)
            system.data[number] = identity, offset, length
            system.fill(identity, old[:offset].ljust(offset, b"\0") + written + old[offset + length :])
            return offset, written
        case ops.Truncate(path, size):
            identity = system.find(path, FileKind.FILE)
            _check_size(size)
            system.fill(identity, system.inodes[identity].content[:size].ljust(size, b"\0"))
        case ops.Fallocate(path, offset, length, mode):
            identity = system.find(path, FileKind.FILE)
            _check_size(offset + length)
            content = system.inodes[identity].content
            if mode.shifts:
                content = _shifted(content, offset, length, mode)
                system.shift(identity)
                system.data[number] = identity, offset, len(content) - offset
            if mode.grows:
                content = content.ljust(offset + length, b"\0")
            if mode.zeroes:
                zeros = bytes(len(content[offset : offset + length]))
                content = content[:offset] + zeros + content[offset + length :]
                system.data[number] = identity, offset, length
            system.fill(identity, content)
            return offset, b""
        case ops.Rename(old_path, new_path, replacing):
            system.rename(old_path, new_path, replacing)
        case ops.Link(old_path, new_path):
            system.link(old_path, new_path)
        case ops.Unlink(path):
            system.find(path, FileKind.FILE, FileKind.SYMLINK)
            system.drop(path)
        case ops.Rmdir(path):
            system.find(path, FileKind.DIRECTORY)
            system.drop(path)
        case ops.Setxattr(path, name, length):
            identity = system.find(path, FileKind.FILE, FileKind.DIRECTORY)
            value = system.written(number, identity, 0, length, name)
            system.set(identity, xattrs={**system.inodes[identity].xattrs, name: value})
            return 0, value
        case ops.Removexattr(path, name):
            identity = system.find(path, FileKind.FILE, FileKind.DIRECTORY)
            xattrs = dict(system.inodes[identity].xattrs)
            if xattrs.pop(name, None) is None:
                raise ValueError(f"{path} lacks the attribute {name}")
            system.set(identity, xattrs=xattrs)
        case ops.Chmod(path, permissions):
            system.set(system.find(path, FileKind.FILE, FileKind.DIRECTORY), mode=permissions)
        case ops.Chown(path, uid, gid):
            system.set(system.find(path, FileKind.FILE, FileKind.DIRECTORY), owner=(uid, gid))
        case ops.Utimes(path, seconds):
            identity = system.find(path, FileKind.FILE, FileKind.DIRECTORY)
            if system.inodes[identity].modified == seconds:
                raise ValueError(f"{path} already has that time, so bob could not see the change")
            system.set(identity, modified=seconds)
        case ops.Fsync(path):
            system.find(path, FileKind.FILE, FileKind.DIRECTORY)
        case ops.SyncFileRange(path) | ops.Writeback(path):
            system.find(path, FileKind.FILE)
        case ops.Msync(path):
            if not system.inodes[system.find(path, FileKind.FILE)].content:
                raise ValueError(f"{path} is empty, so it cannot be mapped")
        case ops.Sync() | ops.MetadataWriteback() | ops.Commit() | ops.Sleep() | ops.Acknowledge():
            pass
    return 0, b""


def _shifted(content: bytes, offset: int, length: int, mode: Allocation) -> bytes:
    if offset % SHIFT_BYTES or length % SHIFT_BYTES:
        raise ValueError(f"{length:,} bytes at {offset:,} are not whole blocks of {SHIFT_BYTES:,}")
    if mode is Allocation.INSERT and offset < len(content):
        _check_size(len(content) + length)
        return content[:offset] + bytes(length) + content[offset:]
    if mode is Allocation.COLLAPSE and offset + length < len(content):
        return content[:offset] + content[offset + length :]
    raise ValueError(f"the range must end before the {len(content):,} bytes of the file do")


def _copy(system: FileTree, number: int, step: int, source: str, path: str, offset: int, length: int) -> int:
    copied_from = system.find(source, FileKind.FILE)
    copied = system.copied(copied_from, offset, length, path)
    if not system.has(path):
        system.make(path, FileKind.FILE, step)
    identity = system.find(path, FileKind.FILE)
    system.take_shades(copied_from, identity, offset, length)
    system.data[number] = identity, offset, length
    old = system.inodes[identity].content
    system.fill(identity, old[:offset].ljust(offset, b"\0") + copied + old[offset + length :])
    return offset


def _check_size(size: int) -> None:
    if size > LARGEST_FILE_BYTES:
        raise _TooLarge(f"a file of {size:,} bytes is too large: at most {LARGEST_FILE_BYTES:,}")


def is_possible(workload: Workload) -> bool:
    """Return whether a file system would accept all operations of ``workload``."""
    try:
        simulate(workload)
    except RefusedError:
        return False
    return True
