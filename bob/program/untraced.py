"""Find changes of files that the system calls of a program do not show."""

from collections.abc import Iterator, Sequence

from bob.program.paths import Paths
from bob.program.strace import WRITES, SystemCall

CHANGES = (*WRITES, "ftruncate", "fallocate")  # these change the file whose descriptor is their first argument
RENAMES = {
    "rename": (0, 1),
    "renameat": (1, 3),
    "renameat2": (1, 3),
}  # indexes of the old and the new name
NOT_FOLLOWED = {"sendfile": 0, "copy_file_range": 2, "splice": 2}
"""Calls that copy data inside the kernel. strace does not show the data that they write. The number is the index of the
argument with the changed file."""
COPIED_FROM = {"sendfile": 1, "copy_file_range": 0}
"""For some of the calls in NOT_FOLLOWED, the index of the argument with the file that they copy from. If that file is
below the root, bob knows its data (:mod:`bob.protocol.follow`)."""
HARMLESS = (
    "TCGETS",
    "FIONREAD",
    "FIONBIO",
    "FIOASYNC",
    "FIOCLEX",
    "FIONCLEX",
    "FS_IOC_FIEMAP",
    "FS_IOC_GETFLAGS",
    "FS_IOC_FSGETXATTR",
)
"""Requests of ioctl(2) that do not change a file."""
ASYNCHRONOUS = ("io_uring_enter", "io_submit")


def is_exchange(call: SystemCall) -> bool:
    return any("RENAME_EXCHANGE" in argument for argument in call.arguments)


def mapped(calls: Sequence[SystemCall], root: str) -> bool:
    """Return whether the program may have changed a file below ``root`` through a shared mapping."""
    names = Paths(root, calls)
    return any(_maps(call, names) for call in calls if call.result is not None)


def _maps(call: SystemCall, names: Paths) -> str:
    if call.name != "mmap" or "PROT_WRITE" not in call.arguments[2] or "MAP_SHARED" not in call.arguments[3]:
        return ""
    return names.below(call.path(4))


def not_followed(calls: Sequence[SystemCall], root: str) -> tuple[str, ...]:
    """Return a phrase (such as "mmap of /f") for each call that may have changed a file below ``root`` in a way that
    strace does not show."""
    return tuple(dict.fromkeys(_not_followed(calls, Paths(root, calls))))


def _not_followed(calls: Sequence[SystemCall], names: Paths) -> Iterator[str]:
    for call in calls:
        if call.result is None:
            continue
        if name := _maps(call, names):
            yield f"mmap of {name}"
        elif call.name in NOT_FOLLOWED:
            source = names.below(call.path(COPIED_FROM[call.name])) if call.name in COPIED_FROM else ""
            if (name := names.below(call.path(NOT_FOLLOWED[call.name]))) and not source:
                yield f"{call.name} to {name}"
        elif call.name == "ioctl" and not any(word in call.arguments[1] for word in HARMLESS):
            if name := names.below(call.path(0)):
                yield f"{'reflink' if 'CLONE' in call.arguments[1] else 'ioctl'} to {name}"
        elif call.name in ASYNCHRONOUS:
            yield call.name


def unpaced(calls: Sequence[SystemCall]) -> tuple[str, ...]:
    """Return a phrase for each kind of operation in ``calls`` that bob cannot pause the program after. bob pauses a
    program when a system call returns. But one call may start several operations, or a thread of the kernel may start
    operations without a call (IORING_SETUP_SQPOLL)."""
    return tuple(dict.fromkeys(_unpaced(calls)))


def _unpaced(calls: Sequence[SystemCall]) -> Iterator[str]:
    for call in calls:
        if call.name in ASYNCHRONOUS and (call.result or 0) > 1:
            yield f"several operations in one {call.name}"
        elif call.name == "io_uring_setup" and call.result is not None and "IORING_SETUP_SQPOLL" in call.arguments[1]:
            yield "io_uring, whose operations a kernel thread takes (IORING_SETUP_SQPOLL)"
