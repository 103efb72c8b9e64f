"""The system calls that strace records. Some of them change files or make the kernel write to the disk. If bob slows
the program down (:mod:`bob.agent.inside.pacing`), the program waits after each such call."""

from __future__ import annotations

import os
import re

from bob.agent.inside.strace_lines import StraceLine

_OF_NAMES = (
    "rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir,mknod,mknodat,bind,truncate,"
    "chmod,fchmodat,?fchmodat2,chown,lchown,fchownat,utime,utimes,futimesat,utimensat,"
    "setxattr,lsetxattr,removexattr,lremovexattr,?setxattrat,?removexattrat,?file_setattr"
)
_OF_ALL = "sync,msync,io_uring_enter,io_submit"
_OF_OPEN_FILES = (
    "write,pwrite64,writev,pwritev,pwritev2,sendfile,copy_file_range,splice,ftruncate,fallocate,"
    "fchmod,fchown,fsetxattr,fremovexattr,fsync,fdatasync,syncfs,sync_file_range"
)
_OPENS = "open,openat,openat2,creat,?open_by_handle_at"
TRACED = (
    f"{_OF_OPEN_FILES},{_OPENS},{_OF_NAMES},{_OF_ALL},mmap,mremap,io_uring_setup,"
    "execve,?execveat,fork,vfork,clone,clone3,chdir,fchdir,chroot"
)
"""System calls that change files, that make changes durable, that may do either unseen by strace, or that show which
process or file is meant. A call with a question mark does not exist in every kernel."""
PLACING = "umask,lseek,dup,dup2,dup3,fcntl,ioctl,fadvise64"
"""Calls that show which descriptor is meant, and where in a file. Also ioctl, which bob refuses if it does anything
else, and fadvise64, which may cause data to be written. bob does not ask for the stack frames of these calls."""
READS = "read,readv,preadv2"
"""Reads, which also move a position in a file. strace writes down only their numbers, since a crash shows nothing of a
read."""
CLOSES = "close,?close_range"  # after these a descriptor may be reused for a pipe, which no call shows

_LONGEST_HEAD = 40_000  # bytes with the descriptors of a call: two paths of 4,096 bytes, four letters each
_CREATING = b"O_CREAT", b"O_TRUNC", b"TMPFILE"
_CLOSING = {b"close": 0, b"dup2": 1, b"dup3": 1}  # the descriptors that a call closes
_PATH = re.compile(rb"\d+<([^>]*)>")
_UNTOLD = re.compile(rb"\w+\(\d+[,)]|(?:copy_file_range|splice)\([^,]+, [^,]+, \d+,")
"""A descriptor without a path in strace's line, because the path is longer than the 4,096 bytes that /proc shows."""
_PIPE = rb"\d+<\\x70\\x69\\x70\\x65\\x3a"


def _names(words: str) -> frozenset[bytes]:
    return frozenset(words.replace("?", "").encode().split(b","))


_ALWAYS, _BY_DESCRIPTOR, _OPENING = _names(f"{_OF_NAMES},{_OF_ALL}"), _names(_OF_OPEN_FILES), _names(_OPENS)


class TracedChanges:
    """A detector of calls that change something below ``root``. It reads strace's lines in order. A call counts if it
    did not fail, and may change the tree or make the kernel write to the disk.

    A call with a path counts even outside of ``root``, because bob does not resolve the path. A call on a descriptor
    counts if the descriptor's file is below ``root``, or if strace could not show the file's path. An open counts only
    if it may create or truncate. A write into a pipe, such as the standard output, counts. It may be the program's
    report of a change that no call shows: a store through a mapping. The close of a file that was truncated and written
    counts, because file systems then write its data (``EXT4_STATE_DA_ALLOC_CLOSE``, ``XFS_ITRUNCATED``)."""

    def __init__(self, root: str) -> None:
        escaped = re.escape("".join(f"\\x{byte:02x}" for byte in os.fsencode(root)).encode())
        below = rb"\d+<[^>]*" + escaped + rb"(?:\\x2f|>)"
        self._below = re.compile(below)
        self._told = re.compile(below + b"|" + _PIPE)
        self._cut: dict[bytes, bool] = {}  # truncated files by path, and whether they were written since

    def made_by(self, line: StraceLine) -> bool:
        """Return whether ``line`` is the return of a call that changes something. The caller must pass each line once,
        in order."""
        name, head, result = line.name, line.call[:_LONGEST_HEAD], line.call.rpartition(b" = ")[2]
        if line.is_begun or not result[:1].isdigit():
            return False
        if name == b"bind":
            return b'sun_path="' in head
        if name in _ALWAYS:
            return True
        if name in _BY_DESCRIPTOR:
            self._written(name, _paths(head))
            return (self._told.search(head) or _UNTOLD.match(head)) is not None
        if name == b"ioctl":  # most requests that only ask are not for files, and fail
            return self._is_below(head)
        if name in _OPENING:
            return self._opened(b"O_CREAT|O_TRUNC" if name == b"creat" else line.call, result)
        if name == b"fadvise64":
            return b"POSIX_FADV_DONTNEED" in line.call and self._is_below(head)
        closed = _paths(head.partition(b")")[0])[_CLOSING[name] :] if name in _CLOSING else []
        return bool(closed) and self._cut.get(closed[0], False)

    def _is_below(self, head: bytes) -> bool:
        return (self._below.search(head) or _UNTOLD.match(head)) is not None

    def _opened(self, flags: bytes, result: bytes) -> bool:
        if self._below.match(result) is None and not result.isdigit():
            return False
        if b"O_TRUNC" in flags:
            self._cut[_paths(result)[0]] = False
        return any(flag in flags for flag in _CREATING)

    def _written(self, name: bytes, paths: list[bytes]) -> None:
        for path in paths:
            if name == b"ftruncate":
                self._cut[path] = False
            elif path in self._cut:
                self._cut[path] = True


def _paths(text: bytes) -> list[bytes]:
    return _PATH.findall(text) or [b""]
