"""Read a mounted file system: the tree of its names, and the contents of files in chunks. This code runs for every
crash state, under emulation, so it must be fast. The *entry* of a name says what kind of file it is, and has inode
number, size and so on. Entries are tuples, because Python hashes tuples fast, and the data of a file is hashed only
once. The process changes its working directory to directories of the mounted file system, so that the kernel need only
walk short paths."""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from os import O_RDONLY, close, listxattr, lstat, read
from os import open as open_file
from typing import Any, NamedTuple, Optional, Union

from bob.agent.inside.devices import EPOCH, opened
from bob.agent.inside.statx import MODE_AND_SIZE, FlagReader, Statx, lstatx, read_statx

CHUNK = 4096
PIECE = 1024 * 1024
ZEROS = bytes(PIECE)
LONGEST = 256 * 1024 * 1024  # bytes of a file that are read: a damaged size may be anything
LONGEST_PATH = 900  # characters; the agent enters a directory with a longer path: the kernel's limit is 4,096 bytes
MOST_LISTINGS = 1000  # directories whose names are kept: a damaged directory may contain itself
MOST_TEXT = 64 * 1024 * 1024  # characters of all paths together: a damaged directory may contain itself
HIDDEN_PREFIX = ".bob-"
HIDDEN_NAMES = {"lost+found", ".nilfs"}
HIDDEN_SAVED = re.compile(r"FSCK\d{4}\.REC")  # fsck.fat's names for lost clusters, which e2fsck puts into lost+found
RECORDED_NS = EPOCH * 1_000_000_000  # a recording, and what follows it, sets no time before this (ns)
GRAIN_NS = 2_000_000_000  # vfat's smallest unit of time (ns): it may set a time too early by this
OUT_OF_REACH = {
    errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.EINTR, errno.ENAMETOOLONG, errno.ENOKEY,
}  # fmt: skip
"""Errors that say that bob could not look at a file; they do not say that the file is damaged."""

Xattrs = tuple[tuple[str, int], ...]
StatusFields = tuple[int, int, int, int]  # permission bits, owner, group, mtime (ns; 0 if not from the base image)
Also = tuple[tuple[str, Any], ...]  # more facts about an entry, by their names in the reply
TreeEntry = tuple[str, int, int, int, tuple[int, ...], str, Xattrs, Optional[StatusFields], Also, Optional[str]]
"""One entry of a tree: kind, inode number, number of links, size, chunk numbers of the content, target of a link, and
extended attributes (with chunk numbers). Then more fields of stat (None if stat failed), more facts, and the fault if
one was found."""
LookFault = Optional[tuple[str, Also]]  # words for the user, and UNSEEN if bob did not see everything
UNKNOWN: TreeEntry = ("directory", 0, 1, 0, (), "", (), None, (), None)
UNSEEN: Also = (("unseen", True),)
TOUCHED = "touched"  # the fact that names the times which recovery, or this reader, set
Stat = Union[os.stat_result, Statx]
FlagAnswers = list[bytes]  # the kernel's answers about flags
EntryTree = tuple[tuple[str, TreeEntry], ...]  # (path, entry), by path
SeenEntry = tuple[TreeEntry, os.stat_result, int, int, Optional[bytes]]
"""An entry, its status, mtime (ns), size, and content (None: it is a directory)."""


class Pieces(NamedTuple):
    """The data of a long file, without its zeros. ``chunks`` has the pieces that are not all zeros, and ``places[i]``
    is the offset (bytes) of ``chunks[i]`` in the file."""

    places: tuple[int, ...]
    chunks: tuple[bytes, ...]


class Look:
    """A reader of directory trees. It cuts the contents of files into chunks, and gives equal chunks the same number.
    ``new_chunks`` has the chunks that the host does not have yet. If ``lasting_inodes`` is false, the file system
    numbers its inodes anew at each mount. The reader then gives 0 as each inode number.

    If ``closely`` is true, the reader also reads the root directory, and all times, flags and the number of blocks of
    each inode. In files longer than :data:`LONGEST`, it skips holes. It also reads the order of the names in each
    directory. The directory's entry has this order in the place of a symbolic link's target. The reader leaves out only
    the file system's own names, such as lost+found.
    """

    def __init__(self, root: str, *, lasting_inodes: bool = True, closely: bool = False) -> None:
        self.root = root
        self.closely = closely
        self.lasting_inodes = lasting_inodes
        self.new_chunks: list[bytes] = []
        self._flags = FlagReader()
        self._since = self._text = 0
        self._chunks: dict[bytes, int] = {}
        self._known: dict[str, tuple[Any, bytes | Pieces, FlagAnswers, TreeEntry]] = {}
        """By path: the last status (mtime in ns), content, flags and entry. It lacks files with an attribute, a fault
        or a time that this mount set."""
        self._seen: dict[str, SeenEntry] = {}  # the same for a look that is not close, of files that one read takes
        self._listings: dict[str, tuple[list[str], list[tuple[str, str]], int]] = {}
        """By directory: the names at the last look, their paths (:meth:`_named`), and the length of these."""

    def tree(self, since: int | None = None) -> EntryTree:
        """Return the entry of every name below the root. If ``closely`` is true, each entry names the time stamps that
        are not before ``since`` (ns), because the recovery or this reader has set them. ``since`` defaults to the time
        of this call."""
        self._since, self._text = (time.time_ns() if since is None else since) - GRAIN_NS, 0
        outside = os.open(".", os.O_PATH | os.O_DIRECTORY)
        try:
            os.chdir(self.root)
        except OSError as error:
            return (("/", _with_fault(UNKNOWN, _fault(error, "cannot be listed: "))),)
        else:
            found = self._found()
        finally:  # leave: a process inside the file system would prevent the unmount
            os.fchdir(outside)
            os.close(outside)
        return tuple(sorted(found.items()))

    def _found(self) -> dict[str, TreeEntry]:
        found: dict[str, TreeEntry] = {}
        if self.closely:
            found["/"] = self._entry(".", "/")
        far: list[tuple[str, ...]] = [(folder,) for folder in self._below("", found)]
        if far:
            with opened(".", os.O_PATH | os.O_DIRECTORY) as top:
                while far:
                    steps = far.pop()
                    far += [(*steps, folder) for folder in self._below_steps(top, steps, found)]
        return found

    def _below_steps(self, top: int, steps: tuple[str, ...], found: dict[str, TreeEntry]) -> list[str]:
        here = "/" + "/".join(steps)
        os.fchdir(top)
        try:
            for step in steps:
                os.chdir(step)
        except OSError as error:
            found[here] = _with_fault(found[here], _fault(error, "cannot be listed: "))
            return []
        return self._below(here, found)

    def _below(self, here: str, found: dict[str, TreeEntry]) -> list[str]:
        """Add an entry to ``found`` for every name below the working directory, whose path is ``here``. Leave out the
        names in directories whose paths are too long. Return these directories; the caller changes into them and goes
        on there."""
        folders, far, seen_of = [""], [], self._seen.get
        while folders:
            folder = folders.pop()
            if len(folder) > LONGEST_PATH:
                far.append(folder[1:])
                continue
            above = (here + folder) or "/"
            try:
                names, flags = self._listed(folder[1:] or ".")
            except OSError as error:
                found[above] = _with_fault(found.get(above, UNKNOWN), _fault(error, "cannot be listed: "))
                continue
            if self.closely:
                found[above] = _with_names(found[above], "/".join(names), self._flags.read(flags))
            for path, name in self._named(here, folder, names):
                seen = seen_of(name)
                entry = seen[0] if seen and _is_as_before(path, seen) else self._entry(path, name)
                found[name] = entry
                if entry[0] == "directory":
                    folders.append(f"/{path}")
        return far

    def _named(self, here: str, folder: str, names: list[str]) -> list[tuple[str, str]]:
        """Return for each of ``names`` in the directory ``folder`` below ``here`` two paths: from ``here``, and from
        the root. Leave out names that are not looked at. A directory mostly has the same names as at the last look."""
        above = here + folder
        listing = self._listings.get(above)
        if listing is None or listing[0] != names:
            is_left_out = is_of_the_file_system if self.closely else is_hidden
            there = names if above else [name for name in names if not is_left_out(name)]
            paths = [(f"{folder}/{name}"[1:], f"{above}/{name}") for name in there]
            listing = names, paths, sum(len(name) for _path, name in paths)
            if len(self._listings) < MOST_LISTINGS:
                self._listings[above] = listing
        self._text += listing[2]
        return listing[1]

    def _listed(self, folder: str) -> tuple[list[str], FlagAnswers]:
        if self._text > MOST_TEXT:
            raise OSError(errno.ENOMEM, f"more than the {MOST_TEXT} characters of paths that are looked at")
        if not self.closely:
            return os.listdir(folder), []
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            return os.listdir(fd), self._flags.flags(fd)
        finally:
            os.close(fd)

    def _entry(self, path: str, name: str) -> TreeEntry:
        state: Any
        try:
            if self.closely:
                state = lstatx(path)
                mode, size = MODE_AND_SIZE.unpack_from(state)
            else:
                status: Stat = os.lstat(path)
                mode, size, state = status.st_mode, status.st_size, (status, status.st_mtime_ns)
        except OSError as error:
            return _with_fault(("unreadable", 0, 1, 0, (), "", (), None, (), None), _fault(error))
        kind_of = mode & 0o170000
        data: bytes | Pieces = b""
        flags: FlagAnswers = []
        fault: LookFault = None
        if kind_of == stat.S_IFREG:
            data, flags, fault = self._read(path, size)
        elif kind_of != stat.S_IFDIR:
            return self._other(path, read_statx(state) if self.closely else status)
        try:
            names = os.listxattr(path)
        except OSError as error:
            names, fault = [], fault or _fault(error)
        plain = not names and fault is None
        known = self._known.get(name)
        if known is not None and known[1] != data:
            known = None
        if plain and known is not None and known[0] == state and known[2] == flags:
            return known[3]
        if self.closely:
            status = read_statx(state)
        xattrs, other_fault = self._xattrs(path, names)
        inode = status.st_ino if self.lasting_inodes else 0
        content = known[3][4] if known is not None else self._numbers(data)
        kind, size = ("file", size) if kind_of == stat.S_IFREG else ("directory", 0)
        more, also = self._what_else(status)
        if not isinstance(data, bytes):
            also = (*also, ("places", data.places))
        entry = (kind, inode, status.st_nlink, size, content, "", xattrs, more, (*also, *self._flags.read(flags)), None)
        if plain:
            if not _is_touched(also):
                self._known[name] = state, data, flags, entry
            if not self.closely and isinstance(data, bytes) and len(data) == size <= PIECE:
                self._seen[name] = entry, *state, size, data if kind == "file" else None
            return entry
        return _with_fault(entry, fault or other_fault)

    def _other(self, path: str, status: Stat) -> TreeEntry:
        inode, links = status.st_ino if self.lasting_inodes else 0, status.st_nlink
        more, also = self._what_else(status)
        xattrs: Xattrs = ()
        fault: LookFault = None
        if self.closely:
            try:
                xattrs, fault = self._xattrs(path, os.listxattr(path, follow_symlinks=False))
            except OSError as error:
                fault = _fault(error)
        kind, target = "other", ""
        if stat.S_IFMT(status.st_mode) != stat.S_IFLNK:
            target = f"{stat.S_IFMT(status.st_mode):o} {status.st_rdev}"
        else:
            kind = "symlink"
            try:
                target = os.readlink(path)
            except OSError as error:
                fault = _fault(error)
        return _with_fault((kind, inode, links, 0, (), target, xattrs, more, also, None), fault)

    def _what_else(self, status: Stat) -> tuple[StatusFields, Also]:
        if not isinstance(status, Statx):
            return what_else(status), ()
        times = (
            ("mtime", status.st_mtime_ns), ("atime", status.st_atime_ns), ("ctime", status.st_ctime_ns),
            ("btime", status.birth_ns),
        )  # fmt: skip
        also: list[tuple[str, Any]] = []
        # Earlier times are from the image, the recording or the program, and a program can see them. The times that the
        # mount and this reader set differ from mount to mount, and say nothing about the state.
        touched = [name for name, ns in times if ns is not None and self._since <= ns <= time.time_ns()]
        if touched:
            also.append((TOUCHED, tuple(touched)))
        also += [(name, ns) for name, ns in times[1:] if ns is not None and name not in touched]
        also.append(("blocks", status.st_blocks))
        if status.attributes:
            also.append(("attributes", status.attributes))
        if stat.S_IFMT(status.st_mode) != stat.S_IFREG:
            also.append(("length", status.st_size))
        modified = 0 if "mtime" in touched else status.st_mtime_ns
        return (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid, modified), tuple(also)

    def _read(self, path: str, size: int) -> tuple[bytes | Pieces, FlagAnswers, LookFault]:
        try:
            fd = os.open(path, os.O_RDONLY)
        except OSError as error:
            return b"", [], _fault(error)
        try:
            flags = self._flags.flags(fd) if self.closely else []
            if self.closely and size > LONGEST:
                pieces, words, unseen = read_pieces(fd, size, LONGEST)
                return pieces, flags, None if words is None else (words, UNSEEN if unseen else ())
            if not size:
                return b"", flags, None
            data = os.read(fd, min(size, PIECE))
            if data and len(data) < size:
                parts = [data]
                fault = _rest(fd, parts, size)
                return b"".join(parts), flags, fault
        except OSError as error:
            return b"", [], _fault(error)
        finally:
            os.close(fd)
        return data, flags, None

    def _numbers(self, data: bytes | Pieces) -> tuple[int, ...]:
        if not isinstance(data, bytes):
            return tuple(map(self._number, data.chunks))
        return tuple([self._number(data[start : start + CHUNK]) for start in range(0, len(data), CHUNK)])

    def _xattrs(self, path: str, names: list[str]) -> tuple[Xattrs, LookFault]:
        try:
            values = [(name, os.getxattr(path, name, follow_symlinks=False)) for name in sorted(names)]
        except OSError as error:
            return (), _fault(error)
        return tuple([(name, self._number(value)) for name, value in values]), None

    def _number(self, chunk: bytes) -> int:
        number = self._chunks.get(chunk)
        if number is None:
            number = self._chunks[chunk] = len(self._chunks)
            self.new_chunks.append(chunk)
        return number


def _is_as_before(path: str, seen: SeenEntry) -> bool:
    """Return whether the file or directory ``path`` is as it was at the last look. This is the most frequent case, so
    it takes few instructions of Python."""
    _entry, status, modified, size, data = seen
    try:
        now = lstat(path)
        if now != status or now.st_mtime_ns != modified:
            return False
        if data is not None:
            fd = open_file(path, O_RDONLY)
            try:
                if size and read(fd, size) != data:
                    return False
            finally:
                close(fd)
        return not listxattr(path)
    except OSError:
        return False  # the caller looks at it once more, and notes the error


def _rest(fd: int, pieces: list[bytes], size: int) -> LookFault:
    read = len(pieces[0])
    try:
        while read < size:
            if read >= LONGEST:
                # If no operation made the file so long, its size is a finding. If one did, the workload's controls say
                # so.
                return f"longer than the {LONGEST} bytes that are looked at", ()
            piece = os.read(fd, min(size - read, PIECE))
            if not piece:
                break
            pieces.append(piece)
            read += len(piece)
    except OSError as error:
        return _fault(error)
    return None


def read_pieces(fd: int, size: int, most: int) -> tuple[Pieces, str | None, bool]:
    """Read up to ``most`` bytes of a file's data (holes do not count). Return three values: the data without chunks of
    zeros; the error that ended the read, or None; and whether the file has more than ``most`` bytes of data."""
    places: list[int] = []
    chunks: list[bytes] = []
    at, left, fault, unseen = 0, most, None, False
    try:
        while not fault and (stretch := _next_data(fd, at, size)) is not None:
            at, end = stretch
            while at < end and not fault:
                piece = os.pread(fd, min(end - at, PIECE), at) if left > 0 else b""
                if left <= 0:
                    fault, unseen = f"more than the {most} bytes of data that are looked at", True
                elif not piece:
                    fault = f"ends at {at} of {size} bytes"
                elif piece != ZEROS[: len(piece)]:
                    for start in range(0, len(piece), CHUNK):
                        chunk = piece[start : start + CHUNK]
                        if chunk != ZEROS[: len(chunk)]:
                            places.append(at + start)
                            chunks.append(chunk)
                at += len(piece)
                left -= len(piece)
    except OSError as error:
        fault = error.strerror
    return Pieces(tuple(places), tuple(chunks)), fault, unseen


def _next_data(fd: int, at: int, size: int) -> tuple[int, int] | None:
    """Return the start and the end of the next part of the file, from byte ``at`` on, that may have data. Both are
    rounded outward to whole chunks. Return None at the end of the file. If the file system does not report holes (ext2,
    vfat), that part is everything up to the end."""
    if at >= size:
        return None
    try:
        start = os.lseek(fd, at, os.SEEK_DATA)
        end = os.lseek(fd, start, os.SEEK_HOLE)
    except OSError as error:
        if error.errno == errno.ENXIO:  # the file has only a hole from ``at`` on
            return None
        if error.errno != errno.EINVAL:
            raise
        return at, size
    return max(at, start - start % CHUNK), min(size, -(-end // CHUNK) * CHUNK)


def is_hidden(name: str) -> bool:
    return name.startswith(HIDDEN_PREFIX) or is_of_the_file_system(name)


def is_of_the_file_system(name: str) -> bool:
    return name in HIDDEN_NAMES or HIDDEN_SAVED.fullmatch(name) is not None


def what_else(status: os.stat_result) -> StatusFields:
    """Return the permission bits, user, group and mtime (ns) of an inode. The mtime is given as 0 if it was set after
    bob began to record the workload."""
    modified = status.st_mtime_ns if status.st_mtime_ns < RECORDED_NS else 0
    return stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid, modified


def _is_touched(also: Also) -> bool:
    return bool(also) and also[0][0] == TOUCHED


def _fault(error: OSError, about: str = "") -> tuple[str, Also]:
    return f"{about}{error.strerror}", UNSEEN if error.errno in OUT_OF_REACH else ()


def _with_fault(entry: TreeEntry, fault: LookFault) -> TreeEntry:
    if fault is None:
        return entry
    words, also = fault
    return (*entry[:-2], (*entry[-2], *also), words)


def _with_names(entry: TreeEntry, names: str, flags: Also) -> TreeEntry:
    return (*entry[:5], names, *entry[6:-2], (*entry[-2], *flags), entry[-1])


def describe(tree: EntryTree) -> dict[str, dict[str, Any]]:
    return {path: _describe_entry(entry) for path, entry in tree}


def _describe_entry(entry: TreeEntry) -> dict[str, Any]:
    kind, inode, links, size, content, target, xattrs, more, also, fault = entry
    said: dict[str, Any] = {"kind": kind, "inode": inode, "links": links, "size": size, "content": content}
    if target:
        said["target"] = target
    if xattrs:
        said["xattrs"] = dict(xattrs)
    if more:
        said.update(zip(("mode", "uid", "gid", "mtime"), more))
    said.update(also)
    if fault:
        said["fault"] = fault
    return said
