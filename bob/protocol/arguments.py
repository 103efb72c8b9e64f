"""The arguments of system calls, as strace writes them. This module knows the index of each argument that bob needs,
and what the argument means."""

import re
from dataclasses import replace
from typing import NamedTuple

from bob.program.strace import SystemCall, unescaped
from bob.workload.operations import Allocation, How, Special

OPENS = {"open": 0, "creat": 0, "openat": 1, "openat2": 1}  # the index of the file's name among a call's arguments
LINKS = {"link": (0, 1), "linkat": (1, 3)}
MAKES = {"mkdir": 0, "mkdirat": 1, "mknod": 0, "mknodat": 1}
SYMLINKS = {"symlink": 1, "symlinkat": 2}
REMOVES = {"unlink": 0, "unlinkat": 1, "rmdir": 0}
MODES = {"chmod": 0, "fchmodat": 1, "fchmodat2": 1}
OWNERS = {"chown": 0, "lchown": 0, "fchownat": 1}
SYNCS = ("fsync", "fdatasync", "sync_file_range", "syncfs", "sync", "msync")
TRUNCATES = {"truncate": 0}
COPIES = ("sendfile", "copy_file_range")
INTO = {"splice": 2, "ioctl": 0, "mmap": 4}  # index of a descriptor whose file may change in an unknown way
MAPPED, STORE = (
    "mapped",
    "store",
)  # bob's names for a watched mapping, and a store through one (bob.agent.inside.stores)
TIMES = {"utime": 0, "utimes": 0, "futimesat": 1, "utimensat": 1}
EXTENDED = ("setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr")
OPEN_FILE = re.compile(
    r"(?:/proc/(?P<process>self|thread-self|\d+)|/dev)/fd/(?P<number>\d+)"
)  # a name in /proc or /dev that means an open file
_SOCKET = re.compile(r'sun_path=("[^"]+")')
_MODE = re.compile(r"\b0[0-7]{2,4}\b")
_HOW = {"O_DSYNC": How.DSYNC, "O_SYNC": How.SYNC, "O_DIRECT": How.DIRECT}
SPECIAL = {"S_IFIFO": Special.FIFO, "S_IFSOCK": Special.SOCKET}


def follows_links(call: SystemCall) -> bool:
    """Return whether a call follows a symbolic link at the end of the path in its arguments. A path in /proc or /dev
    that stands for an open file looks like a symbolic link, but a linkat(2) with such a path links the open file
    itself. So the result for such a linkat(2) is False."""
    if call.name in LINKS:
        is_open_file = OPEN_FILE.fullmatch(text(call.arguments[LINKS[call.name][0]]))
        return "AT_SYMLINK_FOLLOW" in call.arguments[-1] and not is_open_file
    return call.name != "lchown" and "AT_SYMLINK_NOFOLLOW" not in call.arguments[-1]


def process_of(open_file: re.Match[str], call: SystemCall) -> int:
    named = open_file["process"]
    return int(named) if named and named.isdigit() else call.pid


def has_no_name(call: SystemCall, place: int) -> bool:
    """Return whether the argument at index ``place`` is an empty name (AT_EMPTY_PATH). Such a call is about the file of
    the descriptor in the previous argument."""
    return place > 0 and call.arguments[place] == '""' and "AT_EMPTY_PATH" in call.arguments[-1]


class KernelCopy(NamedTuple):
    """A copy that the kernel makes from one open file to another. ``out_of`` and ``into`` are the indexes of the
    arguments that have the two descriptors. The copy reads from byte ``begin`` and writes from byte ``start`` on. If
    ``begin`` is not given (None), the copy reads at the position of the first open file, and advances this position. If
    ``start`` is not given (None), it writes at the position of the second open file, and advances that."""

    out_of: int
    into: int
    begin: int | None
    start: int | None


def copy_of(call: SystemCall) -> KernelCopy:
    if call.name == "sendfile":
        return KernelCopy(1, 0, _offset(call.arguments[2]), None)
    return KernelCopy(0, 2, _offset(call.arguments[1]), _offset(call.arguments[3]))


def _offset(argument: str) -> int | None:
    """Return the number that a pointer argument points to when the call begins. For example, strace writes ``[0] =>
    [100]`` or ``[0 => 100]`` if the number is 0 before the call and 100 after it; then the result is 0. Return None for
    NULL."""
    found = re.search(r"\d+", argument)
    return int(found[0]) if found else None


def as_mknod(call: SystemCall) -> SystemCall:
    """Return a bind(2) of a socket to a name as the mknod(2) that has the same effect (unix_bind_bsd,
    net/unix/af_unix.c). Return any other call unchanged."""
    found = _SOCKET.search(call.arguments[1]) if call.name == "bind" else None
    return call if found is None else replace(call, name="mknod", arguments=(found[1], "S_IFSOCK|0777"))


def flags_of(call: SystemCall) -> str:
    return "O_WRONLY|O_CREAT|O_TRUNC" if call.name == "creat" else " ".join(call.arguments[OPENS[call.name] + 1 :])


def how_opened(call: SystemCall) -> How:
    return next((how for flag, how in _HOW.items() if flag in flags_of(call)), How.PLAIN)


def how_of(call: SystemCall) -> How | None:
    if call.name != "pwritev2":
        return None
    return How.DSYNC if "RWF_DSYNC" in call.arguments[-1] else How.SYNC if "RWF_SYNC" in call.arguments[-1] else None


def allocation(mode: str) -> Allocation:
    """Return the kind of allocation that fallocate(2) makes with the flags ``mode``. The caller must exclude flags that
    move ranges of the file."""
    if "PUNCH_HOLE" in mode:
        return Allocation.PUNCH
    if "ZERO_RANGE" in mode:
        return Allocation.ZERO_KEEP if "KEEP_SIZE" in mode else Allocation.ZERO
    return Allocation.KEEP if "KEEP_SIZE" in mode else Allocation.GROW


def mode_of(call: SystemCall, umask: int) -> int:
    found = _MODE.findall(", ".join(call.arguments))
    return (int(found[-1], 8) if found else 0o644) & ~umask


def permissions(argument: str) -> int:
    """Return the permission bits that a chmod(2) with this argument sets. The kernel ignores the other bits, which are
    the file's type (``S_IALLUGO`` in chmod_common)."""
    return int(argument, 8) & 0o7777


def identity(argument: str) -> int:
    """Return the user or group number in an argument of chown(2). The number -1 means that the call leaves the user or
    group unchanged."""
    number = int(argument, 0)
    return -1 if number == 2**32 - 1 else number


def text(argument: str) -> str:
    return unescaped(argument.strip('"')).decode(errors="replace")
