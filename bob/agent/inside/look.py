"""What is in a mounted file system: the whole tree, each file's content by chunks.

This runs once for every crash state, and emulation makes each line of it dear. So what is found is kept as tuples,
which hash at the speed of C, until it turns out to be new; a file that says what it said last time is not hashed
again; and paths are short, since the kernel walks all of a path for each call: the agent goes into the tree.
"""

from __future__ import annotations

import os
import re
import stat
from typing import Any, Optional

from bob.agent.inside.devices import EPOCH

CHUNK = 4096
PIECE = 1024 * 1024
LONGEST = 256 * 1024 * 1024
"""How much of a file is read (bytes): a damaged size may be anything."""
HIDDEN_PREFIX = ".bob-"
HIDDEN_NAMES = {"lost+found", ".nilfs"}
HIDDEN_SAVED = re.compile(r"FSCK\d{4}\.REC")
"""So fsck.fat names what it found in clusters of no file, as e2fsck puts it into lost+found."""
RECORDED_NS = EPOCH * 1_000_000_000
"""A time that was set by a recording, by recovery or while it was looked at is not before this (ns)."""
RECORDED_UNTIL_NS = (EPOCH + 30 * 86_400) * 1_000_000_000
"""One that a recording set is before this, and what a guest's own clock sets is not (ns)."""

Xattrs = tuple[tuple[str, int], ...]
Status = tuple[int, int, int, int]
"""Permission bits, owner, group, time of modification (ns; 0 if it was not set when the base image was made)."""
Entry = tuple[str, int, int, int, tuple[int, ...], str, Xattrs, Optional[Status], Optional[str]]
"""Kind, inode number, links, size, content as chunk numbers, target, extended attributes as chunk numbers, what else
stat says (None where it says nothing), fault."""
UNKNOWN: Entry = ("directory", 0, 1, 0, (), "", (), None, None)
"""A directory of which nothing is known."""
Tree = tuple[tuple[str, Entry], ...]
"""(path, entry), by path."""


class Look:
    """Looks at trees, and numbers the contents that it finds. ``new_chunks`` are those that bob was not told of yet.

    Without ``lasting_inodes`` a file has another number at each mount: all are 0, as they tell nothing.

    Where it looks ``closely``, nothing is left out that a program could see: the root itself, the order of names in
    a directory (as its target), times that the recording set, and names that are hidden else, but for those of the
    file system.
    """

    def __init__(self, root: str, *, lasting_inodes: bool = True, closely: bool = False) -> None:
        self.root = root
        self.closely = closely
        self.lasting_inodes = lasting_inodes
        self.new_chunks: list[bytes] = []
        self._until = RECORDED_UNTIL_NS if closely else RECORDED_NS
        self._chunks: dict[bytes, int] = {}
        self._known: dict[str, tuple[os.stat_result, int, bytes, Entry]] = {}
        """What a path was last: its status with its time of modification (ns), all of its bytes, and what is told of
        it. Of what has an attribute or a fault there is nothing here."""

    def tree(self) -> Tree:
        """Every name below the root."""
        outside = os.open(".", os.O_PATH | os.O_DIRECTORY)
        try:
            os.chdir(self.root)
        except OSError as error:
            return (("/", _with_fault(UNKNOWN, f"cannot be listed: {error.strerror}")),)
        else:
            found = self._found()
        finally:  # who stays inside keeps it from being unmounted
            os.fchdir(outside)
            os.close(outside)
        return tuple(sorted(found.items()))

    def _found(self) -> dict[str, Entry]:
        """Every name below the working directory."""
        found: dict[str, Entry] = {}
        if self.closely:
            found["/"] = self._entry(".")
        folders = [""]
        while folders:
            folder = folders.pop()
            try:
                names = os.listdir(folder[1:] or ".")
            except OSError as error:
                path = folder or "/"
                found[path] = _with_fault(found.get(path, UNKNOWN), f"cannot be listed: {error.strerror}")
                continue
            if self.closely and (folder or "/") in found:
                found[folder or "/"] = _with_target(found[folder or "/"], "/".join(names))
            for name in names:
                if not folder and (is_of_the_file_system(name) if self.closely else is_hidden(name)):
                    continue
                path = f"{folder}/{name}"
                found[path] = entry = self._entry(path[1:])
                if entry[0] == "directory":
                    folders.append(path)
        return found

    def _entry(self, path: str) -> Entry:
        try:
            status = os.lstat(path)
        except OSError as error:
            return ("unreadable", 0, 1, 0, (), "", (), None, error.strerror)
        kind_of = status.st_mode & 0o170000
        if kind_of == stat.S_IFREG:
            data, fault = _read(path, status.st_size)
        elif kind_of == stat.S_IFDIR:
            data, fault = b"", None
        else:
            return self._other(path, status)
        try:
            names = os.listxattr(path)
        except OSError as error:
            names, fault = [], fault or error.strerror
        plain = not names and fault is None
        known = self._known.get(path)
        if known is not None and known[2] != data:
            known = None
        if plain and known is not None and known[0] == status and known[1] == status.st_mtime_ns:
            return known[3]
        xattrs, other_fault = self._xattrs(path, names)
        inode = status.st_ino if self.lasting_inodes else 0
        content = known[3][4] if known is not None else self._numbers(data)
        kind, size = ("file", status.st_size) if kind_of == stat.S_IFREG else ("directory", 0)
        more = what_else(status, self._until)
        entry = (kind, inode, status.st_nlink, size, content, "", xattrs, more, fault or other_fault)
        if plain:
            self._known[path] = status, status.st_mtime_ns, data, entry
        return entry

    def _other(self, path: str, status: os.stat_result) -> Entry:
        """What is neither a file nor a directory."""
        inode, links = status.st_ino if self.lasting_inodes else 0, status.st_nlink
        more = what_else(status, self._until)
        if stat.S_IFMT(status.st_mode) != stat.S_IFLNK:
            kind = f"{stat.S_IFMT(status.st_mode):o} {status.st_rdev}"
            return ("other", inode, links, 0, (), kind, (), more, None)
        try:
            return ("symlink", inode, links, 0, (), os.readlink(path), (), more, None)
        except OSError as error:
            return ("symlink", inode, links, 0, (), "", (), more, error.strerror)

    def _numbers(self, data: bytes) -> tuple[int, ...]:
        """The chunks of a file, by their numbers."""
        return tuple([self._number(data[start : start + CHUNK]) for start in range(0, len(data), CHUNK)])

    def _xattrs(self, path: str, names: list[str]) -> tuple[Xattrs, str | None]:
        try:
            return tuple([(name, self._number(os.getxattr(path, name))) for name in sorted(names)]), None
        except OSError as error:
            return (), error.strerror

    def _number(self, chunk: bytes) -> int:
        number = self._chunks.get(chunk)
        if number is None:
            number = self._chunks[chunk] = len(self._chunks)
            self.new_chunks.append(chunk)
        return number


def _read(path: str, size: int) -> tuple[bytes, str | None]:
    """What can be read of a file, and what went wrong with the rest."""
    data = b""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError as error:
        return b"", error.strerror
    try:
        if size:
            data = os.read(fd, min(size, PIECE))
            if data and (len(data) < size or len(data) >= LONGEST):
                pieces = [data]
                fault = _rest(fd, pieces, size)
                return b"".join(pieces), fault
    except OSError as error:
        return b"", error.strerror
    finally:
        os.close(fd)
    return data, None


def _rest(fd: int, pieces: list[bytes], size: int) -> str | None:
    """Append to ``pieces`` what can be read behind the first one; what went wrong with the rest of the file."""
    read = len(pieces[0])
    try:
        while read < LONGEST:
            if read >= size or not (piece := os.read(fd, min(size - read, PIECE))):
                return None
            pieces.append(piece)
            read += len(piece)
    except OSError as error:
        return error.strerror
    return f"longer than the {LONGEST} bytes that are looked at"


def is_hidden(name: str) -> bool:
    """Whether a name at the top is the file system's, its recovery's or bob's own."""
    return name.startswith(HIDDEN_PREFIX) or is_of_the_file_system(name)


def is_of_the_file_system(name: str) -> bool:
    """Whether a name at the top is the file system's or its recovery's."""
    return name in HIDDEN_NAMES or HIDDEN_SAVED.fullmatch(name) is not None


def what_else(status: os.stat_result, until: int = RECORDED_NS) -> Status:
    """What is told of a name's status beside its kind, inode number, links and size; of a time of modification only
    whether it is before ``until`` (ns), and which then."""
    modified = status.st_mtime_ns if status.st_mtime_ns < until else 0
    return stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid, modified


def _with_fault(entry: Entry, fault: str) -> Entry:
    return (*entry[:-1], fault)


def _with_target(entry: Entry, target: str) -> Entry:
    return (*entry[:5], target, *entry[6:])


def describe(tree: Tree) -> dict[str, dict[str, Any]]:
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
    more: Status | None,
    fault: str | None,
) -> dict[str, Any]:
    entry: dict[str, Any] = {"kind": kind, "inode": inode, "links": links, "size": size, "content": content}
    if target:
        entry["target"] = target
    if xattrs:
        entry["xattrs"] = dict(xattrs)
    if more:
        entry.update(zip(("mode", "uid", "gid", "mtime"), more))
    if fault:
        entry["fault"] = fault
    return entry
