"""statx(2) and inode flags: all that bob can learn about a file without reading its data. (Python itself has statx from
3.15 on.)"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
from typing import NamedTuple

from bob.agent.inside.mounts import libc

AT_FDCWD = -100
AT_SYMLINK_NOFOLLOW = 0x100
STATX_BASIC_STATS, STATX_BTIME = 0x7FF, 0x800
FIELDS = struct.Struct("<II Q IIIH2x QQQQ qI4x qI4x qI4x qI4x II")
"""struct statx (include/uapi/linux/stat.h), up to the device numbers."""
SECOND = 1_000_000_000
FS_IOC_GETFLAGS = 0x80086601
FS_IOC_FSGETXATTR = 0x801C581F
FAT_IOCTL_GET_ATTRIBUTES = 0x80047210
NO_FLAGS = {errno.EOPNOTSUPP, errno.EINVAL}  # the errors for a file without flags


class Statx(NamedTuple):
    """The answer of statx(2). Times are in ns, and blocks have 512 bytes. ``attributes`` has only attributes that the
    file system supports."""

    st_mode: int
    st_ino: int
    st_nlink: int
    st_uid: int
    st_gid: int
    st_size: int
    st_blocks: int
    st_rdev: int
    st_atime_ns: int
    st_mtime_ns: int
    st_ctime_ns: int
    birth_ns: int | None
    attributes: int


MODE_AND_SIZE = struct.Struct("<28x H 10x Q")
_buffer = ctypes.create_string_buffer(256)


def lstatx(path: str) -> bytes:
    """Return statx's result for ``path``, in the kernel's binary form. A symbolic link is not followed. Raises
    OSError."""
    if libc.statx(AT_FDCWD, os.fsencode(path), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, _buffer):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return _buffer.raw[: FIELDS.size]


def read_statx(answer: bytes) -> Statx:
    (
        mask, _blksize, attributes, links, uid, gid, mode, inode, size, blocks, known,
        accessed, accessed_ns, born, born_ns, changed, changed_ns, modified, modified_ns, major, minor,
    ) = FIELDS.unpack(answer)  # fmt: skip
    return Statx(
        mode, inode, links, uid, gid, size, blocks, os.makedev(major, minor), accessed * SECOND + accessed_ns,
        modified * SECOND + modified_ns, changed * SECOND + changed_ns,
        born * SECOND + born_ns if mask & STATX_BTIME else None, attributes & known,
    )  # fmt: skip


class FlagReader:
    """A reader of a file's flags: the flags of chattr(1), the project number, the extent sizes and the DOS attributes.
    If the file system lacks one of them, the reader never asks for it again. So use a new reader for each file
    system."""

    def __init__(self) -> None:
        self._asked = {request: bytearray(size) for request, size in ANSWERS.items()}

    def flags(self, fd: int) -> list[bytes]:
        for request, answer in self._asked.items():
            try:
                fcntl.ioctl(fd, request, answer)
            except OSError as error:
                if error.errno == errno.ENOTTY:  # the file system does not know this request
                    del self._asked[request]
                    return self.flags(fd)
                if error.errno not in NO_FLAGS:
                    raise
                answer[:] = bytes(len(answer))
        return [bytes(answer) for answer in self._asked.values()]

    def read(self, flags: list[bytes]) -> tuple[tuple[str, int], ...]:
        said: list[tuple[str, int]] = []
        for request, answer in zip(self._asked, flags):
            said += zip(NAMES[request], [int.from_bytes(answer[at : at + 4], "little") for at in range(0, 20, 4)])
        return tuple([(name, number) for name, number in said if number and name])


ANSWERS = {FS_IOC_GETFLAGS: 8, FS_IOC_FSGETXATTR: 28, FAT_IOCTL_GET_ATTRIBUTES: 4}  # bytes of the kernel's answer
NAMES = {
    FS_IOC_GETFLAGS: ("flags",),
    FS_IOC_FSGETXATTR: ("xflags", "extent", "", "project", "cow_extent"),
    FAT_IOCTL_GET_ATTRIBUTES: ("dos",),
}
"""The names of the numbers in each answer. An empty name is left out: the number of extents does not belong to the tree
(struct fsxattr in include/uapi/linux/fs.h)."""
