"""What is in a mounted file system: the whole tree, each file's content by chunks.

This runs once for every crash state, and emulation makes each line of it dear. So what is found is kept as tuples,
which hash at the speed of C, until it turns out to be new; a file that says what it said last time is not hashed
again; and paths are short, since the kernel walks all of a path for each call: the agent goes into the tree.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from typing import Any, Optional, Union

from bob.agent.inside.devices import EPOCH
from bob.agent.inside.long_files import CHUNK, PIECE, Pieces, read_pieces
from bob.agent.inside.statx import MODE_AND_SIZE, FlagReader, Statx, lstatx, read_statx

LONGEST = 256 * 1024 * 1024
"""How much of a file is read (bytes): a damaged size may be anything."""
LONGEST_PATH = 900
"""So many characters has the path of a directory at most, or else the agent goes into it: with a name behind it, that
is less than the 4,096 bytes that a path may have."""
MOST_TEXT = 64 * 1024 * 1024
"""So many characters may all paths have together: a damaged directory may lead to itself."""
HIDDEN_PREFIX = ".bob-"
HIDDEN_NAMES = {"lost+found", ".nilfs"}
HIDDEN_SAVED = re.compile(r"FSCK\d{4}\.REC")
"""So fsck.fat names what it found in clusters of no file, as e2fsck puts it into lost+found."""
RECORDED_NS = EPOCH * 1_000_000_000
"""A time that was set by a recording, by recovery or while it was looked at is not before this (ns)."""
GRAIN_NS = 2_000_000_000
"""By so much may a file system that knows no smaller unit set a time too early (ns): vfat."""
OUT_OF_REACH = {
    errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.EINTR, errno.ENAMETOOLONG, errno.ENOKEY,
}  # fmt: skip
"""So the kernel says that bob could not look, and nothing of what is there."""

Xattrs = tuple[tuple[str, int], ...]
StatusFields = tuple[int, int, int, int]
"""Permission bits, owner, group, time of modification (ns; 0 if it was not set when the base image was made)."""
Also = tuple[tuple[str, Any], ...]
"""What else there is to be told of an entry, by the names by which it travels."""
TreeEntry = tuple[str, int, int, int, tuple[int, ...], str, Xattrs, Optional[StatusFields], Also, Optional[str]]
"""Kind, inode number, links, size, content as chunk numbers, target, extended attributes as chunk numbers, what else
stat says (None where it says nothing), what there is beside, fault."""
LookFault = Optional[tuple[str, Also]]
"""What went wrong, in words; and that bob did not see all there is, where that is so."""
UNKNOWN: TreeEntry = ("directory", 0, 1, 0, (), "", (), None, (), None)
"""A directory of which nothing is known."""
UNSEEN: Also = (("unseen", True),)
TOUCHED = "touched"
"""The times that recovery or the look has set, by name."""
Stat = Union[os.stat_result, Statx]
FlagAnswers = list[bytes]
"""What the kernel tells of the flags of a thing."""
EntryTree = tuple[tuple[str, TreeEntry], ...]
"""(path, entry), by path."""


class Look:
    """Looks at trees, and numbers the contents that it finds. ``new_chunks`` are those that bob was not told of yet.

    Without ``lasting_inodes`` a file has another number at each mount: all are 0, as they tell nothing.

    Where it looks ``closely``, it leaves out nothing that a program can learn from the names: the root itself, the
    order of names in a directory (as its target), all times, flags, how much room things take, what is in files of any
    length, and names that are hidden else, but for those of the file system.
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
        """What a path was last: its status with its time of modification (ns), all that is in it, its flags, and what
        is told of it. Of what has an attribute, a fault, or a time that the look has set there is nothing here."""

    def tree(self, since: int | None = None) -> EntryTree:
        """Every name below the root. Recovery and the look have set the times from ``since`` on (ns; None: from now
        on), up to when it is read."""
        self._since, self._text = (time.time_ns() if since is None else since) - GRAIN_NS, 0
        outside = os.open(".", os.O_PATH | os.O_DIRECTORY)
        try:
            os.chdir(self.root)
        except OSError as error:
            return (("/", _with_fault(UNKNOWN, _fault(error, "cannot be listed: "))),)
        else:
            found = self._found()
        finally:  # who stays inside keeps it from being unmounted
            os.fchdir(outside)
            os.close(outside)
        return tuple(sorted(found.items()))

    def _found(self) -> dict[str, TreeEntry]:
        """Every name below the working directory."""
        found: dict[str, TreeEntry] = {}
        if self.closely:
            found["/"] = self._entry(".", "/")
        far: list[tuple[str, ...]] = [(folder,) for folder in self._below("", found)]
        if far:
            top = os.open(".", os.O_PATH | os.O_DIRECTORY)
            try:
                while far:
                    steps = far.pop()
                    far += [(*steps, folder) for folder in self._below_steps(top, steps, found)]
            finally:
                os.close(top)
        return found

    def _below_steps(self, top: int, steps: tuple[str, ...], found: dict[str, TreeEntry]) -> list[str]:
        """As :meth:`_below`, of a directory so many ``steps`` below ``top``."""
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
        """Find every name below the working directory, whose own path is ``here``, but for what is in directories with
        too long a path from here: these are in the answer."""
        folders, far = [""], []
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
            for name in names:
                if above == "/" and (is_of_the_file_system(name) if self.closely else is_hidden(name)):
                    continue
                path = f"{folder}/{name}"
                found[here + path] = entry = self._entry(path[1:], here + path)
                self._text += len(here) + len(path)
                if entry[0] == "directory":
                    folders.append(path)
        return far

    def _listed(self, folder: str) -> tuple[list[str], FlagAnswers]:
        """The names in a directory, and what the kernel tells of its flags where it is looked at closely."""
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
        """What is at ``path``, seen from here, which is called ``name``."""
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
            return entry
        return _with_fault(entry, fault or other_fault)

    def _other(self, path: str, status: Stat) -> TreeEntry:
        """What is neither a file nor a directory."""
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
        """What is told of a name's status beside its kind, inode number, links and the size of files."""
        if not isinstance(status, Statx):
            return what_else(status), ()
        times = (
            ("mtime", status.st_mtime_ns), ("atime", status.st_atime_ns), ("ctime", status.st_ctime_ns),
            ("btime", status.birth_ns),
        )  # fmt: skip
        also: list[tuple[str, Any]] = []
        # The others are those of the image that was made, or of the recording, or the program has set them: a program
        # can see them. What the mount and the look set is another time in each state, and nothing of the state's.
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
        """What can be read of a file, what the kernel tells of its flags where it is looked at closely, and what went
        wrong with the rest."""
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
        """The chunks of a file, by their numbers."""
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


def _rest(fd: int, pieces: list[bytes], size: int) -> LookFault:
    """Append to ``pieces`` what can be read behind the first one; what went wrong with the rest of the file."""
    read = len(pieces[0])
    try:
        while read < size:
            if read >= LONGEST:
                # A size that no operation made is a finding; where one did, the controls of the workload say so.
                return f"longer than the {LONGEST} bytes that are looked at", ()
            piece = os.read(fd, min(size - read, PIECE))
            if not piece:
                break
            pieces.append(piece)
            read += len(piece)
    except OSError as error:
        return _fault(error)
    return None


def is_hidden(name: str) -> bool:
    """Whether a name at the top is the file system's, its recovery's or bob's own."""
    return name.startswith(HIDDEN_PREFIX) or is_of_the_file_system(name)


def is_of_the_file_system(name: str) -> bool:
    """Whether a name at the top is the file system's or its recovery's."""
    return name in HIDDEN_NAMES or HIDDEN_SAVED.fullmatch(name) is not None


def what_else(status: os.stat_result) -> StatusFields:
    """What is told of a name's status beside its kind, inode number, links and size; of a time of modification only
    whether a recording, or what came later, has set it, and which it is where none has."""
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
    """A tree as it travels: of each entry what there is to be said."""
    return {path: _describe_entry(*entry) for path, entry in tree}


def _describe_entry(
    kind: str,
    inode: int,
    links: int,
    size: int,
    content: tuple[int, ...],
    target: str,
    xattrs: Xattrs,
    more: StatusFields | None,
    also: Also,
    fault: str | None,
) -> dict[str, Any]:
    entry: dict[str, Any] = {"kind": kind, "inode": inode, "links": links, "size": size, "content": content}
    if target:
        entry["target"] = target
    if xattrs:
        entry["xattrs"] = dict(xattrs)
    if more:
        entry.update(zip(("mode", "uid", "gid", "mtime"), more))
    entry.update(also)
    if fault:
        entry["fault"] = fault
    return entry
